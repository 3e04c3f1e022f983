"""Where CUDA's libraries are, and a line about the machine."""
import glob
import os
import re
import shutil
import subprocess
import sys


def library_folders():
    """Where the loader does not look: beside nvcc, where containers have the driver, and among python3's packages,
    which come last. Which of several releases fits the driver is the program's choice (cuda/driver.c), so all folders
    are named."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout \
        if shutil.which("ldconfig") else ""
    if "libcuda.so.1" not in known:
        yield from ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib")
    yield from ("/usr/local/cuda/lib64", "/usr/local/cuda/lib")
    nvcc = shutil.which("nvcc")
    if nvcc:
        toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        yield from (os.path.join(toolkit, "lib64"), os.path.join(toolkit, "lib"))
    for folder in sys.path:
        for library in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib"))):
            if glob.glob(os.path.join(library, "lib*.so*")):
                yield library


def find_cuda():
    """Sets LD_LIBRARY_PATH, and PATH for CUDA's programs."""
    folders = [f for f in [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *library_folders()]
               if f and os.path.isdir(f)]
    os.environ["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(folders))
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/local/nvidia/bin:/usr/local/cuda/bin"


VERSIONS = r"""
say() { command -v "$1" >/dev/null && { echo "== $*"; timeout -s KILL 5 "$@" 2>&1 | tail -n 4; }; }
facts=name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current
timeout -s KILL 5 nvidia-smi --query-gpu=$facts --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'
timeout -s KILL 5 nvidia-smi topo -m 2>/dev/null
say nvcc --version
say ncu --version
say compute-sanitizer --version
uname -sr; echo "$(nproc) processors"; grep -m 1 MemTotal /proc/meminfo; df -h . | tail -n 1
"""


def read_versions(said):
    gpus = re.findall(r"^gpu (.*)$", said, re.M)
    return ({"gpu": "; ".join(gpus)} if gpus else {}), said.splitlines()
