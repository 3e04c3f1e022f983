#!/usr/bin/env python3
"""test_torch.py: layers inside PyTorch (gnnstream.torch), by torch alone."""
import copy
import io
import os
import threading
import unittest
import warnings

import torch
from torch.utils.checkpoint import checkpoint

import gnnstream as gs
from gnnstream.torch import Graph, GraphLayer

N = 60
PRETENDED = "GS_HOST_GPU_HAS_ALL" in os.environ  # pretended_gpu.py
SUMS = "layer sums(h[in]) -> [out]:\n    param w[out, in]\n    x = h @ w'\n    return sum(u.x)\n"
HALF = "layer half(h[in]) -> [out]:\n    param w[out, in]\n    return dropout(h @ w', 0.5)\n"


def graph(**more):
    torch.manual_seed(0)
    return Graph(torch.randint(0, N, (2, 300)), N, **more)


def gradient(layer, x, upstream, run=None):
    """(y, gradient of x, gradients of parameters) of one pass."""
    x = x.detach().requires_grad_()
    layer.zero_grad()
    y = (run or layer)(x)
    (y * upstream).sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in layer.parameters())]


class Devices(unittest.TestCase):
    def test_where_a_layer_is_not_computed(self):
        layer = GraphLayer(SUMS, graph(), 4, 4)
        with self.assertRaisesRegex(TypeError, "on meta; must be a dense tensor on the CPU or on a GPU"):
            layer(torch.zeros(N, 4, device="meta"))
        with self.assertRaisesRegex(TypeError, "w: of type torch.float32 on meta; .* where x is"):
            copy.deepcopy(layer).to("meta")(torch.zeros(N, 4))
        engine = layer._training.engine(torch.device("cpu"))
        with self.assertRaisesRegex(ValueError, "memory of a GPU, for a layer on the CPU"):
            engine.forward_there((64, N * 4), [(64, 16)], False, 0, (64, N * 4), 0)

    @unittest.skipIf(torch.cuda.is_available() or PRETENDED, "there is a GPU")
    def test_without_a_gpu_one_line_says_so(self):
        with self.assertRaisesRegex(gs.Error, "^device cuda(:0)?: [^\\n]*use [^\\n]*cpu[^\\n]*$"):
            GraphLayer(SUMS, graph(), 4, 4)._training.engine(torch.device("cuda:0"))

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    def test_a_gpu_gives_what_the_cpu_does(self):
        """Without waiting between PyTorch's work and the layer's, in a stream of its own; x at an odd place, too."""
        for text, options in (("gcn", {}), ("sage", {}), ("gat", {"heads": 2}), ("gin", {}), (HALF, {})):
            layer = GraphLayer(text, graph(), 8, 4, **options)
            x, upstream = torch.randn(N, 8), torch.randn(N, 4)
            torch.manual_seed(3)
            want = gradient(layer, x, upstream)
            layer.cuda()
            with torch.cuda.stream(torch.cuda.Stream()):
                odd = torch.cat((torch.zeros(1), x.flatten())).cuda()[1:].view(N, 8)
                torch.manual_seed(3)
                got = gradient(layer, odd, upstream.cuda())
                for a, b in zip(want, got):
                    torch.testing.assert_close(a, b.cpu(), rtol=1e-4, atol=1e-4)


