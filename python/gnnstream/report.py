"""A run as a page to look at.

    gnnstream report RUN.jsonl [TRACE.json] -o report.html        # or: python -m gnnstream.report ...

RUN.jsonl is what ``--metrics`` wrote, TRACE.json what ``--trace`` did. The page is one file, which fetches nothing: the
charts are Vega-Lite's, whose scripts vl-convert-python brings (``pip install vl-convert-python``). Nothing else beside
Python is needed, so this file also stands alone, beside the command.
"""
from __future__ import annotations

import argparse
import functools
import html
import json
import math
import os
import re
import sys
import tempfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

__all__ = ["ReportError", "main", "page", "write"]

RECTANGLES = 3000  # that a track of the timeline is drawn with at most; shorter tasks side by side become one
CELLS = 64         # of a side of a grid; larger ones are added up in blocks
PARTS = 1 << 20    # of a graph, at most
EPOCHS = 4000      # that charts show at most, evenly apart
LARGEST = 1e18     # of a number in a file: more bytes or seconds than any run has
READ_ROWS = 6      # of reads that overlap

Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]  # an object of JSON
Task = Tuple[str, str, str, float, float, Row]  # of a timeline
Cells = Dict[Tuple[int, int], List[float]]  # of a grid

_SPLIT = re.compile(r"(train|valid|test)_(\w+)")
_EDGE_TASKS = {"edges", "edge program", "own rows", "zero", "begin sum", "finish sum", "unroll", "back"}


class ReportError(Exception):
    """What is wrong with a file, in one line.

    >>> from gnnstream.report import ReportError, write
    >>> with open("no.jsonl", "w") as file:
    ...     _ = file.write("no metrics")
    >>> write("page.html", "no.jsonl")
    Traceback (most recent call last):
    gnnstream.report.ReportError: no.jsonl...
    """


# ---- what the files say

_SECONDS = {"sample_seconds": "drawing", "pick_seconds": "picking", "copy_seconds": "copying",
            "compute_seconds": "computing", "step_seconds": "optimiser", "stall_seconds": "waiting for data"}
_NUMBERS = ("loss", "lr", "seconds", *_SECONDS, "read_bytes", "written_bytes", "peak_host_bytes", "peak_device_bytes")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _epoch(line: str) -> Row:
    """The epoch of a line of metrics, whose numbers are numbers; what is null or not finite is left out."""
    epoch = json.loads(line)
    if not isinstance(epoch, dict) or not is_number(epoch.get("epoch")) or epoch["epoch"] != int(epoch["epoch"]) or \
            epoch["epoch"] < 1:
        raise ValueError("has no number of an epoch")
    found = {"epoch": int(epoch["epoch"])}
    for name, value in epoch.items():
        if name == "epoch" or name not in _NUMBERS and not _SPLIT.fullmatch(name):
            continue
        if value is None or isinstance(value, float) and not math.isfinite(value):
            continue
        if not is_number(value) or value < 0 and name.endswith(("_bytes", "seconds")):
            raise ValueError(f"{name} {json.dumps(value)[:40]} is no number of an epoch")
        found[name] = value
    return found


