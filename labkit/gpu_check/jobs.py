"""What the check and its worker hand each other: a job in a file, and lines of JSON back. It loads nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.gpu_check.cases import Case, Work

MARK = "GPU_CHECK "  # marks our lines among what libraries print


@dataclass(frozen=True)
class Job:
    """`case` None asks for the CPU's answers, written to `reference`."""

    case: Case | None
    voice: Path
    device: str
    threads: int
    work: Work
    reference: Path
    spawned_at: float

    @classmethod
    def read(cls, path: Path) -> Job:
        values = json.loads(path.read_text(encoding="utf-8"))
        case = values["case"]
        return cls(
            case=None if case is None else Case(**{**case, "batches": tuple(case["batches"])}),
            voice=Path(values["voice"]),
            work=Work(**values["work"]),
            reference=Path(values["reference"]),
            **{name: values[name] for name in ("device", "threads", "spawned_at")},
        )

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def reference_file(self, batch: int) -> Path:
        """Where the CPU's answers at a batch size lie."""
        return self.reference.with_name(f"{self.reference.name}-x{batch}.npz")

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), default=str), encoding="utf-8")


def tell(kind: str, **values: Any) -> None:
    """One line up to the parent."""
    print(MARK + json.dumps({"kind": kind, **values}), flush=True)
