#!/usr/bin/env python3
"""fixtures.py GNNSTREAM CORA FOLDER - Cora in every format that partition reads, each written by that format's own
library where it is installed, gives the same store, byte for byte.

CORA is the plain folder (edges.npy, features.npy, labels.npy, the splits). What is written by which library: CSV, TSV
and OGB's tables by pandas (as ogb's packages are made), OGB's arrays by ogb's DatasetSaver, .npz and .npy by numpy,
MatrixMarket and CSR by SciPy, edge lists by networkx, METIS' format by networkit (pymetis writes none), Parquet by
pyarrow and pandas (read by this project's Python package), metadata.yaml by PyYAML (DGL writes none), .zst by
zstandard. A format whose library is missing is said to be left out.
Stores differ in nothing but what the format cannot say: edge lists have no features, and IGB has its own splits.
Then each file is read by the library whose format it is (pandas, networkx, SciPy; ogb's, torch_geometric's and DGL's
own readers), which must get Cora: so what is read here is what that library means.
"""
import gzip
import importlib
import os
import shutil
import subprocess
import sys

import numpy as np

failed = []


def load(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Graph:
    def __init__(self, folder):
        self.edges = np.load(f"{folder}/edges.npy")
        self.x = np.load(f"{folder}/features.npy")
        self.y = np.load(f"{folder}/labels.npy")
        self.split = {s: np.load(f"{folder}/{s}_idx.npy") for s in ("train", "valid", "test")}
        self.n = len(self.y)


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def plain(g, out, x=True, y=None, split=None):
    fresh(out)
    np.save(f"{out}/edges.npy", g.edges)
    if x:
        np.save(f"{out}/features.npy", g.x)
        np.save(f"{out}/labels.npy", g.y if y is None else y)
        for name, ids in (split or g.split).items():
            np.save(f"{out}/{name}_idx.npy", ids)
    return out


def same(a, b):
    names = sorted(os.listdir(a))
    if names != sorted(os.listdir(b)):
        return f"files differ: {names} and {sorted(os.listdir(b))}"
    for name in names:
        with open(f"{a}/{name}", "rb") as one, open(f"{b}/{name}", "rb") as other:
            if one.read() != other.read():
                return f"{name} differs"
    return ""


class Check:
    def __init__(self, program, work):
        self.program, self.work = program, work

    def store(self, source, name, *options):
        out = f"{self.work}/{name}"
        run = subprocess.run([self.program, "partition", source, out, "--force", "--method", "fennel", "--parts", "4",
                              "--memory", "64M", *options], capture_output=True, text=True, check=False)
        return out, run

    def same(self, what, source, base, *options):
        out, run = self.store(source, "store", *options)
        why = run.stderr.strip() if run.returncode else same(base, out)
        print(f"{'FAILED ' + why if why else 'same'}: {what}")
        if why:
            failed.append(what)


def reads(what, *pairs):
    """What a format's own library gets of the file that was partitioned, beside Cora."""
    wrong = [name for name, got, want in pairs if not np.array_equal(np.asarray(got), np.asarray(want))]
    print(f"{'FAILED, other ' + ', '.join(wrong) if wrong else 'reads it back equal'}: {what}")
    if wrong:
        failed.append(what)


def in_order(edges):
    edges = np.asarray(edges, np.int64)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def edge_lists(g, c, work):
    pandas, networkx, scipy = load("pandas"), load("networkx"), load("scipy.io")
    base, _ = c.store(plain(g, f"{work}/bare", x=False), "base-edges")
    if pandas is not None:
        frame = pandas.DataFrame({"src": g.edges[:, 0], "dst": g.edges[:, 1]})
        for name, options in (("csv", {}), ("tsv", {"sep": "\t"}), ("csv.gz", {}), ("csv.zst", {})):
            if name != "csv.zst" or load("zstandard") is not None:
                frame.to_csv(f"{work}/e.{name}", index=False, **options)
                c.same(f"pandas {name}", f"{work}/e.{name}", base)
                again = pandas.read_csv(f"{work}/e.{name}", **options)
                reads(f"pandas {name}", ("edges", again[["src", "dst"]], g.edges))
    if networkx is not None:
        graph = networkx.from_edgelist(map(tuple, g.edges.tolist()), create_using=networkx.MultiDiGraph)
        networkx.write_edgelist(graph, f"{work}/e.txt", data=False)
        c.same("networkx edge list", f"{work}/e.txt", base)
        again = networkx.read_edgelist(f"{work}/e.txt", create_using=networkx.MultiDiGraph, nodetype=int)
        reads("networkx edge list", ("edges", in_order(list(again.edges())), in_order(g.edges)))
        networkx.write_edgelist(graph, f"{work}/e.txt.gz", data=False)
        c.same("networkx edge list, packed", f"{work}/e.txt.gz", base)
    if scipy is not None:
        sparse = load("scipy.sparse")
        matrix = sparse.coo_matrix((np.ones(len(g.edges), np.int8), (g.edges[:, 0], g.edges[:, 1])), (g.n, g.n))
        scipy.mmwrite(f"{work}/e.mtx", matrix, field="pattern", symmetry="general")
        c.same("SciPy MatrixMarket", f"{work}/e.mtx", base)
        again = scipy.mmread(f"{work}/e.mtx")
        reads("SciPy MatrixMarket", ("edges", in_order(np.stack([again.row, again.col], 1)), in_order(g.edges)))
        scipy.mmwrite(f"{work}/e.mtx", matrix, field="pattern", symmetry="symmetric")
        c.same("SciPy MatrixMarket, symmetric", f"{work}/e.mtx", base)
    networkit = load("networkit")
    if networkit is not None:
        graph = networkit.Graph(g.n)
        for u, v in g.edges[g.edges[:, 0] < g.edges[:, 1]]:
            graph.addEdge(u, v)
        networkit.writeGraph(graph, f"{work}/k.graph", networkit.Format.METIS)
        c.same("METIS, by networkit", f"{work}/k.graph", base)
        again = np.array(list(networkit.readGraph(f"{work}/k.graph", networkit.Format.METIS).iterEdges()))
        reads("METIS, by networkit", ("edges", in_order(np.concatenate([again, again[:, ::-1]])), in_order(g.edges)))
    order = np.lexsort((g.edges[:, 1], g.edges[:, 0]))
    lines = [[] for _ in range(g.n)]
    for u, v in g.edges[order]:
        lines[u].append(str(v + 1))
    with open(f"{work}/e.graph", "w", encoding="ascii") as file:
        file.write(f"{g.n} {len(g.edges) // 2}\n" + "".join(" ".join(line) + "\n" for line in lines))
    c.same("METIS (plain Python)", f"{work}/e.graph", base)
    if shutil.which("graphchk") is not None:
        said = subprocess.run(["graphchk", f"{work}/e.graph"], capture_output=True, text=True, check=False).stdout
        reads("METIS, by its graphchk", ("graph", "correct" in said and "errors" not in said, True))


def archives(g, c, work, base):
    names = {"train_idx": g.split["train"], "valid_idx": g.split["valid"], "test_idx": g.split["test"]}
    for save in (np.savez, np.savez_compressed):
        save(f"{work}/g.npz", edge_index=g.edges.T, x=g.x, y=g.y, **names)
        c.same(f"{save.__name__}: torch_geometric's names", f"{work}/g.npz", base)
        sparse = load("scipy.sparse")
        if sparse is not None:
            a = sparse.csr_matrix((np.ones(len(g.edges), np.float32), (g.edges[:, 0], g.edges[:, 1])), (g.n, g.n))
            x = sparse.csr_matrix(g.x)
            save(f"{work}/s.npz", adj_data=a.data, adj_indices=a.indices, adj_indptr=a.indptr, adj_shape=a.shape,
                 attr_data=x.data, attr_indices=x.indices, attr_indptr=x.indptr, attr_shape=x.shape, labels=g.y,
                 **names)
            c.same(f"{save.__name__}: shchur's, by SciPy", f"{work}/s.npz", base)
    geometric = load("torch_geometric.io")
    if geometric is not None and load("scipy.sparse") is not None:
        data = geometric.read_npz(f"{work}/s.npz", to_undirected=False)  # which makes positive features 1
        reads("shchur's, by torch_geometric", ("edges", in_order(data.edge_index.numpy().T), in_order(g.edges)),
              ("features", data.x.numpy(), (g.x > 0).astype(np.float32)), ("labels", data.y.numpy(), g.y))


def by_ogb(g, work):
    """A folder of ogb's own writer, without splits, which it keeps as a torch file and OGB's packages as tables."""
    here = os.getcwd()
    shutil.rmtree(f"{work}/submission_ogbn_cora", ignore_errors=True)
    os.chdir(work)  # where it writes
    try:
        saver = load("ogb.io").DatasetSaver(dataset_name="ogbn-cora", is_hetero=False, version=1)
        saver.save_graph_list([{"edge_index": g.edges.T, "num_nodes": g.n, "node_feat": g.x}])
        saver.save_target_labels(g.y.reshape(-1, 1))
    finally:
        os.chdir(here)
    raw = next(folder for folder, _, names in os.walk(f"{work}/submission_ogbn_cora") if "data.npz" in names)
    return os.path.dirname(raw)


def ogb(g, c, work, base):
    pandas = load("pandas")
    out = fresh(f"{work}/ogb")
    for folder in ("raw", "split/public"):
        os.makedirs(f"{out}/{folder}")
    for name, ids in g.split.items():
        with gzip.open(f"{out}/split/public/{name}.csv.gz", "wt") as file:
            file.write("".join(f"{v}\n" for v in ids))
    np.savez_compressed(f"{out}/raw/data.npz", edge_index=g.edges.T, node_feat=g.x, num_nodes_list=[g.n],
                        num_edges_list=[len(g.edges)])
    np.savez_compressed(f"{out}/raw/node-label.npz", node_label=g.y.astype(np.float32).reshape(-1, 1))
    c.same("OGB, as ogbn-papers100M", out, base)
    reader = load("ogb.io.read_graph_raw")
    if reader is not None:
        saved = by_ogb(g, work)
        os.makedirs(f"{saved}/split")
        shutil.copytree(f"{out}/split/public", f"{saved}/split/public")
        c.same("OGB's arrays, by ogb's DatasetSaver", saved, base)
        graph = reader.read_binary_graph_raw(f"{out}/raw")[0]
        reads("OGB's arrays, by ogb", ("edges", graph["edge_index"].T, g.edges), ("features", graph["node_feat"], g.x))
    if pandas is None:
        return
    for name in ("data.npz", "node-label.npz"):
        os.remove(f"{out}/raw/{name}")
    for name, table in (("edge", g.edges), ("node-feat", g.x), ("node-label", g.y.reshape(-1, 1)),
                        ("num-node-list", [[g.n]]), ("num-edge-list", [[len(g.edges)]])):
        pandas.DataFrame(table).to_csv(f"{out}/raw/{name}.csv.gz", header=False, index=False)
    c.same("OGB tables, by pandas", out, base)
    if reader is not None:
        graph = reader.read_csv_graph_raw(f"{out}/raw")[0]
        reads("OGB's tables, by ogb", ("edges", graph["edge_index"].T, g.edges),
              ("features", np.float32(graph["node_feat"]), g.x))


def igb(g, c, work):
    train, valid = int(g.n * 0.6), int(g.n * 0.6) + int(g.n * 0.2)
    split = {"train": np.arange(train), "valid": np.arange(train, valid), "test": np.arange(valid, g.n)}
    base, _ = c.store(plain(g, f"{work}/plain-igb", split=split), "base-igb")
    for headers in (True, False):
        out = fresh(f"{work}/igb/processed")
        os.makedirs(f"{out}/paper")
        os.makedirs(f"{out}/paper__cites__paper")
        np.save(f"{out}/paper__cites__paper/edge_index.npy", g.edges)
        for name, array in (("node_feat", g.x), ("node_label_19", g.y.astype(np.float32))):
            if headers:
                np.save(f"{out}/paper/{name}.npy", array)
            else:
                memmap = np.memmap(f"{out}/paper/{name}.npy", array.dtype, "w+", shape=array.shape)
                memmap[:] = array
                memmap.flush()
        c.same(f"IGB {'with' if headers else 'without'} headers, by numpy", f"{work}/igb", base)


def graphbolt(g, c, work):
    yaml = load("yaml")
    if yaml is None:
        return
    known = np.full(g.n, -1, np.int64)
    for ids in g.split.values():
        known[ids] = g.y[ids]
    base, _ = c.store(plain(g, f"{work}/plain-bolt", y=known), "base-bolt")
    out = fresh(f"{work}/bolt")
    np.save(f"{out}/edges.npy.data", g.edges.T)
    os.rename(f"{out}/edges.npy.data.npy", f"{out}/cites.npy")
    np.save(f"{out}/feat.npy", g.x)
    sets = {}
    for name, ids in g.split.items():
        np.save(f"{out}/{name}.npy", ids)
        np.save(f"{out}/{name}_labels.npy", g.y[ids])
        sets[{"valid": "validation"}.get(name, name) + "_set"] = [{"type": None, "data": [
            {"name": "seeds", "format": "numpy", "path": f"{name}.npy"},
            {"name": "labels", "format": "numpy", "path": f"{name}_labels.npy"}]}]
    meta = {"dataset_name": "cora", "graph": {"nodes": [{"num": g.n}],
                                              "edges": [{"format": "numpy", "path": "cites.npy"}]},
            "feature_data": [{"domain": "node", "type": None, "name": "feat", "format": "numpy", "path": "feat.npy"}],
            "tasks": [{"name": "node_classification", "num_classes": int(g.y.max()) + 1, **sets}]}
    with open(f"{out}/metadata.yaml", "w", encoding="utf-8") as file:
        yaml.safe_dump(meta, file)
    c.same("GraphBolt, metadata by PyYAML", out, base)
    bolt = load("dgl.graphbolt")
    if bolt is None:
        return
    data = bolt.OnDiskDataset(out).load()  # which turns the folder into its own form
    graph, task = data.graph, data.tasks[0]
    ends = np.stack([graph.indices.numpy(), np.repeat(np.arange(g.n), np.diff(graph.csc_indptr.numpy()))], 1)
    sets = [("train", task.train_set), ("valid", task.validation_set), ("test", task.test_set)]
    reads("GraphBolt, by DGL", ("edges", in_order(ends), in_order(g.edges)),
          ("features", data.feature.read("node", None, "feat").numpy(), g.x),
          *((name, [int(item[0]) for item in items], g.split[name]) for name, items in sets),
          *((f"labels of {name}", [int(item[1]) for item in items], g.y[g.split[name]]) for name, items in sets))


def parquet(g, c, work, base):
    arrow, pandas, gnnstream = load("pyarrow.parquet"), load("pandas"), load("gnnstream")
    if arrow is None or gnnstream is None:
        return
    import pyarrow as pa
    split = np.full(g.n, "", object)
    for name, ids in g.split.items():
        split[ids] = name
    edges = {"src": g.edges[:, 0], "dst": g.edges[:, 1]}
    rows = {"x": pa.FixedSizeListArray.from_arrays(pa.array(g.x.ravel()), g.x.shape[1]), "y": g.y, "split": split}
    options = {"features": "x", "label": "y", "split": "split", "force": True, "method": "fennel", "parts": 4,
               "memory": "64M"}

    def read(what, bare):
        folder = f"{work}/from-parquet"
        if bare:
            gnnstream.from_parquet(folder, f"{work}/e.parquet", force=True, method="fennel", parts=4, memory="64M")
        else:
            gnnstream.from_parquet(folder, f"{work}/e.parquet", f"{work}/v.parquet", **options)
        why = same(c.store(f"{work}/bare", "base-edges")[0] if bare else base, folder)
        print(f"{'FAILED ' + why if why else 'same'}: {what}")
        if why:
            failed.append(what)

    arrow.write_table(pa.table(edges), f"{work}/e.parquet")
    arrow.write_table(pa.table(rows), f"{work}/v.parquet")
    read("Parquet, by pyarrow", False)
    read("Parquet of edges alone, by pyarrow", True)
    if pandas is not None:
        pandas.DataFrame(edges).to_parquet(f"{work}/e.parquet", index=False)
        pandas.DataFrame({"x": list(g.x), "y": g.y, "split": split}).to_parquet(f"{work}/v.parquet", index=False)
        read("Parquet, by pandas", False)
    uneven = pa.table({"x": [[1.0], [2.0, 3.0, 4.0]] + [[1.0, 2.0]] * (g.n - 2), "y": g.y, "split": split})
    arrow.write_table(uneven, f"{work}/v.parquet")
    try:
        read("Parquet whose lists have different lengths", False)
        failed.append("uneven lists")
    except ValueError as error:
        print(f"{'refused' if 'lists of different lengths' in str(error) else 'FAILED'}: {error}")


def types(g, c, work, base):
    for kind in ("int32", "uint32", "uint64", "int64"):
        out = plain(g, f"{work}/typed")
        np.save(f"{out}/edges.npy", g.edges.astype(kind))
        np.save(f"{out}/features.npy", g.x.astype(np.float64))
        np.save(f"{out}/labels.npy", g.y.astype({"int32": "float32", "uint32": "float64"}.get(kind, "int16")))
        for name, ids in g.split.items():
            mask = np.zeros(g.n, bool)
            mask[ids] = True
            np.save(f"{out}/{name}_idx.npy", mask)
        c.same(f"ids of {kind}, features of float64, masks", out, base)
    out = plain(g, f"{work}/typed")
    np.save(f"{out}/edges.npy", np.ascontiguousarray(g.edges.T))
    c.same("edges as [2, E]", out, base)


def main(program, cora, work):
    os.makedirs(work, exist_ok=True)
    left_out = [n for n in ("pandas", "networkx", "networkit", "scipy", "yaml", "zstandard", "pyarrow", "gnnstream",
                            "ogb", "dgl", "torch_geometric")
                if load(n) is None] + ["graphchk (Debian package metis)"] * (shutil.which("graphchk") is None)
    g, c = Graph(cora), Check(program, work)
    base, run = c.store(plain(g, f"{work}/plain"), "base")
    if run.returncode:
        sys.exit(run.stderr)
    edge_lists(g, c, work)
    archives(g, c, work, base)
    ogb(g, c, work, base)
    igb(g, c, work)
    graphbolt(g, c, work)
    parquet(g, c, work, base)
    types(g, c, work, base)
    print("not installed, so not asked: " + (", ".join(left_out) or "none"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
