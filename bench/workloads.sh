#!/usr/bin/env bash
# workloads.sh [WORKLOAD...] - streaming against the hardware, on three generated graphs. GCN, 2 layers, hidden 64;
# host budget one quarter of the store, device budget one sixteenth.
#
#   R  R-MAT of Reddit's density at 1:16: 150,000 vertices, 44M edges, 300 features
#   A  clustered, of Amazon's shape at 1:4: 2.1M vertices, 58M edges, 96 features
#   W  R-MAT of enwiki's shape at 1:8: 450,000 vertices, 35M edges, 300 features
#
# Three tables. "limit": an epoch against the bytes that it must read over the disk's sequential O_DIRECT
# bandwidth of the same run (bar: 1.10 where reading is the bound) and against its own reads and writes made once more
# with nothing computed ("alone", which the machine decides), with everything kept (bar: stall of 5 % at most), and
# what `plan` said before the run (bars: bytes exactly, seconds within 15 %), having been fitted at two other budgets (a
# half and a third of the store) of the three graphs; "rounded" is the quarter with --spill-type bf16. "switches": the
# same engine with all off, then one switch turned on after the other (bars: 4.9 times on R, 3 on A and W). The switches
# are kernel (GS_ISA=generic is off), selective, pipeline, swap, cache, hoist, prune; those that this version lacks are
# left out.
#   GS_SCALE    divides vertices and edges, default 1
#   GS_EPOCHS   default R 24, A 6, W 12: some 3 s each, so that what disturbs the machine for less than that is in no
#               median
#   GS_TABLES   default "limit switches"
#   GS_METHODS  of partitioning, default "R:fennel A:metis W:fennel"; metis takes a minute and 3 GiB on A
#   GS_PAUSE    a command before each measured one, such as one that waits for a quiet machine
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
tables=${GS_TABLES:-limit switches}
methods=${GS_METHODS:-R:fennel A:metis W:fennel}
read -r -a pause <<<"${GS_PAUSE:-}"
export XDG_CACHE_HOME=$dir/workloads/cache # the fit is this script's own
declare -A epochs_of=([R]=24 [A]=6 [W]=12) # a run's seconds are the median's
declare -A shape=([R]="rmat 150000 44000000 300 16 24" [A]="sbm 2100000 58000000 96 64 36" \
    [W]="rmat 450000 35000000 300 16 40")
[ $# -gt 0 ] || set -- R A W

# make GRAPH: its store, once.
make()
{
    local kind vertices edges features classes parts method
    read -r kind vertices edges features classes parts <<<"${shape[$1]}"
    method=$(tr ' ' '\n' <<<"$methods" | sed -n "s/^$1://p")
    store=$dir/workloads/$1-$scale-$method
    if [ ! -f "$store/manifest.json" ]; then
        need_disk 8
        rm -rf "$dir/workloads/graph"
        show "$GNNSTREAM" generate "$kind" "$dir/workloads/graph" --vertices $((vertices / scale)) \
            --edges $((edges / scale)) \
            --features "$features" --classes "$classes" --seed 1
        show "$GNNSTREAM" partition "$dir/workloads/graph" "$store" --method "$method" --parts "$parts" --memory 12G
        rm -rf "$dir/workloads/graph"
    fi
    bytes=$(du -sb "$store" | cut -f 1)
    epochs=${GS_EPOCHS:-${epochs_of[$1]}}
}

# budget SHARE: what one part of so many of the store is, but no less than the program itself takes.
budget()
{
    local b=$((bytes / $1))
    [ "$b" -ge "$2" ] || b=$2
    printf '%dK' $((b / 1024))
}

bench() # NAME OPTIONS...
{
    local name=$1
    shift
    show ${pause[@]+"${pause[@]}"} "$GNNSTREAM" bench train "$store" --model gcn --hidden 64 --epochs "$epochs" \
        --json "$@" >"$reports/$name.json"
}

has_switch() { "$GNNSTREAM" plan "$store" --model gcn "--no-$1" >/dev/null 2>&1; }

limit() # GRAPH
{
    local least=$((48 << 20))
    bench "$1-half" --host-memory "$(budget 2 $least)" --device-memory "$(budget 8 $((16 << 20)))"
    bench "$1-third" --host-memory "$(budget 3 $least)" --device-memory "$(budget 12 $((16 << 20)))"
}

# A run is fitted to when it is over; what the budgets before have taught is put back before each of these.
measured() # GRAPH
{
    known "$XDG_CACHE_HOME"
    bench "$1-quarter" --host-memory "$(budget 4 $((48 << 20)))" --device-memory "$(budget 16 $((12 << 20)))"
    known "$XDG_CACHE_HOME"
    bench "$1-rounded" --host-memory "$(budget 4 $((48 << 20)))" --device-memory "$(budget 16 $((12 << 20)))" \
        --spill-type bf16
    known "$XDG_CACHE_HOME"
    bench "$1-all" --host-memory 8G --device-memory 3G
}

known() # FOLDER: as it was when it was first asked for
{
    [ -d "$1.known" ] || cp -r "$1" "$1.known"
    rm -rf "$1"
    cp -r "$1.known" "$1"
}

switches() # GRAPH
{
    local off=() on all="selective pipeline swap cache hoist prune" isa=generic k
    local budgets=(--host-memory "$(budget 4 $((48 << 20)))" --device-memory "$(budget 16 $((12 << 20)))")
    for k in $all; do
        has_switch "$k" && off+=("--no-$k")
    done
    for on in nothing kernel $all; do
        [ "$on" = nothing ] || [ "$on" = kernel ] || has_switch "$on" || continue
        [ "$on" = kernel ] && isa=
        for k in "${!off[@]}"; do
            [ "${off[$k]}" = "--no-$on" ] && unset "off[$k]"
        done
        GS_ISA=$isa show ${pause[@]+"${pause[@]}"} "$GNNSTREAM" train "$store" --model gcn --hidden 64 \
            --epochs "$epochs" \
            "${budgets[@]}" ${off[@]+"${off[@]}"} --metrics "$reports/$1-switch-$on.jsonl" >/dev/null
    done
}

machine
reports=$dir/workloads/reports
mkdir -p "$reports" "$XDG_CACHE_HOME"
rm -f "$reports"/*
for table in $tables; do
    if [ "$table" = limit ]; then
        rm -rf "${XDG_CACHE_HOME:?}"/* "$XDG_CACHE_HOME.known"
        show ${pause[@]+"${pause[@]}"} "$GNNSTREAM" bench limits --dir "$dir" >"$reports/limits.txt"
        for graph in "$@"; do make "$graph"; limit "$graph"; done
        for graph in "$@"; do make "$graph"; measured "$graph"; done
    else
        for graph in "$@"; do make "$graph"; switches "$graph"; done
    fi
done
python3 "$here/workloads.py" "$reports" "$@"
