"""Features with names of their own (u.NAME, e.NAME): logits and gradients against their formulas in float64, by parts,
devices and types at rest; of several types of vertices; alone; what a budget spills; and what is refused.

named_features.py GNNSTREAM FOLDER"""

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys

from formulas import (array, check, each, flat, gradients_of, mean, nested, product, read_weights, relu, run, single,
                      take, total, write_weights)

WORK = sys.argv[2]
N, E, X, C = 10, 26, 3, 4
TEXT = """
layer near(h[in]) -> [out]:
    param W[out, in], V[out, 2], R[out, edge_features], Q[out, 1], b[out]
    m = relu(u.h @ W' + (u.pos - v.pos) @ V' + e.x @ R' + e.time * b)
    return sum(m * e.time) * age + mean(u.age * u.pos) @ V' + age @ Q'
"""


def layer(g, p, h):
    named = g["named"]
    u, v = take(h, g["src"]), take(named["pos"], g["dst"])
    far = each(lambda a, b: a - b, take(named["pos"], g["src"]), v)
    m = each(lambda a, b, c: a + b + c, product(u, p["W"]), product(far, p["V"]), product(g["x"], p["R"]))
    m = [[relu(y + t[0] * b) * t[0] for y, b in zip(row, p["b"])] for row, t in zip(m, g["time"])]
    scaled = [[a[0] * y for y in row] for a, row in zip(named["age"], named["pos"])]
    y = product(mean(g, take(scaled, g["src"])), p["V"])
    own = product(named["age"], p["Q"])
    return [[s * a[0] + b + c for s, b, c in zip(*r)] for a, r in zip(named["age"], zip(total(g, m), y, own))]


def logits_of(g, tensors):
    h = g["h"]
    for i in range(2):
        prefix = "convs.%d." % i
        h = layer(g, {n[len(prefix):]: nested(v, s) for n, (s, v) in tensors.items() if n.startswith(prefix)}, h)
        h = each(relu, h) if i == 0 else h
    return h


def drawn(draw, rows, columns):
    return [[round(draw.gauss(0, 1) * 64) / 64 for _ in range(columns)] for _ in range(rows)] # exact in two bytes


def put(folder, name, rows):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    one = len(rows[0]) == 1 and name.startswith(("features/", "edge_features/"))
    array(path, "f4", (len(rows),) if one else (len(rows), len(rows[0])), flat(rows))


def made(draw):
    """The graph as its formulas have it, and its folder."""
    g = {"n": N, "src": [draw.randrange(N) for _ in range(E)], "dst": [draw.randrange(N - 1) for _ in range(E)],
         "h": drawn(draw, N, X), "x": drawn(draw, E, 2), "time": drawn(draw, E, 1),
         "named": {"age": drawn(draw, N, 1), "pos": drawn(draw, N, 2)},
         "y": [draw.randrange(C) for _ in range(N - 1)] + [C - 1]}
    folder = os.path.join(WORK, "graph")
    os.makedirs(folder)
    array(folder + "/edges.npy", "i8", (E, 2), [v for pair in zip(g["src"], g["dst"]) for v in pair])
    array(folder + "/labels.npy", "i8", (N,), g["y"])
    array(folder + "/train_idx.npy", "i8", (N,), list(range(N)))
    put(folder, "features.npy", g["h"])
    put(folder, "edge_features.npy", g["x"])
    put(folder, "edge_features/time.npy", g["time"])
    for name, rows in g["named"].items():
        put(folder, "features/%s.npy" % name, rows)
    return g


def partition(store, *options, folder="graph"):
    run("partition", os.path.join(WORK, folder), os.path.join(WORK, store), "--force", *options)
    run("verify", os.path.join(WORK, store))


def weights(draw, inputs):
    shapes = {"W": (4, 4), "V": (4, 2), "R": (4, 2), "Q": (4, 1), "b": (4,)}
    tensors = {"convs.%d.%s" % (i, n): ((4, inputs) if i == 0 and n == "W" else s,) for i in range(2)
               for n, s in shapes.items()}
    tensors = {n: (s, [single(draw.gauss(0, 0.5)) for _ in range(math.prod(s))]) for n, (s,) in tensors.items()}
    write_weights(os.path.join(WORK, "w.safetensors"), tensors)
    return tensors


