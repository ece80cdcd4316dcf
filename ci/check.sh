#!/usr/bin/env bash
# Static checks: lint, format, import directions, types, sizes. Runs all of them, fails when one fails.
set -u
cd "$(dirname "$0")/.." || exit 1

failed=()
run() {
    printf '\n== %s\n' "$*"
    "$@" || failed+=("$*")
}

run ruff check .
run ruff format --check .
run lint-imports --no-logo ci/layers.ini
run mypy
run python ci/sizes.py

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nfailed:\n' >&2
    printf '  %s\n' "${failed[@]}" >&2
    exit 1
fi
