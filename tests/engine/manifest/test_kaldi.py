"""Kaldi data folders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import ManifestError
from oasr.manifest import InputOptions, open_inputs
from oasr.manifest.lines import LineFile
from oasr.manifest.tables import KeyedTable
from oasr.types import RowFailure, Utterance


@pytest.fixture
def folder(write, tmp_path):
    """folder(wav_scp=[...], text=[...]) → the rows of the folder with these tables."""

    def read(*, end: bytes = b"\n", check: bool = True, allow_pipes: bool = False, audio_root=None, **tables):
        for name, lines in tables.items():
            write(f"data/{name.replace('wav_scp', 'wav.scp')}", *lines, end=end)
        inputs = open_inputs([str(tmp_path / "data")], InputOptions(audio_root, allow_pipes))
        if check:
            inputs.check_ids()
        rows = list(inputs)
        assert inputs.count() == len(rows)
        assert [row.id for row in rows] == [name for block in inputs._readers[0].ids() for name in block]
        return rows

    return read


def failed(row, *words: str) -> RowFailure:
    assert isinstance(row, RowFailure), row
    assert row.stage == "manifest"
    for word in words:
        assert word in row.message, row.message
    return row


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_recordings(folder, tmp_path, end):
    rows = folder(
        wav_scp=["u1 one.wav", "u2\t two words.wav", "", "u3   /abs/three.wav  "],
        text=["u1 HELLO  THERE", "u3"],
        utt2spk=["u1 s1", "u3 s1"],
        utt2lang=["u3 de"],
        end=end,
    )
    assert [row.id for row in rows] == ["u1", "u2", "u3"]
    assert [row.audio for row in rows] == [
        f"{tmp_path}/data/one.wav",
        f"{tmp_path}/data/two words.wav",
        "/abs/three.wav",
    ]
    assert [row.text for row in rows] == ["HELLO  THERE", None, ""]
    assert [row.language for row in rows] == [None, None, "de"]
    assert [row.origin for row in rows] == [f"{tmp_path}/data/wav.scp:{n}" for n in (1, 2, 4)]
    assert rows[0].row == {"id": "u1", "audio": "one.wav", "text": "HELLO  THERE", "speaker": "s1"}
    assert rows[1].row == {"id": "u2", "audio": "two words.wav"}
    assert rows[2].row == {
        "id": "u3",
        "audio": "/abs/three.wav",
        "text": "",
        "speaker": "s1",
        "language": "de",
    }


def test_segments(folder, tmp_path):
    rows = folder(
        wav_scp=["r1 1.wav", "r2 2.wav"],
        segments=["b r2 0.5 2.75", "a\tr1  10 -1", "c r1 0 1.5 1", "d r1 0 1.5 B", "e r1 2 -1.0"],
        text=["a A", "b B", "c C"],
    )
    assert [(row.id, row.offset, row.duration, row.channel, row.text) for row in rows] == [
        ("b", 0.5, 2.25, None, "B"),
        ("a", 10.0, None, None, "A"),
        ("c", 0.0, 1.5, 1, "C"),
        ("d", 0.0, 1.5, 1, None),
        ("e", 2.0, None, None, None),
    ]
    assert rows[0].audio == f"{tmp_path}/data/2.wav"
    assert rows[0].origin == f"{tmp_path}/data/segments:1"
    described = {"id": "b", "audio": "2.wav", "recording": "r2", "offset": 0.5, "duration": 2.25, "text": "B"}
    assert rows[0].row == described


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("u r9 0 1", ["wav.scp has no recording r9"]),
        ("u r1 0", ["<recording> <start> <end>", "'r1 0'"]),
        ("u", ["<recording> <start> <end>"]),
        ("u r1 0 1 0 0", ["<recording> <start> <end>"]),
        ("u r1 -1 1", ["start -1"]),
        ("u r1 2 1", ["start 2 and end 1"]),
        ("u r1 2 2", ["start 2 and end 2"]),
        ("u r1 0 0", ["end 0"]),
        ("u r1 0 -2", ["end -2"]),
        ("u r1 nan 1", ["start: expected seconds, found 'nan'"]),
        ("u r1 0 inf", ["end: expected seconds, found 'inf'"]),
        ("u r1 0 1_000", ["end: expected seconds, found '1_000'"]),
        ("u r1 1e305 -1", ["start: expected seconds from 0 to 1e+09, found '1e305'"]),
        ("u r1 0 x", ["end: expected seconds, found 'x'"]),
        ("u r1 0 1 left", ["channel", "'LEFT'"]),
        ("u r1 0 1 -1", ["channel"]),
    ],
)
def test_segments_that_cannot_be_meant(folder, tmp_path, line, words):
    first, bad, last = folder(wav_scp=["r1 1.wav"], segments=["a r1 0 1", line, "z r1 0 1"])
    assert isinstance(first, Utterance)
    assert isinstance(last, Utterance)
    failed(bad, f"{tmp_path}/data/segments:2 (id=u)", *words)
    assert bad.row["id"] == "u"


def test_pipes_need_consent(folder):
    tables = {"wav_scp": ["u1 sox in.wav -t wav - |", "u2 plain.wav", "u3 cat 'a b.wav'|"], "text": ["u1 HI"]}
    piped, plain, other = folder(**tables)
    failed(piped, "--allow-pipes", "sox in.wav", "(id=u1)")
    assert piped.row == {"id": "u1", "audio": "sox in.wav -t wav - |", "text": "HI"}
    assert isinstance(plain, Utterance)
    failed(other)
    piped, plain, other = folder(**tables, allow_pipes=True)
    assert (piped.command, piped.audio, piped.text) == ("sox in.wav -t wav -", "", "HI")
    assert (plain.command, other.command) == (None, "cat 'a b.wav'")


def test_channels_of_recordings(folder):
    rows = folder(
        wav_scp=[f"r{i} {i}.wav" for i in range(7)],
        reco2file_and_channel=["r0 f A", "r1 f B", "r2 f 1", "r3 f 2", "r4 f 0", "r6 f b"],
    )
    assert [getattr(row, "channel", "failed") for row in rows] == [0, 1, 0, 1, "failed", None, 1]
    failed(rows[4], "reco2file_and_channel", "A, B", "'f 0'")
    assert rows[1].row["channel"] == 1
    assert "channel" not in rows[5].row


def test_channels_of_segments(folder):
    rows = folder(
        wav_scp=["r1 1.wav", "r2 sph2pipe -c 2 x.sph |"],
        reco2file_and_channel=["r1 f B", "r2 f B"],
        segments=["a r1 0 1", "b r1 0 1 1", "c r1 0 1 0", "d r2 0 1", "e r2 0 1 0"],
        allow_pipes=True,
    )
    assert [getattr(row, "channel", "failed") for row in rows] == [1, 1, "failed", None, 0]
    failed(rows[2], "segments says channel 0", "says 1")


def test_a_recording_id_given_twice_is_refused(folder, tmp_path):
    scp = f"{tmp_path}/data/wav.scp"
    with pytest.raises(ManifestError, match=f"'r1': {scp}:1 and {scp}:3"):
        folder(wav_scp=["r1 1.wav", "r2 2.wav", "r1 3.wav"])
    with pytest.raises(ManifestError, match=f"two recordings have the id 'r1': {scp}:1 and {scp}:3"):
        folder(segments=["a r2 0 1"])
    a, b = folder(segments=["a r2 0 1", "b r1 0 1"], check=False)
    assert isinstance(a, Utterance)
    failed(b, "wav.scp has r1 in lines 1 and 3")


def test_an_utterance_twice_in_a_side_table_fails_its_row(folder):
    a, b = folder(wav_scp=["a a.wav", "b b.wav"], text=["a X", "", "b Y", "a Z"])
    failed(a, "text has a in lines 1 and 4")
    assert b.text == "Y"


def test_lines_without_a_path(folder):
    a, b, c = folder(wav_scp=["a", "b b.wav", b"c c\0.wav"])
    failed(a, "expected the path of a recording after the id")
    assert b.id == "b"
    failed(c, "expected the path")


def test_bytes_that_are_not_utf8(folder, tmp_path):
    a, b, c = folder(wav_scp=[b"\xff a.wav", b"b b\xe9.wav", "c c.wav"], text=[b"c caf\xe9"])
    failed(a, "expected an id in UTF-8", "(id=wav.scp:1)")
    assert a.id == "wav.scp:1"
    assert b.audio == f"{tmp_path}/data/b\udce9.wav", "Linux names are bytes"
    assert b.row["audio"] == "b\\xe9.wav"
    failed(c, "text: expected UTF-8 for c")


def test_blanks_that_are_part_of_an_id_or_a_word(folder):
    (row,) = folder(wav_scp=["u\u00a01 a\u00a0b.wav"], text=["u\u00a01 x\u3000y"])
    assert (row.id, row.text) == ("u\u00a01", "x\u3000y")


def test_byte_order_marks_of_tables(folder):
    (row,) = folder(wav_scp=[b"\xef\xbb\xbfu u.wav"], text=[b"\xef\xbb\xbfu hi"])
    assert (row.id, row.text) == ("u", "hi")


def test_paths_as_kaldi_takes_them(folder, write, tmp_path, monkeypatch):
    for name in ("data/here.wav", "root/root.wav", "cwd/root.wav", "cwd/cwd.wav"):
        write(name)
    monkeypatch.chdir(tmp_path / "cwd")
    rows = folder(
        wav_scp=[f"{name} {name}.wav" for name in ("here", "root", "cwd", "none")],
        audio_root=str(tmp_path / "root"),
    )
    expected = [
        f"{tmp_path}/data/here.wav",
        f"{tmp_path}/root/root.wav",
        "cwd.wav",
        f"{tmp_path}/data/none.wav",
    ]
    assert [row.audio for row in rows] == expected


def test_an_empty_wav_scp(folder):
    with pytest.raises(ManifestError, match=r"no rows in .*data"):
        folder(wav_scp=[])


def test_recordings_in_the_folder_are_not_listed(folder, write):
    write("data/stray.wav")
    assert [row.id for row in folder(wav_scp=["u u.wav"])] == ["u"]


KEY = st.text("ab", min_size=1, max_size=3)


@given(
    st.lists(
        st.tuples(KEY, st.sampled_from(["", " ", " x", "\tx  y "]), st.sampled_from(["\n", "\r\n", "\n\n"]))
    )
)
def test_a_table_finds_what_a_dictionary_would(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("table") / "text"
    path.write_text("".join(key + value + end for key, value, end in lines), newline="")
    table = KeyedTable(LineFile(str(path)))
    expected: dict[str, list[str]] = {}
    for key, value, _ in lines:
        expected.setdefault(key, []).append(value.strip())
    assert table.get(b"zzz") is None
    for key, values in expected.items():
        if len(values) == 1:
            assert table.get_text(key.encode()) == values[0]
        else:
            with pytest.raises(Exception, match=rf"text has {key} in lines \d+ and \d+"):
                table.get(key.encode())
