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


class Block:
    """What of a block of DGL is looked at here, where that is not installed; arguments are checked as it does."""

    def __init__(self, edges, num_src_nodes, num_dst_nodes):
        for end, count in zip(edges, (num_src_nodes, num_dst_nodes)):
            assert len(end) == len(edges[0]) and (plain(end) < count).all() and (plain(end) >= 0).all()
        self.ends, self.counts = edges, (num_src_nodes, num_dst_nodes)
        self.srcdata, self.dstdata, self.edata = {}, {}, {}

    def edges(self):
        return self.ends

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


if __name__ == "__main__":
    unittest.main(verbosity=0)
