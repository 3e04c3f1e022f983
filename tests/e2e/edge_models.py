"""Models that compute with the features of edges: logits and gradients against their formulas in float64.

edge_models.py GNNSTREAM TEXTS WORK DEVICE [MODEL ...]: each text of TEXTS is trained for one step of gradient descent
from drawn weights, so that what is left of them is their gradient; that is compared with central differences of the
loss as it is written here, in Python's own numbers. Whole graphs of 1 and 8 parts, and batches of all vertices.
"""

import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys

PROGRAM, TEXTS, WORK, DEVICE, MODELS = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
N, E, F, K, C = 10, 26, 4, 3, 4
STEP = 1e-5


# -- rows of numbers ------------------------------------------------------------------

def product(rows, w, bias=None):
    """rows @ w' + bias"""
    return [[sum(x * y for x, y in zip(r, v)) + (bias[i] if bias else 0) for i, v in enumerate(w)] for r in rows]


def each(f, *rows):
    return [[f(*v) for v in zip(*r)] for r in zip(*rows)]


def beside(*rows):
    return [sum((list(p) for p in r), []) for r in zip(*rows)]


def into(g, rows, f, empty=0.0):
    """f of the values of each vertex' in-edges, column by column."""
    out = []
    for v in range(N):
        own = [rows[k] for k in range(len(g["dst"])) if g["dst"][k] == v]
        out.append([f([r[c] for r in own]) if own else empty for c in range(len(rows[0]))])
    return out


def total(g, rows):
    return into(g, rows, sum)


def mean(g, rows):
    return into(g, rows, lambda x: sum(x) / len(x))


def softmax(g, scores):
    top = into(g, scores, max)
    e = [[math.exp(x - t) for x, t in zip(scores[k], top[g["dst"][k]])] for k in range(len(scores))]
    s = total(g, e)
    return [[x / t for x, t in zip(e[k], s[g["dst"][k]])] for k in range(len(e))]


def relu(x):
    return max(x, 0.0)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def take(rows, index):
    return [rows[i] for i in index]


# -- the layers ----------------------------------------------------------------------------

def edgeconv(g, p, h, heads):
    u, v = take(h, g["src"]), take(h, g["dst"])
    z = product(beside(v, each(lambda a, b: a - b, u, v)), p["nn.0.weight"], p["nn.0.bias"])
    return into(g, product(each(relu, z), p["nn.2.weight"], p["nn.2.bias"]), max)


def gine(g, p, h, heads):
    e = product(g["x"], p["lin.weight"], p["lin.bias"])
    m = total(g, each(lambda a, b: relu(a + b), take(h, g["src"]), e))
    return product(each(lambda a, b: a + b, h, m), p["nn.weight"], p["nn.bias"])


def nnconv(g, p, h, heads):
    t = product(g["x"], p["nn.weight"], p["nn.bias"])
    out = len(p["bias"])
    m = [[sum(x[i] * t[k][i * out + o] for i in range(len(x))) for o in range(out)]
         for k, x in enumerate(take(h, g["src"]))]
    return each(lambda a, b: a + b, total(g, m), product(h, p["lin.weight"], p["bias"]))


def pna(g, p, h, heads):
    e = product(g["x"], p["edge_encoder.weight"], p["edge_encoder.bias"])
    m = product(beside(take(h, g["dst"]), take(h, g["src"]), e), p["pre.weight"], p["pre.bias"])
    a, square = mean(g, m), mean(g, each(lambda x: x * x, m))
    s = each(lambda x, y: math.sqrt(relu(x - y * y) + 1e-5), square, a)
    rows = beside(a, into(g, m, max), into(g, m, min), s)
    degree = [g["dst"].count(v) for v in range(N)]
    more = [[x * math.log(d + 1) / 1.1 for x in r] for r, d in zip(rows, degree)]
    less = [[x * 1.1 / math.log(max(d, 1) + 1) for x in r] for r, d in zip(rows, degree)]
    y = product(beside(h, rows, more, less), p["post.weight"], p["post.bias"])
    return product(y, p["lin.weight"], p["lin.bias"])


def of_heads(rows, heads):
    d = len(rows[0]) // heads
    return [[sum(r[i * d:(i + 1) * d]) for i in range(heads)] for r in rows]


def spread(rows, d):
    return [[x for x in r for _ in range(d)] for r in rows]


def transformer(g, p, h, heads):
    k, q, x = (product(h, p["lin_%s.weight" % n], p["lin_%s.bias" % n]) for n in ("key", "query", "value"))
    f = product(g["x"], p["lin_edge.weight"])
    d = len(f[0]) // heads
    s = each(lambda a, b, c: a * (b + c), take(q, g["dst"]), take(k, g["src"]), f)
    a = softmax(g, [[x / math.sqrt(d) for x in r] for r in of_heads(s, heads)])
    y = total(g, each(lambda w, b, c: w * (b + c), spread(a, d), take(x, g["src"]), f))
    return each(lambda a, b: a + b, y, product(h, p["lin_skip.weight"], p["lin_skip.bias"]))


