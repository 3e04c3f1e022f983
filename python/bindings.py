#!/usr/bin/env python3
"""bindings.py HEADER [python]: the fields of gnnstream.h's structs, as C++ for engine.cpp, or as types of Python.

Of structs of options a function that sets a field by its name, of reports one that makes a dict; and classes that say
what type each option and figure is of. So a field that is added to the header is there in Python without a word here.
"""
import re
import sys
from pathlib import Path

OPTIONS = {"gs_generate_options", "gs_partition_options", "gs_train_options"}
LOCAL = {"size", "context", "progress", "warn", "stop", "on_epoch", "on_open"}  # engine.cpp sets these itself
NOT_REPORTS = {"gs_model_graph", "gs_layer_graph", "gs_loader_arrays", "gs_loader_pairs"}

TYPES = {"uint32_t": "int", "uint64_t": "int", "double": "float", "bool": "bool", "gs_taken": "int", "char": "str"}
OPTION_TYPES = {**TYPES, "uint64_t": "Size", "const char *": "Text"}
# class of Python: (struct, fields that are left out, or the only ones)
OPTION_CLASSES = {
    "GenerateOptions": ("gs_generate_options", set(), None),
    "PartitionOptions": ("gs_partition_options", set(), None),
    "ParquetOptions": ("gs_partition_options", {"split"}, None),
    "TrainOptions": ("gs_train_options", {"model"}, None),
    "LayerOptions": ("gs_train_options", set(), {"heads", "bases", "activation", "dropout", "set", "seed", "threads",
                                                 "no_move", "no_fuse"}),
    "LoaderOptions": ("gs_train_options", set(), {"replace", "weighted", "by_type", "walk_length", "coverage", "seed",
                                                  "threads", "host_memory", "ignore_edge_weights"}),
}
REPORT_CLASSES = {
    "StoreFields": "gs_store_summary", "PartitionFields": "gs_partition_report", "EpochFields": "gs_epoch_report",
    "EvaluationFields": "gs_evaluation", "TrainFields": "gs_train_report", "WeightsFields": "gs_weights_summary",
    "PlanFields": "gs_plan_report", "LoaderFields": "gs_loader_report",
}
PLAN_LISTS = {"passes", "items", "pass", "item", "files", "file", "links", "link"}  # run.py makes lists of these
SPLITS = ("train", "valid", "test")


def read(path, seen):
    """The header with the parts that it includes in their places, each once."""
    if path in seen:
        return ""
    seen.add(path)
    text = path.read_text(encoding="utf-8")
    return re.sub(r'^#include "(\w+\.h)".*$', lambda m: read(path.parent / m.group(1), seen), text, flags=re.M)


