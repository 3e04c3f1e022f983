#!/usr/bin/env python3
"""edge_instructions.py EDGE_CUBINS [--arch sm_90] [--widths W,...]: instructions of the edge kernels, counted; no GPU.

EDGE_CUBINS is the program bench/kernels/edge_cubins of the build. nvdisasm and cuobjdump come from the PATH or from
Python's packages (pip install nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump). Of each kernel the loop over edges is found
in its machine code: the largest loop without one inside. Its instructions, those of branches that are seldom taken
too, divided by the edges that a warp takes in one turn, are "warp instructions an edge":

    instructions of the loop / edges of a burst / (32 / lanes of a group) * groups a target

Subroutines that the loop calls (divisions of very small numbers) are not counted. Beside it: loads from memory and
shuffles, counted in the same way; registers; bytes of the stack, and accesses to it (spills). Then the picoseconds of
an edge that three ceilings allow, each alone: rows from the L2 cache, rows from HBM, and issue (4 warp instructions a
clock and processor). The largest of the ceilings is the least time that an edge can take; nothing here was measured.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# L2 and HBM in bytes a second, processors, clock: an A100 (80 GB) and an H200 SXM as published; L2 as benchmarks of
# others read it.
GPUS = {"sm_80": ("A100", 3.6e12, 2.0e12, 108, 1.41e9), "sm_90": ("H200", 5.5e12, 4.8e12, 132, 1.755e9)}
LOAD = re.compile(r"\bLDG?\.E")
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?);")
LABEL = re.compile(r"^(\.L_x?_?\d+|\.L_\S+):")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L\S+?)\)")


def output(tool, *arguments):
    places = [str(p) for folder in sys.path for p in pathlib.Path(folder).glob("nvidia/*/bin")]
    program = shutil.which(tool) or shutil.which(tool, path=":".join(places))
    if program is None:
        sys.exit(f"edge_instructions.py: {tool} is not there; pip install nvidia-cuda-{tool}, or put CUDA in the PATH")
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def functions(cubin):
    """Of each kernel its instructions (text) and where its labels stand among them."""
    text = output("nvdisasm", "-c", cubin)
    found, code, labels = {}, [], {}
    for line in text.splitlines():
        section = re.match(r"\.section\s+\.text\.(\w+)", line.strip())
        if section:
            code, labels = [], {}
            found[section.group(1)] = (code, labels)
        elif LABEL.match(line):
            labels[LABEL.match(line).group(1)] = len(code)
        elif INSTRUCTION.search(line):
            code.append(INSTRUCTION.search(line).group(2).strip())
    return found


def blocks_of(code, labels):
    """The code in blocks: where they begin, and which follow each. What only lanes that do not run together do, out of
    line, is no block."""
    starts = sorted({0, *labels.values(), *(i + 1 for i, text in enumerate(code) if BRANCH.search(text))} - {len(code)})
    number = {start: n for n, start in enumerate(starts)}
    follow = []
    for n, start in enumerate(starts):
        last = (starts[n + 1] if n + 1 < len(starts) else len(code)) - 1
        branch, text = BRANCH.search(code[last]), code[last]
        always = re.match(r"(BRA|EXIT|RET|BRX)\b(?!.DIV)", text) and not re.match(r"BRA U?!?U?P", text)
        next_ones = [] if always or n + 1 == len(starts) else [n + 1]
        if branch and "BRA.DIV" not in text and labels.get(branch.group(1), len(code)) < len(code):
            next_ones.append(number[labels[branch.group(1)]])
        follow.append(next_ones)
    seen, todo = set(), [0]
    while todo:
        block = todo.pop()
        if block not in seen:
            seen.add(block)
            todo += follow[block]
    return starts, [ways if n in seen else [] for n, ways in enumerate(follow)]


def dominators(follow):
    """Of each block those that every way to it passes."""
    every = set(range(len(follow)))
    found = [{0}] + [every] * (len(follow) - 1)
    before = [[p for p in every if n in follow[p]] for n in every]
    changed = True
    while changed:
        changed = False
        for n in range(1, len(follow)):
            ways = [found[p] for p in before[n] if p == 0 or found[p] is not every]
            now = (set.intersection(*ways) if ways else every - {n}) | {n}
            if ways and now != found[n]:
                found[n], changed = now, True
    return found, before


def edge_loop(code, labels):
    """The instructions of the largest loop that has none inside and loads something."""
    starts, follow = blocks_of(code, labels)
    above, before = dominators(follow)
    loops = []
    for n, ways in enumerate(follow):
        for head in ways:
            if head in above[n] and len(above[n]) < len(follow):
                inside, todo = {head}, [n]
                while todo:
                    block = todo.pop()
                    if block not in inside:
                        inside.add(block)
                        todo += before[block]
                loops.append(inside)
    text = {id(inside): [i for n in sorted(inside)
                         for i in code[starts[n]:starts[n + 1] if n + 1 < len(starts) else len(code)]]
            for inside in loops}
    loops = [a for a in loops if any(LOAD.search(i) for i in text[id(a)])]
    inner = [a for a in loops if not any(b < a for b in loops)]
    return max((text[id(a)] for a in inner), key=len, default=[])


def usage(cubin):
    """Of each kernel its registers and the bytes of its stack."""
    text = output("cuobjdump", "-res-usage", cubin)
    rows = re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+)", text)
    return {name: (int(registers), int(stack)) for name, registers, stack in rows}


def row(folder, arch, line):
    file, kernel, what, width, frame, lanes, slices, burst, read = line.split("\t")
    cubin = f"{folder}/{file}.{arch}.cubin"
    code, labels = functions(cubin)[kernel]
    registers, stack = usage(cubin)[kernel]
    loop = edge_loop(code, labels)
    edges = int(burst) * (32 // int(lanes)) / int(slices)
    count = lambda what: sum(bool(re.search(what, i)) for i in loop) / edges
    spills = sum("LDL" in i or "STL" in i for i in code)
    _, l2, hbm, processors, clock = GPUS[arch]
    each = len(loop) / edges
    times = [int(read) / l2 * 1e12, int(read) / hbm * 1e12, each / (4 * processors * clock) * 1e12]
    columns = width if width == frame else f"{frame} ({width})"
    return (f"{what:<36} {columns:>10} {each:8.1f} {count(LOAD):6.1f} {count('SHFL'):6.1f} {registers:5} "
            f"{stack:5} {spills:6} {read:>7} {times[0]:8.1f} {times[1]:8.1f} {times[2]:8.1f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("edge_cubins")
    p.add_argument("--arch", choices=GPUS, help="one of them alone")
    p.add_argument("--widths", default="", help="rows of so many columns alone, separated by commas")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(a.edge_cubins).resolve()
        command = [program, folder, *filter(None, a.widths.split(","))]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for arch in [a.arch] if a.arch else sorted(GPUS, reverse=True):
            print(f"{arch} ({GPUS[arch][0]}): warp instructions an edge; picoseconds of an edge by each ceiling alone")
            print(f"{'':<36} {'columns':>10} {'instr':>8} {'loads':>6} {'shuf':>6} {'regs':>5} {'stack':>5} "
                  f"{'spills':>6} {'bytes':>7} {'L2':>8} {'HBM':>8} {'issue':>8}")
            for line in sorted(lines, key=lambda s: s.split("\t")[2]):
                print(row(folder, arch, line))


main()