class Dropout(unittest.TestCase):
    def setUp(self):
        self.layer = GraphLayer("gat", graph(), 8, 8, dropout=0.5)
        self.x, self.upstream = torch.randn(N, 8), torch.randn(N, 8)

    def test_manual_seed_says_the_mask(self):
        masks = []
        for seed in (5, 5, 6):
            torch.manual_seed(seed)
            masks.append(self.layer(self.x).detach())
        self.assertTrue(torch.equal(masks[0], masks[1]))
        self.assertFalse(torch.equal(masks[0], masks[2]))
        self.assertFalse(torch.equal(masks[0], self.layer(self.x)))

    def test_checkpoints_take_the_same_mask(self):
        torch.manual_seed(3)
        want = gradient(self.layer, self.x, self.upstream)
        for reentrant in (False, True):
            torch.manual_seed(3)
            got = gradient(self.layer, self.x, self.upstream,
                           lambda x, r=reentrant: checkpoint(self.layer, x, use_reentrant=r))
            for a, b in zip(want, got):
                self.assertTrue(torch.equal(a, b), reentrant)

    def test_half_is_dropped_in_training_alone(self):
        """Of HALF's y = x W' with W = 1, each element is 0 or twice x, with a gradient or without."""
        layer = GraphLayer(HALF, graph(), 4, 4)
        with torch.no_grad():
            layer.w.copy_(torch.eye(4))
        x = torch.ones(N, 4)
        for wants in (False, True):
            with torch.set_grad_enabled(wants):
                y = layer.train()(x)
                self.assertEqual(set(y.flatten().tolist()), {0.0, 2.0})
                self.assertLess(abs(y.mean().item() - 1), 0.4)
                self.assertTrue(torch.equal(layer.eval()(x), x))
        y, of_x, of_w = gradient(layer.eval(), x, torch.ones(N, 4))
        self.assertTrue(torch.equal(of_x, torch.ones(N, 4)) and torch.equal(of_w, torch.full((4, 4), float(N))))

    def test_without_dropout_the_generator_stays(self):
        for layer in (GraphLayer("gcn", graph(), 8, 8), self.layer.eval()):
            state = torch.get_rng_state()
            layer(self.x)
            self.assertTrue(torch.equal(state, torch.get_rng_state()))


class Types(unittest.TestCase):
    def test_what_float32_is_not_is_refused(self):
        layer, x = GraphLayer("gcn", graph(), 4, 3), torch.randn(N, 4)
        for wrong, line in ((x.double(), "x: of type torch.float64"), (x.half(), "x: of type torch.float16"),
                            (x.to_sparse(), "x: of layout"), (x.numpy(), "x: a ndarray")):
            with self.assertRaisesRegex(TypeError, line):
                layer(wrong)
        with self.assertRaisesRegex(TypeError, r"lin.weight|bias: of type torch.float64"):
            layer.double()(x)

    def test_autocast_gives_float32_and_a_gradient_of_the_input_s_type(self):
        layer, x = GraphLayer("gcn", graph(), 4, 3), torch.randn(N, 4).bfloat16().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
        y.sum().backward()
        self.assertEqual((y.dtype, x.grad.dtype), (torch.float32, torch.bfloat16))
        self.assertTrue(torch.equal(y, layer(x.float())))

    def test_defaults_of_pytorch_do_not_matter(self):
        x = torch.ones(N, 4, dtype=torch.float32)
        torch.set_default_dtype(torch.float64)
        try:
            layer = GraphLayer(SUMS, graph(), 4, 3)
            got = gradient(layer, x, torch.ones(N, 3, dtype=torch.float32))
        finally:
            torch.set_default_dtype(torch.float32)
        degree = torch.bincount(graph().destination, minlength=N).float()
        want = degree[:, None] * layer.w.detach().sum(1)
        self.assertLess((got[0] - want).abs().max(), 1e-5)
        self.assertEqual({t.dtype for t in got}, {torch.float32})

    def test_edges_are_whole_and_weights_have_no_gradient(self):
        edges = torch.randint(0, N, (2, 9))
        for wrong, name in (({"edge_index": edges + 0.5}, "edge_index"),
                            ({"edge_index": edges, "edge_type": torch.rand(9)}, "edge_type"),
                            ({"edge_index": edges, "edge_weight": torch.rand(9) > 0.5}, "edge_weight")):
            with self.assertRaisesRegex(TypeError, f"^{name}: of type"):
                Graph(num_nodes=N, **wrong)
        with self.assertRaisesRegex(NotImplementedError, r"^edge_weight: wants a gradient.*detach"):
            Graph(edges, N, edge_weight=torch.rand(9, requires_grad=True))
        with self.assertRaisesRegex(ValueError, r"^edge_weight: has the shape \[8\]"):
            Graph(edges, N, edge_weight=torch.rand(8))
        with self.assertRaises(TypeError):
            Graph(edges, 60.5)

    def test_options_of_runs_are_none_of_a_layer(self):
        with self.assertRaisesRegex(TypeError, r"GraphLayer\(\) has no option 'epochs'"):
            GraphLayer("gcn", graph(), 4, 3, epochs=3)


