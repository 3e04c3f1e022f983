#!/usr/bin/env bash
# unlike_devices.sh - do two devices that are not alike share an epoch well? GCN with every edge pass in every epoch on
# R-MAT graphs in memory, on two devices of `cpu:2` with a thread each, in six layouts: the second computes at half the
# speed; the second is behind a slow wire; the first is fast behind a slow wire and the second slow behind a fast one;
# the first is fast with little memory behind a wire, so that rows come to it for several blocks, and the second slow
# with much memory; the same with features of 600 columns, which are best left where they are; and DAHA's: features 32
# times as wide as what is hidden, on a slow device that computes in place, beside a fast one behind a slow wire. Each
# layout also on each of its devices alone, in turns with both. Bars: the prediction within 15 % of the measured epoch,
# both devices never more than 3 % slower than the better one alone, and 1.3 times as fast in the first layout and the
# last three. Costs are fitted to epochs of one device on each of the graphs: what products of rows of 512 columns take,
# rows of 128 do not tell. Wires are faster where processors are: those below are of a machine that takes 0.32 s for an
# epoch of the first graph (a core of Zen 3). Six minutes in all, on a quiet machine: devices that wait for a processor
# are slower than they say.
#   GS_SCALE    divides the vertices and edges, default 1
#   GS_EPOCHS   of each run, default 6; the first does not count
#   GS_TURNS    runs of each, default 3: the median is of all their epochs
#   GS_LAYOUTS  which of computing wire crossed small wide daha; default all
#   GS_WIRES    multiplies what is told of wires, default 0.32 s over the first graph's epoch
#   GS_RUN      put before each measured command, such as one that keeps the machine quiet
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
epochs=${GS_EPOCHS:-6}
turns=${GS_TURNS:-3}
read -r -a layouts <<<"${GS_LAYOUTS:-computing wire crossed small wide daha}"
read -r -a before <<<"${GS_RUN:-}"
out=$dir/unlike
mkdir -p "$out"
export XDG_CACHE_HOME=$out/cache # what is known of this machine is measured here, anew
rm -rf "$XDG_CACHE_HOME"

machine
# store NAME VERTICES EDGES FEATURES PARTS
store()
{
    [ -f "$out/$1-$scale/manifest.json" ] && return
    need_disk 2
    rm -rf "$out/graph" "$out/$1-$scale"
    show "$GNNSTREAM" generate rmat "$out/graph" --vertices $(($2 / scale)) --edges $(($3 / scale)) \
        --features "$4" --classes 16 --seed 1
    show "$GNNSTREAM" partition "$out/graph" "$out/$1-$scale" --method random --parts "$5"
    rm -rf "$out/graph"
}
store R 200000 4000000 128 24
store wide 100000 6000000 600 16
store daha 100000 4000000 512 16
common=(--model gcn --no-hoist --no-prune --no-selective --host-memory 4G)
# fit STORE HIDDEN - an epoch of one device of full speed, whose times costs are fitted to
fit()
{
    show ${before[@]+"${before[@]}"} "$GNNSTREAM" bench train "$out/$1-$scale" "${common[@]}" --hidden "$2" \
        --device cpu:1 --threads 1 --epochs $epochs --json
}
fit R 128 >"$out/fitted.json"
epoch=$(field seconds "$out/fitted.json")
wires=${GS_WIRES:-$(python3 -c "print(0.32 / $scale / $epoch)")}
say "wires $wires times as fast as told"
python3 - "$out" "$wires" <<'EOF_PY'
import json, sys
# speed, wire to the host (0: as fast as it goes), memory
layouts = {"computing": [(1, 0, 1 << 30), (0.5, 0, 1 << 30)], "wire": [(1, 0, 1 << 30), (1, 4e7, 1 << 30)],
           "crossed": [(1, 4e8, 1 << 30), (0.25, 0, 1 << 30)], "small": [(1, 1e9, 48 << 20), (0.5, 0, 1 << 30)],
           "wide": [(1, 5e8, 128 << 20), (0.25, 0, 2 << 30)], "daha": [(1, 1e8, 64 << 20), (0.25, 0, 1 << 30)]}
for name, devices in layouts.items():
    def write(suffix, chosen):
        switches = [{"devices": 1, "speeds": [s], "memories": [m],
                     **({"host_bps": bps * float(sys.argv[2])} if bps else {})} for s, bps, m in chosen]
        if name == "daha" and len(chosen) > 1:
            switches[1]["in_place"] = True
        with open(f"{sys.argv[1]}/{name}.{suffix}.json", "w") as f:
            json.dump({"switches": switches}, f)
    write("both", devices)
    write("first", devices[:1])
    write("second", devices[1:])
EOF_PY

for layout in "${layouts[@]}"; do
    of=("$out/R-$scale" --hidden 128)
    if [ "$layout" = wide ]; then
        of=("$out/wide-$scale" --hidden 64)
        fit wide 64 >/dev/null
    elif [ "$layout" = daha ]; then
        of=("$out/daha-$scale" --hidden 16)
        fit daha 16 >/dev/null
    fi
    for turn in $(seq "$turns"); do
        for which in first second both; do
            devices=1
            [ $which != both ] || devices=2
            run=("${of[@]}" "${common[@]}" --device cpu:$devices --threads $devices
                --topology "$out/$layout.$which.json")
            [ "$turn" != 1 ] || "$GNNSTREAM" plan "${run[@]}" --json >"$out/$layout.$which.plan"
            rm -f "$out/$layout.$which.$turn.jsonl"
            show ${before[@]+"${before[@]}"} "$GNNSTREAM" train "${run[@]}" --epochs $epochs --eval-every 0 \
                --metrics "$out/$layout.$which.$turn.jsonl" >/dev/null
        done
    done
done

python3 - "$out" "$turns" "${layouts[@]}" <<'EOF_PY'
import json, statistics, sys
failed = False
print(f"\n{'layout':12} {'device':8} {'epoch s':>8} {'planned':>8} {'off by':>7} {'last loss':>10}")
for layout in sys.argv[3:]:
    seconds = {}
    for which in "first", "second", "both":
        runs = [[json.loads(line) for line in open(f"{sys.argv[1]}/{layout}.{which}.{turn + 1}.jsonl")]
                for turn in range(int(sys.argv[2]))]
        took = seconds[which] = statistics.median(e["seconds"] for epochs in runs for e in epochs[1:])
        passes = json.load(open(f"{sys.argv[1]}/{layout}.{which}.plan"))["passes"]
        plan = next(p for p in passes if p["name"] == "train")
        off = plan["seconds"] / took - 1
        failed |= abs(off) > 0.15
        print(f"{layout:12} {which:8} {took:8.3f} {plan['seconds']:8.3f} {100 * off:6.0f}% {runs[0][-1]['loss']:10.6f}")
    times = min(seconds["first"], seconds["second"]) / seconds["both"]
    failed |= times < 1 / 1.03 or (layout in ("computing", "small", "wide", "daha") and times < 1.3)
    plan = json.load(open(f"{sys.argv[1]}/{layout}.both.plan"))
    way = next(w["devices"] for w in plan["ways"] if w["taken"])
    print(f"{layout:12} taken: {way}; kept " + ", ".join(f"{m['bytes'] / 2**20:.0f} of {m['budget'] / 2**20:.0f} MiB"
                                                          for m in plan["memories"]))
    print(f"{layout:12} both: {times:.2f} times as fast as the better one alone")
sys.exit(failed)
EOF_PY
