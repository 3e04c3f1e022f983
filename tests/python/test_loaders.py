#!/usr/bin/env python3
"""test_loaders.py FOLDER: batches of a store for models of one's own, as numpy's arrays, or as torch's where it is."""
import os
import resource
import sys
import threading
import types
import unittest
import warnings

import numpy as np

import gnnstream as gs
from gnnstream.loaders import ClusterLoader, LinkNeighborLoader, NeighborLoader, SaintLoader, infer, to_blocks

folder = sys.argv.pop() if len(sys.argv) > 1 else "."
N, E, SEED = 1000, 6000, 3


def plain(values):
    return np.asarray(values)


class Frames(dict):
    """data of each type, where it is asked for."""

    def __missing__(self, kind):
        return self.setdefault(kind, types.SimpleNamespace(data={}))


class Edges(Frames):
    def __call__(self, etype=None):
        return self.ends if etype is None else self.ends[etype]


class Block:
    """What of a block of DGL is looked at here, where that is not installed; arguments are checked as it does."""

    def __init__(self, edges, num_src_nodes, num_dst_nodes):
        typed = isinstance(edges, dict)
        for kind, ends in edges.items() if typed else [(None, edges)]:
            for end, count, name in zip(ends, (num_src_nodes, num_dst_nodes), kind[::2] if typed else (None, None)):
                count = count[name] if typed else count
                assert len(end) == len(ends[0]) and (plain(end) < count).all() and (plain(end) >= 0).all()
        self.edges, self.counts = Edges(), (num_src_nodes, num_dst_nodes)
        self.edges.ends = edges
        self.srcdata, self.dstdata, self.edata, self.srcnodes, self.dstnodes = {}, {}, {}, Frames(), Frames()

    def num_src_nodes(self):
        return self.counts[0]

    def num_dst_nodes(self):
        return self.counts[1]


try:
    import dgl
except ImportError:
    dgl = types.SimpleNamespace(create_block=Block, NID="_ID")


class Loaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(SEED)
        cls.edges = random.integers(0, N, (2, E))
        cls.x = random.normal(size=(N, 12)).astype(np.float32)
        cls.y = random.integers(0, 4, N)
        cls.train = np.arange(N) % 4 == 1
        cls.weights = random.random(E).astype(np.float32)
        cls.store = gs.from_arrays(os.path.join(folder, "loaded"), cls.edges, cls.x, cls.y, train=cls.train, parts=4,
                                   method="random", edge_weight=cls.weights, force=True)

    def loader(self, **more):
        return NeighborLoader(self.store, [5, 3], **{"batch_size": 64, "threads": 1, **more})

    def ids(self, loader):
        return [plain(batch.n_id).tolist() for batch in loader]

    def test_rows_and_edges_are_the_inputs(self):
        there = set(zip(*self.edges.tolist()))
        seen = []
        for batch in self.loader(input_nodes="train", shuffle=True):
            n_id, (source, destination) = plain(batch.n_id), plain(batch.edge_index)
            np.testing.assert_array_equal(plain(batch.x), self.x[n_id])
            np.testing.assert_array_equal(plain(batch.y), self.y[n_id])
            self.assertLessEqual(set(zip(n_id[source].tolist(), n_id[destination].tolist())), there)
            self.assertEqual(sum(batch.num_sampled_nodes), len(n_id))
            seen += n_id[:batch.batch_size].tolist()
        self.assertEqual(sorted(seen), np.flatnonzero(self.train).tolist())

    def test_all_in_edges_of_each_target(self):
        degree = np.bincount(self.edges[1], minlength=N)
        for batch in NeighborLoader(self.store, [-1], batch_size=300, input_nodes=self.train, threads=1):
            count = np.bincount(plain(batch.edge_index)[1], minlength=len(batch.n_id))[:batch.batch_size]
            np.testing.assert_array_equal(count, degree[plain(batch.n_id)[:batch.batch_size]])
            self.assertEqual(batch.edge_weight.shape, (batch.edge_index.shape[1],))

    def test_goes_on_where_another_one_stopped(self):
        want = [self.ids(loader) for loader in [self.loader(shuffle=True, seed=5)] for _ in range(2)]
        self.assertNotEqual(*want)
        first = self.loader(shuffle=True, seed=5)
        self.ids(first)
        for k, batch in enumerate(first):
            if k == 6:
                break
        second = self.loader(shuffle=True, seed=5, host_memory="30M")
        second.load_state_dict(first.state_dict())
        self.assertEqual(self.ids(second), want[1][7:])
        self.assertEqual(second.state_dict(), {"epoch": 3, "batch": 0})

    def test_each_pass_is_whole_after_one_that_was_left(self):
        loader = self.loader()
        next(iter(loader))
        self.assertEqual(len(self.ids(loader)), len(loader))
        with self.assertRaises(ZeroDivisionError):
            for batch in loader:
                1 / 0
        self.assertEqual(len(self.ids(loader)), len(loader))
        one = iter(loader)
        next(one)
        next(iter(loader))
        with self.assertRaisesRegex(RuntimeError, "one at a time"):
            next(one)

    def test_listed_vertices_and_other_samplers(self):
        some = [7, 900, 3, 42]
        found = [i for batch in self.loader(input_nodes=some, batch_size=3)
                 for i in plain(batch.n_id)[:batch.batch_size].tolist()]
        self.assertEqual(sorted(found), sorted(some))
        self.assertEqual(sum(len(ids) for ids in self.ids(ClusterLoader(self.store, threads=1))), N)
        for batch in ClusterLoader(self.store, threads=1):
            np.testing.assert_array_equal(plain(batch.train_mask), self.train[plain(batch.n_id)])
        for batch in self.loader(input_nodes=some, batch_size=3):  # where in the list, as of PyG
            self.assertEqual([some[k] for k in plain(batch.input_id)], plain(batch.n_id)[:batch.batch_size].tolist())
        walk = SaintLoader(self.store, "walk", batch_size=20, walk_length=3, threads=1, ignore_edge_weights=True)
        self.assertGreater(len(self.ids(walk)), 1)
        self.assertIn("20", repr(self.loader(input_nodes=some, transform=lambda batch: 20).__iter__().__next__()))

    def links(self, fanouts=(-1, -1), **more):
        more = {"edge_label_index": self.edges[:, :200], "batch_size": 32, "threads": 1, **more}
        return LinkNeighborLoader(self.store, list(fanouts), **more)

    def around(self, seeds, gone=()):
        """Vertices within two hops of the seeds, and the edges into those within one, without some."""
        near = set(seeds)
        edges = [e for e in map(tuple, self.edges.T.tolist()) if e not in gone]
        inner = near | {u for u, v in edges if v in near}
        taken = sorted(e for e in edges if e[1] in inner)
        return inner | {u for u, _ in taken}, taken

    def check_part(self, batch, seeds, gone=()):
        vertices, edges = self.around(seeds, gone)
        n_id = plain(batch.n_id)
        self.assertEqual(len(set(n_id.tolist())), len(n_id))
        self.assertEqual(set(n_id.tolist()), vertices)
        self.assertEqual(sorted(zip(*n_id[plain(batch.edge_index)].tolist())), edges)
        np.testing.assert_array_equal(plain(batch.x), self.x[n_id])

    def test_pairs_and_all_that_reaches_them(self):
        label = np.arange(200) % 5
        for shuffle in (False, True):
            seen = []
            for batch in self.links(edge_label=label, shuffle=shuffle, neg_sampling=None):
                pair = plain(batch.input_id)
                ends = plain(batch.n_id)[plain(batch.edge_label_index)]
                np.testing.assert_array_equal(ends, self.edges[:, pair])
                np.testing.assert_array_equal(plain(batch.edge_label), label[pair])
                self.check_part(batch, ends.ravel().tolist())
                self.assertFalse(hasattr(batch, "batch_size") and batch.batch_size is not None
                                 and "batch_size" in vars(batch))
                seen += pair.tolist()
            self.assertEqual(sorted(seen), list(range(200)))
            self.assertEqual(seen == sorted(seen), not shuffle)

    def test_random_pairs_behind_the_given_ones(self):
        seen = []
        for batch in self.links(neg_sampling=("binary", 1.5), edge_label=np.arange(200) % 2, batch_size=50):
            index, label, pair = plain(batch.edge_label_index), plain(batch.edge_label), plain(batch.input_id)
            self.assertEqual(index.shape, (2, 50 + 75))
            np.testing.assert_array_equal(label, [*(1 + pair % 2), *[0] * 75])
            ends = plain(batch.n_id)[index]
            np.testing.assert_array_equal(ends[:, :50], self.edges[:, pair])
            self.check_part(batch, ends.ravel().tolist())
            seen += ends[:, 50:].ravel().tolist()
        self.assertGreater(len(set(seen)), 400)  # of 600 draws from 1000
        again = [plain(batch.n_id)[plain(batch.edge_label_index)] for batch in
                 self.links(neg_sampling={"mode": "binary", "amount": 1.5}, batch_size=50, host_memory="40M")]
        self.assertEqual(np.concatenate([ends[:, 50:] for ends in again], 1).T.ravel().tolist(),
                         np.reshape(seen, (4, 2, 75)).transpose(0, 2, 1).ravel().tolist())
        only = next(iter(self.links(neg_sampling="binary")))
        np.testing.assert_array_equal(plain(only.edge_label), [1] * 32 + [0] * 32)

    def test_random_destinations(self):
        for amount, shape in ((1, (32,)), (3, (32, 3))):
            batch = next(iter(self.links(neg_sampling=("triplet", amount))))
            n_id = plain(batch.n_id)
            np.testing.assert_array_equal(n_id[plain(batch.src_index)], self.edges[0, :32])
            np.testing.assert_array_equal(n_id[plain(batch.dst_pos_index)], self.edges[1, :32])
            self.assertEqual(plain(batch.dst_neg_index).shape, shape)
            ends = [*self.edges[:, :32].ravel().tolist(), *n_id[plain(batch.dst_neg_index)].ravel().tolist()]
            self.check_part(batch, ends)

    def test_pairs_are_no_messages_where_they_are_left_out(self):
        for batch in self.links(leave_out=True, neg_sampling_ratio=1.0):
            ends = plain(batch.n_id)[plain(batch.edge_label_index)]
            given = {tuple(e) for e in self.edges[:, plain(batch.input_id)].T.tolist()}
            self.check_part(batch, ends.ravel().tolist(), given)

    def test_goes_on_within_an_epoch_of_pairs(self):
        want = [plain(batch.n_id).tolist() for batch in self.links((5, 3), shuffle=True, seed=4)]
        first, second = (self.links((5, 3), shuffle=True, seed=4, threads=k) for k in (1, 2))
        for k, batch in enumerate(first):
            if k == 2:
                break
        second.load_state_dict(first.state_dict())
        self.assertEqual(self.ids(second), want[3:])

    def test_is_what_torch_geometric_makes(self):
        try:
            import torch
            from torch_geometric.data import Data
            from torch_geometric.loader.link_loader import LinkLoader
            from torch_geometric.sampler import BaseSampler, SamplerOutput
            from torch_geometric.sampler.neighbor_sampler import edge_sample
        except ImportError:
            self.skipTest("no torch_geometric")
        edges, test = torch.from_numpy(self.edges), self

        class Whole(BaseSampler):
            """All in-edges of two hops, by torch_geometric's own treatment of pairs."""
            edge_permutation = None
            sample_from_nodes = None

            def sample_from_edges(self, inputs, neg_sampling=None):
                return edge_sample(inputs, self.sample, N, False, None, neg_sampling)

            def sample(self, seed, time):
                vertices, taken = test.around(seed.tolist())
                node = torch.tensor([*seed.tolist(), *sorted(vertices - set(seed.tolist()))])
                row = {v: k for k, v in enumerate(node.tolist())}
                return SamplerOutput(node, *(torch.tensor([row[e[end]] for e in taken]) for end in (0, 1)), None)
        x, index, label = torch.from_numpy(self.x), edges[:, :200], torch.arange(200) % 3
        for given in ({"edge_label": label}, {}, {"neg_sampling": "binary"}, {"neg_sampling": ("binary", 2.0)},
                      {"neg_sampling": "binary", "edge_label": label}, {"neg_sampling": ("triplet", 2)},
                      {"neg_sampling": "triplet"}):
            theirs = LinkLoader(Data(x=x, edge_index=edges), Whole(), index, batch_size=64, **given)
            for a, b in zip(self.links(edge_label_index=index, batch_size=64, **given), theirs):
                names = ("input_id", "edge_label", "edge_label_index", "src_index", "dst_pos_index", "dst_neg_index")
                there = {name for name in names if b.to_dict().get(name) is not None}
                self.assertEqual({name for name in names if name in a}, there)
                for name in there:
                    self.assertEqual((a[name].shape, a[name].dtype), (b[name].shape, b[name].dtype), name)
                for name in there & {"edge_label", "input_id"}:
                    self.assertTrue(torch.equal(a[name], b[name]), name)
                for name in there & {"edge_label_index", "src_index", "dst_pos_index"}:  # of pairs that are given
                    of = slice(len(b.input_id))
                    self.assertTrue(torch.equal(a.n_id[a[name]][..., of], b.n_id[b[name]][..., of]), name)
                if "neg_sampling" not in given:
                    self.assertEqual(sorted(a.n_id.tolist()), sorted(b.n_id.tolist()))
                    self.assertEqual(sorted(a.n_id[a.edge_index].T.tolist()), sorted(b.n_id[b.edge_index].T.tolist()))

    def test_blocks_of_dgl(self):
        sys.modules.setdefault("dgl", dgl)
        weight = {tuple(e): [] for e in self.edges.T.tolist()}
        for e, w in zip(map(tuple, self.edges.T.tolist()), self.weights.tolist()):
            weight[e].append(w)
        once = np.zeros((N, 12))  # what sums over in-edges make of features
        np.add.at(once, self.edges[1], self.x[self.edges[0]])
        want = np.zeros_like(once)
        np.add.at(want, self.edges[1], once[self.edges[0]])
        for sources, targets, blocks in NeighborLoader(self.store, [-1, -1], batch_size=150, input_nodes="train",
                                                       threads=1, transform=to_blocks):
            self.assertEqual(len(blocks), 2)
            np.testing.assert_array_equal(plain(blocks[0].srcdata["feat"]), self.x[plain(sources)])
            np.testing.assert_array_equal(plain(blocks[1].dstdata["label"]), self.y[plain(targets)])
            self.assertEqual(blocks[0].num_dst_nodes(), blocks[1].num_src_nodes())
            self.assertEqual((blocks[0].num_src_nodes(), blocks[1].num_dst_nodes()), (len(sources), len(targets)))
            rows = plain(blocks[0].srcdata["feat"]).astype(np.float64)
            for block in blocks:
                ends = [plain(end) for end in block.edges()]
                ids = [plain(data[dgl.NID]) for data in (block.srcdata, block.dstdata)]
                for e in zip(ids[0][ends[0]].tolist(), ids[1][ends[1]].tolist(), plain(block.edata["weight"]).tolist()):
                    self.assertIn(e[2], weight[e[:2]])
                made = np.zeros((block.num_dst_nodes(), 12))
                np.add.at(made, ends[1], rows[ends[0]])
                rows = made
            np.testing.assert_allclose(rows, want[plain(targets)], rtol=1e-5, atol=1e-5)
        with self.assertRaisesRegex(ValueError, "has no hops"):
            to_blocks(next(iter(ClusterLoader(self.store, threads=1))))

    def test_infers_layer_by_layer(self):
        def sums(batch):
            x, (source, destination) = plain(batch.x), plain(batch.edge_index)
            out = np.zeros_like(x)
            np.add.at(out, destination, x[source])
            return np.maximum(out, 0)
        want = self.x.astype(np.float64)
        for _ in range(3):
            out = np.zeros_like(want)
            np.add.at(out, self.edges[1], want[self.edges[0]])
            want = np.maximum(out, 0)
        got = infer(self.store, [sums, sums, sums], batch_size=70, threads=1)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
        with self.assertRaisesRegex(ValueError, "a layer's result"):
            infer(self.store, [lambda batch: plain(batch.x)[:3]], threads=1)
        for option in ({"shuffle": True}, {"input_nodes": "train"}, {"replace": True}):  # of which rows would be wrong
            with self.assertRaisesRegex(TypeError, "infer"):
                infer(self.store, [sums], **option)

    def test_refuses_in_words(self):
        for call, error, words in (
                (lambda: self.loader(trheads=2), TypeError, "did you mean 'threads'"),
                (lambda: NeighborLoader(self.store, [4, 0]), ValueError, "num_neighbors"),
                (lambda: self.loader(input_nodes="trian"), ValueError, "trian"),
                (lambda: self.loader(input_nodes=[0.5]), TypeError, "input_nodes"),
                (lambda: self.loader(input_nodes=[N]), gs.OptionError, "0 to 999"),
                (lambda: self.loader(input_nodes="test"), gs.NotFoundError, "test"),
                (lambda: self.loader(host_memory="10K"), gs.BudgetError, "at least"),
                (lambda: self.links(disjoint=True), TypeError, "disjoint: batches are one graph"),
                (lambda: self.loader(time_attr="t"), TypeError, "time_attr: .* without times"),
                (lambda: self.loader(weight_attr="w"), TypeError, "weight_attr: .* weighted=True"),
                (lambda: self.loader(collate_fn=len), TypeError, "collate_fn: use transform"),
                (lambda: self.links(edge_label_time=[1] * 200), TypeError, "edge_label_time: .* without times"),
                (lambda: self.links(edge_label_index=[[1, 2, 3]]), ValueError, r"must be \[2, pairs\]"),
                (lambda: self.links(edge_label_index=[[1, N], [0, 1]]), gs.OptionError, r"source\[1\] is 1000"),
                (lambda: self.links(edge_label=[1]), ValueError, r"must be \[200, \.\.\.\]"),
                (lambda: self.links(neg_sampling="tripel"), ValueError, "binary or triplet"),
                (lambda: self.links(neg_sampling=("triplet", 1.5)), ValueError, "a whole number"),
                (lambda: self.links(neg_sampling={"mode": "binary", "dst_weight": [1]}), ValueError, "dst_weight"),
                (lambda: self.links(host_memory="10K"), gs.BudgetError, "at least"),
                (lambda: SaintLoader(self.store, "edges"), ValueError, "node, edge or walk"),
                (lambda: NeighborLoader("/nowhere", [3]), gs.NotFoundError, "/nowhere")):
            with self.assertRaisesRegex(error, words):
                call()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.loader(num_workers=4)
        self.assertIn("num_workers", str(seen[0].message))
        loader = self.loader()
        loader.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(iter(loader))

    def test_the_last_batch_is_left_out_where_it_is_smaller(self):
        for size, nodes, batches in ((64, "train", 3), (50, "train", 5), (300, "train", 0), (64, None, 15),
                                     (7, [5, 8, 3, 9, 1, 2, 0, 11], 1)):
            loader = self.loader(batch_size=size, input_nodes=nodes, drop_last=True, shuffle=True, seed=3)
            whole = self.ids(self.loader(batch_size=size, input_nodes=nodes, shuffle=True, seed=3))
            self.assertEqual(len(loader), batches)
            self.assertEqual(self.ids(loader), whole[:batches])
            self.assertEqual(loader.state_dict(), {"epoch": 2, "batch": 0})
        self.assertEqual(len(self.links(drop_last=True)), 6)  # of 200 pairs, 32 each

    def test_a_transform_that_fails_loses_nothing(self):
        calls = []

        def transform(batch):
            calls.append(0)
            if len(calls) == 3:
                raise OSError("the user's own")
            return plain(batch.n_id).tolist()
        want = self.ids(self.loader(shuffle=True, seed=2))
        loader, got = self.loader(shuffle=True, seed=2, transform=transform), []
        with self.assertRaisesRegex(OSError, "the user's own"):
            for ids in loader:
                got.append(ids)
        self.assertEqual(loader.state_dict(), {"epoch": 1, "batch": 2})
        loader.load_state_dict(loader.state_dict())
        self.assertEqual([*got, *loader], want)

    def test_pinned_where_there_is_a_gpu(self):
        try:
            import torch
        except ImportError:
            return self.assertRaisesRegex(TypeError, "pin_memory: is torch's", self.loader, pin_memory=True)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            batch = next(iter(self.loader(pin_memory=True)))
        self.assertEqual(batch.x.is_pinned(), torch.cuda.is_available())
        self.assertEqual([str(w.message) for w in seen if "pin_memory" in str(w.message)] == [],
                         torch.cuda.is_available())

    def test_threads_take_turns_and_children_open_their_own(self):
        loader = self.loader()
        want = self.ids(loader)
        got = []
        threads = [threading.Thread(target=lambda: got.append(self.ids(self.loader()))) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(got, [want] * 3)
        child = os.fork()
        if child == 0:
            loader.set_epoch(1)
            os._exit(self.ids(loader) != want)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_thread_does_not_come_between_a_batch_and_its_arrays(self):
        want, loader = self.ids(self.loader()), self.loader()
        filled, others = loader._filled, []
        other = threading.Thread(target=lambda: others.extend(self.ids(loader)))

        def another_pass_begins(shape):
            if other.ident is None:
                other.start()
                other.join(0.3)
            return filled(shape)
        loader._filled = another_pass_begins
        batches = iter(loader)
        self.assertEqual(plain(next(batches).n_id).tolist(), want[0])
        other.join()
        self.assertEqual(len(others), len(want))
        with self.assertRaisesRegex(RuntimeError, "another pass"):
            list(batches)

    def test_memory_does_not_grow(self):
        def resident():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        loader = self.loader(batch_size=8)
        for _ in range(2):
            self.ids(loader)
        before = resident()
        for _ in range(6):
            self.ids(loader)
        for _ in range(20):
            next(iter(self.loader()))
        self.assertLess(resident() - before, 4 << 10)


class Own:
    """The attributes that a type of a HeteroData has."""

    def __init__(self, **values):
        vars(self).update(values)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)


