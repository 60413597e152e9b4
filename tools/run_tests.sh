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

# PRESET [option of cmake] [targets]
configure_build() { cmake --preset "$1" ${2:-} >"build/$1.log" 2>&1 && cmake --build --preset "$1" ${3:+--target $3} >>"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; return 1; }; }
# By the name of the compiler that the wheel was built with, which is Python's: ccache then has most of the objects already.
wheel_compiler() { sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/wheel-*/CMakeCache.txt 2>/dev/null | head -n 1; }
unit() { CXX=${CXX:-$(wheel_compiler)} configure_build release -DMSPROBE_WEB=OFF && ctest --preset release -j 2; }
asan() { configure_build asan && ctest --preset asan -j 2; }
threaded="base_test tensor_test dump_test capture_test compare_test graph_test view_test serve_test"
tsan() { configure_build tsan "" "$threaded" && ctest --preset tsan -j 2 -R 'Parallel|Stats|Recorder|Server|Ordered|Thread|TensorFiles'; }
web() { npm --prefix web test --silent; }
demo() { python examples/quickstart/demo.py --out out/demo --no-serve; }

part "unit tests" unit
part "lint" tools/lint.sh
part "demo" demo
part "Python and golden tests" python -m pytest tests/python tests/golden -q -n 2 --dist loadfile
part "dumps against the earlier tool's" python -m pytest tests/conformance -q
part "planted bugs" python -m pytest tests/sabotage -q
part "page unit tests" web
part "page in the browser" node --test tests/e2e/*.test.mjs
part "unit tests under ASan and UBSan" asan
part "threaded unit tests under TSan" tsan
part "fuzz" tools/fuzz.sh 5

if [ ${#failed[@]} -gt 0 ]; then printf '\nfailed parts: %s\n' "${failed[*]}"; fi
printf '\nparts: %d passed, %d failed\n' "$passed" "${#failed[@]}"
[ ${#failed[@]} -eq 0 ]
