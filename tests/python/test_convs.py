#!/usr/bin/env python3
"""test_convs.py: PyG's convolutions computed by the engine (gnnstream.convs), against their formulas with dense
matrices in float64, and, where torch_geometric is installed, against PyG's own: initial weights, values, gradients."""
import copy
import os
import pickle
import unittest

import torch
from torch.nn import Linear, ReLU, Sequential

from gnnstream import torch as ours
from gnnstream.torch import GATConv, GCNConv, GINConv, Graph, SAGEConv

try:
    import torch_geometric.nn as theirs
except ImportError:
    theirs = None
    print("test_convs.py: no torch_geometric: what is beside PyG's own was left out")

N, WIDE = 40, 12
torch.manual_seed(0)
EDGES = torch.randint(0, N, (2, 260))
EDGES[:, :5] = torch.tensor([[1, 2, 2, 3, 4]]).repeat(2, 1)  # loops, of vertex 2 two
EDGES = EDGES[:, (EDGES[1] != 7) & ((EDGES[0] != EDGES[1]) | (torch.arange(260) < 5))]  # vertex 7 has no in-edge
WEIGHTS = torch.rand(EDGES.shape[1]) + 0.1
X = torch.randn(N, WIDE)
PAIRS = torch.stack((EDGES[0], EDGES[1] % 15))
ROWS = torch.randn(15, 7)


def mlp():
    return Sequential(Linear(WIDE, 16), ReLU(), Linear(16, 8))


def adjacency(edges=EDGES, weights=None, rows=N):
    """[target, source] float64."""
    a = torch.zeros(rows, N, dtype=torch.float64)
    return a.index_put_((edges[1], edges[0]), (torch.ones(edges.shape[1]) if weights is None else weights).double(),
                        accumulate=True)


def gcn(conv, x, weights):
    """D^-1/2 (A + I) D^-1/2 X W' + b of the definition; of a vertex' own loops the last counts."""
    stay = [k for k in range(EDGES.shape[1]) if EDGES[0, k] != EDGES[1, k]]
    own = {int(EDGES[0, k]): 1.0 if weights is None else float(weights[k]) for k in range(EDGES.shape[1])
           if EDGES[0, k] == EDGES[1, k]}
    a = adjacency(EDGES[:, stay], None if weights is None else weights[stay])
    a += torch.diag(torch.tensor([own.get(v, 1.0) for v in range(N)], dtype=torch.float64))
    root = a.sum(1).rsqrt()
    return root[:, None] * a * root @ x @ conv.lin.weight.double().t() + conv.bias.double()


def sage(conv, x):
    a = adjacency()
    mean = a @ x / a.sum(1, keepdim=True).clamp(min=1)
    return mean @ conv.lin_l.weight.double().t() + conv.lin_l.bias.double() + x @ conv.lin_r.weight.double().t()


def gat(conv, x):
    """Each edge once for each time that it is there; a vertex' loops are replaced by one."""
    times = adjacency()
    times.fill_diagonal_(1.0)
    h = (x @ conv.lin.weight.double().t()).view(N, conv.heads, -1)
    score = (h * conv.att_src.double()).sum(-1)[None] + (h * conv.att_dst.double()).sum(-1)[:, None]
    score = torch.where(score > 0, score, 0.2 * score)
    share = times[..., None] * (score - score.amax(1, keepdim=True)).exp()
    share = share / share.sum(1, keepdim=True)
    return torch.einsum("vuh,uhd->vhd", share, h).reshape(N, -1) + conv.bias.double()


def gin(conv, x):
    first, _, last = conv.nn
    z = adjacency() @ x + (1 + conv.eps.double()) * x
    z = (z @ first.weight.double().t() + first.bias.double()).relu()
    return z @ last.weight.double().t() + last.bias.double()


def run(call, x, parameters):
    """[y, gradients of x and of the parameters] of an upstream gradient that is the same for all."""
    x = x.detach().clone().requires_grad_()
    y = call(x)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(5)).to(y.dtype)
    return [y.detach(), *torch.autograd.grad((y * upstream).sum(), [x, *parameters])]


class Formulas(unittest.TestCase):
    def check(self, conv, formula, *more):
        got = run(lambda x: conv(x, EDGES, *more), X, conv.parameters())
        want = run(lambda x: formula(conv, x, *more), X.double(), conv.parameters())
        for a, b in zip(got, want):
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-5, atol=2e-5)

    def test_values_and_gradients(self):
        torch.manual_seed(1)
        convs = GCNConv(WIDE, 20), SAGEConv(WIDE, 20), GATConv(WIDE, 6, heads=3), GINConv(mlp(), 0.3, train_eps=True)
        for conv in convs:
            with torch.no_grad():
                for p in conv.parameters():
                    p.copy_(torch.randn(p.shape) * 0.3)
        self.check(convs[0], gcn, None)
        self.check(convs[0], gcn, WEIGHTS)
        for conv, formula in zip(convs[1:], (sage, gat, gin)):
            self.check(conv, formula)


