#!/usr/bin/env bash
# in_memory_gather.sh - how close are epochs in memory, P = 1, to what this machine can do? Two parts (GS_PARTS):
#
# "gather": the same GCN epoch as in epoch_floor.sh: bytes of rows gathered a second in its edge passes, as a fraction
# of this machine's row-gather bandwidth (random rows of the same width out of a table of the same size, summed;
# measured in the same run). The target is 0.6 or more. Needs about 6 GiB of free memory.
#
# "floor": smaller graphs and several models (128 features, hidden 64, 16 classes): an epoch beside a floor, which is
# its products at oneDNN's own rate for each shape, rows in the cache, the bytes of the arrays and of the gathered
# rows that it must touch at the rate of copies, and its exponentials (a softmax's above all, each edge's in each edge
# pass; sigmoids, logarithms and the like as one each) at the rate of the kernel on numbers in the cache, all measured
# in the same run. Sums along edges are not in it: they are done while rows arrive. The target is 1.2 or less. Beside it
# what each stage takes of an epoch (of --trace), and the floor with gathered rows at the rate of random ones, which no
# order without locality can beat. Seconds are of the clock, and of processors, without the kernel's; where something
# else runs here, only the latter say something, of one thread best.
#   GS_PARTS    default "gather floor"
#   GS_SHAPES   of floor: vertices:edges, default "200000:2000000 1000000:10000000"
#   GS_MODELS   of floor: default "gcn sage gat gin"
#   GS_THREADS  of floor: default all
#   GS_EPOCHS   default 3; of floor 10
#   GS_METHOD   of partitioning, default random: no locality but what chance gives
#   GS_OPTIONS  more options for train
. "$(dirname "$0")/lib.sh"

parts=${GS_PARTS:-gather floor}
result=0
read -r -a more <<<"${GS_OPTIONS:-}"
out=$dir/in-memory
store=$out/store

machine
need_disk 5
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$store"' EXIT

# gather: the fraction of the bandwidth of random rows.
gather()
{
    rmat
    show "$GNNSTREAM" partition "$graph" "$store" --method "${GS_METHOD:-random}" --parts 1 --memory 4G \
        >"$out/partition.txt"
    show "$GNNSTREAM" bench train "$store" --model gcn --hidden 64 --epochs "${GS_EPOCHS:-3}" --host-memory 6G \
        --device-memory 4G --json ${more[@]+"${more[@]}"} >"$out/bench.json"

    python3 - "$out/bench.json" <<'EOF_PY' || result=1
import json, sys
b, target = json.load(open(sys.argv[1])), 0.6
rate = b["edge_bytes"] / b["edge_seconds"]
print(f"""
epoch            {b['seconds']:8.2f} s, of it {b['edge_seconds']:.2f} s in edge passes
gathered         {b['edge_bytes'] / 2**30:8.2f} GiB, {rate / 2**30:6.2f} GiB/s
machine          {b['gather_bps'] / 2**30:8.2f} GiB/s
fraction         {rate / b['gather_bps']:8.2f}   (target {target})""")
sys.exit(rate / b["gather_bps"] < target)
EOF_PY
}

# floor VERTICES EDGES: each model beside its floor.
floor()
{
    local model threads=${GS_THREADS:-$(nproc)} epochs=${GS_EPOCHS:-10}
    rm -rf "$store"
    "$GNNSTREAM" generate rmat "$out/graph" --vertices "$1" --edges "$2" --features 128 --classes 16 --seed 1 >&2
    "$GNNSTREAM" partition "$out/graph" "$store" --parts 1 --method random --memory 4G >/dev/null
    rm -rf "$out/graph"
    for model in ${GS_MODELS:-gcn sage gat gin}; do
        say "$GNNSTREAM" train "$store" --model "$model" --threads "$threads" --epochs $((epochs + 2))
        floor_of "$model" "$threads" "$epochs" "$1" || result=1
    done
}

