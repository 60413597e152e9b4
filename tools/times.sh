# Sourced by what runs tests: how many seconds of processors each part took, in one table.
part_times=build/part_times.tsv
mkdir -p build

# took NAME SECONDS USER SYSTEM : a row.
took() { printf '%s\t%s\t%s\n' "$1" "$2" "$(awk -v a="$3" -v b="$4" 'BEGIN { printf "%.0f", a + b }')" >>"$part_times"; }

# timed NAME COMMAND... : runs it and adds its row.
timed() {
  local name=$1 start=$SECONDS code=0; shift
  local TIMEFORMAT='%U %S'
  { time "$@" >&3 2>&4; } 3>&1 4>&2 2>build/timed || code=$?
  took "$name" $((SECONDS - start)) $(tail -n 1 build/timed)
  return $code
}

# table_of_times : all rows, and their sum. What ran beside other parts has no time of its own.
table_of_times() {
  [ -s "$part_times" ] || return 0
  printf '\n%12s %8s  %s\n' 'processors s' 's' 'part'
  awk -F '\t' '{ printf "%12d %8s  %s\n", $3, $2, $1; used += $3; passed += $2 }
    END { printf "%12d %8d  all: %.1f minutes of processors in %.1f minutes\n", used, passed, used / 60, passed / 60 }' "$part_times"
}
