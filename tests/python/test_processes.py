#!/usr/bin/env python3
"""test_processes.py FOLDER: runs and layers with several threads, in forked children, and at the interpreter's end; and
what cannot pass into C."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import numpy as np

import gnnstream as gs
from gnnstream import _engine

folder = sys.argv.pop() if len(sys.argv) > 1 else "."
STORE = os.path.join(folder, "processes")
SUMS = "layer sums(h[in]) -> [out]:\n    param w[out, in]\n    x = h @ w'\n    return sum(u.x)\n"


def together(*functions):
    threads = [threading.Thread(target=each) for each in functions]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def in_child(function):
    """What `function` gives or raises in a forked child, as a text; "hangs" where it is not there in 20 s."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    for _ in range(2000):
        if os.waitpid(child, os.WNOHANG)[0]:
            with open(read, encoding="utf-8") as file:
                return file.read()
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    return "hangs"


def script(source):
    """(status, output) of a program of its own on the store; it is killed after 30 s."""
    source = f"import gnnstream as gs, os, sys, threading, time\nS = {STORE!r}\n" + source
    try:
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return "hangs", ""
    return done.returncode, done.stdout + done.stderr


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(0)
        count = 3000
        which = np.arange(count) % 3
        gs.from_arrays(STORE, random.integers(0, count, (2, 30000)), random.normal(size=(count, 16)).astype("f4"),
                       random.integers(0, 4, count), train=which == 0, valid=which == 1, test=which == 2, parts=2,
                       force=True)

    def run_of(self, **options):
        return gs.Run(STORE, "gcn", **{"hidden": 16, "epochs": 10**6, "threads": 1, **options})

    # ---- threads

    def test_threads_on_one_run_take_turns(self):
        epochs, missing = [], []
        with self.run_of() as run:
            def train():
                epochs.extend(run.epoch().epoch for _ in range(40))

            def logits():
                for _ in range(40):
                    out = run.logits(np.full((3000, 4), 12345, np.float32))
                    missing.append(bool((out == 12345).any()))
            together(train, logits, logits)
        self.assertEqual(epochs, list(range(1, 41)))
        self.assertEqual(missing, [False] * 80)

    def test_threads_on_one_layer_get_what_is_theirs(self):
        """y = A x W' in whole numbers, whose sums are exact."""
        random = np.random.default_rng(1)
        source, destination = random.integers(0, 2000, (2, 30000))
        layer = _engine.Layer(2000, source, destination, None, None, 0, 16, 4, False, {"model": SUMS, "threads": 1})
        weight = random.integers(-2, 3, (4, 16)).astype(np.float32)
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).integers(-4, 5, (2000, 16)).astype(np.float32)
            right = np.zeros((2000, 4), np.float32)
            np.add.at(right, destination, (x @ weight.T)[source])
            for _ in range(100):
                y = np.empty((2000, 4), np.float32)
                layer.forward(x, [weight], False, 0, y)
                wrong.append(not (y == right).all())
        together(lambda: work(1), lambda: work(2))
        self.assertEqual(wrong, [False] * 200)

    def test_a_run_that_another_thread_closes_says_so(self):
        said = []
        run = self.run_of()

        def train():
            try:
                for _ in run:
                    pass
            except ValueError as error:
                said.append(str(error))
        thread = threading.Thread(target=train)
        thread.start()
        while run.done < 2:
            time.sleep(0.001)
        run.close()
        thread.join(20)
        self.assertRegex("".join(said), "^the run is closed")

    def test_a_signal_s_handler_cannot_call_into_the_call_that_it_interrupts(self):
        with self.run_of(hidden=1024, layers=3) as run:  # an epoch takes half a second
            before = signal.signal(signal.SIGUSR1, lambda *_: run.logits())
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            with self.assertRaisesRegex(RuntimeError, "a call is under way in this thread"):
                run.epoch()
            signal.signal(signal.SIGUSR1, before)

    # ---- processes

    def test_a_forked_child_has_no_part_in_the_parent_s_run(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forks with threads
            with self.run_of() as run:
                first = run.epoch().loss
                for use in (run.epoch, run.progress, lambda: dict(run.state_dict())):
                    self.assertRegex(in_child(use), "^RuntimeError: this was opened before the process was forked")
                self.assertEqual(in_child(run.close), "None")
                self.assertEqual(in_child(lambda: self.run_of().epoch().loss), str(first))
                self.assertEqual(run.epoch().epoch, 2)

    def test_a_forked_child_ends(self):
        self.assertEqual(script("""
run = gs.Run(S, "gcn", hidden=8, epochs=3, threads=1)
run.epoch()
child = os.fork()
if child == 0:
    sys.exit(0)
for _ in range(2000):
    if os.waitpid(child, os.WNOHANG)[0]:
        print("ended")
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
""")[1].splitlines()[-1:], ["ended"])

    def test_the_interpreter_ends_with_threads_in_calls(self):
        for work in ("""
run = gs.Run(S, "gcn", hidden=64, epochs=10**6, threads=1)
def work():
    for epoch in run:
        pass
""", f"""
gs.generate("sbm", S + "-raw", vertices=20000, edges=200000, features=4, classes=2, force=True)
def work():
    while True:
        gs.partition(S + "-raw", S + "-again", force=True, progress=lambda *_: None, parts=2)
"""):
            status, said = script(work + "threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.4)\n"
                                         "print('leaves')\n")
            self.assertEqual((status, said), (0, "leaves\n"))

    # ---- what C cannot have

    def test_a_nul_is_refused(self):
        cut = os.path.join(folder, "cut")
        with self.run_of() as run:
            for call in (lambda: run.save(cut + "\0.x"), lambda: run.load(cut + "\0.x"),
                         lambda: gs.Store(STORE + "\0.x"), lambda: gs.Store(STORE.encode() + b"\0.x"),
                         lambda: gs.generate("sbm", cut + "\0.x"), lambda: gs.generate("sbm\0x", cut),
                         lambda: gs.partition(cut + "\0.x", cut), lambda: gs.partition(cut, cut + "\0.x"),
                         lambda: gs.weights_info(cut + "\0.x"), lambda: gs.plan(STORE + "\0x", "gcn"),
                         lambda: gs.Run(STORE + "\0x", "gcn"), lambda: gs.Run(STORE, "gcn\0x"),
                         lambda: gs.plan(STORE, "gcn", host_memory="256M\0x"),
                         lambda: gs.train(STORE, "gcn", save=cut + "\0.x")):
                with self.assertRaisesRegex(ValueError, "NUL"):
                    call()
        self.assertFalse(os.path.exists(cut))

    def test_paths_are_bytes(self):
        name = os.path.join(folder, os.fsdecode(b"\xff-weights.safetensors"))
        with self.run_of() as run:
            run.save(name)
        self.assertTrue(os.path.exists(name))
        self.assertEqual(gs.weights_info(os.fsencode(name)).model, "gcn")
        with self.assertRaisesRegex(FileNotFoundError, "\udcff-weights"):
            gs.weights_info(name + "-gone")
        with self.assertRaises(FileExistsError):
            gs.from_arrays(os.fsencode(STORE), [[0], [1]], vertices=2)


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main(verbosity=1)
