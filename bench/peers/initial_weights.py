#!/usr/bin/env python3
"""Do weights start by the laws of PyTorch Geometric's classes?

    initial_weights.py GNNSTREAM [MODEL ...]     models as load_saved.py has them

Draws every parameter of each model with SEEDS seeds from `gnnstream train` (one step of a rate that changes nothing)
and from PyG's own constructor, and compares the two samples: constants must be the same, and what is drawn must have
the same bounds within 3 % and pass the test of Kolmogorov and Smirnov for two samples at 1 in 10,000. Prints a line for
each kind of parameter; ends with status 1 where one differs.
"""
import pathlib
import sys
import tempfile

import numpy as np
import torch
import torch_geometric
from safetensors.torch import load_file

from load_saved import MODELS, Case

SEEDS = 12
CRITICAL = 2.23  # sqrt(-ln(0.0001 / 2) / 2)


def samples_of_ours(case):
    saved, drawn = case.work / "initial.safetensors", {}
    for seed in range(SEEDS):
        case.train("--epochs", 1, "--lr", 1e-30, "--seed", 100 + seed, "--keep", "last", "--save", saved)
        for name, tensor in load_file(saved).items():
            drawn.setdefault(name, []).append(tensor.numpy().ravel())
    return drawn


def samples_of_theirs(case):
    drawn = {}
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        for name, tensor in case.make().state_dict().items():
            drawn.setdefault(name, []).append(tensor.numpy().ravel())
    return drawn


def distance(a, b):
    """Kolmogorov and Smirnov's, in units in which CRITICAL is one."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    gap = np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()
    return gap * np.sqrt(len(a) * len(b) / (len(a) + len(b))) / CRITICAL


def compare(ours, theirs):
    """(what it is, whether it is the same)"""
    a, b = np.concatenate(ours).astype(np.float64), np.concatenate(theirs).astype(np.float64)
    if np.ptp(b) == 0:
        return f"{b[0]:g}", bool((np.abs(a - b[0]) < 1e-20).all())  # but for the step
    bounds, gap = [np.abs(x).max() for x in (a, b)], distance(a, b)
    # of n draws from U(-c, c) the largest is below c by some c / n
    same = abs(bounds[0] / bounds[1] - 1) < 0.03 + 10 / min(len(a), len(b)) and gap < 1
    return f"within {bounds[0]:.4f}, PyG {bounds[1]:.4f}, apart {gap:.2f}", same


def main():
    program, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(MODELS)
    kinds, wrong = 0, 0
    print(f"PyTorch Geometric {torch_geometric.__version__}, torch {torch.__version__}, {SEEDS} seeds")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            case = Case(program, name, pathlib.Path(folder))
            ours, theirs = samples_of_ours(case), samples_of_theirs(case)
            if set(ours) != set(theirs):
                raise SystemExit(f"{name}: tensors {sorted(set(ours) ^ set(theirs))} are on one side only")
            for tensor in sorted(theirs):
                if tensor.endswith(("running_mean", "running_var", "num_batches_tracked")):
                    continue  # a pass has moved them
                text, same = compare(ours[tensor], theirs[tensor])
                kinds += 1
                wrong += not same
                print(f"{name:40s} {tensor:42s} {text}{'' if same else '   DIFFERS'}", flush=True)
    print(f"{kinds} parameters, {wrong} differ")
    sys.exit(1 if wrong else 0)


main()
