# Results that do not arrive are a failure.
[ -c /dev/full ] || exit 0
status=0
gnnstream help >/dev/full 2>error || status=$?
[ $status = 1 ] || die "exit status $status"
grep -q 'cannot write to the standard output: No space left' error || die "$(<error)"
