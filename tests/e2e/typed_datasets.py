"""typed_datasets.py GNNSTREAM FOLDER [--libraries] - typed datasets a thousandth of their size, as others lay them out.

ogbn-mag's tables and the arrays that ogb's DatasetSaver makes of such a graph, IGBH's folder (of its sizes up to
medium, and without headers as large and full are) and GraphBolt's each give the store of nodes/ and edges/, byte for
byte; that is trained on, and logits are the papers'. Then each layout is damaged in its own ways: one line, no store.

With --libraries the same is written and read by the formats' own: pandas writes ogbn-mag's tables, ogb's DatasetSaver
its arrays, ogb's NodePropPredDataset and DGL's heterographs, as IGB's loader makes them, read them back equal."""

import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile

LIBRARIES = "--libraries" in sys.argv
PROGRAM, WORK = [os.path.abspath(path) for path in sys.argv[1:3]]

# Vertices of each type and their features, edges of each relation; the labelled type and its classes.
MAG = {
    "types": {"author": (1135, 0), "field_of_study": (60, 0), "institution": (9, 0), "paper": (736, 128)},
    "relations": {("author", "affiliated_with", "institution"): 1044, ("author", "writes", "paper"): 7146,
                  ("paper", "cites", "paper"): 5416, ("paper", "has_topic", "field_of_study"): 7505},
    "classes": 349, "sets": (630, 65, 41)}
IGBH = { # of its small graph
    "types": {"author": (1926, 1024), "fos": (190, 1024), "institute": (15, 1024), "paper": (1000, 1024)},
    "relations": {("author", "affiliated_to", "institute"): 1630, ("paper", "cites", "paper"): 12070,
                  ("paper", "topic", "fos"): 10316, ("paper", "written_by", "author"): 4742},
    "classes": 19, "sets": (600, 200, 200)}


def die(words):
    sys.exit("typed_datasets: " + words)


class Graph:
    """Arrays by type and relation: rows of features are bytes of float32, edges two lists of ids."""

    def __init__(self, shape, seed):
        draw = random.Random(seed)
        self.types, self.classes = shape["types"], shape["classes"]
        line = [draw.randrange(-512, 512) / 256 for _ in range(4096)] # rows begin anywhere in it
        packed = struct.pack("<8192f", *line, *line)
        self.rows = {}
        for name, (n, width) in self.types.items():
            starts = [draw.randrange(4096) for _ in range(n)]
            self.rows[name] = b"".join(packed[4 * s:4 * (s + width)] for s in starts)
        self.edges = {}
        for (source, relation, end), count in shape["relations"].items():
            n, m = self.types[source][0], self.types[end][0]
            self.edges[source, relation, end] = ([draw.randrange(n) for _ in range(count)],
                                                 [draw.randrange(m) for _ in range(count)])
        papers = self.types["paper"][0]
        self.labels = [draw.randrange(self.classes) for _ in range(papers)]
        self.labels[0] = self.classes - 1 # which says how many there are
        bounds = [0, shape["sets"][0], sum(shape["sets"][:2]), papers]
        self.sets = {s: list(range(*bounds[k:k + 2])) for k, s in enumerate(("train", "valid", "test"))}


# -- files -----------------------------------------------------------------------------------

