#!/usr/bin/env bash
# chain.sh - what a chain saves, and what several devices bring, where wires are slow: R-MAT of Reddit's density, GCN
# with every edge pass in every epoch, on 1 and on 4 devices of `cpu:N` under two switches whose wires to the host are
# throttled, so that copies take nearly all the time. Bars: the chain 1.8 times as fast as without it, 4 devices 3.5
# times as fast as one. The first epoch of each run warms up; of the two after it the shorter counts. Two minutes in
# all.
#   GS_SCALE    divides the 150,000 vertices and 44M edges, default 4
#   GS_HOST_BPS of a switch's wire to the host, bytes per second, default 4e8; that to the next device is twice as fast
#   GS_DEVICE   memory of each device, default 7500K: little, so that vertex chunks are brought for many blocks
#   GS_OPTIONS  of train, default "--no-selective --no-prune --no-hoist": whole vertex chunks, all rows, nothing
#               computed once
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-4}
bps=${GS_HOST_BPS:-4e8}
read -r -a more <<<"${GS_OPTIONS---no-selective --no-prune --no-hoist}"
read -r -a before <<<"${GS_RUN:-}"
out=$dir/chain
mkdir -p "$out"

machine
dense_store "$scale"
python3 - "$out" "$bps" <<'EOF_PY'
import json, sys
out, bps = sys.argv[1], float(sys.argv[2])
for name, switches in ("one", [1]), ("four", [2, 2]):
    json.dump({"switches": [{"devices": d, "host_bps": bps, "peer_bps": 2 * bps} for d in switches]},
              open(f"{out}/{name}.json", "w"))
EOF_PY

# row NAME OPTIONS...: the epochs' lines in NAME.jsonl, what was predicted in NAME.plan; a thread for each device.
row()
{
    local name=$1
    shift
    local command=("$store" --model gcn --hidden 256 --device-memory "${GS_DEVICE:-7500K}" \
        --host-memory 2G "$@" ${more[@]+"${more[@]}"})
    "$GNNSTREAM" plan "${command[@]}" --json >"$out/$name.plan"
    rm -f "$out/$name.jsonl"
    show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${command[@]}" --epochs 3 --metrics "$out/$name.jsonl" \
        >"$out/$name.txt"
}
row one --device cpu:1 --topology "$out/one.json" --threads 1
row apart --device cpu:4 --topology "$out/four.json" --threads 4 --no-chain
row chain --device cpu:4 --topology "$out/four.json" --threads 4

python3 - "$out" <<'EOF_PY'
import json, sys
rows = {}
print(f"\n{'':24} {'epoch s':>8} {'planned':>8} {'computing':>10} {'from host MB':>13} "
      f"{'handed on MB':>13} {'last loss':>10}")
for name, title in ("one", "1 device"), ("apart", "4 devices, no chain"), ("chain", "4 devices, 2 chains"):
    epochs = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}.jsonl").read().splitlines()]
    e = min(epochs[1:], key=lambda e: e["seconds"])
    plan = next(p for p in json.load(open(f"{sys.argv[1]}/{name}.plan"))["passes"] if p["name"] == "train")
    rows[name] = e["seconds"]
    print(f"{title:24} {e['seconds']:8.2f} {plan['seconds']:8.2f} {e['compute_seconds']:10.2f} "
          f"{e['copied_in_bytes'] / 1e6:13.0f} "
          f"{e.get('forwarded_bytes', 0) / 1e6:13.0f} {epochs[-1]['loss']:10.6f}")
chain, devices = rows["apart"] / rows["chain"], rows["one"] / rows["chain"]
print(f"\nchain: {chain:.2f} times as fast (bar 1.8)   4 devices: {devices:.2f} times as fast as one (bar 3.5)")
sys.exit(chain < 1.8 or devices < 3.5)
EOF_PY
