"""Tests of the Python package, on PoCL."""

import doctest
import json
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest

import patsat
import patsat.patterns as pt

PROGRAMS = Path(__file__).parents[2] / "programs"
DEVICE = "Portable"


def compiled(text, **options):
    return patsat.compile(text, device=DEVICE, store=False, **options)


@pytest.mark.parametrize("module", [patsat, pt])
def test_examples_in_docstrings(module):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(module, extraglobs={"patsat": patsat, "np": np}, optionflags=flags)
    assert result.attempted > 2 and result.failed == 0


def test_examples_in_the_readme():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert len(blocks) == 2 and isinstance(names["ys"], patsat.Array)


def test_the_notebook():
    notebook = json.loads((Path(__file__).parents[1] / "example.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert len(cells) > 5 and isinstance(names["found"], patsat.Optimized)


def test_results_are_right():
    rng = np.random.default_rng(1)
    a, b = rng.random((17, 33), np.float32), rng.random((33, 9), np.float32)
    matmul = patsat.compile(PROGRAMS / "matmul.pat", device=DEVICE, store=False)
    assert matmul.name == "matmul" and matmul.sizes == ("n", "m", "k")
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-5)
    assert matmul.last["sizes"] == {"n": 17, "m": 9, "k": 33} and matmul.last["device_us"] > 0
    # Another size is compiled anew, and the first one is still right.
    np.testing.assert_allclose(matmul(a[:3], b), a[:3] @ b, rtol=1e-5)
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-5)
    np.testing.assert_allclose(matmul.interpret(a, b), a @ b, rtol=1e-5)


def test_arrays_stay_on_the_device():
    twice = compiled("entry twice [n] (xs: [n]i32) : [n]i32 = map (* 2) xs")
    first = twice(np.arange(5, dtype=np.int32))
    second = twice(first)
    assert isinstance(second, patsat.Array) and second.shape == (5,) and second.nbytes == 20
    # The argument of a call is not changed by it.
    assert list(second) == [0, 4, 8, 12, 16] and list(first) == [0, 2, 4, 6, 8]
    assert second[3] == 12 and len(second) == 5 and second.dtype == np.int32
    # Results of one program are arguments of another, also as scalars.
    total = compiled("entry total [n] (xs: [n]i32) : i32 = reduce (+) 0 xs")(second)
    assert int(total) == 40 and total.shape == ()
    shift = compiled("entry shift [n] (by: i32) (xs: [n]i32) : [n]i32 = map (+ by) xs")
    assert list(shift(total, first)) == [40, 42, 44, 46, 48]


def test_a_search_in_a_call_uses_its_arrays():
    xs = patsat.put(np.arange(1000, dtype=np.float32), DEVICE)
    pick = compiled("entry pick [n] (is: [n]i32) (xs: [n]f32) : [n]f32 = map (\\i -> xs[i]) is", budget=2)
    order = patsat.put(np.arange(999, -1, -1, dtype=np.int32), DEVICE)
    assert list(pick(order, xs)[:3]) == [999, 998, 997]


def test_a_device_is_opened_once():
    # The first device, by another name.
    xs = patsat.put(np.ones(3, np.float32))
    number = next(d.index for d in patsat.devices() if "Portable" in d.platform)
    assert patsat._opened(f"#{number}") is patsat._opened(DEVICE)
    scale = compiled("entry scale [n] (a: f32) (xs: [n]f32) : [n]f32 = map (* a) xs")
    ours = patsat.put(np.ones(3, np.float32), f"#{number}")
    for a in (3, 3.0, np.float64(3), np.float32(3), np.int64(3)):
        assert list(scale(a, ours)) == [3, 3, 3]
    assert np.isinf(scale(float("inf"), ours)[0])
    # Arrays of another device are refused.
    raw = patsat._patsat.Device(f"#{number}").put("f32", [3], xs.numpy().tobytes())
    with pytest.raises(ValueError, match="on another device"):
        scale(3, patsat.Array(raw))
    assert list(scale.interpret(3, patsat.Array(raw))) == [3, 3, 3]
    assert np.asarray(ours, dtype=np.float64).dtype == np.float64


