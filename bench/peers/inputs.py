"""What every peer trains on.

    inputs.py label FROM TO --classes C --types T   a graph's folder with what it lacks, seeded
    inputs.py tensors GRAPH STORE OUT               arrays that the peers load, made once

`label` copies the edges and splits of FROM; labels are copied where there is one a vertex, else they
are random, and so are edge types (T > 0). Features stay out when FROM has none for every vertex:
`gnnstream partition --random-features` makes them, and `tensors` takes them out of the store.

The arrays of `tensors` are those that a patient user of a peer would keep on disk, so that no peer
pays in time or memory for making them:

    x, y, train          features, labels, training vertices, in the input's order
    edge_index           [2, E] int64 as PyG has it, sorted by destination, then source
    edge_type            [E] int64 in the same order, where there are types
    raw                  CSR by destination, a doubled edge twice, ones
    sum, mean, gcn       CSR by destination, doubled edges merged into their weight: A, D^-1 A, and
                         PyG's normalised adjacency with self loops
    rel<i>               D_i^-1 A_i of the edges of one type
    t_<name>             the transpose of each
"""
import argparse
import json
import pathlib
import shutil

import numpy as np
import scipy.sparse as sp


def label(source, target, classes, types):
    target.mkdir(parents=True, exist_ok=True)
    edges = np.load(source / "edges.npy", mmap_mode="r")
    for name in ("edges", "train_idx", "valid_idx", "test_idx", "features"):
        if (source / f"{name}.npy").exists():
            shutil.copyfile(source / f"{name}.npy", target / f"{name}.npy")
    random = np.random.default_rng(1)
    vertices = int(edges.max()) + 1
    if (source / "labels.npy").exists():
        shutil.copyfile(source / "labels.npy", target / "labels.npy")
    else:
        np.save(target / "labels.npy", random.integers(0, classes, vertices))
    if types:
        np.save(target / "edge_types.npy", random.integers(0, types, len(edges)))


def stored_features(store):
    """Features of a store (docs/format.md), rows in the input's order."""
    manifest = json.loads((store / "manifest.json").read_text())
    n, width = manifest["vertices"], manifest["features"]
    if manifest["feature_type"] != "f32":
        raise SystemExit(f"{store}: features are {manifest['feature_type']}, not f32")
    rows = np.fromfile(store / "features.bin", "<f4", n * width).reshape(n, width)
    x = np.empty_like(rows)
    x[np.fromfile(store / "input_id.bin", "<u4", n)] = rows
    return x


def save_csr(out, name, a):
    for prefix, m in (("", a), ("t_", a.T.tocsr())):
        m.sort_indices()
        np.save(out / f"{prefix}{name}.indptr.npy", m.indptr.astype(np.int32))
        np.save(out / f"{prefix}{name}.indices.npy", m.indices.astype(np.int32))
        np.save(out / f"{prefix}{name}.values.npy", m.data.astype(np.float32))


def matrix(source, target, n):
    """Float64 counts; tocsr() merges doubled edges."""
    return sp.coo_matrix((np.ones(len(source)), (target, source)), (n, n)).tocsr()


def row_mean(a):
    return sp.diags(1 / np.maximum(np.asarray(a.sum(1)).ravel(), 1)) @ a


def normalised(a):
    looped = a + sp.identity(a.shape[0])
    scale = sp.diags(np.asarray(looped.sum(1)).ravel() ** -0.5)
    return (scale @ looped @ scale).tocsr()


def tensors(graph, store, out):
    out.mkdir(parents=True, exist_ok=True)
    x = stored_features(store)
    n = len(x)
    edges = np.load(graph / "edges.npy")
    order = np.lexsort((edges[:, 0], edges[:, 1]))
    source, target = edges[order, 0], edges[order, 1]
    if (source == target).any():
        raise SystemExit(f"{graph}: has self loops, which GraphSAGE and GCN of the peers count differently")
    np.save(out / "x.npy", x)
    for name, file in (("y", "labels"), ("train", "train_idx")):
        np.save(out / f"{name}.npy", np.load(graph / f"{file}.npy").astype(np.int64))
    np.save(out / "edge_index.npy", np.stack([source, target]).astype(np.int64))
    if (graph / "edge_types.npy").exists():
        types = np.load(graph / "edge_types.npy")[order].astype(np.int64)
        np.save(out / "edge_type.npy", types)
        for i in range(types.max() + 1):
            save_csr(out, f"rel{i}", row_mean(matrix(source[types == i], target[types == i], n)))
        return
    indptr = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=n))])
    save_csr(out, "raw", sp.csr_matrix((np.ones(len(source)), source, indptr), (n, n)))
    a = matrix(source, target, n)
    for name, m in (("sum", a), ("mean", row_mean(a)), ("gcn", normalised(a))):
        save_csr(out, name, m)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["label", "tensors"])
    p.add_argument("paths", nargs="+", type=pathlib.Path)
    p.add_argument("--classes", type=int, default=0)
    p.add_argument("--types", type=int, default=0)
    a = p.parse_args()
    if a.what == "label":
        label(*a.paths, a.classes, a.types)
    else:
        tensors(*a.paths)


main()
