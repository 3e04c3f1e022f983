#!/usr/bin/env python3
"""layouts.py FOLDER: small graphs in FOLDER, in the layouts that docs/large-graphs.md tells its readers to fetch."""
import gzip
import os
import sys

import numpy as np

N, E, F, CLASSES = 300, 1500, 16, 5


def table(path, rows):
    """A table of OGB's: compressed, without a header."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(",".join(str(each) for each in np.atleast_1d(row)) + "\n" for row in rows)


def main():
    os.chdir(sys.argv[1])
    random = np.random.default_rng(0)
    edges, label = random.integers(0, N, (2, E)), random.integers(0, CLASSES, N)
    x, third = random.normal(size=(N, F)).astype(np.float32), np.split(random.permutation(N), 3)

    for name, rows in (("edge", edges.T), ("node-feat", x), ("node-label", label), ("num-node-list", [N]),
                       ("num-edge-list", [E])):
        table(f"products/raw/{name}.csv.gz", rows)
    for folder in ("products/split/sales_ranking", "papers100M-bin/split/time"):
        for split, ids in zip(("train", "valid", "test"), third):
            table(f"{folder}/{split}.csv.gz", ids)

    os.makedirs("papers100M-bin/raw")
    np.savez_compressed("papers100M-bin/raw/data.npz", edge_index=edges, node_feat=x, num_nodes_list=[N],
                        node_year=np.full((N, 1), 2019), num_edges_list=[E])
    np.savez_compressed("papers100M-bin/raw/node-label.npz", node_label=label.reshape(-1, 1).astype(np.float32))

    os.makedirs("igb-large/processed/paper")
    os.makedirs("igb-large/processed/paper__cites__paper")
    np.save("igb-large/processed/paper__cites__paper/edge_index.npy", edges.T.copy())
    x.tofile("igb-large/processed/paper/node_feat.npy")  # the large ones have no headers
    label.astype(np.float32).tofile("igb-large/processed/paper/node_label_19.npy")

    both = np.concatenate([edges, edges[::-1]], 1).astype(np.int32)
    np.savez("reddit_graph.npz", row=both[0], col=both[1], data=np.ones(2 * E, np.int64), shape=[N, N],
             format=np.array("coo"))
    types = np.zeros(N, np.int64)
    for k, ids in enumerate(third):
        types[ids] = k + 1
    np.savez("reddit_data.npz", feature=x, label=label, node_types=types, node_ids=np.arange(N))


if __name__ == "__main__":
    main()
