#!/usr/bin/env python3
"""peer.py LOADER GRAPH [OPTIONS] - trains GraphSAGE or GAT on batches of neighbours in PyTorch, with LOADER's batches.

LOADER is graphbolt (DGL 2.1's), neighborloader (torch_geometric's, with torch-sparse; with pyg-lib, which alone counts
the rows of each hop, its layers are trimmed to what they need), loader-dgl and loader-pyg, which are gnnstream's own
over --store with the layers of the one or the other; occupied-dgl and occupied-pyg, which are no loader, but one random
batch, as large as fanouts can make it, for the memory that Python, PyTorch and the model take with any loader; or
prepare, which writes the graph by destination beside edges.npy, as the first two take it, so that no sorting is timed
or counted. The same two layers, widths, fanouts, batch size and Adam as gnnstream. GAT has 8 heads, the last layer
their mean; DGL's adds no self loops. Prints a line of JSON:
batches of an epoch, seconds and processor seconds of each epoch, bytes that it read from the disk in each, the last
loss, the most memory resident, and how much of it the imports alone take.

--batches-alone goes over the batches without a model. --sampler is a library with torch-sparse's neighbour sampler, for
a Python that has neither torch-sparse nor pyg-lib (bench/same_training.sh compiles it).
"""
import argparse
import importlib
import json
import mmap
import os
import resource
import time

HEADS = 8


def peak():
    """Of this process: since it began, not what the one that started it had."""
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def read_bytes():
    with open("/proc/self/io", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("read_bytes"))


def prepare(a):
    import numpy as np

    edges = np.load(os.path.join(a.graph, "edges.npy"), mmap_mode="r")
    with open(os.path.join(a.graph, "meta.json"), encoding="utf-8") as f:
        vertices = json.load(f)["num_nodes"]
    target = np.ascontiguousarray(edges[:, 1])
    order = np.argsort(target, kind="stable")
    indptr = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=vertices), out=indptr[1:])
    np.save(os.path.join(a.graph, "peer_indptr.npy"), indptr)
    np.save(os.path.join(a.graph, "peer_indices.npy"), np.ascontiguousarray(edges[:, 0])[order].astype(np.int64))


class Inputs:
    def __init__(self, a, torch):
        import numpy as np

        def load(name, **how):
            return torch.from_numpy(np.load(os.path.join(a.graph, name), **how))

        self.indptr, self.indices = load("peer_indptr.npy"), load("peer_indices.npy")
        self.labels, self.train = load("labels.npy").long(), load("train_idx.npy").long()
        self.classes = int(self.labels.max()) + 1
        if not a.disk:
            self.x = load("features.npy").float()
            return
        # As GraphBolt's OnDiskDataset opens features with in_memory: false. Of what surrounds a row nothing is read
        # along, where the kernel would read as much as it does of a file that is read in order.
        rows = np.load(os.path.join(a.graph, "features.npy"), mmap_mode="r+")
        if not a.read_ahead:
            rows._mmap.madvise(mmap.MADV_RANDOM)
        self.x = torch.from_numpy(rows)


