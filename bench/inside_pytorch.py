#!/usr/bin/env python3
"""inside_pytorch.py SCALE - for inside_pytorch.sh: gradients and epochs of an attention layer, traced from Python and
run by the engine, beside torch_geometric's GATConv; then epochs of PyG's convolutions and of gnnstream.torch's of the
same names, each in a process of its own. Fails where a gradient is more than 1e-5 from its in float64."""
import importlib
import json
import statistics
import subprocess
import sys
import time

import torch
from torch_geometric.nn import GATConv

import gnnstream as gs
from gnnstream.nn import dot, leaky_relu, softmax, sum
from gnnstream.torch import Graph, GraphLayer

EPOCHS = 5


@gs.layer("h[in] -> [heads*d]", "lin.weight[heads*d, in]", "att_src[1, heads, d]", "att_dst[1, heads, d]",
          "bias[heads*d]")
def attend(v, p):
    v.x = v.h @ p["lin.weight"].T
    v.a = dot(v.x, p.att_src)
    v.b = dot(v.x, p.att_dst)
    return sum(softmax(leaky_relu(u.a + v.b, 0.2)) * u.x for u in v.innbs) + p.bias


def named(state):
    """GATConv's state dict with the layer's names: before 2.6 its product was called lin_src."""
    return {name.replace("lin_src", "lin"): tensor for name, tensor in state.items()}


def gradients(module, x, upstream, *more):
    x = x.clone().requires_grad_()
    y = module(x, *more)
    y.backward(upstream)
    found = named({name: p.grad for name, p in module.named_parameters()})
    return {"y": y.detach(), "x": x.grad, **found}


def compare(vertices, edges, width, heads, d, loops):
    ends = torch.randint(0, vertices, (2, edges))
    ends[1] %= max(1, vertices - 3)  # the last have no in-edges
    parts = [ends, ends[:, :edges // 10]]  # doubled edges
    if loops:
        parts.append(torch.arange(vertices // 2).repeat(2, 1))
    ends = torch.cat(parts, 1)
    exact = GATConv(width, d, heads=heads, add_self_loops=False)
    layer = GraphLayer(attend, Graph(ends, vertices), width, heads * d, heads=heads)
    layer.load_state_dict(named(exact.state_dict()))
    x, upstream = torch.randn(vertices, width), torch.randn(vertices, heads * d)
    want = gradients(exact.double(), x.double(), upstream.double(), ends)
    got = gradients(layer, x, upstream)
    off = {name: ((got[name] - want[name]).abs().max() / want[name].abs().max().clamp(min=1)).item() for name in want}
    print(f"{vertices:7,} vertices {ends.shape[1]:9,} edges, {heads} heads of {d}: furthest from float64, of the "
          "largest: " + ", ".join(f"{name} {value:.1e}" for name, value in off.items()))
    return max(off.values()) <= 1e-5


class Pyg(torch.nn.Module):
    def __init__(self, ends):
        super().__init__()
        self.ends = ends
        self.first = GATConv(64, 8, heads=8, add_self_loops=False)
        self.last = GATConv(64, 8, add_self_loops=False)

    def forward(self, x):
        return self.last(torch.nn.functional.elu(self.first(x, self.ends)), self.ends)


class Engine(torch.nn.Module):
    def __init__(self, ends, vertices):
        super().__init__()
        graph = Graph(ends, vertices)
        self.first = GraphLayer(attend, graph, 64, 64, heads=8)
        self.last = GraphLayer(attend, graph, 64, 8, heads=1)

    def forward(self, x):
        return self.last(torch.nn.functional.elu(self.first(x)))


def train(name, net, x, y):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    wall, processor, losses = [], [], []
    for _ in range(EPOCHS):
        start, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - cpu)
        losses.append(loss.item())
    print(f"{name:10} {statistics.median(wall[1:]):.3f} s an epoch, {statistics.median(processor[1:]):.3f} of a "
          f"processor; losses {' '.join(f'{each:.6f}' for each in losses)}")
    return statistics.median(processor[1:]), losses


class Convs(torch.nn.Module):
    """Two layers, 128-64-16, of a convolution of `library`, a module's name."""

    def __init__(self, library, name, ends):
        super().__init__()
        module = importlib.import_module(library)
        self.ends = ends

        def conv(wide, out):
            if name == "GINConv":
                return module.GINConv(torch.nn.Linear(wide, out))
            return getattr(module, name)(wide, out)

        self.first, self.last = conv(128, 64), conv(64, 16)

    def forward(self, x):
        return self.last(torch.relu(self.first(x, self.ends)), self.ends)


def resident(what):
    """MiB of this process, now (VmRSS) or at most so far (VmHWM)."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) / 1024


def one(library, name, scale):
    """Epochs of one of them in this process: its seconds, most memory above what it begins with, losses."""
    torch.manual_seed(1)
    vertices, edges = 200_000 // scale, 2_000_000 // scale
    ends, x = torch.randint(0, vertices, (2, edges)), torch.randn(vertices, 128)
    y = torch.randint(0, 16, (vertices,))
    net = Convs(library, name, ends)
    before = resident("VmRSS")
    cpu, losses = train(f"{library.split('.')[0]:15} {name:8}", net, x, y)
    print(json.dumps([cpu, resident("VmHWM") - before, losses]))


def beside(name, scale):
    made = []
    for library in ("torch_geometric.nn", "gnnstream.torch"):
        out = subprocess.run([sys.executable, __file__, str(scale), library, name], check=True, stdout=subprocess.PIPE,
                             text=True).stdout.splitlines()
        print(*out[:-1], sep="\n")
        made.append(json.loads(out[-1]))
    (slow, much, a), (fast, little, b) = made
    print(f"{name}: processor time {slow / fast:.1f} times as long in PyG; memory on top {much:.0f} MiB there, "
          f"{little:.0f} here; furthest losses {max(abs(p - q) for p, q in zip(a, b)):.1e} apart")


def main():
    scale = int(sys.argv[1])
    if len(sys.argv) > 2:
        return one(sys.argv[2], sys.argv[3], scale)
    torch.manual_seed(1)
    fine = [compare(50, 300, 7, 2, 3, True), compare(1000, 9000, 33, 8, 8, False),
            compare(70_000, 300_000, 16, 4, 8, True)]
    vertices, edges = 100_000 // scale, 1_000_000 // scale
    ends, x = torch.randint(0, vertices, (2, edges)), torch.randn(vertices, 64)
    y = torch.randint(0, 8, (vertices,))
    pyg, engine = Pyg(ends), Engine(ends, vertices)
    engine.load_state_dict(named(pyg.state_dict()))
    print(f"two layers on {vertices:,} vertices and {edges:,} edges, {torch.get_num_threads()} threads:")
    slow, a = train("GATConv", pyg, x, y)
    fast, b = train("gnnstream", engine, x, y)
    print(f"processor time {slow / fast:.1f} times as long with GATConv; furthest losses "
          f"{max(abs(p - q) for p, q in zip(a, b)):.1e} apart")
    for name in ("GCNConv", "SAGEConv", "GATConv", "GINConv"):
        beside(name, scale)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
