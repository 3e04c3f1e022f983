#!/usr/bin/env bash
# in_memory_gather.sh - the same GCN epoch with budgets large enough for everything and P = 1:
# bytes of rows gathered a second in its edge passes, as a fraction of this machine's
# row-gather bandwidth (random rows of the same width out of a table of the same size, summed;
# measured in the same run). The target is 0.6 or more. Needs about 6 GiB of free memory.
#   GS_EPOCHS   default 3
#   GS_METHOD   of partitioning, default random: no locality but what chance gives
#   GS_OPTIONS  more options for train
. "$(dirname "$0")/lib.sh"

epochs=${GS_EPOCHS:-3}
read -r -a more <<<"${GS_OPTIONS:-}"
out=$dir/in-memory
store=$out/store

machine
rmat
need_disk 5
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$store"' EXIT
show "$GNNSTREAM" partition "$graph" "$store" --method "${GS_METHOD:-random}" --parts 1 --memory 4G \
    >"$out/partition.txt"
show "$GNNSTREAM" bench train "$store" --model gcn --hidden 64 --epochs "$epochs" --host-memory 6G \
    --device-memory 4G --json ${more[@]+"${more[@]}"} >"$out/bench.json"

python3 - "$out/bench.json" <<'EOF_PY'
import json, sys
b, target = json.load(open(sys.argv[1])), 0.6
rate = b["edge_bytes"] / b["edge_seconds"]
print(f"""
epoch            {b['seconds']:8.2f} s, of it {b['edge_seconds']:.2f} s in edge passes
gathered         {b['edge_bytes'] / 2**30:8.2f} GiB, {rate / 2**30:6.2f} GiB/s
machine          {b['gather_bps'] / 2**30:8.2f} GiB/s
fraction         {rate / b['gather_bps']:8.2f}   (target {target})""")
sys.exit(rate / b["gather_bps"] < target)
EOF_PY
