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

from formulas import (array, beside, check, each, flat, gradients_of, in_turn, into, nested, product, relu, run,
                      sigmoid, single, softmax, spread, take, total, write_weights)

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
        w = matrices(i)
        rows = [w[t][u] for u, t in zip(g["src"], g["edge"])] if h is None else by_type(take(h, g["src"]), g["edge"], w)
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


def over_types(parts, f, types_of):
    """f, column by column, over the relations that can end at a vertex; parts: a list of rows for each relation."""
    return [[f([parts[t][v][c] for t in types_of(v)]) if types_of(v) else 0.0 for c in range(len(parts[0][0]))]
            for v in range(N)]


def soft(x):
    e = [math.exp(v - max(x)) for v in x]
    return [v / sum(e) for v in e]


def softmax_by_relation(g, scores):
    out = [None] * len(scores)
    for t in range(len(RELATIONS)):
        edges = [k for k in range(len(g["src"])) if g["edge"][k] == t]
        part = {"n": N, "dst": take(g["dst"], edges)}
        for k, row in zip(edges, softmax(part, take(scores, edges))):
            out[k] = row
    return out


def dot(a, b):
    return [[sum(x * y for x, y in zip(r, s))] for r, s in zip(a, b)]


def levels(g, p):
    def mean_of(part, rows):
        return into(part, rows, lambda x: sum(x) / len(x))

    def layer(h, i):
        q = {n[8:]: v for n, v in p.items() if n.startswith("convs.%d." % i)}
        x = product(h, transposed(q["k"]))
        ux, uh, vh = take(x, g["src"]), take(h, g["src"]), take(h, g["dst"])
        z = each(lambda a, b, c: math.tanh(a * b + c), ux, vh, uh)
        here = lambda v: [t for t, r in enumerate(RELATIONS) if list(TYPES).index(r[2]) == g["type"][v]]
        alpha = softmax_by_relation(g, [[s[0] + q["bias"][t]] for s, t in zip(dot(ux, vh), g["edge"])])
        wide = each(lambda a, b: math.tanh(a) * b, by_type(vh, g["edge"], q["w"]), ux)
        rows = beside(
            over_types(by_relation(g, z, lambda s, r: into(s, r, max)), lambda y: sum(y) / len(y), here),
            over_types(by_relation(g, z, mean_of), max, here),
            over_types(by_relation(g, ux, lambda s, r: into(s, r, min)), sum, here),
            over_types(by_relation(g, ux, total), lambda y: sum(a * b for a, b in zip(soft(y), y)), here),
            over_types(by_relation(g, ux, mean_of), min, here),
            total(g, [[a[0] * v for v in r] for a, r in zip(alpha, z)]),
            over_types(by_relation(g, by_type(uh, g["edge"], q["w"]), mean_of), max, here),
            *by_relation(g, wide, total))
        return product(rows, q["o"])

    return layer(g["h"], 0)


def rgat(g, p):
    def layer(h, i):
        q = {n[8:]: v for n, v in p.items() if n.startswith("convs.%d." % i)}
        heads, d = len(q["q"][0]), len(q["bias"]) // len(q["q"][0])
        x, y = (by_type(take(h, g[e]), g["edge"], q["weight"]) for e in ("src", "dst"))
        s = each(lambda a, b: max(a + b, 0.2 * (a + b)), product(y, transposed(q["q"])), product(x, transposed(q["k"])))
        m = each(lambda a, b: a * b, spread(softmax_by_relation(g, s), d), x)
        return [[v + b for v, b in zip(r, q["bias"])] for r in total(g, m)]

    return product(each(relu, layer(g["h"], 0)), p["lin.weight"])


def plus(rows, bias, types):
    return [[x + b for x, b in zip(r, bias[t])] for r, t in zip(rows, types)]


def hgt(g, p):
    q = {n[8:]: v for n, v in p.items() if n.startswith("convs.0.")}
    h = by_type(g["h"], g["type"], p["lin.weight"])
    x = plus(by_type(h, g["type"], q["kqv.weight"]), q["kqv.bias"], g["type"])
    heads = []
    for i in range(2):
        k, t, v = ([r[2 * (2 * j + i):2 * (2 * j + i) + 2] for r in x] for j in range(3))
        s = dot(take(t, g["dst"]), by_type(take(k, g["src"]), g["edge"], q["k%d" % i]))
        a = softmax(g, [[r[0] * q["p%d" % i][e] / math.sqrt(2)] for r, e in zip(s, g["edge"])])
        value = by_type(take(v, g["src"]), g["edge"], q["v%d" % i])
        heads.append(total(g, [[w[0] * y for y in r] for w, r in zip(a, value)]))
    y = each(lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2, beside(*heads))
    y = plus(by_type(y, g["type"], q["out.weight"]), q["out.bias"], g["type"])
    s = [sigmoid(q["skip"][t]) for t in g["type"]]
    return product([[w * a + (1 - w) * b for a, b in zip(r, o)] for w, r, o in zip(s, y, h)], p["last.weight"])


