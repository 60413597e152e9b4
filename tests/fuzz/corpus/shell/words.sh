A=(--x 1 # one
 "$B" ${C:-4} $((2*3)) $(pwd) `x`)
A+=(--y)
f() { python3 a --n "${A[@]}"; }
if [ $N -gt 2 ]; then f; elif [[ -z $N ]]; then :; else echo; fi
case $N in 1|2) X=1 ;; *) X=2 ;; esac
for i in 1 2; do f; done
cat <<EOF
x
EOF
eval "python3 -m b $X"