# floor_of MODEL THREADS EPOCHS VERTICES
floor_of()
{
    python3 - "$GNNSTREAM" "$root/build/bench/kernels/bench_kernels" "$store" "$out" "$@" <<'EOF_PY'
import collections, json, re, resource, subprocess, sys

program, kernels, store, out, model = sys.argv[1:6]
threads, epochs, vertices = map(int, sys.argv[6:9])
TARGET = 1.2
EXPS = ("exp", "log", "sigmoid", "tanh", "gelu", "gelu_slope", "silu", "elu", "pow", "xent_grad")
BYTES = {"f32": 4, "i32": 4, "u32": 4, "bf16": 2, "f16": 2, "u16": 2, "u8": 1}


def run(*words):
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout


def train(count):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(program, "train", store, "--model", model, "--threads", str(threads), "--epochs", str(count), "--trace",
        f"{out}/trace.json", "--metrics", f"{out}/metrics.jsonl")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime  # the kernel clears pages as a run begins, in seconds that vary threefold


once = train(2)
processor = (train(epochs + 2) - once) / epochs
seconds = sorted(json.loads(line)["seconds"] for line in open(f"{out}/metrics.jsonl"))[0]
trace = json.load(open(f"{out}/trace.json"))
took, rows = collections.Counter(), collections.Counter()
for event in trace["traceEvents"]:
    if event["ph"] == "X":
        stage = event["args"]["stage"]
        took[stage, event["name"]] += event["dur"] * 1e-6
        rows[stage] += event["args"].get("rows", 0) if event["name"] == "vertex program" else 0
this_pass = next(p for p in trace["otherData"]["plan"]["passes"] if p["name"] == "train")

# Of each stage of the compiled epoch: products, and bytes of a row that are read and written.
products, touched, width, stage = collections.defaultdict(list), collections.Counter(), {}, None
exps, exps_of_edges, edge_width, scored = collections.Counter(), collections.Counter(), {}, set()
array = dict(re.findall(r"^array (\S+) (\w+)\[", text := run(program, "model", model).split("the compiled epoch")[1],
                        re.M))
for line in text.splitlines():
    if found := re.match(r'  stage \d+ "(.*)"', line):
        stage, width, edge_width = found[1], {}, {}
    elif found := re.match(r"    (e\d+) = (\w+).*: \[(\d+)\]", line):
        edge_width[found[1]] = int(found[3])
        exps_of_edges[stage] += int(found[3]) * (found[2] in EXPS)
    elif found := re.match(r"    grad\(.*\) \+= outer (r\d+) (r\d+)", line):
        products[stage].append(("gradient", width[found[1]], width[found[2]]))
    elif found := re.match(r"    (r\d+) = (\w+) (\S+).*: (\w*)\[(\d+)\](?: -> store (\S+))?", line):
        to, what, of, kind, width[to] = *found.groups()[:4], int(found[5])
        if what in ("matmul_t", "matmul"):
            products[stage].append(("product", width[of], width[to]))
        elif what == "load":
            touched[stage] += width[to] * BYTES[kind]
        elif what in ("sum_in", "sum_out", "attend_in"):
            touched[stage] += 2 * 4 * width[to]
            if what == "attend_in" and (stage, of) not in scored:  # sums by one register of scores have one
                exps_of_edges[stage] += edge_width[of]
                scored.add((stage, of))
        exps[stage] += width[to] * (what in EXPS)
        touched[stage] += width[to] * BYTES[array[found[6]]] if found[6] else 0

stages = [s for s in dict.fromkeys(s for s, _ in took) if s.startswith("train")]
gathered = max(1, round(this_pass["edge_bytes"] / 4 / max(this_pass["edges"], 1)))
asked = [f"{k}:{a}:{b}" for k, a, b in sorted({p for s in stages for p in products[s]})]
rate = {}
rates = run(kernels, "rates", str(threads), "copy", "exp", f"gather:{vertices}:{gathered}", *asked)
for line in rates.splitlines()[1:]:
    name, number = line.split()
    rate[name] = float(number)

print(f"\n{model}: {vertices:,} vertices, {threads} threads; copies {rate['copy'] * 1e-9:.1f} GB/s read and written, "
      f"random rows of {gathered} {rate[f'gather:{vertices}:{gathered}'] * 1e-9:.1f} GB/s")
print(f"{'stage':12} {'rows':>9} {'products':>9} {'arrays':>9} {'vertex':>9} {'edges':>9} {'zero, own':>9}   ms")
dense = arrays = hard = 0
passes = sum(any(of == s and kind.startswith("edge") for of, kind in took) for s in stages)
for s in stages:
    flops = sum(2 * rows[s] * a * b / rate[f"{k}:{a}:{b}"] for k, a, b in products[s])
    moved = touched[s] * rows[s] / rate["copy"]
    dense, arrays = dense + flops, arrays + moved
    hard += (rows[s] * exps[s] + this_pass["edges"] / max(passes, 1) * exps_of_edges[s]) / rate["exp"]
    edge = sum(v for (of, kind), v in took.items() if of == s and kind.startswith("edge"))
    rest = sum(v for (of, kind), v in took.items() if of == s and kind != "vertex program") - edge
    name = s.split(":")[0]
    print(f"{name:12} {rows[s]:9d} {1e3 * flops:9.1f} {1e3 * moved:9.1f} {1e3 * took[s, 'vertex program']:9.1f} "
          f"{1e3 * edge:9.1f} {1e3 * rest:9.1f}")
edges = this_pass["edge_bytes"] / rate["copy"]
floor = dense + arrays + edges + hard
random = this_pass["edge_bytes"] / rate[f"gather:{vertices}:{gathered}"]
print(f"floor {1e3 * floor:.1f} ms: products {1e3 * dense:.1f}, arrays {1e3 * arrays:.1f}, exponentials "
      f"{1e3 * hard:.1f}, gathered rows {1e3 * edges:.1f} (as random ones {1e3 * random:.1f})")
print(f"epoch {1e3 * seconds:.1f} ms, {seconds / floor:.2f} of it, {seconds / (floor - edges + random):.2f} with "
      f"random rows; processors {1e3 * processor:.1f} ms, {processor / floor / threads:.2f} of it (target {TARGET})")
sys.exit(seconds / floor > TARGET)
EOF_PY
}

for part in $parts; do
    case $part in
    gather) gather ;;
    floor)
        [ -x "$root/build/bench/kernels/bench_kernels" ] || die "ninja -C build bench/kernels/bench_kernels first"
        for shape in ${GS_SHAPES:-200000:2000000 1000000:10000000}; do
            floor "${shape%:*}" "${shape#*:}"
        done
        ;;
    *) die "GS_PARTS: \"$part\" is no part; gather or floor" ;;
    esac
done
exit $result