def han(g, p):
    def layer(h, i):
        q = {n[8:]: v for n, v in p.items() if n.startswith("convs.%d." % i)}
        x = plus(by_type(h, g["type"], q["proj.weight"]), q["proj.bias"], g["type"])
        a, b = (dot(take(x, g[e]), take(q[e], g["edge"])) for e in ("src", "dst"))
        s = softmax_by_relation(g, each(lambda u, v: max(u + v, 0.2 * (u + v)), a, b))
        m = [[w[0] * v for v in r] for w, r in zip(s, take(x, g["src"]))]
        writes, of, cites = (each(relu, r) for r in by_relation(g, m, total))
        papers = [v for v in range(N) if g["type"][v] == 2]

        def score(rows):
            t = each(math.tanh, product(take(rows, papers), q["k_lin.weight"], q["k_lin.bias"]))
            return sum(sum(c * d for c, d in zip(r, q["q"])) for r in t) / len(papers)

        w = soft([score(writes), score(cites)])
        return [[w[0] * c + w[1] * d for c, d in zip(writes[v], cites[v])] if v in papers else of[v] for v in range(N)]

    return layer(each(relu, layer(g["h"], 0)), 1)


def conv(index, **shapes):
    return {"convs.%d.%s" % (index, n.replace("__", ".")): s for n, s in shapes.items()}


def han_shapes(index, i, o):
    return conv(index, proj__weight=(3, i, o), proj__bias=(3, o), src=(3, o), dst=(3, o), q=(o,), k_lin__weight=(o, o),
                k_lin__bias=(o,))


def rgat_shapes(index, i, o, heads):
    return conv(index, weight=(3, i, o), q=(o, heads), k=(o, heads), bias=(o,))


def levels_shapes(index, i, o):
    return conv(index, w=(3, i, i), k=(i, i), bias=(3,), o=(o, 10 * i))


def layer_shapes(index, i, o):
    shapes = {"own": (3, i, o), "other": (3, i, o), "weight": (3, i, o), "bias": (3, o), "scale": (3,), "shift": (3, o)}
    return {"convs.%d.%s" % (index, n): s for n, s in shapes.items()}


SHAPES = {"projections": {"author.weight": (3, 2), "paper.weight": (3, 3), "emb.weight": (N, 3),
                          **layer_shapes(0, 3, 3), **layer_shapes(1, 3, C)},
          "levels": levels_shapes(0, 3, C),
          "rgat": {**rgat_shapes(0, 3, 4, 2), "lin.weight": (C, 4)},
          "hgt": {"lin.weight": (3, 3, 4), "last.weight": (C, 4),
                  **conv(0, kqv__weight=(3, 4, 12), kqv__bias=(3, 12), skip=(3,), k0=(3, 2, 2), k1=(3, 2, 2),
                         v0=(3, 2, 2), v1=(3, 2, 2), p0=(3,), p1=(3,), out__weight=(3, 4, 4), out__bias=(3, 4))},
          "han": {**han_shapes(0, 3, 3), **han_shapes(1, 3, C)},
          "rgcn": {**rgcn_shapes(0, N, 3, 0), **rgcn_shapes(1, 3, C, 0)},
          "rgcn_bases": {**rgcn_shapes(0, N, 3, 2), **rgcn_shapes(1, 3, C, 2)}}
MODEL = {"projections": projections, "levels": levels, "rgat": rgat, "hgt": hgt, "han": han, "rgcn": rgcn,
         "rgcn_bases": rgcn}
OPTIONS = {"rgcn_bases": ["--bases", "2"], "rgat": ["--heads", "2", "--hidden", "4"]}
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
    for number, model in enumerate(MODELS or sorted(MODEL)):
        tensors = {n: (s, [single(draw.gauss(0, 0.5)) for _ in range(math.prod(s))]) for n, s in SHAPES[model].items()}
        write_weights(os.path.join(WORK, "w.safetensors"), tensors)

        def logits_of(t, model=model):
            return MODEL[model](g, {n: nested(v, s) for n, (s, v) in t.items()})

        built_in = model in BUILT_IN
        shape = ["--model", model if built_in else os.path.join(TEXTS, model + ".gnn"), "--hidden", "3",
                 *OPTIONS.get(model, [])]
        gradient = gradients_of(logits_of, g, tensors)
        expected = [row for row, y in zip(logits_of(tensors), g["y"]) if y is not None]
        if model == "rgat" and DEVICE != "cpu": # no GPU has gradients of a matrix for all edges beside those by type
            shape.append("--no-batch")
        one, eight = ("bare1", "bare8") if built_in else ("store1", "store8")
        hows = [[one, "--device", DEVICE], [eight, "--device", DEVICE]]
        if DEVICE == "cpu":
            hows += in_turn([[eight, "--device", "cpu:2"],
                             [eight, "--device", "cpu", "--sampler", "neighbor", "--batch-size", "12", "--fanout",
                              "100,100"]], number)
        for how in hows:
            check(WORK, shape, tensors, gradient, expected, how)
    shutil.rmtree(WORK)


main()
