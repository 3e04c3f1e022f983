#!/usr/bin/env bash
# unlike_batches.sh - do two devices that are not alike share the batches of a step well? GraphSAGE and GAT on batches
# of neighbours of an R-MAT graph in memory, steps of six batches, on two devices of `cpu:2` with a thread each, of
# which the second computes at half the speed; and on each of them alone, in turns with both. Of six batches the first
# should have four, so both should be 1.5 times as fast as the first alone, less what is no batch's: sampling, the
# optimiser. Bars: 1.3 times, and what the plan says of the steps of an epoch within 15 % of the measured seconds; costs
# are fitted to such batches (`bench train`). A minute, on a quiet machine: devices that wait for a processor
# are slower than they say.
#   GS_TURNS    runs of each, default 3: the median is of all their epochs
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

turns=${GS_TURNS:-3}
read -r -a before <<<"${GS_RUN:-}"
out=$dir/unlike-batches
mkdir -p "$out"
export XDG_CACHE_HOME=$out/cache # what is known of this machine is measured here, anew

machine
if [ ! -f "$out/store/manifest.json" ]; then
    need_disk 1
    show "$GNNSTREAM" generate rmat "$out/graph" --vertices 200000 --edges 4000000 --features 128 --classes 16 --seed 1
    show "$GNNSTREAM" partition "$out/graph" "$out/store" --method random --parts 8
    rm -rf "$out/graph"
fi
python3 - "$out" <<'EOF_PY'
import json, sys
for name, speeds in ("first", [1]), ("second", [0.5]), ("both", [1, 0.5]):
    with open(f"{sys.argv[1]}/{name}.json", "w") as f:
        json.dump({"switches": [{"devices": len(speeds), "speeds": speeds}]}, f)
EOF_PY

for model in sage gat; do
    show ${before[@]+"${before[@]}"} "$GNNSTREAM" bench train "$out/store" --model $model --hidden 64 --device cpu \
        --threads 1 --host-memory 4G --epochs 6 --sampler neighbor --batch-size 1112 --fanout 10,5 --eval-every 0 \
        >/dev/null
done
for model in sage gat; do
    for turn in $(seq "$turns"); do
        for which in first second both; do
            devices=1
            [ $which != both ] || devices=2
            rm -f "$out/$model.$which.$turn.jsonl"
            run=("$out/store" --model $model --hidden 64 --sampler neighbor --batch-size 1112 --fanout 10,5
                --batches-per-step 6 --host-memory 4G --device cpu:$devices --threads $devices
                --topology "$out/$which.json")
            [ "$turn" != 1 ] || "$GNNSTREAM" plan "${run[@]}" --json >"$out/$model.$which.plan"
            show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${run[@]}" --epochs 3 --eval-every 0 --keep last \
                --metrics "$out/$model.$which.$turn.jsonl" >/dev/null
        done
    done
done

python3 - "$out" "$turns" <<'EOF_PY'
import json, statistics, sys
failed = False
print(f"\n{'model':8} {'device':8} {'epoch s':>8} {'planned':>8} {'off by':>7} {'last loss':>12}")
for model in "sage", "gat":
    seconds = {}
    for which in "first", "second", "both":
        runs = [[json.loads(line) for line in open(f"{sys.argv[1]}/{model}.{which}.{turn + 1}.jsonl")]
                for turn in range(int(sys.argv[2]))]
        took = seconds[which] = statistics.median(e["seconds"] for epochs in runs for e in epochs[1:])
        plan = json.load(open(f"{sys.argv[1]}/{model}.{which}.plan"))
        planned = plan["steps"] * plan["step_seconds"]
        off = planned / took - 1
        failed |= abs(off) > 0.15
        print(f"{model:8} {which:8} {took:8.3f} {planned:8.3f} {100 * off:6.0f}% {runs[0][-1]['loss']:12.8f}")
    times = min(seconds["first"], seconds["second"]) / seconds["both"]
    failed |= times < 1.3
    print(f"{model:8} both: {times:.2f} times as fast as the better one alone")
sys.exit(failed)
EOF_PY
