"""Models that compute with the features of edges: logits and gradients against their formulas in float64.

edge_models.py GNNSTREAM TEXTS WORK DEVICE [MODEL ...]: each text of TEXTS is trained for one step of gradient descent
from drawn weights, so that what is left of them is their gradient; that is compared with central differences of the
loss as it is written here, in Python's own numbers. Whole graphs of 1 and 8 parts, and batches of all vertices.
"""

import math
import os
import random
import shutil
import sys

from formulas import (array, beside, check, each, flat, gradients_of, in_turn, into, mean, nested, of_heads, product,
                      relu, run, sigmoid, single, softmax, spread, take, total, write_weights)

TEXTS, WORK, DEVICE, MODELS = sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
N, E, F, K, C = 10, 26, 4, 3, 4


# -- the layers ----------------------------------------------------------------------------

def edgeconv(g, p, h, heads, fold=max):
    u, v = take(h, g["src"]), take(h, g["dst"])
    z = product(beside(v, each(lambda a, b: a - b, u, v)), p["nn.0.weight"], p["nn.0.bias"])
    return into(g, product(each(relu, z), p["nn.2.weight"], p["nn.2.bias"]), fold)


def edgemin(g, p, h, heads):
    return edgeconv(g, p, h, heads, min)


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
    own = {"n": N, "dst": take(g["dst"], edges), "src": take(g["src"], edges)}
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


def layer_norm(rows):
    deviations = [[x - sum(r) / len(r) for x in r] for r in rows]
    return [[x / math.sqrt(sum(y * y for y in r) / len(r) + 1e-5) for x in r] for r in deviations]


def gatedgcn(g, p, h, heads):
    own, b, d, f = (product(h, p[n + ".weight"], p[n + ".bias"]) for n in "ABDE")
    c = product(g["z"], p["C.weight"], p["C.bias"])
    z = each(lambda x, y, w: x + y + w, take(d, g["src"]), take(f, g["dst"]), c)
    g["z"] = each(relu, layer_norm(z)) # for the next layer
    gate = each(sigmoid, z)
    m = total(g, each(lambda x, y: x * y, gate, take(b, g["src"])))
    return each(lambda a, x, y: a + x / (y + 1e-6), own, m, total(g, gate))


def att_shape(o, heads):
    return (1, heads, o // heads)


def linear(name, rows, columns, bias=True):
    shapes = {name + ".weight": (rows, columns)}
    if bias:
        shapes[name + ".bias"] = (rows,)
    return shapes


def shapes_of(model, i, o, heads, k):
    if model in ("edgeconv", "edgemin"):
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
    if model == "gatedgcn":
        return {n: s for part in "ABDE" for n, s in linear(part, o, i).items()} | linear("C", o, k)
    return {**linear("lin_key", o, i + K), **linear("lin_query", o, i + K), **linear("lin_value", o, i + K),
            **linear("lin_skip", o, i, False), "bias": (o,)}


LAYER = {"edgeconv": edgeconv, "edgemin": edgemin, "gine": gine, "nnconv": nnconv, "pna": pna,
         "transformer": transformer, "gatv2": gatv2, "resgated": resgated, "gatedgcn": gatedgcn}
HEADS = {"nnconv": 4, "transformer": 2, "gatv2": 2}


# -- the tests -------------------------------------------------------------------------------

def make_graph(draw):
    g = {"n": N, "src": [draw.randrange(N) for _ in range(E)],
         "dst": [draw.randrange(N - 1) for _ in range(E)]}
    g["src"][:3], g["dst"][:3] = g["src"][3:6], g["dst"][3:6] # parallel edges, and a loop; the last vertex has no edge
    g["src"][7] = g["dst"][7]
    g["src"][8:10], g["dst"][8:10] = [1, 4], [2, 2] # of two sources that are alike: a largest value has both
    g["x"] = [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(K)] for _ in range(E)] # exact in two bytes
    g["h"] = [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(F)] for _ in range(N)]
    g["h"][4] = g["h"][1]
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
    h, g["z"] = g["h"], g["x"]
    for i in range(2):
        prefix = "convs.%d." % i
        p = {n[len(prefix):]: nested(v, s) for n, (s, v) in tensors.items() if n.startswith(prefix)}
        h = LAYER[model](g, p, h, heads)
        h = each(relu, h) if i == 0 else h
    return h


def main():
    draw = random.Random(3)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    g = make_graph(draw)
    for number, model in enumerate(MODELS or sorted(LAYER)):
        heads = HEADS.get(model, 1)
        tensors = {"convs.%d.%s" % (i, n): (s, [single(draw.gauss(0, 0.5)) for _ in range(math.prod(s))])
                   for i in range(2) for n, s in shapes_of(model, 4, 4, heads, K if i == 0 else 4).items()}
        write_weights(os.path.join(WORK, "w.safetensors"), tensors)
        text = os.path.join(TEXTS, model + ".gnn") # or built in
        shape = ["--model", text if os.path.exists(text) else model, "--layers", "2", "--hidden", "4", "--heads",
                 str(heads)]
        gradient = gradients_of(lambda t: logits_of(model, g, t, heads), g, tensors)
        hows = [["store1f32", "--device", DEVICE], ["store8f32", "--device", DEVICE]]
        if DEVICE == "cpu":
            hows += in_turn([["store8f32", "--device", "cpu:2"], ["store3bf16", "--device", "cpu", "--threads", "1"],
                             ["store3f16", "--device", "cpu", "--sampler", "neighbor", "--batch-size", "10",
                              "--fanout", "100,100"]], number)
        for how in hows:
            check(WORK, shape, tensors, gradient, logits_of(model, g, tensors, heads), how)
    shutil.rmtree(WORK)


main()
