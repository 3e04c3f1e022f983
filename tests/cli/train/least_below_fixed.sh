# Of a --host-memory below what the program itself takes, too, a refusal names budgets that do, and no larger ones than
# it must: it looks for them with the rows and edges left out that a run within them leaves out. Meanwhile it holds no
# more memory than it names.
gnnstream generate sbm graph --vertices 300 --edges 3000 --features 8 --classes 4 --seed 1 >made
parts=20
[ -z "${GS_SANITIZED:-}" ] || parts=12
gnnstream partition graph store --parts $parts --seed 1 >made
train='train store --model gatv2 --layers 2 --hidden 16 --device cpu:3 --threads 2 --epochs 1'

# least WORDS OPTIONS...: in MiB, in $REPLY
least()
{
    local words=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    gnnstream $train "$@" >out 2>err && die "$* is enough"
    REPLY=$(sed -n "s/.*--$words 4.0 KiB is too small.* at least \([0-9]*\)M.*/\1/p" err)
    [ -n "$REPLY" ] || die "$*: $(<err)"
}
least device-memory --device-memory 4K --host-memory 4K
device=$REPLY
least host-memory --device-memory "${device}M" --host-memory 4K
host=$REPLY
# resident OPTIONS...: of a refused run, at the most, in MiB, in $REPLY
resident()
{
    # shellcheck disable=SC2086
    REPLY=$(python3 -c 'import resource, subprocess, sys
assert subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode == 1
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' gnnstream $train "$@")
    [ -n "$REPLY" ] || die "$*: is not refused"
}
if [ -z "${GS_SANITIZED:-}" ]; then
    for ask in '--device-memory 4K --host-memory 4K' "--device-memory ${device}M --host-memory 4K" \
        "--device-memory ${device}M --host-memory $((host - 2))M"; do
        # shellcheck disable=SC2086
        resident $ask
        [ "$REPLY" -le "$host" ] || die "$ask: $REPLY MiB resident, of ${host}M that are named"
        echo "$ask: $REPLY MiB of ${host}M"
    done
fi
# shellcheck disable=SC2086
gnnstream $train --device-memory "${device}M" --host-memory "${host}M" >out 2>err || die "${host}M: $(<err)"
[ -n "${GS_SANITIZED:-}" ] && exit 0 # freed memory stays for a while
[ "$(sed -n 's/.*at most \([0-9]*\).* MiB resident/\1/p' out)" -lt "$host" ] || die "of ${host}M: $(<out)"
# shellcheck disable=SC2086
refused 1 'is too small' gnnstream $train --device-memory "${device}M" --host-memory $((host - 2))M