def shape_of(text):
    path = os.path.join(WORK, "near.gnn")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return ["--model", path, "--layers", "2", "--hidden", "4"]


def exact(draw, g):
    for parts, kind in (("1", "f32"), ("8", "f32"), ("3", "bf16")):
        partition("store" + parts + kind, "--parts", parts, "--method", "random", "--feature-type", kind)
    tensors, shape = weights(draw, X), shape_of(TEXT)
    gradient = gradients_of(lambda t: logits_of(g, t), g, tensors)
    for how in (["store1f32", "--device", "cpu"], ["store8f32", "--device", "cpu"], ["store8f32", "--device", "cpu:2"],
                ["store3bf16", "--device", "cpu", "--threads", "1"],
                ["store8f32", "--device", "cpu", "--no-hoist", "--no-move"],
                ["store1f32", "--device", "cpu", "--sampler", "neighbor", "--batch-size", "10", "--fanout", "100,100"]):
        check(WORK, shape, tensors, gradient, logits_of(g, tensors), how)
    # Without features.npy x is what has a name, side by side.
    os.rename(WORK + "/graph/features.npy", WORK + "/features.npy")
    partition("store1f32", "--parts", "2")
    os.rename(WORK + "/features.npy", WORK + "/graph/features.npy")
    alone = dict(g, h=[a + p for a, p in zip(g["named"]["age"], g["named"]["pos"])])
    tensors = weights(draw, 3)
    check(WORK, shape, tensors, gradients_of(lambda t: logits_of(alone, t), alone, tensors), logits_of(alone, tensors),
          ["store1f32", "--device", "cpu"])


def typed(draw, g):
    """The same edges between vertices of two types: of the first age alone, of the other both and x of two columns."""
    nodes, half = WORK + "/typed/nodes/", N // 2
    edges = {("a", "b"): [], ("b", "b"): [], ("a", "a"): [], ("b", "a"): []}
    for k in range(E):
        edges["ab"[g["src"][k] >= half], "ab"[g["dst"][k] >= half]].append(k)
    for of, first, last in (("a", 0, half), ("b", half, N)):
        put(nodes + of, "features/age.npy", g["named"]["age"][first:last])
    put(nodes + "b", "features.npy", [r[:2] for r in g["h"][half:]])
    put(nodes + "b", "features/pos.npy", g["named"]["pos"][half:])
    array(nodes + "b/labels.npy", "i8", (N - half,), g["y"][half:])
    array(nodes + "b/train_idx.npy", "i8", (N - half,), list(range(N - half)))
    for (u, v), own in edges.items():
        folder = "%s/typed/edges/%s__to__%s" % (WORK, u, v)
        put(folder, "edge_features.npy", take(g["x"], own))
        put(folder, "edge_features/time.npy", take(g["time"], own))
        ends = [x for k in own for x in (g["src"][k] - half * (u == "b"), g["dst"][k] - half * (v == "b"))]
        array(folder + "/edges.npy", "i8", (len(own), 2), ends)
    partition("typed.store", "--parts", "3", "--method", "random", folder="typed")
    own = dict(g, h=[[0.0, 0.0]] * half + [r[:2] for r in g["h"][half:]], y=[None] * half + g["y"][half:],
               named={"age": g["named"]["age"], "pos": [[0.0, 0.0]] * half + g["named"]["pos"][half:]})
    tensors = weights(draw, 2)
    check(WORK, shape_of(TEXT), tensors, gradients_of(lambda t: logits_of(own, t), own, tensors),
          logits_of(own, tensors)[half:], ["typed.store", "--device", "cpu"])
    os.rename(nodes + "a/features/age.npy", nodes + "a/features/pos.npy")
    refused("b/features/pos.npy: has 2 columns, and pos of another type has 1", "partition", WORK + "/typed",
            WORK + "/bad")


