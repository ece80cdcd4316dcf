from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from oasr.errors import OptionsError, OutputError
from oasr.output.names import hashed_name
from oasr.output.rows import failure_row, result_row
from oasr.output.run_folder import RunFolder
from oasr.output.writers import WRITERS
from oasr.types import RequestOutput

IDS = ["a", "B", "b", "x/y", "é\n", "fails", "long" * 100, "z"]


def make(index: int, part: int = 0) -> tuple[tuple[int, int], str, dict, RequestOutput]:
    """One row of a small list: position, id, row and output; number 5 is a failure."""
    utterance_id = IDS[index] + (f"-ch{part}" if part else "")
    own = {"id": utterance_id, "audio": f"{index}.wav", "text": "réf"}
    text = f"text {index} {part} " * (index + 1)
    output = RequestOutput(utterance_id, text=text, scores=(-index / 3,), segments=((0.0, 1.0, text),))
    if index == 5:
        return (index, part), utterance_id, failure_row(own, utterance_id, "audio", "no\nsamples"), output
    return (index, part), utterance_id, result_row(own, utterance_id, output), output


ALL = [make(index, part) for index in range(len(IDS)) for part in ((0, 1) if index == 1 else (0,))]


def run(path: Path, rows=ALL, *, order_seed: int | None = None, finish: bool = True, **flags) -> list[str]:
    """One run over `rows`, finishing in a random order; returns the ids that it worked on."""
    worked = []
    shuffled = list(rows)
    random.Random(order_seed).shuffle(shuffled)
    with RunFolder.open(path, **flags) as folder:
        for position, utterance_id, row, output in shuffled:
            if utterance_id in folder.done_ids:
                folder.note_done(position, utterance_id)
            else:
                folder.append(position, utterance_id, row, output)
                worked.append(utterance_id)
        if finish:
            folder.finish()
    return worked


def contents(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.iterdir()}


def visible(path: Path) -> set[str]:
    return {p.name for p in path.iterdir() if not p.name.startswith(".")}


def results(path: Path) -> list[dict]:
    return [json.loads(line) for line in (path / "results.jsonl").read_text("utf-8").split("\n")[:-1]]


# Order and completeness ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_rows_end_in_manifest_order_whatever_order_they_finished_in(tmp_path, seed):
    run(tmp_path / "out", order_seed=seed)
    assert results(tmp_path / "out") == [row for _, _, row, _ in ALL]
    assert visible(tmp_path / "out") == {"results.jsonl"}


def test_every_row_is_on_disk_as_soon_as_it_is_appended(tmp_path):
    with RunFolder.open(tmp_path / "out", formats=["txt"]) as folder:
        for count, item in enumerate(reversed(ALL), 1):
            folder.append(*item)
            assert len(results(tmp_path / "out")) == count
            assert results(tmp_path / "out")[-1] == item[2]
            assert len(list((tmp_path / "out").glob("*.txt"))) == count - (count > 2)


def test_a_run_without_finish_keeps_its_rows_as_they_came(tmp_path):
    run(tmp_path / "out", finish=False, order_seed=1)
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert sorted(map(json.dumps, results(tmp_path / "out"))) == sorted(json.dumps(r[2]) for r in ALL)
    assert run(tmp_path / "out", resume=True) == []
    assert (tmp_path / "out" / "results.jsonl").read_bytes() != before
    assert results(tmp_path / "out") == [row for _, _, row, _ in ALL]


def test_an_empty_list_gives_an_empty_results_file(tmp_path):
    run(tmp_path / "out", [])
    assert contents(tmp_path / "out") == {"results.jsonl": b""}


def test_finish_may_be_called_twice_and_append_after_it_is_refused(tmp_path):
    with RunFolder.open(tmp_path / "out") as folder:
        folder.append(*ALL[1])
        folder.append(*ALL[0])
        folder.finish()
        folder.finish()
        assert [row["id"] for row in folder.rows()] == ["a", "B"]
        with pytest.raises(OutputError, match="finished already"):
            folder.append(*ALL[2])


# A kill at any byte --------------------------------------------------------------------------


@pytest.mark.parametrize("finished", [True, False])
def test_a_kill_at_any_byte_and_a_resume_give_the_bytes_of_an_unbroken_run(tmp_path, finished):
    whole = tmp_path / "whole"
    run(whole, order_seed=0, formats=["txt", "json"])
    expected = contents(whole)
    broken = tmp_path / "broken"
    run(broken, order_seed=3, finish=finished, formats=["txt", "json"])
    log = (broken / "results.jsonl").read_bytes()
    for cut in [*random.Random(7).sample(range(len(log)), 30), 0, 1, len(log) - 1, len(log)]:
        (broken / "results.jsonl").write_bytes(log[:cut])
        kept = log[:cut].count(b"\n")
        worked = run(broken, order_seed=cut, resume=True, formats=["txt", "json"])
        assert len(worked) == len(ALL) - kept
        found = contents(broken)
        found.pop(".oasr-files.jsonl")
        assert found["results.jsonl"] == expected["results.jsonl"]
        assert sorted(found.values()) == sorted(v for k, v in expected.items() if k != ".oasr-files.jsonl")


