# Where memory ends, also for a thread, a program ends in one line and clears away what it has begun.
[ -z "${GS_SANITIZED:-}" ] || exit 0 # sanitizers reserve terabytes of addresses
ended=0
for mib in $(seq 50 2 100); do
    status=0
    (ulimit -v $((mib * 1024)) && exec gnnstream generate sbm "graph$mib" --vertices 20000 --edges 300000 --seed 1) \
        >out 2>err || status=$?
    [ $status != 127 ] || continue # libraries did not find room
    [ $status = 0 ] || [ "$status $(wc -l <err)" = '1 1' ] || die "${mib}M: status $status: $(<err)"
    [ $status = 0 ] || ended=$((ended + 1))
    left=$(find . -name '*.unfinished.*' -o -name '*.gnnstream-lock')
    [ -z "$left" ] || die "${mib}M: left behind: $left"
done
[ $ended -gt 0 ] || die 'memory never ended'