def of_dgl(a, torch, width, classes):
    """DGL's layers, and what they make of blocks."""
    import dgl

    if a.model == "sage":
        conv = [dgl.nn.SAGEConv(width, a.hidden, "mean"), dgl.nn.SAGEConv(a.hidden, classes, "mean")]
    else:
        conv = [dgl.nn.GATConv(width, a.hidden // HEADS, HEADS, allow_zero_in_degree=True),
                dgl.nn.GATConv(a.hidden, classes, HEADS, allow_zero_in_degree=True)]

    def through(blocks, h):
        for k, block in enumerate(blocks):
            h = conv[k](block, h)
            if a.model == "gat":
                h = h.flatten(1) if k == 0 else h.mean(1)
            h = torch.relu(h) if k == 0 else h
        return h

    return torch.nn.ModuleList(conv), through


def graphbolt(a, torch):
    import dgl.graphbolt as gb

    base = peak()
    g = Inputs(a, torch)
    net, through = of_dgl(a, torch, g.x.shape[1], g.classes)
    feature = gb.TorchBasedFeature(g.x)
    items = gb.ItemSet((g.train, g.labels[g.train]), names=("seed_nodes", "labels"))
    pipe = gb.ItemSampler(items, batch_size=a.batch, shuffle=True)
    pipe = pipe.sample_neighbor(gb.fused_csc_sampling_graph(g.indptr, g.indices), a.fanouts)
    loader = gb.DataLoader(pipe, num_workers=0)

    def take(mini):
        return mini.blocks, feature.read(mini.input_nodes), mini.labels

    return base, net, loader, take, through


def loader_dgl(a, torch):
    from gnnstream.loaders import to_blocks

    base, loader, shape = of_store(a, "dgl")
    net, through = of_dgl(a, torch, *shape)

    def take(mini):
        _, targets, blocks = to_blocks(mini)
        return blocks, blocks[0].srcdata["feat"], mini.y[:len(targets)]

    return base, net, loader, take, through


def of_store(a, layers):
    """Memory with the imports alone, gnnstream's loader, columns and classes."""
    from gnnstream import Store
    from gnnstream.loaders import NeighborLoader

    importlib.import_module(layers)
    base, store = peak(), Store(a.store)
    budget = {"host_memory": a.host_memory} if a.host_memory else {}
    loader = NeighborLoader(store, a.fanouts, batch_size=a.batch, input_nodes="train", shuffle=True, seed=1,
                            threads=a.threads, **budget)
    return base, loader, (store.features, store.classes)


def of_pyg(a, torch, width, classes):
    """torch_geometric's layers, and what they make of a batch."""
    import torch_geometric.nn as nn
    from torch_geometric.utils import trim_to_layer

    if a.model == "sage":
        conv = [nn.SAGEConv(width, a.hidden), nn.SAGEConv(a.hidden, classes)]
    else:
        conv = [nn.GATConv(width, a.hidden // HEADS, HEADS), nn.GATConv(a.hidden, classes, HEADS, concat=False)]
    net = torch.nn.ModuleList(conv)

    def through(mini, h):
        adjacency = mini.adj_t if "adj_t" in mini else mini.edge_index
        if "adj_t" in mini and a.edge_index:
            row, col, _ = adjacency.coo()
            adjacency = torch.stack([col, row])
        for k in range(2):
            if "num_sampled_nodes" in mini:
                h, adjacency, _ = trim_to_layer(k, mini.num_sampled_nodes, mini.num_sampled_edges, h, adjacency)
            h = net[k](h, adjacency)
            h = torch.relu(h) if k == 0 else h
        return h[:mini.batch_size]

    return net, through


def of_batch(mini):
    return mini, mini.x, mini.y[:mini.batch_size]


def neighborloader(a, torch):
    import torch_geometric
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    base = peak()
    g = Inputs(a, torch)
    n = g.x.shape[0]
    net, through = of_pyg(a, torch, g.x.shape[1], g.classes)
    data = Data(x=g.x, y=g.labels)
    if a.sampler:
        torch.ops.load_library(a.sampler)
        torch_geometric.typing.WITH_TORCH_SPARSE = True
        data.edge_index = torch.stack([g.indices, torch.arange(n).repeat_interleave(g.indptr.diff())])
    else:
        from torch_sparse import SparseTensor

        data.adj_t = SparseTensor(rowptr=g.indptr, col=g.indices, sparse_sizes=(n, n), is_sorted=True, trust_data=True)
    loader = NeighborLoader(data, num_neighbors=a.fanouts, batch_size=a.batch, input_nodes=g.train, shuffle=True,
                            is_sorted=True)
    return base, net, loader, of_batch, through


def loader_pyg(a, torch):
    base, loader, shape = of_store(a, "torch_geometric.nn")
    net, through = of_pyg(a, torch, *shape)
    return base, net, loader, of_batch, through


def largest_batch(a, torch):
    """Rows of the first k hops, edges of hop k, features and labels of a batch, and the number of classes."""
    import numpy as np

    n, width = np.load(os.path.join(a.graph, "features.npy"), mmap_mode="r").shape
    classes = int(np.load(os.path.join(a.graph, "labels.npy"), mmap_mode="r").max()) + 1
    rows, edges = [min(a.batch, n)], []
    for fanout in a.fanouts:
        edges.append(rows[-1] * fanout)
        rows.append(min(rows[-1] + edges[-1], n))
    return rows, edges, torch.rand(rows[-1], width), torch.randint(classes, (rows[0],)), classes


def occupied_dgl(a, torch):
    import dgl

    base = peak()
    rows, edges, x, y, classes = largest_batch(a, torch)
    net, through = of_dgl(a, torch, x.shape[1], classes)

    def take(_):
        blocks = [dgl.create_block((torch.randint(rows[k + 1], (edges[k],)), torch.randint(rows[k], (edges[k],))),
                                   num_src_nodes=rows[k + 1], num_dst_nodes=rows[k]) for k in (1, 0)]
        return blocks, x, y

    return base, net, range(3), take, through


def occupied_pyg(a, torch):
    from torch_geometric.data import Data

    importlib.import_module("torch_geometric.loader")
    importlib.import_module("torch_geometric.nn")
    base = peak()
    rows, edges, x, y, classes = largest_batch(a, torch)
    net, through = of_pyg(a, torch, x.shape[1], classes)

    def take(_):
        pairs = [torch.stack([torch.randint(rows[k + 1], (edges[k],)), torch.randint(rows[k], (edges[k],))])
                 for k in range(2)]
        return Data(edge_index=torch.cat(pairs, 1), batch_size=rows[0]), x, y

    return base, net, range(3), take, through


LOADERS = {"graphbolt": graphbolt, "neighborloader": neighborloader, "loader-dgl": loader_dgl, "loader-pyg": loader_pyg,
           "occupied-dgl": occupied_dgl, "occupied-pyg": occupied_pyg}


def train(a):
    import torch

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    base, net, loader, take, through = LOADERS[a.loader](a, torch)
    step = torch.optim.Adam(net.parameters(), lr=0.01)
    seconds, cpu, read, batches, loss = [], [], [], 0, torch.zeros(())
    for _ in range(a.epochs):
        begin, used, before, batches = time.perf_counter(), time.process_time(), read_bytes(), 0
        for mini in loader:
            graph, h, labels = take(mini)
            if not a.batches_alone:
                loss = torch.nn.functional.cross_entropy(through(graph, h), labels)
                step.zero_grad()
                loss.backward()
                step.step()
            batches += 1
            if batches == a.most_batches:
                break
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
        read.append(read_bytes() - before)
    print(json.dumps({"batches": batches, "seconds": seconds, "cpu": cpu, "read": read, "loss": loss.item(),
                      "peak": peak(), "imports": base,
                      "faults": resource.getrusage(resource.RUSAGE_SELF).ru_majflt}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("loader", choices=[*LOADERS, "prepare"])
    p.add_argument("graph")
    p.add_argument("--store", help="of gnnstream's loaders")
    p.add_argument("--host-memory", type=int, default=0, help="of gnnstream's loaders, bytes; 0: any")
    p.add_argument("--sampler")
    p.add_argument("--batches-alone", action="store_true")
    p.add_argument("--model", choices=["sage", "gat"], default="sage")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--fanout", default="15,10")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--most-batches", type=int, default=0, help="of an epoch; 0: all")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--disk", action="store_true", help="features stay on disk (numpy.memmap)")
    p.add_argument("--read-ahead", action="store_true", help="with --disk: leave that to the kernel")
    p.add_argument("--edge-index", action="store_true", help="NeighborLoader's layers get edge_index, not adj_t")
    a = p.parse_args()
    a.fanouts = [int(n) for n in a.fanout.split(",")]
    prepare(a) if a.loader == "prepare" else train(a)


main()
