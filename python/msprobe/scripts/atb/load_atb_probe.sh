# source load_atb_probe.sh [--output=DIR] [--config=FILE]
# Prepares this shell so that programs of ATB started from it dump their tensors. Nothing is set unless everything is there.
_msprobe_here=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
if _msprobe_lines=$("${MSPROBE_PYTHON:-python3}" "$_msprobe_here/atb_probe.py" environment "$@"); then
    eval "$_msprobe_lines"
    _msprobe_code=0
else
    _msprobe_code=1
fi
unset _msprobe_here _msprobe_lines
# Not exit: this runs in the user's shell.
[ "$_msprobe_code" -eq 0 ]
