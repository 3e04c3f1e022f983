#!/usr/bin/env bash
# many_types.sh - R-GCN on edges of more types than a vertex has edges: what do batches of edges, multiplied by the
# matrix of their type, save beside sums by type? 200,000 vertices, 1.2 million edges of 200 types (the k-th as often as
# 1 / k), 32 features. Epochs in memory, the memory they take, and what a plan in less of it spills.
#   GS_WIDTHS   hidden, default "16 32"
#   GS_EPOCHS   default 3, of which the fastest counts
. "$(dirname "$0")/lib.sh"

epochs=${GS_EPOCHS:-3}
read -r -a widths <<<"${GS_WIDTHS:-16 32}"
out=$dir/many-types
store=$out/store

machine
need_disk 4
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
export XDG_CACHE_HOME=$out # predicted from the defaults, whatever this machine has measured
show "$GNNSTREAM" generate sbm "$out/graph" --vertices 200000 --edges 1200000 --features 32 --classes 16 --seed 1
show python3 "$here/edge_types.py" "$out/graph" 200
show "$GNNSTREAM" partition "$out/graph" "$store" --parts 16 --method fennel >"$out/partition.txt"

# run WIDTH OPTIONS...: one line of the table.
run()
{
    local width=$1 spill
    shift
    show "$GNNSTREAM" train "$store" --model rgcn --hidden "$width" --epochs "$epochs" --host-memory 6G \
        --device-memory 2G \
        --metrics "$out/metrics.jsonl" "$@" >"$out/train.txt"
    show "$GNNSTREAM" plan "$store" --model rgcn --hidden "$width" --host-memory 1G --device-memory 400M --json "$@" \
        >"$out/plan.json" 2>"$out/words" ||
        echo '{"spill_bytes": null}' >"$out/plan.json"
    spill=$(field spill_bytes "$out/plan.json")
    python3 - "$width" "${*:-as planned}" "$out/metrics.jsonl" "$spill" <<'EOF_PY'
import json, sys
width, how, metrics, spill = sys.argv[1:]
lines = [json.loads(line) for line in open(metrics)]
spilled = f"{int(spill) / 2**20:8.1f} MiB" if spill.isdigit() else "does not fit"
seconds, peak = min(x['seconds'] for x in lines), max(x['peak_host_bytes'] for x in lines)
print(f"{width:>5}  {how:<12} {seconds:8.3f} s {peak / 2**20:9.1f} MiB   {spilled:>12}   "
      f"loss {lines[-1]['loss']:.6f}")
EOF_PY
    rm -f "$out/metrics.jsonl"
}

printf 'width  program         an epoch   at most resident   spilled in 1 GiB\n'
for width in "${widths[@]}"; do
    run "$width"
    run "$width" --no-batch
done
