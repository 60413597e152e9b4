#!/usr/bin/env bash
# tools/lint.sh [--recent [N]|--all]: formatting, static checks and layering. Everything is checked before it fails, so that one run shows all faults.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
bad=0
step() { printf '[lint] %s\n' "$1"; shift; "$@" || bad=1; }

cpp=$(git ls-files 'src/*.h' 'src/*.cc' 'include/*.h' 'tests/fuzz/*.cc' 'tests/consumer/*.cc' 'tests/device/*.cc')
step "clang-format" clang-format --dry-run --Werror $cpp
step "ruff check" python -m ruff check -q python tests tools bench examples
step "ruff format" python -m ruff format -q --check python tests tools bench examples
step "layers" python tools/check_layers.py
step "callbacks" python tools/check_callbacks.py
step "sentences" python tools/docs/sentences.py
if [ -f web/package.json ]; then step "TypeScript" npm --prefix web run --silent check; fi

# A small set of checks that find faults, not tastes (.clang-tidy); `--recent` and `--all` are not only for what is being changed.
if [ -f build/release/compile_commands.json ]; then step "clang-tidy" python tools/tidy.py "$@"; fi
exit $bad
