#!/usr/bin/env python3
"""pretended_gpu.py LIBRARY FOLDER TEST.py...: runs tests of PyTorch's layers on the GPU that is the host
(tests/cuda/host_library.h): each tensor says that it is on cuda:0, so the package goes the way that it goes with a
GPU's tensors, and the engine's kernels compute on PyTorch's memory where it is. FOLDER is for compiled kernels. Skips
(77) where torch says that there is a GPU.

What PyTorch itself does on a GPU is not tried: its work runs on the processors, and where it would go on behind the
stream that a layer was told to, it waits for the layer. Arrays that a layer fills have pages of their own, which go
with them, so whoever writes beside one, or later, ends the program."""
import ctypes
import mmap
import os
import pathlib
import sys
import unittest
import weakref

LIBRARIES = ("libcuda.so.1", "libnvrtc.so.12", "libcublas.so.12")  # PyTorch may have brought those of 13
library, folder, *tests = sys.argv[1:]
if os.environ.get("GS_HOST_GPU") != folder:  # the loader reads LD_LIBRARY_PATH once, when a program starts
    os.makedirs(folder, exist_ok=True)
    for name in LIBRARIES:
        link = pathlib.Path(folder, name)
        if not link.is_symlink():
            link.symlink_to(library)
    path = ":".join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))
    os.environ.update(GS_HOST_GPU=folder, GS_HOST_GPU_HAS_ALL="1", GS_HOST_GPU_CUDA="12080", LD_LIBRARY_PATH=path)
    os.execv(sys.executable, [sys.executable, *sys.argv])

import torch  # noqa: E402
import torch._decomp.decompositions_for_jvp  # noqa: E402,F401  compiles calls of what is replaced here
from torch._guards import detect_fake_mode  # noqa: E402

import gnnstream.torch as layers  # noqa: E402

driver = ctypes.CDLL("libcuda.so.1")
process = ctypes.CDLL(None)
process.mmap.restype = ctypes.c_void_p
process.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
process.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
process.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
to = torch.Tensor.to
passes = {"_forward": 0, "_backward": 0}
told = []  # arrays that there may be work left on, as PyTorch gives none to others before its stream is through


def own_pages(shape):
    """Floats at the end of pages that nobody else has, as far as rows of 16 bytes let them; behind them is a page that
    nobody may touch."""
    count = torch.Size(shape).numel()
    if count == 0:
        return torch.zeros(tuple(shape))
    size, page = (4 * count + 15) // 16 * 16, mmap.PAGESIZE
    whole = (size + page - 1) // page * page + page
    at = process.mmap(None, whole, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert process.mprotect(at + whole - page, page, 0) == 0
    numbers = (ctypes.c_float * count).from_address(at + whole - page - size)
    weakref.finalize(numbers, process.munmap, at, whole)
    told.append(numbers)
    return torch.frombuffer(numbers, dtype=torch.float32).fill_(float("nan")).view(tuple(shape))


def wait():
    """For all that the layer was told, as a read of PyTorch's behind it would."""
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamSynchronize(None) == 0
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
    told.clear()


def waits(name):
    do = getattr(layers._Engine, name)

    def wrapped(self, x, *rest):
        do(self, x, *rest)
        passes[name] += x.device.type == "cuda"
        wait()
    setattr(layers._Engine, name, wrapped)


def anywhere(make):
    """Of what makes or moves tensors: on the GPU is where all are."""
    def wrapped(*arguments, device=None, **options):
        there = str(device).startswith("cuda")
        kept = [a for a in arguments if not (isinstance(a, torch.device) and a.type == "cuda")]
        if make is to and len(kept) == 1 and not options:
            return kept[0]
        if device is None or there and not detect_fake_mode():
            return make(*kept, **options)
        return make(*kept, device=device, **options)
    return wrapped


class Stream:
    """PyTorch's default one."""
    cuda_stream = 0


def pretend():
    halves = torch.is_autocast_enabled
    torch.is_autocast_enabled = lambda kind="cpu": halves("cpu")
    torch.cuda.current_stream = lambda device=None: Stream
    for name in ("arange", "empty", "full", "ones", "randint", "randn", "tensor", "zeros"):
        setattr(torch, name, anywhere(getattr(torch, name)))
    torch.Tensor.to = anywhere(to)
    real = layers._floats  # of shapes alone, within torch.compile
    layers._floats = lambda shape, on: real(shape, on) if detect_fake_mode() else own_pages(shape)
    waits("_forward")
    waits("_backward")
    device = torch.Tensor.device
    torch.Tensor.device = property(lambda self: torch.device("cuda:0") if self.is_cpu else device.__get__(self))


if torch.cuda.is_available():
    print("skipped: there is a GPU")
    sys.exit(77)
pretend()
sys.path.insert(0, os.path.dirname(tests[0]))
try:
    unittest.main(None, argv=[sys.argv[0], *(pathlib.Path(test).stem for test in tests)])
finally:
    print(f"on the GPU that is the host: {passes}")
    assert passes["_forward"] > 0 and passes["_backward"] > 0
