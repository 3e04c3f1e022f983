"""Labels of edges: logits, losses and gradients beside their formulas, by parts; the same bits when gone on with.

edge_labels.py GNNSTREAM FOLDER"""

import math
import os
import random
import shutil
import sys

from formulas import STEP, array, beside, each, mean, product, read_rows, read_weights, relu, run, take, write_weights

N, E, IN, WIDTH, TYPES, CLASSES = 24, 60, 3, 4, 2, 3
SPLITS = {"train": 25, "valid": 9, "test": 4}
TEXT = """layer near(h[in]) -> [out]:
    param W[out, in] ~ glorot, b[out] ~ zeros
    return mean(u.h) @ W' + b
"""


def made(folder, classes, typed):
    """A graph as its formulas have it, and its files."""
    g = {"n": N, "src": [random.randrange(N) for _ in range(E)], "dst": [random.randrange(N) for _ in range(E)],
         "x": [[random.uniform(-1, 1) for _ in range(IN)] for _ in range(N)], "pairs": {}}
    os.makedirs(folder)
    array(folder + "/edges.npy", "i8", (E, 2), [v for e in zip(g["src"], g["dst"]) for v in e])
    array(folder + "/features.npy", "f4", (N, IN), [v for row in g["x"] for v in row])
    if typed:
        array(folder + "/edge_types.npy", "i8", (E,), [k % TYPES for k in range(E)])
    for split, m in SPLITS.items():
        p = {"h": [random.randrange(N) for _ in range(m)], "t": [random.randrange(N) for _ in range(m)],
             "type": [random.randrange(TYPES) for _ in range(m)],
             "y": [random.randrange(CLASSES) if classes else random.uniform(1, 5) for _ in range(m)]}
        g["pairs"][split] = p
        array(f"{folder}/{split}_edges.npy", "i8", (m, 2), [v for e in zip(p["h"], p["t"]) for v in e])
        array(f"{folder}/{split}_edge_labels.npy", "i8" if classes else "f4", (m,), p["y"])
        if typed:
            array(f"{folder}/{split}_edge_types.npy", "i8", (m,), p["type"])
    return g


def decoded(rows, p, w, decoder, typed):
    """lin2(relu(lin1(x) + r)), x being both rows or their product."""
    h, t = take(rows, p["h"]), take(rows, p["t"])
    x = beside(h, t) if decoder == "mlp" else each(lambda a, b: a * b, h, t)
    hidden = product(x, w["lin1.weight"], w["lin1.bias"])
    if typed:
        hidden = each(lambda a, r: a + r, hidden, take(w["rel_emb.weight"], p["type"]))
    return product(each(relu, hidden), w["lin2.weight"], w["lin2.bias"])


def losses(logits, y, classes):
    if not classes:
        return [(row[0] - v) ** 2 for row, v in zip(logits, y)]
    return [math.log(sum(math.exp(x) for x in row)) - row[v] for row, v in zip(logits, y)]


def loss_of(g, w, decoder, classes, typed, split="train"):
    rows = product(mean(g, take(g["x"], g["src"])), w["convs.0.W"], w["convs.0.b"])
    p = g["pairs"][split]
    return sum(losses(decoded(rows, p, w, decoder, typed), p["y"], classes)) / len(p["y"])


def near(what, found, expected, bound):
    if not abs(found - expected) <= bound * max(1, abs(expected)):
        sys.exit(f"{what}: {found}, not {expected}")


def figure(folder, name):
    with open(folder + "/m.jsonl") as f:
        line = f.readlines()[0]
    return float(line.split(f'"{name}": ')[1].split(",")[0].rstrip("}\n"))


def check_figures(g, w, folder, decoder, classes, typed):
    """Of validation, by the weights that the first epoch began with."""
    rows = product(mean(g, take(g["x"], g["src"])), w["convs.0.W"], w["convs.0.b"])
    p = g["pairs"]["valid"]
    logits, m = decoded(rows, p, w, decoder, typed), len(p["y"])
    near("valid loss", figure(folder, "valid_loss"), loss_of(g, w, decoder, classes, typed, "valid"), 1e-5)
    if not classes:
        off = [row[0] - v for row, v in zip(logits, p["y"])]
        near("rmse", figure(folder, "valid_rmse"), math.sqrt(sum(d * d for d in off) / m), 1e-5)
        near("mae", figure(folder, "valid_mae"), sum(map(abs, off)) / m, 1e-5)
        return
    said = [row.index(max(row)) for row in logits]
    near("accuracy", figure(folder, "valid_acc"), sum(a == b for a, b in zip(said, p["y"])) / m, 1e-9)
    scores = [2 * sum(a == b == c for a, b in zip(said, p["y"])) / (said.count(c) + p["y"].count(c))
              for c in range(CLASSES) if c in said or c in p["y"]]
    near("macro F1", figure(folder, "valid_macro_f1"), sum(scores) / len(scores), 1e-9)


