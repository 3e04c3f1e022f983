#!/usr/bin/env bash
# no_edge_rows.sh - does anything that training allocates or spills have a row an edge? GAT with 8 heads
# of 8 on R-MAT graphs of 2^20 vertices and 2^22, 2^23 and 2^24 edges, --host-memory 512M --device-memory 128M,
# inside a memory cgroup of 640 MiB. Allocations are counted from outside (tests/support/alloc_log.c, preloaded).
#
# With --no-cache and --no-prune, so that all that an epoch makes is spilled for every row (how many the loss sees grows
# with the edges), and once, the largest graph, with the budget used as the plan likes. Fails where the bytes spilled
# depend on the number of edges, where allocations together exceed the host budget (one number for each edge and head
# alone would fill it at 2^24 edges), or where they grow by a float for each added edge.
#   GS_EPOCHS  default 1
# Needs root and a writable cgroup file system (v1 or v2); fails, saying so, without.
. "$(dirname "$0")/lib.sh"

epochs=${GS_EPOCHS:-1}
module=${ALLOC_LOG_MODULE:-$root/build/tests/support/liballoc_log.so}
vertices=1048576
all_edges="4194304 8388608 16777216"
reports=$dir/no-edge-rows
[ -f "$module" ] || die "$module: not there; build it, or set ALLOC_LOG_MODULE"
trap 'rm -rf "$reports"/store-* "$reports"/graph-*' EXIT

# largest NAME K: the K-th largest allocation.
largest() { sed -n 's/^largest //p' "$reports/$1.allocs" | sed -n "$2p"; }

# train NAME STORE OPTIONS...
train()
{
    local name=$1 store=$2
    shift 2
    local command=("$GNNSTREAM" train "$store" --model gat --heads 8 --hidden 64 --epochs "$epochs" --host-memory 512M
        --device-memory 128M --metrics "$reports/$name.jsonl" "$@")
    say limited.py 640M "${command[@]}"
    cold "$store"/*
    rm -f "$reports/$name.jsonl"
    python3 "$here/limited.py" 640M "$reports/$name.json" env LD_PRELOAD="$module" ALLOC_LOG="$reports/$name.allocs" \
        "${command[@]}" >"$reports/$name.log" 2>"$reports/$name.err" ||
        { cat "$reports/$name.err" >&2; die "$name failed"; }
}

# line NAME EDGES: of the table.
line()
{
    printf '%-18s %9d %14s %16s %16s %13s %14s %12s\n' "$1" "$2" "$(mib "$(field written_bytes "$reports/$1.jsonl")")" \
        "$(mib "$(sed -n 's/^peak //p' "$reports/$1.allocs")")" "$(mib "$(largest "$1" 1)")" "$(mib $(($2 * 32)))" \
        "$(mib "$(field cgroup_peak_bytes "$reports/$1.json")")" "$(field oom_kills "$reports/$1.json")"
}

machine
need_disk 6
mkdir -p "$reports"
for edges in $all_edges; do
    graph=$reports/graph-$edges store=$reports/store-$edges
    show "$GNNSTREAM" generate rmat "$graph" --vertices $vertices --edges "$edges" --features 32 --classes 16 --seed 1 \
        >/dev/null
    show "$GNNSTREAM" partition "$graph" "$store" --parts 32 --method fennel --memory 512M --force >/dev/null
    rm -rf "$graph"
    train "spilling-$edges" "$store" --no-cache --no-prune
    [ "$edges" != "${all_edges##* }" ] || train "planned-$edges" "$store"
    rm -rf "$store"
done

echo
printf '%-18s %9s %14s %16s %16s %13s %14s %12s\n' run edges 'spilled MiB' 'allocated MiB' 'largest MiB' \
    'E x 8 floats' \
    'cgroup MiB' 'oom kills'
result=0
wrong() { echo "$*"; result=1; }
allocated() { sed -n 's/^peak //p' "$reports/spilling-$1.allocs"; }
spilled() { field written_bytes "$reports/spilling-$1.jsonl"; }
first=${all_edges%% *} last=${all_edges##* }
for edges in $all_edges; do
    line "spilling-$edges" "$edges"
done
line "planned-$last" "$last"
for edges in $all_edges; do
    [ "$(allocated "$edges")" -gt $((1 << 20)) ] || wrong "$edges edges: the allocations were not seen"
    [ "$(allocated "$edges")" -le $((512 << 20)) ] || wrong "$edges edges: more allocated than --host-memory"
    [ $(($(allocated "$edges") - $(allocated "$first"))) -lt $((4 * (edges - first) + 4096)) ] ||
        wrong "$edges edges: allocations grew by a float or more for each edge added to $first"
    [ "$(spilled "$edges")" = "$(spilled "$first")" ] ||
        wrong "$edges edges: another number of bytes spilled than with $first"
done
echo
echo 'allocations of 1 MiB and more of the spilling runs, in MiB:'
for edges in $all_edges; do
    printf '%9d edges:%s\n' "$edges" "$(awk '$1 == "largest" && $2 >= 1048576 { printf " %.1f", $2 / 1048576 }' \
        "$reports/spilling-$edges.allocs")"
done
exit $result
