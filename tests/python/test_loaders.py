#!/usr/bin/env python3
"""test_loaders.py FOLDER: batches of a store for models of one's own, as numpy's arrays, or as torch's where it is."""
import os
import resource
import sys
import threading
import unittest
import warnings

import numpy as np

import gnnstream as gs
from gnnstream.loaders import ClusterLoader, NeighborLoader, SaintLoader, infer

folder = sys.argv.pop() if len(sys.argv) > 1 else "."
N, E, SEED = 1000, 6000, 3


def plain(values):
    return np.asarray(values)


class Loaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(SEED)
        cls.edges = random.integers(0, N, (2, E))
        cls.x = random.normal(size=(N, 12)).astype(np.float32)
        cls.y = random.integers(0, 4, N)
        cls.train = np.arange(N) % 4 == 1
        cls.store = gs.from_arrays(os.path.join(folder, "loaded"), cls.edges, cls.x, cls.y, train=cls.train, parts=4,
                                   method="random", edge_weight=random.random(E).astype(np.float32), force=True)

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
