#!/usr/bin/env python3
"""limited.py LIMIT REPORT COMMAND... - runs a command inside a memory cgroup.

LIMIT is bytes, or with K, M, G. The group counts what the kernel counts there: the
process's memory and the page cache of the files it touches; swap is off. After
the run REPORT holds a JSON object: status, seconds, user_seconds, system_seconds,
resident_peak_bytes (of the process), limit_bytes, cgroup_peak_bytes, limit_hits (how
often the kernel had to reclaim at the limit), oom_kills, cgroup ("v1" or "v2").

Exit status: the command's (128 + signal where it was killed); 3 where no
memory cgroup can be made, with a line that says why.
"""
import json
import os
import resource
import sys
import time

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def read(path, default="0"):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return default


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


class V1:
    name = "v1"
    parent = "/sys/fs/cgroup/memory"

    @staticmethod
    def limit(group, limit):
        write(f"{group}/memory.limit_in_bytes", limit)
        swap = f"{group}/memory.memsw.limit_in_bytes"
        if os.path.exists(swap):
            write(swap, limit)

    @staticmethod
    def usage(group):
        control = read(f"{group}/memory.oom_control").splitlines()
        kills = [line.split()[1] for line in control if line.startswith("oom_kill ")]
        return {
            "cgroup_peak_bytes": int(read(f"{group}/memory.max_usage_in_bytes")),
            "limit_hits": int(read(f"{group}/memory.failcnt")),
            "oom_kills": int(kills[0]) if kills else 0,
        }


class V2:
    name = "v2"
    parent = "/sys/fs/cgroup"

    @staticmethod
    def limit(group, limit):
        write(f"{group}/memory.max", limit)
        if os.path.exists(f"{group}/memory.swap.max"):
            write(f"{group}/memory.swap.max", 0)

    @staticmethod
    def usage(group):
        events = dict(line.split() for line in read(f"{group}/memory.events", "").splitlines())
        return {
            "cgroup_peak_bytes": int(read(f"{group}/memory.peak")),  # 0 before Linux 5.19
            "limit_hits": int(events.get("max", 0)),
            "oom_kills": int(events.get("oom_kill", 0)),
        }


def make_group(limit):
    """The version in use here and a new group with the limit; ends the program where there is none."""
    version = V2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else V1
    group = f"{version.parent}/gnnstream-bench-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as error:
        fail(f"cannot make a memory cgroup at {group}: {error.strerror} "
             "(root is needed, and a writable cgroup file system)")
    try:
        version.limit(group, limit)
    except OSError as error:
        os.rmdir(group)
        fail(f"cannot limit memory in {group}: {error.strerror} (is the memory controller on?)")
    return version, group


def fail(text):
    print(f"limited.py: {text}", file=sys.stderr)
    sys.exit(3)


def run(command, group):
    """Forks into the group, so that not one page of the command is counted elsewhere."""
    child = os.fork()
    if child == 0:
        try:
            write(f"{group}/cgroup.procs", os.getpid())
            os.execvp(command[0], command)
        except OSError as error:
            print(f"limited.py: {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def main():
    limit, report, command = size(sys.argv[1]), sys.argv[2], sys.argv[3:]
    version, group = make_group(limit)
    start = time.monotonic()
    try:
        status = run(command, group)
        seconds = time.monotonic() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = {
            "status": status,
            "seconds": seconds,
            "user_seconds": used.ru_utime,
            "system_seconds": used.ru_stime,
            "resident_peak_bytes": used.ru_maxrss * 1024,
            "limit_bytes": limit,
            "cgroup": version.name,
            **version.usage(group),
        }
    finally:
        os.rmdir(group)
    with open(report, "w", encoding="ascii") as file:
        json.dump(result, file, indent=1)
    sys.exit(status)


if __name__ == "__main__":
    main()