def check(folder, classes, decoder, typed, parts):
    g = made(folder + "/in", classes, typed)
    store, text = folder + "/store", folder + "/near.gnn"
    with open(text, "w") as f:
        f.write(TEXT)
    run("partition", folder + "/in", store, "--parts", str(parts), "--method", "random")
    columns, ends = CLASSES if classes else 1, 2 if decoder == "mlp" else 1
    shapes = {"convs.0.W": (WIDTH, IN), "convs.0.b": (WIDTH,), "lin1.weight": (WIDTH, ends * WIDTH),
              "lin1.bias": (WIDTH,), "lin2.weight": (columns, WIDTH), "lin2.bias": (columns,)}
    if typed:
        shapes["rel_emb.weight"] = (TYPES, WIDTH)
    values = {k: [random.uniform(-1, 1) for _ in range(math.prod(s))] for k, s in shapes.items()}
    write_weights(folder + "/w.safetensors", {k: (shapes[k], v) for k, v in values.items()})
    values = {k: list(v) for k, v in read_weights(folder + "/w.safetensors").items()} # as float32 has them

    def nest(v):
        return {k: [x[i * shapes[k][1]:(i + 1) * shapes[k][1]] for i in range(shapes[k][0])]
                if len(shapes[k]) == 2 else x for k, x in v.items()}

    train = ["train", store, "--task", "edge-classify" if classes else "edge-regress", "--model", text, "--layers", "1",
             "--hidden", str(WIDTH), "--batch-size", "8", "--keep", "last"]
    train += ["--decoder", decoder] if decoder != "mlp" else [] # which it is where none is named
    run(*train, "--init", folder + "/w.safetensors", "--optimizer", "sgd", "--lr", "1", "--epochs", "1", "--save",
        folder + "/after.safetensors", "--metrics", folder + "/m.jsonl")
    near("loss", figure(folder, "loss"), loss_of(g, nest(values), decoder, classes, typed), 1e-5)
    check_figures(g, nest(values), folder, decoder, classes, typed)
    after = read_weights(folder + "/after.safetensors")
    for name, of in values.items():
        for i, before in enumerate(of):
            slope = 0
            for sign in (1, -1):
                of[i] = before + sign * STEP
                slope += sign * loss_of(g, nest(values), decoder, classes, typed) / (2 * STEP)
            of[i] = before
            near(f"gradient of {name}[{i}]", before - after[name][i], slope, 1e-4)
    p = g["pairs"]["test"]
    asked = [v for e in zip(p["h"], p["t"], p["type"]) for v in e[:2 + typed]]
    array(folder + "/ask.npy", "i8", (SPLITS["test"], 2 + typed), asked)
    run("predict", store, "--weights", folder + "/after.safetensors", "--edges", folder + "/ask.npy", "--scores",
        folder + "/s.npy", "--logits", folder + "/rows.npy")
    w = nest({k: list(v) for k, v in after.items()})
    for found, expected in zip(read_rows(folder + "/s.npy", SPLITS["test"], columns),
                               decoded(read_rows(folder + "/rows.npy", N, WIDTH), p, w, decoder, typed)):
        for x, y in zip(found, expected):
            near("logit", x, y, 1e-5)
    check_resume(train, folder)


def check_resume(train, folder):
    """Two epochs and two more are four, with any number of threads."""
    weights = []
    for name, words in (("one", ["--epochs", "4", "--threads", "1"]),
                        ("half", ["--epochs", "2", "--checkpoint", folder + "/c", "--checkpoint-every", "1"]),
                        ("two", ["--epochs", "4", "--resume", folder + "/c"])):
        run(*train, *words, "--save", f"{folder}/{name}.safetensors")
        weights.append(read_weights(f"{folder}/{name}.safetensors"))
    if weights[0] != weights[2]:
        sys.exit("other bits when gone on with")


random.seed(3)
shutil.rmtree(sys.argv[2], ignore_errors=True)
for k, (classes, decoder, typed, parts) in enumerate(((True, "mlp", True, 8), (False, "product", False, 8),
                                                      (False, "mlp", False, 1), (True, "product", True, 1))):
    check(f"{sys.argv[2]}/{k}", classes, decoder, typed, parts)
shutil.rmtree(sys.argv[2])
