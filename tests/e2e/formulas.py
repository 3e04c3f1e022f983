"""What tests of models against their formulas share: rows of numbers, files, losses, gradients, in Python's floats."""

import json
import math
import os
import random
import struct
import subprocess
import sys

STEP = 1e-5
ELEMENTS = 8


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
    for v in range(g["n"]):
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


def of_heads(rows, heads):
    d = len(rows[0]) // heads
    return [[sum(r[i * d:(i + 1) * d]) for i in range(heads)] for r in rows]


def spread(rows, d):
    return [[x for x in r for _ in range(d)] for r in rows]


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


def read_rows(path, rows, columns):
    with open(path, "rb") as f:
        raw = f.read()
    begin = 10 + struct.unpack("<H", raw[8:10])[0]
    values = struct.unpack("<%df" % (rows * columns), raw[begin:])
    return nested(list(values), (rows, columns))


def run(*words):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(words), done.stderr))


# -- the comparison -------------------------------------------------------------------------

def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def loss_of(logits, g):
    """Mean cross-entropy over the labelled vertices; g["y"]: classes, None for none."""
    sum_, count = 0.0, 0
    for row, y in zip(logits, g["y"]):
        if y is not None:
            top = max(row)
            sum_ += math.log(sum(math.exp(x - top) for x in row)) + top - row[y]
            count += 1
    return sum_ / count


def gradients_of(logits_of, g, tensors):
    """By central differences of the loss of logits_of(tensors): of each tensor pairs of what is moved ({index: sign})
    and the slope there. Moved are the whole tensor, each number by a sign of its own, so that none is left out; and
    ELEMENTS of its numbers alone (all with GS_TEST_ALL): each costs two losses."""
    out = {}
    for name, (_, values) in tensors.items():
        draw = random.Random(name)
        some = range(len(values)) if "GS_TEST_ALL" in os.environ else draw.sample(range(len(values)),
                                                                                  min(ELEMENTS, len(values)))
        moves = [{k: draw.choice((-1, 1)) for k in range(len(values))}] + [{k: 1} for k in some]
        before, out[name] = list(values), []
        for move in moves:
            loss = []
            for sign in (1, -1):
                for k, way in move.items():
                    values[k] = before[k] + sign * way * STEP
                loss.append(loss_of(logits_of(tensors), g))
            out[name].append((move, (loss[0] - loss[1]) / (2 * STEP)))
            values[:] = before
    return out


def in_turn(ways, number):
    """Of some ways to run a model, one in turn over the models; all with GS_TEST_ALL."""
    return ways if "GS_TEST_ALL" in os.environ else [ways[number % len(ways)]]


def check(work, shape, tensors, gradient, expected, how):
    """A step of gradient descent and a prediction of `how` (store, --device, device, ...) against both."""
    store, weights, left = (os.path.join(work, n) for n in (how[0], "w.safetensors", "left.safetensors"))
    rows = os.path.join(work, "rows.npy")
    run("train", store, *shape, "--epochs", "1", "--optimizer", "sgd", "--lr", "1", "--init", weights, "--save", left,
        "--keep", "last", *how[1:])
    for name, values in read_weights(left).items():
        found = [before - after for before, after in zip(tensors[name][1], values)]
        most = max(abs(x) for x in found)
        for move, slope in gradient[name]:
            moved, error = sum(way * found[k] for k, way in move.items()), math.sqrt(len(move))
            if not abs(moved - slope) <= (1e-4 * most + 2e-6) * error:
                sys.exit("%s %s: %s%s: gradient %.9g, expected %.9g" % (shape[1], how, name, list(move), moved, slope))
    run("predict", store, *shape, "--weights", weights, "--logits", rows, "--device", how[2])
    most = max(abs(x) for x in flat(expected))
    for found, want in zip(flat(read_rows(rows, len(expected), len(expected[0]))), flat(expected)):
        if not abs(found - want) <= 1e-5 * most:
            sys.exit("%s %s: logit %.9g, expected %.9g" % (shape[1], how, found, want))
