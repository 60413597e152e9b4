#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each (default 20) on its corpus and the attack files; a crash fails and its input is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
cmake --preset fuzz >build/fuzz.log
cmake --build --preset fuzz 2>&1 | tail -n 2
failed=()
for target in build/fuzz/tests/fuzz/*_fuzz; do
  name=$(basename "$target")
  corpus=$(sed -n "s/^msprobe_fuzz($name [a-z]* \([a-z]*\))$/\1/p" tests/fuzz/CMakeLists.txt)
  [ -d "tests/fuzz/corpus/${corpus:-none}" ] || { echo "[fuzz] $name has no corpus below tests/fuzz/corpus" >&2; exit 1; }
  mkdir -p "build/corpus/$name" "build/crashes"
  echo "[fuzz] $name for $seconds s"
  "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="build/crashes/$name-" "build/corpus/$name" "tests/fuzz/corpus/$corpus" tests/attacks || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "[fuzz] crashed: ${failed[*]} (inputs in build/crashes)" >&2; exit 1; }
echo "[fuzz] no crash"
