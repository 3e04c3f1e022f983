"""Labels of edges: logits, losses and gradients beside their formulas, by parts and devices; the same bits when gone on
with. And pairs as seeds of batches of neighbours, whose messages are to do without the pairs' own edges.

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


def losses(logits, y, kind):
    off = [row[0] - v for row, v in zip(logits, y)]
    if kind == "mse":
        return [d * d for d in off]
    if kind == "huber":
        return [d * d / 2 if abs(d) <= 1 else abs(d) - 0.5 for d in off]
    return [math.log(sum(math.exp(x) for x in row)) - row[v] for row, v in zip(logits, y)]


def loss_of(g, w, decoder, loss, typed, split="train"):
    rows = product(mean(g, take(g["x"], g["src"])), w["convs.0.W"], w["convs.0.b"])
    p = g["pairs"][split]
    return sum(losses(decoded(rows, p, w, decoder, typed), p["y"], loss)) / len(p["y"])


def near(what, found, expected, bound):
    if not abs(found - expected) <= bound * max(1, abs(expected)):
        sys.exit(f"{what}: {found}, not {expected}")


def figure(folder, name):
    with open(folder + "/m.jsonl") as f:
        line = f.readlines()[0]
    return float(line.split(f'"{name}": ')[1].split(",")[0].rstrip("}\n"))


def check_figures(g, w, folder, decoder, loss, typed):
    """Of validation, by the weights that the first epoch began with."""
    rows = product(mean(g, take(g["x"], g["src"])), w["convs.0.W"], w["convs.0.b"])
    p = g["pairs"]["valid"]
    logits, m = decoded(rows, p, w, decoder, typed), len(p["y"])
    near("valid loss", figure(folder, "valid_loss"), loss_of(g, w, decoder, loss, typed, "valid"), 1e-5)
    if loss != "xent":
        off = [row[0] - v for row, v in zip(logits, p["y"])]
        near("rmse", figure(folder, "valid_rmse"), math.sqrt(sum(d * d for d in off) / m), 1e-5)
        near("mae", figure(folder, "valid_mae"), sum(map(abs, off)) / m, 1e-5)
        return
    said = [row.index(max(row)) for row in logits]
    near("accuracy", figure(folder, "valid_acc"), sum(a == b for a, b in zip(said, p["y"])) / m, 1e-9)
    scores = [2 * sum(a == b == c for a, b in zip(said, p["y"])) / (said.count(c) + p["y"].count(c))
              for c in range(CLASSES) if c in said or c in p["y"]]
    near("macro F1", figure(folder, "valid_macro_f1"), sum(scores) / len(scores), 1e-9)


def check(folder, loss, decoder, typed, parts, device):
    classes = loss == "xent"
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
             "--hidden", str(WIDTH), "--batch-size", "8", "--keep", "last", "--device", device]
    train += ["--decoder", decoder] if decoder != "mlp" else [] # which it is where none is named
    train += ["--loss", loss] if loss == "huber" else []
    run(*train, "--init", folder + "/w.safetensors", "--optimizer", "sgd", "--lr", "1", "--epochs", "1", "--save",
        folder + "/after.safetensors", "--metrics", folder + "/m.jsonl")
    near("loss", figure(folder, "loss"), loss_of(g, nest(values), decoder, loss, typed), 1e-5)
    check_figures(g, nest(values), folder, decoder, loss, typed)
    after = read_weights(folder + "/after.safetensors")
    for name, of in values.items():
        for i, before in enumerate(of):
            slope = 0
            for sign in (1, -1):
                of[i] = before + sign * STEP
                slope += sign * loss_of(g, nest(values), decoder, loss, typed) / (2 * STEP)
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


def seeded_graph(folder, typed):
    """Pairs are edges of the graph, one of them twice, one a loop; and pairs of no edge, as two edges between the same
    vertices of different types."""
    edges = random.sample([(u, v) for u in range(N) for v in range(u)], E) # none is another's reverse
    edges = [random.choice(((u, v), (v, u))) for u, v in edges]
    g = {"src": [u for u, _ in edges], "dst": [v for _, v in edges], "type": [k % TYPES for k in range(E)],
         "x": [[random.uniform(-1, 1) for _ in range(IN)] for _ in range(N)]}
    for field in ("src", "dst"):
        g[field][1], g[field][3] = g[field][0], g[field][2]
    g["dst"][4] = g["src"][4]
    g["type"][:4] = [0, 0, 0, 1]
    of = [0, 2] + list(range(4, 24))
    p = {"h": [g["src"][k] for k in of] + [0], "t": [g["dst"][k] for k in of] + [N - 1],
         "type": [g["type"][k] for k in of] + [0]}
    p["y"] = [random.uniform(1, 5) for _ in p["h"]]
    os.makedirs(folder)
    array(folder + "/edges.npy", "i8", (E, 2), [v for e in zip(g["src"], g["dst"]) for v in e])
    array(folder + "/features.npy", "f4", (N, IN), [v for row in g["x"] for v in row])
    array(folder + "/train_edges.npy", "i8", (len(p["h"]), 2), [v for e in zip(p["h"], p["t"]) for v in e])
    array(folder + "/train_edge_labels.npy", "f4", (len(p["h"]),), p["y"])
    if typed:
        array(folder + "/edge_types.npy", "i8", (E,), g["type"])
        array(folder + "/train_edge_types.npy", "i8", (len(p["h"]),), p["type"])
    return g, p


def without(g, p, batch, typed, both_ways):
    """In-neighbours of each vertex without the edges that are pairs of the batch."""
    gone = {(p["h"][k], p["t"][k], typed and p["type"][k]) for k in batch}
    gone |= {(t, h, e) for h, t, e in gone if both_ways}
    edges = list(zip(g["src"], g["dst"], g["type"]))
    edges += [(v, u, e) for u, v, e in edges if both_ways and u != v]
    return [[u for u, to, e in edges if to == v and (u, to, typed and e) not in gone] for v in range(N)]


def averages(x, sources):
    return [[sum(x[u][c] for u in of) / max(len(of), 1) for c in range(len(x[0]))] for of in sources]


def rows_of(x, sources, w):
    h = product(averages(x, sources), w["convs.0.W"], w["convs.0.b"])
    return product(averages(each(relu, h), sources), w["convs.1.W"], w["convs.1.b"])


def check_seeds(folder, kind, typed, alone, both_ways):
    """One step of an epoch whose batches are of all pairs, or of one each (`alone`). Of scores, which have no wrong
    ends but their own then: those do not count."""
    g, p = seeded_graph(folder + "/in", typed)
    store, text, pairs, scores = folder + "/store", folder + "/near.gnn", range(len(p["h"])), kind == "link"
    with open(text, "w") as f:
        f.write(TEXT)
    run("partition", folder + "/in", store, "--parts", "3" if alone else "1", "--method", "random",
        *(["--undirected"] if both_ways else []))
    shapes = {"convs.0.W": (WIDTH, IN), "convs.0.b": (WIDTH,), "convs.1.W": (WIDTH, WIDTH), "convs.1.b": (WIDTH,)}
    if not scores:
        shapes |= {"lin1.weight": (WIDTH, 2 * WIDTH), "lin1.bias": (WIDTH,), "lin2.weight": (1, WIDTH),
                   "lin2.bias": (1,)}
    if typed and not scores:
        shapes["rel_emb.weight"] = (TYPES, WIDTH)
    values = {k: [random.uniform(-1, 1) for _ in range(math.prod(s))] for k, s in shapes.items()}
    write_weights(folder + "/w.safetensors", {k: (shapes[k], v) for k, v in values.items()})
    values = {k: list(v) for k, v in read_weights(folder + "/w.safetensors").items()}
    batches = [[k] for k in pairs] if alone else [pairs]
    batches = [(batch, without(g, p, batch, typed, both_ways)) for batch in batches]

    def loss_of_pair(rows, k, w):
        h, t = p["h"][k], p["t"][k]
        if scores:
            return math.log1p(math.exp(-sum(x * y for x, y in zip(rows[h], rows[t])))) / 2
        return losses(decoded(rows, {"h": [h], "t": [t], "type": [p["type"][k]]}, w, "mlp", typed), [p["y"][k]],
                      "mse")[0]

    def loss():
        w = {k: [x[i * shapes[k][1]:(i + 1) * shapes[k][1]] for i in range(shapes[k][0])]
             if len(shapes[k]) == 2 else x for k, x in values.items()}
        made = [(batch, rows_of(g["x"], sources, w)) for batch, sources in batches]
        return sum(loss_of_pair(rows, k, w) for batch, rows in made for k in batch) / len(pairs)

    train = ["train", store, "--task", kind, "--seeds", "edges", "--sampler", "neighbor", "--fanout", "0,0", "--model",
             text, "--layers", "2", "--hidden", str(WIDTH), "--batch-size", "1" if alone else "64", "--keep", "last"]
    train += ["--loss", "logistic", "--negatives-by", "batch"] if scores else []
    run(*train, "--init", folder + "/w.safetensors", "--optimizer", "sgd", "--lr", "1", "--epochs", "1", "--save",
        folder + "/after.safetensors", "--metrics", folder + "/m.jsonl",
        *(["--batches-per-step", "1000", "--device", "cpu:3"] if alone else []))
    near(f"loss of seeds, {kind}", figure(folder, "loss"), loss(), 1e-5)
    after = read_weights(folder + "/after.safetensors")
    for name, of in values.items():
        for i in random.sample(range(len(of)), min(2, len(of))):
            before, slope = of[i], 0
            for sign in (1, -1):
                of[i] = before + sign * STEP
                slope += sign * loss() / (2 * STEP)
            of[i] = before
            near(f"gradient of {name}[{i}] of seeds, {kind}", before - after[name][i], slope, 1e-4)
    check_resume(train, folder)


def check_models(folder):
    """One batch of all pairs that are edges is a step of the whole graph without these: normalised by degrees, with
    weights, by edges' features."""
    g, p = seeded_graph(folder + "/all", False)
    gone = set(zip(p["h"], p["t"]))
    left = [k for k, e in enumerate(zip(g["src"], g["dst"])) if e not in gone]
    os.remove(folder + "/all/train_edge_labels.npy")
    shutil.copytree(folder + "/all", folder + "/rest")
    weights, data = [random.uniform(0.5, 2) for _ in range(E)], [random.uniform(-1, 1) for _ in range(3 * E)]
    for name, of in (("all", range(E)), ("rest", left)):
        array(f"{folder}/{name}/edges.npy", "i8", (len(of), 2), [v for k in of for v in (g["src"][k], g["dst"][k])])
        array(f"{folder}/{name}/edge_weights.npy", "f4", (len(of),), [weights[k] for k in of])
        array(f"{folder}/{name}/edge_features.npy", "f4", (len(of), 3), [v for k in of for v in data[3 * k:3 * k + 3]])
        run("partition", f"{folder}/{name}", f"{folder}/{name}.store", "--parts", "1", "--method", "natural")
    with open(folder + "/edges.gnn", "w") as f:
        f.write("layer edges(h[in]) -> [out]:\n    param W[out, in] ~ glorot, V[out, edge_features] ~ glorot\n"
                "    return sum(relu(u.h @ W' + e.x @ V')) + v.h @ W'\n")
    for model in ("gcn", folder + "/edges.gnn"):
        made = []
        for name, words in (("rest", []), ("all", ["--seeds", "edges", "--sampler", "neighbor", "--fanout", "0,0,0"])):
            run("train", f"{folder}/{name}.store", "--task", "link", "--model", model, "--hidden", "8", "--negatives",
                "3", "--optimizer", "sgd", "--lr", "0.3", "--epochs", "2", "--keep", "last", *words, "--save",
                folder + "/w.safetensors", "--metrics", folder + "/m.jsonl")
            made.append({"loss": [figure(folder, "loss")], **read_weights(folder + "/w.safetensors")})
        for name, of in made[0].items():
            for k, (whole, seeds) in enumerate(zip(of, made[1][name])):
                near(f"{name}[{k}] of {model} by seeds", seeds, whole, 5e-6)