def plain(header):
    """The header without comments, directives and line ends."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    text = re.sub(r"^#(?:.*\\\n)*.*$", " ", text, flags=re.M)
    return re.sub(r"\s+", " ", text)


def structs(text):
    """(name, body) of each `typedef struct NAME { ... } NAME;`."""
    for start in re.finditer(r"typedef struct (\w+) \{", text):
        depth, at = 1, start.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield start.group(1), text[start.end():at - 1]


def members(body):
    """(type, name, body of a struct without a name or None) of each member, of `a, b` each by itself."""
    at = 0
    while match := re.compile(r"\s*(struct \{|[^;{]+;)").match(body, at):
        if match.group(1) == "struct {":
            end, depth = match.end(), 1
            while depth > 0:
                depth += {"{": 1, "}": -1}.get(body[end], 0)
                end += 1
            inner = body[match.end():end - 1]
            name = re.compile(r"\s*(\w+)[^;]*;").match(body, end)
            yield None, name.group(1), inner
            at = name.end()
            continue
        at = match.end()
        text = match.group(1)[:-1].strip()
        if "(" in text:  # a pointer to a function
            continue
        kind = re.match(r"((?:const |volatile )*\w+)\s*(.*)", text)
        for name in kind.group(2).split(","):
            stars, word = re.match(r"\s*(\**)(\w+)", name).groups()
            yield kind.group(1) + (" *" if stars else ""), word, None


def setter(name, body):
    fields = [(kind, field) for kind, field, _ in members(body) if field not in LOCAL]
    lines = [f"static bool set_field({name} &o, const std::string &field, nb::handle value, Strings &strings)", "{"]
    lines += [f'    if (field == "{field}") return assign(o.{field}, value, "{field}", strings), true;'
              for _, field in fields]
    lines += ["    return false;", "}"]
    lines += [f"static const char *const {name}_fields[] = {{" + ", ".join(f'"{f}"' for _, f in fields) + "};"]
    return "\n".join(lines)


def entries(what, body, depth):
    pad = "    " * depth
    for kind, field, inner in members(body):
        if kind is not None and (kind.endswith("*") and not kind.startswith("const char")):
            continue
        if inner is None:
            yield f'{pad}d["{field}"] = to_py({what}.{field});'
        else:
            yield f'{pad}{{\n{pad}    nb::list l;\n{pad}    for (const auto &e{depth} : {what}.{field}) {{'
            yield f"{pad}        nb::dict d;"
            yield from entries(f"e{depth}", inner, depth + 2)
            yield f'{pad}        l.append(d);\n{pad}    }}\n{pad}    d["{field}"] = l;\n{pad}}}'


def report(name, body):
    lines = [f"[[maybe_unused]] static nb::object to_py(const {name} &r)", "{", "    nb::dict d;"]
    return "\n".join([*lines, *entries("r", body, 1), "    return d;", "}"])


def option_class(name, body, without, only):
    fields = [(kind, field) for kind, field, _ in members(body)
              if field not in LOCAL | without and (only is None or field in only)]
    lines = [f"class {name}(TypedDict, total=False):"]
    lines += [f"    {field}: {'int' if field == 'seed' else OPTION_TYPES[kind]}" for kind, field in fields]
    return "\n".join(lines)


def flat(body, figures):
    """(field, type) of a report as Python has it: figures of three splits are train_NAME, valid_NAME, test_NAME; the
    task and the validation loss are one each."""
    for kind, field, inner in members(body):
        if field in ("accuracy", "figures"):
            names = ["acc"] if field == "accuracy" else [f for _, f, _ in members(figures)
                                                        if f not in ("task", "valid_loss")]
            yield from (("task", "str"), ("valid_loss", "float")) if field == "figures" else ()
            yield from ((f"{split}_{name}", "float") for name in names for split in SPLITS)
        elif inner is not None or kind not in TYPES or re.search(rf"[ ,]{field} ?\[", body) and kind != "char":
            yield field, "Any"  # a list or a dict
        else:
            yield field, TYPES[kind]


def python_types(found):
    yield '"""Made by python/bindings.py from gnnstream.h: types of options and figures."""'
    yield "from __future__ import annotations\n\nimport os\nfrom typing import Any, TypedDict, Union\n"
    yield 'Size = Union[int, str]  # 256 << 20, or "256M"\nText = Union[str, "os.PathLike[str]", None]'
    for name, (struct, without, only) in OPTION_CLASSES.items():
        yield "\n\n" + option_class(name, found[struct], without, only)
    for name, struct in REPORT_CLASSES.items():
        lines = [f"    {field}: {kind}" for field, kind in flat(found[struct], found["gs_task_figures"])
                 if name != "PlanFields" or field not in PLAN_LISTS]
        yield "\n".join([f"\n\nclass {name}:", *lines])


def main():
    found = dict(structs(plain(read(Path(sys.argv[1]), set()))))
    if sys.argv[2:] == ["python"]:
        print("\n".join(python_types(found)))
        return
    print("/* Made by python/bindings.py from gnnstream.h. */")
    for name, body in found.items():
        if name in OPTIONS:
            print(setter(name, body))
        elif name not in NOT_REPORTS and not name.endswith("_options"):
            print(report(name, body))


main()
