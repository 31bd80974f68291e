"""Vendor BLAS as a peer program of `patsat bench --peer-program` (docs/architecture.md).

    blas.py mkl|torch sgemm|hgemm|sgemv|sasum|sdot FOLDER [SIZE=N ...]

`mkl` is Intel's library through ctypes (pip install mkl numpy), timed by the wall clock, as a CPU call is waited for;
`torch` is cuBLAS (pip install torch), fp32 without TF32, timed by device events; `hgemm` is its product of fp16 matrices with
sums in fp32 and an fp16 result. Parameters are taken by the names that
the shipped programs give them: `A` and `B`; `A`, `x`, `y`, `alpha` and `beta`; `xs`; `xs` and `ys`.
"""

import ctypes
import glob
import os
import sys
import time

import numpy as np

library, workload, folder = sys.argv[1:4]


def load(name):
    return np.ascontiguousarray(np.load(os.path.join(folder, name + ".npy")))


def mkl():
    lib = ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))[0])
    lib.cblas_sasum.restype = lib.cblas_sdot.restype = ctypes.c_float
    f, at = ctypes.c_float, lambda a: a.ctypes.data_as(ctypes.c_void_p)
    row, no = 101, 111
    if workload == "sgemm":
        a, b = load("A"), load("B")
        (n, k), m = a.shape, b.shape[1]
        c = np.zeros((n, m), np.float32)
        call = lambda: lib.cblas_sgemm(row, no, no, n, m, k, f(1), at(a), k, at(b), m, f(0), at(c), m)
        result = lambda: c
    elif workload == "sgemv":
        a, x, y, alpha, beta = (load(p) for p in ("A", "x", "y", "alpha", "beta"))
        n, k = a.shape
        out = np.empty_like(y)

        def call():
            out[:] = y
            lib.cblas_sgemv(row, no, n, k, f(alpha), at(a), k, at(x), 1, f(beta), at(out), 1)

        result = lambda: out
    elif workload == "sasum":
        x, r = load("xs"), [0.0]

        def call():
            r[0] = lib.cblas_sasum(x.size, at(x), 1)

        result = lambda: np.float32(r[0])
    elif workload == "sdot":
        x, y, r = load("xs"), load("ys"), [0.0]

        def call():
            r[0] = lib.cblas_sdot(x.size, at(x), 1, at(y), 1)

        result = lambda: np.float32(r[0])
    else:
        sys.exit(f"no workload {workload}")

    def run(times):
        out = []
        for _ in range(times):
            start = time.perf_counter()
            call()
            out.append((time.perf_counter() - start) * 1e6)
        return out

    return call, result, run


def torch():
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    on = lambda name: torch.from_numpy(load(name)).cuda()
    if workload in ("sgemm", "hgemm"):
        a, b = on("A"), on("B")
        out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device="cuda")
        call = lambda: torch.mm(a, b, out=out)
    elif workload == "sgemv":
        a, x, y, alpha, beta = on("A"), on("x"), on("y"), load("alpha").item(), load("beta").item()
        out = torch.empty_like(y)
        call = lambda: torch.addmv(y, a, x, alpha=alpha, beta=beta, out=out)
    elif workload == "sasum":
        x = on("xs")
        out = torch.empty((), device="cuda")
        call = lambda: torch.linalg.vector_norm(x, 1, out=out)
    elif workload == "sdot":
        x, y = on("xs"), on("ys")
        out = torch.empty((), device="cuda")
        call = lambda: torch.dot(x, y, out=out)
    else:
        sys.exit(f"no workload {workload}")

    def run(times):
        event = lambda: torch.cuda.Event(enable_timing=True)
        pairs = [(event(), event()) for _ in range(times)]
        for start, end in pairs:
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in pairs]

    return call, lambda: out.cpu().numpy(), run


call, result, run = {"mkl": mkl, "torch": torch}[library]()
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "check":
        call()
        np.save(os.path.join(folder, "out.npy"), np.asarray(result()))
        print("done", flush=True)
    else:
        print(" ".join(f"{max(t, 1e-3):.4f}" for t in run(int(line.split()[1]))), flush=True)