class Copies(unittest.TestCase):
    def setUp(self):
        self.layer = GraphLayer("gat", graph(), 8, 6, heads=2, dropout=0.3)
        self.x = torch.randn(N, 8)

    def same(self, other):
        for layer in (self.layer, other):
            layer.train()
        results = []
        for layer in (self.layer, other):
            torch.manual_seed(7)
            results.append(gradient(layer, self.x, torch.ones(N, 6)))
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))

    def test_copies_and_pickles_are_the_layer(self):
        self.same(copy.deepcopy(self.layer))
        file = io.BytesIO()
        torch.save(torch.nn.Sequential(self.layer), file)
        file.seek(0)
        self.same(torch.load(file, weights_only=False)[0])

    def test_a_copy_has_weights_of_its_own(self):
        other = copy.deepcopy(self.layer)
        with torch.no_grad():
            next(other.parameters()).zero_()
        self.assertGreater(next(self.layer.parameters()).abs().sum(), 0)
        self.assertIs(other.graph, self.layer.graph)

    @unittest.skipIf(PRETENDED, "compiled gradients want a context of PyTorch's own there")
    def test_within_torch_compile_and_func(self):
        """As one graph, without a break, and as a function of the parameters: to the bit what it is without."""
        one = graph()
        net = torch.nn.Sequential(GraphLayer("gat", one, 8, 8), torch.nn.ReLU(), GraphLayer("gcn", one, 8, 4))
        x, upstream = torch.randn(N, 8), torch.randn(N, 4)
        want = gradient(net, x, upstream)
        torch._dynamo.reset()
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        for net_ in (compiled, torch.compile(copy.deepcopy(net), backend="aot_eager", fullgraph=True)):
            for a, b in zip(want, gradient(net_, x, upstream)):
                self.assertTrue(torch.equal(a, b))
        with torch.no_grad():
            self.assertTrue(torch.equal(compiled(x), want[0]))
        of = {name: p.detach() for name, p in net.named_parameters()}
        got = torch.func.grad(lambda p: (torch.func.functional_call(net, p, (x,)) * upstream).sum())(of)
        for a, b in zip(want[2:], got.values()):
            self.assertTrue(torch.equal(a, b))
        y = net(x.requires_grad_())
        (once,) = torch.autograd.grad((y * upstream).sum(), x, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "no second derivatives"):
            once.sum().backward()
        drops = GraphLayer("gat", one, 8, 8, dropout=0.5)
        y = torch.compile(drops, backend="aot_eager", fullgraph=True)(x)
        self.assertFalse(torch.equal(y, drops.eval()(x)))
        y.sum().backward()

    def test_vmap_runs_samples_one_after_the_other(self):
        """Of rows, of parameters, gradients of each sample, and Jacobians: what loops of one's own give."""
        layer, xs = GraphLayer("gat", graph(), 8, 3), torch.randn(2, N, 8)
        of = {name: torch.stack([p.detach(), 2 * p.detach()]) for name, p in layer.named_parameters()}

        def loss(p, x):
            return torch.func.functional_call(layer, p, (x,)).square().sum()
        got = torch.func.vmap(torch.func.grad(loss))(of, xs)
        for k in (0, 1):
            want = torch.func.grad(loss)({name: p[k] for name, p in of.items()}, xs[k])
            for name in want:
                self.assertTrue(torch.equal(got[name][k], want[name]), name)
        rows = xs.clone().requires_grad_()
        torch.func.vmap(layer)(rows).square().sum().backward()
        for k in (0, 1):
            self.assertTrue(torch.equal(rows.grad[k], gradient(layer, xs[k], 2 * layer(xs[k]).detach())[1]))
        small = GraphLayer("gcn", Graph(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3), 2, 2)
        x = torch.randn(3, 2)
        want = torch.autograd.functional.jacobian(small, x)
        self.assertTrue(torch.equal(torch.func.jacrev(small)(x), want))
        each = torch.func.vmap(torch.func.jacrev(small))(torch.stack([x, -x]))
        self.assertTrue(torch.equal(each[0], want))
        drops = GraphLayer(HALF, graph(), 8, 8)
        same = torch.ones(2, N, 8)
        for randomness, equal in (("same", True), ("different", False)):
            a, b = torch.func.vmap(drops, randomness=randomness)(same)
            self.assertEqual(torch.equal(a, b), equal)
        for call in (lambda: torch.func.jvp(layer, (xs[0],), (xs[0],)), lambda: torch.func.jacfwd(small)(x)):
            with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivative; use torch.func.grad"):
                call()

    def test_averaged_models(self):
        mean = torch.optim.swa_utils.AveragedModel(self.layer)
        mean.update_parameters(self.layer)
        self.assertTrue(torch.equal(mean.eval()(self.x), self.layer.eval()(self.x)))


