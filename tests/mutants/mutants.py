#!/usr/bin/env python3
"""mutants.py - would the tests notice? Small faults, put into the sources one at a time.

    mutants.py make [--seed 14] [--count 40] [--rooms io,exec] [--build DIR] > list.json
        draws faults that compile, in turn over all rooms or these: a comparison flipped, a term dropped, off by one
    mutants.py run --build DIR [--list list.json] [--only 3,7] [--seconds 240] [--suites unit,kernels,e2e,cli]
        builds and tests each, tests of the fault's room first, then the others, cheap ones first, until one fails or so
        much processor time is spent

Both patch the tree that this file is in, and put the file back; `run` on a scratch worktree only, never beside other
work. A fault is known by its line's text, so lines may move, within a file or to another one of the same name; where
the line is gone, the fault is "gone" and counts for neither side of a comparison. A test that does not end in time is
no proof on a machine that others share: it is set aside, and where no other test fails the fault is "timeout", not
"killed". Equivalent faults, which nothing can observe, say so in the list, with the reason.
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Not looked at: failures of allocation and of the system, which the tests inject by other means, and words.
SKIP = re.compile(r'^\s*(//|\*|/\*|#)|"|assert\(|NULL|GS_OK|GS_E[A-Z]+|errno|\'')
TESTS_OF = {"batch": "batches"} # rooms whose tests stand in a folder of another name
ENDLESS_MOST = 3 # tests that do not end; more would not either
OPERATORS = [
    ("comparison", r" < (?!<)", " <= "), ("comparison", r" <= ", " < "),
    ("comparison", r" > (?!>)", " >= "), ("comparison", r" >= ", " > "),
    ("comparison", r" == ", " != "), ("comparison", r" != ", " == "),
    ("connective", r" && ", " || "), ("connective", r" \|\| ", " && "),
    ("dropped term", r" [-+*/] [A-Za-z_][\w.\->]*(\[\w+\])?(?=[;,)\]])", ""),
    ("off by one", r" [-+] 1(?=[;,)\]])", ""), ("off by one", r" = 0;", " = 1;"),
    ("off by one", r"(?<=; )(\w+ < [\w.\->]+)(?=; )", r"\1 - 1"),
    ("off by one", r"\[i\](?=[;,) ])", "[i + 1]"),
]


def sources():
    """Rooms and their sources; a room is a folder of src, or of what stands beside it."""
    rooms = {}
    for path in sorted(ROOT.glob("src/*/*.c")) + sorted(ROOT.glob("partition/*.c")) + sorted(ROOT.glob("cuda/**/*.c*")):
        parts = path.relative_to(ROOT).parts
        rooms.setdefault(parts[1] if parts[0] == "src" else parts[0], []).append(path)
    return rooms


def sites(path):
    """(line number, kind, new line) of every fault that could be put into this file."""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if SKIP.search(line) or not line.startswith(" "):
            continue
        code = line.split("/*")[0]
        for kind, pattern, new in OPERATORS:
            for found in re.finditer(pattern, code):
                yield number, kind, line[:found.start()] + found.expand(new) + line[found.end():]


def patch(path, number, new):
    lines = path.read_text().split("\n")
    lines[number - 1] = new
    path.write_text("\n".join(lines))


def ninja(build, *targets):
    return subprocess.run(["ninja", "-C", build, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def object_of(build, path):
    """The ninja target of this source's object in the library."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    found = [c["output"] for c in commands if (pathlib.Path(c["directory"]) / c["file"]).resolve() == path]
    return [o for o in found if o.startswith("src/")][:1]


def draw_fault(draw, build, path, faults):
    """A fault in this file that compiles, and that its line's text tells from others; or None."""
    choices = list(sites(path))
    if not choices:
        return None
    kind = draw.choice(sorted({kind for _, kind, _ in choices}))
    number, _, new = draw.choice([c for c in choices if c[1] == kind])
    text = path.read_text()
    old = text.split("\n")[number - 1]
    file = str(path.relative_to(ROOT))
    if text.split("\n").count(old) > 1 or any(f["file"] == file and f["old"] == old for f in faults):
        return None
    patch(path, number, new)
    try:
        if path.suffix == ".c" and ninja(build, *object_of(build, path)).returncode != 0:
            return None
    finally:
        path.write_text(text)
    return {"file": file, "line": number, "kind": kind, "old": old, "new": new}


