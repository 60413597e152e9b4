#!/usr/bin/env bash
# tools/run_tests.sh [quick|chosen|deep]: the tests of `make test`, which prove that the product works here; those that CI adds
# (`make test-ci`); all that `make test` leaves (`make test-all`). Which is which: tests/tiers.py. In the order in which a fault is
# cheapest to find; any failing part fails the whole, after all parts ran.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
. tools/times.sh
tier=${1:-quick}
case $tier in quick) target=test ;; chosen) target=test-ci ;; deep) target=test-all ;; *) echo "tools/run_tests.sh: no tier $tier" >&2; exit 2 ;; esac
[ "${CI:-}" = true ] || rm -f "$part_times"
mkdir -p build/parts out
# What the tests write lies in memory where there is plenty: they make and remove some 400,000 files and 8 GB, which takes a file
# system on a disk longer than the rest of such a test. A TMPDIR that is set already stays.
in_memory() {
  local free available
  free=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
  available=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo 2>/dev/null)
  [ "${free:-0}" -gt 10000000 ] && [ "${available:-0}" -gt 10000000 ]
}
scratch=
if [ -z "${TMPDIR:-}" ] && in_memory; then
  scratch=$(mktemp -d /dev/shm/testsXXXXXX)
  export TMPDIR=$scratch
fi
failed=()
parts=0
part() {
  local name=$1; shift
  local start=$SECONDS
  parts=$((parts + 1))
  printf '\n===== %s\n' "$name"
  local TIMEFORMAT='%U %S'
  { time "$@" 2>&1 | tee "build/parts/$parts.log" || failed+=("$name"); } 2>build/part.times
  took "$target: $name" $((SECONDS - start)) $(tail -n 1 build/part.times)
  [ -z "$scratch" ] || rm -rf "$scratch"/pytest-of-* # compilers at work have files there, too
  printf -- '----- %s: %d s, %.0f s of processors\n' "$name" $((SECONDS - start)) "$(tail -n 1 build/part.times | awk '{print $1 + $2}')"
}

# beside COMMAND : starts it now, at low priority; what it says is kept. Compiling has no clock to keep, so it takes what
# the tests leave of the cores. joined COMMAND : waits for that and says what it said.
declare -A jobs
beside() {
  set -m # a process group of its own, to end all of it when this is interrupted
  rm -f "build/beside-$1.code"
  (renice -n 15 -p "$BASHPID" >/dev/null 2>&1
    TIMEFORMAT='%U %S'
    { time "$@" >"build/beside-$1.log" 2>&1; echo $? >"build/beside-$1.code"; } 2>"build/beside-$1.times") & jobs[$1]=$!
  set +m
}
ended() { until [ -f "build/beside-$1.code" ] || ! kill -0 "${jobs[$1]}" 2>/dev/null; do sleep 0.5; done; }
joined() { ended "$1"; cat "build/beside-$1.log"; return "$(cat "build/beside-$1.code")"; }
trap 'for job in "${jobs[@]}"; do kill -- -"$job" 2>/dev/null; done; exit 130' INT TERM
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

