#!/usr/bin/env python3
"""test_report.py GNNSTREAM SOURCE: traces are what their format says, and pages show what traces and metrics hold.

Needs Python alone; what vl-convert-python, Chromium and Perfetto's trace processor are needed for is skipped without.
"""
import collections
import copy
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from html.parser import HTMLParser
from unittest import mock

source, gnnstream = sys.argv.pop(), os.path.abspath(sys.argv.pop())
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("report", os.path.join(source, "python", "gnnstream", "report.py"))
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)
charts = importlib.util.find_spec("vl_convert") is not None


def run(*words, status=0):
    done = subprocess.run([gnnstream, *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done.stderr if status else done.stdout


class Runs(unittest.TestCase):
    """Of GCN, streamed through little memory, of GAT on two devices, and of batches on two devices."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chdir(cls.folder.name)
        run("generate", "sbm", "graph", "--vertices", "20000", "--edges", "200000", "--features", "16", "--classes",
            "4")
        run("partition", "graph", "store", "--parts", "5", "--method", "random")
        for name, *more in (("gcn", "--no-cache", "--no-hoist"), ("gat", "--device", "cpu:2"),
                            ("sage", "--device", "cpu:2", "--sampler", "neighbor", "--batch-size", "450",
                             "--batches-per-step", "2", "--fanout", "5,5", "--eval-every", "0")):
            run("train", "store", "--model", name, "--epochs", "2", "--hidden", "8", "--threads", "1", "--metrics",
                f"{name}.jsonl", "--trace", f"{name}.json", *more)
        *cls.runs, cls.batches = [(n, report.read_metrics(f"{n}.jsonl"), *report.read_trace(f"{n}.json"))
                                  for n in ("gcn", "gat", "sage")]

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.folder.cleanup()

    def test_events_are_the_formats(self):
        """Each event as the Trace Event Format has it, strictly: kinds, fields, types, pairs and nesting."""
        for name, _, events, _ in (*self.runs, self.batches):
            tracks = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
            open_, last = {}, collections.defaultdict(float)
            for e in events:
                self.assertEqual(e["pid"], 1)
                self.assertIs(type(e["name"]), str)
                if e["ph"] == "M":
                    self.assertEqual(set(e["args"]), {"name"})
                    continue
                self.assertIn(e["tid"], tracks)
                self.assertIsInstance(e["ts"], (int, float))
                self.assertGreaterEqual(e["ts"], 0)
                if e["ph"] == "X":
                    self.assertEqual(set(e), {"ph", "pid", "tid", "ts", "dur", "name", "args"})
                    self.assertGreaterEqual(e["dur"], 0)
                elif e["ph"] == "b":
                    self.assertEqual(set(e), {"ph", "cat", "id", "pid", "tid", "ts", "name", "args"})
                    self.assertNotIn((e["cat"], e["id"]), open_)
                    open_[e["cat"], e["id"]] = e
                else:
                    self.assertEqual(set(e), {"ph", "cat", "id", "pid", "tid", "ts", "name"})
                    begin = open_.pop((e["cat"], e["id"]))
                    self.assertEqual((begin["name"], begin["tid"]), (e["name"], e["tid"]))
                    self.assertGreaterEqual(e["ts"], begin["ts"])
            self.assertEqual(open_, {}, name)
            for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):  # of a track none overlap
                self.assertGreaterEqual(e["ts"], last[e["tid"]] - 0.2, (name, e))  # rounded to 0.1 us
                last[e["tid"]] = e["ts"] + e["dur"]

    def test_perfetto_s_trace_processor_opens_it(self):
        processor = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
        if processor is None or importlib.util.find_spec("perfetto") is None:
            self.skipTest("no trace_processor_shell and PyPI's perfetto; events were held against the format alone")
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
        for name, _, events, _ in self.runs:
            with TraceProcessor(trace=f"{name}.json", config=TraceProcessorConfig(bin_path=processor)) as tp:
                [row] = list(tp.query("select count(*) as n from slice"))
                self.assertEqual(row.n, sum(e["ph"] in "Xb" for e in events))

    def test_bytes_and_edges_are_the_epochs(self):
        for name, epochs, events, plan in self.runs:
            timeline = report.Timeline(events)
            moved = {track: sum(t[5]["bytes"] for t in timeline.tasks if t[0] == track)
                     for track in ("reads", "writes")}
            [planned] = [p for p in plan["passes"] if p["name"] == "train"]
            self.assertEqual(moved["reads"], planned["read_bytes"], name)
            self.assertEqual(moved["writes"], planned["written_bytes"], name)
            self.assertEqual(epochs[-1]["written_bytes"], moved["writes"])
            passes = sum(t[5].get("edges", 0) for t in timeline.tasks)
            self.assertEqual(passes, planned["edges"], name)
            read = sum(b for cells in report.grids(timeline).values() for _, b in cells.values())
            chunks = sum(t[5]["bytes"] for t in timeline.tasks if t[0] == "reads" and t[1] == "edges")
            self.assertAlmostEqual(read, chunks, delta=1)
            self.assertLessEqual(sum(e for e, _ in report.grids(timeline)[0].values()), 200000)
            self.assertEqual(chunks > 0, name == "gcn")  # the other's are in memory

    def test_seconds_are_within_the_epoch(self):
        for _, epochs, events, _ in self.runs:
            timeline = report.Timeline(events)
            times = report.measured(timeline)
            any_plan = {"passes": [collections.defaultdict(float, name="train")]}
            self.assertEqual(set(times), set(report.predicted(any_plan)))
            for what, value in times.items():
                self.assertTrue(0 <= value <= times["epoch"] + 1e-6, (what, value))
            self.assertLess(abs(times["epoch"] - epochs[-1]["seconds"]), 0.05 + 0.5 * epochs[-1]["seconds"])

    def test_batches_are_drawn_picked_computed_and_stepped(self):
        """2,000 of 20,000 vertices train, so there are five batches and three steps, each after what it waits for."""
        _, epochs, events, plan = self.batches
        timeline = report.Timeline(events)
        of = {name: [t for t in timeline.tasks if t[1] == name] for name in ("draw", "pick", "send", "compute", "step")}
        self.assertEqual([t[5]["batch"] for t in sorted(of["compute"], key=lambda t: t[5]["batch"])], [0, 1, 2, 3, 4])
        self.assertEqual([t[0] for t in sorted(of["compute"], key=lambda t: t[5]["batch"])],
                         [f"device {k % 2}" for k in range(5)])
        self.assertEqual([t[5]["batch"] for t in of["step"]], [0, 2, 4])
        self.assertEqual(of["send"], [])  # there is one memory
        for pick, compute in zip(of["pick"], of["compute"]):
            self.assertEqual(pick[5], compute[5])
            self.assertLessEqual(pick[4], compute[3] + 2e-7)
            self.assertTrue(any(draw[4] <= pick[3] + 2e-7 for draw in of["draw"]))
            [step] = [t for t in of["step"] if t[5]["batch"] == pick[5]["batch"] // 2 * 2]
            self.assertLessEqual(compute[4], step[3] + 2e-7)
        times, said = report.measured(timeline), report.predicted(plan)
        self.assertLess(set(said), set(times))
        last = epochs[-1]
        self.assertLess(sum(last[name] for name in report._SECONDS), 1.01 * last["seconds"])
        for what, key in (("drawing", "sample_seconds"), ("optimiser", "step_seconds")):
            self.assertLess(abs(times[what] - last[key]), 1e-3 + 0.2 * last[key], what)

    def test_what_is_no_run_is_refused_in_a_line(self):
        with open("bad.jsonl", "w", encoding="utf-8") as file:
            file.write('{"epoch": 1, "loss": 1}\n{"epoch": \n')
        open("none.jsonl", "w", encoding="utf-8").close()
        for read, path, line in ((report.read_metrics, "bad.jsonl", r"bad.jsonl:2: no line of --metrics"),
                                 (report.read_metrics, "none.jsonl", "no epoch is there yet"),
                                 (report.read_metrics, "gone", "gone: No such file"),
                                 (report.read_trace, "bad.jsonl", "no trace of gnnstream"),
                                 (report.read_trace, "gone", "gone: No such file")):
            with self.assertRaisesRegex(report.ReportError, line):
                read(path)
        self.assertIn("RUN.jsonl is missing", run("report", status=2))
        if not charts:
            self.assertIn("pip install vl-convert-python", run("report", "gcn.jsonl", status=1))
        environment = {**os.environ, "PATH": self.folder.name}
        done = subprocess.run([gnnstream, "report", "gcn.jsonl"], env=environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("vl-convert-python", done.stderr)

    def refused(self, metrics, trace=None):
        """The line by which write() refuses texts of files; "" where it makes a page. Nothing else is left."""
        for name, text in (("m.jsonl", metrics), ("t.json", trace)):
            if text is not None:
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
        drawn = types.SimpleNamespace(javascript_bundle=lambda: "")
        before, line = set(os.listdir()), ""
        with mock.patch.dict(sys.modules, vl_convert=drawn):
            try:
                report.write("m.html", "m.jsonl", "t.json" if trace is not None else None)
            except report.ReportError as error:
                line = str(error)
        left = set(os.listdir()) - before
        self.assertEqual(left, set() if line else {"m.html"})
        if not line:
            os.unlink("m.html")
        self.assertNotIn("\n", line)
        return line

    def test_malformed_metrics_are_refused_in_a_line(self):
        for text, said in (('{"epoch": 1e400}', "no number of an epoch"), ('{"epoch": "1"}', "no number of an epoch"),
                           ('{"epoch": 0}', "no number"), ('{"epoch": true}', "no number"), ("[1]", "no number"),
                           ("3", "no number"), ('{"epoch": NaN}', "no number"), ("\0", "no line of --metrics"),
                           ('{"epoch": 1, "loss": "x"}', 'loss "x" is no number'),
                           ('{"epoch": 1, "valid_acc": [1]}', r"valid_acc \[1\] is no number"),
                           ('{"epoch": 1, "seconds": -1}', "seconds -1 is no number"),
                           ('{"epoch": 1, "read_bytes": 1' + 400 * "0" + "}", "read_bytes 1"),
                           ('{"epoch": 1}\n{"epoch": 2, "lo', r"^m.jsonl:2: no line of --metrics"),
                           ("[" * 100000, "no line of --metrics"), ("", "no epoch is there yet")):
            self.assertRegex(self.refused(text), said, text[:60])
        for text in ('{"epoch": 1}', '{"epoch": 1, "loss": NaN, "seconds": null, "valid_acc": 1e400}',
                     '{"epoch": 2, "loss": 1}\n{"epoch": 1}\n{"epoch": 2, "loss": 3}\n',
                     "".join(f'{{"epoch": {k}, "loss": 1}}\n' for k in range(1, 9002))):
            self.assertEqual(self.refused(text), "")
        self.assertEqual([e.get("loss") for e in report.read_metrics("m.jsonl")[-2:]], [1, 1])

    def test_traces_with_anything_in_any_place_make_a_page_or_a_line(self):
        with open("gat.jsonl", encoding="utf-8") as file:
            metrics = file.read()
        with open("gat.json", encoding="utf-8") as file:
            whole = json.load(file)
        whole["traceEvents"] = whole["traceEvents"][:60]
        draw = random.Random(1)
        outcomes = collections.Counter()
        for _ in range(60):
            trace = copy.deepcopy(whole)
            at = trace
            while True:
                key = draw.choice(list(at) if isinstance(at, dict) else range(len(at)))
                if not isinstance(at[key], (dict, list)) or not at[key] or draw.random() < 0.1:
                    break
                at = at[key]
            at[key] = draw.choice([None, True, -1, 1e400, float("nan"), 10**30, "x", [], [1], {}, "\ud800", 2**63])
            outcomes[self.refused(metrics, json.dumps(trace)) != ""] += 1
        self.assertGreater(min(outcomes[True], outcomes[False]), 5)
        for text in ("", "[]", "{}", '{"traceEvents": 3}', '{"traceEvents": [3]}', json.dumps(whole)[:-9]):
            self.assertRegex(self.refused(metrics, text), "no trace of gnnstream")

    def test_small_runs_have_memory_charts_and_few_cells_have_room(self):
        plan = {"memory": [{"name": "rows", "bytes": 2**21, "device": False}], "host_memory": 2**34}
        [chart] = report.memory(plan, [{"epoch": 1, "peak_host_bytes": 3 * 2**20}])
        bar, rule = chart["spec"]["layer"][:2]
        self.assertEqual(bar["data"]["values"][0]["bytes"], 2)  # MiB
        self.assertAlmostEqual(bar["encoding"]["x"]["scale"]["domain"][1], 3.3)
        self.assertEqual([row["what"] for row in rule["data"]["values"]], ["peak, 3.0 MiB"])
        self.assertIn("The budget, 16.0 GiB,", chart["note"])
        [chart] = report.memory({**plan, "host_memory": 2**22}, [{"epoch": 1}])
        self.assertEqual([row["what"] for row in chart["spec"]["layer"][1]["data"]["values"]], ["budget, 4.0 MiB"])
        [cells, *_] = report.grid_charts({0: {(0, 0): [9, 0.0]}})
        self.assertGreaterEqual(cells["spec"]["width"]["step"], 140)

    @unittest.skipUnless(charts, "no vl-convert-python")
    def test_the_page_is_one_file_with_all_charts(self):
        for name, epochs, events, plan in self.runs:
            run("report", f"{name}.jsonl", f"{name}.json", "-o", f"{name}.html")
            with open(f"{name}.html", encoding="utf-8") as file:
                text = file.read()
            found = collections.Counter()

            class Reader(HTMLParser):
                def handle_starttag(self, tag, attrs):
                    found[tag] += 1
                    found["fetched"] += any(k in ("src", "href") for k, _ in attrs)
            Reader().feed(text)
            self.assertEqual((found["fetched"], found["link"], found["script"]), (0, 0, 2))
            for title in ("Loss", "Accuracy", "Plan beside measurement", "Host memory", "Device memory",
                          "Timeline of the last epoch", "Edges by destination"):
                self.assertIn(f"<h2>{title}</h2>", text)
        run("report", "gcn.jsonl", "-o", "alone.html")

    @unittest.skipUnless(charts and shutil.which("chromium"), "no Chromium, or no vl-convert-python")
    def test_a_browser_draws_it_light_and_dark(self):
        report.write("page.html", "gcn.jsonl", "gcn.json")
        for theme in ("light", "dark"):
            done = subprocess.run(
                ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder.name}/c",
                 "--virtual-time-budget=10000", "--dump-dom", f"file://{os.path.abspath('page.html')}?theme={theme}"],
                capture_output=True, text=True, timeout=90)
            body = done.stdout.split("<script>")[0]
            self.assertIn(f'data-drawn="{theme}"', body)
            self.assertEqual(body.count("<canvas"), body.count("<section"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
