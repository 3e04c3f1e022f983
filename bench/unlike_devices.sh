#!/usr/bin/env bash
# unlike_devices.sh - do two devices that are not alike share an epoch well? GCN with every edge pass in every epoch on
# an R-MAT graph in memory, on two devices of `cpu:2` with a thread each, in three layouts: the second computes at half
# the speed; the second is behind a slow wire; the first is fast behind a slow wire and the second slow behind a fast
# one. Each layout also on each of its devices alone. Bars: the prediction within 15 % of the measured epoch, both
# devices never more than 3 % slower than the better one alone, and 1.3 times as fast in the first layout. A minute in
# all, on a quiet machine: devices that wait for a processor are slower than they say.
#   GS_SCALE    divides the 200,000 vertices and 4M edges, default 1
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
read -r -a before <<<"${GS_RUN:-}"
out=$dir/unlike
store=$out/R-$scale
mkdir -p "$out"
export XDG_CACHE_HOME=$out/cache # what is known of this machine is measured here, anew
rm -rf "$XDG_CACHE_HOME"

machine
if [ ! -f "$store/manifest.json" ]; then
    need_disk 2
    rm -rf "$out/graph" "$store"
    show "$GNNSTREAM" generate rmat "$out/graph" --vertices $((200000 / scale)) --edges $((4000000 / scale)) \
        --features 128 --classes 16 --seed 1
    show "$GNNSTREAM" partition "$out/graph" "$store" --method random --parts 24
    rm -rf "$out/graph"
fi
python3 - "$out" <<'EOF_PY'
import json, sys
layouts = {"computing": [(1, 0), (0.5, 0)], "wire": [(1, 0), (1, 4e7)], "crossed": [(1, 4e8), (0.25, 0)]}
for name, devices in layouts.items():
    def write(suffix, chosen):
        switches = [{"devices": 1, "speeds": [s], **({"host_bps": bps} if bps else {})} for s, bps in chosen]
        with open(f"{sys.argv[1]}/{name}.{suffix}.json", "w") as f:
            json.dump({"switches": switches}, f)
    write("both", devices)
    write("first", devices[:1])
    write("second", devices[1:])
EOF_PY

common=("$store" --model gcn --hidden 128 --no-hoist --no-prune --no-selective --host-memory 4G)
show "$GNNSTREAM" bench train "${common[@]}" --device cpu:1 --threads 1 --epochs 8 >/dev/null
for layout in computing wire crossed; do
    for which in first second both; do
        devices=1
        [ $which != both ] || devices=2
        run=("${common[@]}" --device cpu:$devices --threads $devices --topology "$out/$layout.$which.json")
        "$GNNSTREAM" plan "${run[@]}" --json >"$out/$layout.$which.plan"
        rm -f "$out/$layout.$which.jsonl"
        show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${run[@]}" --epochs 8 --eval-every 0 \
            --metrics "$out/$layout.$which.jsonl" >/dev/null
    done
done

python3 - "$out" <<'EOF_PY'
import json, statistics, sys
failed = False
print(f"\n{'layout':12} {'device':8} {'epoch s':>8} {'planned':>8} {'off by':>7} {'last loss':>10}")
for layout in "computing", "wire", "crossed":
    seconds = {}
    for which in "first", "second", "both":
        epochs = [json.loads(line) for line in open(f"{sys.argv[1]}/{layout}.{which}.jsonl")]
        took = seconds[which] = statistics.median(e["seconds"] for e in epochs[1:])
        passes = json.load(open(f"{sys.argv[1]}/{layout}.{which}.plan"))["passes"]
        plan = next(p for p in passes if p["name"] == "train")
        off = plan["seconds"] / took - 1
        failed |= abs(off) > 0.15
        print(f"{layout:12} {which:8} {took:8.3f} {plan['seconds']:8.3f} {100 * off:6.0f}% {epochs[-1]['loss']:10.6f}")
    times = min(seconds["first"], seconds["second"]) / seconds["both"]
    failed |= times < 1 / 1.03 or (layout == "computing" and times < 1.3)
    print(f"{layout:12} both: {times:.2f} times as fast as the better one alone")
sys.exit(failed)
EOF_PY