def spilled(draw):
    """The least budget, in which rows are read and written again, changes nothing but last bits."""
    n, large, store = 6000, WORK + "/large", WORK + "/large.store"
    run("generate", "sbm", large, "--vertices", str(n), "--edges", "30000", "--features", "24", "--classes", "4")
    os.makedirs(large + "/features")
    put(large, "features/age.npy", drawn(draw, n, 1))
    run("partition", large, store, "--parts", "16")
    shape = shape_of("layer l(h[in]) -> [out]:\n    param W[out, in] ~ glorot\n"
                     "    return sum(tanh(u.h @ W' + v.age) * u.age) + h @ W'\n")
    shape[-1:] = ["64", "--threads", "1"]
    words = [sys.argv[1], "plan", store, *shape, "--host-memory"]
    least = subprocess.run([*words, "1M"], capture_output=True, text=True, check=False).stderr
    least = re.search("at least ([0-9]+M)", least).group(1)
    plan = json.loads(subprocess.run([*words, least, "--json"], capture_output=True, text=True, check=True).stdout)
    if min(plan["passes"][0][k] for k in ("read_bytes", "written_bytes")) == 0:
        sys.exit("nothing is spilled: %s" % plan["passes"][0])
    found = []
    for memory in ("1G", least):
        run("train", store, *shape, "--host-memory", memory, "--epochs", "3", "--save", WORK + "/left.safetensors",
            "--keep", "last")
        found.append(read_weights(WORK + "/left.safetensors"))
    for name, values in found[0].items():
        most = max(abs(x) for x in values)
        if not all(abs(a - b) <= 1e-4 * most for a, b in zip(values, found[1][name])):
            sys.exit("spilled: other weights of " + name)


def refused(words, *command):
    done = subprocess.run([sys.argv[1], *command], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.split("\n") if line.startswith("gnnstream") and "warning" not in line]
    if done.returncode == 0 or len(lines) != 1 or words not in lines[0]:
        sys.exit("expected '%s' of %s: %d %s" % (words, " ".join(command), done.returncode, done.stderr))


def refusals(g):
    graph, store = WORK + "/graph", WORK + "/store8f32"

    def text(expression, words):
        refused(words, "train", store, *shape_of("layer l(h[in]) -> [out]:\n    param W[out, in]\n    return sum(%s) @ "
                                                 "W'\n" % expression))

    def file(name, write, words):
        path = os.path.join(graph, name)
        kept = open(path, "rb").read() if os.path.exists(path) else None
        write(path)
        refused(words, "partition", graph, WORK + "/bad")
        if os.path.exists(WORK + "/bad"):
            sys.exit("a store of: " + words)
        os.remove(path)
        if kept is not None:
            with open(path, "wb") as f:
                f.write(kept)

    text("u.h * u.height", "there is no 'height' here; the graph's features with names are age, pos")
    text("u.h * e.height", "'e.height': the graph's edges have e.weight, e.type, e.x, and by name time")
    text("u.h * u.pos", "widths")
    file("features/age.npy", lambda p: array(p, "f4", (N - 1,), [0.0] * (N - 1)),
         "features/age.npy: has 9 rows; there are 10 vertices")
    file("edge_features/time.npy", lambda p: array(p, "f4", (E + 1,), [0.0] * (E + 1)),
         "edge_features/time.npy: has 27 rows; there are 26 edges")
    file("features/age.npy", lambda p: array(p, "f4", (N,), [0.0] * 7 + [math.nan] * 3),
         "features/age.npy: row 7, column 0: is not a finite number")
    file("features/3d.npy", lambda p: array(p, "f4", (N,), [0.0] * N), "'3d' is no name that a text could say")
    file("features/type.npy", lambda p: array(p, "f4", (N,), [0.0] * N), "'type' is no name that a text could say")
    file("features/age.npy", lambda p: open(p, "wb").write(b"no array"), "features/age.npy")
    refused("features of its own", "partition", graph, WORK + "/bad", "--random-features", "4")
    manifest = open(store + "/manifest.json", "rb").read()
    if b'"version":\t7' not in manifest or b'"named_features"' not in manifest:
        sys.exit("manifest: " + manifest.decode())
    info = subprocess.run([sys.argv[1], "info", store], capture_output=True, text=True, check=True).stdout
    if "by name    age 1, pos 2\n" not in info or "of edges   time 1\n" not in info:
        sys.exit(info)


def main():
    draw = random.Random(5)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    g = made(draw)
    exact(draw, g)
    refusals(g)
    typed(draw, g)
    if "GS_SANITIZED" not in os.environ:
        spilled(draw)
    shutil.rmtree(WORK)


main()
