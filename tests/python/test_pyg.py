#!/usr/bin/env python3
"""test_pyg.py FOLDER: a store as PyG's FeatureStore and GraphStore, beside PyG's own Data and HeteroData. Batches are
drawn by pyg-lib or torch-sparse where one is installed, else by a few lines here that do what theirs do."""
import os
import pickle
import sys
import types
import unittest
import warnings

import numpy as np
import torch

try:
    import torch_geometric.typing
except ImportError:
    print("no torch_geometric: its stores were left out")
    sys.exit(0)
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.feature_store import TensorAttr
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.nn import HGTConv, SAGEConv, to_hetero

import gnnstream as gs
import gnnstream.loaders
from gnnstream.pyg import stores

warnings.simplefilter("ignore")
folder = sys.argv.pop() if len(sys.argv) > 1 else "."
N, E = 900, 5000


def sample(colptrs, rows, kinds, seeds, fanouts, hops):
    """Vertices by type, edges by relation: hop by hop, of each vertex so many of its in-edges."""
    node = {kind: seeds[kind].tolist() if kind in seeds else [] for kind in {k for e in kinds for k in (e[0], e[2])}}
    place = {kind: {v: i for i, v in enumerate(ids)} for kind, ids in node.items()}
    edges = {kind: [] for kind in kinds}
    first = {kind: 0 for kind in node}
    for hop in range(hops):
        last = {kind: len(ids) for kind, ids in node.items()}
        for kind in kinds:
            source, name, destination = kind
            colptr, row = colptrs["__".join(kind)], rows["__".join(kind)]
            for i in range(first[destination], last[destination]):
                a, b = colptr[node[destination][i]:][:2].tolist()
                fanout = fanouts["__".join(kind)][hop]
                taken = torch.arange(a, b) if fanout < 0 or b - a <= fanout else a + torch.randperm(b - a)[:fanout]
                for e in taken.tolist():
                    v = int(row[e])
                    if v not in place[source]:
                        place[source][v] = len(node[source])
                        node[source].append(v)
                    edges[kind].append((place[source][v], i, e))
        first = last
    columns = [{"__".join(kind): torch.tensor([e[k] for e in found], dtype=torch.int64)
                for kind, found in edges.items()} for k in range(3)]
    return ({kind: torch.tensor(ids, dtype=torch.int64) for kind, ids in node.items()}, *columns)


def sample_one(colptr, row, seed, fanouts, replace, directed):
    kind, found = ("v", "to", "v"), sample({"v__to__v": colptr}, {"v__to__v": row}, [("v", "to", "v")], {"v": seed},
                                           {"v__to__v": fanouts}, len(fanouts))
    return found[0]["v"], *(each["__".join(kind)] for each in found[1:])


if not (torch_geometric.typing.WITH_TORCH_SPARSE or torch_geometric.typing.WITH_PYG_LIB):
    torch_geometric.typing.WITH_TORCH_SPARSE = True
    torch.ops.torch_sparse = types.SimpleNamespace(
        neighbor_sample=sample_one, hetero_neighbor_sample=lambda nodes, kinds, colptrs, rows, seeds, fanouts, hops,
        replace, directed: sample(colptrs, rows, [tuple(k) for k in kinds], seeds, fanouts, hops))


def sorted_edges(random, count, sources, destinations):
    """In the order of columns, as a store has them: so PyG keeps their order."""
    edges = random.integers(0, [[sources], [destinations]], (2, count))
    return torch.from_numpy(np.ascontiguousarray(edges[:, np.lexsort((edges[0], edges[1]))]))


