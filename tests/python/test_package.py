#!/usr/bin/env python3
"""test_package.py FOLDER: the Python package, with numpy alone. Run by tests/python/wheel.sh in a clean environment."""
import inspect
import math
import os
import pickle
import signal
import sys
import threading
import time
import unittest
import warnings

import numpy as np

import gnnstream as gs
from gnnstream.nn import dot, dropout, head_mean, leaky_relu, mean, relu, softmax, sum

folder = sys.argv.pop() if len(sys.argv) > 1 else "."


def at(name):
    return os.path.join(folder, name)


def planted(vertices=400, edges=3000, classes=3, seed=1):
    """Arrays of a random graph whose features say the class."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, vertices)
    x = random.normal(size=(vertices, 8)).astype(np.float32)
    x[:, :classes] += 2 * np.eye(classes, dtype=np.float32)[y]
    masks = np.arange(vertices) % 4
    return {"edge_index": random.integers(0, vertices, (2, edges)), "x": x, "y": y, "train": masks <= 1,
            "valid": masks == 2, "test": masks == 3}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arrays = planted()
        cls.store = gs.from_arrays(at("store"), **cls.arrays, parts=2, method="random", force=True)

    def options(self, **more):
        return {"model": "gcn", "hidden": 16, "epochs": 5, "threads": 1, **more}

    def test_store_says_what_it_holds(self):
        self.assertEqual((self.store.vertices, self.store.edges, self.store.features, self.store.classes),
                         (400, 3000, 8, 3))
        self.assertEqual((self.store.train, self.store.valid, self.store.test), (200, 100, 100))
        self.store.verify()

    def test_names_are_those_of_the_input(self):
        os.makedirs(at("words"), exist_ok=True)
        with open(at("words/train.txt"), "w", encoding="ascii") as file:
            file.write("aa\tlikes\tb\nc\tis\tdd\n")
        store = gs.partition(at("words"), at("words.store"), parts=1, force=True, warn=lambda line: None)
        self.assertEqual((store.ids(), store.edge_type_names()), (["b", "c", "aa", "dd"], ["is", "likes"]))
        self.assertEqual(self.store.edge_type_names(), [])
        os.truncate(at("words.store/edge_type_names.bin"), 0)  # as shards behind the first have it
        with self.assertRaisesRegex(gs.FormatError, "edge_type_names.bin: has 0 of 9 bytes; of shards, the first has"):
            store.edge_type_names()

    def test_a_store_is_cut_into_shards(self):
        gs.generate("rmat", at("raw.of.shards"), vertices=300, edges=3000, features=4, classes=2, force=True)
        store = gs.partition(at("raw.of.shards"), at("whole"), parts=3, method="random", force=True)
        seen: list[float] = []
        parts = gs.shard(store, 3, at("parts"), progress=lambda what, done: seen.append(done))
        self.assertEqual([part.path for part in parts], [at(f"parts/{k}") for k in range(3)])
        self.assertEqual([part.edges for part in parts], [store.edges] * 3)
        for name in ("edges.dest.bin", "edges.source.bin"):
            with open(os.path.join(store.path, name), "rb") as file:
                whole = file.read()
            pieces = []
            for part in parts:
                part.verify()
                with open(os.path.join(part.path, name), "rb") as file:
                    pieces.append(file.read())
            self.assertEqual(b"".join(pieces), whole)
        self.assertEqual(seen[-1], 1.0)
        with self.assertRaises(gs.ExistsError):
            gs.shard(store, 3, at("parts"))
        gs.shard(store.path, 3, at("parts"), force=True)
        with self.assertRaisesRegex(gs.OptionError, "its 3 intervals cannot be dealt to 4 ranks"):
            gs.shard(store, 4, at("more"))
        for ranks in (-1, 2.0, True, 1 << 32):
            with self.assertRaisesRegex(gs.OptionError, "is no number of ranks"):
                gs.shard(store, ranks, at("more"))
        self.assertFalse(os.path.exists(at("more")))

    def test_edges_go_from_the_first_row_to_the_second(self):
        """GCN's sum at vertex 1 of the one edge 0 -> 1, by hand."""
        x = np.array([[1.0, 2.0], [4.0, 8.0]], np.float32)
        store = gs.from_arrays(at("two"), [[0], [1]], x, [0, 1], train=[0], parts=1, force=True)
        with gs.Run(store, "sage", layers=1, epochs=1, threads=1) as run:
            state = {name: np.zeros_like(values) for name, values in run.state_dict().items()}
            state["convs.0.lin_l.weight"] = np.eye(2, dtype=np.float32)
            run.load_state_dict(state)
            np.testing.assert_array_equal(run.logits(), [[0, 0], [1, 2]])

    def test_features_of_edges_are_what_a_text_reads(self):
        """Sums of what comes in, by hand: of from_arrays' edge_features, and of PyG's edge_attr of two columns."""
        class Attr(np.ndarray):  # a tensor has dim()
            def dim(self):
                return self.ndim

        class Data:
            num_nodes, x = 3, np.zeros((3, 1), np.float32)
            y, train_mask = np.array([0, 1, 0]).view(Attr), np.array([True, True, True])
            edge_index = np.array([[0, 1, 2, 0], [2, 2, 0, 1]])
            edge_attr = np.array([[1, 2], [10, 20], [3, 5], [7, 7]], np.float32).view(Attr)

        text = at("edges.gnn")
        with open(text, "w", encoding="utf-8") as file:
            file.write("layer one(h[in]) -> [out]:\n    param W[out, edge_features] ~ glorot\n"
                       "    return sum(e.x @ W')\n")
        stores = [gs.from_pyg(at("attr"), Data, parts=2, force=True),
                  gs.from_arrays(at("edged"), Data.edge_index, Data.x, Data.y, train=Data.train_mask,
                                 edge_features=Data.edge_attr, parts=1, force=True)]
        for store in stores:
            with gs.Run(store, text, layers=1, epochs=1, threads=1) as run:
                run.load_state_dict({"convs.0.W": np.eye(2, dtype=np.float32)})
                np.testing.assert_array_equal(run.logits(), [[3, 5], [7, 7], [11, 22]])

    def test_layers_learn_from_pairs(self):
        with gs.Run(self.store, task="link", decoder="mlp", negatives=8, **self.options(seed=1)) as run:
            losses = [epoch.loss for epoch in run.fit()]
            self.assertLess(losses[-1], losses[0])
            self.assertEqual(run.state_dict()["lin1.weight"].shape, (16, 32))

    def test_pairs_of_a_split_are_trained_on_and_judged_by(self):
        """As RandomLinkSplit has them, negatives among them; a knowledge graph's splits have types."""
        class Data:
            num_nodes, x = 6, None

            def __init__(self, **has):
                self.__dict__.update(has)

        edges = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        train = Data(edge_index=edges, edge_label_index=edges[:, :3], edge_label=np.array([1., 1., 0.]))
        valid = Data(edge_index=edges, edge_label_index=edges[:, 3:], edge_label=np.array([1., 1.]))
        store = gs.from_pyg(at("linked"), train, valid=valid, parts=1, force=True)
        self.assertEqual((store.edges, store.train_links, store.valid_links, store.test_links), (5, 2, 2, 0))
        with gs.Run(store, "embedding", task="link", hidden=4, epochs=2, negatives=2, threads=1) as run:
            self.assertTrue(0 <= run.fit()[-1].valid_roc_auc <= 1)
        for label, task, figure in ((np.array([2, 0, 1]), "edge-classify", "valid_macro_f1"),
                                    (np.array([2.5, 1, 4]), "edge-regress", "valid_rmse")):
            train.edge_label, valid.edge_label = label, label[:2]
            store = gs.from_pyg(at("labelled"), train, valid=valid, edge_labels=True, parts=1, force=True)
            self.assertEqual((store.link_task, store.train_links), (task, 3))
            with gs.Run(store, "embedding", task=task, hidden=4, epochs=2, threads=1) as run:
                self.assertTrue(getattr(run.fit()[-1], figure) >= 0)
        with self.assertRaisesRegex(gs.Error, "train's labels of links: row 1: -1 is no class"):
            gs.from_arrays(at("labelled"), edges, links={"train": (edges[:, :2], None, np.array([0, -1]))}, force=True)
        kinds = np.array([0, 1, 0, 1, 0])
        store = gs.from_pyg(at("known"), Data(edge_index=edges, edge_type=kinds),
                            test=Data(edge_index=edges[:, :2], edge_type=kinds[:2]), parts=1, force=True)
        with gs.Run(store, "embedding", task="link", decoder="distmult", hidden=4, epochs=2, threads=1) as run:
            self.assertTrue(0 < run.fit()[-1].test_mrr <= 1)
            self.assertEqual(sorted(run.state_dict()), ["rel_emb.weight"])

    def test_types_of_vertices_come_from_heterodata(self):
        class Has:
            def __init__(self, **has):
                self.__dict__.update(has)

        class Hetero(dict):
            node_types, edge_types = ["paper", "author"], [("author", "writes", "paper")]

        data = Hetero({"paper": Has(num_nodes=3, x=np.eye(3, dtype=np.float32), y=np.array([0, 1, 0]),
                                    train_mask=np.array([True, True, False])),
                       "author": Has(num_nodes=2),
                       ("author", "writes", "paper"): Has(edge_index=np.array([[0, 1, 1], [0, 1, 2]]),
                                                          edge_attr=np.array([[1.], [2.], [3.]]))})
        store = gs.from_pyg(at("hetero"), data, parts=1, force=True)
        self.assertEqual((store.vertices, store.edges, store.edge_types, store.train), (5, 3, 1, 2))
        with gs.Run(store, "sage", layers=1, epochs=1, threads=1, ignore_edge_weights=True) as run:
            self.assertEqual(run.logits().shape, (3, 2)) # of papers
        data["author"].age = np.array([40, 50])
        data["author", "writes", "paper"].time = np.array([1., 2., 3.])
        store = gs.from_pyg(at("hetero"), data, named=["age"], named_edges=["time"], parts=1, force=True)
        self.assertEqual(store.features, 4) # columns of papers, and the age
        # Of papers 0, 1 and 2: 1 * 40, 2 * 50, 3 * 50.
        text = at("age.gnn")
        with open(text, "w") as file:
            file.write("layer near(h[in]) -> [out]:\n    param W[out, 1]\n    return sum(u.age * e.time) @ W'\n")
        with gs.Run(store, text, layers=1, epochs=1, threads=1, ignore_edge_weights=True) as run:
            run.load_state_dict({"convs.0.W": np.array([[1], [2]], np.float32)})
            self.assertEqual(run.logits().tolist(), [[40, 80], [100, 200], [150, 300]])
        with self.assertRaisesRegex(ValueError, "height: no type has an attribute of this name"):
            gs.from_pyg(at("hetero"), data, named=["height"], parts=1, force=True)
        data["author"].age = np.array([40])
        with self.assertRaisesRegex(gs.Error, "age.*: has 1 rows"):
            gs.from_pyg(at("hetero"), data, named=["age"], parts=1, force=True)
        del data["author"].age
        data["paper"].y = np.array([0, 1])
        with self.assertRaisesRegex(gs.Error, "nodes/paper/y: has 2 rows"):
            gs.from_pyg(at("hetero"), data, parts=1, force=True)

    def test_epochs_and_callbacks(self):
        seen = []
        with gs.Run(self.store, **self.options(epochs=20)) as run:
            past = run.fit(lambda r, e: seen.append(e.loss), lambda r, e: e.epoch == 7)
            self.assertEqual([e.epoch for e in past], list(range(1, 8)))
            self.assertEqual(seen, [e.loss for e in past])
            self.assertLess(past[-1].loss, past[0].loss)
            for epoch in run:
                pass
            self.assertEqual(epoch.epoch, 20)

    def test_early_stopping_and_best_weights(self):
        best = gs.callbacks.best_weights("valid_acc")
        with gs.Run(self.store, **self.options(epochs=200, lr=0.05)) as run:
            past = run.fit(gs.callbacks.early_stopping(5), best)
            self.assertLess(len(past), 200)
            run.load_state_dict(best.state)
            self.assertAlmostEqual(run.evaluate().valid_acc, best.best)
            self.assertEqual(best.best, builtin_max(e.valid_acc for e in past[1:]))  # weights that were trained

    def test_patience_ends_the_loop(self):
        with gs.Run(self.store, **self.options(epochs=200, lr=0.05, patience=5, keep_by="accuracy")) as run:
            past = list(run)
        figures = [-1] + [e.valid_acc for e in past[1:]]  # the first is of weights before any update
        self.assertEqual(len(past), figures.index(builtin_max(figures)) + 1 + 5)
        self.assertLess(len(past), 200)

    def test_a_closed_run_says_so(self):
        with gs.Run(self.store, **self.options()) as run:
            state = run.state_dict()
        for ask in (run.logits, run.epoch, lambda: dict(state)):
            with self.assertRaisesRegex(ValueError, "the run is closed"):
                ask()
        run.close()

    def test_logits_fill_the_given_array_in_input_order(self):
        with gs.Run(self.store, **self.options(epochs=40)) as run:
            for _ in run:
                pass
            out = np.full((400, 3), np.nan, np.float32)
            self.assertIs(run.logits(out), out)
            right = (out.argmax(1) == self.arrays["y"])[self.arrays["test"]].mean()
            self.assertAlmostEqual(right, run.evaluate().test_acc)
            with self.assertRaisesRegex(ValueError, "400, 3"):
                run.logits(np.zeros((3, 400), np.float32))

    def test_weights_out_and_in_give_the_same_logits(self):
        with gs.Run(self.store, **self.options(seed=1)) as run:
            run.epoch()
            state, logits = dict(run.state_dict()), run.logits()
            run.save(at("w.safetensors"))
        with gs.Run(self.store, **self.options(seed=2)) as other:
            other.load_state_dict(state)
            np.testing.assert_array_equal(other.logits(), logits)
        np.testing.assert_array_equal(
            gs.predict(self.store, "gcn", at("w.safetensors"), hidden=16, threads=1), logits)
        np.testing.assert_array_equal(gs.predict(self.store, "gcn", state, hidden=16, threads=1), logits)
        with self.assertRaisesRegex(KeyError, "missing: convs.0.bias"):
            with gs.Run(self.store, **self.options()) as run:
                run.load_state_dict({k: v for k, v in state.items() if k != "convs.0.bias"})

    def test_train_is_a_run_from_end_to_end(self):
        report = gs.train(self.store, **self.options(save=at("t.safetensors"), logits=at("t.npy")))
        self.assertEqual(len(report.history), 5)
        self.assertEqual(np.load(at("t.npy")).shape, (400, 3))
        self.assertTrue(os.path.exists(at("t.safetensors")))

    def test_plan(self):
        plan = gs.plan(self.store, **self.options())
        self.assertEqual({p.name for p in plan.passes} & {"train"}, {"train"})
        self.assertLessEqual(plan.host_bytes, plan.host_memory)
        self.assertTrue(all(item.bytes > 0 for item in plan.memory))

    def test_errors_are_the_engines_lines_by_kind(self):
        with self.assertRaisesRegex(ValueError, "hidden 0: must be"):
            gs.Run(self.store, **self.options(hidden=0))
        with self.assertRaises(FileNotFoundError):
            gs.Store(at("nowhere"))
        with self.assertRaisesRegex(TypeError, "did you mean 'hidden'"):
            gs.Run(self.store, "gcn", hiden=3)
        with self.assertRaisesRegex(TypeError, "'many' is of another type"):
            gs.Run(self.store, "gcn", layers="many")
        with self.assertRaisesRegex(gs.BudgetError, "host_memory"):
            gs.Run(self.store, **self.options(host_memory="1M"))
        with self.assertRaises(FileExistsError):
            gs.from_arrays(at("store"), **self.arrays)
        with self.assertRaisesRegex(ValueError, r"must be \[2, edges\]"):
            gs.from_arrays(at("bad"), np.zeros((5, 3), int))
        with self.assertRaisesRegex(ValueError, "vertex 400"):
            gs.from_arrays(at("bad"), [[400], [0]], self.arrays["x"])
        with gs.Run(self.store, **self.options()) as run:
            pass
        with self.assertRaises(ValueError):
            run.epoch()

    def test_masks_of_0_and_1_are_masks(self):
        arrays = {**self.arrays, **{k: self.arrays[k].astype(np.uint8) for k in ("train", "valid", "test")}}
        store = gs.from_arrays(at("masks"), **arrays, parts=2, method="random", force=True)
        self.assertEqual((store.train, store.valid, store.test), (200, 100, 100))
        with self.assertRaisesRegex(ValueError, "^train: may be a mask of 2 vertices or a list of ids"):
            gs.from_arrays(at("masks"), [[0], [1]], [[1.0], [2.0]], [0, 1], train=[0, 1], parts=1, force=True)
        few = gs.from_arrays(at("masks"), [[0], [1]], [[1.0], [2.0]], [0, 1], train=[0, 0], valid=[1, 1], parts=1,
                             force=True)
        self.assertEqual((few.train, few.valid), (0, 2))

    def test_masks_of_numpy_are_refused(self):
        for name in ("x", "y", "edge_index"):
            values = np.ma.masked_array(self.arrays[name])
            gs.from_arrays(at("masked"), **{**self.arrays, name: values}, parts=1, force=True)
            values[0] = np.ma.masked
            with self.assertRaisesRegex(ValueError, f"^{name}: has [0-9,]+ masked values"):
                gs.from_arrays(at("masked"), **{**self.arrays, name: values}, force=True)

    def test_sparse_features_are_the_dense_ones(self):
        class Matrix:  # as scipy's
            shape, row, col = (400, 8), np.array([3, 0, 0, 399]), np.array([7, 1, 1, 0])
            data = np.array([2.0, 1, 4, -1])

            def tocoo(self):
                return self
        dense = np.zeros((400, 8))
        dense[3, 7], dense[0, 1], dense[399, 0] = 2, 5, -1  # doubled entries add up
        logits = []
        for x in (Matrix(), dense):
            store = gs.from_arrays(at("sparse"), **{**self.arrays, "x": x}, parts=2, method="random", force=True)
            with gs.Run(store, **self.options()) as run:
                logits.append(run.logits())
        np.testing.assert_array_equal(*logits)

    def test_errors_are_in_words_of_the_call(self):
        def fails(line, **changed):
            with self.assertRaisesRegex((ValueError, TypeError), line) as caught:
                gs.from_arrays(at("words"), **{**self.arrays, **changed}, force=True)
            self.assertNotRegex(str(caught.exception), r"\.npy|\.gnnstream-")
        fails("^train: names vertex 400, but there are 400 vertices", train=[1, 400])
        fails("^valid: names vertex -1", valid=[-1, 3])
        fails(r"^edge_weight: of shape \[7\]; must be \[3000\]", edge_weight=np.ones(7))
        fails("edge_weight", edge_weight=np.full(3000, np.nan))
        fails(r"^x: of type complex128; must be floats", x=np.ones((400, 2), complex))

    def test_what_a_cell_shows_is_a_line(self):
        plan = gs.plan(self.store, **self.options())
        with gs.Run(self.store, **self.options(save=at("r.safetensors"))) as run:
            shown = [run, run.epoch(), run.evaluate(), run.state_dict(), run.plan(), plan, plan.passes[0], run.finish()]
        shown += [run, self.store, self.store.report, gs.weights_info(at("r.safetensors"))]
        for thing in shown:
            self.assertLess(len(repr(thing)), 250)
            self.assertRegex(repr(thing), r"^[^\n]+$")
        self.assertRegex(repr(shown[1]), r"^Epoch\(1 of 5: loss [0-9.]+, train_acc ")

    def test_types_are_those_of_the_engine(self):
        """Options and figures that are annotated are those that there are, and all that is public is annotated."""
        from gnnstream import _types
        self.assertEqual({"model", *_types.TrainOptions.__annotations__}, set(gs.Run.options))
        with gs.Run(self.store, **self.options()) as run:
            for thing, fields in ((run.epoch(), _types.EpochFields), (run.evaluate(), _types.EvaluationFields),
                                  (run.finish(), _types.TrainFields), (self.store.report, _types.PartitionFields)):
                self.assertEqual(vars(thing).keys(), fields.__annotations__.keys())
        self.assertEqual(self.store.summary.keys(), _types.StoreFields.__annotations__.keys())
        plan = vars(gs.plan(self.store, **self.options())).keys()
        self.assertEqual(plan - {"passes", "memory", "files", "links"}, _types.PlanFields.__annotations__.keys() - {
            "device_kept_bytes"})
        for name in gs.__all__:
            thing = getattr(gs, name)
            own = [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]
            for each in filter(inspect.isfunction, own):
                signature = inspect.signature(each)
                for parameter in list(signature.parameters.values())[each.__qualname__ != each.__name__:]:
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty, (each, parameter))
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty, each)

    def test_another_thread_watches_and_stops_a_run(self):
        ended = []
        with gs.Run(self.store, **self.options(epochs=10**7)) as run:
            def work():
                try:
                    run.fit()
                except gs.Error as error:
                    ended.append(error)
            thread = threading.Thread(target=work)
            thread.start()
            while run.progress()["epoch"] < 3:
                time.sleep(0.001)
            run.stop()
            thread.join()
        self.assertIsInstance(ended[0], InterruptedError)

    def test_ctrl_c_raises_keyboard_interrupt(self):
        with gs.Run(self.store, **self.options(epochs=10**6)) as run:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                for _ in run:
                    pass

    def test_what_progress_raises_ends_the_call(self):
        def progress(what, done):
            raise RuntimeError("enough")
        gs.generate("sbm", at("raw"), vertices=5000, edges=50000, features=4, classes=2, force=True)
        with self.assertRaisesRegex(RuntimeError, "enough"):
            gs.partition(at("raw"), at("raw-store"), progress=progress, force=True)
        self.assertFalse(os.path.exists(at("raw-store/manifest.json")))