class Graphs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.conv = SAGEConv(WIDE, 8)

    def test_forms_of_a_graph(self):
        want = self.conv(X, EDGES)
        transposed = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(EDGES.shape[1]), (N, N))
        for form in (Graph(EDGES, N), transposed):
            self.assertTrue(torch.equal(want, self.conv(X, form)))
        other = SAGEConv(WIDE, 8, flow="target_to_source")
        other.load_state_dict(self.conv.state_dict())
        self.assertTrue(torch.equal(want, other(X, EDGES.flip(0))))
        both = self.conv(torch.stack((X, 2 * X)), EDGES)
        self.assertTrue(torch.equal(both[0], want) and torch.equal(both[1], self.conv(2 * X, EDGES)))

    def test_edges_that_change_in_place_are_seen(self):
        edges = EDGES.clone()
        self.conv(X, edges)
        edges[0] = 3
        self.assertTrue(torch.equal(self.conv(X, edges), self.conv(X, edges.clone())))
        self.assertFalse(torch.equal(self.conv(X, edges), self.conv(X, EDGES)))

    def test_layers_of_one_model_keep_one_copy_of_its_edges(self):
        edges = torch.randint(0, 30, (2, 100))
        first, last = SAGEConv(4, 4), GINConv(torch.nn.Linear(4, 2))
        last(first(torch.randn(30, 4), edges), edges)
        self.assertIs(first._kept[0].seen[0], last._kept[0].seen[0])
        self.assertIsNot(first._kept[0].seen[0], edges)
        self.assertEqual(first._kept[0].graph.source.data_ptr(), last._kept[0].graph.source.data_ptr())

    @unittest.skipIf("GS_HOST_GPU_HAS_ALL" in os.environ, "pretended_gpu.py: as in test_torch.py")
    def test_torch_compile_takes_one_graph_for_batches_of_any_size(self):
        """Without a break, and without compiling again: edges are looked at when the operator runs."""
        torch._dynamo.reset()
        pairs = (GCNConv(WIDE, 5), EDGES), (SAGEConv((WIDE, 7), 5), PAIRS), (GINConv(mlp()), EDGES), \
            (GATConv(WIDE, 4, heads=2), EDGES)
        for conv, edges in pairs:
            compiled = torch.compile(conv, backend="aot_eager", fullgraph=True, dynamic=True)
            for rows in (N, 33, 25):
                some = edges[:, (edges < rows).all(0)]
                x = torch.randn(rows, WIDE)
                x = (x, ROWS) if edges is PAIRS else x
                got, want = (torch.autograd.grad(made.square().sum(), list(conv.parameters())) for made in
                             (compiled(x, some), conv(x, some)))
                for a, b in zip(got, want):
                    self.assertTrue(torch.equal(a, b), conv)
        graph = Graph(EDGES, N)
        whole = torch.compile(pairs[0][0], backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(whole(X, graph), pairs[0][0](X, graph)))
        with self.assertRaisesRegex(IndexError, "a source beyond 40 or a target beyond 15"):
            pairs[1][0]((X, ROWS), PAIRS + 20)

    def test_jacobians_and_samples(self):
        """Where the edges were never seen before, too."""
        edges = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
        x = torch.randn(3, 4)
        for conv in (GCNConv(4, 2), SAGEConv(4, 2), GATConv(4, 2), GINConv(Linear(4, 2))):
            got = torch.func.jacrev(lambda z, c=conv: c(z, edges))(x)
            torch.testing.assert_close(got, torch.autograd.functional.jacobian(lambda z, c=conv: c(z, edges), x))
            both = torch.func.vmap(lambda z, c=conv: c(z, edges))(torch.stack([x, -x]))
            torch.testing.assert_close(both[1], conv(-x, edges))

    def test_a_graph_is_kept_as_it_was(self):
        """The engine of evaluations opens later than that of training, when the caller's edges are others."""
        fresh = SAGEConv(WIDE, 8)
        fresh.load_state_dict(self.conv.state_dict())
        edges = EDGES.clone()
        self.conv(X, edges)
        edges[0] = 3
        self.assertTrue(torch.equal(self.conv.eval()(X, EDGES), fresh.eval()(X, EDGES)))

    def test_copies(self):
        want = self.conv(X, EDGES)
        for other in (copy.deepcopy(self.conv), pickle.loads(pickle.dumps(self.conv))):
            self.assertTrue(torch.equal(other(X, EDGES), want))

    def test_many_graphs(self):
        for n in range(1, 12):
            edges = EDGES[:, (EDGES < n).all(0)]
            fresh = SAGEConv(WIDE, 8)
            fresh.load_state_dict(self.conv.state_dict())
            self.assertTrue(torch.equal(self.conv(X[:n], edges), fresh(X[:n], edges)))
        self.assertLessEqual(len(self.conv._kept), 4)

    def test_without_vertices(self):
        self.assertEqual(self.conv(X[:0], EDGES[:, :0]).shape, (0, 8))

    def test_dropout_of_attention_in_training_alone(self):
        conv = GATConv(WIDE, 8, dropout=0.5)
        torch.manual_seed(3)
        a, b = conv(X, EDGES), conv(X, EDGES)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(a, conv(X, EDGES)))
        self.assertFalse(torch.equal(a, b))
        still = GATConv(WIDE, 8)
        still.load_state_dict(conv.state_dict())
        self.assertTrue(torch.equal(conv.eval()(X, EDGES), still(X, EDGES)))

    def test_refusals(self):
        for wrong, call in (
                (NotImplementedError, lambda: SAGEConv(4, 4, aggr="lstm")),
                (NotImplementedError, lambda: GATConv(4, 4, edge_dim=3)),
                (NotImplementedError, lambda: GATConv((4, 4), 4)),
                (NotImplementedError, lambda: GATConv(WIDE, 4)(X, EDGES, return_attention_weights=True)),
                (ValueError, lambda: GCNConv(4, 4, add_self_loops=True, normalize=False)),
                (NotImplementedError, lambda: GCNConv(WIDE, 4)(X, EDGES, WEIGHTS.clone().requires_grad_())),
                (TypeError, lambda: self.conv(X.double(), EDGES)),
                (TypeError, lambda: self.conv(X, EDGES.float())),
                (ValueError, lambda: self.conv(X[:5], EDGES, size=(N, N))),
                (ValueError, lambda: self.conv(X, Graph(EDGES, N + 1))),
                (IndexError, lambda: self.conv((X, ROWS), EDGES))):
            self.assertRaises(wrong, call)


