#!/usr/bin/env bash
# epoch_floor.sh - how close is an epoch to what this machine can do? RMAT, 1M vertices, 16M
# edges, 256 float32 features; GCN, hidden 64, in 256 MiB of host and 128 MiB of device memory.
#
# The floor of an epoch is max(bytes read / sequential O_DIRECT bandwidth of this disk,
# FLOPs / sgemm rate of this machine), both measured in the same run. Bytes written, gathers
# along edges and everything else cost nothing in it. The target is 0.6 of the floor or more.
# Partitioning is timed too (target: 5 million edges a second, METIS's own time excluded).
#   GS_EPOCHS   default 3
#   GS_METHODS  of partitioning, default "fennel random"; "metis" takes minutes and GiB here
#   GS_OPTIONS  more options for train
. "$(dirname "$0")/lib.sh"

epochs=${GS_EPOCHS:-3}
methods=${GS_METHODS:-fennel random}
read -r -a more <<<"${GS_OPTIONS:-}"
out=$dir/epoch-floor
store=$out/store
target=0.6

machine
rmat
need_disk 5
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$store"' EXIT
result=0

# speed METHOD FILE: edges a second, from the line "S s (reading ..., ordering O, ...)" of partition.
speed()
{
    sed -n 's/^\([0-9.]*\) s (.*ordering \([0-9.]*\).*/\1 \2/p' "$2" | awk -v method="$1" '{
        seconds = method == "metis" ? $1 - $2 : $1
        printf "partition by %s: %.1f million edges a second%s (target 5)\n", method, 16.777216 / seconds,
            method == "metis" ? ", ordering excluded" : "" }'
}

for method in $methods; do
    rm -rf "$store"
    cold "$graph"/*.npy
    options=(--memory 256M)
    [ "$method" = metis ] && options=(--memory 8G --parts 64)
    show "$GNNSTREAM" partition "$graph" "$store" --method "$method" "${options[@]}" | tee "$out/partition-$method.txt"
    speed "$method" "$out/partition-$method.txt"
done

cold "$store"/*
show "$GNNSTREAM" bench train "$store" --model gcn --hidden 64 --epochs "$epochs" --host-memory 256M \
    --device-memory 128M --json ${more[@]+"${more[@]}"} >"$out/bench.json"

python3 - "$out/bench.json" "$target" <<'EOF_PY' || result=1
import json, sys
b, target = json.load(open(sys.argv[1])), float(sys.argv[2])
read = b["read_bytes"] / b["disk_read_bps"]
dense = b["dense_flops"] / b["gemm_flops_per_second"]
edges = b["edge_flops"] / b["gemm_flops_per_second"]
floor = max(read, dense)
print(f"""
epoch            {b['seconds']:8.2f} s
read             {b['read_bytes'] / 2**20:8.0f} MiB at {b['disk_read_bps'] / 2**20:6.0f} MiB/s  {read:6.2f} s
written          {b['written_bytes'] / 2**20:8.0f} MiB (not in the floor)
dense flops      {b['dense_flops'] / 1e9:8.1f} G   at {b['gemm_flops_per_second'] / 1e9:6.1f} G/s    {dense:6.2f} s
edge flops       {b['edge_flops'] / 1e9:8.1f} G   (would add {edges:.2f} s; not in the floor)
floor            {floor:8.2f} s
floor / epoch    {floor / b['seconds']:8.2f}   (target {target})""")
sys.exit(floor / b["seconds"] < target)
EOF_PY
exit $result