# PRESET [option of cmake] [targets]
configure_build() { cmake --preset "$1" ${2:-} >"build/$1.log" 2>&1 && cmake --build --preset "$1" ${3:+--target $3} >>"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; return 1; }; }
unit() { configure_build release && ctest --preset release -j 2; }
# What tests/tiers.py names of a kind for this tier, on one line.
of_tier() { python tests/tiers.py "$1" "$tier" | xargs; }
lint() { tools/lint.sh "$@"; }
# All that was changed lately is read before a release; what lands at once is far less.
lint_recent() { ended sanitized; if [ "$tier" = chosen ]; then lint --recent 40; else lint --recent; fi; }
build_asan() { configure_build asan "" "$(of_tier asan)"; }
build_tsan() { configure_build tsan "" "$(of_tier tsan)"; }
sanitized() { build_asan; build_tsan; }
# Of a fuzz target the test is its replay of the corpus and the attack files.
tests_like() { [ -n "$1" ] && printf '^(%s)(_|$)' "${1// /|}" || echo .; }
asan() { ended sanitized; build_asan && ctest --preset asan -j 2 -R "$(tests_like "$(of_tier asan)")"; }
tsan() { build_tsan && ctest --preset tsan -j 2 -R "$(tests_like "$(of_tier tsan)")"; }
fuzz() { tools/fuzz.sh "$1" $(of_tier fuzzers); }
web() { npm --prefix web test --silent; }
demo() { python examples/quickstart/demo.py --out out/demo --no-serve; }
# Two at a time; a file that took long begins early, and what is left goes to the process that has nothing to do.
python_tests() { python -m pytest -q -n 2 --dist worksteal "$@"; }
# As well, but a file stays whole: its dumps are recorded once for all of its tests.
by_file() { python -m pytest -q -n 2 --dist loadfile "$@"; }
in_turn() { python -m pytest -q "$@"; }
# Half of what a file takes it waits for the browser.
browser() { node --test --test-concurrency=2 "$@"; }
# Folders of tests that have no part of their own.
apart="conformance mindspore sabotage frameworks doctor"
plain_folders() { find tests -mindepth 2 -maxdepth 2 -name 'test_*.py' -printf '%h\n' | sort -u | grep -vE "^tests/(${apart// /|})\$"; }

quick() {
  part "unit tests" unit
  beside lint
  part "demo" demo
  part "Python and golden tests" python_tests $(plain_folders) -m "not deep"
  part "planted bugs" by_file tests/sabotage tests/frameworks tests/doctor -m "not deep"
  part "page unit tests" web
  part "page in the browser" browser $(of_tier pages)
  part "lint" joined lint
}
# What `make test` leaves: `chosen` of it or all.
rest() {
  beside sanitized
  beside lint_recent
  [ "$tier" = chosen ] && [ -d out/demo/graph ] || part "demo" demo
  part "Python and golden tests" python_tests $(plain_folders) -m "$tier"
  part "dumps against mindstudio-probe's" in_turn tests/conformance -m "$tier"
  part "MindSpore" by_file tests/mindspore -m "$tier"
  part "planted bugs" by_file tests/sabotage tests/frameworks tests/doctor -m "$tier"
  part "page in the browser" browser $(of_tier pages)
  part "unit tests and readers under ASan and UBSan" asan
  part "threaded unit tests under TSan" tsan
  part "fuzz" fuzz $([ "$tier" = chosen ] && echo 2 || echo 5)
  part "lint" joined lint_recent
}

# What the parts say of themselves: `counts LOG...` prints how many tests passed, failed and were left for the other tier.
counts() {
  sed 's/\x1b\[[0-9;]*m//g' "$@" | awk '
    /^=*.*(passed|failed|error).* in [0-9.]+s/ {
      for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^(failed|errors?)[,]?$/) failed += $(i - 1)
        if ($i ~ /^deselected/) left += $(i - 1)
      }
    }
    /tests passed, [0-9]+ tests failed out of/ { passed += $NF - $4; failed += $4 }
    /^(#|ℹ) pass [0-9]/ { passed += $3 }
    /^(#|ℹ) fail [0-9]/ { failed += $3 }
    /^ *Tests .*\([0-9]+\)$/ { for (i = 2; i <= NF; i++) { if ($i == "passed") passed += $(i - 1); if ($i == "failed") failed += $(i - 1) } }
    END { print passed + 0, failed + 0, left + 0 }'
}
rm -f build/parts/* build/beside-*.times
if [ "$tier" = quick ]; then quick; else rest; fi
for job in "${!jobs[@]}"; do took "$target: beside the others: $job" "" $(tail -n 1 "build/beside-$job.times"); done
read -r passed failures left < <(counts build/parts/*.log)
# A part that failed without saying which test did counts as one.
[ ${#failed[@]} -le "$failures" ] || failures=${#failed[@]}
[ "${CI:-}" = true ] || table_of_times
echo
if [ ${#failed[@]} -gt 0 ]; then printf 'failed parts:'; printf ' %s;' "${failed[@]}"; echo; fi
if [ ${#failed[@]} -eq 0 ]; then
  case $tier in
    quick) printf "make test: tier 1 passed (%d tests); 'make test-all' also runs mindstudio-probe, all models and planted bugs, the remaining pages, sanitizers and fuzzing: more than %d tests not run\n" "$passed" $((left + $(python tests/tiers.py left))) ;;
    chosen) printf "make test-ci: passed (%d of the tests of 'make test-all')\n" "$passed" ;;
    deep) printf 'make test-all: passed (%d tests beside those of make test)\n' "$passed" ;;
  esac
fi
printf '%d passed, %d failed\n' "$passed" "$failures"
[ ${#failed[@]} -eq 0 ]
