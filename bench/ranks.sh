#!/usr/bin/env bash
# ranks.sh STORE [RANKS...] - epochs of 1, 2, 4 ranks (or RANKS), each of half a processor (a quota of a cpu cgroup of
# version 1), of gcn, sage and gat: seconds, how much faster than one rank, megabytes sent, and the most memory of a
# rank.
#
# Where other programs run on the machine, ranks do not get their halves.
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
    for g in "${groups[@]}"; do rmdir "$cgroup/cpu/$g" 2>"$work/end" || true; done
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work
for r in {0..15}; do
    groups+=("gs_ranks.$$.$r")
    mkdir -p "$cgroup/cpu/gs_ranks.$$.$r"
    echo 100000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_period_us"
    echo 50000 >"$cgroup/cpu/gs_ranks.$$.$r/cpu.cfs_quota_us"
done
cat >"$work/one" <<END
r=\${PMI_RANK:-\${OMPI_COMM_WORLD_RANK:-0}}
echo \$\$ >$cgroup/cpu/gs_ranks.$$.\$r/cgroup.procs
exec "\$@"
END

# run RANKS MODEL: writes $work/metrics.
run()
{
    local launcher=()
    [ "$1" -eq 1 ] || launcher=(mpirun -n "$1")
    rm -f "$work/metrics"
    "${launcher[@]}" bash "$work/one" "$GNNSTREAM" train "$store" --model "$2" --epochs 13 --threads 1 \
        "${options[@]}" --metrics "$work/metrics" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
}
column() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$work/metrics" | tail -n 8; }

echo "load $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) processors; train ${options[*]}"
echo "model  ranks  epoch s  faster  sent MB  memory of a rank MB"
for model in gcn sage gat; do
    one_s=''
    for n in "${counts[@]}"; do
        run "$n" $model
        seconds=$(column seconds | sort -g | sed -n 4p)
        sent=$(column sent_bytes | tail -n 1) memory=$(column peak_host_bytes | tail -n 1)
        : "${one_s:=$seconds}"
        awk -v m=$model -v n="$n" -v s="$seconds" -v s1="$one_s" -v b="${sent:-0}" -v p="$memory" \
            'BEGIN { printf "%-6s %5d %8.3f %7.2f %8.1f %12.0f\n", m, n, s, s1 / s, b / 1e6, p / 1e6 }'
    done
done
