#!/usr/bin/env bash
# link_speeds.sh - what a machine's record says of the speeds of its links changes plans: runs of rows or whole
# intervals, what stays in which memory, the order of columns, and whether edges come past the host.
. "$(dirname "$0")/../e2e/lib.sh"

export XDG_CACHE_HOME=$work/cache
store() # NAME KIND VERTICES EDGES FEATURES PARTS
{
    run "generate $1" "$GNNSTREAM" generate "$2" "$work/$1.graph" --vertices "$3" --edges "$4" --features "$5" \
        --classes 4 --seed 3
    run "partition $1" "$GNNSTREAM" partition "$work/$1.graph" "$work/$1" --parts "$6" --method random --seed 1 ||
        finish
}
store few sbm 20000 3000 32 2
store many rmat 30000 120000 64 4
store edges rmat 20000 400000 4 4
store tiny rmat 1000 3000 8 2
# The record, as the program itself writes it.
run "bench train" "$GNNSTREAM" bench train "$work/tiny" --model gcn --hidden 8 --device cuda --no-cache --epochs 2 \
    --device-memory 64M || finish
run "one record" test "$(find "$XDG_CACHE_HOME/gnnstream" -name 'machine-*.json' | wc -l)" -eq 1 || finish
run "plans of a record of other speeds" python3 - "$GNNSTREAM" "$work" <<'END'
import glob, json, subprocess, sys
program, work = sys.argv[1:]
path = glob.glob(work + "/cache/gnnstream/machine-*.json")[0]
record = json.load(open(path))
assert sum(record["link_tasks"]) > 0, "no copies were fitted"
GUESS = [10e9, 3e-6]

def plan(store, *options, link=GUESS, disk=2e9, load=None):
    """The training pass's plan with these speeds: nothing else is known of the machine."""
    r = json.loads(json.dumps(record))
    for key in ("tasks", "link_tasks"):
        r[key] = [0] * len(r[key])
    r["slower_sum"] = r["slower_weight"] = 0
    r["epoch_read_bps"] = r["epoch_write_bps"] = disk
    r["limits"]["links"] = link * 3
    if load is not None:
        r["limits"]["disk_to_device"] = load
    json.dump(r, open(path, "w"))
    p = json.loads(subprocess.run([program, "plan", f"{work}/{store}", "--device", "cuda", "--json", *options],
                                  check=True, capture_output=True).stdout)
    train = [x["name"] for x in p["passes"]].index("train")
    p["link"] = {(l["from"], l["to"]): l["passes"][train] for l in p["links"]}
    p["pass"] = p["passes"][train]
    return p

def up(p): return p["link"]["host", "device 0"]
def on_device(p): return sum(sum(f["device_kept_bytes"]) for f in p["files"])
def on_host(p): return sum(f["kept_bytes"] for f in p["files"])
def choices(p):
    """What the chosen program does otherwise than the first one: plans of one program differ by speeds alone."""
    return [x for x in ("recomputes", "keeps", "lean", "batches", "splits", "width", "no_hoist", "no_move", "no_fuse",
                        "no_prune") if p["pass"][x]]

# Runs of rows where a run costs little beside their bytes, else whole intervals; the link's seconds are its own. (Where
# requests cost much more, another program is shorter.)
few = ["--model", "sage", "--no-cache", "--no-prune", "--no-hoist", "--no-move", "--no-pack", "--device-memory", "20M",
       "--host-memory", "1G"]
runs, whole = plan("few", *few, link=[1e9, 1e-7]), plan("few", *few, link=[1e12, 1e-5])
assert choices(runs) == choices(whole), (choices(runs), choices(whole))
assert up(runs)["requests"] > 2 * up(whole)["requests"], (up(runs), up(whole))
assert up(runs)["bytes"] < up(whole)["bytes"], (up(runs), up(whole))
assert runs["link"]["disk", "host"]["bytes"] == whole["link"]["disk", "host"]["bytes"], "the disk is as fast as it was"
for p, bps, request in ((runs, 1e9, 1e-7), (whole, 1e12, 1e-5)):
    seconds = up(p)["bytes"] / bps + up(p)["requests"] * request
    assert abs(up(p)["seconds"] - seconds) < 1e-6 * seconds, (up(p), seconds)

# Where the link is slow and the disk fast, more stays on the device and less is copied; the other way round the host
# keeps what the disk would read.
options = ["--model", "sage", "--no-hoist", "--device-memory", "24M", "--host-memory", "29M"]
link, disk = plan("many", *options, link=[1e8, 1e-7], disk=20e9), plan("many", *options, link=[1e12, 1e-7], disk=1e8)
assert choices(link) == choices(disk), (choices(link), choices(disk))
assert on_device(link) > 2 * on_device(disk), (on_device(link), on_device(disk))
assert up(link)["bytes"] < up(disk)["bytes"], (up(link), up(disk))
assert on_host(link) < on_host(disk), (on_host(link), on_host(disk))
assert link["link"]["disk", "host"]["bytes"] > disk["link"]["disk", "host"]["bytes"]

# Another order of columns is taken where that saves bytes over a slow link, and not where it is fast: there copies are
# behind what computes whatever the order.
options = ["--model", "sage", "--device-memory", "20M", "--host-memory", "1G"]
slow, fast = plan("many", *options, link=[1e8, 1e-7]), plan("many", *options, link=[1e12, 1e-7])
assert slow["pass"]["reordered"] and not fast["pass"]["reordered"], (slow["pass"], fast["pass"])

# The disk has more under way where it is faster and a slow link gives places in the ring back late.
assert fast["flight_bytes"] == plan("many", *options, link=[1e12, 1e-7], disk=1e9)["flight_bytes"] == 4 << 20
of = {(d, l): plan("many", *options, link=[l, 1e-7], disk=d)["flight_bytes"] for d in (2e9, 30e9) for l in (1e9, 1e12)}
assert of[2e9, 1e12] <= of[30e9, 1e12] < of[30e9, 1e9] > of[2e9, 1e9], of

# Edges come past the host where that was measured and shortens the epoch by 2 % or more, and not where nobody wants it.
options = ["--model", "gcn", "--hidden", "8", "--device-memory", "16M", "--no-cache"]
loads = lambda p: p["link"].get(("disk", "device 0"), {"bytes": 0})["bytes"]
host, past = plan("edges", *options, disk=1e9), plan("edges", *options, disk=1e9, load=[4e9, 1e-5])
assert loads(host) == 0 < loads(past), (host["link"], past["link"])
assert past["pass"]["seconds"] < 0.98 * host["pass"]["seconds"], (past["pass"], host["pass"])
assert loads(plan("edges", *options, disk=1e9, load=[5e8, 1e-5])) == 0
assert loads(plan("edges", *options, "--disk-to-device", "no", disk=1e9, load=[4e9, 1e-5])) == 0
assert loads(plan("edges", *options, "--disk-to-device", "yes", disk=1e9, load=[5e8, 1e-5])) == loads(past)
END
finish
