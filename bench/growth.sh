#!/usr/bin/env bash
# growth.sh - R-MAT from 1M to 64M edges (16 a vertex, 128 features) at one ratio of budgets to the store: a
# quarter of it for the host and a sixteenth for the device, beside what does not depend on data: what `plan` counts for
# the program itself (some 28 and 6 MiB), 16 MiB of transfers that the engine keeps under way (exec.c) and 4 MiB for a
# tile's registers (layout.c). GCN, hidden 64; 24 parts at every size. Seconds per edge of a size and the next may
# differ by 20 %, and no peak may be above its budget.
#   GS_EPOCHS  default 8 at 64M edges and more at fewer, so that no size is measured for less than 2 s; the first is not
#              in the median
#   GS_SIZES   millions of edges, default "1 4 16 64"; a size may be run by itself, the table has what earlier calls
#              left of others
#   GS_PARTS   default 24
#   GS_PAUSE   a command before each measured one
. "$(dirname "$0")/lib.sh"

parts=${GS_PARTS:-24}
read -r -a pause <<<"${GS_PAUSE:-}"
out=$dir/growth
under_way=$((16 << 20)) tile=$((4 << 20))

# itself STORE: host and device bytes that the program takes before any data.
itself()
{
    "$GNNSTREAM" plan "$1" --model gcn --hidden 64 --host-memory 8G --device-memory 2G --json >"$out/plan.json"
    python3 -c 'import json, sys
data = ("plan", "staging ring", "resident data", "sums and registers")
items = json.load(open(sys.argv[1]))["memory"]
fixed = [i for i in items if i["name"] not in data]
assert len(items) == len(fixed) + len(data), [i["name"] for i in items]
print(sum(i["bytes"] for i in fixed), sum(i["bytes"] for i in fixed if i["device"]))' "$out/plan.json"
}

machine
mkdir -p "$out"
if [ -z "${GS_SIZES:-}" ]; then # plans are made with what this machine can do now, not with what other runs found
    export XDG_CACHE_HOME=$out/cache
    rm -rf "$XDG_CACHE_HOME"
    mkdir -p "$XDG_CACHE_HOME"
    show ${pause[@]+"${pause[@]}"} "$GNNSTREAM" bench limits --dir "$out" >"$out/limits.txt"
fi
trap 'rm -rf "$out/graph" "$out/store"' EXIT
for size in ${GS_SIZES:-1 4 16 64}; do
    need_disk $((size / 10 + 2))
    epochs=${GS_EPOCHS:-$((7 + 96 / size))}
    rm -rf "$out/graph" "$out/store"
    show "$GNNSTREAM" generate rmat "$out/graph" --vertices $((size * 62500)) --edges $((size * 1000000)) \
        --features 128 --classes 16 --seed 1
    show "$GNNSTREAM" partition "$out/graph" "$out/store" --method fennel --parts "$parts" --memory 2G \
        >"$out/partition.txt"
    rm -rf "$out/graph"
    bytes=$(du -sb "$out/store" | cut -f 1)
    read -r host device <<<"$(itself "$out/store")"
    host=$((bytes / 4 + host + under_way)) device=$((bytes / 16 + device + tile))
    show ${pause[@]+"${pause[@]}"} "$GNNSTREAM" train "$out/store" --model gcn --hidden 64 --epochs "$epochs" \
        --host-memory $host --device-memory $device \
        --metrics "$out/$size.jsonl" >/dev/null
    touch "$out/table"
    grep -v "^$size " "$out/table" >"$out/table.new" || true
    echo "$size $bytes $host $device" >>"$out/table.new"
    sort -n "$out/table.new" >"$out/table"
done
python3 - "$out" <<'EOF_PY'
import json, statistics, sys
from pathlib import Path
out = Path(sys.argv[1])
bad, before = 0, None
print(f"\n{'edges':>6} {'store MiB':>10} {'epoch s':>9} {'ns an edge':>11} {'computing':>10} "
      f"{'waiting':>8} {'read B':>7} {'change':>8} {'host peak of budget':>22} {'device peak of budget':>22}")
for line in (out / "table").read_text().splitlines():
    size, store, host, device = map(int, line.split())
    epochs = [json.loads(l) for l in (out / f"{size}.jsonl").read_text().splitlines()]
    seconds = statistics.median(e["seconds"] for e in epochs[1:] or epochs)
    each = seconds / (size * 1e6) * 1e9
    change = 0 if before is None else each / before - 1
    last = epochs[-1]
    fits = last["peak_host_bytes"] <= host and last["peak_device_bytes"] <= device
    good = abs(change) <= 0.20 and fits
    bad += not good
    middle = sorted(epochs[1:] or epochs, key=lambda e: e["seconds"])[len(epochs[1:] or epochs) // 2]
    part = lambda name: middle[name] / (size * 1e6) * 1e9
    print(f"{size:5}M {store / 2**20:10.0f} {seconds:9.3f} {each:11.1f} {part('compute_seconds'):10.1f} "
          f"{part('stall_seconds'):8.1f} {part('read_bytes') / 1e9:7.1f} {100 * change:+7.0f} % "
          f"{last['peak_host_bytes'] / 2**20:9.0f} of {host / 2**20:5.0f} MiB"
          f" {last['peak_device_bytes'] / 2**20:9.0f} of {device / 2**20:5.0f} MiB{'' if good else '  MISSES'}")
    before = each
sys.exit(bad > 0)
EOF_PY