@unittest.skipIf(theirs is None, "no torch_geometric")
class BesidePyG(unittest.TestCase):
    def check(self, make, x, *graph):
        torch.manual_seed(4)
        want = make(theirs)
        torch.manual_seed(4)
        got = make(ours)
        self.assertEqual(repr(want), repr(got))
        self.assertEqual(list(want.state_dict()), list(got.state_dict()))
        for a, b in zip(want.state_dict().values(), got.state_dict().values()):
            self.assertTrue(torch.equal(a, b))
        made = []
        for conv in (want, got):
            xs = [t.clone().requires_grad_() for t in (x if isinstance(x, tuple) else (x,))]
            y = conv(tuple(xs) if isinstance(x, tuple) else xs[0], *graph)
            torch.manual_seed(6)
            made.append([y, *torch.autograd.grad((y * torch.randn_like(y)).sum(), [*xs, *conv.parameters()])])
        for a, b in zip(*made):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-5)

    def test_gcn(self):
        for more in ({}, {"bias": False}, {"improved": True}, {"normalize": False}, {"add_self_loops": False},
                     {"cached": True}):
            self.check(lambda m, more=more: m.GCNConv(WIDE, 20, **more), X, EDGES)
            self.check(lambda m, more=more: m.GCNConv(WIDE, 20, **more), X, EDGES, WEIGHTS)

    def test_sage(self):
        for more in ({}, {"aggr": "sum"}, {"aggr": "max"}, {"aggr": "min"}, {"normalize": True}, {"bias": False},
                     {"root_weight": False}, {"project": True}):
            self.check(lambda m, more=more: m.SAGEConv(WIDE, 20, **more), X, EDGES)
        self.check(lambda m: m.SAGEConv((WIDE, 7), 20), (X, ROWS), PAIRS)

    def test_gat(self):
        for more in ({}, {"heads": 3}, {"heads": 3, "concat": False}, {"heads": 2, "add_self_loops": False},
                     {"residual": True}, {"bias": False, "negative_slope": 0.1}):
            self.check(lambda m, more=more: m.GATConv(WIDE, 20, **more), X, EDGES)

    def test_gin(self):
        for learned in (False, True):
            self.check(lambda m, learned=learned: m.GINConv(mlp(), eps=0.3, train_eps=learned), X, EDGES)
        self.check(lambda m: m.GINConv(mlp()), (X, ROWS[:, :1].repeat(1, WIDE)), PAIRS)


if __name__ == "__main__":
    unittest.main(verbosity=1)
