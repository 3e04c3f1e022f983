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
name=gs_ranks_$$
end()
{
    for r in $(seq 0 $((ranks - 1))) hub; do ip netns del ${name}_"$r" 2>"$work/end" || true; done
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp UCX_NET_DEVICES=all

ip netns add ${name}_hub
ip -n ${name}_hub link add bridge type bridge
ip -n ${name}_hub link set bridge up
for r in $(seq 0 $((ranks - 1))); do
    ip netns add ${name}_"$r"
    ip link add eth0 netns ${name}_"$r" type veth peer name port"$r" netns ${name}_hub
    ip -n ${name}_hub link set port"$r" master bridge up
    ip -n ${name}_"$r" addr add 10.77.0."$((r + 1))"/24 dev eth0
    ip -n ${name}_"$r" link set eth0 up
    ip -n ${name}_"$r" link set lo up
    tc -n ${name}_"$r" qdisc add dev eth0 root tbf rate "$GS_RATE" burst 128k latency 50ms
done
# shellcheck disable=SC2016 # the rank's shell is to expand it
echo 'exec ip netns exec '"$name"'_${PMI_RANK} "$@"' >"$work/one"
each=$(printf ', {"devices": 1}%.0s' $(seq "$ranks"))
# what ranks of one machine are taken to have (docs/design/ranks.md)
printf '{"switches": [%s], "network": {"bps": 268435456, "seconds": 3.0517578125e-05}}' "${each:2}" >"$work/network"

counted()
{
    local all=0 r
    for r in $(seq 0 $((ranks - 1))); do
        all=$((all + $(ip netns exec ${name}_"$r" cat /sys/class/net/eth0/statistics/tx_bytes)))
    done
    echo $all
}
# run MODEL EPOCHS: prints what the kernel counted.
run()
{
    local before
    before=$(counted)
    timeout 300 mpirun -n "$ranks" bash "$work/one" "$GNNSTREAM" train "$store" --model "$1" --epochs "$2" --threads 1 \
        "${options[@]}" --metrics "$work/metrics" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    echo $(($(counted) - before))
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
