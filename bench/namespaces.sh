# shellcheck shell=bash
# namespaces.sh - network namespaces for ranks: each has one Ethernet device, a bridge joins them. Sourced; for root and
# iproute2. $work is a folder of the caller's, who calls end_namespaces at its end.

namespace=gs_ranks_$$
namespaces=0

# make_namespaces N RATE: rank r is 10.77.0.(r + 1), and sends RATE at the most (as tc has it).
make_namespaces()
{
    local r
    namespaces=$1
    ip netns add ${namespace}_hub
    ip -n ${namespace}_hub link add bridge type bridge
    ip -n ${namespace}_hub link set bridge up
    for r in $(seq 0 $(($1 - 1))); do
        ip netns add ${namespace}_"$r"
        ip link add eth0 netns ${namespace}_"$r" type veth peer name port"$r" netns ${namespace}_hub
        ip -n ${namespace}_hub link set port"$r" master bridge up
        ip -n ${namespace}_"$r" addr add 10.77.0."$((r + 1))"/24 dev eth0
        ip -n ${namespace}_"$r" link set eth0 up
        ip -n ${namespace}_"$r" link set lo up
        tc -n ${namespace}_"$r" qdisc add dev eth0 root tbf rate "$2" burst 128k latency 50ms
    done
    # shellcheck disable=SC2016 # the rank's shell is to expand it
    echo 'exec ip netns exec '"$namespace"'_${PMI_RANK} "$@"' >"$work/one"
}

end_namespaces()
{
    local r
    for r in $(seq 0 $((namespaces - 1))) hub; do ip netns del ${namespace}_"$r" 2>"$work/end" || true; done
    namespaces=0
}

# sent_by_all: bytes that left the devices, with headers, as the kernel counts them.
sent_by_all()
{
    local all=0 r
    for r in $(seq 0 $((namespaces - 1))); do
        all=$((all + $(ip netns exec ${namespace}_"$r" cat /sys/class/net/eth0/statistics/tx_bytes)))
    done
    echo $all
}
