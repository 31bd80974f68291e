#!/usr/bin/env python3
"""Independent implementations, in NumPy, of the programs in futhark/, skelcl/ and lift/ for which no results are published.

    python3 programs/reference.py [PATSAT]   compares `patsat eval` with them on the inputs in data/
    python3 programs/reference.py --write    writes inputs and results to data/

They are written from the descriptions of the algorithms, calculate with 64 bits, and are slow. A result may differ from them
by 1e-6 plus the relative error in the table at the end.
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent


# Futhark's text format.


def text(value):
    if isinstance(value, np.ndarray) and value.ndim > 0:
        inside = (",\n " if value.ndim > 1 else ", ").join(text(v) for v in value)
        return f"[{inside}]"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (np.floating, float)):
        return f"{float(value):.7g}f32"
    if isinstance(value, np.integer):
        return f"{value}{value.dtype.name.replace('uint', 'u').replace('int', 'i')}"
    return f"{value}i32"


def values(path):
    """The values in a file, one after the other; floats as 64 bits."""
    tokens = re.findall(r"[\[\]]|[^\s,\[\]]+", re.sub(r"--.*", "", path.read_text()))
    at = 0

    def scalar(token):
        if token in ("true", "false"):
            return token == "true"
        digits, kind = re.fullmatch(r"(.*?)((?:[fiu](?:8|16|32|64))?)", token).groups()
        if kind.startswith("f"):
            return float(np.float32(digits.replace("f32.", "")))
        return int(digits)

    def value():
        nonlocal at
        token = tokens[at]
        at += 1
        if token != "[":
            return scalar(token)
        elements = []
        while tokens[at] != "]":
            elements.append(value())
        at += 1
        return elements

    all_values = []
    while at < len(tokens):
        found = value()
        all_values.append(np.array(found) if isinstance(found, list) else found)
    return all_values


# Stencils: `at(xs, i, j)` is the element nearest to a place.


def at(xs, *place):
    return xs[tuple(min(max(i, 0), n - 1) for i, n in zip(place, xs.shape))]


def everywhere(shape, f):
    result = np.empty(shape)
    for place in np.ndindex(*shape):
        result[place] = f(*place)
    return result


def convolve(xs, weights):
    r = weights.shape[0] // 2
    offsets = [(a, b) for a in range(-r, r + 1) for b in range(-r, r + 1)]
    return everywhere(xs.shape, lambda i, j: sum(weights[a + r, b + r] * at(xs, i + a, j + b) for a, b in offsets))


GAUSS = np.array([[2, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]) / 159
SOBEL = np.array([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])


# Futhark's benchmarks.


def cfd(steps, areas, neighbours, nx, ny, nz):
    n = len(areas)
    normals = np.stack([nx, ny, nz], axis=-1)

    def parts(u):
        """Pressure, speed, speed of sound, and the matrix of fluxes: a row for each of the five variables."""
        rho, momentum, energy = u[0], u[1:4], u[4]
        v = momentum / rho
        p = 0.4 * (energy - 0.5 * rho * (v @ v))
        fluxes = np.vstack([momentum, np.outer(momentum, v) + p * np.eye(3), (energy + p) * v])
        return p, math.sqrt(v @ v), math.sqrt(1.4 * p / rho), fluxes

    far = np.array([1.4, 1.4 * 1.2, 0, 0, 1.4 * 0.5 * 1.2**2 + 1 / 0.4])
    far_fluxes = parts(far)[3]
    state = np.tile(far, (n, 1))
    for _ in range(steps):
        old = state
        factors = [0.5 / (math.sqrt(a) * (parts(u)[1] + parts(u)[2])) for u, a in zip(old, areas)]
        for stage in range(3):
            change = np.zeros((n, 5))
            for i in range(n):
                p, speed, sound, fluxes = parts(state[i])
                for face in range(4):
                    normal, j = normals[face, i], neighbours[face, i]
                    if j >= 0:
                        _, speed_j, sound_j, fluxes_j = parts(state[j])
                        smooth = -np.linalg.norm(normal) * 0.2 * 0.5 * (speed + speed_j + sound + sound_j)
                        change[i] += smooth * (state[i] - state[j]) + (fluxes + fluxes_j) @ (0.5 * normal)
                    elif j == -1:
                        change[i, 1:4] += p * normal
                    else:
                        change[i] += (far_fluxes + fluxes) @ (0.5 * normal)
            state = np.array([old[i] + factors[i] / (4 - stage) * change[i] for i in range(n)])
    return state[:, 0], state[:, 4], state[:, 1], state[:, 2], state[:, 3]


def hotspot(steps, temperature, power):
    rows, columns = temperature.shape
    height, width, thick = 0.016 / rows, 0.016 / columns, 0.0005
    cap = 0.5 * 1.75e6 * thick * width * height
    rx, ry = width / (2 * 100 * thick * height), height / (2 * 100 * thick * width)
    rz = thick / (100 * height * width)
    dt = 0.001 / (3e6 / (0.5 * thick * 1.75e6))
    for _ in range(steps):
        t = temperature

        def cell(i, j):
            vertical = (at(t, i + 1, j) + at(t, i - 1, j) - 2 * t[i, j]) / ry
            horizontal = (at(t, i, j + 1) + at(t, i, j - 1) - 2 * t[i, j]) / rx
            return t[i, j] + dt / cap * (power[i, j] + vertical + horizontal + (80 - t[i, j]) / rz)

        temperature = everywhere(t.shape, cell)
    return (temperature,)


def lavamd(alpha, counts, neighbours, v, x, y, z, charges):
    boxes, n = v.shape
    result = np.zeros((4, boxes, n))
    for b in range(boxes):
        for i in range(n):
            for other in [b, *neighbours[b, : counts[b]]]:
                for j in range(n):
                    a = np.array([x[b, i], y[b, i], z[b, i]])
                    c = np.array([x[other, j], y[other, j], z[other, j]])
                    u = math.exp(-2 * alpha**2 * (v[b, i] + v[other, j] - a @ c))
                    result[0, b, i] += charges[other, j] * u
                    result[1:, b, i] += charges[other, j] * 2 * u * (a - c)
    return tuple(result)


def nn(k, latitude, longitude, latitudes, longitudes):
    distances = np.hypot(latitudes - latitude, longitudes - longitude)
    nearest = np.argsort(distances, kind="stable")[:k]
    return distances[nearest], nearest


def pathfinder(grid):
    rows, columns = grid.shape
    best = {(0, j): grid[0, j] for j in range(columns)}
    for i in range(1, rows):
        for j in range(columns):
            best[i, j] = grid[i, j] + min(best[i - 1, k] for k in (j - 1, j, j + 1) if 0 <= k < columns)
    return (np.array([best[rows - 1, j] for j in range(columns)]),)


def srad(steps, rate, image):
    xs = np.exp(image / 255)
    for _ in range(steps):
        q0 = np.var(xs) / np.mean(xs) ** 2
        around = [(-1, 0), (1, 0), (0, -1), (0, 1)]
        d = [everywhere(xs.shape, lambda i, j: at(xs, i + a, j + b) - xs[i, j]) for a, b in around]
        g2 = sum(e**2 for e in d) / xs**2
        laplace = sum(d) / xs
        q = (0.5 * g2 - laplace**2 / 16) / (1 + 0.25 * laplace) ** 2
        c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
        south = everywhere(xs.shape, lambda i, j: at(c, i + 1, j))
        east = everywhere(xs.shape, lambda i, j: at(c, i, j + 1))
        xs = xs + 0.25 * rate * (c * d[0] + south * d[1] + c * d[2] + east * d[3])
    return (np.log(xs) * 255,)


def mandelbrot(width, height, limit, xmin, ymin, xmax, ymax):
    result = np.zeros((height, width), dtype=int)
    for i, j in np.ndindex(height, width):
        c = complex(xmin + j * (xmax - xmin) / width, ymin + i * (ymax - ymin) / height)
        z = c
        while result[i, j] < limit and abs(z) < 2:
            z = z * z + c
            result[i, j] += 1
    return (result,)


def crystal(size, scale, degree, time):
    def colour(i, j):
        x, y = (2 * j / size - 1) * scale, (2 * i / size - 1) * scale
        angles = [(k + 1) * math.pi / (1 + 0.005 * time**1.5) for k in range(degree)]
        v = sum((math.cos(math.cos(a) * x + math.sin(a) * y) + 1) / 2 for a in angles)
        v = v % 1 if int(v) % 2 == 0 else 1 - v % 1
        # A channel must not be so near to a whole number that an error of 32 bits changes it.
        assert all(abs(255 * c - round(255 * c)) > 1e-3 for c in (v, 0.4 + 0.6 * v))
        return 0xFF0000 + int(255 * (0.4 + 0.6 * v)) * 256 + int(255 * v)

    return (everywhere((size, size), colour).astype(int),)


def nbody(steps, dt, eps, x, y, z, masses, vx, vy, vz):
    p, v = np.stack([x, y, z], axis=1), np.stack([vx, vy, vz], axis=1)
    for _ in range(steps):
        d = p[None, :, :] - p[:, None, :]
        weights = masses / (np.sum(d**2, axis=2) + eps) ** 1.5
        v = v + dt * np.einsum("ij,ijk->ik", weights, d)
        p = p + dt * v
    return (*p.T, *v.T)


# SkelCL's.


def gaussian_blur(r, sigma, image):
    d = np.arange(-r, r + 1)
    weights = np.exp(-(d[:, None] ** 2 + d[None, :] ** 2) / (2 * sigma**2))
    return (convolve(image, weights / weights.sum()),)


def sobel(image):
    return (np.hypot(convolve(image, SOBEL), convolve(image, SOBEL.T)),)


def canny(low, high, image):
    blurred = convolve(image, GAUSS)
    gx, gy = convolve(blurred, SOBEL), convolve(blurred, SOBEL.T)
    size = np.hypot(gx, gy)
    # The angle of the gradient in steps of 45 degrees.
    sector = np.round(np.arctan2(gy, gx) / (math.pi / 4)).astype(int) % 4
    to = [(0, 1), (1, 1), (1, 0), (1, -1)]

    def thin(i, j):
        a, b = to[sector[i, j]]
        greatest = max(at(size, i + a, j + b), at(size, i - a, j - b))
        return size[i, j] if size[i, j] >= greatest else 0

    edges = everywhere(size.shape, thin)
    found = set(zip(*np.where(edges >= high)))
    todo = list(found)
    while todo:
        i, j = todo.pop()
        for place in [(i + a, j + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
            inside = all(0 <= k < n for k, n in zip(place, size.shape))
            if inside and place not in found and edges[place] >= low:
                found.add(place)
                todo.append(place)
    return (everywhere(size.shape, lambda i, j: (i, j) in found).astype(bool),)


def osem(g, ax, ay, az, bx, by, bz):
    starts, ends = np.stack([ax, ay, az], axis=-1), np.stack([bx, by, bz], axis=-1)
    image = np.ones((g, g, g))
    for subset in range(ax.shape[0]):
        correction = np.zeros_like(image)
        for a, b in zip(starts[subset], ends[subset]):
            # All parameters at which the line meets a border between voxels, in order: between two of them is one voxel.
            with np.errstate(divide="ignore", invalid="ignore"):
                cuts = ((np.arange(g + 1)[:, None] - a) / (b - a)).ravel()
            cuts = np.sort(np.concatenate([[0, 1], cuts[(cuts > 0) & (cuts < 1)]]))
            length = np.linalg.norm(b - a)
            parts = []
            for s, e in zip(cuts, cuts[1:]):
                x, y, z = np.floor(a + (s + e) / 2 * (b - a)).astype(int)
                parts.append(((z, y, x), (e - s) * length))
            total = sum(part * image[voxel] for voxel, part in parts)
            for voxel, part in parts:
                correction[voxel] += part / total
        image = np.where(correction > 0, image * correction, image)
    return (image.ravel(),)


def fdtd(steps, frequency, material):
    n, m = material.shape
    e, hx, hy = np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, m))
    for step in range(steps):
        hx[:-1, :] -= np.diff(e, axis=0)
        hy[:, :-1] += np.diff(e, axis=1)
        curl = hy - hx
        curl[:, 1:] -= hy[:, :-1]
        curl[1:, :] += hx[:-1, :]
        e += material * curl
        e[n // 2, m // 2] += math.sin(frequency * step)
    return e, hx, hy


def pi(n, seed):
    def random(i):
        state = (i * 747796405 + 2891336453) % 2**32
        word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 % 2**32
        return (word >> 22) ^ word

    first = random(seed)
    points = [[random((first + 2 * i + k) % 2**32) // 256 / 2**24 for k in (0, 1)] for i in range(n)]
    return (4.0 * sum(x**2 + y**2 < 1 for x, y in points) / n,)


# Lift's.


def star(xs, r):
    """The mean of an element and those up to `r` away along an axis."""
    axes = np.eye(xs.ndim, dtype=int)
    offsets = [d * axis for axis in axes for d in range(-r, r + 1) if d != 0]

    def mean(*place):
        return (xs[place] + sum(at(xs, *(np.array(place) + o)) for o in offsets)) / (1 + len(offsets))

    return (everywhere(xs.shape, mean),)


def gradient(xs):
    def inverse(i, j):
        around = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        return (1e-4 + sum((xs[i, j] - at(xs, *p)) ** 2 for p in around)) ** -0.5

    return (everywhere(xs.shape, inverse),)


def acoustic(steps, absorption, before, now):
    room = np.pad(np.ones(now.shape), 1)
    axes = [(a, d) for a in range(3) for d in (-1, 1)]

    def around(padded):
        return sum(np.roll(padded, d, axis=a) for a, d in axes)[1:-1, 1:-1, 1:-1]

    k = around(room)
    loss = (6 - k) * absorption / math.sqrt(3) / 2
    for _ in range(steps):
        after = ((2 - k / 3) * now + around(np.pad(now, 1)) / 3 - (1 - loss) * before) / (1 + loss)
        before, now = now, after
    return before, now


def hotspot3d(steps, temperature, power):
    layers, n, m = temperature.shape
    thick, dx, dy = 0.0005, 0.016 / n, 0.016 / m
    dz = thick / layers
    cap = 0.5 * 1.75e6 * thick * dx * dy
    rx, ry, rz = dy / (2 * 100 * thick * dx), dx / (2 * 100 * thick * dy), dz / (100 * dx * dy)
    rate = 0.001 / (3e6 / (0.5 * thick * 1.75e6)) / cap
    for _ in range(steps):
        t = temperature

        def cell(l, i, j):
            c = t[l, i, j]
            flow = (at(t, l, i, j + 1) + at(t, l, i, j - 1) - 2 * c) / rx
            flow += (at(t, l, i + 1, j) + at(t, l, i - 1, j) - 2 * c) / ry
            flow += (at(t, l + 1, i, j) + at(t, l - 1, i, j) - 2 * c + 80 - c) / rz
            return c + rate * (flow + power[l, i, j])

        temperature = everywhere(t.shape, cell)
    return (temperature,)


# Small inputs, from a generator of random numbers.


def real(low, high, *shape):
    return lambda rng: np.round(rng.uniform(low, high, shape), 3)


def whole(low, high, *shape):
    return lambda rng: rng.integers(low, high, shape, dtype=np.int32)


def byte(*shape):
    return lambda rng: rng.integers(0, 256, shape, dtype=np.uint8)


def point(high, *shape):
    return [real(0, high, *shape) for _ in range(3)]


# Program, function, inputs, relative error.
PROGRAMS = [
    ("futhark/cfd", cfd, [2, real(0.5, 1, 12), whole(-2, 12, 4, 12), *[real(-0.05, 0.05, 4, 12)] * 3], 1e-5),
    ("futhark/hotspot", hotspot, [20, real(-1000, 1000, 7, 9), real(0, 100, 7, 9)], 3e-6),
    (
        "futhark/lavamd",
        lavamd,
        [0.5, whole(2, 27, 4), whole(0, 4, 4, 26), *[real(0.1, 1, 4, 3)] * 4, real(0.1, 1, 4, 3)],
        1e-5,
    ),
    ("futhark/nn", nn, [4, 30.0, 90.0, real(7, 70, 40), real(0, 360, 40)], 1e-5),
    ("futhark/pathfinder", pathfinder, [whole(0, 10, 9, 20)], 0),
    ("futhark/srad", srad, [3, 0.5, real(0, 255, 8, 9)], 1e-4),
    ("futhark/mandelbrot", mandelbrot, [20, 14, 60, -2.23, -1.15, 0.83, 1.15], 0),
    ("futhark/crystal", crystal, [9, 30.0, 5, 1.0], 0),
    (
        "futhark/nbody",
        nbody,
        [3, 0.1, 50.0, *[real(-100, 100, 16)] * 3, real(1, 50, 16), *[real(-1, 1, 16)] * 3],
        1e-5,
    ),
    ("skelcl/gaussian_blur", gaussian_blur, [2, 1.5, real(0, 255, 7, 9)], 1e-5),
    ("skelcl/sobel", sobel, [byte(8, 9)], 1e-5),
    ("skelcl/canny", canny, [40.0, 80.0, real(0, 255, 16, 14)], 0),
    ("skelcl/osem", osem, [4, *point(4, 2, 12), *point(4, 2, 12)], 1e-4),
    ("skelcl/fdtd", fdtd, [6, 0.2, real(0.1, 0.25, 7, 8)], 1e-5),
    ("skelcl/pi", pi, [1000, np.uint32(1)], 1e-6),
    ("lift/jacobi2d5", lambda xs: star(xs, 1), [real(0, 1, 7, 8)], 1e-5),
    ("lift/jacobi2d9", lambda xs: (convolve(xs, np.full((3, 3), 1 / 9)),), [real(0, 1, 7, 8)], 1e-5),
    ("lift/jacobi3d7", lambda xs: star(xs, 1), [real(0, 1, 4, 5, 6)], 1e-5),
    ("lift/jacobi3d13", lambda xs: star(xs, 2), [real(0, 1, 4, 5, 6)], 1e-5),
    ("lift/gaussian5x5", lambda xs: (convolve(xs, GAUSS),), [real(0, 255, 7, 8)], 1e-5),
    ("lift/gradient", gradient, [real(0, 1, 7, 8)], 1e-5),
    ("lift/acoustic", acoustic, [3, 0.1, real(-1, 1, 4, 5, 6), real(-1, 1, 4, 5, 6)], 1e-5),
    ("lift/hotspot3d", hotspot3d, [20, real(-1000, 1000, 3, 5, 6), real(0, 100, 3, 5, 6)], 3e-6),
]


def write():
    for number, (name, function, inputs, _) in enumerate(PROGRAMS):
        folder, program = name.split("/")
        rng = np.random.default_rng(number)
        data = HERE / folder / "data"
        data.mkdir(exist_ok=True)
        given = [i(rng) if callable(i) else i for i in inputs]
        (data / f"{program}.in").write_text("".join(text(v) + "\n" for v in given))
        results = function(*values(data / f"{program}.in"))
        results = [r.astype(np.int32) if getattr(r, "dtype", None) == np.int64 else r for r in results]
        (data / f"{program}.out").write_text("".join(text(v) + "\n" for v in results))


def compare(patsat):
    wrong = 0
    for name, function, _, relative in PROGRAMS:
        folder, program = name.split("/")
        given = HERE / folder / "data" / f"{program}.in"
        expected = function(*values(given))
        with tempfile.TemporaryDirectory() as place:
            out = pathlib.Path(place) / "result.out"
            command = [patsat, "eval", HERE / f"{name}.pat", "--input-futhark", given, "--output", out]
            ran = subprocess.run(command, capture_output=True, text=True)
            found = values(out) if ran.returncode == 0 else []
        if ran.returncode != 0:
            said = ran.stderr.strip()
        elif len(found) != len(expected) or any(np.shape(a) != np.shape(b) for a, b in zip(found, expected)):
            said = f"shapes {[np.shape(a) for a in found]}, not {[np.shape(a) for a in expected]}"
        else:
            off = [np.abs(np.subtract(a, b, dtype=float)) for a, b in zip(found, expected)]
            allowed = [1e-6 + relative * np.abs(b) for b in expected]
            most = max(float(np.max(o / a)) for o, a in zip(off, allowed))
            said = "right" if most <= 1 else f"differs by {most:.3g} times what is allowed"
        wrong += said != "right"
        print(f"{name}: {said}")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        sys.exit(compare(sys.argv[1] if len(sys.argv) > 1 else "patsat") > 0)