def test_files_that_a_kill_left_half_written_are_cleared_away(tmp_path):
    out = tmp_path / "out"
    run(out, finish=False)
    (out / ".oasr-tmp-999").write_bytes(b'{"id": "a"')
    run(out, resume=True)
    assert visible(out) == {"results.jsonl"} and not (out / ".oasr-tmp-999").exists()


def test_resume_in_a_new_or_empty_folder_is_a_fresh_run(tmp_path):
    assert len(run(tmp_path / "new", resume=True)) == len(ALL)
    (tmp_path / "empty").mkdir()
    assert len(run(tmp_path / "empty", resume=True)) == len(ALL)


def test_a_format_added_on_resume_is_written_for_the_rows_done_before(tmp_path):
    out = tmp_path / "out"
    run(out, ALL[:4])
    assert set(run(out, resume=True, formats=["txt"])) == {item[1] for item in ALL[4:]}
    assert len(list(out.glob("*.txt"))) == len(ALL) - 1
    assert (out / "a.txt").read_text() == "text 0 0\n"


def test_rows_whose_manifest_rows_are_gone_are_kept_at_the_end(tmp_path):
    out = tmp_path / "out"
    run(out, ALL)
    assert run(out, ALL[3:5], resume=True) == []
    assert [row["id"] for row in results(out)] == [item[1] for item in ALL[3:5] + ALL[:3] + ALL[5:]]


@pytest.mark.parametrize(
    "line", ["{broken\n", "[1]\n", '{"audio": "x", "pred_text": ""}\n', '{"id": "q"}\n', "\xff\n"]
)
def test_a_line_that_is_no_result_stops_a_resume_and_names_its_number(tmp_path, line):
    out = tmp_path / "out"
    run(out, ALL[:3])
    log = (out / "results.jsonl").read_bytes().splitlines(keepends=True)
    (out / "results.jsonl").write_bytes(b"".join([*log[:2], line.encode("latin-1"), *log[2:]]))
    before = contents(out)
    with pytest.raises(OutputError, match=r"results\.jsonl:3: expected a result row"):
        RunFolder.open(out, resume=True)
    assert contents(out) == before


def test_two_rows_of_one_id_stop_a_resume(tmp_path):
    out = tmp_path / "out"
    run(out, ALL[:2])
    log = out / "results.jsonl"
    log.write_bytes(log.read_bytes() * 2)
    with pytest.raises(OutputError, match="rows 1 and 3 both have the id 'a'"):
        RunFolder.open(out, resume=True)


def test_blank_lines_do_not_stop_a_resume(tmp_path):
    out = tmp_path / "out"
    run(out, ALL[:3])
    log = out / "results.jsonl"
    log.write_bytes(b"\n" + log.read_bytes().replace(b"\n", b"\n \n"))
    run(out, resume=True)
    assert results_without_blanks(out) == [row for _, _, row, _ in ALL]