def gat(v, p):
    v.x = v.h @ p["lin.weight"].T
    v.a = dot(v.x, p.att_src)
    v.b = dot(v.x, p.att_dst)
    return sum(dropout(softmax(leaky_relu(u.a + v.b, 0.2))) * u.x for u in v.innbs_and_self) + p.bias


def gat_last(v, p):
    v.x = v.h @ p["lin.weight"].T
    v.a = dot(v.x, p.att_src)
    v.b = dot(v.x, p.att_dst)
    return head_mean(sum(dropout(softmax(leaky_relu(u.a + v.b, 0.2))) * u.x for u in v.innbs_and_self)) + p.bias


ATTENTION = ("att_src[1, heads, d]", "att_dst[1, heads, d]")


class Traced(unittest.TestCase):
    """A model from Python is its text: the same losses, logits and weights in every bit."""

    @classmethod
    def setUpClass(cls):
        cls.store = gs.from_arrays(at("traced"), **planted(seed=3), parts=3, method="random", force=True)

    def outcome(self, model, **options):
        with gs.Run(self.store, model, hidden=8, epochs=4, threads=1, dropout=0.3, **options) as run:
            return [e.loss for e in run], run.logits(), dict(run.state_dict())

    def same(self, model, text, **options):
        one, two = self.outcome(model, **options), self.outcome(text, **options)
        self.assertEqual(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])
        self.assertEqual(one[2].keys(), two[2].keys())
        for name in one[2]:
            np.testing.assert_array_equal(one[2][name], two[2][name])

    def test_gat_is_the_zoos(self):
        model = gs.Model(
            gs.layer("h[in] -> [heads * d]", *ATTENTION, "bias[heads * d]", "lin.weight[heads * d, in]")(gat),
            gs.layer("h[in] -> [d]", *ATTENTION, "bias[d]", "lin.weight[heads * d, in]", name="last")(gat_last))
        self.same(model, "gat", heads=2)

    def test_gcn_is_the_zoos(self):
        @gs.layer("h[in] -> [out]", "lin.weight[out, in]", "bias[out]")
        def gcn(v, p):
            norm = gs.nn.rsqrt(v.in_degree - v.loops + 1)
            v.x = norm * (v.h @ p["lin.weight"].T)
            return norm * (sum(u.x for u in v.innbs) + (1 - v.loops) * v.x) + p.bias
        self.same(gs.Model(gcn), "gcn")

    def test_a_lambda_and_python_s_own_sum(self):
        import builtins
        made = gs.layer("h[in] -> [out]", "w[out, in]", name="plain")(
            lambda v, p: relu(builtins.sum(u.h for u in v.innbs) @ p.w.T))
        self.assertEqual(made.text,
                         "layer plain(h[in]) -> [out]:\n    param w[out, in]\n    return relu(sum(u.h) @ w')\n")
        self.outcome(gs.Model(made))

    def test_what_is_used_twice_has_a_name(self):
        @gs.layer("h[in] -> [out]", "w[out, in]")
        def twice(v, p):
            a = v.h @ p.w.T
            for _ in range(6):
                a = a + relu(a)
            return a
        self.assertLess(len(twice.text), 400)
        self.outcome(gs.Model(twice))

    def test_an_edge_value_used_twice_and_names_given_again(self):
        @gs.layer("h[in] -> [out]", "w[out, in]")
        def again(v, p):
            v.x = v.h @ p.w.T
            for _ in range(2):
                v.x = mean(u.x for u in v.innbs) + 0.5 * v.x
            return sum(gs.nn.sigmoid(u.x - v.x) * (u.x - v.x) for u in v.innbs)
        self.outcome(gs.Model(again))

    def test_constants_widths_and_rows_by_type(self):
        @gs.layer("h[in] -> [out]", "w[out, 3 * in]", "b[types, in]", constants={"alpha": 0.25})
        def several(v, p):
            v.m = mean(gs.nn.sigmoid(u.h + p.b[u.edge.type]) for u in v.innbs)
            return gs.nn.concat(v.h, v.m, p.alpha * v.h / gs.nn.sqrt(p["in"])) @ p.w.T
        text = ("const alpha = 0.25\n\nlayer several(h[in]) -> [out]:\n    param w[out, 3 * in], b[types, in]\n"
                "    m = mean(sigmoid(u.h + b[e.type]))\n    return concat(h, m, alpha * h / sqrt(in)) @ w'\n")
        self.assertEqual(several.text, text)
        changed = self.outcome(gs.Model(several), set="alpha=0.5")
        self.assertEqual(changed[0], self.outcome(gs.Model(text.replace("0.25", "0.5")))[0])
        with self.assertRaisesRegex(gs.OptionError, "has no constant of this name"):
            self.outcome(gs.Model(several), set="beta=1")
        with self.assertRaisesRegex(TypeError, "in another"):
            gs.Model(several, gs.layer("h[in] -> [out]", constants={"alpha": 1}, name="b")(lambda v, p: v.h * p.alpha))

    def test_norms_and_jumping_knowledge_are_options(self):
        with gs.Run(self.store, "gcn", hidden=8, epochs=2, norm="batch", jk="cat", layers=3) as run:
            losses = [e.loss for e in run]
            names = set(run.state_dict())
        self.assertEqual(len(losses), 2)
        self.assertLessEqual({"norms.2.module.running_mean", "lin.weight"}, names)

    def test_layers_and_models_are_pickled(self):
        made = gs.layer("h[in] -> [out]", "w[out, in]", constants={"a": 2})(lambda v, p: p.a * v.h @ p.w.T)
        for thing in (made, gs.Model(made)):
            self.assertEqual(pickle.loads(pickle.dumps(thing)).text, thing.text)

    def test_what_no_text_can_say_is_refused(self):
        def trace(f, *parameters):
            return gs.layer("h[in] -> [out]", *parameters)(f)
        with self.assertRaisesRegex(TypeError, "where"):
            trace(lambda v: v.h if v.h > 0 else -v.h)
        with self.assertRaisesRegex(TypeError, "v.y: not there; it has h"):
            trace(lambda v: v.y)
        with self.assertRaisesRegex(TypeError, "reduce it"):
            trace(lambda v: [u.h for u in v.innbs][0])
        with self.assertRaisesRegex(TypeError, "no such parameter"):
            trace(lambda v, p: v.h @ p.w.T)
        with self.assertRaisesRegex(TypeError, "does not depend on the in-neighbour"):
            trace(lambda v: sum(v.h for u in v.innbs))
        with self.assertRaisesRegex(gs.FormatError, r"^model:2:15: .*\n *return h @\n +\^"):  # with its place
            self.outcome(gs.Model("layer broken(h[in]) -> [out]:\n    return h @\n"))

    def test_what_the_engine_says_is_a_warning(self):
        idle = gs.layer("h[in] -> [out]", "w[out, in]", "idle[out]")(
            lambda v, p: mean(u.h for u in v.innbs) @ p.w.T)
        with self.assertWarnsRegex(UserWarning, "does not depend on parameter .*idle") as caught:
            gs.Run(self.store, gs.Model(idle), epochs=1, hidden=8).close()
        self.assertEqual(os.path.basename(caught.filename), "test_package.py")

    def test_a_layer_runs_on_arrays(self):
        """What gnnstream.torch stands on, without torch: y = A x W', and its gradients, in whole numbers."""
        from gnnstream import _engine
        layer = gs.layer("h[in] -> [out]", "lin.weight[out, in]")(
            lambda v, p: sum(u.h for u in v.innbs) @ p["lin.weight"].T)
        source, destination = np.array([0, 0, 2, 2, 1]), np.array([1, 2, 1, 1, 1])
        engine = _engine.Layer(4, source, destination, None, None, 0, 2, 3, False, {"model": layer.text})
        self.assertEqual(engine.tensors(), [("lin.weight", (3, 2), True)])
        adjacency = np.zeros((4, 4), np.float32)
        np.add.at(adjacency, (destination, source), 1)
        x = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
        w = np.array([[1, 0], [2, -1], [0, 3]], np.float32)
        g = np.arange(12, dtype=np.float32).reshape(4, 3) % 5 - 2
        y, dx, dw = np.empty((4, 3), np.float32), np.empty_like(x), np.empty_like(w)
        engine.forward(x, [w], True, 1, y)
        self.assertTrue((y == adjacency @ x @ w.T).all())
        engine.backward(x, [w], g, dx, [dw])
        self.assertTrue((dx == adjacency.T @ g @ w).all())
        self.assertTrue((dw == g.T @ adjacency @ x).all())
        with self.assertRaisesRegex(ValueError, "shape of its tensor"):
            engine.forward(x, [w[:2].copy()], True, 1, y)
        with self.assertRaisesRegex(ValueError, "vertex 4 is not one of"):
            _engine.Layer(4, source + 2, destination, None, None, 0, 2, 3, False, {"model": layer.text})

    def test_a_layer_drops_by_its_seed_or_never(self):
        """y = dropout(x, 0.5): of ones each is 0 or 2, the same ones by the same number, and 1 without dropout."""
        from gnnstream import _engine
        text = "layer half(h[in]) -> [out]:\n    param w[out, in]\n    return dropout(h @ w', 0.5)\n"
        ends, x, w = np.zeros(1, np.int64), np.ones((50, 4), np.float32), np.eye(4, dtype=np.float32)

        def forward(engine, seed):
            y, dx = np.empty_like(x), np.empty_like(x)
            engine.forward(x, [w], True, seed, y)
            engine.backward(x, [w], x, dx, [None])
            self.assertTrue((dx == y).all())
            return y
        drops = _engine.Layer(50, ends, ends, None, None, 0, 4, 4, False, {"model": text})
        keeps = _engine.Layer(50, ends, ends, None, None, 0, 4, 4, True, {"model": text})
        first = forward(drops, 2**32 - 1)
        self.assertEqual(set(first.ravel()), {0, 2})
        self.assertTrue((first != forward(drops, 7)).any())
        self.assertTrue((first == forward(drops, 2**32 - 1)).all())
        self.assertTrue((forward(keeps, 7) == x).all())

    def test_what_the_compiler_makes(self):
        model = gs.Model(gs.layer("h[in] -> [out]", "w[out, in]", name="one")(
            lambda v, p: mean(u.h for u in v.innbs) @ p.w.T))
        self.assertIn("one", model.compiled(8, 3))


if __name__ == "__main__":
    import builtins
    builtin_max = builtins.max
    warnings.simplefilter("error")
    unittest.main(verbosity=1)
