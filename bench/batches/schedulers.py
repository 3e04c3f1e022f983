#!/usr/bin/env python3
"""schedulers.py PROGRAM DIR [WORKLOAD ...] - what DAHA's schedulers (VLDB'24) would be worth, and what is built is.

Trains each workload of lanes.py on `cpu:2` with wires, and plays its batches by the rules of the lanes: a batch takes
as long on a lane as its own rows and edges at the mean rate of that lane in the run's trace. Prints milliseconds of a
step as measured and as played, then the played step without what is built and with what is not, as a factor of it
(above 1: so much shorter; of what is built: so much longer without it):

  pipeline     all of a batch's lanes one after the other                                     (built; on)
  gaps         nothing is picked of the next group before this one is computed                (built; on)
  ahead        a group is drawn when the one before it is over                                (built; on)
  progressive  drawing is dealt, batch by batch, to processors and to the devices, each of which draws RATIO times as
               fast as they do; beside the better of drawing all on one of the two            (not built)
  epochs       groups of two epochs' batches, of which edges alone are kept                   (not built)
  algorithm 1  batches regrouped by 4 so that compute / transfer of each group balances, and the longest transfers sent
               while the longest batches compute                                              (not built)
  staleness    no device waits for another behind a step                                      (not built)
"""
import argparse
import json
import math
import os
import pathlib

from lanes import LANES, WORKLOADS, measured, options_of, run

SETS, SLOTS, DEVICES, BETA = 3, 2, 2, 4
RATIOS = 1, 2, 4, 8  # of a device's drawing to that of all processors together


def play(batches, group, **how):
    """Seconds a step, once lanes are full: of epochs behind the first ones."""
    times = max(2, 2 * group // len(batches))
    more = finish(batches * 2 * times, group, **how) - finish(batches * times, group, **how)
    return more / (len(batches) * times / DEVICES)


def finish(batches, group, ahead=True, follow=True, pipeline=True, barrier=True):
    """Seconds until all are over. A batch is (draw, pick, send, compute); batch i is device i % DEVICES'."""
    ends = [{lane: [] for lane in LANES} for _ in range(DEVICES)]
    drawn = begun = over = ready = 0.0
    for i, (draw, pick, send, compute) in enumerate(batches):
        end = ends[i % DEVICES]
        before = lambda lane, back: end[lane][-back] if len(end[lane]) >= back else 0.0
        if i % group == 0:
            if i > 0 or not ahead:
                drawn = (max(drawn, begun) if ahead else over) + sum(b[0] for b in batches[i:i + group])
            begun = max(drawn, over)  # this group is taken, and the next one may be drawn
            fresh = 0.0 if follow else over
        at = max(drawn, fresh, before("pick", 1), before("send", SLOTS if pipeline else 1),
                 before("compute", SETS if pipeline else 1)) + pick
        end["pick"].append(at)
        at = max(at, before("send", 1), before("compute", SLOTS if pipeline else 1)) + send
        end["send"].append(at)
        at = max(at, before("compute", 1), ready if barrier else 0.0)
        end["compute"].append(at + compute)
        over = max(over, at + compute)
        if i % DEVICES == DEVICES - 1:
            ready = over
    return over


def batches_of(path):
    """Each batch's seconds on each lane, and batches of a group."""
    events = [e for e in json.loads(pathlib.Path(path).read_text())["traceEvents"] if e["ph"] == "X"]
    size = {e["args"]["batch"]: e["args"]["vertices"] + e["args"]["edges"] for e in events if e["name"] == "compute"}
    total = {lane: sum(e["dur"] for e in events if e["name"] == lane) / 1e6 for lane in LANES}
    rate = {lane: total[lane] / sum(size.values()) for lane in LANES}
    groups = sorted(e["args"]["batch"] for e in events if e["name"] == "draw")
    return [tuple(size[b] * rate[lane] for lane in LANES) for b in sorted(size)], groups[1] if len(groups) > 1 else 64


def progressive(batches, group, ratio):
    """The least of drawing none, all or a part of them on the devices, whose lanes then take it."""
    def dealt(part):
        shared, left = [], 0.0
        for draw, pick, send, compute in batches:
            left += part
            there = left >= 1
            left -= there
            shared.append((0.0 if there else draw, pick, send, compute + (draw / ratio * DEVICES if there else 0.0)))
        return play(shared, group)
    steps = {part: dealt(part / 20) for part in range(21)}
    return min(steps[0], steps[20]) / min(steps.values())


def algorithm_1(batches):
    """Groups of BETA by DAHA's upper level: the most extreme compute / transfer joins the one nearest to its
    reciprocal; within a group a long transfer goes beside a long computation (Johnson's rule for two lanes)."""
    pools = [([b], math.log(b[3] / max(b[1] + b[2], 1e-12))) for b in batches]
    done = []
    while pools:
        pools.sort(key=lambda p: abs(p[1]))
        one = pools.pop()
        while len(one[0]) < BETA and pools:
            near = min(range(len(pools)), key=lambda k: abs(pools[k][1] + one[1]))
            other = pools.pop(near)
            one = one[0] + other[0], one[1] + other[1]
        done.append(one[0])
    order = []
    for group in done:
        first = sorted((b for b in group if b[2] <= b[3]), key=lambda b: b[2])
        order += first + sorted((b for b in group if b[2] > b[3]), key=lambda b: -b[3])
    return order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("only", nargs="*", choices=[[], *WORKLOADS])
    a = parser.parse_args()
    a.dir.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(a.dir / "cache")
    heads = ["measured ms", "played ms", "pipeline", "gaps", "ahead", *(f"progressive {r}" for r in RATIOS), "epochs",
             "algorithm 1", "staleness"]
    print("| workload | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 1))
    for name in a.only or WORKLOADS:
        trace = a.dir / "trace.json"
        run(a.program, "train", *options_of(a.program, a.dir, name), "--epochs", 2, "--eval-every", 0, "--keep", "last",
            "--trace", trace)
        batches, group = batches_of(trace)
        step = play(batches, group)
        worth = [play(batches, group, pipeline=False, follow=False) / step, play(batches, group, follow=False) / step,
                 play(batches, group, ahead=False) / step, *(progressive(batches, group, r) for r in RATIOS),
                 step / play(batches, 2 * len(batches)), step / play(algorithm_1(batches), group),
                 step / play(batches, group, barrier=False)]
        print(f"| {name} | {measured(trace)[1] * 1e3:.2f} | {step * 1e3:.2f} | " +
              " | ".join(f"{w:.3f}" for w in worth) + " |", flush=True)


if __name__ == "__main__":
    main()
