"""Run the README's demo and compare its transcripts with the recorded ones.

    python ci/demo.py            compare with tests/golden/demo.txt; exit 1 on a difference
    python ci/demo.py --record   write tests/golden/demo.txt anew

The comparison uses float32 on the CPU, whose texts do not depend on the processor. The README's own
command line is run too, with the compute type that this machine chooses: it must give a text a row.
"""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "golden" / "demo.txt"
COMMAND = ["oasr", "transcribe", "manifests/demo.jsonl"]
EXACT = ["--device", "cpu", "--dtype", "float32"]


class DemoError(Exception):
    """The demo did not do what the README says."""


def transcribe(arguments: list[str]) -> list[str]:
    """`id<TAB>text` of every row that the demo command prints, in manifest order."""
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    shown = " ".join(command)
    if done.returncode != 0:
        raise DemoError(f"`{shown}` exited with {done.returncode}, expected 0:\n{done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    manifest = (ROOT / COMMAND[-1]).read_text(encoding="utf-8").splitlines()
    expected, found = [json.loads(line)["id"] for line in manifest], [row.get("id") for row in rows]
    if found != expected:
        raise DemoError(f"`{shown}` printed the rows {found}, expected {expected}")
    bad = [row["id"] for row in rows if not row.get("pred_text")]
    if bad:
        raise DemoError(f"`{shown}` gave no text for {', '.join(bad)}")
    return [f"{row['id']}\t{row['pred_text']}" for row in rows]


def main(arguments: list[str]) -> int:
    """Compare, or record when asked; 0 when the demo holds."""
    try:
        texts = transcribe(EXACT)
        if arguments == ["--record"]:
            RECORDED.parent.mkdir(parents=True, exist_ok=True)
            RECORDED.write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
            print(f"recorded {len(texts)} transcripts in {RECORDED.relative_to(ROOT)}")
            return 0
        recorded = RECORDED.read_text(encoding="utf-8").splitlines()
        if texts != recorded:
            difference = difflib.unified_diff(recorded, texts, "recorded", "printed", lineterm="")
            raise DemoError("the demo's transcripts differ from the recorded ones:\n" + "\n".join(difference))
        transcribe([])
    except (DemoError, OSError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"the demo's {len(texts)} transcripts are the recorded ones")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
