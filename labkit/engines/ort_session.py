"""What an ONNX Runtime session on the CPU may be told: the knobs of `ort-cpu` (`docs/knobs.md` says what each does).

It knows ONNX Runtime's settings by name, and no stage: a graph in, a session out, on the CPU provider alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import SpecError, UnavailableError

if TYPE_CHECKING:
    import onnxruntime as ort

    from labkit.spec import Option, StageName

PROVIDER = "CPUExecutionProvider"
_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}
KNOBS: Mapping[str, tuple[Option, ...]] = {
    "io_binding": (True, False),
    "graph_optimization_level": tuple(_LEVELS),
    "execution": ("sequential", "parallel"),
    "arena": (True, False),
    "arena_strategy": ("power-of-two", "as-requested"),
    "memory_pattern": (True, False),
    "memory_reuse": (True, False),
    "prepacking": (True, False),
    "spinning": (True, False),
    "inter_op_spinning": (True, False),
    "huge_pages": (True, False),
}
"""Each with the values it may take, the default first."""
_AS_REQUESTED = 1  # ONNX Runtime's number for the arena that grows by what is asked for


def complete(given: Mapping[str, Option]) -> dict[str, Option]:
    """All knobs: those of a stage's options that are given, the others at their defaults."""
    return {name: given.get(name, values[0]) for name, values in KNOBS.items()}


def check_knobs(stage: StageName, given: Mapping[str, Option]) -> None:
    """SpecError for knobs that would turn nothing: a run must not be filed under what it did not do."""
    knobs = complete(given)
    if "io_binding" in given and stage != "gpt":
        raise SpecError(f"option 'io_binding' is the gpt's: a {stage} has no cache to bind; leave it out.")
    if "io_binding" in given and given.get("graph") == "portable":
        raise SpecError(
            "option 'io_binding' is the fused graph's: the portable one is given its cache anew each step."
        )
    if knobs["arena_strategy"] == "as-requested" and not knobs["arena"]:
        raise SpecError(
            "option 'arena_strategy' turns nothing without the arena; leave it out or set arena: true."
        )
    if not knobs["inter_op_spinning"] and knobs["execution"] == "sequential":
        raise SpecError(
            "option 'inter_op_spinning' turns nothing in sequential execution; leave it out or set execution: parallel."
        )
    if knobs["execution"] == "parallel" and given.get("memory_pattern"):
        raise SpecError(
            "option 'memory_pattern' needs sequential execution; leave one of memory_pattern and execution out."
        )


def open_session(model: Path, threads: int, knobs: Mapping[str, Option]) -> ort.InferenceSession:
    """A session on the CPU provider alone; `knobs` are complete. `io_binding` and `huge_pages` are its user's."""
    import onnxruntime as ort

    parallel = knobs["execution"] == "parallel"
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = threads if parallel else 1
    settings.execution_mode = getattr(ort.ExecutionMode, "ORT_PARALLEL" if parallel else "ORT_SEQUENTIAL")
    settings.log_severity_level = 3
    settings.graph_optimization_level = getattr(
        ort.GraphOptimizationLevel, _LEVELS[str(knobs["graph_optimization_level"])]
    )
    settings.enable_cpu_mem_arena = bool(knobs["arena"])
    settings.enable_mem_pattern = bool(knobs["memory_pattern"]) and not parallel
    settings.enable_mem_reuse = bool(knobs["memory_reuse"])
    entries = {
        "session.disable_prepacking": not knobs["prepacking"],
        "session.intra_op.allow_spinning": knobs["spinning"],
        "session.inter_op.allow_spinning": knobs["inter_op_spinning"],
        "session.record_ep_graph_assignment_info": True,
    }
    if knobs["arena_strategy"] == "as-requested":
        _register_arena()
        entries["session.use_env_allocators"] = True
    for name, value in entries.items():
        settings.add_session_config_entry(name, str(int(bool(value))))
    session = ort.InferenceSession(str(model), settings, providers=[PROVIDER])
    if PROVIDER not in session.get_providers():
        raise UnavailableError(
            f"ONNX Runtime opened {model} with {session.get_providers()} and without {PROVIDER}.",
            "Reinstall onnxruntime.",
        )
    return session


def _register_arena() -> None:
    """An arena that grows by what is asked for, shared by the sessions of this process that ask for it.

    A session's own arena cannot be told how to grow; only one that is registered with the process can.
    """
    import onnxruntime as ort

    place = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    growth = {
        "max_mem": 0,
        "arena_extend_strategy": _AS_REQUESTED,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
    }
    ort.create_and_register_allocator(place, ort.OrtArenaCfg(growth))