def npy(kind, shape, values):
    """As numpy.save() writes it; `values` are numbers, or their bytes."""
    if not isinstance(values, bytes):
        values = struct.pack("<%d%s" % (len(values), {"f4": "f", "i8": "q"}[kind]), *values)
    head = repr({"descr": "<" + kind, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + values


def pairs(edge):
    return [v for e in zip(*edge) for v in e]


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def fresh(name):
    shutil.rmtree(os.path.join(WORK, name), ignore_errors=True)
    return os.path.join(WORK, name)


def table(path, lines):
    put(path, gzip.compress("".join(line + "\n" for line in lines).encode(), 1))


def archive(path, arrays):
    """As numpy.savez_compressed() writes it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for name, data in arrays.items():
            z.writestr(name + ".npy", data)


# -- layouts ---------------------------------------------------------------------------------

def plain(g, out):
    for name, (n, width) in g.types.items():
        os.makedirs(f"{out}/nodes/{name}")
        put(f"{out}/nodes/{name}/meta.json", b'{"num_nodes": %d}' % n)
        if width > 0:
            put(f"{out}/nodes/{name}/features.npy", npy("f4", (n, width), g.rows[name]))
    put(f"{out}/nodes/paper/labels.npy", npy("i8", (len(g.labels),), g.labels))
    for s, ids in g.sets.items():
        put(f"{out}/nodes/paper/{s}_idx.npy", npy("i8", (len(ids),), ids))
    for relation, edge in g.edges.items():
        put(f"{out}/edges/{'__'.join(relation)}/edges.npy", npy("i8", (len(edge[0]), 2), pairs(edge)))


def write_table(path, lines, names=None):
    """A table of OGB's, by pandas where libraries are asked for."""
    if not LIBRARIES:
        return table(path, ([",".join(names)] if names else []) + [",".join(map(str, line)) for line in lines])
    import pandas
    os.makedirs(os.path.dirname(path), exist_ok=True)
    frame = pandas.DataFrame(lines, columns=names)
    return frame.to_csv(path, index=False, header=names is not None, compression="gzip")


def mag(g, out):
    """ogbn-mag's folder, as ogb.io.read_graph_raw.read_csv_heterograph_raw() reads it."""
    raw, names = f"{out}/raw", list(g.types)
    write_table(f"{raw}/num-node-dict.csv.gz", [[n for n, _ in g.types.values()]], names)
    write_table(f"{raw}/triplet-type-list.csv.gz", list(reversed(g.edges)))
    write_table(f"{raw}/nodetype-has-label.csv.gz", [[name == "paper" for name in names]], names)
    write_table(f"{raw}/nodetype-has-feat.csv.gz", [[g.types[name][1] > 0 for name in names]], names)
    for relation, edge in g.edges.items():
        folder = f"{raw}/relations/{'___'.join(relation)}"
        write_table(f"{folder}/edge.csv.gz", list(zip(*edge)))
        write_table(f"{folder}/num-edge-list.csv.gz", [[len(edge[0])]])
        write_table(f"{folder}/edge_reltype.csv.gz", [[list(g.edges).index(relation)]] * len(edge[0]))
    for name, (_, width) in g.types.items():
        if width > 0:
            rows = list(struct.iter_unpack(f"<{width}f", g.rows[name]))
            write_table(f"{raw}/node-feat/{name}/node-feat.csv.gz", rows)
    write_table(f"{raw}/node-feat/paper/node_year.csv.gz", [[2010 + k % 10] for k in range(len(g.labels))])
    write_table(f"{raw}/node-label/paper/node-label.csv.gz", [[y] for y in g.labels])
    write_table(f"{out}/split/time/nodetype-has-split.csv.gz", [[name == "paper" for name in names]], names)
    for s, ids in g.sets.items():
        write_table(f"{out}/split/time/paper/{s}.csv.gz", [[v] for v in ids])
    put(f"{out}/RELEASE_v2.txt", b"# Release note\n")


def mag_arrays(g, out):
    """What ogb's DatasetSaver makes of it; splits are tables, as the ogb package's own datasets have them."""
    if LIBRARIES:
        mag_arrays_by_ogb(g, out)
    else:
        raw = f"{out}/raw"
        archive(f"{raw}/num_nodes_dict.npz", {name: npy("i8", (1,), [n]) for name, (n, _) in g.types.items()})
        archive(f"{raw}/num_edges_dict.npz", {"___".join(r): npy("i8", (1,), [len(e[0])]) for r, e in g.edges.items()})
        archive(f"{raw}/edge_index_dict.npz",
                {"___".join(r): npy("i8", (2, len(e[0])), e[0] + e[1]) for r, e in g.edges.items()})
        archive(f"{raw}/node_feat_dict.npz",
                {name: npy("f4", shape, g.rows[name]) for name, shape in g.types.items() if shape[1] > 0})
        archive(f"{raw}/node-label.npz", {"paper": npy("i8", (len(g.labels), 1), g.labels)})
    for s, ids in g.sets.items():
        write_table(f"{out}/split/time/paper/{s}.csv.gz", [[v] for v in ids])


def mag_arrays_by_ogb(g, out):
    import numpy as np
    from ogb.io import DatasetSaver
    rows = {name: np.frombuffer(g.rows[name], np.float32).reshape(shape) for name, shape in g.types.items()}
    here = os.getcwd()
    os.makedirs(WORK, exist_ok=True)
    shutil.rmtree(f"{WORK}/submission_ogbn_mag", ignore_errors=True)
    os.chdir(WORK) # where it writes
    try:
        saver = DatasetSaver(dataset_name="ogbn-mag", is_hetero=True, version=1)
        saver.save_graph_list([{"edge_index_dict": {r: np.array(e) for r, e in g.edges.items()},
                                "num_nodes_dict": {name: n for name, (n, _) in g.types.items()},
                                "node_feat_dict": {name: rows[name] for name in rows if g.types[name][1] > 0}}])
        saver.save_target_labels({"paper": np.array(g.labels).reshape(-1, 1)})
    finally:
        os.chdir(here)
    shutil.move(f"{WORK}/submission_ogbn_mag/mag", out)


def igbh(g, out, headers=True):
    """As igb.dataloader's IGBHeteroDGLDataset reads it; without headers of papers and authors, as ...Massive does."""
    folder = f"{out}/processed"
    for name, shape in g.types.items():
        bare = not headers and name in ("author", "paper")
        put(f"{folder}/{name}/node_feat.npy", g.rows[name] if bare else npy("f4", shape, g.rows[name]))
        put(f"{folder}/{name}/{name}_id_index_mapping.npy", b"a dictionary")
    labels = npy("f4", (len(g.labels),), g.labels)
    put(f"{folder}/paper/node_label_19.npy", labels if headers else labels[-4 * len(g.labels):])
    for relation, edge in g.edges.items():
        put(f"{folder}/{'__'.join(relation)}/edge_index.npy", npy("i8", (len(edge[0]), 2), pairs(edge)))


def igbh_bare(g, out):
    igbh(g, out, headers=False)


def bolt(g, out):
    """A source folder of GraphBolt's OnDiskDataset."""
    lines = ["dataset_name: typed", "graph:", "  nodes:"]
    lines += [f"    - {{type: {name}, num: {n}}}" for name, (n, _) in g.types.items()] + ["  edges:"]
    for relation, edge in g.edges.items():
        name = "_".join(relation)
        put(f"{out}/edges/{name}.npy", npy("i8", (2, len(edge[0])), edge[0] + edge[1]))
        lines.append(f"    - {{type: '{':'.join(relation)}', format: numpy, path: edges/{name}.npy}}")
    lines.append("feature_data:")
    for name, shape in g.types.items():
        if shape[1] > 0:
            put(f"{out}/data/{name}.npy", npy("f4", shape, g.rows[name]))
            lines.append(f"    - {{domain: node, type: {name}, name: feat, format: numpy, path: data/{name}.npy}}")
    lines += ["tasks:", "  - name: node_classification", f"    num_classes: {g.classes}"]
    for s, ids in g.sets.items():
        put(f"{out}/set/{s}.npy", npy("i8", (len(ids),), ids))
        put(f"{out}/set/{s}_labels.npy", npy("i8", (len(ids),), [g.labels[v] for v in ids]))
        lines += [f"    {'validation' if s == 'valid' else s}_set:", "      - type: paper", "        data:",
                  f"          - {{name: seeds, format: numpy, path: set/{s}.npy}}",
                  f"          - {{name: labels, format: numpy, path: set/{s}_labels.npy}}"]
    put(f"{out}/metadata.yaml", "".join(line + "\n" for line in lines).encode())


# -- what is asked ---------------------------------------------------------------------------

def gnnstream(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def partition(source, name, *options):
    store = os.path.join(WORK, name)
    shutil.rmtree(store, ignore_errors=True)
    return store, gnnstream("partition", source, store, "--method", "natural", "--parts", "3", *options)


def same(what, write, g, own):
    write(g, fresh("folder"))
    store, run = partition(f"{WORK}/folder", "store")
    if run.returncode:
        die(f"{what}: {run.stderr}")
    for name in os.listdir(own):
        with open(f"{own}/{name}", "rb") as one, open(f"{store}/{name}", "rb") as other:
            if one.read() != other.read():
                die(f"{what}: another {name}")
    for line in run.stderr.splitlines():
        if "node_year" not in line and "edge_reltype" not in line:
            die(f"{what}: {line}")
    print(f"same: {what}")


def trains(g, own):
    """Logits are of papers, by their own ids, whatever the parts: those of 8 parts beside those of 3."""
    rows = []
    for store in (own, partition(f"{WORK}/plain", "eight", "--parts", "8")[0]):
        path = os.path.join(WORK, "rows.npy")
        run = gnnstream("train", store, "--model", "rgcn", "--hidden", "8", "--epochs", "1", "--logits", path)
        if run.returncode:
            die(f"train: {run.stderr}")
        with open(path, "rb") as f:
            data = f.read()
        papers = g.types["paper"][0]
        if f"'shape': ({papers}, {g.classes})".encode() not in data[:128]:
            die(f"logits are not of {papers} papers: {data[:128]}")
        rows.append(struct.unpack("<%df" % (papers * g.classes), data[-4 * papers * g.classes:]))
    worst = max(abs(a - b) for a, b in zip(*rows))
    if not worst < 1e-4 or len(set(rows[0])) < len(rows[0]) // 2:
        die(f"logits of 3 and 8 parts differ by {worst}")
    print(f"trains: {papers} rows of {g.classes} logits, {worst:.1e} between 3 and 8 parts")


def refused(write, g, damages):
    """Each damage: a file of the folder, what becomes of its bytes (None: it is removed), and words of the line."""
    write(g, fresh("folder"))
    for path, change, words in damages:
        whole = f"{WORK}/folder/{path}"
        if os.path.isdir(whole):
            shutil.move(whole, f"{WORK}/kept")
        else:
            with open(whole, "rb") as f:
                kept = f.read()
            os.remove(whole)
            if change is not None:
                put(whole, change(kept))
        store, run = partition(f"{WORK}/folder", "store")
        lines = [line for line in run.stderr.splitlines() if "warning" not in line]
        if run.returncode != 1 or len(lines) != 1 or words not in lines[0] or os.path.exists(store):
            die(f"{path}: expected '{words}', got {run.returncode}: {run.stderr}")
        if os.path.isdir(f"{WORK}/kept"):
            shutil.move(f"{WORK}/kept", whole)
        else:
            put(whole, kept)
    print(f"refused: {len(damages)} ways to damage {write.__name__}")


def half(data):
    return data[:len(data) // 2]


def lines(*text):
    return lambda _: gzip.compress("".join(line + "\n" for line in text).encode())


def cut_line(data):
    text = gzip.decompress(data)
    return gzip.compress(text[:text.rindex(b"\n", 0, -1) + 1], 1)


def first_line(line):
    def change(data):
        text = gzip.decompress(data)
        return gzip.compress(line + text[text.index(b"\n"):], 1)
    return change


def last_number(kind, value):
    return lambda data: data[:-struct.calcsize(kind)] + struct.pack("<" + kind, value)


def damage_mag(g):
    cites, year = "raw/relations/paper___cites___paper/", "split/time/paper/"
    refused(mag, g, [
        (cites + "edge.csv.gz", half, "paper___cites___paper/edge.csv.gz"),
        ("raw/node-feat/paper/node-feat.csv.gz", half, "node-feat.csv.gz"),
        ("raw/node-label/paper/node-label.csv.gz", half, "node-label.csv.gz"),
        (year + "train.csv.gz", half, "train.csv.gz"),
        ("raw/num-node-dict.csv.gz", half, "num-node-dict.csv.gz"),
        ("raw/triplet-type-list.csv.gz", half, "triplet-type-list.csv.gz"),
        (cites + "edge.csv.gz", cut_line, "edge.csv.gz: has 5415 edges; num-edge-list says 5416"),
        ("raw/node-feat/paper/node-feat.csv.gz", cut_line, "has 735 rows, but the stated number says that there are "
                                                           "736 vertices of type paper"),
        ("raw/node-label/paper/node-label.csv.gz", cut_line, "node-label.csv.gz: has 735 rows"),
        (cites + "edge.csv.gz", first_line(b"0,736"), "edge.csv.gz: row 0: destination 736 is not one of the 736 "
                                                      "vertices of type paper"),
        (cites + "edge.csv.gz", first_line(b"-1,0"), "edge.csv.gz"),
        (cites + "edge.csv.gz", first_line(b"x,0"), "edge.csv.gz: line 1"),
        ("raw/relations/author___writes___paper/edge.csv.gz", first_line(b"1135,0"),
         "row 0: source 1135 is not one of the 1135 vertices of type author"),
        (year + "valid.csv.gz", first_line(b"736"), "valid.csv.gz: row 0: vertex 736 is not one of the 736 vertices"),
        (year + "test.csv.gz", first_line(b"-1"), "test.csv.gz"),
        (year + "test.csv.gz", first_line(b"0"), "test.csv.gz"),
        (cites + "edge.csv.gz", None, "edge.csv.gz: there is no such file"),
        (cites, None, "edge.csv.gz: there is no such file"),
        ("raw/num-node-dict.csv.gz", None, "num-node-dict.csv.gz"),
        ("raw/node-feat/paper/node-feat.csv.gz", None, "node-feat/paper/node-feat.csv.gz: there is no such file"),
        ("raw/node-feat/paper", None, "node-feat/paper/node-feat.csv.gz: there is no such file"),
        ("raw/node-label/paper/node-label.csv.gz", None, "node-label/paper/node-label.csv.gz: there is no such file"),
        (year + "valid.csv.gz", None, "split/time/paper/valid.csv.gz: there is no such file"),
        ("split/time/paper", None, "split/time/paper/train.csv.gz: there is no such file"),
        ("raw/num-node-dict.csv.gz", lines("author,paper", "1135,736,9"), "num-node-dict.csv.gz: line 2"),
        ("raw/num-node-dict.csv.gz", lines("author,field_of_study,institution,paper", "1135,60,9,736", "1,1,1,1"),
         "num-node-dict.csv.gz"),
        ("raw/triplet-type-list.csv.gz", lines("paper,cites,paper", "paper,at,venue"), "triplet-type-list.csv.gz: "
         "there are no vertices of type 'venue'; add their table, or correct the name"),
        ("raw/nodetype-has-label.csv.gz", lines("author,field_of_study,institution,venue", "False,False,False,True"),
         "nodetype-has-label.csv.gz: there are no vertices of type 'venue'"),
        ("raw/nodetype-has-feat.csv.gz", lines("author,paper", "maybe,True"), "nodetype-has-feat.csv.gz: line 2"),
    ])


def damage_mag_arrays(g):
    def members(change):
        def archive_of(data):
            put(f"{WORK}/one.npz", data)
            with zipfile.ZipFile(f"{WORK}/one.npz") as z:
                arrays = {name[:-4]: z.read(name) for name in z.namelist()}
            change(arrays)
            archive(f"{WORK}/one.npz", arrays)
            with open(f"{WORK}/one.npz", "rb") as f:
                return f.read()
        return archive_of

    def replaced(name, data):
        return members(lambda arrays: arrays.update({name: data}))

    def removed(name):
        return members(lambda arrays: arrays.pop(name))

    edges, nodes = "raw/edge_index_dict.npz", "raw/num_nodes_dict.npz"
    refused(mag_arrays, g, [
        (edges, half, "edge_index_dict.npz"),
        ("raw/node_feat_dict.npz", half, "node_feat_dict.npz"),
        (nodes, None, "num_nodes_dict.npz"),
        ("raw/node_feat_dict.npz", replaced("venue", npy("f4", (1, 1), [1])), "there are no vertices of type 'venue'"),
        ("raw/node-label.npz", replaced("venue", npy("i8", (1, 1), [1])), "there are no vertices of type 'venue'"),
        (nodes, removed("author"), "there are no vertices of type 'author'"),
        (nodes, replaced("author", npy("i8", (2,), [1, 2])), "author.npy: counts 2 graphs; a store holds one"),
        (edges, replaced("paper__cites", npy("i8", (2, 1), [0, 0])), "'paper__cites' is not source,relation,"),
        (edges, replaced("paper___cites___paper", npy("i8", (2, 1), [0, 736])),
         "paper___cites___paper.npy: has 1 edges; num_edges_dict.npz says 5416"),
        ("raw/node-label.npz", replaced("paper", npy("i8", (735, 1), g.labels[:735])), "has 735 rows"),
        ("split/time/paper/valid.csv.gz", None, "split/time/paper/valid.csv.gz: there is no such file"),
    ])


def damage_igbh(g):
    cites, by = "processed/paper__cites__paper/edge_index.npy", "processed/paper__written_by__author/edge_index.npy"
    author, paper = "processed/author/node_feat.npy", "processed/paper/"
    refused(igbh, g, [
        (cites, half, "paper__cites__paper/edge_index.npy"),
        (author, half, "author/node_feat.npy"),
        (paper + "node_label_19.npy", half, "node_label_19.npy"),
        (cites, lambda _: npy("i8", (3, 3), [0] * 9), "has shape [3, 3]; edges are [E, 2], or [2, E]"),
        (cites, last_number("q", 100), "edge_index.npy: row 1206: destination 100 is not one of the 100 vertices"),
        (by, last_number("q", 192), "destination 192 is not one of the 192 vertices of type author"),
        (by, last_number("q", -1), "paper__written_by__author/edge_index.npy: row 473"),
        (cites, None, "paper__cites__paper/edge_index.npy"),
        (author, None, "author/node_feat.npy: there is no such file"),
        ("processed/author", None, "SOURCE__RELATION__DESTINATION, of types that have a folder beside it"),
        (paper + "node_feat.npy", None, "paper/node_feat.npy: there is no such file"),
        (paper + "node_label_19.npy", lambda _: npy("f4", (99,), g.labels[:99]), "node_label_19.npy: has 99 rows"),
    ])
    refused(igbh_bare, g, [
        (author, lambda data: data[:-2], "author/node_feat.npy"),
        (author, lambda data: data[:-4], "author/node_feat.npy"),
        (author, lambda data: data[:-4096], "is not one of the 191 vertices of type author"),
        (paper + "node_label_19.npy", lambda data: data[:-4], "node_label_19.npy"),
    ])


def damage_bolt(g):
    def text(old, new):
        return lambda data: data.replace(old.encode(), new.encode(), 1)

    cites, meta = "edges/paper_cites_paper.npy", "metadata.yaml"
    refused(bolt, g, [
        (cites, half, cites),
        (cites, last_number("q", 736), "destination 736 is not one of the 736 vertices of type paper"),
        (cites, None, cites),
        ("data/paper.npy", half, "data/paper.npy"),
        ("data/paper.npy", None, "data/paper.npy"),
        ("data/paper.npy", lambda data: npy("f4", (735, 128), data[-736 * 512:-512]), "data/paper.npy: has 735 rows"),
        ("set/train.npy", last_number("q", 736), "set/train.npy: row 629: vertex 736 is not one of the 736 vertices"),
        ("set/valid.npy", last_number("q", 0), "vertex 0"),
        ("set/test_labels.npy", last_number("q", 349), "label 349 is outside 0 to 348"),
        ("set/train_labels.npy", lambda _: npy("i8", (629,), g.labels[:629]), "set/train_labels.npy: is [629, 1]"),
        (meta, text("num: 736", "num: 737"), "data/paper.npy: has 736 rows"),
        (meta, text("{type: author, num", "{type: writer, num"), "there are no vertices of type 'author'"),
        (meta, text("      - type: paper", "      - type: venue"), "there are no vertices of type 'venue'"),
        (meta, text("      - type: paper", "      - type: author"), "sets of several types of vertices; a loss is of "
                                                                   "one"),
        (meta, text("'paper:cites:paper'", "cites"), "a type of edges is source:relation:destination"),
        (meta, half, "metadata.yaml"),
    ])


def damage_plain(g):
    cites = "edges/paper__cites__paper/edges.npy"
    refused(plain, g, [
        (cites, half, cites),
        (cites, last_number("q", 736), "destination 736 is not one of the 736 vertices of type paper"),
        (cites, last_number("q", -1), cites),
        (cites, None, cites),
        ("nodes/paper/features.npy", half, "nodes/paper/features.npy"),
        ("nodes/paper/labels.npy", half, "nodes/paper/labels.npy"),
        ("nodes/paper/labels.npy", lambda _: npy("i8", (735,), g.labels[:735]), "labels.npy: has 735 rows"),
        ("nodes/paper/train_idx.npy", last_number("q", 736), "train_idx.npy: row 629: vertex 736"),
        ("nodes/paper/valid_idx.npy", last_number("q", 0), "vertex 0"),
        ("nodes/author", None, "author__affiliated_with__institution: is not named"),
    ])


# -- the formats' own readers -----------------------------------------------------------------

def read_by_ogb(g):
    import numpy as np
    from ogb.nodeproppred import NodePropPredDataset
    mag(g, fresh("folder"))
    os.makedirs(f"{WORK}/folder/processed")
    facts = {"dir_path": f"{WORK}/folder", "version": 2, "download_name": "mag", "num tasks": 1, "task type": "",
             "eval metric": "acc", "num classes": g.classes, "is hetero": "True", "binary": "False", "url": "",
             "add_inverse_edge": "False", "additional node files": "node_year", "split": "time",
             "additional edge files": "edge_reltype"}
    data = NodePropPredDataset("ogbn-mag", meta_dict=facts)
    graph, labels = data[0]
    for relation, edge in g.edges.items():
        assert np.array_equal(graph["edge_index_dict"][relation], np.array(edge)), relation
    assert list(graph["node_feat_dict"]) == ["paper"] and graph["node_feat_dict"]["paper"].tobytes() == g.rows["paper"]
    assert labels["paper"].ravel().tolist() == g.labels
    for s, ids in data.get_idx_split().items():
        assert ids["paper"].tolist() == g.sets[s], s
    print("reads it back equal: ogb, ogbn-mag's tables")


def read_by_dgl(g):
    """The lines of igb.dataloader.IGBHeteroDGLDataset.process() that load and join."""
    import dgl
    import numpy as np
    import torch
    igbh(g, fresh("folder"))
    load = {r: torch.from_numpy(np.load(f"{WORK}/folder/processed/{'__'.join(r)}/edge_index.npy")) for r in g.edges}
    graph = dgl.heterograph({r: (e[:, 0], e[:, 1]) for r, e in load.items()})
    for name, (n, width) in g.types.items():
        rows = torch.from_numpy(np.load(f"{WORK}/folder/processed/{name}/node_feat.npy"))
        assert rows.shape == (n, width) and rows.numpy().tobytes() == g.rows[name], name
    graph.nodes["paper"].data["label"] = torch.from_numpy(
        np.load(f"{WORK}/folder/processed/paper/node_label_19.npy")).to(torch.long)
    assert graph.nodes["paper"].data["label"].tolist() == g.labels
    for relation, edge in g.edges.items():
        assert [v.tolist() for v in graph.edges(etype=relation)] == list(edge), relation
    print("reads it back equal: DGL, as IGB's loader does")


def tenth(shape):
    """A graph of a tenth of the size, whose copies are damaged sooner."""
    return {"types": {name: (n // 10, width) for name, (n, width) in shape["types"].items()},
            "relations": {r: count // 10 for r, count in shape["relations"].items()},
            "classes": shape["classes"], "sets": tuple(n // 10 for n in shape["sets"])}


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    if LIBRARIES:
        import torch
        torch.__version__ = torch.__version__.replace("1.13.0a0", "1.13.0") # Debian's, which DGL takes for an older one
    for shape, writers in ((MAG, {"ogbn-mag's tables": mag, "OGB's arrays": mag_arrays, "GraphBolt's folder": bolt}),
                           (IGBH, {"IGBH's folder": igbh, "IGBH without headers": igbh_bare})):
        g = Graph(shape, 1)
        plain(g, fresh("plain"))
        own, run = partition(f"{WORK}/plain", "own")
        if run.returncode:
            die(run.stderr)
        for what, write in writers.items():
            same(what, write, g, own)
        if "GS_SANITIZED" not in os.environ:
            trains(g, own)
        if LIBRARIES:
            (read_by_ogb if shape is MAG else read_by_dgl)(g)
    for damage in (damage_mag, damage_mag_arrays, damage_bolt, damage_plain):
        damage(Graph(MAG, 1))
    damage_igbh(Graph(tenth(IGBH), 1))
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