def check_wrong_ends(folder):
    """Where no pair is an edge, batches of seeds with all neighbours are a step together as the whole graph's is."""
    g, _ = seeded_graph(folder + "/in", False)
    edges = set(zip(g["src"], g["dst"]))
    pairs = random.sample([(u, v) for u in range(N) for v in range(N) if (u, v) not in edges], 30)
    array(folder + "/in/train_edges.npy", "i8", (30, 2), [v for pair in pairs for v in pair])
    os.remove(folder + "/in/train_edge_labels.npy")
    run("partition", folder + "/in", folder + "/store", "--parts", "2", "--method", "random")
    train = ["train", folder + "/store", "--task", "link", "--model", "gat", "--hidden", "8", "--heads", "2",
             "--decoder", "mlp", "--negatives", "3", "--batch-size", "4", "--optimizer", "sgd", "--lr", "1", "--epochs",
             "1", "--keep", "last"]
    weights = []
    for name, words in (("whole", []), ("seeds", ["--seeds", "edges", "--sampler", "neighbor", "--fanout", "0,0",
                                                  "--batches-per-step", "1000"])):
        run(*train, *words, "--save", f"{folder}/{name}.safetensors", "--metrics", folder + "/m.jsonl")
        weights.append({"loss": [figure(folder, "loss")], **read_weights(f"{folder}/{name}.safetensors")})
    for name, of in weights[0].items():
        for whole, seeds in zip(of, weights[1][name]):
            near(f"{name} by seeds", seeds, whole, 2e-6)


random.seed(3)
shutil.rmtree(sys.argv[2], ignore_errors=True)
check_wrong_ends(sys.argv[2] + "/wrong")
check_models(sys.argv[2] + "/models")
for k, case in enumerate((("edge-regress", False, False, False), ("edge-regress", True, True, False),
                          ("edge-regress", False, True, True), ("link", False, True, False))):
    check_seeds(f"{sys.argv[2]}/seeds{k}", *case)
for k, (loss, decoder, typed, parts) in enumerate((("xent", "mlp", True, 8), ("mse", "product", False, 8),
                                                   ("huber", "mlp", False, 1), ("xent", "product", True, 1))):
    check(f"{sys.argv[2]}/{k}", loss, decoder, typed, parts, "cpu:2" if k in (0, 2) else "cpu")
shutil.rmtree(sys.argv[2])
