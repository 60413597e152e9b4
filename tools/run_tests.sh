#!/usr/bin/env bash
# Every test, in the order in which a fault is cheapest to find. Any failing part fails the whole, after all parts ran.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p build out
failed=()
passed=0
part() {
  local name=$1; shift
  local start=$SECONDS
  printf '\n===== %s\n' "$name"
  if "$@"; then passed=$((passed + 1)); else failed+=("$name"); fi
  printf -- '----- %s: %d s\n' "$name" $((SECONDS - start))
}

# beside COMMAND... : starts it now, at low priority; what it says is kept. Compiling has no clock to keep, so it takes what
# the tests leave of the cores. joined COMMAND... : waits for that and says what it said.
declare -A jobs
beside() {
  set -m # a process group of its own, to end all of it when this is interrupted
  (renice -n 15 -p "$BASHPID" >/dev/null 2>&1; "$@") >"build/beside-$1.log" 2>&1 & jobs[$1]=$!
  set +m
}
joined() { wait "${jobs[$1]}"; local code=$?; cat "build/beside-$1.log"; return "$code"; }
trap 'for job in "${jobs[@]}"; do kill -- -"$job" 2>/dev/null; done; exit 130' INT TERM

# PRESET [option of cmake] [targets]
configure_build() { cmake --preset "$1" ${2:-} >"build/$1.log" 2>&1 && cmake --build --preset "$1" ${3:+--target $3} >>"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; return 1; }; }
# By the name of the compiler that the wheel was built with, which is Python's: ccache then has most of the objects already.
wheel_compiler() { sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/wheel-*/CMakeCache.txt 2>/dev/null | head -n 1; }
unit() { CXX=${CXX:-$(wheel_compiler)} configure_build release -DMSPROBE_WEB=OFF && ctest --preset release -j 2; }
threaded="base tensor dump capture compare graph view serve"
lint() { tools/lint.sh; }
build_asan() { configure_build asan; }
build_tsan() { configure_build tsan "" "$(printf '%s_test ' $threaded)"; }
sanitized() { build_asan; build_tsan; }
asan() { wait "${jobs[sanitized]}"; build_asan && ctest --preset asan -j 2; }
tsan() { build_tsan && ctest --preset tsan -j 2 -R "^(${threaded// /|})_test"; }
web() { npm --prefix web test --silent; }
demo() { python examples/quickstart/demo.py --out out/demo --no-serve; }

part "unit tests" unit
beside lint
beside sanitized
part "demo" demo
part "Python and golden tests" python -m pytest tests/python tests/golden -q -n 2 --dist loadfile
part "dumps against the earlier tool's" python -m pytest tests/conformance -q
part "planted bugs" python -m pytest tests/sabotage -q
part "page unit tests" web
part "page in the browser" node --test tests/e2e/*.test.mjs
part "lint" joined lint
part "unit tests under ASan and UBSan" asan
part "threaded unit tests under TSan" tsan
part "fuzz" tools/fuzz.sh 5

if [ ${#failed[@]} -gt 0 ]; then printf '\nfailed parts: %s\n' "${failed[*]}"; fi
printf '\nparts: %d passed, %d failed\n' "$passed" "${#failed[@]}"
[ ${#failed[@]} -eq 0 ]
