"""Programs and the libraries that they need, as one packed file, and out of it again.

A GPU machine may have CUDA and nothing of what building needs; what travels there must be small.
"""
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

SYSTEM = re.compile(r"lib(c|m|pthread|dl|rt)\.so")  # the C library's own, which every machine has


def libraries(program):
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.match(r"\s*(\S+) => (/\S+)", line)
        if found and not SYSTEM.match(found[1]):
            yield found[1], found[2]


def make(built, programs, to, revision):
    """Writes `to`; returns its bytes."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        needed = {}
        os.mkdir(os.path.join(folder, "lib"))
        for program in programs:
            path = os.path.join(built, program)
            subprocess.run(["install", "-s", path, folder], check=True)
            needed.update(libraries(path))
        for name, path in needed.items():
            shutil.copy(path, os.path.join(folder, "lib", name))
        with open(os.path.join(folder, "revision"), "w", encoding="utf-8") as f:
            f.write(revision)
        with tarfile.open(to + ".new", "w:gz", compresslevel=6) as tar:
            tar.add(folder, ".")
    os.replace(to + ".new", to)
    return os.path.getsize(to)


def unpack(packed, to):
    with tarfile.open(packed) as tar:
        tar.extractall(to)
