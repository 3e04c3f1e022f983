#!/usr/bin/env python3
"""test_callbacks.py SOURCE: callbacks that need no engine, and TensorBoard's own reader on what they write."""
import glob
import importlib.util
import math
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

source = sys.argv.pop()
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("callbacks", os.path.join(source, "python/gnnstream/callbacks.py"))
callbacks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(callbacks)


def epoch(number, **more):
    return types.SimpleNamespace(epoch=number, epochs=9, loss=1 / number, valid_acc=math.nan, over=False, **more)


class TensorBoard(unittest.TestCase):
    def test_a_writer_gets_each_number_that_there_is(self):
        writer = mock.Mock(spec=["add_scalar"])
        callback = callbacks.tensorboard(writer, every=2)
        for number in (1, 2, 3, 4):
            self.assertIsNone(callback(None, epoch(number)))
        self.assertEqual([c.args for c in writer.add_scalar.call_args_list if c.args[0].endswith("loss")],
                         [("gnnstream/loss", 0.5, 2), ("gnnstream/loss", 0.25, 4)])
        self.assertFalse([c for c in writer.add_scalar.call_args_list if "valid" in c.args[0]])

    def test_without_a_writer_it_says_what_to_install(self):
        with mock.patch.object(callbacks.importlib, "import_module", side_effect=ImportError):
            with self.assertRaisesRegex(ImportError, "pip install tensorboard"):
                callbacks.tensorboard("folder")

    def test_tensorboard_reads_the_folder(self):
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("no tensorboard")
        with tempfile.TemporaryDirectory() as folder:
            callback = callbacks.tensorboard(folder)
            for number in (1, 2, 3):
                callback(None, epoch(number))
            self.assertEqual(len(glob.glob(folder + "/events.*")), 1)
            events = EventAccumulator(folder)
            events.Reload()
            name = "gnnstream/loss"
            self.assertEqual([(e.step, round(e.tensor_proto.float_val[0], 4)) for e in events.Tensors(name)],
                             [(1, 1.0), (2, 0.5), (3, 0.3333)])


if __name__ == "__main__":
    unittest.main(verbosity=1)
