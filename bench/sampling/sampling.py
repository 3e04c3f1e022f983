#!/usr/bin/env python3
"""sampling.py GRAPH STORE [--binary PATH] [--seconds S] [--peers graphbolt,torch-sparse]

How fast are batches of neighbours drawn, beside GraphBolt (DGL) and what torch_geometric's NeighborLoader calls where
pyg-lib is not there (torch-sparse)? One thread each, the same graph, targets, batch size and fanouts; only drawing is
timed, not the reading of features.

GRAPH is a folder with edges.npy as `gnnstream generate` makes it, STORE what `gnnstream partition --method natural`
makes of it, so that all draw in one order of vertices. Speed is per second of the processor (`cpu` is its share of wall
seconds), so that other programs on the machine matter less. Needs numpy, torch 2.2 with dgl 2.1 (graphbolt) and
torch-sparse; those that are not there are left out. Build first: ninja bench/sampling/sample_epochs.

GraphBolt draws a block a layer: a vertex' edges are drawn again in each layer after the one that it was first in, so
its edges are counted with repetitions, as it counts them; each of its blocks is compacted, but has no order by source.
torch-sparse gives the edges with local ids, in no order. gnnstream's batches are whole: both directions, sorted.
"""
import argparse
import json
import os
import subprocess
import sys
import time

CASES = [(1024, [10, 10]), (1024, [25, 10]), (1024, [15, 10, 5]), (512, [30, 30])]


def ours(binary, store, seconds, batch, fanouts):
    out = subprocess.run([binary, store, str(seconds), str(batch), *map(str, fanouts)], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def csc_of(graph):
    import numpy as np
    import torch

    edges = np.load(os.path.join(graph, "edges.npy"), mmap_mode="r")
    with open(os.path.join(graph, "meta.json"), encoding="utf-8") as f:
        vertices = json.load(f)["num_nodes"]
    source, target = torch.from_numpy(np.ascontiguousarray(edges[:, 0])), np.ascontiguousarray(edges[:, 1])
    order = torch.from_numpy(np.argsort(target, kind="stable"))
    indptr = torch.zeros(vertices + 1, dtype=torch.int64)
    indptr[1:] = torch.from_numpy(np.cumsum(np.bincount(target, minlength=vertices)))
    return vertices, indptr, source[order].contiguous()


def timed(draw, targets, seconds, batch):
    """draw(seeds) gives (edges, vertices)."""
    import torch

    total = {"batches": 0, "edges": 0, "vertices": 0}
    draw(targets[:batch])
    begin, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        order = targets[torch.randperm(len(targets))]
        for first in range(0, len(order), batch):
            edges, vertices = draw(order[first:first + batch])
            total["batches"] += 1
            total["edges"] += edges
            total["vertices"] += vertices
            if time.perf_counter() - begin >= seconds:
                break
    return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, **total}


def graphbolt(graph, seconds):
    import dgl.graphbolt as gb
    import torch

    vertices, indptr, indices = graph
    g = gb.fused_csc_sampling_graph(indptr.int(), indices.int())
    targets = torch.arange(0, vertices, 10, dtype=torch.int32)

    def case(batch, fanouts):
        fanouts = [torch.tensor([f]) for f in fanouts]

        def draw(seeds):
            edges = 0
            for fanout in fanouts:
                sub = g.sample_neighbors(seeds, fanout)
                seeds, csc = gb.unique_and_compact_csc_formats(sub.sampled_csc, seeds)
                edges += len(csc.indices)
            return edges, len(seeds)

        return timed(draw, targets, seconds, batch)

    return case


def torch_sparse(graph, seconds):
    import torch
    import torch_sparse as _  # noqa: F401  registers the operators

    vertices, indptr, indices = graph
    targets = torch.arange(0, vertices, 10)

    def case(batch, fanouts):
        def draw(seeds):
            node, row, _, _ = torch.ops.torch_sparse.neighbor_sample(indptr, indices, seeds, fanouts, False, True)
            return len(row), len(node)

        return timed(draw, targets, seconds, batch)

    return case


def report(name, batch, fanouts, r, first):
    speed = r["edges"] / r["cpu"] / 1e6
    print(f"{name:14}{batch:6} {','.join(map(str, fanouts)):10}{r['batches'] / r['cpu']:10.1f}{speed:10.2f}"
          f"{r['edges'] / r['batches']:12.0f}{r['vertices'] / r['batches']:12.0f}{r['cpu'] / r['seconds']:7.2f}"
          + (f"{first / (r['batches'] / r['cpu']):8.2f}" if first else ""), flush=True)
    return r["batches"] / r["cpu"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("store")
    parser.add_argument("--binary", default="build/bench/sampling/sample_epochs")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--peers", default="graphbolt,torch-sparse")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    peers = {}
    try:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(1)
        graph = csc_of(args.graph)
        for name in args.peers.split(","):
            try:
                peers[name] = {"graphbolt": graphbolt, "torch-sparse": torch_sparse}[name](graph, args.seconds)
            except (ImportError, OSError) as error:
                print(f"sampling.py: {name} is left out: {error}", file=sys.stderr)
    except ImportError as error:
        print(f"sampling.py: no peers: {error}", file=sys.stderr)
    print(f"{'':14}{'batch':>6} {'fanouts':10}{'batches/s':>10}{'M edges/s':>10}{'edges':>12}{'vertices':>12}"
          f"{'cpu':>7}{'times':>8}")
    for batch, fanouts in CASES:
        first = report("gnnstream", batch, fanouts, ours(args.binary, args.store, args.seconds, batch, fanouts), None)
        for name, case in peers.items():
            report(name, batch, fanouts, case(batch, fanouts), first)


if __name__ == "__main__":
    main()
