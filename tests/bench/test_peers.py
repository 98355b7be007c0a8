from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from labkit.bench import peers, render_peers
from labkit.bench.chart import peers_chart, save_chart
from labkit.bench.documents import run_documents
from labkit.bench.files import Keeper
from labkit.bench.targets import peer_targets
from labkit.errors import SpecError, StoreError, UserError
from labkit.results.store import Store
from labkit.voices import Voice


def row(cpu_s: float, base: str | None, ratio: float | None, **changes: Any) -> dict[str, Any]:
    times = {"network_cpu_s": [cpu_s], "network_wall_s": [cpu_s]}
    speedup = {"value": ratio, "low": (ratio or 0) * 0.9, "high": (ratio or 0) * 1.1, "rounds": 2}
    return {
        "network_cpu_s": cpu_s, "network_cpu_min_s": cpu_s, "network_wall_s": cpu_s, "network_wall_min_s": cpu_s,
        "load_s": 1.0, "build_s": 2.0, "compile_s": 3.0, "rss_run_peak_bytes": 350_000_000,
        "size_on_disk_bytes": 190_000_000, "roofline_share": 0.6, "bandwidth_bytes_per_s": 3e10, "base": base,
        "rounds": [times, times],
        "roofline_impossible": False, "speedup": speedup if ratio else None,
        **changes,
    }  # fmt: skip


def figures() -> dict[str, Any]:
    gone = {"status": "unavailable", "reason": "llama.cpp cannot run. Install it: labkit[peers]"}
    broken = {"status": "failed", "reason": "the artifact is damaged"}
    sound = row(0.1, "upstream", 3.0)
    sound["rounds"] = [
        {**times, "decoder_cpu_s": [0.06], "vocoder_cpu_s": [0.04]} for times in sound["rounds"]
    ]
    both = {"takes": 1, "rounds": 2, "clock": "network_cpu_s"}
    races = {
        "step": {
            **both, "length": 300,
            "arms": {"upstream": row(0.09, "upstream", 1.0), "ort-fp32": row(0.05, "upstream", 1.8),
                     "ort-int8-dynamic": row(0.02, "upstream", 4.2), "ort-int4-rtn": broken, "llama.cpp-q8_0": gone},
        },
        "threads": {
            **both, "clock": "network_wall_s", "length": 300,
            "arms": {"ort-fp32": row(0.05, None, None), "ort-fp32, 2 threads": row(0.03, "ort-fp32", 1.6)},
        },
        "sound": {**both, "length": 234, "arms": {"torch-bf16": sound}},
    }  # fmt: skip
    return {"voice": "random", "machine": "m", "races": races, "targets": peer_targets(races)}


def test_targets_are_met_missed_or_not_measured() -> None:
    outcome = {target["name"]: target["met"] for target in figures()["targets"]}
    assert outcome["ort-fp32 step against upstream"] is True
    assert outcome["ort-fp32 step, share of the roofline"] is False
    assert outcome["best INT8 step against upstream"] is False
    assert outcome["best INT4 step against upstream"] is None
    assert outcome["best decoder and vocoder against upstream"] is True
    assert outcome["two threads against one, best of ONNX Runtime's"] is True
    assert outcome["INT8 GPT: peak RSS, MB"] is True


def test_the_tables_show_figures_and_reasons() -> None:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render_peers(figures()))
    text = console.export_text()
    assert "4.20 [3.78, 4.62]" in text and "60 %" in text and "5.0" in text
    assert "labkit[peers]" in text and "the artifact is damaged" in text and "missed" in text


@pytest.mark.parametrize(("width", "loading"), [(80, False), (110, True)])
def test_no_figure_is_cut_off_on_a_narrow_terminal(width: int, loading: bool) -> None:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render_peers(figures(), width))
    text = console.export_text()
    assert "…" not in text and ("load s" in text) == loading and "4.20 [3.78, 4.62]" in text


