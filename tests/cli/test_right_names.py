"""The real command, trained weights: every row ends once as itself, in every file, through shards and kills.

`tests/engine/test_right_names.py` says the same of the engine alone. OASR_EXAMPLES=200 tries more, at random.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.spoken_rows import WINDOW_S, Sounds, SpokenRow, spoken_lists, write_inputs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("OASR_EXAMPLES", "0"))
MODEL = Path(__file__).parents[1] / "checkpoints" / "digits-conformer"
COMMAND = [
    "transcribe",
    "--model",
    str(MODEL),
    "--device",
    "cpu",
    "--max-window",
    str(WINDOW_S),
    "--allow-pipes",
]
FORMATS = ["-f", "txt,srt,ctm"]
SEARCH = settings(
    max_examples=EXAMPLES or 9,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def sounds(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Sounds:
    return Sounds(tmp_path_factory.mktemp("sounds"), repo_root / "manifests" / "digits.jsonl")


def check(out: Path, listed: Sequence[SpokenRow]) -> None:
    """Every row of the list once, in its order, as itself; its files too, and no others."""
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == [row.id for row in listed]
    for known, row in zip(listed, rows, strict=True):
        assert known.is_right(row.get("pred_text"), row.get("error", {}).get("message")), (known, row)
    heard = {row.id: row.sound.text for row in listed if row.sound.text is not None}
    for suffix, read in ((".txt", _of_txt), (".srt", _of_srt)):
        assert {path.stem: read(path) for path in out.glob(f"*{suffix}")} == heard
    assert _of_ctm(out / "results.ctm") == {name: text for name, text in heard.items() if text}


def _of_txt(path: Path) -> str:
    return " ".join(path.read_text("utf-8").split())


def _of_srt(path: Path) -> str:
    cues = [cue.splitlines()[2:] for cue in path.read_text("utf-8").strip().split("\n\n")]
    return " ".join(line for cue in cues for line in cue)


def _of_ctm(path: Path) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        name, _, _, _, word, _ = line.split()
        found.setdefault(name, []).append(word)
    return {name: " ".join(words) for name, words in found.items()}


def code_of(listed: Sequence[SpokenRow]) -> int:
    failed = sum(row.sound.text is None for row in listed)
    return 0 if not failed else 1 if failed == len(listed) else 3


@SEARCH
@given(st.data())
def test_every_row_ends_once_as_itself(oasr, sounds, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run")
    inputs, listed = write_inputs(folder / "in", data.draw(spoken_lists(sounds, most=7), "rows"))
    count = data.draw(st.sampled_from([1, 1, 2, 3]), "shards")
    for number in range(count):
        size, workers = (data.draw(st.sampled_from(some)) for some in ((1, 3, 16), (1, 2, 4)))
        out, part = folder / f"s{number}", listed[number::count]
        args = [*COMMAND, *inputs, "-o", out, *FORMATS, "--batch-size", size, "--workers", workers]
        args += ["--shard", f"{number}/{count}"] if count > 1 else []
        assert oasr(*args).code == code_of(part)
        if data.draw(st.booleans(), "cut"):
            results = out / "results.jsonl"
            size = results.stat().st_size
            os.truncate(results, data.draw(st.integers(0, size), "cut at"))
            assert oasr(*args, "--resume").code == code_of(part)
        check(out, part)
    if count > 1:
        done = oasr("merge", *(folder / f"s{number}" for number in range(count)), "-o", folder / "all")
        assert done.code == code_of(listed), done.err
        check(folder / "all", listed)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds what is written by /proc")
@pytest.mark.parametrize("kill_server", ["--serve-real"], indirect=True)
def test_kills_at_random_points_give_no_row_another_name(oasr, sounds, tmp_path, kill_server):
    draw = random.Random(EXAMPLES)
    every = [*sounds.short[:6], *sounds.long[3:5], *sounds.broken, *sounds.empty]
    rows = [
        SpokenRow(f"row{n}", sound, f"of-row{n}.wav", slow=bool(sound.text) and n % 3 == 1, piped=n % 3 < 2)
        for n, sound in enumerate(draw.sample(every, len(every)))
    ]
    inputs, listed = write_inputs(tmp_path / "in", rows)
    attempts, killed = EXAMPLES or 3, 0
    reach = max(8, 150 // attempts)  # a shard of these rows makes some 60 changes
    for number in range(2):
        out = tmp_path / f"s{number}"
        args = [*COMMAND, *inputs, *FORMATS, "--resume", "-o", str(out), "--shard", f"{number}/2"]
        for _ in range(attempts):
            size, workers = draw.choice("1234"), draw.choice("123")
            speed = ["--batch-size", size, "--workers", workers]
            killed += kill_server([*args, *speed], draw.randint(3, reach), out) == -9
        assert oasr(*args).code == 3
        check(out, listed[number::2])
    assert killed >= attempts
    assert oasr("merge", tmp_path / "s0", tmp_path / "s1", "-o", tmp_path / "all").code == 3
    check(tmp_path / "all", listed)
