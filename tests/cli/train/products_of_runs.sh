# Products by the matrix of an edge's type are made once for the edges of a vertex that have the type: of the sum of
# their rows, as many as there are such pairs, forward by destination, backward by source; or of the row at the other
# end, as many as there are pairs of that end. Losses are those of products edge by edge, to rounding, a run that goes
# on is the same to the bit, and budgets that have no room for more scratch do without. A long run measures which
# way takes least, keeps it, and so has the same bits the next time.
gnnstream generate rmat graph --vertices 1024 --edges 8000 --features 8 --classes 3 --seed 3 >made
pairs=$(python3 - <<'PY'
import array, ast, random, struct

def numbers(path):
    with open(path, "rb") as f:
        assert f.read(6) == b"\x93NUMPY"
        size = struct.unpack("<H" if f.read(2)[0] == 1 else "<I", f.read(2))[0]
        shape = ast.literal_eval(f.read(size).decode())["shape"]
        a = array.array("q")
        a.frombytes(f.read())
    return shape, a

shape, e = numbers("graph/edges.npy")
assert shape == (8000, 2)
draw = random.Random(4)
types = [min(int(draw.expovariate(0.2)), 199) for _ in range(shape[0])]
head = "{'descr': '<i2', 'fortran_order': False, 'shape': (%d,), }" % shape[0]
with open("graph/edge_types.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
    f.write(array.array("h", types).tobytes())
ends = [len({(e[2 * k + side], types[k]) for k in range(shape[0])}) for side in (1, 0)]
print(2 * sum(ends)) # of two layers; of the first one's derivative the gradient of the matrices alone
PY
)
gnnstream partition graph store --parts 1 >made
# --no-hoist: the sum of the features is made in every epoch; --no-prune: of all edges
one=(--model rgcn --layers 2 --hidden 32 --no-hoist --no-prune)
field() { python3 -c 'import json, sys; p = json.load(open("plan"))["passes"][0]; print(p[sys.argv[1]])' "$1"; }
gnnstream plan store "${one[@]}" --products runs --json >plan
[ "$(field name)" = train ] || die "the first pass is $(field name)"
[ "$(field product_edges)" = 32000 ] || die "products of $(field product_edges) edges"
[ "$(field products)" = "$pairs" ] || die "$(field products) products, not $pairs"
gnnstream plan store "${one[@]}" --products runs --why >why
grep -q 'runs  *target, type  *one of each' why || die "no attributes of runs: $(<why)"
stages=$(grep -c ' edges  *8,000  *[0-9.]*  ' why)
[ "$stages" -ge 5 ] && [ "$(grep -c '^ * runs .* taken$' why)" = "$stages" ] || die "not every stage by runs: $(<why)"
# Programs that were compared: one is taken, of those that fit the shortest, or hardly longer.
python3 - <<'PY' || die "programs: $(<why)"
rows = [line for line in open("why").read().split("\nprograms ")[1].split("\n\n")[0].split("\n")[1:]]
seconds = [float(row[72:82]) for row in rows if "no plan" not in row]
taken = [float(row[72:82]) for row in rows if row.endswith("  taken")]
assert len(rows) >= 3 and len(taken) == 1 and taken[0] <= 1.02 * min(seconds), rows
assert sum(row.startswith("products by type of edges, in tiles ") for row in rows) == 1, rows
PY
gnnstream plan store "${one[@]}" --products pairs --json >plan
[ "$(field products)" = "$pairs" ] || die "$(field products) products of pairs, not $pairs"
gnnstream plan store "${one[@]}" --products pairs --why >why
grep -q 'pairs  *operand, type  *one of each' why && [ "$(grep -c '^ * pairs .* taken$' why)" = "$stages" ] ||
    die "not every stage by pairs: $(<why)"
refused 2 'leave out one of --tasks and --why' gnnstream plan store "${one[@]}" --tasks --why
gnnstream plan store "${one[@]}" --products edges --json >plan
[ "$(field products)" = 32000 ] || die "edge by edge: $(field products) products"

two=(--model rgcn --layers 2 --hidden 8 --epochs 3 --seed 2)
gnnstream train store "${two[@]}" --products edges --metrics edges >out
gnnstream train store "${two[@]}" --products runs --metrics runs --save whole.safetensors >out
gnnstream train store "${two[@]}" --products pairs --threads 1 --metrics pairs --save pairs.safetensors >out
gnnstream train store "${two[@]}" --products pairs --threads 3 --save threads.safetensors >out
cmp pairs.safetensors threads.safetensors || die "pairs: bits depend on the number of threads"
gnnstream partition graph cut --parts 3 >made
gnnstream train cut "${two[@]}" --products pairs --device cpu:2 --metrics devices >out
python3 - <<'PY'
import json
of = [[json.loads(line)["loss"] for line in open(name)] for name in ("edges", "runs", "pairs", "devices")]
assert len(of[0]) == 3 and all(abs(a - of[0][i]) < 1e-5 * a for way in of for i, a in enumerate(way)), of
PY
gnnstream train store "${two[@]}" --epochs 2 --products runs --checkpoint state --checkpoint-every 1 >out
gnnstream train store "${two[@]}" --products runs --resume state --save resumed.safetensors >out 2>words
cmp whole.safetensors resumed.safetensors || die "going on changed bits"
! grep -q warning words || die "$(<words)"
for way in runs pairs; do
    gnnstream plan store --model gcn --products "$way" >out 2>words
    grep -q "warning: --products $way: no product by edge type is made so" words || die "said: $(<words)"
done

# Edges of few sources: forward a product for each of their pairs with a type, backward one for each run, as both are by
# source; that is what is chosen, and it is what a device is said to make.
python3 - <<'PY'
import array, random, struct
draw = random.Random(5)
edges = [(draw.randrange(60), draw.randrange(60, 1024)) for _ in range(8000)]
types = [draw.randrange(20) for _ in edges]
for name, kind, shape, values in (("edges", "<i8", (8000, 2), array.array("q", [v for e in edges for v in e])),
                                  ("edge_types", "<i2", (8000,), array.array("h", types))):
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    with open(f"graph/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + values.tobytes())
print(4 * len({(e[0], t) for e, t in zip(edges, types)}), file=open("few", "w"))
PY
gnnstream partition graph few.store --parts 1 >made
gnnstream plan few.store "${one[@]}" --json >plan
[ "$(field products)" = "$(<few)" ] || die "few sources: $(field products) products, not $(<few)"
gnnstream train few.store "${two[@]}" --metrics chosen >out
gnnstream train few.store "${two[@]}" --products edges --metrics edges >out
python3 - <<'PY'
import json
of = [[json.loads(line)["loss"] for line in open(name)] for name in ("edges", "chosen")]
assert len(of[0]) == 3 and all(abs(a - b) < 1e-5 * a for a, b in zip(*of)), of
PY

# A budget that has no room for what pairs need makes runs of the same stages, where these are shorter, or edges.
least=$(gnnstream plan few.store "${two[@]}" --host-memory 1M 2>&1 >out | grep -o 'at least [0-9]*[KMG]')
[ -n "$least" ] || die "no smallest budget is said"
gnnstream train few.store "${two[@]}" --host-memory "${least##* }" --metrics least >out 2>words || die "$(<words)"
python3 - <<'PY'
import json
of = [[json.loads(line)["loss"] for line in open(name)] for name in ("edges", "least")]
assert all(abs(a - b) < 1e-5 * a for a, b in zip(*of)), of
PY

# A run of 100 epochs measures the ways before the first one. The next finds what was measured, makes no such pass and
# has the same bits: the pass leaves no trace. A short run takes the ways of the record, too, and where none can be kept
# nothing is measured.
long=("${one[@]}" --epochs 100 --seed 2 --threads 1)
measured() { gnnstream plan few.store "${long[@]}" --why >why; grep -c ', as measured$' why; }
! measured >out || die "measured before any run: $(<why)"
XDG_CACHE_HOME=/dev/null gnnstream train few.store "${long[@]}" --save unkept.safetensors >out 2>&1
! measured >out || die "kept where nothing can be: $(<why)"
gnnstream train few.store "${long[@]}" --save first.safetensors >out 2>&1
[ "$(measured)" -ge 2 ] || die "nothing is said to be measured: $(<why)"
gnnstream train few.store "${long[@]}" --save second.safetensors >out 2>&1
cmp first.safetensors second.safetensors || die "measuring changed bits"
# What the record says is taken: of each stage in turn another way.
for way in 0 1 2; do
    python3 - "$way" "$XDG_CACHE_HOME"/gnnstream/machine-*.json <<'PY'
import json, sys
for path in sys.argv[2:]:
    with open(path) as f:
        record = json.load(f)
    for k in range(0, len(record.get("stages", [])), 4):
        for i in range(3): # those that were measured
            if record["stages"][k + 1 + i] > 0:
                record["stages"][k + 1 + i] = 1e-9 if i == int(sys.argv[1]) else 1
    with open(path, "w") as f:
        json.dump(record, f)
PY
    name=(edges runs pairs)
    measured >out
    grep -q " ${name[way]}  .* taken, as measured$" why || die "${name[way]} not taken: $(<why)"
    gnnstream train few.store "${long[@]}" --epochs 3 --metrics "forged.$way" >out 2>&1
done
python3 - <<'PY'
import json
of = [[json.loads(line)["loss"] for line in open(f"forged.{way}")] for way in range(3)]
assert len(of[0]) == 3 and all(abs(a - of[0][i]) < 1e-5 * a for way in of for i, a in enumerate(way)), of
PY