def test_each_recipe_has_a_document_for_each_race_and_thread_count(tiny_voice: Voice, tmp_path: Path) -> None:
    found = figures()
    documents = {
        name: list(run_documents(name, race, tiny_voice, "random")) for name, race in found["races"].items()
    }
    steps = {document.spec.recipe.name: document for document in documents["step"]}
    assert set(steps) == {
        "upstream",
        "ort-fp32",
        "ort-int8-dynamic",
        "ort-int4-rtn",
    }  # llama.cpp is no recipe
    assert steps["ort-int4-rtn"].status == "failed" and steps["ort-int4-rtn"].failure is not None
    assert steps["ort-fp32"].measures.values["rss_peak_bytes"] == 350_000_000
    assert [sample.series["step_cpu_s"] for sample in steps["ort-fp32"].samples] == [[0.05], [0.05]]
    assert [document.spec.threads for document in documents["threads"]] == [1, 2]
    assert documents["sound"][0].samples[0].values["decoder_cpu_s"] == 0.06
    works = [document.work_hash for each in documents.values() for document in each]
    assert len(set(works)) == len(works)


def test_the_keeper_writes_documents_as_races_end_and_figures_at_last(
    tiny_voice: Voice, tmp_path: Path
) -> None:
    found, store = figures(), Store(tmp_path / "results")
    keeper = Keeper(store, str(tiny_voice.folder), tmp_path / "out")
    keeper.keep("step", found["races"]["step"])
    assert {document.sweep for document in store.documents()} == {"bench-peers"}
    written = keeper.finish(found)
    assert json.loads((tmp_path / "out" / "peers.json").read_text())["machine"] == "m"
    assert (tmp_path / "out" / "peers.png").read_bytes()[:4] == b"\x89PNG"
    assert all(file.exists() for file in written)
    text = (tmp_path / "out" / "peers.md").read_text()
    assert "| ort-int8-dynamic | 20.0 | 4.20 [3.78, 4.62] | 60 % |" in text
    assert "* llama.cpp-q8_0: llama.cpp cannot run" in text and "| missed |" in text


def test_what_cannot_be_written_is_refused_before_any_work(tiny_voice: Voice, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="choose another folder with --out"):
        Keeper(Store(tmp_path), str(tiny_voice.folder), tmp_path / "file" / "out")
    with pytest.raises(StoreError, match="--results"):
        Keeper(Store(tmp_path / "file"), str(tiny_voice.folder), None)


def test_a_picture_without_ratios_is_none(tmp_path: Path) -> None:
    found = figures()
    assert peers_chart(found) is not None
    found["races"] = {"step": {"arms": {"upstream": {"status": "failed", "reason": "gone"}}}}
    assert save_chart(found, tmp_path / "peers.png") is None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"rounds": 1}, SpecError, "rounds=1"),
        ({"races": ["jump"]}, SpecError, "race 'jump'"),
        ({"llama": ["Q9"]}, SpecError, "'Q9'"),
        ({"recipes": ["torch-fp33"]}, SpecError, "torch-fp33"),
        ({"core": 4096}, UserError, "4096"),
        ({"context": 250}, SpecError, "256"),
    ],
)
def test_mistakes_are_named_before_any_work(
    tiny_voice: Voice, changes: dict, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        peers.bench_peers(**{"voice": str(tiny_voice.folder), "context": 40, **changes})


def test_a_race_from_end_to_end(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream is missing here: the others run all the same."""
    monkeypatch.setenv("LABKIT_UPSTREAM_PYTHON", "/nowhere/python")
    ended: list[str] = []
    found = peers.bench_peers(
        voice=str(tiny_voice.folder), rounds=2, steps=1, context=20, sound_steps=9, recipes=["torch-fp32"],
        races=["step", "sound"], llama=(), on_race=lambda name, race: ended.append(name),
    )  # fmt: skip
    assert ended == ["step", "sound"]
    step, sound = (found["races"][name]["arms"] for name in ended)
    assert step["upstream"]["status"] == sound["upstream"]["status"] == "unavailable"
    assert step["torch-fp32"]["network_cpu_s"] > 0 and step["torch-fp32"]["roofline_share"] > 0
    assert sound["torch-fp32"]["vocoder_cpu_s"] > 0
    json.dumps(found, allow_nan=False)
