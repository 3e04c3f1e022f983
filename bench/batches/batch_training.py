#!/usr/bin/env python3
"""batch_training.py GRAPH STORE [--gnnstream PATH] [--epochs N] [--batch B] [--fanout 15,10] [--hidden H]

Batches a second of GraphSAGE trained on batches of neighbours, and memory, beside DGL's GraphBolt: the same graph,
targets, batch size, fanouts, hidden width, Adam, threads. GRAPH is a folder with edges.npy and features.npy as
`gnnstream generate` makes it, STORE what `gnnstream partition --method natural` makes of it. The peer runs in a process
of its own, so that peaks are its own; its features are in memory, as ours are. Seconds of the processor stand beside
those of the clock, so that other programs on the machine matter less. Needs numpy, torch 2.2, dgl 2.1.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time


def peer(a):
    import numpy as np
    import torch
    import dgl
    import dgl.graphbolt as gb

    torch.set_num_threads(a.threads)
    edges = np.load(os.path.join(a.graph, "edges.npy"), mmap_mode="r")
    x = torch.from_numpy(np.load(os.path.join(a.graph, "features.npy")).astype(np.float32))
    y = torch.from_numpy(np.load(os.path.join(a.graph, "labels.npy")).astype(np.int64))
    train = torch.from_numpy(np.load(os.path.join(a.graph, "train_idx.npy")).astype(np.int64))
    target = np.ascontiguousarray(edges[:, 1])
    order = np.argsort(target, kind="stable")
    indptr = torch.zeros(len(x) + 1, dtype=torch.int64)
    indptr[1:] = torch.from_numpy(np.cumsum(np.bincount(target, minlength=len(x))))
    graph = gb.fused_csc_sampling_graph(indptr, torch.from_numpy(np.ascontiguousarray(edges[:, 0])[order]))
    del edges, target, order
    classes = int(y.max()) + 1
    conv = torch.nn.ModuleList([dgl.nn.SAGEConv(x.shape[1], a.hidden, "mean"),
                                dgl.nn.SAGEConv(a.hidden, classes, "mean")])
    step = torch.optim.Adam(conv.parameters(), lr=0.01)
    item = gb.ItemSet((train, y[train]), names=("seed_nodes", "labels"))
    pipe = gb.ItemSampler(item, batch_size=a.batch, shuffle=True)
    pipe = pipe.sample_neighbor(graph, a.fanouts)
    pipe = gb.DataLoader(pipe, num_workers=0)
    times = []
    for _ in range(a.epochs + 1):
        begin, cpu, batches = time.perf_counter(), time.process_time(), 0
        for mini in pipe:
            h = x[mini.input_nodes]
            for k, block in enumerate(mini.blocks):
                h = conv[k](block, h)
                h = torch.relu(h) if k == 0 else h
            loss = torch.nn.functional.cross_entropy(h, mini.labels)
            step.zero_grad()
            loss.backward()
            step.step()
            batches += 1
        times.append((time.perf_counter() - begin, time.process_time() - cpu))
    wall, cpu = (sum(t[k] for t in times[1:]) / a.epochs for k in (0, 1))
    print(json.dumps({"batches": batches, "seconds": wall, "cpu": cpu, "loss": loss.item(),
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def ours(a, epochs):
    with tempfile.NamedTemporaryFile() as f:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([a.gnnstream, "train", a.store, "--model", "sage", "--layers", "2", "--hidden", str(a.hidden),
                        "--sampler", "neighbor", "--batch-size", str(a.batch), "--fanout", a.fanout,
                        "--eval-every", "0", "--epochs", str(epochs), "--threads", str(a.threads), "--metrics",
                        f.name], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = [json.loads(line) for line in open(f.name, encoding="utf-8")]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return lines, cpu


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("graph")
    p.add_argument("store")
    p.add_argument("--gnnstream", default="build/tools/gnnstream")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--fanout", default="15,10")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--peer", action="store_true", help="be the peer's process")
    a = p.parse_args()
    a.fanouts = [int(n) for n in a.fanout.split(",")]
    if a.peer:
        return peer(a)
    out = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--peer"], check=True, capture_output=True,
                         text=True)
    theirs = json.loads(out.stdout.splitlines()[-1])
    _, once = ours(a, 1)
    lines, cpu = ours(a, 1 + a.epochs)
    n = theirs["batches"]
    wall = sum(e["seconds"] for e in lines[1:]) / a.epochs
    mine = {"seconds": wall, "cpu": (cpu - once) / a.epochs, "peak": lines[-1]["peak_host_bytes"],
            "loss": lines[-1]["loss"]}
    print(f"{'':12}{'batches/s':>12}{'batches/cpu-s':>15}{'MiB':>9}{'loss':>9}")
    for name, r in (("gnnstream", mine), ("GraphBolt", theirs)):
        print(f"{name:12}{n / r['seconds']:12.2f}{n / r['cpu']:15.2f}{r['peak'] / 2**20:9.0f}{r['loss']:9.4f}")
    return 0


sys.exit(main())
