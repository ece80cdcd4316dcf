"""`oasr score`: figures equal jiwer's, every row counts, and what is doubtful is said."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import jiwer
import pytest

from oasr_cli import console
from oasr_cli.score_view import diff_lines

ROWS = [
    {"id": "a", "text": "the quick brown fox", "pred_text": "the quack brown fox", "speaker": "x"},
    {"id": "b", "text": "jumps over", "pred_text": "jumps all over", "speaker": "y"},
    {"id": "c", "text": "the lazy dog", "pred_text": "the dog", "speaker": "x"},
    {"id": "d", "text": "and sleeps", "pred_text": "and sleeps", "speaker": "y"},
]


@pytest.fixture
def write(tmp_path: Path):
    def save(name: str, rows: list[dict]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return save


@pytest.fixture
def hyp(write) -> Path:
    return write("results.jsonl", ROWS)


def failed(row: dict) -> dict:
    rest = {key: value for key, value in row.items() if key != "pred_text"}
    return {**rest, "error": {"stage": "audio", "message": "no such file"}}


def totals(done) -> dict:
    return json.loads(done.out)["systems"][0]["wer"]


def test_the_figures_are_those_of_jiwer(oasr, hyp):
    found = totals(oasr("score", hyp, "--json"))
    known = jiwer.process_words([row["text"] for row in ROWS], [row["pred_text"] for row in ROWS])
    assert found == {
        "rate": round(100 * known.wer, 4), "substitutions": known.substitutions, "deletions": known.deletions,
        "insertions": known.insertions, "reference_units": 11, "normalizer": "basic", "rows": 4,
        "interval_95": found["interval_95"],
    }  # fmt: skip
    low, high = found["interval_95"]
    assert 0 <= low < found["rate"] < high


def test_characters_are_counted_on_request(oasr, hyp):
    done = oasr("score", hyp, "--json", "--metric", "cer", "--normalizer", "none", "--bootstrap", 0)
    found = json.loads(done.out)["systems"][0]["cer"]
    joined = [[row[key].replace(" ", "") for row in ROWS] for key in ("text", "pred_text")]
    assert found["rate"] == round(100 * jiwer.cer(*joined), 4) and found["interval_95"] is None


def test_order_does_not_matter_and_every_format_scores_alike(oasr, hyp, write, tmp_path):
    wanted = totals(oasr("score", hyp, "--json"))
    (tmp_path / "ref.txt").write_text("".join(f"{row['id']} {row['text']}\n" for row in ROWS))
    (tmp_path / "hyp.txt").write_text("".join(f"{row['id']} {row['pred_text']}\n" for row in reversed(ROWS)))
    (tmp_path / "hyp.trn").write_text("".join(f"{row['pred_text']} ({row['id']})\n" for row in ROWS))
    manifest = write("list.jsonl", [{k: v for k, v in row.items() if k != "pred_text"} for row in ROWS[::-1]])
    for name in ("hyp.txt", "hyp.trn", "results.jsonl"):
        for reference in (tmp_path / "ref.txt", manifest):
            assert totals(oasr("score", tmp_path / name, "--ref", reference, "--json")) == wanted
    assert totals(oasr("score", tmp_path, "--json")) == wanted


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS[:3], "missing: d"),
        ([*ROWS, {**ROWS[0], "id": "e"}], "too many: e"),
        ([*ROWS, ROWS[0]], "two rows have the id 'a'"),
        ([], "no rows in"),
        ([{"id": "z", "pred_text": "x"}], "no id in common"),
    ],
)
def test_missing_and_extra_ids_end_the_command(oasr, hyp, write, rows, said):
    done = oasr("score", write("other.jsonl", rows), "--ref", hyp)
    assert done.code == 2 and said in done.err and done.out == ""


def test_failed_rows_count_as_deletions_and_the_output_says_so(oasr, write):
    path = write("r.jsonl", [failed(ROWS[0]), *ROWS[1:]])
    found = json.loads(oasr("score", path, "--json").out)["systems"][0]
    assert (found["wer"]["deletions"], found["wer"]["rows"], found["failed"]) == (5, 4, ["a"])
    text = oasr("score", path).out
    assert "1 row that failed count as all deletions (WER without them: 28.57 %): a" in text
    assert "100.00 % (S 0, D 4, I 0, 4 units; failed, counts as all deletions)" in text
    left = json.loads(oasr("score", path, "--failed", "leave-out", "--json").out)
    assert left["systems"][0]["wer"]["rate"] == 28.5714 and left["left_out"] == ["a"]
    assert "left out, 1 row that failed: a" in oasr("score", path, "--failed", "leave-out").out
    done = oasr("score", write("all.jsonl", [failed(row) for row in ROWS]), "--failed", "leave-out")
    assert done.code == 2 and "nothing is left to score" in done.err


def test_groups_add_up_to_the_whole(oasr, hyp):
    done = oasr("score", hyp, "--by", "speaker,id", "--json")
    groups = json.loads(done.out)["systems"][0]["by"]
    assert [(g["value"], g["wer"]["rate"], g["wer"]["rows"]) for g in groups["speaker"]] == [
        ("x", 28.5714, 2), ("y", 25.0, 2),
    ]  # fmt: skip
    assert len(groups["id"]) == 4
    table = oasr("score", hyp, "--by", "speaker", "--worst", 0).out.split("\n\n")[1].splitlines()
    assert table == [
        "speaker\tmetric\trate %\tS\tD\tI\tunits\trows",
        "x\tWER\t28.57\t1\t1\t0\t7\t2",
        "y\tWER\t25.00\t0\t0\t1\t4\t2",
    ]
    assert oasr("score", hyp, "--by", "spk").code == 2


def test_the_worst_rows_are_shown_aligned(oasr, hyp):
    text = oasr("score", hyp, "--worst", 2).out
    assert text.split("alignments of the normalised texts\n\n")[1] == (
        "b  50.00 % (S 0, D 0, I 1, 2 units)\n"
        "  REF  jumps *** over\n"
        "  HYP  jumps all over\n"
        "             I\n"
        "\n"
        "c  33.33 % (S 0, D 1, I 0, 3 units)\n"
        "  REF  the lazy dog\n"
        "  HYP  the **** dog\n"
        "           D\n"
    )


def test_two_files_are_compared_on_the_same_draws(oasr, hyp, write):
    better = write("better.jsonl", [{**row, "pred_text": row["text"]} for row in ROWS])
    found = json.loads(oasr("score", hyp, better, "--json", "--seed", 7).out)
    assert [system["wer"]["rate"] for system in found["systems"]] == [27.2727, 0.0]
    comparison = found["comparison"]["wer"]
    assert comparison["difference"] == pytest.approx(-27.272727)
    assert 0.9 < comparison["improved"] <= 1 and comparison["p_value"] < 0.2
    assert found["bootstrap"] == {"draws": 10000, "seed": 7}
    text = oasr("score", hyp, better, "--by", "speaker").out
    assert "2 against 1: -27.27 points of WER (95 % interval -" in text
    assert "x\tWER\t28.57\t0.00\t-28.57\t7\t2" in text
    same = json.loads(oasr("score", hyp, hyp, "--json").out)["comparison"]["wer"]
    assert (same["difference"], same["p_value"]) == (0.0, 1.0)


def test_a_shifted_list_is_warned_of(oasr, write):
    rows = [{"id": f"u{i}", "text": f"say {i} and {i + 100}"} for i in range(9)]
    for i, row in enumerate(rows):
        row["pred_text"] = rows[(i + 1) % 9]["text"]
    done = oasr("score", write("r.jsonl", rows))
    assert done.code == 0 and "warning: " in done.err and "the reference one row further down" in done.err
    assert len(json.loads(oasr("score", write("r.jsonl", rows), "--json").out)["warnings"]) == 1


def test_empty_references(oasr, write):
    rows = [{"id": "a", "text": "[noise]", "pred_text": "what"}, {"id": "b", "text": "?!", "pred_text": ""}]
    done = oasr("score", write("empty.jsonl", rows))
    assert done.code == 0
    assert "WER\tundefined\t\t0\t0\t1\t0\t2\tbasic" in done.out
    assert "every reference is empty after normalising" in done.err
    done = oasr("score", write("one.jsonl", [*rows, ROWS[3]]))
    assert "2 of 3 references are empty after normalising" in done.err
    assert "WER\t50.00\t" in done.out


def test_languages_are_scored_by_their_own_rules(oasr, write):
    rows = [
        {"id": "zh", "text": "我用ｉＰｈｏｎｅ，好", "pred_text": "我用 iphone 不好", "language": "zh"},
        {"id": "en", "text": "Mr. Colour", "pred_text": "mister color", "language": "en"},
    ]
    found = json.loads(oasr("score", write("r.jsonl", rows), "--json").out)["systems"][0]
    assert (found["cer"]["insertions"], found["cer"]["reference_units"]) == (1, 9)
    assert (found["cer"]["normalizer"], found["wer"]["normalizer"], found["wer"]["rate"]) == (
        "chinese", "english", 0.0,
    )  # fmt: skip
    mixed = oasr("score", write("r.jsonl", rows[:1]), "--metric", "wer", "--worst", 1)
    assert "  REF  我 用 iphone ** 好\n  HYP  我 用 iphone 不 好\n" in mixed.out
    plain = oasr("score", write("r.jsonl", rows), "--language", "de", "--json")
    assert json.loads(plain.out)["systems"][0]["wer"]["rows"] == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--metric", "per"], "metric: expected wer or cer, got 'per'"),
        (["--normalizer", "x"], "unknown text normalizer 'x'; known: basic, chinese, english, none"),
        (["--failed", "x"], "--failed: expected deletions or leave-out, got 'x'"),
        (["--worst", "-1"], "--worst: expected an integer >= 0, got -1"),
        (["--bootstrap", "5"], "--bootstrap: expected 0, or 100 draws or more, got 5"),
        (["x", "y"], "expected one hypothesis file, or two to compare, got 3"),
    ],
)
def test_flags_that_cannot_be_used(oasr, hyp, flags, said):
    done = oasr("score", hyp, *flags)
    assert done.code == 2 and said in done.err


def lines(row, width):
    return ["".join(text for text, _ in line) for line in diff_lines(row, width)]


def test_alignments_fold_to_the_terminal_by_its_own_columns():
    from oasr.scoring.report import RuleChoice, score_samples
    from oasr.scoring.samples import Sample

    sample = Sample("a", "今天天气很好我们出去玩", ("今天天气不好出去玩吧",), "zh")
    (row,) = score_samples([sample], 0, RuleChoice())
    assert lines(row, 27) == [
        "  REF  今天天气很好我们出去",
        "  HYP  今天天气不好****出去",
        "               S   D D     ",
        "  REF  玩**",
        "  HYP  玩吧",
        "         I ",
    ]
    assert len(lines(row, None)) == 3
    styles = {style for line in diff_lines(row, None) for text, style in line if text.strip()}
    assert styles == {"dim", "", "yellow", "red", "cyan"}


@pytest.mark.parametrize("terminal", [True, False])
def test_colour_is_for_terminals_alone(hyp, child_env, terminal):
    command = [sys.executable, "-m", "oasr_cli", "score", str(hyp)]
    env = {**child_env, "TERM": "xterm-256color", "COLUMNS": "60"}
    env.pop("NO_COLOR", None)
    if not terminal:
        done = subprocess.run(command, env=env, capture_output=True, check=True)
        assert b"\x1b" not in done.stdout + done.stderr
        return
    controller, screen = pty.openpty()
    with subprocess.Popen(command, env=env, stdout=screen, stderr=screen, stdin=screen) as child:
        os.close(screen)
        shown = b""
        while True:
            try:
                shown += os.read(controller, 4096)
            except OSError:
                break
    assert child.returncode == 0
    assert b"\x1b[33mquick" in shown and b"\x1b[31m" in shown and b"\x1b[36m" in shown


def test_control_characters_never_reach_the_terminal(oasr, write, monkeypatch):
    rows = [{"id": "a\x1b[2J", "text": "x\x1b[31m", "pred_text": "y"}]
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    done = oasr("score", write("r.jsonl", rows), "--normalizer", "none", "--by", "text")
    assert "\x1b[2J" not in done.out and "\x1b[31m" not in done.out and "\\x1b[31m" in done.out
