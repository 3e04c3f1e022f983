#!/usr/bin/env bash
# links.sh MODEL VERTICES FEATURES [OPTION...] - on one GPU, what a plan says of each link is what an epoch moves over
# it, by the run's own counts and by the driver's (host_memory.h), in three budgets: little device memory, little host
# memory too, and all that there is.
. "$(dirname "$0")/../e2e/lib.sh"

model=$1 vertices=$2 features=$3
shift 3
unset GS_TEST_GPU_RACES
run "generate" "$GNNSTREAM" generate rmat "$work/graph" --vertices "$vertices" --edges $((2 * vertices)) \
    --features "$features" --classes 4 --seed 2
[ "$model" != rgcn ] || add_types "$work/graph"
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 3 --method random || finish
# The same program, however many epochs there are.
program=()
[ "$model" != rgcn ] || program=(--no-hoist --no-move --no-fuse)

pack=(--no-pack) # rows that a kernel fetches are no copies that the driver could count

engine() # VERB OPTIONS... (the best weights come back whenever an epoch is better than all before: not in each)
{
    "$GNNSTREAM" "$1" "$work/store" --model "$model" --hidden 8 --device cuda --keep last "${pack[@]}" "${program[@]}" \
        "${options[@]}" "${@:2}"
}
least_of() { sed -n 's/.*at least \([0-9]*\)M.*/\1/p'; } # MiB

# What the GPU's streams copied from and to memory that the run has pinned, in an epoch: opening a run, and evaluating
# at its end, is done once, however many epochs there are.
train() # EPOCHS BUDGETS...
{
    GS_HOST_GPU_COUNTS=$work/copies.$1 engine train --epochs "$1" --metrics "$work/metrics" "${@:2}"
}
check() # NAME BUDGETS...
{
    local name=$1
    shift
    engine plan --json "$@" >"$work/$name.json" || fail "$name: plan"
    run "$name: train in $*" train 1 "$@"
    run "$name: the same for 3 epochs" train 3 "$@" || return
    run "$name: planned bytes are counted" python3 - "$work" "$name" "$model" "$vertices" <<'END'
import json, sys
work, name, model, vertices = sys.argv[1:4] + [int(sys.argv[4])]
plan = json.load(open(f"{work}/{name}.json"))
train = [p["name"] for p in plan["passes"]].index("train")
link = {(l["from"], l["to"]): l["passes"][train]["bytes"] for l in plan["links"]}
assert set(link) == {("disk", "host"), ("host", "disk"), ("host", "device 0"), ("chain", "device 0"),
                     ("device 0", "host"), ("disk", "device 0")}, link
epoch = json.loads(open(f"{work}/metrics").readlines()[-1])
one, three = (json.load(open(f"{work}/copies.{n}")) for n in (1, 3))
up, down = link["host", "device 0"], link["device 0", "host"]
kept = [sum(f["device_kept_bytes"]) for f in plan["files"]]
driver = {way: (three[way] - one[way]) / 2 for way in one}
# Where a sequence's edges begin, and their order, goes beside, in all budgets alike: 4 bytes each, there and back.
beside = [driver["in"] - up, driver["out"] - down]
if model != "sage_lstm":
    assert beside == [0, 0], (driver, up, down)
json.dump(beside, open(f"{work}/beside.{name}", "w"))
assert all(0 <= b <= 4 * 8 * vertices for b in beside) and beside == json.load(open(f"{work}/beside.tight")), beside
# The run counts what a pass brings besides, too.
want = {"read_bytes": link["disk", "host"], "written_bytes": link["host", "disk"],
        "copied_in_bytes": driver["in"] + driver["other_in"],
        "copied_out_bytes": driver["out"] + driver["other_out"]}
assert {key: epoch.get(key, 0) for key in want} == want, (epoch, want)
if not want["read_bytes"]: # a GPU's streams wait for each other, threads for the disk
    assert epoch["handed_over"] == 0, epoch
assert driver["other_in"] + driver["other_out"] < 0.1 * (up + down) + 1000 or name == "all", driver
if name == "tight":
    assert up > 0, link
elif name == "spill":
    assert up > 0 and link["disk", "host"] > 0 and link["host", "disk"] > 0, link
else:
    assert up == down == 0, "all that an epoch makes fits the device"
    assert link["disk", "host"] == 0 and sum(kept) > 0, (link, kept)
    tight = json.load(open(f"{work}/tight.json"))
    assert up < next(l["passes"][train]["bytes"] for l in tight["links"] if l["to"] == "device 0"), up
END
}

options=("$@")
device=$(engine plan --host-memory 1G --device-memory 1M 2>&1 | least_of)
check tight --host-memory 1G --device-memory "${device}M"
check all --host-memory 1G --device-memory 1G
# Rows that come by themselves make what blocks of them make.
if [ "$model" = gcn ]; then
    model=sage
    least=$(engine plan --host-memory 1G --device-memory 1M 2>&1 | least_of)
    little=(--host-memory 1G --device-memory "${least}M" --no-cache --no-swap)
    run "train with blocks" engine train --epochs 2 "${little[@]}" --save "$work/blocks"
    pack=()
    engine plan "${little[@]}" --tasks >"$work/tasks" || fail "plan of rows"
    run "some rows are moved by themselves" grep -q ' upload .* row_bytes ' "$work/tasks"
    run "train with rows" engine train --epochs 2 "${little[@]}" --save "$work/rows"
    weights() { tail -c +$(($(od -An -tu8 -N 8 "$1") + 9)) "$1"; }
    run "the same weights" cmp <(weights "$work/blocks") <(weights "$work/rows")
    model=gcn pack=(--no-pack)
fi
# Chunks of one operand interval are launched together, where they wait for nothing: tasks of a launch have one span.
if [ "$model" = gcn ] || [ "$model" = gat ]; then
    run "train with a trace" engine train --epochs 1 --host-memory 1G --device-memory 1G --trace "$work/trace.json"
    run "a launch an operand interval" python3 - "$work/trace.json" <<'END'
import collections, json, sys
launched = collections.defaultdict(list)
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if "operand" in e.get("args", {}):
        launched[e["args"]["stage"], e["args"]["operand"]].append((e["ts"], e["dur"]))
assert launched and all(len(spans) == 3 and len(set(spans)) == 1 for spans in launched.values()), launched
END
    run "train with a trace, in ${device}M" engine train --epochs 1 --host-memory 1G --device-memory "${device}M" \
        --no-cache --trace "$work/trace.json"
    run "a copy a chunk" python3 - "$work/trace.json" <<'END'
import collections, json, sys
copies, uses = collections.Counter(), collections.Counter()
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    a = e.get("args", {})
    if "operand" in a and e["ph"] == "X":
        (copies if e["name"] == "upload" else uses)[a["stage"], a["set"], a["target"], a["operand"]] += 1
assert copies and all(n == 1 for n in copies.values()) and set(copies) <= set(uses), (copies, uses)
END
fi
options+=(--no-cache) # or so little would fit
device=$(engine plan --host-memory 1G --device-memory 1M 2>&1 | least_of)
host=$(engine plan --host-memory 1M --device-memory "${device}M" 2>&1 | least_of)
check spill --host-memory "${host}M" --device-memory "${device}M"
finish
