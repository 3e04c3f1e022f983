# In-edges drawn by weight or by type. Where only as many edges as the fanout have a weight, these are drawn and no
# others; where a vertex has as many of each type, the fanout of each type takes them all.
python3 - <<'PY'
import os, random, struct

VERTICES, DRAWN, IDLE, TYPES = 400, 3, 6, 3
random.seed(5)

def array(path, form, shape, numbers):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (form, shape)
    header += " " * (118 - len(header) - 1) + "\n"
    code = {"f4": "f", "i4": "i", "i8": "q"}[form]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(numbers), code), *numbers))

label = [v % 4 for v in range(VERTICES)]
features = [random.gauss(label[v] == k, 1) for v in range(VERTICES) for k in range(8)]

def graph(name, edges, weights=None, types=None):
    os.mkdir(name)
    array(f"{name}/edges.npy", "i8", f"(2, {len(edges)})", [u for u, _ in edges] + [v for _, v in edges])
    array(f"{name}/features.npy", "f4", f"({VERTICES}, 8)", features)
    array(f"{name}/labels.npy", "i8", f"({VERTICES},)", label)
    parts = {"train": range(0, 200), "valid": range(200, 300), "test": range(300, 400)}
    for part, of in parts.items():
        array(f"{name}/{part}_idx.npy", "i8", f"({len(of)},)", list(of))
    if weights:
        array(f"{name}/edge_weights.npy", "f4", f"({len(edges)},)", weights)
    if types:
        array(f"{name}/edge_types.npy", "i4", f"({len(edges)},)", types)

alive = [(random.randrange(VERTICES), v) for v in range(VERTICES) for _ in range(DRAWN)]
idle = [(random.randrange(VERTICES), v) for v in range(VERTICES) for _ in range(IDLE)]
graph("alive", alive)
graph("weighted", alive + idle, weights=[random.uniform(0.5, 2) for _ in alive] + [0] * len(idle))
graph("typed", alive + idle, types=[k % TYPES for k in range(len(alive))] +
      [k % IDLE // 2 for k in range(len(idle))])
PY
for graph in alive weighted typed; do
    gnnstream partition $graph $graph.store --parts 3 --method natural >made
done

# loss STORE OPTIONS...: after two epochs, with five digits behind the point at most.
loss()
{
    rm -f m.jsonl
    gnnstream train "$1" --hidden 8 --epochs 2 --sampler neighbor --batch-size 70 --seed 3 --metrics m.jsonl \
        "${@:2}" >result || die "$*"
    tail -n 1 m.jsonl | sed 's/.*"loss": \([0-9.]*\).*/\1/'
}

# same A B: up to rounding.
same() { awk "BEGIN { exit !($1 - $2 < 2e-4 && $2 - $1 < 2e-4) }"; }

sage=(--model sage --ignore-edge-weights)
want=$(loss alive.store "${sage[@]}" --fanout 0,0)
got=$(loss weighted.store "${sage[@]}" --fanout 3,3 --weighted)
same "$want" "$got" || die "by weight the loss is $got, and $want of those edges alone"
got=$(loss weighted.store "${sage[@]}" --fanout 3,3)
! same "$want" "$got" || die "edges without weight are never drawn, though weights were not asked for"

want=$(loss typed.store --model rgcn --fanout 0,0)
got=$(loss typed.store --model rgcn --fanout 3,3 --by-type)
same "$want" "$got" || die "by type the loss is $got, and $want of all edges"
got=$(loss typed.store --model rgcn --fanout 3,3)
! same "$want" "$got" || die 'a fanout of three takes nine edges'

batches=(--sampler neighbor --fanout 3,3 --batch-size 70)
refused 1 '--weighted: the edges of alive.store have no weights' \
    gnnstream train alive.store --model sage "${batches[@]}" --weighted
refused 1 '--by-type: the edges of alive.store have no types' \
    gnnstream train alive.store --model sage "${batches[@]}" --by-type
refused 2 '--weighted: is of batches' gnnstream train alive.store --model sage --weighted
refused 2 '--by-type: is of --sampler neighbor' \
    gnnstream train alive.store --model sage --sampler cluster --batch-size 1 --by-type

# Where edges do not fit in memory, other draws are of those in the store; by weight a line says what would do.
gnnstream generate rmat large --vertices 50000 --edges 3000000 --features 8 --seed 1 >made
python3 - <<'PY'
import os, struct
edges = (os.path.getsize("large/edges.npy") - 128) // 16
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % edges
header += " " * (117 - len(header)) + "\n"
with open("large/edge_weights.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode())
    file.write(struct.pack("<%df" % edges, *[1 + k % 5 for k in range(edges)]))
PY
gnnstream partition large large.store --parts 8 --method natural >made
refused 1 '--weighted: edges that are drawn by weight are in memory' gnnstream train large.store --model sage \
    --ignore-edge-weights "${batches[@]}" --weighted --host-memory 20M
