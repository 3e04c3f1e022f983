"""Models of graphs with several types of vertices: logits and gradients against their formulas in float64.

type_models.py GNNSTREAM TEXTS WORK DEVICE [MODEL ...]: as edge_models.py, on a graph of three types of vertices, of
which two have features, each of another width, and one has labels; with three relations. R-GCN is on the same graph
without features, as PyG's RGCNConv with x = None.
"""

import math
import os
import random
import shutil
import sys

from formulas import (array, check, each, flat, gradients_of, into, nested, product, relu, run, single, take, total,
                      write_weights)

TEXTS, WORK, DEVICE, MODELS = sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
TYPES = {"author": (4, 2), "field": (3, 0), "paper": (5, 3)} # vertices and features, in the order of ids
RELATIONS = [("author", "writes", "paper", 9), ("field", "of", "author", 7), ("paper", "cites", "paper", 8)]
N, C = 12, 3


def transposed(w):
    return [list(c) for c in zip(*w)]


def by_type(rows, types, matrices):
    """rows @ the matrix of each row's type"""
    return [product([r], transposed(matrices[t]))[0] for r, t in zip(rows, types)]


# -- the layers ----------------------------------------------------------------------------

def by_relation(g, rows, f):
    """f over the in-edges of each relation, a list of rows of vertices for each."""
    out = []
    for t in range(len(RELATIONS)):
        edges = [k for k in range(len(g["src"])) if g["edge"][k] == t]
        part = {"n": N, "dst": take(g["dst"], edges)}
        out.append(f(part, take(rows, edges)) if edges else [[0.0] * len(rows[0])] * N)
    return out


def projections(g, p):
    def layer(h, q):
        ends = list(zip(g["src"], g["dst"], g["edge"]))
        other = by_type(h, g["type"], q["other"])
        scale = take(q["scale"], g["type"])
        m = [[relu(x) * scale[u] + y * scale[v] for x, y in zip(other[u], q["shift"][t])] for u, v, t in ends]
        y = by_type(take(h, g["src"]), g["edge"], q["weight"])
        means = by_relation(g, y, lambda part, rows: into(part, rows, lambda x: sum(x) / len(x)))
        return each(lambda *x: sum(x), total(g, m), *means, by_type(h, g["type"], q["own"]),
                    take(q["bias"], g["type"]))

    h = []
    for v, x in enumerate(g["h"]):
        w = {0: p["author.weight"], 2: p["paper.weight"]}.get(g["type"][v])
        h.append(p["emb.weight"][v] if w is None else product([x[:len(w[0])]], w)[0])
    q = [{n[8:]: v for n, v in p.items() if n.startswith("convs.%d." % i)} for i in range(2)]
    h = each(relu, layer(h, q[0]))
    return [[y + 0.5 * x[0] + 0.25 * t for y in r] for r, x, t in zip(layer(h, q[1]), g["h"], g["type"])]


def rgcn(g, p):
    """Schlichtkrull et al., equations 2 and 3: a row for each relation and vertex, then matrices."""
    def matrices(i):
        w = p["convs.%d.weight" % i]
        comp = p.get("convs.%d.comp" % i)
        return w if comp is None else [[[sum(c * x for c, x in zip(r, v)) for v in zip(*rows)] for rows in zip(*w)]
                                       for r in comp]

    def layer(h, i):
        rows = [[matrices(i)[t][u][o] for o in range(3)] if h is None else
                product([h[u]], transposed(matrices(i)[t]))[0] for u, t in zip(g["src"], g["edge"])]
        means = by_relation(g, rows, lambda part, own: into(part, own, lambda x: sum(x) / len(x)))
        root = p["convs.%d.root" % i]
        own = root if h is None else product(h, transposed(root))
        return [[sum(x) + b for x, b in zip(zip(*r), p["convs.%d.bias" % i])] for r in zip(*means, own)]

    return layer(each(relu, layer(None, 0)), 1)


def rgcn_shapes(index, i, o, bases):
    shapes = {"weight": (bases or 3, i, o), "root": (i, o), "bias": (o,)}
    if bases:
        shapes["comp"] = (3, bases)
    return {"convs.%d.%s" % (index, n): s for n, s in shapes.items()}


def layer_shapes(index, i, o):
    shapes = {"own": (3, i, o), "other": (3, i, o), "weight": (3, i, o), "bias": (3, o), "scale": (3,), "shift": (3, o)}
    return {"convs.%d.%s" % (index, n): s for n, s in shapes.items()}


