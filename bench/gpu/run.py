"""Steps, each with a deadline of its own; what is known is written down after every one of them.

The folder for results gets `steps.jsonl` (a line a step), `page.md` (all that is known so far) and `failed.log` (what
steps that failed have said). So whatever ends the run, the GPU's machine included, what came before is there.
"""
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

GPU_PROCESSES = max(8, os.cpu_count() or 8)  # at once: each takes some hundred MiB of the GPU for CUDA's context
LOG_BYTES = 1 << 20      # of a step's log, in failed.log
FAILED_BYTES = 16 << 20  # of failed.log
STATUS = {137: "killed", 124: "killed"}


def complaint(log):
    """The line that says what went wrong: the device's own, else the program's or a test's, else an error's, else the
    last one."""
    for pattern in (r"^.*?(?:: |[\"(])(device cuda.*)$", r"^(gnnstream \w+: .*)$", r"^\[  ERROR   \] --- ([^\[].*)$",
                    r"^(.*(?:error:|ERROR SUMMARY|FAIL).*)$"):
        found = re.search(pattern, log, re.M)
        if found:
            return found.group(1).strip()[:250]
    lines = log.strip().splitlines()
    return lines[-1].strip()[:150] if lines else "it said nothing"


class Run:
    def __init__(self, mode, out, work, seconds, pattern, page):
        """seconds: since when time counts, how much of it all steps have, and any of them at most; and how many times
        its own deadline a step has. page(run): its text."""
        self.mode, self.out, self.work, self.pattern, self.page = mode, out, work, pattern, page
        self.begun, self.seconds, self.step_seconds, self.patience = seconds
        self.steps, self.figures, self.lines = [], {}, []
        self.lock, self.children, self.stopped = threading.Lock(), set(), False
        self.gpu = concurrent.futures.ThreadPoolExecutor(GPU_PROCESSES)
        self.beside = concurrent.futures.ThreadPoolExecutor(2)
        os.makedirs(out, exist_ok=True)
        os.makedirs(os.path.join(work, "logs"), exist_ok=True)
        for name in ("steps.jsonl", "failed.log"):
            open(os.path.join(out, name), "w", encoding="utf-8").close()
        self.write_page()

    def now(self):
        return time.monotonic() - self.begun

    def wants(self, name):
        return re.search(self.pattern, name) is not None

    def passed(self, name):
        return any(s["step"] == name and s["status"] == "ok" for s in self.steps)

    # ---- one step ----

    def step(self, name, seconds, command, read=None, env=None):
        """Runs it for `seconds` at most, then SIGKILL: a program that waits for a GPU that hangs ends by nothing less.
        `read` makes figures (a dict) and lines of what it said. True if it passed."""
        if not self.wants(name):
            return False
        begin, left = self.now(), self.seconds - self.now()
        if left < 2 or self.stopped:
            self.record(name, begin, "not begun", "the time is over", "")
            return False
        log = os.path.join(self.work, "logs", re.sub(r"[^a-zA-Z0-9]", "_", name))
        seconds = min(seconds * self.patience, left, self.step_seconds)
        code = self.spawn(command, seconds, log, env)
        with open(log, errors="replace", encoding="utf-8") as f:
            said = f.read()
        status = "ok" if code == 0 else STATUS.get(code, "crashed" if 128 < code < 192 or code < 0 else "failed")
        figures, lines, why = {}, [], ""
        if status != "ok":
            why = f"after {seconds:.0f} s; {complaint(said)}" if status == "killed" else \
                f"status {code}: {complaint(said)}"
        if read:  # also of one that failed: what it measured before stands
            try:
                figures, lines = read(said)
            except (ValueError, KeyError, IndexError, TypeError, OSError) as e:
                if status == "ok":
                    status, why = "failed", f"its figures cannot be read: {e!r}"
        self.record(name, begin, status, why, said, figures, lines)
        return status == "ok"

    def spawn(self, command, seconds, log, env):
        with open(log, "wb") as f:
            try:
                child = subprocess.Popen(["timeout", "-s", "KILL", str(seconds), *command], stdout=f,
                                         stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                         env={**os.environ, **(env or {})}, process_group=0)
            except OSError as e:
                f.write(f"{e}\n".encode())
                return 127
        self.children.add(child)
        try:
            code = child.wait(seconds + 10)
        except subprocess.TimeoutExpired:  # in the driver, where no signal arrives: left behind
            code = 137
        self.children.discard(child)
        return 137 if code == -signal.SIGKILL else code

    def without(self, name, program):
        """True, and a line that says so, where a program (or a module of python3) that steps need is not there. The
        module is not loaded: with the programs' libraries in place of its own it may not load."""
        if self.stopped or not self.wants(name) or shutil.which(program) or \
                importlib.util.find_spec(program.replace("-", "_")):
            return False
        self.record(name, self.now(), "not run", f"{program} is not here", "")
        return True

    # ---- several ----

    def together(self, steps):
        """(name, seconds, command...) each, beside each other; waits for all."""
        for done in [self.gpu.submit(self.step, *s) for s in steps]:
            done.result()

    def begin(self, work):
        """Runs work() beside the rest; of the processors alone. Its result() waits."""
        return self.beside.submit(work)

    def stop(self, why):
        self.stopped = True
        for child in list(self.children):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except OSError:
                pass
        self.record("stopped", self.now(), "failed", why, "")

    # ---- what is known ----

    def note(self, line):
        with self.lock:
            self.lines.append(line)

    def record(self, name, begin, status, why, said, figures=None, lines=()):
        entry = {"mode": self.mode, "step": name, "status": status, "at": round(begin, 1),
                 "seconds": round(self.now() - begin, 1), "says": why, "figures": figures or {}}
        with self.lock:
            self.steps.append(entry)
            self.figures.update(figures or {})
            self.lines += lines
            with open(os.path.join(self.out, "steps.jsonl"), "a", encoding="utf-8") as f:
                f.write(json.dumps(entry) + "\n")
            if status not in ("ok", "not begun", "not run"):
                self.keep_log(name, said)
            print(f"{entry['at']:6.1f} s  {name:36s} {status:9s} {entry['seconds']:5.1f} s  {why}", flush=True)
            for line in lines:
                print(f"          {line}", flush=True)
            self.write_page()

    def keep_log(self, name, said):
        with open(os.path.join(self.out, "failed.log"), "a", encoding="utf-8") as f:
            if f.tell() + LOG_BYTES <= FAILED_BYTES:
                f.write(f"==== {name}\n{said[-LOG_BYTES // 2:]}\n")

    def write_page(self):
        path = os.path.join(self.out, "page.md")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(self.page(self))
        os.replace(path + ".new", path)

    def count(self, *statuses):
        return sum(s["status"] in statuses for s in self.steps)

    def good(self):
        return self.count("ok") > 0 and self.count("ok", "not run") == len(self.steps)
