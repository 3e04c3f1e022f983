#!/usr/bin/env bash
# ranks.sh STORE|weak [RANKS...] - epochs of 1, 2, 4 ranks (or RANKS), each of half a processor (a quota of a cpu
# cgroup of version 1), of gcn, sage and gat: seconds, how much faster than one rank, megabytes sent, and the most
# memory of a rank. "beside" is what is left of the speed of one rank where as many processes of its run, which have
# nothing to do with each other, run beside it: ranks cannot be faster. Behind them, the seconds of the plan of cpu:N
# with a network of 256 MB/s and 31 us, with a processor for each.
#
# `weak` makes R-MAT graphs of as many edges for each rank, and their shards: each rank has its own alone, and "faster"
# is one rank's epoch over theirs, 1 where the larger graph takes no longer.
#
# Where other programs run on the machine, ranks do not get their halves.
#
#   GNNSTREAM   the program, default build/tools/gnnstream
#   GS_EDGES    of a rank, with `weak`: default 500000, of a tenth as many vertices with 64 features
#   GS_METHOD   of the order of `weak`: default lp; in a random one each rank needs nearly all blocks of all rows
#   GS_PARTS    intervals of a rank, with `weak`: default 4, as `partition --ranks` has them
#   GS_OPTIONS  of train, default "--layers 2 --hidden 64 --no-hoist --host-memory 2G"
set -eu
store=${1:?STORE or weak}
: "${GS_EDGES:=500000}" "${GS_METHOD:=lp}" "${GS_PARTS:=4}"
shift
counts=("${@:-1}")
[ $# -gt 0 ] || counts=(1 2 4)
: "${GNNSTREAM:=build/tools/gnnstream}"
read -r -a options <<<"${GS_OPTIONS---layers 2 --hidden 64 --no-hoist --host-memory 2G}"
cgroup=/sys/fs/cgroup
work=$(mktemp -d)
groups=()
end()
{
    for g in "${groups[@]}"; do rmdir "$cgroup/cpu/$g" 2>"$work/end" || true; done
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work
for r in {0..15}; do
    groups+=("gs_ranks.$$.$r")
    mkdir -p "$cgroup/cpu/gs_ranks.$$.$r"
    echo 10000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_period_us" # shorter than epochs
    echo 5000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_quota_us"
done
cat >"$work/one" <<END
r=\${GS_RANK:-\${PMI_RANK:-\${OMPI_COMM_WORLD_RANK:-0}}}
echo \$\$ >$cgroup/cpu/gs_ranks.$$.\$r/cgroup.procs
exec "\$@"
END

# stores_of RANKS: sets $whole, and $given to what ranks are given.
stores_of()
{
    whole=$store given=$store
    [ "$store" = weak ] || return 0
    whole=$work/store$1 given=$work/store$1
    if [ ! -d "$whole" ]; then
        "$GNNSTREAM" generate rmat "$work/graph" --vertices $(($1 * GS_EDGES / 10)) --edges $(($1 * GS_EDGES)) \
            --features 64 --classes 8 --force >"$work/out"
        "$GNNSTREAM" partition "$work/graph" "$whole" --parts $((GS_PARTS * $1)) --method "$GS_METHOD" \
            --ranks "$1" >"$work/out"
        [ "$1" -eq 1 ] || "$GNNSTREAM" shard "$whole" "$1" "$work/shards$1" >"$work/out"
    fi
    [ "$1" -eq 1 ] || given=$work/shards$1
}

# predicted RANKS MODEL: seconds of an epoch of the whole store's plan.
predicted()
{
    local network=() each
    if [ "$1" -gt 1 ]; then
        each=$(printf ', {"devices": 1}%.0s' $(seq "$1"))
        printf '{"switches": [%s], "network": {"bps": 256e6, "seconds": 31e-6, "shards": %s}}' \
            "${each:2}" "$([ "$store" = weak ] && echo true || echo false)" >"$work/network"
        network=(--topology "$work/network")
    fi
    "$GNNSTREAM" plan "$whole" --model "$2" --device cpu:"$1" --threads "$1" "${network[@]}" "${options[@]}" --json |
        sed 's/{"name"/\n&/g' | sed -n 's/^{"name":"train".*[{,]"seconds":\([^,}]*\).*/\1/p' | head -n 1
}

# run STORE MODEL METRICS [LAUNCHER...]: writes METRICS.
run()
{
    rm -f "$3"
    "${@:4}" bash "$work/one" "$GNNSTREAM" train "$1" --model "$2" --epochs 45 --threads 1 \
        "${options[@]}" --metrics "$3" >"$3.out" 2>"$3.err" || { cat "$3.err" >&2; exit 1; }
}
# column NAME METRICS. The mean: a median would leave out the epochs in which the quota was used up.
column() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$2" | tail -n 40; }
mean() { awk '{ sum += $1 } END { print sum / NR }'; }

# beside PROCESSES MODEL STORE: the mean epoch of as many runs of one process.
beside()
{
    local r each=()
    for ((r = 0; r < $1; r++)); do
        GS_RANK=$r run "$3" "$2" "$work/beside$r" &
        each+=($!)
    done
    wait "${each[@]}"
    for ((r = 0; r < $1; r++)); do column seconds "$work/beside$r"; done | mean
}

echo "load $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) processors; train ${options[*]}"
echo "model  ranks  epoch s  faster  beside  sent MB  memory of a rank MB  planned s"
for model in gcn sage gat; do
    one='' one_s=''
    for n in "${counts[@]}"; do
        stores_of "$n"
        launcher=() beside_s=0
        [ "$n" -eq 1 ] && one=$given || launcher=(mpirun -n "$n")
        run "$given" $model "$work/metrics" "${launcher[@]}"
        seconds=$(column seconds "$work/metrics" | mean)
        sent=$(column sent_bytes "$work/metrics" | tail -n 1)
        memory=$(column peak_host_bytes "$work/metrics" | tail -n 1)
        : "${one_s:=$seconds}"
        [ "$n" -eq 1 ] || [ -z "$one" ] || beside_s=$(beside "$n" $model "$one")
        awk -v m=$model -v n="$n" -v s="$seconds" -v s1="$one_s" -v a="$beside_s" -v b="${sent:-0}" -v p="$memory" \
            -v t="$(predicted "$n" $model)" 'BEGIN {
                beside = a > 0 ? sprintf("%.2f", s1 / a) : "-"
                printf "%-6s %5d %8.3f %7.2f %7s %8.1f %12.0f %18.3f\n", m, n, s, s1 / s, beside, b / 1e6, p / 1e6, t
            }'
    done
done