class Hetero(dict):
    """In the place of a HeteroData."""
    node_types = property(lambda self: [kind for kind in self if isinstance(kind, str)])
    edge_types = property(lambda self: [kind for kind in self if not isinstance(kind, str)])


class SeveralTypes(unittest.TestCase):
    """Batches of a store with types of vertices: rows, labels and edges by type, against the graph that it is of."""
    ENDS = {("author", "writes", "paper"): (300, 400), ("paper", "about", "topic"): (400, 50),
            ("paper", "cites", "paper"): (400, 400)}

    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(8)
        cls.data = Hetero(author=Own(num_nodes=300), topic=Own(x=random.random((50, 7), np.float32), num_nodes=50),
                          paper=Own(x=random.random((400, 24), np.float32), y=random.integers(0, 3, 400),
                                    train_mask=np.arange(400) % 2 == 0, val_mask=np.arange(400) % 4 == 1,
                                    num_nodes=400))
        for kind, ends in cls.ENDS.items():
            index = random.integers(0, [[ends[0]], [ends[1]]], (2, 1200))
            cls.data[kind] = Own(edge_index=index, edge_attr=(index[0] * 1000.0 + index[1])[:, None] * [1, -1],
                                 time=index.sum(0) / 8)
        cls.store = gs.from_pyg(os.path.join(folder, "types"), cls.data, parts=3, method="random", force=True,
                                named_edges=("time",))
        cls.sorted = {kind: own.edge_index[:, np.lexsort(own.edge_index)] for kind, own in cls.data.items()
                      if not isinstance(kind, str)}

    def check(self, batch, hops):
        for kind in self.data.node_types:
            part, own, n_id = batch[kind], self.data[kind], plain(batch[kind].n_id)
            self.assertEqual(len(set(n_id.tolist())), len(n_id))
            self.assertEqual(sum(part.num_sampled_nodes), len(n_id))
            for name in ("x", "y", "train_mask", "val_mask"):
                self.assertEqual(hasattr(part, name), hasattr(own, name) and getattr(own, name) is not None, name)
                if hasattr(part, name):
                    np.testing.assert_array_equal(plain(getattr(part, name)), getattr(own, name)[n_id])
        for kind in self.data.edge_types:
            part, at = batch[kind], plain(batch[kind].edge_index)
            ends = np.stack([plain(batch[kind[0]].n_id)[at[0]], plain(batch[kind[2]].n_id)[at[1]]])
            np.testing.assert_array_equal(self.sorted[kind][:, plain(part.e_id)], ends)
            self.assertEqual(len(set(plain(part.e_id).tolist())), ends.shape[1])
            np.testing.assert_array_equal(plain(part.edge_attr), (ends[0] * 1000.0 + ends[1])[:, None] * [1, -1])
            np.testing.assert_array_equal(plain(part.time)[:, 0], ends.sum(0) / 8)
            drawn, reached = np.cumsum(part.num_sampled_edges), np.cumsum(batch[kind[2]].num_sampled_nodes)
            self.assertEqual((len(drawn), drawn[-1]), (hops, ends.shape[1]))
            for hop in range(hops):  # of vertices that were there before this hop
                self.assertTrue((at[1, :drawn[hop]] < reached[hop]).all())
                self.assertTrue((at[1, drawn[hop]:] >= reached[hop]).all())

    def test_rows_and_edges_are_the_inputs(self):
        for budget in ("64M", "9M"):
            seen = []
            loader = NeighborLoader(self.store, [4, 3], batch_size=60, input_nodes="train", shuffle=True, threads=1,
                                    host_memory=budget, edge_ids=True)
            for batch in loader:
                self.check(batch, 2)
                self.assertEqual(batch.batch_size_dict, {"paper": batch["paper"].batch_size})
                for kind in self.data.edge_types:  # so many of each type
                    if kind[2] == "paper":
                        ids = plain(batch["paper"].n_id)[:batch["paper"].batch_size]
                        degree = np.bincount(plain(batch[kind].edge_index)[1], minlength=len(ids))[:len(ids)]
                        whole = np.bincount(self.data[kind].edge_index[1], minlength=400)
                        np.testing.assert_array_equal(degree, np.minimum(whole[ids], 4))
                np.testing.assert_array_equal(plain(batch["paper"].input_id),
                                              plain(batch["paper"].n_id)[:batch["paper"].batch_size])
                seen += plain(batch["paper"].input_id).tolist()
            self.assertEqual(sorted(seen), np.flatnonzero(self.data["paper"].train_mask).tolist())

    def test_vertices_of_any_type(self):
        some = np.array([7, 3, 42, 11])
        for nodes, kind, want in (("topic", "topic", np.arange(50)), (("author", some), "author", some),
                                  (("topic", np.arange(50) % 3 == 0), "topic", np.arange(0, 50, 3)),
                                  (("paper", "valid"), "paper", np.arange(1, 400, 4)), (("author", None), "author",
                                                                                       np.arange(300))):
            found, place = [], []
            for batch in NeighborLoader(self.store, {kind: [-1] for kind in self.ENDS}, batch_size=40, threads=1,
                                        input_nodes=nodes, edge_ids=True):
                self.check(batch, 1)
                self.assertEqual(list(batch.batch_size_dict), [kind])
                found += plain(batch[kind].n_id)[:batch[kind].batch_size].tolist()
                place += plain(batch[kind].input_id).tolist()
            self.assertEqual(sorted(found), sorted(want.tolist()))
            if nodes[1] is some:
                self.assertEqual(some[place].tolist(), found)
        for nodes, words in (("papers", "a type of vertices, as 'author'"), (("a", None), "no type 'a'"),
                             (("author", "train"), "'author' has no split"), (("topic", [50]), "topic has 0 to 49")):
            with self.assertRaisesRegex(ValueError, words):
                NeighborLoader(self.store, [2], input_nodes=nodes)

    def test_numbers_of_neighbours_of_each_type_of_edges(self):
        """By definition: a vertex that is reached in so many hops has the least of its in-edges of a type and that
        type's number; from memory and from the disk the same."""
        writes, about, cites = self.ENDS
        for given in ({writes: [2, 0, 1], about: [-1, 3, 3], cites: [3, 1, -1]}, {writes: [0], about: [1], cites: [-1]},
                      {writes: [5, 0], about: [0, 4], cites: [7, 1]}):
            seen = []
            for budget, threads in (("64M", 1), ("9M", 2)):
                loader = NeighborLoader(self.store, given, batch_size=30, input_nodes="train", shuffle=True, seed=2,
                                        host_memory=budget, threads=threads, edge_ids=True)
                seen.append([])
                for batch in loader:
                    self.check(batch, len(given[writes]))
                    for kind, numbers in given.items():
                        n_id, ends = plain(batch[kind[2]].n_id), np.cumsum(batch[kind[2]].num_sampled_nodes)
                        drawn = np.bincount(plain(batch[kind].edge_index)[1], minlength=len(n_id))
                        degree = np.bincount(self.data[kind].edge_index[1], minlength=400)[n_id]
                        for hop, number in enumerate(numbers):
                            of = slice(0 if hop == 0 else ends[hop - 1], ends[hop])
                            want = degree[of] if number < 0 else np.minimum(degree[of], number)
                            np.testing.assert_array_equal(drawn[of], want, f"{kind}, hop {hop}")
                        self.assertEqual(drawn[ends[len(numbers) - 1]:].sum(), 0)
                    seen[-1].append([plain(batch[kind].e_id).tolist() for kind in given])
            self.assertEqual(seen[0], seen[1])
        same = {kind: [4, 3] for kind in self.ENDS}
        for a, b in zip(*(NeighborLoader(self.store, n, batch_size=80, threads=1, edge_ids=True) for n in
                          (same, [4, 3]))):
            np.testing.assert_array_equal(plain(a["paper"].n_id), plain(b["paper"].n_id))
        for given, words in (({writes: [1]}, r"says nothing of \('paper', 'about', 'topic'\)"),
                             ({writes: [1], about: [1, 2], cites: [1]}, "as many numbers for each type"),
                             ({writes: [1], about: [-2], cites: [1]}, "as many numbers for each type"),
                             ({**same, ("a", "b", "c"): [1, 1]}, "no type of edges")):
            with self.assertRaisesRegex(ValueError, words):
                NeighborLoader(self.store, given)
        with self.assertRaisesRegex(gs.OptionError, r"lists of 2 types of edges, and the store has 3"):
            gs._engine.Loader(self.store.path, {"sampler": "neighbor", "fanout": "3;2"}, 0, None)

    def pairs(self, kind=("author", "writes", "paper"), **more):
        index = np.stack([np.arange(40), np.arange(40)[::-1] * 9 % self.ENDS[kind][1]])
        return index, LinkNeighborLoader(self.store, [3, 2], **{"edge_label_index": (kind, index), "batch_size": 16,
                                                                "threads": 1, "edge_ids": True, **more})

    def test_random_pairs_are_of_the_types_of_the_given_ones(self):
        for kind in self.ENDS:
            drawn = np.zeros((2, 0), np.int64)
            for budget in ("64M", "9M"):
                index, loader = self.pairs(kind, neg_sampling=("binary", 20), host_memory=budget)
                here = np.zeros((2, 0), np.int64)
                for batch in loader:
                    self.check(batch, 2)
                    part = batch[kind]
                    at, pair = plain(part.edge_label_index), plain(part.input_id)
                    ends = np.stack([plain(batch[end].n_id)[rows] for end, rows in zip(kind[::2], at)])
                    np.testing.assert_array_equal(ends[:, :len(pair)], index[:, pair])
                    np.testing.assert_array_equal(plain(part.edge_label), [1] * len(pair) + [0] * 20 * len(pair))
                    here = np.concatenate([here, ends[:, len(pair):]], 1)
                self.assertTrue(drawn.size == 0 or (here == drawn).all())
                drawn = here
            for ends, count in zip(drawn, self.ENDS[kind]):  # 800 draws of each end, none likelier than another
                often = np.bincount(ends, minlength=count)
                self.assertEqual((ends.min() >= 0, len(often)), (True, count))
                chi = ((often - 800 / count) ** 2 / (800 / count)).sum()
                self.assertLess(abs(chi - (count - 1)), 6 * (2 * (count - 1)) ** 0.5)
            for amount, shape in ((1, (16,)), (3, (16, 3))):
                index, loader = self.pairs(kind, neg_sampling=("triplet", amount), shuffle=True)
                batch = next(iter(loader))
                pair = plain(batch[kind].input_id)
                sources, targets = batch[kind[0]], batch[kind[2]]
                np.testing.assert_array_equal(plain(sources.n_id)[plain(sources.src_index)], index[0, pair])
                np.testing.assert_array_equal(plain(targets.n_id)[plain(targets.dst_pos_index)], index[1, pair])
                self.assertEqual(plain(targets.dst_neg_index).shape, shape)
                self.assertLess(plain(targets.dst_neg_index).max(), len(targets.n_id))
        ids = np.array([0, 1, 400], np.int64)
        with self.assertRaisesRegex(gs.OptionError, r"source\[2\] is 400, .* another type than source\[0\], author"):
            gs._engine.Loader(self.store.path, {"sampler": "neighbor", "fanout": "2"}, 4, ids, ids + 300, 1, 1.0, False)

    def test_all_edges_of_a_type_are_pairs(self):
        kind = ("paper", "about", "topic")
        seen = []
        for batch in LinkNeighborLoader(self.store, {**{k: [1] for k in self.ENDS}, kind: [-1]}, edge_label_index=kind,
                                        batch_size=500, threads=1, shuffle=True, drop_last=True):
            at = plain(batch[kind].edge_label_index)
            self.assertEqual(at.shape, (2, 500))
            seen += zip(*(plain(batch[end].n_id)[rows].tolist() for end, rows in zip(kind[::2], at)))
        self.assertEqual(len(seen), 1000)
        self.assertLessEqual(set(seen), set(zip(*self.data[kind].edge_index.tolist())))
        one = next(iter(LinkNeighborLoader(self.store, [1], edge_label_index=kind, batch_size=1200, threads=1)))
        at = plain(one[kind].edge_label_index)
        np.testing.assert_array_equal(np.stack([plain(one["paper"].n_id)[at[0]], plain(one["topic"].n_id)[at[1]]]),
                                      self.sorted[kind])

    def test_names_and_shapes_are_those_of_torch_geometric(self):
        try:
            import torch
            from torch_geometric.data import HeteroData
            from torch_geometric.loader.link_loader import LinkLoader
            from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput
            from torch_geometric.sampler.neighbor_sampler import edge_sample
        except ImportError:
            self.skipTest("no torch_geometric")
        kind, numbers = ("author", "writes", "paper"), {"author": 300, "paper": 400}

        class Seeds(BaseSampler):
            """The seeds alone, by torch_geometric's own treatment of pairs."""
            edge_permutation, sample_from_nodes = None, None

            def sample_from_edges(self, inputs, neg_sampling=None):
                return edge_sample(inputs, self.sample, numbers, False, None, neg_sampling)

            def sample(self, seed, time):
                return HeteroSamplerOutput(dict(seed), {}, {}, {})
        whole = HeteroData()
        whole["author"].num_nodes, whole["paper"].num_nodes = 300, 400
        whole[kind].edge_index = torch.from_numpy(self.data[kind].edge_index)
        names = ("input_id", "edge_label", "edge_label_index", "src_index", "dst_pos_index", "dst_neg_index")
        label = torch.arange(40) % 3
        for given in ({"edge_label": label}, {}, {"neg_sampling": "binary"}, {"neg_sampling": ("binary", 2.0)},
                      {"neg_sampling": "binary", "edge_label": label}, {"neg_sampling": ("triplet", 2)},
                      {"neg_sampling": "triplet"}):
            index, ours = self.pairs(kind, **given)
            theirs = LinkLoader(whole, Seeds(), (kind, torch.from_numpy(index)), batch_size=16, **given)
            for a, b in zip(ours, theirs):
                for of in (kind, "author", "paper"):
                    there = {name for name in names if getattr(b[of], name, None) is not None}
                    self.assertEqual({name for name in names if name in a[of]}, there)
                    for name in there:
                        self.assertEqual((a[of][name].shape, a[of][name].dtype), (b[of][name].shape, b[of][name].dtype))
                    for name in there & {"edge_label", "input_id"}:
                        self.assertTrue(torch.equal(a[of][name], b[of][name]), name)

    def test_goes_on_within_an_epoch(self):
        def ids(batch):
            return [plain(batch[kind].n_id).tolist() for kind in self.data.node_types]
        numbers = {kind: [k + 1, 2] for k, kind in enumerate(self.ENDS)}
        for make in (lambda: NeighborLoader(self.store, numbers, batch_size=40, input_nodes="train", shuffle=True,
                                            seed=6),
                     lambda: self.pairs(shuffle=True, neg_sampling="binary", seed=6, batch_size=9)[1]):
            first, second = make(), make()
            want = [ids(batch) for batch in first]
            first.set_epoch(1)
            for k, batch in enumerate(first):
                if k == 2:
                    break
            second.load_state_dict(first.state_dict())
            self.assertEqual([ids(batch) for batch in second], want[3:])

    def test_other_loaders(self):
        count = dict.fromkeys(self.data.node_types, 0)
        for batch in ClusterLoader(self.store, threads=1):
            for kind in count:
                count[kind] += len(batch[kind].n_id)
            np.testing.assert_array_equal(plain(batch["paper"].x), self.data["paper"].x[plain(batch["paper"].n_id)])
        self.assertEqual(count, {"author": 300, "paper": 400, "topic": 50})
        kind, pairs = ("author", "writes", "paper"), np.stack([np.arange(40), np.arange(40)[::-1] * 9])
        for batch in LinkNeighborLoader(self.store, [3, 2], edge_label_index=(kind, pairs), batch_size=16,
                                        edge_label=np.arange(40) % 3, shuffle=True, threads=1, edge_ids=True):
            self.check(batch, 2)
            part = batch[kind]
            at = plain(part.edge_label_index)
            np.testing.assert_array_equal(pairs[:, plain(part.input_id)], [plain(batch["author"].n_id)[at[0]],
                                                                           plain(batch["paper"].n_id)[at[1]]])
            np.testing.assert_array_equal(plain(part.edge_label), plain(part.input_id) % 3)
        for given, words in ((pairs, "types of vertices; give"), ((("a", "b", "c"), pairs), "no type of edges"),
                             ((kind, pairs + 300), "author has 0 to 299")):
            with self.assertRaisesRegex(ValueError, words):
                LinkNeighborLoader(self.store, [3], edge_label_index=given)

    def test_blocks(self):
        sys.modules.setdefault("dgl", dgl)
        for sources, targets, blocks in NeighborLoader(self.store, [-1, -1], input_nodes="train", batch_size=100,
                                                       threads=1, transform=to_blocks):
            self.assertEqual(len(blocks), 2)
            np.testing.assert_array_equal(plain(blocks[0].srcnodes["paper"].data["feat"]),
                                          self.data["paper"].x[plain(sources["paper"])])
            np.testing.assert_array_equal(plain(blocks[1].dstnodes["paper"].data["label"]),
                                          self.data["paper"].y[plain(targets["paper"])])
            self.assertEqual((len(targets["author"]), len(targets["topic"])), (0, 0))
            for kind in self.ENDS:
                whole = np.bincount(self.data[kind].edge_index[1], minlength=400)
                for block in blocks:  # all in-edges of each destination
                    source, target = (plain(end) for end in block.edges(etype=kind))
                    ids = [plain(block.srcnodes[kind[0]].data[dgl.NID]), plain(block.dstnodes[kind[2]].data[dgl.NID])]
                    self.assertEqual(len(source), whole[ids[1]].sum())
                    ends = np.stack([ids[0][source], ids[1][target]])
                    np.testing.assert_array_equal(plain(block.edges[kind].data["feat"])[:, 0],
                                                  ends[0] * 1000.0 + ends[1])

    def test_infers_layer_by_layer(self):
        widest = {"author": np.ones((300, 2)),
                  **{kind: self.data[kind].x[:, :2] for kind in ("paper", "topic")}}

        def first(batch):  # what stands for rows of authors is all 1
            return {kind: plain(part.x)[:, :2] if hasattr(part, "x") else np.ones((len(part.n_id), 2))
                    for kind, part in ((kind, batch[kind]) for kind in self.data.node_types)}

        def sums(batch):
            made = {kind: np.zeros((len(batch[kind].n_id), 2)) for kind in ("paper", "topic")}
            for kind in self.ENDS:
                source, target = plain(batch[kind].edge_index)
                np.add.at(made[kind[2]], target, plain(batch[kind[0]].x)[source])
            return made
        want = {kind: np.array(x, np.float64) for kind, x in widest.items()}
        for _ in range(2):
            made = {kind: np.zeros_like(x) for kind, x in want.items()}
            for kind in self.ENDS:
                source, target = self.data[kind].edge_index
                np.add.at(made[kind[2]], target, want[kind[0]][source])
            want = made
        got = infer(self.store, [first, sums, sums], batch_size=70, threads=1)
        self.assertEqual(list(got), ["paper", "topic"])
        for kind in got:
            np.testing.assert_allclose(got[kind], want[kind], rtol=1e-5, atol=1e-4)
        with self.assertRaisesRegex(TypeError, "must be a dict by type"):
            infer(self.store, [lambda batch: batch["paper"].x], threads=1)