def make(args):
    draw = random.Random(args.seed)
    rooms = sources()
    order = sorted(args.rooms.split(",") if args.rooms else rooms)
    draw.shuffle(order)
    faults = []
    tries = 0
    while len(faults) < args.count:
        if tries == 30: # nothing to be had there
            order.pop(0)
            tries = 0
        tries += 1
        path = draw.choice(rooms[order[0]])
        fault = draw_fault(draw, args.build, path, faults)
        if fault is None:
            continue
        faults.append({"number": len(faults) + 1, "room": order[0], **fault})
        print("{number} {file}:{line} {kind}: {new}".format(**faults[-1]), file=sys.stderr)
        order.append(order.pop(0))
        tries = 0
    json.dump({"seed": args.seed, "faults": faults}, sys.stdout, indent=1)
    print()


def place(fault):
    """(path, line number) of the fault's line in this tree; None where it is gone, or stands in several places."""
    name = pathlib.Path(fault["file"]).name
    own = [ROOT / fault["file"]] if (ROOT / fault["file"]).is_file() else []
    others = [p for paths in sources().values() for p in paths]
    # first with its indentation, by which `make` told the line from others of its file
    for paths, same in (own, str), (own, str.strip), ([p for p in others if p.name == name], str.strip), (
            others, str.strip):
        found = [(p, n) for p in paths for n, line in enumerate(p.read_text().split("\n"), 1)
                 if same(line) == same(fault["old"])]
        if len(found) == 1:
            return found[0]
        if found and same is str.strip:
            return None
    return None


def tests_of(build, suites, seconds):
    """[(name, seconds, targets)] of the build's tests in these suites, cheap ones first."""
    tests = []
    targets = {t["id"]: t for t in json.loads(subprocess.check_output(["meson", "introspect", build, "--targets"]))}
    root = str(pathlib.Path(build).resolve()) + "/"
    for test in json.loads(subprocess.check_output(["meson", "introspect", build, "--tests"])):
        own = {s.split(":")[-1] for s in test["suite"]}
        if not own & set(suites) or own & {"product", "style"}:
            continue
        names = {str(pathlib.Path(f).resolve()) for d in test["depends"] for f in targets[d]["filename"]}
        names |= {str(pathlib.Path(c).resolve()) for c in test["cmd"] if c.startswith(root)}
        names = {n[len(root):] for n in names if n.startswith(root)}
        if not own & {"unit", "fuzz"}:
            names.add("tools/gnnstream")
        unknown = 5 if own & {"unit", "fuzz"} else 60
        tests.append((test["name"], seconds.get(test["name"], unknown), sorted(names)))
    return sorted(tests, key=lambda t: t[1])


