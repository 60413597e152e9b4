#!/usr/bin/env bash
# Formatting, static checks and layering. Everything is checked before it fails, so that one run shows all faults.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
bad=0
step() { printf '[lint] %s\n' "$1"; shift; "$@" || bad=1; }

cpp=$(git ls-files 'src/*.h' 'src/*.cc' 'include/*.h' 'tests/fuzz/*.cc' 'tests/consumer/*.cc')
step "clang-format" clang-format --dry-run --Werror $cpp
step "ruff check" python -m ruff check -q python tests tools bench examples
step "ruff format" python -m ruff format -q --check python tests tools bench examples
step "layers" python tools/check_layers.py
if [ -f web/package.json ]; then step "TypeScript" npm --prefix web run --silent check; fi

# clang-tidy on the compile commands of the release build; a small set of checks that find faults, not tastes (.clang-tidy).
if [ -f build/release/compile_commands.json ]; then
  # The analyzer's shallow mode takes a third of the time and inlines small functions only.
  shallow=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=mode=shallow)
  # What it says decides, not its exit code: warnings alone leave that at 0.
  tidy() {
    local said
    said=$(git ls-files 'src/*.cc' | grep -vE '_test\.cc$|_bench\.cc$|^src/bindings/|_(avx2|avx512|neon)\.cc$' |
      xargs -P 2 -n 4 clang-tidy -p build/release --quiet "${shallow[@]}" 2>/dev/null | grep -E 'warning:|error:')
    [ -z "$said" ] || { printf '%s\n' "$said"; return 1; }
  }
  step "clang-tidy" tidy
fi
exit $bad