def gatv2(g, p, h, heads):
    edges = [k for k in range(E) if g["src"][k] != g["dst"][k]] # loops go, and each vertex gets one
    own = {"dst": take(g["dst"], edges), "src": take(g["src"], edges)}
    x = take(g["x"], edges)
    x = x + mean(own, x)
    own["dst"] = own["dst"] + list(range(N))
    own["src"] = own["src"] + list(range(N))
    l, r = product(h, p["lin_l.weight"], p["lin_l.bias"]), product(h, p["lin_r.weight"], p["lin_r.bias"])
    z = each(lambda a, b, c: a + b + c, take(l, own["src"]), take(r, own["dst"]), product(x, p["lin_edge.weight"]))
    att = [w for head in p["att"][0] for w in head]
    s = of_heads([[w * (v if v > 0 else 0.2 * v) for w, v in zip(att, row)] for row in z], heads)
    a = spread(softmax(own, s), len(att) // heads)
    y = total(own, each(lambda w, v: w * v, a, take(l, own["src"])))
    return [[v + b for v, b in zip(row, p["bias"])] for row in y]


def resgated(g, p, h, heads):
    u, v = beside(take(h, g["src"]), g["x"]), beside(take(h, g["dst"]), g["x"])
    k, q, x = (product(r, p["lin_%s.weight" % n], p["lin_%s.bias" % n])
               for r, n in ((v, "key"), (u, "query"), (u, "value")))
    y = total(g, each(lambda a, b, c: sigmoid(a + b) * c, k, q, x))
    return each(lambda a, b: a + b, y, product(h, p["lin_skip.weight"], p["bias"]))


def att_shape(o, heads):
    return (1, heads, o // heads)


def linear(name, rows, columns, bias=True):
    shapes = {name + ".weight": (rows, columns)}
    if bias:
        shapes[name + ".bias"] = (rows,)
    return shapes


def shapes_of(model, i, o, heads):
    if model == "edgeconv":
        return {**linear("nn.0", o, 2 * i), **linear("nn.2", o, o)}
    if model == "gine":
        return {**linear("lin", i, K), **linear("nn", o, i)}
    if model == "nnconv":
        return {**linear("nn", i * o, K), **linear("lin", o, i, False), "bias": (o,)}
    if model == "pna":
        return {**linear("edge_encoder", i, K), **linear("pre", i, 3 * i), **linear("post", o, 13 * i),
                **linear("lin", o, o)}
    if model == "transformer":
        return {**linear("lin_key", o, i), **linear("lin_query", o, i), **linear("lin_value", o, i),
                **linear("lin_edge", o, K, False), **linear("lin_skip", o, i)}
    if model == "gatv2":
        return {**linear("lin_l", o, i), **linear("lin_r", o, i), **linear("lin_edge", o, K, False),
                "att": att_shape(o, heads), "bias": (o,)}
    return {**linear("lin_key", o, i + K), **linear("lin_query", o, i + K), **linear("lin_value", o, i + K),
            **linear("lin_skip", o, i, False), "bias": (o,)}


LAYER = {"edgeconv": edgeconv, "gine": gine, "nnconv": nnconv, "pna": pna, "transformer": transformer, "gatv2": gatv2,
         "resgated": resgated}
HEADS = {"nnconv": 4, "transformer": 2, "gatv2": 2}


# -- files -----------------------------------------------------------------------------------

def array(path, kind, shape, values):
    head = repr({"descr": "<" + kind, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    code = {"f4": "f", "i8": "q"}[kind]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        f.write(struct.pack("<%d%s" % (len(values), code), *values))


def flat(x):
    return [v for part in x for v in flat(part)] if isinstance(x, list) else [x]


def nested(values, shape):
    if len(shape) == 1:
        return list(values)
    each_part = len(values) // shape[0]
    return [nested(values[i * each_part:(i + 1) * each_part], shape[1:]) for i in range(shape[0])]


def write_weights(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_weights(path):
    with open(path, "rb") as f:
        raw = f.read()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:begin]).items():
        if name != "__metadata__":
            part = raw[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]
            out[name] = struct.unpack("<%df" % (len(part) // 4), part)
    return out


def read_rows(path):
    with open(path, "rb") as f:
        raw = f.read()
    begin = 10 + struct.unpack("<H", raw[8:10])[0]
    values = struct.unpack("<%df" % (N * C), raw[begin:])
    return nested(list(values), (N, C))


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(words), done.stderr))


# -- the tests -------------------------------------------------------------------------------

def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def make_graph(draw):
    g = {"src": [draw.randrange(N) for _ in range(E)], "dst": [draw.randrange(N - 1) for _ in range(E)]}
    g["src"][:3], g["dst"][:3] = g["src"][3:6], g["dst"][3:6] # parallel edges, and a loop; the last vertex has no edge
    g["src"][7] = g["dst"][7]
    g["x"] = [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(K)] for _ in range(E)] # exact in two bytes
    g["h"] = [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(F)] for _ in range(N)]
    g["y"] = [draw.randrange(C) for _ in range(N)]
    folder = os.path.join(WORK, "graph")
    os.makedirs(folder)
    array(folder + "/edges.npy", "i8", (E, 2), [v for pair in zip(g["src"], g["dst"]) for v in pair])
    array(folder + "/edge_features.npy", "f4", (E, K), flat(g["x"]))
    array(folder + "/features.npy", "f4", (N, F), flat(g["h"]))
    array(folder + "/labels.npy", "i8", (N,), g["y"])
    array(folder + "/train_idx.npy", "i8", (N,), list(range(N)))
    for parts, kind in (("1", "f32"), ("8", "f32"), ("3", "bf16"), ("3", "f16")):
        run("partition", folder, os.path.join(WORK, "store" + parts + kind), "--parts", parts, "--method", "random",
            "--feature-type", kind)
        run("verify", os.path.join(WORK, "store" + parts + kind))
    return g


def logits_of(model, g, tensors, heads):
    h = g["h"]
    for i in range(2):
        prefix = "convs.%d." % i
        p = {n[len(prefix):]: nested(v, s) for n, (s, v) in tensors.items() if n.startswith(prefix)}
        h = LAYER[model](g, p, h, heads)
        h = each(relu, h) if i == 0 else h
    return h


def loss_of(model, g, tensors, heads):
    sum_ = 0.0
    for row, y in zip(logits_of(model, g, tensors, heads), g["y"]):
        top = max(row)
        sum_ += math.log(sum(math.exp(x - top) for x in row)) + top - row[y]
    return sum_ / N


def gradients_of(model, g, tensors, heads):
    out = {}
    for name, (_, values) in tensors.items():
        out[name] = []
        for k, x in enumerate(values):
            values[k] = x + STEP
            above = loss_of(model, g, tensors, heads)
            values[k] = x - STEP
            out[name].append((above - loss_of(model, g, tensors, heads)) / (2 * STEP))
            values[k] = x
    return out


def check(model, g, tensors, heads, gradient, how):
    store, weights, left = (os.path.join(WORK, n) for n in (how[0], "w.safetensors", "left.safetensors"))
    rows = os.path.join(WORK, "rows.npy")
    text = os.path.join(TEXTS, model + ".gnn")
    shape = ["--model", text, "--layers", "2", "--hidden", "4", "--heads", str(heads)]
    run("train", store, *shape, "--epochs", "1", "--optimizer", "sgd", "--lr", "1", "--init", weights, "--save", left,
        "--keep", "last", *how[1:])
    for name, values in read_weights(left).items():
        most = max(abs(x) for x in gradient[name])
        for k, after in enumerate(values):
            found = tensors[name][1][k] - after
            if not abs(found - gradient[name][k]) <= 1e-4 * most + 2e-6:
                sys.exit("%s %s: %s[%d]: gradient %.9g, expected %.9g" % (model, how, name, k, found,
                                                                          gradient[name][k]))
    run("predict", store, *shape, "--weights", weights, "--logits", rows, "--device", how[2])
    expected = logits_of(model, g, tensors, heads)
    most = max(abs(x) for x in flat(expected))
    for found, want in zip(flat(read_rows(rows)), flat(expected)):
        if not abs(found - want) <= 1e-5 * most:
            sys.exit("%s %s: logit %.9g, expected %.9g" % (model, how, found, want))


def main():
    draw = random.Random(3)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    g = make_graph(draw)
    for model in MODELS or sorted(LAYER):
        heads = HEADS.get(model, 1)
        tensors = {"convs.%d.%s" % (i, n): (s, [single(draw.gauss(0, 0.5)) for _ in range(math.prod(s))])
                   for i in range(2) for n, s in shapes_of(model, 4, 4, heads).items()}
        write_weights(os.path.join(WORK, "w.safetensors"), tensors)
        gradient = gradients_of(model, g, tensors, heads)
        hows = [["store1f32", "--device", DEVICE], ["store8f32", "--device", DEVICE]]
        if DEVICE == "cpu":
            hows += [["store8f32", "--device", "cpu:2"], ["store3bf16", "--device", "cpu", "--threads", "1"],
                     ["store3f16", "--device", "cpu", "--sampler", "neighbor", "--batch-size", "10", "--fanout",
                      "100,100"]]
        for how in hows:
            check(model, g, tensors, heads, gradient, how)
    shutil.rmtree(WORK)


main()
