#!/usr/bin/env bash
# All tests that need no GPU. Arguments go to pytest: ci/test_cpu.sh -k manifest
set -eu
cd "$(dirname "$0")/.."
exec python -m pytest -m "not gpu" "$@"