def batches(tests, room):
    """Tests to run at a time: of the fault's room first, then all, some twenty seconds' worth each."""
    first = [t for t in tests if t[0].split("/")[0] == TESTS_OF.get(room, room) and t[1] < 15]
    batch, spent = [], 0
    for test in first + [t for t in tests if t not in first]:
        if batch and (spent + test[1] > 20 or test is (first or [None])[-1]):
            yield batch
            batch, spent = [], 0
        batch.append(test)
        spent += test[1]
    if batch:
        yield batch


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_tests(args, names, seconds):
    """Runs them until one fails; false where they did not end in this time."""
    tests = subprocess.Popen(["meson", "test", "-C", args.build, "--no-rebuild", "--num-processes", "1",
                              "--maxfail", "1", "--timeout-multiplier", "3", *names],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        tests.wait(seconds)
    except subprocess.TimeoutExpired:
        tests.terminate() # meson ends what it runs
        tests.wait()
        return False
    return True


def read_log(log):
    """(name, result) of each test that the last run came to the end of."""
    lines = log.read_text().split("\n") if log.exists() else []
    return [(r["name"].split(" / ")[-1], r["result"]) for r in (json.loads(line) for line in lines if line)]


def failures(args, tests):
    """Builds and runs these until one fails: (its name, did it not end?); ("", False) where all pass, None where they
    do not build."""
    if ninja(args.build, *sorted({n for _, _, names in tests for n in names})).returncode != 0:
        return None
    log = pathlib.Path(args.build) / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    in_time = run_tests(args, [name for name, _, _ in tests], 60 + args.patience * sum(t[1] for t in tests))
    results = read_log(log)
    failed = [(name, result == "TIMEOUT") for name, result in results if result in ("FAIL", "ERROR", "TIMEOUT")]
    if not in_time:
        ended = {name for name, result in results if result != "INTERRUPT"}
        failed += [(name, True) for name, _, _ in tests if name not in ended][:1]
    return min(failed, key=lambda f: f[1]) if failed else ("", False)


def outcome(args, tests, room, fault_in, fault_out):
    """What comes of a fault: (killed, survived, timeout, ...; by whom). A test that fails without it too is not asked
    again, and one that does not end is set aside."""
    begin, done, endless = processor_seconds(), 0, []

    def no_failure(words):
        return ("timeout", ", ".join(endless)) if endless else ("survived", words)

    fault_in()
    for batch in batches(tests, room):
        while batch:
            if processor_seconds() - begin > args.seconds:
                return no_failure(f"{done} of {len(tests)} tests in {args.seconds:.0f} s")
            found = failures(args, batch)
            if found is None:
                return "unbuilt", ""
            failed, is_endless = found
            if failed == "":
                break
            if is_endless:
                endless.append(failed)
                if len(endless) == ENDLESS_MOST:
                    return no_failure("")
            else:
                suspect = [t for t in tests if t[0] == failed]
                fault_out()
                if failures(args, suspect) == ("", False):
                    return "killed", failed
                tests.remove(suspect[0])
                fault_in()
            batch = [t for t in batch if t[0] != failed]
        done += len(batch)
    return no_failure(f"all of {len(tests)} tests")


def learn(args):
    """Seconds of each test as the build's last whole run took them, kept beside the build."""
    kept = pathlib.Path(args.build) / "mutants.seconds.json"
    seconds = json.loads(kept.read_text()) if kept.exists() else {}
    log = pathlib.Path(args.build) / "meson-logs/testlog.json"
    if not seconds and log.exists():
        results = [json.loads(line) for line in log.read_text().split("\n") if line]
        seconds = {r["name"].split(" / ")[-1]: r["duration"] for r in results}
        kept.write_text(json.dumps(seconds))
    return seconds


def run(args):
    faults = json.loads(pathlib.Path(args.list).read_text())["faults"]
    only = {int(n) for n in args.only.split(",")} if args.only else {f["number"] for f in faults}
    tests = tests_of(args.build, args.suites.split(","), learn(args))
    count = {}
    for fault in (f for f in faults if f["number"] in only):
        where = place(fault)
        began, spent = time.time(), processor_seconds()
        if where is None:
            result, by = "gone", fault["file"]
        else:
            path, number = where
            text = path.read_text()
            indent = re.match(r"\s*", text.split("\n")[number - 1]).group()
            try:
                result, by = outcome(args, tests, fault["room"],
                                     lambda: patch(path, number, indent + fault["new"].strip()),
                                     lambda: path.write_text(text))
            finally:
                path.write_text(text)
        if result == "survived" and "equivalent" in fault:
            result = "equivalent"
        count[result] = count.get(result, 0) + 1
        at = f"{where[0].relative_to(ROOT)}:{where[1]}" if where else fault["file"]
        print(f"{fault['number']:3} {result:10} {at} {fault['kind']}: {fault['new'].strip()} [{by}] "
              f"{processor_seconds() - spent:.0f} s of processors, {time.time() - began:.0f} s", flush=True)
    print(", ".join(f"{n} {result}" for result, n in sorted(count.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    maker = commands.add_parser("make")
    maker.add_argument("--seed", type=int, default=14)
    maker.add_argument("--count", type=int, default=40)
    maker.add_argument("--rooms", default="")
    maker.add_argument("--build", default="build")
    maker.set_defaults(command=make)
    runner = commands.add_parser("run")
    runner.add_argument("--build", required=True)
    runner.add_argument("--list", default=str(HERE / "list.json"))
    runner.add_argument("--only", default="")
    runner.add_argument("--seconds", type=float, default=240)
    runner.add_argument("--suites", default="unit,kernels,e2e,cli,fuzz")
    runner.add_argument("--patience", type=float, default=10, help="how often what tests are known to take they may")
    runner.set_defaults(command=run)
    args = parser.parse_args()
    os.environ.setdefault("NINJA_STATUS", "")
    args.command(args)


main()
