#!/usr/bin/env bash
# ranks_network.sh STORE [RANKS] - bytes that RANKS (2) ranks send in an epoch of gcn, sage and gat: as planned, as
# `--metrics` has them, and as the kernel counts them on Ethernet devices, with all headers. Each rank is in a network
# namespace of its own, which has one device with 1 Gbit/s (GS_RATE); a bridge joins them. For root, iproute2 and MPICH
# over UCX. An epoch's bytes are the fortieth part of what 42 epochs move beyond what 2 do: ranks exchange
# what they find in the edges when a run opens, and that may differ a little.
#
#   GNNSTREAM   the program, default build/tools/gnnstream
#   GS_RATE     of each device, as tc has it, default 1gbit
#   GS_OPTIONS  of train, default "--layers 2 --hidden 64 --no-hoist --no-prune --host-memory 1G"
set -eu
store=${1:?STORE}
ranks=${2:-2}
: "${GNNSTREAM:=build/tools/gnnstream}" "${GS_RATE:=1gbit}"
read -r -a options <<<"${GS_OPTIONS---layers 2 --hidden 64 --no-hoist --no-prune --host-memory 1G}"
work=$(mktemp -d)
# shellcheck source=bench/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
end()
{
    end_namespaces
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp UCX_NET_DEVICES=all

make_namespaces "$ranks" "$GS_RATE"
each=$(printf ', {"devices": 1}%.0s' $(seq "$ranks"))
# about what so much and TCP are found to be; said to both, as a plan for another network moves other bytes
bps=$(awk -v r="$GS_RATE" 'BEGIN {
    unit = tolower(r)
    gsub(/[0-9.]/, "", unit)
    printf "%.3g", 0.119 * r * (unit == "gbit" ? 1e9 : unit == "mbit" ? 1e6 : unit == "kbit" ? 1e3 : 1)
}')
printf '{"switches": [%s], "network": {"bps": %s, "seconds": 1e-4}}' "${each:2}" "$bps" >"$work/network"

# run MODEL EPOCHS: prints what the kernel counted.
run()
{
    local before
    before=$(sent_by_all)
    timeout 300 mpirun -n "$ranks" bash "$work/one" "$GNNSTREAM" train "$store" --model "$1" --epochs "$2" --threads 1 \
        --topology "$work/network" "${options[@]}" --metrics "$work/metrics" \
        >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    echo $(($(sent_by_all) - before))
}
echo "load $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) processors; $ranks ranks, $GS_RATE; train ${options[*]}"
echo "model  planned MB  sent MB  counted MB  over sent  epoch s"
run gcn 2 >"$work/first" # what it learns of the machine is known to all that are counted
for model in gcn sage gat; do
    planned=$("$GNNSTREAM" plan "$store" --model $model --epochs 42 --device "cpu:$ranks" --threads "$ranks" \
        --topology "$work/network" "${options[@]}" --json | sed 's/{"from"/\n&/g' |
        sed -n '/^{"from":"network"/s/.*"train","bytes":\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')
    few=$(run $model 2)
    many=$(run $model 42)
    sent=$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' "$work/metrics" | tail -n 1)
    seconds=$(sed -n 's/.*"seconds": *\([0-9.e-]*\), "read.*/\1/p' "$work/metrics" | tail -n 8 | sort -g | sed -n 4p)
    awk -v m=$model -v p="$planned" -v s="$sent" -v c=$(((many - few) / 40)) -v t="${seconds:-0}" \
        'BEGIN { printf "%-6s %10.2f %8.2f %11.2f %10.3f %8.3f\n", m, p / 1e6, s / 1e6, c / 1e6, c / s, t }'
done
