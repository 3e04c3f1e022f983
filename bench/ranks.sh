#!/usr/bin/env bash
# ranks.sh STORE [RANKS...] - epochs of 1, 2, 4 ranks (or RANKS), each of half a processor (a quota of a cpu cgroup of
# version 1), of gcn, sage and gat: seconds, how much faster than one rank, megabytes sent, and the most memory of a
# rank.
#
# Where other programs run on the machine, ranks do not get their halves, so the processor seconds of the rank that used
# most are there, too: those of 13 epochs less those of 5, and their ratio.
#
#   GNNSTREAM   the program, default build/tools/gnnstream
#   GS_OPTIONS  of train, default "--layers 2 --hidden 64 --no-hoist --host-memory 2G"
set -eu
store=${1:?STORE}
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
    for g in "${groups[@]}"; do rmdir "$cgroup/cpu/$g" "$cgroup/cpuacct/$g" 2>"$work/end" || true; done
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work
for r in {0..15}; do
    groups+=("gs_ranks.$$.$r")
    mkdir -p "$cgroup/cpu/gs_ranks.$$.$r" "$cgroup/cpuacct/gs_ranks.$$.$r"
    echo 100000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_period_us"
    echo 50000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_quota_us"
done
cat >"$work/one" <<END
r=\${PMI_RANK:-\${OMPI_COMM_WORLD_RANK:-0}}
echo \$\$ >$cgroup/cpu/gs_ranks.$$.\$r/cgroup.procs
echo \$\$ >$cgroup/cpuacct/gs_ranks.$$.\$r/cgroup.procs
exec "\$@"
END

# run RANKS EPOCHS MODEL: writes $work/metrics; prints processor nanoseconds of the rank that used most.
run()
{
    local launcher=() r before=() most=0 used
    [ "$1" -eq 1 ] || launcher=(mpirun -n "$1")
    for ((r = 0; r < $1; r++)); do before[r]=$(cat "$cgroup/cpuacct/gs_ranks.$$.$r/cpuacct.usage"); done
    rm -f "$work/metrics"
    "${launcher[@]}" bash "$work/one" "$GNNSTREAM" train "$store" --model "$3" --epochs "$2" --threads 1 \
        "${options[@]}" --metrics "$work/metrics" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    for ((r = 0; r < $1; r++)); do
        used=$(($(cat "$cgroup/cpuacct/gs_ranks.$$.$r/cpuacct.usage") - before[r]))
        [ $used -le $most ] || most=$used
    done
    echo $most
}
column() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$work/metrics" | tail -n 8; }

echo "load $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) processors; train ${options[*]}"
echo "model  ranks  epoch s  faster  cpu s of a rank  less by  sent MB  memory of a rank MB"
for model in gcn sage gat; do
    one_s='' one_cpu=''
    for n in "${counts[@]}"; do
        short=$(run "$n" 5 $model)
        long=$(run "$n" 13 $model)
        seconds=$(column seconds | sort -g | sed -n 4p)
        cpu=$(awk -v a="$long" -v b="$short" 'BEGIN { print (a - b) / 8e9 }')
        sent=$(column sent_bytes | tail -n 1) memory=$(column peak_host_bytes | tail -n 1)
        : "${one_s:=$seconds}" "${one_cpu:=$cpu}"
        awk -v m=$model -v n="$n" -v s="$seconds" -v s1="$one_s" -v c="$cpu" -v c1="$one_cpu" -v b="${sent:-0}" \
            -v p="$memory" 'BEGIN { printf "%-6s %5d %8.3f %7.2f %16.3f %8.2f %8.1f %12.0f\n",
                                    m, n, s, s1 / s, c, c1 / c, b / 1e6, p / 1e6 }'
    done
done
