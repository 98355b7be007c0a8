"""How fast a CUDA device moves bytes over buffers of a given size: the roof of a decode step there.

Two kernels that must touch every byte once: a copy (bytes read and bytes written both count) and a matrix-vector
product, which is what a decode step is made of. Each is recorded as a CUDA graph of many launches, so that the time
to launch does not count, and the best round of the better kernel is the answer. Buffers below the size of the L2
cache stay in it, as the weights of a network of that size do.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

_ROUNDS = 5
_BYTES_A_ROUND = 2 * 2**30  # launches enough that a round takes about half a millisecond on the fastest cards
_MIN_BYTES = 2**20
_COLUMNS = 1024


def device_bandwidth(size_bytes: int, device: torch.device) -> tuple[float, int]:
    """(bytes per second, bytes of the buffer) on a CUDA device."""
    rows = max(size_bytes, _MIN_BYTES) // 4 // _COLUMNS
    matrix = torch.ones(rows, _COLUMNS, device=device)
    size = matrix.nbytes
    target = torch.empty_like(matrix)
    vector = torch.ones(_COLUMNS, device=device)
    result = torch.empty(rows, device=device)
    launches = max(4, _BYTES_A_ROUND // size)
    copied = _best_seconds(lambda: target.copy_(matrix), launches)
    multiplied = _best_seconds(lambda: torch.mv(matrix, vector, out=result), launches)
    return max(2 * size / copied, size / multiplied), size


def _best_seconds(kernel: Callable[[], object], launches: int) -> float:
    """Seconds of one launch in the best round."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        kernel()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            kernel()
    graph.replay()
    seconds = []
    for _ in range(_ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1000 / launches)
    return min(seconds)
