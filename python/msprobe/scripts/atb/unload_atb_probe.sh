# source unload_atb_probe.sh: takes back what load_atb_probe.sh set.
_msprobe_kept=
_msprobe_rest="$LD_PRELOAD:"
while [ -n "$_msprobe_rest" ]; do
    _msprobe_one=${_msprobe_rest%%[: ]*}
    _msprobe_rest=${_msprobe_rest#*[: ]}
    case "$_msprobe_one" in
        '' | libatb_probe_abi[01].so | */libatb_probe_abi[01].so) ;;
        *) _msprobe_kept="${_msprobe_kept:+$_msprobe_kept:}$_msprobe_one" ;;
    esac
done
if [ -n "$_msprobe_kept" ]; then export LD_PRELOAD="$_msprobe_kept"; else unset LD_PRELOAD; fi
unset _msprobe_kept _msprobe_rest _msprobe_one ATB_OUTPUT_DIR ATB_DUMP_CONFIG
