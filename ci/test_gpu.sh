#!/usr/bin/env bash
# The tests that need an NVIDIA GPU. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
exec python -m pytest -m gpu "$@"