def test_a_search_and_calls_at_the_same_time():
    asum = compiled("entry asum [n] (xs: [n]f32) : f32 = reduce (+) 0 (map abs xs)")
    xs = np.full(5000, -1, np.float32)
    calls = []
    asum.optimize(n=5000, budget=3, progress=lambda event: calls.append(asum.submit(xs)))
    assert calls and {float(call.result(timeout=120)) for call in calls} == {5000}


def test_tuples_scalars_and_sizes():
    text = "entry f [n] (k: i64) (a: f32) (b: bool) (xs: [n]f32) : ([k]f32, f32) =\n"
    text += "  (map (\\i -> a * f32.i64 i) (iota k), if b then reduce max 0 xs else a)"
    f = compiled(text)
    line, most = f(3, 0.5, True, np.array([1, 7, 2], np.float32))
    assert list(line) == [0, 0.5, 1] and float(most) == 7
    ones = compiled("entry ones [n] (a: f32) : [n]f32 = replicate n a")
    assert list(ones(2.0, n=4)) == [2, 2, 2, 2]
    assert ones(2.0, n=0).shape == (0,)


def test_calls_in_another_thread():
    square = compiled("entry square [n] (xs: [n]f32) : [n]f32 = map (\\x -> x * x) xs")
    futures = [square.submit(np.full(10, i, np.float32)) for i in range(20)]
    assert not wait(futures, 120).not_done
    assert [float(f.result()[0]) for f in futures] == [i * i for i in range(20)]


def test_search():
    events = []
    asum = patsat.compile(PROGRAMS / "asum.pat", device=DEVICE, store=False)
    found = asum.optimize(n=10_000, budget=3, progress=events.append)
    assert found.median_us > 0 and found.sizes == {"n": 10_000} and "kernel" in found.kernels
    assert {e["type"] for e in events} >= {"phase", "candidate"}
    assert "<table>" in found._repr_html_() and found.all["program"].endswith("asum.pat")
    xs = np.linspace(-1, 1, 10_000, dtype=np.float32)
    assert float(asum(xs)) == pytest.approx(np.abs(xs).sum(), rel=1e-5)
    assert asum.last["kernels"] == found.kernels


def test_the_store_is_used(tmp_path):
    store = tmp_path / "store.sqlite"
    text = "entry scale [n] (xs: [n]f32) : [n]f32 = map (* 3) xs"
    found = patsat.compile(text, device=DEVICE, store=store).optimize(n=1000, budget=2)
    again = patsat.compile(text, device=DEVICE, store=store)
    again(np.ones(1000, np.float32))
    assert again.last["kernels"] == found.kernels


def test_predictions_need_no_device():
    found = patsat.compile(PROGRAMS / "dot.pat", device="none", store=False).optimize(n=1 << 20)
    assert found.median_us is None and found.time_us == found.predicted_us > 0
    dot = patsat.compile(PROGRAMS / "dot.pat", device="none", store=False)
    with pytest.raises(ValueError, match="compiled for no device"):
        dot(np.ones(2, np.float32), np.ones(2, np.float32))