SHAPES = {"projections": {"author.weight": (3, 2), "paper.weight": (3, 3), "emb.weight": (N, 3),
                          **layer_shapes(0, 3, 3), **layer_shapes(1, 3, C)},
          "rgcn": {**rgcn_shapes(0, N, 3, 0), **rgcn_shapes(1, 3, C, 0)},
          "rgcn_bases": {**rgcn_shapes(0, N, 3, 2), **rgcn_shapes(1, 3, C, 2)}}
MODEL = {"projections": projections, "rgcn": rgcn, "rgcn_bases": rgcn}
OPTIONS = {"rgcn_bases": ["--bases", "2"]}
BUILT_IN = ["rgcn", "rgcn_bases"] # and of the graph without features


# -- the tests -------------------------------------------------------------------------------

def make_graph(draw):
    g = {"n": N, "src": [], "dst": [], "edge": [], "type": [], "h": []}
    folder, first = os.path.join(WORK, "graph"), {}
    widest = max(f for _, f in TYPES.values())
    for t, (name, (count, features)) in enumerate(TYPES.items()):
        first[name] = len(g["type"])
        rows = [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(features)] for _ in range(count)]
        os.makedirs(folder + "/nodes/" + name)
        if features:
            array(folder + "/nodes/%s/features.npy" % name, "f4", (count, features), flat(rows))
        g["type"] += [t] * count
        g["h"] += [r + [0.0] * (widest - features) for r in rows]
    for t, (u, name, v, count) in enumerate(RELATIONS):
        pairs = [(draw.randrange(TYPES[u][0]), draw.randrange(TYPES[v][0] - 1)) for _ in range(count - 1)]
        pairs.append(pairs[0]) # there twice
        os.makedirs(folder + "/edges/%s__%s__%s" % (u, name, v))
        array(folder + "/edges/%s__%s__%s/edges.npy" % (u, name, v), "i8", (count, 2), flat([list(x) for x in pairs]))
        g["src"] += [first[u] + x for x, _ in pairs]
        g["dst"] += [first[v] + x for _, x in pairs]
        g["edge"] += [t] * count
    papers = TYPES["paper"][0]
    own = [draw.randrange(C) for _ in range(papers)]
    array(folder + "/nodes/paper/labels.npy", "i8", (papers,), own)
    array(folder + "/nodes/paper/train_idx.npy", "i8", (papers,), list(range(papers)))
    g["y"] = [None] * first["paper"] + own
    for parts in ("1", "8"):
        for bare in (False, True):
            for name, (_, features) in TYPES.items() if bare else ():
                if features:
                    place = folder + "/nodes/%s/features.npy" % name
                    os.rename(place, place + ".away")
                with open(folder + "/nodes/%s/meta.json" % name, "w") as f:
                    f.write('{"num_nodes": %d}' % TYPES[name][0])
            store = os.path.join(WORK, ("bare" if bare else "store") + parts)
            run("partition", folder, store, "--parts", parts, "--method", "random")
            run("verify", store)
            for name, (_, features) in TYPES.items() if bare else ():
                if features:
                    place = folder + "/nodes/%s/features.npy" % name
                    os.rename(place + ".away", place)
    return g


def main():
    draw = random.Random(5)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    g = make_graph(draw)
    for model in MODELS or sorted(MODEL):
        tensors = {n: (s, [single(draw.gauss(0, 0.5)) for _ in range(math.prod(s))]) for n, s in SHAPES[model].items()}
        write_weights(os.path.join(WORK, "w.safetensors"), tensors)

        def logits_of(t, model=model):
            return MODEL[model](g, {n: nested(v, s) for n, (s, v) in t.items()})

        built_in = model in BUILT_IN
        shape = ["--model", model if built_in else os.path.join(TEXTS, model + ".gnn"), "--hidden", "3",
                 *OPTIONS.get(model, [])]
        gradient = gradients_of(logits_of, g, tensors)
        expected = [row for row, y in zip(logits_of(tensors), g["y"]) if y is not None]
        one, eight = ("bare1", "bare8") if built_in else ("store1", "store8")
        hows = [[one, "--device", DEVICE], [eight, "--device", DEVICE]]
        if DEVICE == "cpu":
            hows += [[eight, "--device", "cpu:2"],
                     [eight, "--device", "cpu", "--sampler", "neighbor", "--batch-size", "12", "--fanout", "100,100"]]
        for how in hows:
            check(WORK, shape, tensors, gradient, expected, how)
    shutil.rmtree(WORK)


main()
