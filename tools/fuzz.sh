#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each (default 20) on its corpus and the attack files; a crash fails and its input is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
cmake --preset fuzz >build/fuzz.log
cmake --build --preset fuzz 2>&1 | tail -n 2
for target in build/fuzz/tests/fuzz/*_fuzz; do
  name=$(basename "$target")
  seeds="tests/fuzz/corpus/$name"
  mkdir -p "build/corpus/$name" "build/crashes"
  echo "[fuzz] $name for $seconds s"
  "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="build/crashes/$name-" "build/corpus/$name" $([ -d "$seeds" ] && echo "$seeds") tests/attacks
done
echo "[fuzz] no crash"
