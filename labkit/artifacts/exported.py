"""What was exported, by its manifests, and tables of it. It knows nothing of how a graph is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Exported:
    """One graph: the stage, or `encoder`; its folder; what its manifest says."""

    name: str
    folder: Path
    manifest: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        return sum(int(file["size_bytes"]) for file in self.manifest["files"].values())

    @property
    def worst_difference(self) -> str:
        """To fp32 in any case, in words: the largest absolute one, the share of equal codes, or for fp8 the cosine."""
        details = self.manifest["details"]
        if "parity" not in details:
            recorded = details["against_fp32_on_recorded_inputs"].values()
            return f"cosine {min(figure['least_cosine'] for figure in recorded):.4f}"
        if "equal" in details["parity"][0]:
            return f"{min(figure['equal'] for figure in details['parity']):.1%} of codes equal"
        return f"{max(figure['max_abs'] for figure in details['parity']):.1e}"


def export_table(exports: Sequence[Exported]) -> pd.DataFrame:
    """One row for each graph: what people want to know of it at a glance."""
    import pandas as pd

    def row(each: Exported) -> dict[str, Any]:
        graph, details = each.manifest["graph"], each.manifest["details"]
        kept = [f"{why}: {len(nodes)}" for why, nodes in details.get("kept_in_fp32", {}).items()]
        return {
            "graph": each.folder.parent.name,
            "part": each.name,
            "MB": each.size_bytes / 1e6,
            "nodes": sum(graph["operators"].values()),
            "opset": graph["opsets"]["ai.onnx"],
            "export, s": each.manifest["seconds"]["export"],
            "worst difference to fp32": each.worst_difference,
            "nodes kept in fp32": ", ".join(kept),
        }

    return pd.DataFrame([row(each) for each in exports])


def parity_table(exports: Sequence[Exported]) -> pd.DataFrame:
    """One row for each graph, case and output: how far it is from torch in fp32."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"graph": each.folder.parent.name, "stage": each.name, **figure}
            for each in exports
            for figure in each.manifest["details"].get("parity", ())
        ]
    )


def operator_table(exports: Mapping[str, Exported]) -> pd.DataFrame:
    """How often each operator occurs in each graph, the most frequent first; a column for each name given."""
    import pandas as pd

    counts = {name: each.manifest["graph"]["operators"] for name, each in exports.items()}
    table = pd.DataFrame(counts).fillna(0).astype(int)
    return table.loc[table.sum(axis=1).sort_values(ascending=False, kind="stable").index]
