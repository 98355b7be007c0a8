"""A fixed piece of work, timed beside what is measured: how fast the machine was just then.

A virtual machine's core slows by a third from one minute to the next while its neighbours work, and CPU time slows with
it: a lower clock, and a program on the other half of the same physical core that takes its share of the caches. Of
those for code, too. A network's step is short visits to many places of large libraries, and seems to feel that most; a
loop that stays in one place slows far less (`docs/decisions.md` has the figures). So this work visits many places
of NumPy: its loops of many operations and types, linear algebra, Fourier transforms, sorting, random numbers, and the
Python around them.

It is NumPy's and Python's alone: neither a change of the lab nor another torch moves it. It needs next to no memory,
and counts the time of its own thread, so that a pool that spins beside it is not mistaken for a slow machine. Changing
it makes every recorded multiple another unit, which `VERSION` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
VERSION = 2
ROUNDS = 6

_REAL, _INTEGER, _FLOAT = "bBhHiIqQefd", "bBhHiIqQ", "efd"
_ALL = "?" + _REAL + "FD"
_REDUCED = (
    (("add", "multiply", "maximum", "minimum"), _ALL),
    (("subtract", "floor_divide", "remainder"), _REAL),
    (("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd"), _INTEGER),
)
_PLAIN = (
    (("equal", "not_equal", "less", "less_equal", "greater", "logical_and", "logical_or", "logical_not"), _ALL),
    (("square", "negative", "absolute", "conjugate"), _REAL + "FD"),
    (("divide", "arctan2", "hypot", "copysign", "fmod", "logaddexp", "nextafter", "heaviside"), _FLOAT),
    (("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan"), _FLOAT),
    (("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "floor", "ceil", "rint", "trunc"), _FLOAT),
    (("isfinite", "isnan", "signbit", "sign", "reciprocal", "deg2rad", "spacing"), _FLOAT),
    (("exp", "log", "sqrt", "sin", "cos", "tanh", "isfinite"), "FD"),
)  # fmt: skip


def yardstick_s() -> float:
    """CPU seconds of this thread for the fixed work, now; some hundredths of a second."""
    calls = _calls()
    with np.errstate(all="ignore"):
        started = time.thread_time()
        for _ in range(ROUNDS):
            for function, arguments, options in calls:
                function(*arguments, **options)
        return time.thread_time() - started


@cache
def _calls() -> tuple[Call, ...]:
    """Functions of the tour, each followed by its share of the loops: none finds its code in place."""
    with np.errstate(all="ignore"):
        loops, tour = list(_loops()), list(_tour())
    share = -(-len(loops) // len(tour))
    return tuple(call for n, stop in enumerate(tour) for call in (stop, *loops[n * share : (n + 1) * share]))


def _loops() -> Iterator[Call]:
    """NumPy's element-wise operations, type by type, their sums along both axes, and casts."""
    for groups, reduced in ((_REDUCED, True), (_PLAIN, False)):
        for names, types in groups:
            for name in names:
                operation = getattr(np, name)
                for kind in types:
                    inputs = (np.ones(24, kind),) * operation.nin
                    yield operation, inputs, {"out": operation(*inputs)}
                    if reduced:
                        grid = np.ones((5, 6), kind)
                        yield operation.reduce, (grid,), {"axis": 0}
                        yield operation.accumulate, (grid,), {"axis": 1}
    for kind in "?" + _REAL:
        for other in _ALL:
            yield np.ones(24, kind).astype, (other,), {}


def _tour() -> Iterator[Call]:
    """Functions of many parts of NumPy on small arrays, most of them Python around compiled code."""
    random = np.random.default_rng(0)
    square, row, long = (
        random.standard_normal((12, 12)),
        random.standard_normal(12),
        random.standard_normal(40),
    )
    whole, both = random.integers(0, 40, 40), square + 1j * square
    positive = square @ square.T + 12 * np.eye(12)
    la, fft = np.linalg, np.fft
    work: list[tuple[Any, ...]] = [
        (la.svd, square), (la.qr, square), (la.eigh, positive), (la.eigvals, square), (la.cholesky, positive),
        (la.solve, positive, row), (la.inv, positive), (la.det, positive), (la.lstsq, square, row), (la.pinv, square),
        (la.norm, square), (la.matrix_rank, square), (la.svd, both), (la.eig, both),
        (np.sort, long), (np.argsort, whole), (np.unique, whole), (np.histogram, long), (np.partition, long, 5),
        (np.searchsorted, np.sort(long), row), (np.digitize, row, np.linspace(-1, 1, 9)), (np.bincount, whole),
        (np.isin, whole, whole[:5]), (np.union1d, whole, whole), (np.lexsort, (long, whole)), (np.nonzero, square > 0),
        (np.interp, row, np.sort(long), long), (np.convolve, long, row), (np.correlate, long, row),
        (np.einsum, "ij,jk->ik", square, square), (np.tensordot, square, square), (np.outer, row, row),
        (np.kron, square[:3, :3], square[:3, :3]), (np.cross, square[:, :3], square[:, 3:6]), (np.trace, square),
        (np.cumsum, long), (np.median, long), (np.percentile, long, 30), (np.quantile, square, 0.2), (np.std, square),
        (np.cov, square), (np.corrcoef, square), (np.diff, long), (np.gradient, long), (np.clip, square, -1, 1),
        (np.roll, long, 3), (np.rot90, square), (np.pad, square, 2), (np.tile, row, 3), (np.repeat, row, 3),
        (np.concatenate, (row, long)), (np.stack, (row, row)), (np.split, row, 3), (np.where, square > 0, square, 0),
        (np.meshgrid, row, row), (np.tril, square), (np.take, long, whole), (np.argmax, square), (np.round, square, 2),
        (np.polyfit, np.arange(12.0), row, 2), (np.polyval, row, long), (np.roots, row[:5]), (np.nan_to_num, square),
        (np.packbits, square > 0), (np.apply_along_axis, np.sum, 0, square), (np.array2string, row),
        (np.allclose, square, square), (np.broadcast_to, row, (3, 12)), (np.unravel_index, 7, (5, 6)),
        *((transform, np.ones(n)) for n in (12, 16, 17, 40) for transform in (fft.fft, fft.rfft, fft.ifft, fft.irfft)),
        (random.normal, 0, 1, 20), (random.gamma, 2, 1, 20), (random.beta, 2, 3, 20), (random.poisson, 3, 20),
        (random.binomial, 9, 0.3, 20), (random.exponential, 1, 20), (random.choice, 50, 5), (random.permutation, 30),
        (random.integers, 0, 9, 20), (random.standard_t, 3, 20), (random.vonmises, 0, 1, 20), (random.wald, 1, 2, 20),
        (random.multinomial, 9, (0.2, 0.8)), (random.dirichlet, (1, 2, 3)), (random.laplace, 0, 1, 20),
    ]  # fmt: skip
    for function, *arguments in work:
        yield function, tuple(arguments), {}