class NamedFeatures(unittest.TestCase):
    def test_are_beside_x(self):
        random = np.random.default_rng(4)
        edges = random.integers(0, 90, (2, 400))
        x, age, place = (random.random((90, k), np.float32) for k in (3, 1, 2))
        attr, time = random.random((400, 2), np.float32), (edges[0] * 90 + edges[1]).astype(np.float32)[:, None]
        for others in ({}, {"x": x}):
            store = gs.from_arrays(os.path.join(folder, "named"), edges, others.get("x"), force=True, parts=2,
                                   named={"age": age, "place": place}, edge_features=attr if others else None,
                                   named_edges={"time": time, "age": -time})
            for batch in NeighborLoader(store, [3], batch_size=20, threads=1, edge_ids=True):
                n_id = plain(batch.n_id)
                ends = n_id[plain(batch.edge_index)]
                for name, want in (("x", x), ("age", age), ("place", place)):
                    if name != "x" or others:
                        np.testing.assert_array_equal(plain(getattr(batch, name)), want[n_id], name)
                self.assertEqual("x" in vars(batch) or getattr(batch, "x", None) is not None, bool(others))
                np.testing.assert_array_equal(plain(batch.time)[:, 0], ends[0] * 90 + ends[1])
                np.testing.assert_array_equal(plain(batch.edge_age), -plain(batch.time))
                np.testing.assert_array_equal(edges[:, np.lexsort(edges)][:, plain(batch.e_id)], ends)
                if others:
                    self.assertEqual(batch.edge_attr.shape, (ends.shape[1], 2))


if __name__ == "__main__":
    unittest.main(verbosity=0)
