#!/usr/bin/env python3
"""test_docstrings.py PACKAGE FOLDER: every public name of the Python package has a docstring that names its parameters,
and an example in which each of its methods is called; and all examples give what they say.

Names are those in __all__ of the modules in PACKAGE (python/gnnstream), which are read as text, so that they are
checked without what they import; examples of a module run where it can be imported."""
import ast
import doctest
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import unittest

import numpy as np

import gnnstream as gs

folder = sys.argv.pop()
package = sys.argv.pop()
OF_TORCH = ("forward", "extra_repr")  # which a module's call and its repr are
HEADER = re.compile(r"^\s*>>> ", re.M)


def public(tree):
    """Names in __all__, in their order."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


def definitions(tree):
    return {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def parameters(function):
    """Names of what it gets, but for self and those of the keywords that are options."""
    a = function.args
    names = [each.arg for each in (*a.posonlyargs, *a.args, *a.kwonlyargs)] + ([a.vararg.arg] if a.vararg else [])
    return [name for name in names if name not in ("self", "cls", "_")]


class Docstrings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trees = {}
        for name in sorted(os.listdir(package)):
            if name.endswith(".py") and (not name.startswith("_") or name == "__init__.py"):
                with open(os.path.join(package, name), encoding="utf-8") as file:
                    cls.trees[name[:-3]] = ast.parse(file.read())

    def of_class(self, where, node, text):
        """Methods are called in the class's example or in one of their own, and what they get is named."""
        init = definitions(node).get("__init__")
        for name in parameters(init) if init else []:
            self.assertRegex(text, rf"\b{name}\b", f"{where}: its docstring does not name the parameter {name}")
        for method in node.body:
            if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                continue
            own = ast.get_docstring(method) or ""
            examples = [line for line in (text + "\n" + own).splitlines() if re.match(r"\s*(>>>|\.\.\.) ", line)]
            self.assertTrue(any(f".{method.name}" in line for line in examples) or method.name in OF_TORCH,
                            f"{where}.{method.name}: no example calls it")
            for name in parameters(method):
                self.assertRegex(text + own, rf"\b{name}\b", f"{where}.{method.name}: nothing names {name}")

    def test_every_public_name_has_an_example(self):
        count, found = 0, {}
        for tree in self.trees.values():
            found.update(definitions(tree))
        for module, name in ((module, name) for module, tree in self.trees.items() for name in public(tree)):
            node, where = found.get(name), f"{module}.{name}"
            with self.subTest(where):
                if node is None:  # made as the module is loaded, or a module
                    made = getattr(importlib.import_module("gnnstream" if module == "__init__" else
                                                           f"gnnstream.{module}"), name)
                    if inspect.ismodule(made) or isinstance(made, str) or name in ("Operand",):
                        continue
                    text = inspect.getdoc(made) or ""
                else:
                    text = ast.get_docstring(node) or ""
                self.assertRegex(text, HEADER, f"{where}: its docstring has no example (a line of >>>)")
                if isinstance(node, ast.ClassDef):
                    self.of_class(where, node, text)
                elif node is not None:
                    for each in parameters(node):
                        self.assertRegex(text, rf"\b{each}\b", f"{where}: does not name the parameter {each}")
                count += 1
        self.assertGreater(count, 90)

    def test_examples_give_what_they_say(self):
        random = np.random.default_rng(0)
        names = {"gs": gs, "np": np, "nn": gs.nn, "edges": random.integers(0, 100, (2, 600)), "y": np.arange(100) % 3}
        names["x"] = random.normal(size=(100, 8)).astype(np.float32)
        os.chdir(tempfile.mkdtemp(dir=folder))
        third = np.arange(100) // 3 % 3
        names["store"] = gs.from_arrays("store", names["edges"], names["x"], names["y"], train=third == 0,
                                        valid=third == 1, test=third == 2, parts=2, force=True)
        finder, ran = doctest.DocTestFinder(recurse=True, exclude_empty=True), 0
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        for module in sorted(self.trees, key=lambda name: name == "convs"):  # which torch imports at its end
            try:
                loaded = importlib.import_module("gnnstream" if module == "__init__" else f"gnnstream.{module}")
            except ImportError as error:
                print(f"gnnstream.{module}: its examples were left out: {error}")
                continue
            tests = finder.find(loaded, loaded.__name__, extraglobs=names)
            for test in tests:
                missing = [each for each in re.findall(r"^import (\w+)", "".join(e.source for e in test.examples), re.M)
                           if importlib.util.find_spec(each) is None]
                if missing:
                    print(f"{test.name}: its example was left out: no {', '.join(missing)}")
                    continue
                ran += len(test.examples)
                with self.subTest(test.name):
                    self.assertEqual(runner.run(test).failed, 0)
        self.assertGreater(ran, 100)


if __name__ == "__main__":
    unittest.main(verbosity=0)
