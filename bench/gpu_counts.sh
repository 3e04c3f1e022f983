#!/usr/bin/env bash
# gpu_counts.sh - bytes, copies and launches of an epoch on a GPU, counted; no GPU. Bytes, copies and predicted seconds
# are those of plans on a graph of Reddit's shape (R-MAT, 233,000 vertices, 114M edges, 602 features) in 16 parts, for a
# GPU with the attributes of an H200: all of it on the GPU, an eighth of the store's bytes of device memory, and a
# quarter of them of host memory besides. Launches and hand-overs are counted in runs that train on a smaller graph of
# as many parts on the tests' GPU, which is the host: in memory, in the least device memory, and there from the disk,
# too. Hand-overs are tasks of a device that a thread of the host began as it saw another one over, for which the device
# cannot wait by itself (`handed_over` of --metrics). GCN, hidden 64. Bars: a copy a chunk, in memory one launch for the
# chunks of an operand interval (one more where hubs are cut), and no hand-over but where the disk reads. A minute,
# 4 GiB of disk.
#   GS_GPU    the program with that GPU, default build/tests/cuda/gnnstream_gpu
#   GS_SCALE  divides the larger graph's vertices and edges, default 1
. "$(dirname "$0")/lib.sh"

gpu=${GS_GPU:-$root/build/tests/cuda/gnnstream_gpu}
[ -x "$gpu" ] || die "$gpu: not there; ninja -C build tests/cuda/gnnstream_gpu"
scale=${GS_SCALE:-1}
parts=16
out=$dir/gpu
mkdir -p "$out"
need_disk 4

store() # NAME VERTICES EDGES
{
    [ -d "$out/$1" ] && return
    show "$GNNSTREAM" generate rmat "$out/$1.graph" --vertices "$2" --edges "$3" --features 602 --classes 41 >/dev/null
    show "$GNNSTREAM" partition "$out/$1.graph" "$out/$1" --method random --parts $parts >/dev/null
    rm -r "$out/$1.graph"
}
machine
store large $((233000 / scale)) $((114000000 / scale))
store small $((11650 / scale)) $((570000 / scale))
mib_of_store=$(($(du -sb "$out/large" | cut -f 1) >> 20))
echo "the larger store: $mib_of_store MiB"

plan() # NAME OPTION...
{
    say "$gpu" plan "$out/large" --model gcn --hidden 64 --device cuda "${@:2}" --json
    for as in --json --tasks; do
        GS_HOST_GPU_PROCESSORS=132 GS_HOST_GPU_MEMORY=141000000000 "$gpu" plan "$out/large" --model gcn --hidden 64 \
            --device cuda "${@:2}" $as >"$out/$1.plan$as"
    done
}
plan memory --host-memory 8G
plan device --host-memory 8G --device-memory $((mib_of_store / 8))M
plan both --device-memory $((mib_of_store / 8))M --host-memory $((mib_of_store / 4))M

trained() # NAME OPTION...
{
    say "$gpu" train "$out/small" --model gcn --hidden 64 --device cuda --epochs 1 "${@:2}"
    "$gpu" train "$out/small" --model gcn --hidden 64 --device cuda --epochs 1 --trace "$out/$1.trace" \
        --metrics "$out/$1.metrics" "${@:2}" >/dev/null
}
least=$( ("$gpu" train "$out/small" --model gcn --hidden 64 --device cuda --device-memory 1M 2>&1 || true) |
    sed -n 's/.*at least \([0-9]*M\).*/\1/p')
trained memory
trained device --device-memory "$least"
trained disk --device-memory "$least" --no-cache

python3 - "$out" $parts "$least" <<'EOF_PY'
import collections, json, sys
out, parts, least = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def column(name):
    plan = json.load(open(f"{out}/{name}.plan--json"))
    at = [p["name"] for p in plan["passes"]].index("train")
    train = plan["passes"][at]
    link = {(l["from"], l["to"]): l["passes"][at] for l in plan["links"]}
    rows = {"tasks": train["tasks"]}
    for title, way in (("read from disk", ("disk", "host")), ("to the GPU", ("host", "device 0")),
                       ("back", ("device 0", "host"))):
        rows[f"bytes {title}"] = link[way]["bytes"]
        rows[f"requests, copies {title}"] = link[way]["requests"]
    rows["predicted ms"] = round(1e3 * train["seconds"], 2)
    rows["bound by"] = train["bottleneck"]
    return rows

def launches(name):
    spans = collections.defaultdict(list)
    events = json.load(open(f"{out}/{name}.trace"))
    events = events["traceEvents"] if isinstance(events, dict) else events
    track = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for e in events:
        if e["ph"] == "X":
            what = "chunk" if e["name"] == "upload" and "operand" in e["args"] else e["name"]
            spans[track[e["tid"]], what].append((e["ts"], e["dur"]))
    chunks = spans["device 0", "edges"]
    others = sum(len(s) for (where, name), s in spans.items() if where == "device 0" and name != "edges")
    return {"chunks that an epoch's passes go over": len(chunks), "launches over edges": len(set(chunks)),
            "other launches": others, "copies of chunks": len(spans["host to device 0", "chunk"]),
            "copies of rows": len(spans["host to device 0", "upload"]),
            "copies back": len(spans["device 0 to host", "download"]),
            "hand-overs by the host": json.loads(open(f"{out}/{name}.metrics").readlines()[-1])["handed_over"]}

def table(title, heads, columns):
    print(f"\n{title:40}" + "".join(f"{h:>20}" for h in heads))
    for row in columns[0]:
        print(f"{row:40}" + "".join(f"{c[row]:>20,}" if isinstance(c[row], int) else f"{c[row]:>20}" for c in columns))

table("an epoch of the larger graph, planned", ["all on the GPU", "1/8 on the GPU", "and 1/4 in host"],
      [column(c) for c in ("memory", "device", "both")])
inside, streamed, read = launches("memory"), launches("device"), launches("disk")
table("an epoch of the smaller one, traced", ["in memory", f"in {least}", "and from the disk"],
      [inside, streamed, read])
passes = inside["chunks that an epoch's passes go over"] // parts ** 2
good = inside["launches over edges"] <= passes * parts and inside["copies of chunks"] == 0 and \
    streamed["copies of chunks"] <= streamed["chunks that an epoch's passes go over"] and \
    inside["hand-overs by the host"] == streamed["hand-overs by the host"] == 0
print(f"\n{passes} edge passes of {parts}x{parts} chunks:",
      "a copy a chunk at most, a launch for each operand interval's chunks" if good else "MORE than asked")
sys.exit(not good)
EOF_PY