def test_errors():
    with pytest.raises(patsat.PatsatError, match="nothing is called") as e:
        compiled("entry f (x: f32) = y")
    assert e.value.code == "E0201" and e.value.diagnostics[0].labels[0]["line"] == 1
    f = compiled("entry f [n] (xs: [n]f32) (ys: [n]f32) : [n]f32 = map2 (+) xs ys")
    ones = np.ones(4, np.float32)
    for arguments, code in [
        ((ones,), "E0503"),
        ((ones, np.ones(5, np.float32)), "E0503"),
        ((ones, np.ones((4, 1), np.float32)), "E0503"),
        ((ones, np.ones(4, np.float64)), "E0504"),
        ((ones, patsat.put(np.ones(4, np.float64), DEVICE)), "E0504"),
        ((ones, 1.0), "E0503"),
    ]:
        with pytest.raises(patsat.PatsatError) as e:
            f(*arguments)
        assert e.value.code == code, e.value
    with pytest.raises(TypeError, match="complex128"):
        f(ones, np.ones(4, complex))
    with pytest.raises(patsat.PatsatError, match="no device matches"):
        patsat.put(ones, "no such device")
    # An index that the data decide, outside its array.
    pick = compiled("entry pick [n][m] (xs: [n]f32) (is: [m]i32) : [m]f32 = map (\\i -> xs[i]) is")
    with pytest.raises(patsat.PatsatError, match="outside an array") as e:
        pick(ones, np.array([1, 9], np.int32))
    assert e.value.code == "E0505"
    assert list(pick(ones, np.array([1, 3], np.int32))) == [1, 1]


def test_an_exception_in_progress_ends_the_search():
    asum = patsat.compile(PROGRAMS / "asum.pat", device=DEVICE, store=False)

    def stop(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        asum.optimize(n=1000, progress=stop)


def test_traced_programs():
    @patsat.entry(device=DEVICE, store=False)
    def softmax(rows: pt.f32["n", "m"]):
        """The softmax of each row."""

        def row(xs):
            top = pt.reduce(pt.max, "f32.lowest", xs)
            es = pt.map(lambda x: pt.exp(x - top), xs)
            return pt.map(lambda e: e / pt.reduce(pt.add, 0, es), es)

        return pt.map(row, rows)

    # What is used twice stands in a `let`, outside the functions that do not change it.
    assert softmax.source.count("exp") == 1 and softmax.source.count("reduce") == 2
    assert softmax.__doc__ == "The softmax of each row."
    xs = np.random.default_rng(2).standard_normal((5, 40)).astype(np.float32)
    es = np.exp(xs - xs.max(1, keepdims=True))
    np.testing.assert_allclose(softmax(xs), es / es.sum(1, keepdims=True), rtol=1e-5)

    @patsat.entry(device=DEVICE, store=False)
    def clipped(a: pt.f32, xs: pt.f32["n"]):
        return pt.map(lambda x: pt.where((x > a) | (x < -a), a - (x - 1) * 2, abs(-x)), xs)

    xs = np.array([-3, -1, 0, 1, 3], np.float32)
    want = np.where((xs > 2) | (xs < -2), 2 - (xs - 1) * 2, np.abs(xs))
    np.testing.assert_array_equal(clipped(2.0, xs), want)

    @patsat.entry(device=DEVICE, store=False)
    def pairs(xs: pt.f32["n"]):
        best = pt.reduce(lambda a, b: (pt.min(pt.fst(a), pt.fst(b)), pt.max(pt.snd(a), pt.snd(b))),
                         ("f32.inf", "-f32.inf"), pt.map(lambda x: (x, x), xs))
        return (pt.fst(best), pt.snd(best), xs[0])

    assert [float(x) for x in pairs(xs)] == [-3, 3, -3]
    with pytest.raises(TypeError, match="needs a type"):
        patsat.entry(lambda xs: xs)
    with pytest.raises(TypeError, match="known only when the program runs"):
        pt.trace(lambda_with_if)


def lambda_with_if(xs: pt.f32["n"]):
    return pt.map(lambda x: x if x > 0 else 0, xs)


def test_ctrl_c_of_a_search():
    code = (
        "import os, signal, threading, patsat\n"
        "p = patsat.compile('entry f [n] (xs: [n]f32) = reduce (+) 0 xs', device='Portable', store=False)\n"
        "threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    p.optimize(n=1 << 22, budget=10000)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "stopped\n", ran.stderr
