#!/usr/bin/env bash
# less_work.sh - what selective loading and pruning save on a sparse clustered graph of Amazon's shape: 2.1M vertices,
# 58M edges, 96 features, 32 parts by METIS, GCN with 2 layers of 64; host memory a quarter of the store, device memory
# a sixteenth. First all labels of the generator (40 % of the vertices), then 2 % of the vertices, all for training.
#
# Bytes are the plan's, which are exactly those that a run reads; seconds are the second of two epochs. Target:
# selective loading reads at most 1 / 2.6 of what whole intervals would. METIS takes one to three minutes a store, and 3
# GiB.
#   GS_SCALE    divides vertices and edges; default 1
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
vertices=$((2100000 / scale)) edges=$((58000000 / scale))
out=$dir/less-work
machine
need_disk 6
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
show "$GNNSTREAM" generate sbm "$out/graph" --vertices $vertices --edges $edges --features 96 --classes 47

# keep NAME COUNT: the first COUNT vertices of a split, its header made to say so.
keep()
{
    local file=$out/graph/$1 had pad
    had=$(head -c 128 "$file" | tr -d '\0' | sed -n 's/.*(\([0-9]*\),).*/\1/p' | head -n 1)
    pad=$(printf '%*s' $((${#had} - ${#2})) '')
    LC_ALL=C sed -i "1s/($had,)/($2,)$pad/" "$file"
    truncate -s $((128 + 8 * $2)) "$file"
}

# row NAME STORE OPTIONS...
row()
{
    local name=$1 store=$2
    shift 2
    say "$GNNSTREAM" train "$store" --model gcn --epochs 2 --host-memory "$host" --device-memory "$device" "$@"
    "$GNNSTREAM" plan "$store" --model gcn --host-memory "$host" --device-memory "$device" "$@" --json >"$out/plan.json"
    "$GNNSTREAM" train "$store" --model gcn --epochs 2 --host-memory "$host" --device-memory "$device" "$@" \
        --metrics "$out/metrics.jsonl" >"$out/log"
    python3 - "$out/plan.json" "$out/metrics.jsonl" "$name" <<'PY'
import json, sys
train = next(p for p in json.load(open(sys.argv[1]))["passes"] if p["name"] == "train")
epoch = json.loads(open(sys.argv[2]).readlines()[-1])
assert epoch["read_bytes"] == train["read_bytes"], "the plan's bytes are not those that were read"
print("%-28s %5d %9.1f %9.1f %9.1f %9d %13d %11d %8.2f %12.8f" % (
    sys.argv[3], train["parts"], train["read_bytes"] / 2**20, train["skipped_bytes"] / 2**20,
    train["written_bytes"] / 2**20,
    train["read_requests"], train["edges"], train["rows"], epoch["seconds"], epoch["loss"]))
PY
}

table()
{
    local bytes
    bytes=$(du -sb "$1" | cut -f 1)
    # The process and its libraries take some 45 MiB whatever the graph.
    host=$(((bytes / 4 >> 20) + 45))M
    device=$(((bytes / 16 >> 20) + 8))M
    printf '%-28s %5s %9s %9s %9s %9s %13s %11s %8s %12s\n' "$2, $host / $device" P "read MiB" skipped written \
        requests edges rows s loss
    row "everything" "$1" --no-prune --no-selective
    row "selective" "$1" --no-prune
    row "pruned" "$1" --no-selective
    row "selective and pruned" "$1"
}

show "$GNNSTREAM" partition "$out/graph" "$out/store" --parts 32 --method metis
table "$out/store" "40 % labelled"
keep train_idx.npy $((vertices / 50))
keep valid_idx.npy 0
keep test_idx.npy 0
show "$GNNSTREAM" partition "$out/graph" "$out/store" --parts 32 --method metis --force
table "$out/store" "2 % labelled"