class Threads(unittest.TestCase):
    def test_threads_on_one_layer_get_their_gradients(self):
        layer = GraphLayer("gcn", graph(), 8, 6, threads=1).requires_grad_(False)
        xs = [torch.randn(N, 8) for _ in range(2)]
        want = [gradient(layer, x, torch.ones(N, 6))[1] for x in xs]
        wrong = []

        def work(k):
            for _ in range(60):
                x = xs[k].clone().requires_grad_()
                layer(x).square().sum().backward()
                again = xs[k].clone().requires_grad_()
                layer(again).sum().backward()
                wrong.append(not torch.equal(again.grad, want[k]))
        threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [False] * 120)


class Stores(unittest.TestCase):
    """from_pyg() of what torch_geometric's Data may hold."""

    def test_sparse_and_bfloat16_features_and_adjacencies(self):
        import tempfile
        from types import SimpleNamespace
        x = torch.zeros(5, 3)
        x[0, 1], x[3, 2] = 2, -1
        adjacency = torch.sparse_coo_tensor([[1, 2, 2], [0, 0, 1]], torch.tensor([1.0, 2.0, 3.0]), (5, 5))
        with tempfile.TemporaryDirectory() as folder:
            def kept(**data):
                """The features of each vertex, and what comes to it along edges, as SAGE without weights has it."""
                data = SimpleNamespace(**{"y": torch.arange(5) % 2, "num_nodes": 5, "x": x,
                                          "train_mask": torch.ones(5, dtype=torch.bool), **data})
                store = gs.from_pyg(os.path.join(folder, "s"), data, parts=1, force=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of weights that SAGE does not use
                    with gs.Run(store, "sage", layers=1, hidden=2, threads=1) as run:
                        state = {name: torch.zeros(v.shape) for name, v in run.state_dict().items()}
                        state["convs.0.lin_l.weight"][0, 2] = 1
                        state["convs.0.lin_r.weight"][1, 1] = 1
                        run.load_state_dict(state)
                        return store, run.logits().tolist()
            edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
            _, want = kept(edge_index=edges)
            for how in (x.to_sparse(), x.to_sparse_csr(), x.bfloat16()):
                self.assertEqual(kept(edge_index=edges, x=how)[1], want)
            for how in (adjacency.to_sparse_csr(), adjacency):
                store, got = kept(adj_t=how)
                self.assertEqual((got, store.weights, store.edges), (want, True, 3))
            ones = torch.sparse_coo_tensor(adjacency._indices(), torch.ones(3), (5, 5))
            self.assertFalse(kept(adj_t=ones.to_sparse_csr())[0].weights)


if __name__ == "__main__":
    unittest.main(verbosity=1)