class OneType(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(5)
        cls.data = Data(x=torch.from_numpy(random.normal(size=(N, 300)).astype(np.float32)),
                        y=torch.from_numpy(random.integers(0, 5, N)), edge_index=sorted_edges(random, E, N, N),
                        train_mask=torch.arange(N) % 3 == 0, val_mask=torch.arange(N) % 3 == 1,
                        test_mask=torch.arange(N) % 7 == 2)
        cls.data.test_mask &= ~(cls.data.train_mask | cls.data.val_mask)
        cls.store = gs.from_pyg(os.path.join(folder, "one"), cls.data, parts=3, method="random", force=True)
        cls.half = gs.from_pyg(os.path.join(folder, "half"), cls.data, parts=2, feature_type="bf16", force=True)

    def assert_same(self, ours, theirs):
        self.assertEqual(set(ours.keys()) - {"e_id", "num_nodes"}, set(theirs.keys()) - {"e_id", "num_nodes"})
        for name in theirs.keys():
            if name in ("e_id", "num_nodes"):
                continue
            a, b = ours[name], theirs[name]
            self.assertTrue(torch.equal(a, b) and a.dtype == b.dtype if isinstance(b, torch.Tensor) else a == b, name)

    def test_batches_of_neighbor_loader_are_those_of_data(self):
        feature_store, graph_store = stores(self.store, "10M")
        self.assertLess(feature_store.report.host_bytes, 10 << 20)
        for workers in (0, 2):
            count = 0
            for shuffle in (False, True):
                made = []
                for data in ((feature_store, graph_store), self.data):
                    torch.manual_seed(3)
                    made.append(list(NeighborLoader(data, [4, 3], input_nodes=self.data.train_mask, batch_size=64,
                                                    shuffle=shuffle, num_workers=workers, is_sorted=True)))
                self.assertEqual(len(made[0]), len(made[1]))
                for ours, theirs in zip(*made):
                    self.assert_same(ours, theirs)
                    count += 1
            self.assertEqual(count, 10)

    def test_rows_by_any_index(self):
        for budget in (None, 9 << 20):
            rows, _ = stores(self.store, budget)
            for index in (None, slice(None), slice(5, 700, 3), slice(-4, None), 7, -1, np.array([3, 3, 899]), [1, 0],
                          torch.tensor([[4, 5], [6, 899]]), self.data.test_mask, torch.tensor([-900, -1]),
                          torch.tensor([], dtype=torch.int64)):
                for name in ("x", "y", "val_mask"):
                    attr = TensorAttr(None, name)
                    attr.index = index  # PyG compares it, which of several numbers is ambiguous
                    got, all_ = rows._get_tensor(attr), self.data[name]
                    want = all_ if index is None else all_[index]
                    self.assertTrue(torch.equal(got, want) and got.dtype == want.dtype, (name, index))
            self.assertTrue(torch.equal(rows[None, "x", [5]], self.data.x[[5]]))
            self.assertTrue(torch.equal(rows[None, "x"][2:4], self.data.x[2:4]))
            self.assertIsNone(rows.get_tensor(None, "z", None))
            self.assertIsNone(rows.get_tensor("paper", "x", None))
            self.assertEqual(rows.get_tensor_size(None, "x"), (N, 300))
            self.assertEqual(rows.get_tensor_size(None, "y"), (N,))
            self.assertFalse(rows.put_tensor(self.data.x, None, "x", None))
            self.assertEqual([(a.group_name, a.attr_name) for a in rows.get_all_tensor_attrs()],
                             [(None, name) for name in ("x", "y", "train_mask", "val_mask", "test_mask")])
            for index, said in ((900, "900 is out of range; the store has 900 rows"), ([3, -901], "-901 is out of"),
                                (torch.ones(5, dtype=torch.bool), r"a mask of shape \[5\]")):
                with self.assertRaisesRegex(IndexError, said):
                    rows.get_tensor(None, "x", index)
            with self.assertRaisesRegex(TypeError, "index: of type float"):
                rows.get_tensor(None, "x", [0.5])

    def test_rows_at_rest_and_many_of_them(self):
        rows, _ = stores(self.half)
        x = rows.get_tensor(None, "x", None)
        self.assertEqual(x.dtype, torch.bfloat16)
        self.assertTrue(torch.equal(x, self.data.x.to(torch.bfloat16)))
        many = torch.randint(0, N, (70000,))
        got = stores(self.store, "9M")[0].get_tensor(None, "x", many)
        self.assertTrue(torch.equal(got, self.data.x[many]))

    def test_features_with_names(self):
        age = torch.arange(N, dtype=torch.float32)
        data = Data(x=self.data.x[:, :3], age=age, place=self.data.x[:, 5:7], edge_index=self.data.edge_index)
        rows, _ = stores(gs.from_pyg(os.path.join(folder, "named"), data, named=("age", "place"), force=True))
        self.assertEqual({a.attr_name: rows.get_tensor_size(a) for a in rows.get_all_tensor_attrs()},
                         {"x": (N, 3), "age": (N, 1), "place": (N, 2)})
        for name in ("x", "age", "place"):
            self.assertTrue(torch.equal(rows.get_tensor(None, name, [7, 2]), data[name].reshape(N, -1)[[7, 2]]), name)

    def test_edges_in_each_layout(self):
        _, graph = stores(self.store)
        edges = self.data.edge_index
        self.assertTrue(torch.equal(torch.stack(graph.get_edge_index(None, "coo")), edges))
        row, colptr = graph.get_edge_index(None, "csc")
        self.assertTrue(torch.equal(row, edges[0]))
        self.assertEqual(colptr.tolist(), np.searchsorted(edges[1].numpy(), np.arange(N + 1)).tolist())
        rowptr, col = graph.get_edge_index(None, "csr")
        self.assertEqual(rowptr.tolist(), [0, *edges[0].bincount(minlength=N).cumsum(0).tolist()])
        self.assertEqual(sorted(zip(np.repeat(np.arange(N), rowptr.diff()).tolist(), col.tolist())),
                         sorted(zip(*edges.tolist())))
        (attr,) = graph.get_all_edge_attrs()
        self.assertEqual((attr.edge_type, attr.layout.value, attr.size), (None, "csc", (N, N)))
        kept = graph.get_edge_index(attr)
        self.assertIs(graph.get_edge_index(attr)[0], kept[0])
        with self.assertRaises(KeyError):
            graph.get_edge_index(("a", "to", "b"), "csc")

    def test_pickles_closes_and_refuses(self):
        rows, graph = pickle.loads(pickle.dumps(stores(self.store, "12M")))
        self.assertTrue(torch.equal(rows.get_tensor(None, "x", 3), self.data.x[3]))
        self.assertEqual(graph.get_edge_index(None, "csc")[0].shape, (E,))
        rows.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            rows.get_tensor(None, "x", 3)
        with self.assertRaisesRegex(gs.BudgetError, "a loader of these rows takes at least"):
            stores(self.store, "100K")
        with self.assertRaises(gs.NotFoundError):
            stores("/nowhere")


def several_types(features_of_authors):
    random = np.random.default_rng(6)
    data = HeteroData()
    data["author"].num_nodes = 300
    if features_of_authors:
        data["author"].x = torch.from_numpy(random.normal(size=(300, 3)).astype(np.float32))
    data["paper"].x = torch.from_numpy(random.normal(size=(400, 24)).astype(np.float32))
    data["paper"].y = torch.from_numpy(random.integers(0, 3, 400))
    data["paper"].x[:, :3] += 2 * torch.nn.functional.one_hot(data["paper"].y, 3)
    data["paper"].train_mask = torch.arange(400) % 2 == 0
    data["topic"].x = torch.from_numpy(random.normal(size=(50, 7)).astype(np.float32))
    for kind, a, b in (("author__writes__paper", 300, 400), ("paper__about__topic", 400, 50),
                       ("paper__cites__paper", 400, 400), ("topic__of__author", 50, 300)):
        edges = data[tuple(kind.split("__"))]
        edges.edge_index = sorted_edges(random, 1200, a, b)
        edges.edge_attr = torch.from_numpy(random.normal(size=(1200, 2)).astype(np.float32))
    return data


class SeveralTypes(unittest.TestCase):
    def test_our_loader_makes_what_pyg_makes_of_hetero_data(self):
        data = several_types(True)
        store = gs.from_pyg(os.path.join(folder, "ours"), data, parts=3, method="random", force=True)
        ours = gnnstream.loaders.NeighborLoader(store, [-1, -1], input_nodes="train", batch_size=400, edge_ids=True)
        (a,), (b,) = list(ours), list(NeighborLoader(data, [-1, -1], input_nodes=("paper", data["paper"].train_mask),
                                                     batch_size=400, is_sorted=True))
        self.assertIsInstance(a, HeteroData)
        self.assertEqual((a.node_types, set(a.edge_types)), (sorted(b.node_types), set(b.edge_types)))
        for kind in (*b.node_types, *b.edge_types):
            made = {name for name in b[kind].keys() if b[kind][name] is not None} - {"num_nodes"}
            self.assertEqual(made - set(a[kind].keys()), set(), kind)
            for name in made:
                x, y = a[kind][name], b[kind][name]
                self.assertEqual(type(x), type(y), (kind, name))
                if isinstance(y, torch.Tensor):
                    self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype), (kind, name))
        for kind in data.node_types:
            x, y = a[kind].n_id.argsort(), b[kind].n_id.argsort()
            self.assertEqual(a[kind].num_nodes, b[kind].num_nodes)
            if "num_sampled_nodes" in b[kind]:  # of pyg-lib alone
                self.assertEqual(a[kind].num_sampled_nodes, b[kind].num_sampled_nodes)
            for name in ("n_id", "x", "y", "train_mask"):
                if name in b[kind]:
                    self.assertTrue(torch.equal(a[kind][name][x], b[kind][name][y]), (kind, name))
        for kind in data.edge_types:
            x, y = a[kind].e_id.argsort(), b[kind].e_id.argsort()
            if "num_sampled_edges" in b[kind]:
                self.assertEqual(a[kind].num_sampled_edges, b[kind].num_sampled_edges)
            self.assertTrue(torch.equal(a[kind].e_id[x], b[kind].e_id[y]), kind)
            ends = [torch.stack([batch[kind[0]].n_id[batch[kind].edge_index[0]], batch[kind[2]].n_id[
                batch[kind].edge_index[1]]])[:, order] for batch, order in ((a, x), (b, y))]
            self.assertTrue(torch.equal(*ends), kind)
            once = data[kind].edge_index.T.unique(dim=0, return_counts=True)[1].max() == 1
            if once:  # of doubled edges either one may have a number
                self.assertTrue(torch.equal(a[kind].edge_attr[x], b[kind].edge_attr[y]), kind)

    def test_models_of_pyg_train_on_our_batches(self):
        data = several_types(True)
        store = gs.from_pyg(os.path.join(folder, "trained"), data, parts=3, method="random", force=True)

        class Sage(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = SAGEConv((-1, -1), 16), SAGEConv((-1, -1), 3)

            def forward(self, x, edge_index):
                return self.last(self.first(x, edge_index).relu(), edge_index)

        class Hgt(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = HGTConv({"author": 3, "paper": 24, "topic": 7}, 16, data.metadata(), 2)
                self.last = torch.nn.Linear(16, 3)

            def forward(self, x, edge_index):
                return {kind: self.last(rows) for kind, rows in self.first(x, edge_index).items() if rows is not None}

        loader = gnnstream.loaders.NeighborLoader(store, [5, 5], input_nodes="train", batch_size=64, shuffle=True)
        for make in (lambda: to_hetero(Sage(), data.metadata(), aggr="sum"), Hgt):
            torch.manual_seed(2)
            net, means = make(), []
            with torch.no_grad():
                net(data.x_dict, data.edge_index_dict)  # widths that are found
            optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
            for _ in range(6):
                losses = []
                for batch in loader:
                    optimizer.zero_grad()
                    size = batch["paper"].batch_size
                    out = net(batch.x_dict, batch.edge_index_dict)["paper"][:size]
                    loss = torch.nn.functional.cross_entropy(out, batch["paper"].y[:size])
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                means.append(sum(losses) / len(losses))
            self.assertLess(means[-1], 0.6 * means[0])
            with torch.no_grad():
                right = net(data.x_dict, data.edge_index_dict)["paper"].argmax(1) == data["paper"].y
            self.assertGreater(right[~data["paper"].train_mask].float().mean(), 0.6)  # a third by chance

    def test_batches_are_those_of_hetero_data(self):
        data = several_types(False)
        store = gs.from_pyg(os.path.join(folder, "several"), data, parts=3, method="random", force=True)
        rows, graph = stores(store)
        for kind in data.edge_types:
            self.assertTrue(torch.equal(torch.stack(graph.get_edge_index(kind, "coo")), data[kind].edge_index), kind)
        for name in ("paper", "topic"):
            self.assertTrue(torch.equal(rows.get_tensor(name, "x", None), data[name].x))
        self.assertTrue(torch.equal(rows.get_tensor("author", "n_id", slice(2, 4)), torch.tensor([2, 3])))
        self.assertIsNone(rows.get_tensor("author", "x", None))
        with self.assertRaisesRegex(IndexError, "50 is out of range; 'topic' has 50 rows"):
            rows.get_tensor("topic", "x", [50])
        def whole(given):
            torch.manual_seed(1)
            return list(NeighborLoader(given, [-1, -1], input_nodes=("paper", data["paper"].train_mask), batch_size=60))
        ours, theirs = whole((rows, graph)), whole(data)
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            for name in ("paper", "topic"):
                order = [batch[name].n_id.argsort() for batch in (a, b)]  # types come in the order of a set of PyG's
                self.assertTrue(torch.equal(a[name].n_id[order[0]], b[name].n_id[order[1]]))
                self.assertTrue(torch.equal(a[name].x[order[0]], b[name].x[order[1]]))
            size = a["paper"].batch_size
            self.assertTrue(torch.equal(a["paper"].y[:size], b["paper"].y[:size]))
            for kind in data.edge_types:
                self.assertEqual(*(sorted(zip(*(batch[kind[end]].n_id[batch[kind].edge_index[row]].tolist()
                                                for end, row in ((0, 0), (2, 1))))) for batch in (a, b)))

    def test_pairs(self):
        random = np.random.default_rng(7)
        data = Data(x=torch.rand(50, 3), edge_index=sorted_edges(random, 200, 50, 50))
        store = gs.from_pyg(os.path.join(folder, "pairs"), data, parts=2, force=True)
        made = [list(LinkNeighborLoader(given, [-1], edge_label_index=index, batch_size=32,
                                        is_sorted=True)) for given, index in
                ((stores(store), (None, data.edge_index)), (data, data.edge_index))]
        for a, b in zip(*made):
            self.assertTrue(torch.equal(a.x, b.x) and torch.equal(a.edge_label_index, b.edge_label_index))


if __name__ == "__main__":
    unittest.main(verbosity=0)