def results_without_blanks(path: Path) -> list[dict]:
    lines = (path / "results.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


# Existing folders ----------------------------------------------------------------------------


def test_a_folder_in_use_is_refused_and_both_flags_are_named(tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(OutputError, match=r"not empty; give --resume .* --overwrite "):
        RunFolder.open(tmp_path)
    assert visible(tmp_path) == {"notes.md"}


def test_a_run_that_broke_before_its_first_row_does_not_block_the_next(tmp_path):
    run(tmp_path / "out", [], formats=["txt"])
    assert len(run(tmp_path / "out")) == len(ALL)


def test_overwrite_removes_what_oasr_wrote_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    run(out, formats=["txt", "json"])
    for name in ("notes.md", "z~.txt", "other.json"):
        (out / name).write_text("mine")
    run(out, ALL[:1], overwrite=True, formats=["txt"])
    assert visible(out) == {"results.jsonl", "a.txt", "notes.md", "z~.txt", "other.json"}
    assert [row["id"] for row in results(out)] == ["a"]


def test_overwrite_leaves_a_transcript_that_somebody_else_wrote(tmp_path):
    (tmp_path / "a.txt").write_text("reference")
    run(tmp_path, ALL[:1], overwrite=True, formats=["txt"])
    assert (tmp_path / "a.txt").read_text() == "reference"
    run(tmp_path, ALL[:1], overwrite=True, formats=["txt"])
    assert visible(tmp_path) == {"a.txt", hashed_name("a") + ".txt", "results.jsonl"}


def test_overwrite_refuses_a_results_file_that_oasr_did_not_write(tmp_path):
    (tmp_path / "results.jsonl").write_text('{"score": 3}\n')
    with pytest.raises(OutputError, match="--overwrite replaces only results of oasr"):
        RunFolder.open(tmp_path, overwrite=True)
    assert (tmp_path / "results.jsonl").read_text() == '{"score": 3}\n'


def test_resume_and_overwrite_together_are_refused(tmp_path):
    with pytest.raises(OptionsError, match="--resume and --overwrite"):
        RunFolder.open(tmp_path / "out", resume=True, overwrite=True)


def test_an_unknown_format_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(OptionsError, match="unknown output format 'docx'"):
        RunFolder.open(tmp_path / "out", formats=["docx"])
    assert not (tmp_path / "out").exists()


# Inputs are never replaced -------------------------------------------------------------------


def test_an_output_equal_to_the_manifest_is_refused(tmp_path):
    manifest = tmp_path / "list.jsonl"
    manifest.write_text("{}\n")
    for flags in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(OutputError, match=r"list\.jsonl"):
            RunFolder.open(manifest, protected_paths=[manifest], **flags)
        with pytest.raises(OutputError, match="expected a folder"):
            RunFolder.open(manifest, **flags)
    assert manifest.read_text() == "{}\n"


def test_a_manifest_called_results_in_the_output_folder_is_never_replaced(tmp_path):
    manifest = tmp_path / "results.jsonl"
    manifest.write_text('{"id": "a", "pred_text": "x"}\n')
    link = tmp_path / "link.jsonl"
    link.symlink_to(manifest)
    (tmp_path / "hard.jsonl").hardlink_to(manifest)
    for path in (manifest, link, tmp_path / "hard.jsonl", str(tmp_path / "." / "results.jsonl")):
        for flags in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(OutputError, match="the output would replace"):
                RunFolder.open(tmp_path, protected_paths=[path], **flags)


def test_an_input_folder_is_refused_as_the_output(tmp_path):
    with pytest.raises(OutputError, match="the output would replace"):
        RunFolder.open(tmp_path / "." / "data", protected_paths=[tmp_path / "data"])


# One run at a time ---------------------------------------------------------------------------


def test_a_second_run_is_locked_out_until_the_first_lets_go(tmp_path):
    out = tmp_path / "out"
    with RunFolder.open(out) as folder:
        folder.append(*ALL[1])
        _is_locked(out)
        folder.append(*ALL[0])
        folder.finish()
        _is_locked(out)  # the file in order is another one, and the formats of the list are still to come
    assert [row["id"] for row in results(out)] == ["a", "B"]
    run(out, resume=True)


def _is_locked(out):
    for flags in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(OutputError, match="another oasr run is writing here"):
            RunFolder.open(out, **flags)


# Formats of the whole list -------------------------------------------------------------------


class ListWriter:
    scope = "run"
    suffix = "text"

    def render(self, row, output):
        return "" if "error" in row else f"{row['id']} {row['pred_text'].strip()}\n"


@pytest.fixture
def list_format(monkeypatch):
    monkeypatch.setitem(WRITERS._loaded, "list", ListWriter)


@pytest.mark.usefixtures("list_format")
def test_a_format_of_the_whole_list_is_in_manifest_order_and_covers_a_resumed_run(tmp_path):
    run(tmp_path / "whole", formats=["list"])
    run(tmp_path / "out", ALL[4:], finish=False, formats=["list"])
    assert not (tmp_path / "out" / "text").exists()
    run(tmp_path / "out", resume=True, formats=["list"])
    assert (tmp_path / "out" / "text").read_text() == (tmp_path / "whole" / "text").read_text()
    assert (tmp_path / "out" / "text").read_text().startswith("a text 0 0\nB text 1 0")
    run(tmp_path / "out", ALL[:1], overwrite=True)
    assert visible(tmp_path / "out") == {"results.jsonl"}


@pytest.mark.usefixtures("list_format")
def test_a_format_of_the_whole_list_never_replaces_a_file_of_that_name(tmp_path):
    (tmp_path / "text").write_text("references of a Kaldi folder\n")
    with pytest.raises(OutputError, match="is not oasr's"):
        RunFolder.open(tmp_path, overwrite=True, formats=["list"])
    with pytest.raises(OutputError, match="would replace"):
        RunFolder.open(tmp_path, overwrite=True, formats=["list"], protected_paths=[tmp_path / "text"])
    assert (tmp_path / "text").read_text() == "references of a Kaldi folder\n"


# Limits --------------------------------------------------------------------------------------


def test_nothing_of_a_long_run_stays_in_memory_but_places(tmp_path):
    import tracemalloc

    rows = 1500
    with RunFolder.open(tmp_path / "out") as folder:
        tracemalloc.start()
        for index in range(rows):
            output = RequestOutput(f"id-{index}", text="word " * 200)
            folder.append(
                (rows - index, 0), output.request_id, result_row({}, output.request_id, output), output
            )
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        folder.finish()
    assert grown < rows * 60
    assert (tmp_path / "out" / "results.jsonl").stat().st_size > rows * 1000
    assert results(tmp_path / "out")[0]["id"] == f"id-{rows - 1}"
