#!/usr/bin/env bash
# ring.sh - rows for several devices by chains or in a ring: which is faster where, and does the plan take it? GCN with
# every edge pass in every epoch, on four devices of `cpu:4` with slow wires, on the graph of chain.sh, in two layouts:
# "own", where each device has a wire to the host and all are joined by wires twice as fast, so that in a ring each wire
# to the host brings a quarter of the rows (an all-gather); and "tree", where two devices share each of two wires to the
# host, each pair is joined by a wire twice as fast, and what goes from one pair to the other does so at half the
# speed. Each layout by chains and in a ring, as its topology file says, and as the plan takes it where that does not.
# Bars: each epoch within 15 % of the predicted one, the plan takes what is measured to be faster in both, and the
# losses are the same. Two minutes in all.
#   GS_SCALE    divides the 150,000 vertices and 44M edges, default 4
#   GS_HOST_BPS of a wire to the host, bytes per second, default 4e8
#   GS_DEVICE   memory of each device, default 7500K: little, so that vertex chunks are brought for many blocks
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-4}
bps=${GS_HOST_BPS:-4e8}
read -r -a before <<<"${GS_RUN:-}"
out=$dir/ring
mkdir -p "$out"

machine
dense_store "$scale"
python3 - "$out" "$bps" <<'EOF_PY'
import json, sys
out, bps = sys.argv[1], float(sys.argv[2])
layouts = {"own": ([1, 1, 1, 1], 2 * bps), "tree": ([2, 2], bps / 2)}
for name, (switches, across) in layouts.items():
    for share in "chains", "ring", "either":
        json.dump({"switches": [{"devices": d, "host_bps": bps, "peer_bps": 2 * bps} for d in switches],
                   "across_bps": across} | ({} if share == "either" else {"share": share}),
                  open(f"{out}/{name}.{share}.json", "w"))
EOF_PY

for layout in own tree; do
    for share in chains ring either; do
        run=("$store" --model gcn --hidden 256 --device cpu:4 --threads 4 --device-memory "${GS_DEVICE:-7500K}" \
            --host-memory 2G --no-selective --no-prune --no-hoist --topology "$out/$layout.$share.json")
        "$GNNSTREAM" plan "${run[@]}" --json >"$out/$layout.$share.plan"
        [ $share != either ] || continue
        rm -f "$out/$layout.$share.jsonl"
        show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${run[@]}" --epochs 3 --eval-every 0 \
            --metrics "$out/$layout.$share.jsonl" >/dev/null
    done
done

python3 - "$out" <<'EOF_PY'
import json, sys
failed, losses = False, set()
print(f"\n{'layout':8} {'rows':8} {'epoch s':>8} {'planned':>8} {'off by':>7} {'from host MB':>13} "
      f"{'handed on MB':>13} {'last loss':>10}")
for layout in "own", "tree":
    seconds = {}
    def plan_of(share):
        return json.load(open(f"{sys.argv[1]}/{layout}.{share}.plan"))
    for share in "chains", "ring":
        epochs = [json.loads(line) for line in open(f"{sys.argv[1]}/{layout}.{share}.jsonl")]
        e = min(epochs[1:], key=lambda e: e["seconds"])
        planned = next(p for p in plan_of(share)["passes"] if p["name"] == "train")["seconds"]
        seconds[share] = e["seconds"]
        losses.add(epochs[-1]["loss"])
        off = planned / e["seconds"] - 1
        failed |= abs(off) > 0.15
        print(f"{layout:8} {share:8} {e['seconds']:8.2f} {planned:8.2f} {100 * off:6.0f}% "
              f"{e['copied_in_bytes'] / 1e6:13.0f} {e.get('forwarded_bytes', 0) / 1e6:13.0f} "
              f"{epochs[-1]['loss']:10.6f}")
    taken = "ring" if any(l["from"] == "ring" for l in plan_of("either")["links"]) else "chains"
    other = "chains" if taken == "ring" else "ring"
    failed |= seconds[taken] > seconds[other]
    print(f"{layout:8} the plan takes: {taken}, {seconds[other] / seconds[taken]:.2f} times as fast as the other")
if len(losses) > 1:
    print("losses differ:", sorted(losses))
sys.exit(failed or len(losses) > 1)
EOF_PY
