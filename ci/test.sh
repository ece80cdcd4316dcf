#!/usr/bin/env bash
# Everything that CI judges on a CPU: static checks, the demo against its recorded text, the pinned error
# rates of tiny.en and of the digits, the tests. Runs all parts even when an earlier one fails; arguments go to pytest.
set -u
cd "$(dirname "$0")/.." || exit 1

failed=()
# Beside the demo and the gate: the checks keep one processor busy, for a minute and a half.
checked=$(mktemp)
ci/check.sh >"$checked" 2>&1 &
checks=$!
trap 'kill "$checks" 2>/dev/null; rm -f "$checked"' EXIT
printf '== demo\n'
python ci/demo.py || failed+=("demo")
printf '\n== gate\n'
oasr gate ci/wer-reference.json --only 'tiny.en-gate60-*' \
    --only digits-greedy --only digits-beam --only digits-rescoring --strict-assets || failed+=("gate")
wait "$checks" || failed+=("checks")
cat "$checked"
printf '\n== tests\n'
ci/test_cpu.sh "$@" || failed+=("tests")

if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[*]}" >&2
    exit 1
fi
