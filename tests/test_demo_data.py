"""The demo's data: complete, small, credited, and the same in both manifest forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def rows(demo_manifest: Path) -> list[dict]:
    return [json.loads(line) for line in demo_manifest.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> dict[str, str]:
    """A Kaldi table: first column → the rest of the line."""
    pairs = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [key for key, _ in pairs] == sorted(key for key, _ in pairs), f"{path.name} is not sorted"
    return dict(pairs)


def test_every_row_has_its_fields_and_its_audio(rows: list[dict], demo_manifest: Path) -> None:
    import soundfile

    for row in rows:
        assert list(row) == ["id", "audio", "text", "language", "speaker", "duration"]
        info = soundfile.info(demo_manifest.parent / row["audio"])
        assert info.duration == pytest.approx(row["duration"], abs=1e-3)


def test_the_audio_is_small_and_credited(rows: list[dict], demo_manifest: Path) -> None:
    files = sorted((demo_manifest.parent / "audio").iterdir())
    assert [path.name for path in files] == sorted(Path(row["audio"]).name for row in rows)
    assert sum(path.stat().st_size for path in files) <= 4_000_000
    credit = (demo_manifest.parent / "LICENSE-AUDIO.md").read_text(encoding="utf-8")
    assert [path.name for path in files if path.name not in credit] == []


def test_the_kaldi_folder_covers_the_same_audio_and_words(rows: list[dict], kaldi_demo: Path) -> None:
    scp, text = table(kaldi_demo / "wav.scp"), table(kaldi_demo / "text")
    segments, speakers = table(kaldi_demo / "segments"), table(kaldi_demo / "utt2spk")
    assert list(segments) == list(text) == list(speakers)
    by_id = {row["id"]: row for row in rows}
    assert sorted(by_id) == sorted(scp)
    words: dict[str, list[str]] = {}
    for utterance, segment in segments.items():
        recording = segment.split()[0]
        words.setdefault(recording, []).append(text[utterance])
        assert speakers[utterance] == by_id[recording]["speaker"]
        assert utterance.startswith(speakers[utterance])
    assert {key: " ".join(parts) for key, parts in words.items()} == {
        key: row["text"] for key, row in by_id.items()
    }
    assert all((kaldi_demo / path).is_file() for path in scp.values())
