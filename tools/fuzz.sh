#!/usr/bin/env bash
# tools/fuzz.sh [SECONDS [TARGET...]]: runs fuzz targets (all) for SECONDS each (20) on their corpus and the attack files, as many
# at once as there are cores; a crash fails, its input and what the target said are kept. An input may take 30 s by the clock: the
# slowest attack file (yaml_laughs) takes 6 s of a processor with sanitizers, and other programs may have the cores.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
targets=("${@:2}")
# A short run takes the objects of the sanitizer tests; a long one is worth a build that runs faster.
preset=asan
[ "$seconds" -le 30 ] || preset=fuzz
mkdir -p build/crashes
cmake --preset "$preset" >"build/$preset.log"
cmake --build --preset "$preset" --target "${targets[@]:-fuzzers}" 2>&1 | tail -n 2
fuzz_one() {
  local name; name=$(basename "$2")
  local corpus; corpus=$(sed -n "s/^msprobe_fuzz($name [a-z/_]* \([a-z_]*\))$/\1/p" tests/fuzz/CMakeLists.txt)
  [ -d "tests/fuzz/corpus/${corpus:-none}" ] || { echo "[fuzz] $name has no corpus below tests/fuzz/corpus" >&2; return 1; }
  mkdir -p "build/corpus/$name"
  if "$2" -max_total_time="$1" -rss_limit_mb=2048 -timeout=30 -print_final_stats=1 -print_funcs=0 -verbosity=1 \
    -artifact_prefix="build/crashes/$name-" "build/corpus/$name" "tests/fuzz/corpus/$corpus" tests/attacks >"build/crashes/$name.log" 2>&1; then
    echo "[fuzz] $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/crashes/$name.log") inputs in $1 s"
    rm "build/crashes/$name.log"
  else
    tail -n 40 "build/crashes/$name.log"
    echo "[fuzz] $name crashed: inputs and log in build/crashes" >&2
    return 1
  fi
}
export -f fuzz_one
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(basename -a build/"$preset"/tests/fuzz/*_fuzz)
printf '%s\n' "${targets[@]/#/build/$preset/tests/fuzz/}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one "$0" "$1"' "$seconds" {} ||
  { echo "[fuzz] some targets crashed" >&2; exit 1; }
echo "[fuzz] no crash"