def read_metrics(path: Path) -> list[Row]:
    """The epochs of a file of one object a line, by number; of one that is there twice, as after a run that went on
    from a checkpoint, the last."""
    epochs: dict[int, Row] = {}
    try:
        with open(path, encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    epoch = _epoch(line)
                except json.JSONDecodeError:
                    raise ReportError(f"{path}:{number}: no line of --metrics: {line.strip()[:60]!r}") from None
                except (ValueError, RecursionError) as error:
                    raise ReportError(f"{path}:{number}: no line of --metrics: {error}: "
                                      f"{line.strip()[:60]!r}") from None
                epochs[epoch["epoch"]] = epoch
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not epochs:
        raise ReportError(f"{path}: no epoch is there yet")
    return [epochs[number] for number in sorted(epochs)]


def _finite(text: str) -> float:
    value = float(text)
    if not is_number(value):
        raise ValueError(f"{text} is no number of a run")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no number of a run")


def _whole(text: str) -> int:
    return int(_finite(text)) if len(text) > 18 else int(text)


def read_trace(path: Path) -> tuple[list[Row], Row]:
    """(events, plan) of a trace; the plan is {} in one that is older than plans in traces."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            trace = json.load(file, parse_constant=_constant, parse_float=_finite, parse_int=_whole)
        events = trace["traceEvents"]
        for event in events:
            if event["ph"] != "M":
                float(event["ts"])
        plan = trace.get("otherData", {}).get("plan", {})
        plan.get("passes")
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ReportError(f"{path}: no trace of gnnstream; --trace writes one") from None
    return events, plan


class Timeline:
    """The tasks of an epoch: (track, name, stage, begin, end, arguments), seconds from the first one's begin."""

    def __init__(self, events: list[Row]) -> None:
        names: dict[Any, str] = {}
        open_: dict[Any, Row] = {}
        self._found: list[tuple[Any, str, str, float, float, Row]] = []
        for e in events:
            if e["ph"] == "M" and e["name"] == "thread_name":
                names[e["tid"]] = e["args"]["name"]
            elif e["ph"] == "X":
                self._add(e, e["ts"], e["ts"] + e["dur"])
            elif e["ph"] == "b":
                open_[e["cat"], e["id"]] = e
            elif e["ph"] == "e" and (e["cat"], e["id"]) in open_:
                begin = open_.pop((e["cat"], e["id"]))
                self._add(begin, begin["ts"], e["ts"])
        self.tasks: list[Task] = [(names.get(t[0], str(t[0])), *t[1:]) for t in self._found]
        self.seconds = max((t[4] for t in self.tasks), default=0)

    def _add(self, e: Row, begin: float, end: float) -> None:
        arguments = e.get("args", {})
        self._found.append((e["tid"], e["name"], arguments.get("stage", ""), begin / 1e6, end / 1e6, arguments))

    def busy(self, of: Callable[[Task], bool]) -> float:
        """Seconds in which at least one of the tasks that `of` is true for runs."""
        total = end = 0.0
        for task in sorted(filter(of, self.tasks), key=lambda t: t[3]):
            total += max(0.0, task[4] - max(end, task[3]))
            end = max(end, task[4])
        return total

    def tracks(self) -> list[str]:
        return list(dict.fromkeys(t[0] for t in self.tasks))


_OF_BATCHES = {"drawing": ("draw",), "picking": ("pick",), "copying": ("send", "return"), "computing": ("compute",),
               "optimiser": ("step",)}


def _is_one_of(names: tuple[str, ...], task: Task) -> bool:
    return task[1] in names


def measured(timeline: Timeline) -> dict[str, float]:
    """What the plan predicts, as it was: seconds by resource."""
    def computes(t: Task) -> bool:
        return t[0] == "device" or re.fullmatch(r"device \d+", t[0]) is not None
    if "drawing" in timeline.tracks():
        return {"epoch": timeline.seconds,
                **{what: timeline.busy(functools.partial(_is_one_of, of)) for what, of in _OF_BATCHES.items()}}
    return {
        "epoch": timeline.seconds,
        "reading": timeline.busy(lambda t: t[0] == "reads"),
        "writing": timeline.busy(lambda t: t[0] == "writes"),
        "edge sums": timeline.busy(lambda t: computes(t) and t[1] in _EDGE_TASKS),
        "vertices": timeline.busy(lambda t: computes(t) and t[1] not in _EDGE_TASKS),
        "waiting": timeline.seconds - timeline.busy(computes),
    }


def predicted(plan: Row) -> dict[str, float]:
    for p in plan.get("passes", []):
        if p["name"] == "train":
            return {"epoch": p["seconds"], "reading": p["read_seconds"], "writing": p["write_seconds"],
                    "edge sums": p["edge_seconds"], "vertices": p["vertex_seconds"], "waiting": p["stall_seconds"]}
    if plan.get("steps"):
        lanes = {"drawing": "draw", "picking": "pick", "copying": "send", "computing": "compute"}
        return {what: plan["steps"] * plan[f"{of}_seconds"] for what, of in {"epoch": "step", **lanes}.items()}
    return {}


def grids(timeline: Timeline) -> dict[int, Cells]:
    """{set: {(target, operand): [edges, bytes read]}}. Edges are those of a pass over the set; bytes are all reads of
    its chunks in the epoch, those of several chunks at once by the chunks' edges."""
    sets: dict[int, Cells] = {}
    for _, _, _, _, _, a in timeline.tasks:
        if "edges" in a and "operand" in a:
            sets.setdefault(a["set"], {})[a["target"], a["operand"]] = [a["edges"], 0.0]
    for track, _, _, _, _, a in timeline.tasks:
        if track != "reads" or "operands" not in a:
            continue
        if a["operands"] > PARTS:
            raise ValueError(f"{a['operands']} operands")
        cells = sets.setdefault(a["set"], {})
        some = [(a["target"], a["operand"] + k) for k in range(a["operands"])]
        total = sum(cells.setdefault(cell, [0, 0.0])[0] for cell in some)
        for cell in some:
            cells[cell][1] += a["bytes"] * (cells[cell][0] / total if total else 1 / len(some))
    return sets


# ---- words ----

def size(count: float) -> str:
    """1536 -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def unit(most: float) -> tuple[int, str]:
    """(bytes, name) of the unit that `most` bytes are shown in."""
    power = min(4, max(0, int(math.log2(max(most, 1))) // 10))
    return 1024 ** power, ("B", "KiB", "MiB", "GiB", "TiB")[power]


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


# ---- charts ----

def _values(rows: list[Row]) -> Row:
    """Rows without what JSON has no word for."""
    return {"values": [{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
                       for row in rows]}


def _q(field: str, title: Optional[str] = None, **more: Any) -> Row:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _x(field: str, title: Optional[str] = None, **more: Any) -> Row:
    """Along an axis of few words."""
    return _q(field, title, axis={"tickCount": 6}, **more)


def _s(field: str, title: Optional[str] = None, **more: Any) -> Row:
    """Seconds along an axis, from microseconds on."""
    return _q(field, title, axis={"tickCount": 6, "format": "~s"}, **more)


def _n(field: str, title: Optional[str] = None, **more: Any) -> Row:
    return {"field": field, "type": "nominal", "title": title, **more}


def chart(title: str, spec: Row, note: str = "", wide: bool = False) -> Row:
    return {"title": title, "note": note, "wide": wide, "spec": {"width": "container", **spec}}


def _lines(rows: list[Row], y: str, scale: Optional[Row] = None) -> Row:
    numbers = sorted({row["epoch"] for row in rows})
    last = numbers[-1]
    ticks = {"values": numbers} if len(numbers) <= 10 else {"tickMinStep": 1}
    return {
        "height": 220, "data": _values(rows),
        "mark": {"type": "line", "tooltip": True, "point": len(rows) <= 60, "strokeWidth": 2},
        "encoding": {"x": _q("epoch", "epoch", scale={"domain": [1, max(2, last)], "nice": False},
                             axis={**ticks, "format": "d"}),
                     "y": _q("value", y, scale={"zero": False, **(scale or {})}),
                     "color": _n("of", legend={"orient": "top"}, sort=None)},
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
    }


def curves(epochs: list[Row]) -> list[Row]:
    """Loss, what is given by split, and the learning rate where it changes."""
    def rows(keys: list[tuple[str, str]]) -> list[Row]:
        return [{"epoch": e["epoch"], "of": name, "value": e[key]} for key, name in keys for e in epochs
                if isinstance(e.get(key), (int, float))]
    found = [chart("Loss", _lines(rows([("loss", "train")]), "loss"))] if rows([("loss", "")]) else []
    kinds = dict.fromkeys(m.group(2) for e in epochs for key in e if (m := _SPLIT.fullmatch(key)))
    for kind in kinds:
        some = rows([(f"{split}_{kind}", split) for split in ("train", "valid", "test")])
        if some:
            name = {"acc": "accuracy"}.get(kind, kind.replace("_", " "))
            found.append(chart(name.capitalize(), _lines(some, name)))
    rate = rows([("lr", "learning rate")])
    if len({row["value"] for row in rate}) > 1:
        found.append(chart("Learning rate", _lines(rate, "learning rate")))
    return found


def epoch_seconds(epochs: list[Row]) -> Row:
    """Each epoch's seconds: computing, waiting for data, of batches what comes before and after, and what is none."""
    rows: list[Row] = []
    for e in epochs:
        parts = {name: e[key] for key, name in _SECONDS.items() if key in e}
        parts["other"] = max(0, (e.get("seconds") or 0) - sum(parts.values()))
        rows += [{"epoch": e["epoch"], "of": name, "seconds": value, "order": k}
                 for k, (name, value) in enumerate(parts.items())]
    # far outliers, as first epochs are, must not flatten the rest
    return chart("Seconds of each epoch", {
        "height": 220, "data": _values(rows),
        "mark": {"type": "bar", "tooltip": True} if len(epochs) <= 120 else {"type": "area", "tooltip": True},
        "encoding": {"x": {"field": "epoch", "type": "ordinal" if len(epochs) <= 120 else "quantitative",
                           "axis": {"labelOverlap": True, "labelAngle": 0}},
                     "y": _q("seconds", "seconds", stack="zero", axis={"format": "~s"}),
                     "color": _n("of", legend={"orient": "top"}, sort=None),
                     "order": {"field": "order"}}})


def plan_beside(plan: Row, times: dict[str, float]) -> Row:
    said = predicted(plan)
    rows = [{"what": what, "of": of, "seconds": values[what], "text": seconds(values[what])}
            for of, values in (("planned", said), ("measured", times)) for what in times if what in values]
    basis = {"fitted": "epochs of this machine", "ceiling": "what this machine can do at best",
             "default": "defaults: this machine was not measured"}.get(
                 str(plan.get("predicted_from")), "the plan")
    bars = {"y": _n("what", sort=list(times), axis={"labelLimit": 200}),
            "yOffset": {"field": "of", "sort": ["planned", "measured"]},
            "x": _s("seconds", "seconds", scale={"zero": True})}
    return chart("Plan beside measurement", {
        "height": {"step": 18}, "data": _values(rows), "encoding": bars,
        "layer": [{"mark": {"type": "bar", "tooltip": True},
                   "encoding": {"color": _n("of", legend={"orient": "top"}, sort=["planned", "measured"])}},
                  {"mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 10},
                   "encoding": {"text": {"field": "text"}}}]},
        f"The last epoch, by its trace; predicted from {basis}. Reading and writing overlap computing.")


def by_stage(timeline: Timeline) -> Row:
    sums: dict[tuple[str, str], float] = {}
    for track, name, stage, begin, end, _ in timeline.tasks:
        if stage:
            key = (stage, name)
            sums[key] = sums.get(key, 0) + end - begin
    rows = [{"stage": s, "task": n, "seconds": v} for (s, n), v in sums.items()]
    order = list(dict.fromkeys(s for s, _ in sums))
    return chart("Computing, by stage", {
        "height": {"step": 20}, "data": _values(rows), "mark": {"type": "bar", "tooltip": True},
        "encoding": {"y": _n("stage", sort=order, axis={"labelLimit": 260}), "x": _s("seconds", "seconds"),
                     "color": _n("task", legend={"orient": "top", "columns": 4})}})


def _memory_marks(budget: float, peak: float, last: float, each: int) -> list[Row]:
    """Lines at the budget, where the axis reaches so far, and at the peak, with words on the side that has room."""
    marks = [(budget, f"budget, {size(budget)}", 6)] if budget <= last else []
    marks += [(peak, f"peak, {size(peak)}", 20)] if peak else []
    return [{"bytes": at / each, "what": what, "line": line, "side": "left" if at > last / 2 else "right"}
            for at, what, line in marks]


def _memory_chart(name: str, rows: list[Row], budget: float, peak: float, note: str) -> Row:
    """Bars as wide as what is used, or as the budget where that is not far more: a small run would not be seen beside
    it."""
    most = max(sum(row["bytes"] for row in rows), peak)
    last = 1.02 * budget if budget <= 4 * most else 1.1 * most
    each, word = unit(most)
    rows = [{**row, "bytes": row["bytes"] / each, "size": size(row["bytes"]), "of": "planned"} for row in rows]
    marks = _memory_marks(budget, peak, last, each)
    axis = {"scale": {"domain": [0, last / each], "nice": False}}

    def words(side: str, align: str, dx: int) -> Row:
        return {"data": _values([mark for mark in marks if mark["side"] == side]),
                "mark": {"type": "text", "align": align, "dx": dx, "fontSize": 11},
                "encoding": {"x": _x("bytes", word, **axis), "text": {"field": "what"},
                             "y": _q("line", scale=None, axis=None)}}
    return chart(name, {"layer": [
        {"data": _values(rows), "mark": {"type": "bar", "tooltip": True, "height": 26, "yOffset": 14},
         "encoding": {"x": _x("bytes", word, stack="zero", **axis), "y": _n("of", axis=None),
                      "order": {"field": "bytes", "sort": "descending"},
                      "color": _n("owner", sort=[r["owner"] for r in rows],
                                  legend={"orient": "bottom", "columns": 3, "labelLimit": 180}),
                      "tooltip": [_n("owner"), _n("size")]}},
        {"data": _values(marks), "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 3]},
         "encoding": {"x": _x("bytes", word, **axis), "y": _q("line", scale=None, axis=None), "y2": {"value": 100},
                      "tooltip": [_n("what")]}},
        words("left", "right", -4), words("right", "left", 4)],
        "resolve": {"scale": {"y": "independent"}}, "height": 100},
        note + ("" if budget <= last else f" The budget, {size(budget)}, is far to the right."))


def memory(plan: Row, epochs: list[Row]) -> list[Row]:
    """Bytes by owner, beside the budget and what was resident at the most."""
    out = []
    for device, name, budget, peak in ((False, "Host memory", "host_memory", "peak_host_bytes"),
                                       (True, "Device memory", "device_memory", "peak_device_bytes")):
        rows = [{"owner": i["name"], "bytes": i["bytes"]} for i in plan.get("memory", [])
                if i["device"] == device and i["bytes"] > 0]
        if not rows:
            continue
        if not device and plan.get("unified") and plan["device_bytes"] > 0:
            rows.append({"owner": "the device's", "bytes": plan["device_bytes"]})
        rows.sort(key=lambda row: -row["bytes"])
        note = "Planned, by owner" + (", a part of the host's" if device and plan.get("unified") else "") + "."
        out.append(_memory_chart(name, rows, plan[budget], max((e.get(peak, 0) for e in epochs), default=0), note))
    return out


def files(plan: Row) -> list[Row]:
    rows = [{"file": f["name"], "of": of, "bytes": f[key], "size": size(f[key]), "order": k}
            for f in plan.get("files", []) for k, (of, key) in enumerate(
                (("read", "read_bytes"), ("written", "written_bytes"), ("kept in memory", "kept_bytes"))) if f[key] > 0]
    if not rows:
        return []
    each, word = unit(max(row["bytes"] for row in rows))
    rows = [{**row, "bytes": row["bytes"] / each} for row in rows]
    return [chart("What an epoch moves, by array", {
        "height": {"step": 20}, "data": _values(rows), "mark": {"type": "bar", "tooltip": True},
        "encoding": {"y": _n("file", sort=None, axis={"labelLimit": 260}), "x": _x("bytes", word),
                     "color": _n("of", legend={"orient": "top"}, sort=["read", "written", "kept in memory"]),
                     "order": {"field": "order"}, "tooltip": [_n("file"), _n("of"), _n("size")]}}, "By the plan.")]


def grid_charts(sets: dict[int, Cells]) -> list[Row]:
    names = {0: "by destination", 1: "by source"}
    out = []
    for number, cells in sorted(sets.items()):
        last = max(max(cell) for cell in cells)
        block = last // CELLS + 1
        added: Cells = {}
        for (target, operand), (edges, read) in cells.items():
            total = added.setdefault((target // block, operand // block), [0, 0.0])
            total[0] += edges
            total[1] += read
        rows = [{"target": t, "operand": o, "edges": e, "read": r / 1024, "size": size(r)}
                for (t, o), (e, r) in added.items()]
        count = last // block + 1
        side = max(8, min(26, 340 // count), -(-160 // count))  # room for the axes' titles beside few cells
        ends = ("source", "destination") if number == 1 else ("destination", "source")
        if number > 1:
            ends = ("interval summed for", "interval summed over")
        for field, title, what in (("edges", "edges", "Edges"), ("read", "KiB read", "Bytes read")):
            if not any(row[field] for row in rows):
                continue
            name = names.get(number, f"of a stage ({number - 1})")
            out.append(chart(f"{what} {name}", {
                "width": {"step": side}, "height": {"step": side}, "data": _values(rows),
                "mark": {"type": "rect", "tooltip": True},
                "encoding": {"y": {"field": "target", "type": "ordinal", "title": ends[0],
                                   "axis": {"labelOverlap": True}},
                             "x": {"field": "operand", "type": "ordinal", "title": ends[1],
                                   "axis": {"labelOverlap": True, "labelAngle": 0}},
                             "color": _q(field, title, scale={"type": "sqrt", "scheme": "viridis"}),
                             "tooltip": [_q("target", ends[0]), _q("operand", ends[1]), _q("edges", "edges"),
                                         _n("size", "read in the epoch")]}},
                "Intervals of vertices" + (f", {block} at a time" if block > 1 else "") + "."))
    return out


def _rows_of(tasks: Iterable[Task]) -> Iterator[tuple[int, Task]]:
    """Tasks that overlap, in rows: (row, task)."""
    ends: list[float] = []
    for task in sorted(tasks, key=lambda t: t[3]):
        row = next((k for k, end in enumerate(ends) if end <= task[3]), None)
        if row is None and len(ends) < READ_ROWS:
            row = len(ends)
            ends.append(0.0)
        elif row is None:
            row = ends.index(min(ends))
        ends[row] = max(ends[row], task[4])
        yield row, task


def timeline_chart(timeline: Timeline) -> Row:
    shortest = timeline.seconds / RECTANGLES
    rows: list[Row] = []
    order: list[str] = []
    for track in timeline.tracks():
        last: dict[int, Row] = {}
        for row, (_, name, stage, begin, end, _) in _rows_of(t for t in timeline.tasks if t[0] == track):
            place = track if row == 0 else f"{track} {row + 1}"
            before = last.get(row)
            if before is not None and before["task"] == name and begin - before["end"] < shortest:
                before["end"], before["tasks"] = max(end, before["end"]), before["tasks"] + 1
                continue
            last[row] = {"track": place, "task": name, "stage": stage, "begin": begin, "end": end, "tasks": 1}
            rows.append(last[row])
        order += sorted({r["track"] for r in rows} - set(order))
    order.sort(key=lambda place: (place.startswith("writes"), place.startswith("reads")))
    rows = [{**r, "begin": round(r["begin"], 7), "end": round(r["end"], 7)} for r in rows]
    return chart("Timeline of the last epoch", {
        "height": {"step": 24}, "data": _values(rows),
        "mark": {"type": "bar", "tooltip": True, "clip": True, "cornerRadius": 0},
        "encoding": {"x": _s("begin", "seconds", scale={"domain": [0, timeline.seconds], "nice": False}),
                     "x2": {"field": "end"},
                     "y": _n("track", sort=order, axis={"labelLimit": 200}),
                     "color": _n("task", legend={"orient": "top", "columns": 8}),
                     "tooltip": [_n("task"), _n("stage"), _q("tasks", "tasks"), _q("begin", "from", format=".6f"),
                                 _q("end", "to", format=".6f")]},
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}]},
        "Scroll to zoom, drag to move. Perfetto (ui.perfetto.dev) opens the trace itself.", wide=True)


# ---- the page ----

def tiles(epochs: list[Row], plan: Row) -> list[tuple[str, str]]:
    last = epochs[-1]
    times = sorted(e["seconds"] for e in epochs if e.get("seconds"))
    found = [("epochs", str(last["epoch"]))]
    if "loss" in last:
        found.append(("loss of the last", f"{last['loss']:.4f}"))
    best = max((e for e in epochs if "valid_acc" in e), key=lambda e: e["valid_acc"], default=None)
    if best is not None:
        found.append((f"best validation accuracy (epoch {best['epoch']})", f"{100 * best['valid_acc']:.1f} %"))
    if times:
        found.append(("median epoch", seconds(times[len(times) // 2])))
    if last.get("seconds") and "compute_seconds" in last:
        found.append(("of the last, a device computed", f"{100 * last['compute_seconds'] / last['seconds']:.0f} %"))
    found.append(("read, written by the last", f"{size(last.get('read_bytes', 0))}, "
                                               f"{size(last.get('written_bytes', 0))}"))
    if last.get("peak_host_bytes"):
        of = f" of {size(plan['host_memory'])}" if plan.get("host_memory") else ""
        found.append(("peak host memory", size(last["peak_host_bytes"]) + of))
    if plan:
        found.append(("graph", f"{plan['vertices']:,} vertices, {plan['edges']:,} edges"))
    return found


_STYLE = """
:root { color-scheme: light; --page: #f6f7f9; --card: #fff; --ink: #1c2430; --faint: #667085; --line: #e2e5ea; }
:root[data-theme=dark] { color-scheme: dark; --page: #12161c; --card: #1b2129; --ink: #e6e9ee; --faint: #98a2b3;
  --line: #2d3540; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 24px; }
header { display: flex; align-items: baseline; gap: 16px; flex-wrap: wrap; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 15px; margin: 0 0 8px; }
p { color: var(--faint); margin: 6px 0 0; font-size: 13px; }
button { margin-left: auto; font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: 3px 12px; cursor: pointer; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 10px 16px; } .tile b { display: block; font-size: 19px; font-weight: 600; }
.tile span { color: var(--faint); font-size: 13px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 16px; }
.card { padding: 14px 16px; min-width: 0; overflow-x: auto; } .wide { grid-column: 1 / -1; } .chart { width: 100%; }
"""

_SCRIPT = """
(() => {
const root = document.documentElement, button = document.querySelector("button");
const system = matchMedia("(prefers-color-scheme: dark)");
const draw = async dark => {
  root.dataset.theme = dark ? "dark" : "light";
  button.textContent = dark ? "Light" : "Dark";
  const ink = dark ? "#e6e9ee" : "#1c2430", faint = dark ? "#98a2b3" : "#667085", line = dark ? "#2d3540" : "#e2e5ea";
  const config = {
    background: "transparent", font: "system-ui, sans-serif", view: {stroke: null},
    range: {category: dark
      ? ["#6ea8fe", "#f2a65a", "#5fc9a8", "#e879a6", "#b9a2f2", "#d9c95b", "#74c7e3", "#c89b7b", "#8e99a8", "#ef7b6c"]
      : ["#2f6fdb", "#e07b1a", "#1f9d78", "#c93a77", "#7b5cd6", "#a8930f", "#1c8fb5", "#8a5a3a", "#667085", "#d3412f"]},
    axis: {labelColor: faint, titleColor: faint, gridColor: line, domainColor: line, tickColor: line,
           titleFontWeight: "normal"},
    legend: {labelColor: ink, titleColor: faint, titleFontWeight: "normal"},
    text: {color: ink}, rule: {color: ink},
  };
  for (const [k, c] of charts.entries())
    await vegaEmbed("#chart" + k, {$schema: "https://vega.github.io/schema/vega-lite/v5.json", ...c.spec},
                    {config, renderer: "canvas", actions: false, tooltip: {theme: dark ? "dark" : "light"}});
  root.dataset.drawn = dark ? "dark" : "light";
};
let dark = new URLSearchParams(location.search).get("theme") === "dark" || system.matches;
button.onclick = () => draw(dark = !dark);
system.onchange = e => draw(dark = e.matches);
draw(dark);
})();
"""


def of_trace(events: list[Row], plan: Row, epochs: list[Row], trace: Path) -> list[Row]:
    """The charts of a trace. What is not as gnnstream writes it raises something."""
    timeline = Timeline(events)
    if not timeline.tasks:
        raise ReportError(f"{trace}: has no tasks; was an epoch run?")
    stages = [by_stage(timeline)] if any(t[2] for t in timeline.tasks) else []
    return [plan_beside(plan, measured(timeline)), timeline_chart(timeline), *stages, *files(plan),
            *memory(plan, epochs), *grid_charts(grids(timeline))]


def page(metrics: Path, trace: Optional[Path] = None, title: Optional[str] = None) -> str:
    """The page of a run, as a string of HTML: of the file `metrics` that ``train --metrics`` wrote and, where there is
    one, of the `trace` that ``--trace`` did; `title` is the run's name on it. ReportError says which file is wrong, or
    that vl-convert-python is not installed.

    >>> import vl_convert
    >>> from gnnstream.report import page
    >>> _ = gs.train(store, "gcn", hidden=8, epochs=3, metrics="page.jsonl")
    >>> "<html" in page("page.jsonl", title="a run")
    True
    """
    read = read_metrics(metrics)
    step = -(-len(read) // EPOCHS)
    epochs = read[::-step][::-1] if step > 1 else read  # the last is one of them
    try:
        import vl_convert
    except ImportError:
        raise ReportError("the charts need vl-convert-python; pip install vl-convert-python") from None
    charts, missing = [*curves(epochs), epoch_seconds(epochs)], ""
    plan: Row = {}
    if step > 1:
        missing = f"<p>Charts of epochs show one in {step}.</p>"
    if trace is None:
        missing += "<p>With the run's trace (<code>train --trace</code>) there are more: where an epoch's time went, " \
                  "plan beside measurement, memory by owner, the grid of edges, the timeline.</p>"
    else:
        events, plan = read_trace(trace)
        try:
            charts += of_trace(events, plan, epochs, trace)
            tiles(read, plan)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:100]
            raise ReportError(f"{trace}: is damaged, or no trace of gnnstream; --trace writes one ({reason})") from None
    name = html.escape(title or os.path.basename(os.fspath(metrics)))
    boxes = "".join(f"<div class=tile><b>{html.escape(value)}</b><span>{html.escape(what)}</span></div>"
                    for what, value in tiles(read, plan))
    cards = "".join(f'<section class="card{" wide" if c["wide"] else ""}"><h2>{html.escape(c["title"])}</h2>'
                    f'<div class=chart id=chart{k}></div>' + (f"<p>{html.escape(c['note'])}</p>" if c["note"] else "")
                    + "</section>" for k, c in enumerate(charts))
    specs = json.dumps([{"spec": c["spec"]} for c in charts], separators=(",", ":")).replace("</", "<\\/")
    return (f'<!doctype html>\n<html lang=en><meta charset=utf-8><title>{name}</title>'
            f'<meta name=viewport content="width=device-width"><style>{_STYLE}</style>\n'
            f"<main><header><h1>gnnstream: {name}</h1><button>Dark</button></header>\n<div class=tiles>{boxes}</div>\n"
            f"<div class=cards>{cards}</div>{missing}</main>\n"
            f"<script>{_library(vl_convert)}</script>\n<script>const charts = {specs};{_SCRIPT}</script></html>\n")


def _library(vl_convert: Any) -> str:
    """Vega, Vega-Lite and vega-embed as one script that sets window.vegaEmbed."""
    return "(() => {" + str(vl_convert.javascript_bundle()).replace("</script", "<\\/script") + "})();"


def write(out: Path, metrics: Path, trace: Optional[Path] = None, title: Optional[str] = None) -> None:
    """Writes the page to the file `out`, whole or not at all; `metrics`, `trace` and `title` as of :func:`page`.

    >>> import vl_convert
    >>> from gnnstream.report import write
    >>> _ = gs.train(store, "gcn", hidden=8, epochs=3, metrics="run.jsonl", trace="trace.json")
    >>> write("report.html", "run.jsonl", "trace.json")
    """
    made = None
    try:
        folder = os.path.dirname(os.path.abspath(out))
        if os.path.isfile(out):
            with open(out, "rb") as file:
                if file.read(64).lstrip()[:1] not in (b"", b"<"):
                    raise ReportError(f"{out}: is there already and is no HTML file, so it is not replaced; "
                                      "remove it or give another name")
        text = page(metrics, trace, title)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="replace", dir=folder, prefix=".report-",
                                         delete=False) as file:
            made = file.name
            file.write(text)
        os.chmod(made, 0o666 & ~_umask())
        os.replace(made, out)
        made = None
    except (OSError, ValueError) as error:
        raise ReportError(f"{out}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if made is not None:
            os.unlink(made)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def main(arguments: Optional[list[str]] = None) -> None:
    """The program ``gnnstream report``; `arguments` are those of its command line.

    >>> import vl_convert
    >>> from gnnstream.report import main
    >>> _ = gs.train(store, "gcn", hidden=8, epochs=3, metrics="main.jsonl")
    >>> main(["main.jsonl", "-o", "main.html"])
    """
    parser = argparse.ArgumentParser("gnnstream report", description="Makes a page of a run: one HTML file.")
    parser.add_argument("metrics", metavar="RUN.jsonl", help="what train --metrics wrote")
    parser.add_argument("trace", metavar="TRACE", nargs="?", help="what train --trace wrote")
    parser.add_argument("-o", metavar="OUT.html", dest="out", default="report.html")
    options = parser.parse_args(arguments)
    try:
        write(options.out, options.metrics, options.trace)
    except ReportError as error:
        sys.exit(f"gnnstream report: {error}")


if __name__ == "__main__":
    main()
