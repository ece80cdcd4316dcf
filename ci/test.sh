#!/usr/bin/env bash
# Everything that CI judges on a CPU: static checks, the demo against its recorded text, the pinned error
# rates of tiny.en and of the digits, the tests. Runs all parts even when an earlier one fails; arguments go to pytest.
set -u
cd "$(dirname "$0")/.." || exit 1

failed=()
ci/check.sh || failed+=("checks")
printf '\n== demo\n'
python ci/demo.py || failed+=("demo")
printf '\n== gate\n'
oasr gate ci/wer-reference.json --only 'tiny.en-gate60-*' \
    --only digits-greedy --only digits-beam --only digits-rescoring --strict-assets || failed+=("gate")
printf '\n== tests\n'
ci/test_cpu.sh "$@" || failed+=("tests")

if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[*]}" >&2
    exit 1
fi
