# predict --softmax, --argmax, --embeddings: against numbers made of the logits, by Python alone.
small_store
gnnstream train store --model gcn --hidden 6 --layers 3 --epochs 5 --save w.safetensors >result
gnnstream predict store --weights w.safetensors --logits l.npy --argmax a.npy --embeddings e.npy >result
gnnstream predict store --weights w.safetensors --logits p.npy --softmax >result
gnnstream predict store --weights w.safetensors --embeddings alone.npy >result
cmp e.npy alone.npy || die 'embeddings depend on what else is asked for'
gnnstream train store --model gcn --hidden 6 --layers 3 --jk cat --epochs 2 --save j.safetensors >result
gnnstream predict store --weights j.safetensors --embeddings j.npy --logits jl.npy >result
cat >check.py <<'PY'
import ast, json, math, struct


def npy(path):
    with open(path, "rb") as file:
        data = file.read()
    head = 10 + struct.unpack("<H", data[8:10])[0]
    info = ast.literal_eval(data[10:head].decode())
    kind = {"<f4": "f", "<i8": "q"}[info["descr"]]
    numbers = struct.unpack("<%d%s" % ((len(data) - head) // struct.calcsize(kind), kind), data[head:])
    wide = info["shape"][1] if len(info["shape"]) > 1 else 1
    return info["shape"], [numbers[i:i + wide] for i in range(0, len(numbers), wide)]


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {k: (v["shape"], struct.unpack("<%df" % ((v["data_offsets"][1] - v["data_offsets"][0]) // 4),
                                          data[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]]))
            for k, v in header.items() if k != "__metadata__"}


(_, logits), (shape, classes), (_, shares) = npy("l.npy"), npy("a.npy"), npy("p.npy")
assert shape == (1500,), shape
for row, best, share in zip(logits, classes, shares):
    assert best[0] == row.index(max(row))
    e = [math.exp(x - max(row)) for x in row]
    assert all(abs(s - x / sum(e)) < 1e-6 for s, x in zip(share, e)), (row, share)
assert npy("e.npy")[0] == (1500, 6)
# jumping knowledge: the last linear map of the embeddings is the logits
shape, rows = npy("j.npy")
assert shape == (1500, 18), shape
w = tensors("j.safetensors")
(_, weight), (_, bias) = w["lin.weight"], w["lin.bias"]
for row, z in zip(rows[:50], npy("jl.npy")[1]):
    for c in range(3):
        want = sum(x * y for x, y in zip(row, weight[18 * c:18 * c + 18])) + bias[c]
        assert abs(z[c] - want) < 1e-5 * (1 + abs(want)), (z[c], want)
PY
python3 check.py || die 'other numbers'

predict='gnnstream predict store --weights w.safetensors'
refused 2 '--logits, --argmax, --scores or --embeddings is missing' $predict
refused 2 '--softmax: is of --logits, which is missing' $predict --softmax --argmax a.npy
refused 2 '--embeddings l.npy: another output has this name' $predict --logits l.npy --embeddings l.npy
gnnstream train store --model gcn --layers 1 --epochs 1 --save one.safetensors >result
refused 2 '--embeddings: nothing but the features stands before the last layer' \
    gnnstream predict store --weights one.safetensors --embeddings e.npy
gnnstream train store --model gcn --task regress --epochs 1 --save r.safetensors >result
refused 2 '--softmax: numbers that are predicted have no probabilities' \
    gnnstream predict store --task regress --weights r.safetensors --logits l.npy --softmax
refused 2 '--argmax a.npy: is of one class a vertex, and these are numbers' \
    gnnstream predict store --task regress --weights r.safetensors --argmax a.npy
nothing_left
