#!/usr/bin/env python3
"""edge_instructions.py EDGE_CUBINS [--arch sm_90] [--match TEXT]: instructions of the edge kernels, counted; no GPU.

EDGE_CUBINS is the program bench/kernels/edge_cubins of the build. nvdisasm and cuobjdump come from the PATH or from
Python's packages (pip install nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump). Of each kernel the loop over edges is found
in its machine code: the largest loop without one inside. Its instructions, those of branches that are seldom taken
too, divided by the edges that a warp takes in one turn, are "warp instructions an edge":

    instructions of the loop / edges of a batch / (32 / lanes of a group) * groups a target

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


def edge_loop(code, labels):
    """The instructions of the largest loop that has none inside."""
    loops = []
    for at, instruction in enumerate(code):
        branch = BRANCH.search(instruction)
        if branch and labels.get(branch.group(1), at + 1) <= at:
            loops.append((labels[branch.group(1)], at + 1))
    loops = [a for a in loops if a[1] - a[0] > 1 and "LDG" in " ".join(code[a[0]:a[1]])]
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    if not inner:
        return []
    first, end = max(inner, key=lambda a: a[1] - a[0])
    return code[first:end]


def usage(cubin):
    """Of each kernel its registers and the bytes of its stack."""
    text = output("cuobjdump", "-res-usage", cubin)
    rows = re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+)", text)
    return {name: (int(registers), int(stack)) for name, registers, stack in rows}


def row(folder, arch, line):
    file, kernel, what, width, frame, lanes, slices, batch, read = line.split("\t")
    cubin = f"{folder}/{file}.{arch}.cubin"
    code, labels = functions(cubin)[kernel]
    registers, stack = usage(cubin)[kernel]
    loop = edge_loop(code, labels)
    edges = int(batch) * (32 // int(lanes)) / int(slices)
    count = lambda word: sum(word in i for i in loop) / edges
    spills = sum("LDL" in i or "STL" in i for i in code)
    _, l2, hbm, processors, clock = GPUS[arch]
    each = len(loop) / edges
    times = [int(read) / l2 * 1e12, int(read) / hbm * 1e12, each / (4 * processors * clock) * 1e12]
    columns = width if width == frame else f"{frame} ({width})"
    return (f"{what:<36} {columns:>10} {each:8.1f} {count('LDG'):6.1f} {count('SHFL'):6.1f} {registers:5} "
            f"{stack:5} {spills:6} {read:>7} {times[0]:8.1f} {times[1]:8.1f} {times[2]:8.1f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("edge_cubins")
    p.add_argument("--arch", choices=GPUS, help="one of them alone")
    p.add_argument("--match", default="", help="rows whose name has this text alone")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(a.edge_cubins).resolve()
        lines = subprocess.run([program, folder], check=True, capture_output=True, text=True).stdout.splitlines()
        for arch in [a.arch] if a.arch else sorted(GPUS, reverse=True):
            print(f"{arch} ({GPUS[arch][0]}): warp instructions an edge; picoseconds of an edge by each ceiling alone")
            print(f"{'':<36} {'columns':>10} {'instr':>8} {'loads':>6} {'shuf':>6} {'regs':>5} {'stack':>5} "
                  f"{'spills':>6} {'bytes':>7} {'L2':>8} {'HBM':>8} {'issue':>8}")
            for line in sorted(lines, key=lambda s: s.split("\t")[2]):
                if a.match in line:
                    print(row(folder, arch, line))


main()
