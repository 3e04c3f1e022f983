#!/usr/bin/env bash
# memory_limit.sh - is memory a hard limit? A generated RMAT graph, 1M vertices, 16M edges,
# 256 float32 features (1 GiB of them), is partitioned with --memory 256M and trained (GCN,
# hidden 64) with --host-memory 256M --device-memory 128M, each inside a memory cgroup of
# 320 MiB in which the page cache counts too. The kernel's word counts, not the program's.
#   GS_EPOCHS  default 3
# Needs root and a writable cgroup file system (v1 or v2); fails, saying so, without.
. "$(dirname "$0")/lib.sh"

epochs=${GS_EPOCHS:-3}
limit=320M
# What was not there before the script is removed at its end, but for the graph.
store=$dir/memory-limit-store
reports=$dir/memory-limit
trap 'rm -rf "$store"' EXIT

# limited NAME COMMAND...: inside the cgroup; its report goes to $reports/NAME.json.
limited()
{
    local name=$1
    shift
    say limited.py $limit "$@"
    if ! python3 "$here/limited.py" $limit "$reports/$name.json" "$@" >"$reports/$name.log" 2>"$reports/$name.err"; then
        cat "$reports/$name.err" >&2
        [ -f "$reports/$name.json" ] && cat "$reports/$name.json" >&2
        die "$name did not get through in $limit"
    fi
    cat "$reports/$name.log"
}

# line NAME: of the table.
line()
{
    local f=$reports/$1.json
    printf '%-10s %9.1f s %12.1f MiB %14.1f MiB %12d %10d\n' "$1" "$(field seconds "$f")" \
        "$(mib "$(field resident_peak_bytes "$f")")" "$(mib "$(field cgroup_peak_bytes "$f")")" \
        "$(field limit_hits "$f")" "$(field oom_kills "$f")"
}

machine
mkdir -p "$reports"
rm -f "$reports"/*
rmat
need_disk 5
rm -rf "$store"
cold "$graph"/*.npy
limited partition "$GNNSTREAM" partition "$graph" "$store" --memory 256M --method fennel
cold "$store"/*
limited train "$GNNSTREAM" train "$store" --model gcn --hidden 64 --epochs "$epochs" --host-memory 256M \
    --device-memory 128M --metrics "$reports/train.jsonl"

echo
printf '%-10s %11s %16s %18s %12s %10s\n' "in $limit" time 'process peak' 'cgroup peak' 'limit hits' 'oom kills'
line partition
line train
first=$(head -n 1 "$reports/train.jsonl" | sed 's/.*"loss": *\([^,]*\).*/\1/')
last=$(tail -n 1 "$reports/train.jsonl" | sed 's/.*"loss": *\([^,]*\).*/\1/')
peak=$(field peak_host_bytes "$reports/train.jsonl")
printf 'store %s MiB, loss %s -> %s in %s epochs, %.1f s the last; read %s MiB, wrote %s MiB in it\n' \
    "$(du -sm "$store" | cut -f 1)" "$first" "$last" "$epochs" "$(field seconds "$reports/train.jsonl")" \
    "$(mib "$(field read_bytes "$reports/train.jsonl")")" "$(mib "$(field written_bytes "$reports/train.jsonl")")"
printf 'train says it had at most %s MiB resident of its 256 MiB\n' "$(mib "$peak")"
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || die 'the loss did not fall'
[ "$peak" -le $((256 << 20)) ] || die 'more resident than --host-memory'
