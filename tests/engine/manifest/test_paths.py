"""Which input is what, listings, and where relative paths lead."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from oasr.errors import ManifestError, OptionsError
from oasr.manifest import InputOptions, open_inputs
from oasr.types import RowFailure, Utterance


def ids(*inputs: object, **options) -> list[str]:
    return [row.id for row in open_inputs([str(path) for path in inputs], InputOptions(**options))]


@pytest.fixture
def tree(write, tmp_path, monkeypatch) -> Path:
    """in/ with recordings at several depths, and tmp_path as the current folder."""
    names = [
        "b.wav",
        "a.FLAC",
        "sub/x.mp3",
        "sub/x.wav",
        "sub/deep/z.opus",
        "notes.txt",
        ".hidden.wav",
        ".git/q.wav",
    ]
    for name in names:
        write(f"in/{name}")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "in"


LISTED = ["in/a.FLAC", "in/b.wav", "in/sub/deep/z.opus", "in/sub/x.mp3", "in/sub/x.wav"]


@pytest.mark.parametrize("spelling", ["in", "in/", "./in", "in//"])
def test_a_folder_is_listed_to_any_depth_in_order(tree, spelling):
    assert ids(spelling) == LISTED


def test_ids_are_paths_as_written(tree):
    assert ids(tree)[0] == f"{tree}/a.FLAC"
    assert ids("in/b.wav", "./in/sub/x.wav") == ["in/b.wav", "in/sub/x.wav"]
    (row,) = open_inputs(["in/b.wav"])
    assert (row.audio, row.row, row.origin) == (
        "in/b.wav",
        {"id": "in/b.wav", "audio": "in/b.wav"},
        "in/b.wav",
    )


def test_globs(tree):
    assert ids("in/*.wav") == ["in/b.wav"]
    assert ids("in/**/*.wav") == ["in/b.wav", "in/sub/x.wav"]
    assert ids("in/sub/x.[mw]*") == ["in/sub/x.mp3", "in/sub/x.wav"]
    assert ids("in/s*") == LISTED[2:], "a folder that matches is an input"
    assert ids("in/sub/**") == LISTED[2:], "** matches folders on its way only"
    assert ids(f"{tree}/*.txt") == [f"{tree}/notes.txt"], "what is named is taken, whatever its suffix"


def test_a_glob_that_matches_nothing(tree):
    with pytest.raises(ManifestError, match=r"in/\*\.ogg.*no file matches"):
        open_inputs(["in/*.ogg"])


def test_a_file_whose_name_looks_like_a_glob(write):
    path = write("talk [1]*.wav")
    assert ids(path) == [str(path)]


def test_globs_take_manifests_and_folders(write, tmp_path):
    write("m/a.jsonl", {"id": "a", "audio": "a.wav"})
    write("m/b.jsonl", {"id": "b", "audio": "a.wav"})
    write("m/k/wav.scp", "k1 k1.wav")
    assert ids(f"{tmp_path}/m/*") == ["a", "b", "k1"]


def test_an_empty_folder_is_refused(write, tmp_path):
    write("x.wav/notes.txt")
    with pytest.raises(ManifestError, match=r"x\.wav: no recording in this folder.*\.flac"):
        open_inputs([str(tmp_path / "x.wav")])
    write("x.wav/dev.jsonl")
    with pytest.raises(ManifestError, match=r"give .*x\.wav/dev\.jsonl"):
        open_inputs([str(tmp_path / "x.wav")])


def test_a_folder_named_as_a_recording(write, tmp_path):
    write("all/x.wav/y.wav")
    assert ids(tmp_path / "all") == [f"{tmp_path}/all/x.wav/y.wav"]
    assert ids(tmp_path / "all" / "x.wav") == [f"{tmp_path}/all/x.wav/y.wav"]


def test_an_empty_folder_among_the_matches_of_a_glob_is_a_failed_row(write, tmp_path):
    write("g/a.wav")
    (tmp_path / "g" / "b.wav").mkdir()
    good, bad = open_inputs([f"{tmp_path}/g/*.wav"])
    assert isinstance(good, Utterance)
    assert isinstance(bad, RowFailure)
    assert "folder" in bad.message
    assert (bad.index, bad.id) == (1, f"{tmp_path}/g/b.wav")


def test_a_folder_that_contains_itself(tree):
    (tree / "sub" / "loop").symlink_to(tree)
    (tree / "link.wav").symlink_to(tree / "b.wav")
    (tree / "dangling.wav").symlink_to(tree / "nowhere")
    assert ids("in") == sorted([*LISTED, "in/link.wav", "in/dangling.wav"])


def test_a_link_that_leads_nowhere_is_a_row_if_it_is_named_as_a_recording(tree):
    for name, target in (("loop", "loop"), ("through", "b.wav/x"), ("long", "x" * 300)):
        (tree / name).symlink_to(target)
        (tree / f"{name}.wav").symlink_to(target.replace("loop", "loop.wav"))
    assert ids("in") == sorted([*LISTED, "in/long.wav", "in/loop.wav", "in/through.wav"])


def test_a_link_that_may_lead_to_a_folder_is_not_passed_over(tree, monkeypatch):
    def refuse():
        raise PermissionError(13, "Permission denied")

    link = SimpleNamespace(name="link", is_dir=refuse)
    monkeypatch.setattr(os, "scandir", lambda path: nullcontext([link]))
    with pytest.raises(ManifestError, match="in/link: the folder cannot be listed: Permission denied"):
        open_inputs(["in"])
    link.name = "link.wav"
    assert ids("in") == ["in/link.wav"], "as a row it is not passed over"


def test_a_linked_folder_is_entered(write, tmp_path):
    write("real/a.wav")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "real")
    assert ids(tmp_path / "top") == [f"{tmp_path}/top/link/a.wav"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unlistable_folder_is_refused(tree):
    (tree / "sub").chmod(0)
    try:
        with pytest.raises(ManifestError, match="sub: the folder cannot be listed"):
            open_inputs(["in"])
    finally:
        (tree / "sub").chmod(0o755)


def test_listing_errors_name_the_folder(tree, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "deep":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ManifestError, match="in/sub/deep: the folder cannot be listed: Permission denied"):
        open_inputs(["in"])


@pytest.mark.parametrize(
    ("pattern", "enters"),
    [
        ("in/**/*.wav", True),
        ("in/**", True),
        ("in/**/x.wav", True),
        ("in/*/*.mp3", True),
        ("**/*.wav", True),
        ("in/su[b]/*", True),
        ("in/*/x.wav", True),
        ("in/*.wav", False),
        ("in/b*", False),
    ],
)
def test_a_glob_passes_over_no_folder_that_it_cannot_list(tree, monkeypatch, pattern, enters):
    scandir, lstat = os.scandir, os.lstat

    def refuse(path):
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    def refuse_below(path, **fields):
        if "sub" in Path(path).parts[:-1]:
            raise PermissionError(13, "Permission denied")
        return lstat(path, **fields)

    expected = ids(pattern) if not enters else []
    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "lstat", refuse_below)
    if enters:
        with pytest.raises(ManifestError, match="in/sub: the folder cannot be listed: Permission denied"):
            open_inputs([pattern])
    else:
        assert ids(pattern) == expected == ["in/b.wav"]


def test_missing_inputs(tmp_path):
    (row,) = open_inputs([f"{tmp_path}/gone.wav"])
    assert isinstance(row, Utterance), "a recording that is not there fails as a row, when it is opened"
    for name in ("gone.jsonl", "gone", "gone/", "gone.wav/", "", "a\0.wav"):
        with pytest.raises(ManifestError, match="expected a recording, folder, glob or manifest"):
            open_inputs([name and f"{tmp_path}/{name}"])


@pytest.mark.parametrize("name", ["x.wav", "x.mp3", "noise", "page.html"])
@pytest.mark.parametrize("content", [b"<html>{}</html>", b"this is no audio\n", b"", b"RIFF\0\0\0\0WAVE"])
def test_what_is_no_list_is_a_recording(write, name, content):
    path = write(name, content, end=b"")
    (row,) = open_inputs([str(path)])
    assert (row.id, row.audio) == (str(path), str(path))


def test_an_error_page_saved_as_a_recording_is_a_recording(write):
    path = write("x.wav", {"error": "not found"})
    assert ids(path) == [str(path)]


@pytest.mark.parametrize(
    "name", ["list.txt", "list", "list.json", "list.ndjson", "list.manifest", "LIST.JSONL"]
)
@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf", b"\r\n  \n"])
def test_manifests_are_known_by_name_or_content(write, name, lead):
    path = write(name, lead + b'{"id": "a", "audio": "a.wav"}')
    assert ids(path) == ["a"]


def test_wav_scp_alone_points_to_its_folder(write):
    path = write("k/wav.scp", "a a.wav")
    with pytest.raises(ManifestError, match=f"give the folder that holds it: {path.parent}"):
        open_inputs([str(path)])


def test_no_input_at_all():
    with pytest.raises(ManifestError, match="no input given"):
        open_inputs([])


def test_relative_paths(write, tmp_path):
    path = write(
        "m/list.jsonl",
        *({"id": n, "audio": n} for n in ("here.wav", "root.wav", "both.wav", "none.wav", "/abs.wav")),
    )
    for name in ("m/here.wav", "m/both.wav", "root/both.wav", "root/root.wav"):
        write(name)
    root = tmp_path / "root"
    found = [row.audio for row in open_inputs([str(path)], InputOptions(audio_root=str(root)))]
    here = f"{tmp_path}/m"
    assert found == [
        f"{here}/here.wav",
        f"{root}/root.wav",
        f"{here}/both.wav",
        f"{here}/none.wav",
        "/abs.wav",
    ]
    assert [row.audio for row in open_inputs([str(path)])][1] == f"{here}/root.wav"


def test_relative_paths_of_a_manifest_in_the_current_folder(write, tmp_path, monkeypatch):
    write("list.jsonl", {"id": "a", "audio": "w/a.wav"})
    monkeypatch.chdir(tmp_path)
    (row,) = open_inputs(["list.jsonl"])
    assert row.audio == "w/a.wav"


def test_audio_root_must_be_a_folder(tmp_path):
    with pytest.raises(OptionsError, match="audio root"):
        InputOptions(audio_root=str(tmp_path / "gone"))


def test_file_names_that_are_not_utf8(tmp_path):
    raw = os.fsencode(tmp_path) + b"/caf\xe9.wav"
    Path(os.fsdecode(raw)).touch()
    inputs = open_inputs([str(tmp_path)])
    inputs.check_ids()
    (row,) = inputs
    assert row.id == f"{tmp_path}/caf\\xe9.wav"
    assert os.fsencode(row.audio) == raw
    row.row["audio"].encode()
