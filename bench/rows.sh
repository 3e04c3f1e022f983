#!/usr/bin/env bash
# rows.sh - what do rows by themselves save where wires are slow, and are they ever slower? GCN, GraphSAGE and GAT on
# two devices of `cpu:2` with a wire to the host each, with and without --no-pack, on a graph in random order whose
# edges name few rows of each block. Bars: losses are the same, and no epoch is more than 2 % longer with them.
# Of each of the two ways, run in turns, the shortest epoch counts. Three minutes in all.
#   GS_SCALE    divides the 200,000 vertices and 800,000 edges, default 1
#   GS_HOST_BPS of a wire, bytes per second, default 3e8
#   GS_DEVICE   memory of each device, default 8M
#   GS_TURNS    of each of the two ways, default 2
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
bps=${GS_HOST_BPS:-3e8}
read -r -a before <<<"${GS_RUN:-}"
out=$dir/rows
graph=$out/graph.$scale store=$out/store.$scale
mkdir -p "$out"

machine
if [ ! -d "$store" ]; then
    show "$GNNSTREAM" generate rmat "$graph" --vertices $((200000 / scale)) --edges $((800000 / scale)) --features 64 \
        --classes 16 --seed 1 >/dev/null
    show "$GNNSTREAM" partition "$graph" "$store" --method random --parts 64 >/dev/null
fi
printf '{"switches": [{"devices": 1, "host_bps": %s}, {"devices": 1, "host_bps": %s}]}\n' "$bps" "$bps" \
    >"$out/wires.json"

rm -f "$out"/*.jsonl
for model in gcn sage gat; do
    for turn in $(seq "${GS_TURNS:-2}"); do
        for way in rows blocks; do
            run=("$store" --model $model --hidden 64 --device cpu:2 --threads 2 --device-memory "${GS_DEVICE:-8M}" \
                --host-memory 2G --no-swap --topology "$out/wires.json")
            [ $way = rows ] || run+=(--no-pack)
            "$GNNSTREAM" plan "${run[@]}" --json >"$out/$model.$way.plan"
            show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${run[@]}" --epochs 3 --eval-every 0 --keep last \
                --metrics "$out/$model.$way.$turn.jsonl" >/dev/null
        done
    done
done

python3 - "$out" <<'EOF_PY'
import glob, json, sys
failed = False
print(f"\n{'model':10} {'':8} {'epoch s':>8} {'planned':>8} {'to devices MB':>14} {'last loss':>12} {'ratio':>6} "
      f"{'planned':>8}")
for model in "gcn", "sage", "gat":
    seconds, planned, losses = {}, {}, set()
    for way in "blocks", "rows":
        runs = [[json.loads(line) for line in open(path)] for path in glob.glob(f"{sys.argv[1]}/{model}.{way}.*.jsonl")]
        e = min((e for epochs in runs for e in epochs[1:]), key=lambda e: e["seconds"])
        plan = json.load(open(f"{sys.argv[1]}/{model}.{way}.plan"))
        planned[way] = next(p["seconds"] for p in plan["passes"] if p["name"] == "train")
        seconds[way] = e["seconds"]
        losses |= {epochs[-1]["loss"] for epochs in runs}
        print(f"{model:10} {way:8} {e['seconds']:8.3f} {planned[way]:8.3f} {e['copied_in_bytes'] / 1e6:14.1f} "
              f"{runs[0][-1]['loss']:12.8f}", end="" if way == "rows" else "\n")
    print(f" {seconds['blocks'] / seconds['rows']:6.2f} {planned['blocks'] / planned['rows']:8.2f}")
    if seconds["rows"] > 1.02 * seconds["blocks"] or planned["rows"] > 1.02 * planned["blocks"]:
        failed = True
        print(f"{model}: slower by rows")
    if len(losses) > 1:
        failed = True
        print(f"{model}: other losses: {losses}")
sys.exit(failed)
EOF_PY
