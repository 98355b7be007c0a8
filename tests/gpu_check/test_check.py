"""The whole check on a CPU with a tiny voice, and its ends with a worker that hangs, crashes or runs out of memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labkit.gpu_check.cases import Case, Work
from labkit.gpu_check.check import Check
from labkit.model.checkpoint import load_gpt, load_vocoder
from labkit.results.store import Store, load_wide
from labkit.voices import Voice
from tests.conftest import TINY

ROOT = Path(__file__).parents[2]
WORK = Work(prompt=12, steps=8, parity_steps=4, repeats=2)
EAGER, GRAPH = Case("nano", "eager", "fp32"), Case("nano", "graph", "fp32")


@pytest.fixture(scope="module")
def checked(tiny_voice: Voice, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], int]:
    """(store, what was said, exit code) of a check with the real worker."""
    folder, said = tmp_path_factory.mktemp("gpu-check"), []
    check = Check(
        folder / "results", folder / "scratch", seconds=3000, device="cpu", threads=1, cases=(EAGER, GRAPH), work=WORK,
        voices={"nano": tiny_voice.folder}, say=said.append,
    )  # fmt: skip
    code = check.run()
    return folder / "results", said, code


def test_documents_load_like_any_others(checked: tuple[Path, list[str], int]) -> None:
    documents, damaged = Store(checked[0]).scan()
    assert not damaged
    found = {(d.spec.recipe.name, d.measures.values.get("batch")): d for d in documents}
    assert set(found) == {
        ("torch-fp32", 1),
        ("torch-fp32", 8),
        ("torch-graph-fp32", 1),
        ("torch-graph-fp32", 8),
    }
    one, eight = found["torch-fp32", 1], found["torch-fp32", 8]
    assert one.status == eight.status == "ok"
    assert {d.spec.device for d in documents} == {"cpu"}
    assert [s.phase for s in one.samples] == ["warmup", "measured", "measured"]
    assert all(len(s.series["step_s"]) == WORK.steps for s in one.samples)
    assert one.samples[1].values["ttft_s"] > 0
    assert eight.samples[1].values["ttft_s"] is None
    assert eight.samples[1].values["audio_s"] == pytest.approx(8 * (512 * WORK.steps - 256) / 24_000)
    for document in (one, eight):
        values = document.measures.values
        assert values["parity_hidden_relative"] < 1e-5 and values["parity_top1_share"] == 1.0
        assert values["bandwidth_bytes_per_s"] > 0 and 0 < values["device_roofline_share"] < 1
        assert values["vram_allocator_peak_bytes"] is None
        assert document.measures.reasons["vram_allocator_peak_bytes"] == "the run used no GPU"
    assert one.corpus_hash != eight.corpus_hash and one.weights_hash == eight.weights_hash
    wide = load_wide(checked[0])
    assert wide.loc[wide["status"] == "ok", "steps_per_s_p50"].gt(0).all()


def test_what_the_device_cannot_do_is_unavailable(checked: tuple[Path, list[str], int]) -> None:
    store, said, code = checked
    graph = [d for d in Store(store).documents() if "graph" in d.spec.recipe.name]
    assert {d.status for d in graph} == {"unavailable"}
    assert all("CUDA device" in d.failure.message for d in graph)
    assert code == 0
    assert sum(line.startswith("nano eager fp32") for line in said) == 2
    assert any("not measured" in line and "vram_nvml_peak_bytes" in line for line in said)


def stubbed(tmp_path: Path, tiny_voice: Voice, seconds: float, cases=(EAGER,)) -> tuple[Check, list[str]]:
    said: list[str] = []
    check = Check(
        tmp_path / "results", tmp_path, seconds=seconds, device="cpu", threads=1, cases=cases, work=WORK,
        voices={"nano": tiny_voice.folder}, say=said.append, worker="tests.gpu_check.stub_worker",
    )  # fmt: skip
    return check, said


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [("crash", "failed", "exit code -11"), ("oom", "oom", "CUDA out of memory")],
)
def test_a_case_that_dies_keeps_what_it_had(
    tmp_path: Path, tiny_voice: Voice, monkeypatch, how: str, status: str, message: str
) -> None:
    monkeypatch.setenv("GPU_CHECK_STUB", how)
    check, _ = stubbed(tmp_path, tiny_voice, seconds=60)
    assert check.run() == 1
    first, second = Store(tmp_path / "results").documents()
    assert first.status == "ok" and first.placement == {"gpt": {"cuda:0": 4}}
    assert second.status == status and message in second.failure.message
    assert first.environment["gpus"][0]["name"] == "NVIDIA Stub"
    assert "NVIDIA Stub" in first.machine_class


def test_a_check_that_is_out_of_time_keeps_what_it_had_and_says_the_rest(
    tmp_path: Path, tiny_voice: Voice, monkeypatch
) -> None:
    monkeypatch.setenv("GPU_CHECK_STUB", "hang")
    monkeypatch.setattr(Case, "seconds", 3.0)
    monkeypatch.setattr(Check, "left", lambda self: 0.0 if self.outcomes else 8.0)
    check, said = stubbed(tmp_path, tiny_voice, seconds=60, cases=(EAGER, GRAPH))
    assert check.run() == 0
    assert [d.status for d in Store(tmp_path / "results").documents()] == ["ok", "timeout"]
    assert "not reached in time: nano graph fp32" in said


def test_without_time_nothing_is_begun(tmp_path: Path, tiny_voice: Voice) -> None:
    check, said = stubbed(tmp_path, tiny_voice, seconds=1)
    assert check.run() == 0
    assert "not reached in time: nano eager fp32" in said
    assert not (tmp_path / "results" / "runs").exists()


def test_random_weights_are_made_once_and_load(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GPU_CHECK_STUB", "oom")
    monkeypatch.setattr("labkit.gpu_check.check.FULL", TINY)
    for _ in range(2):
        check = Check(
            tmp_path / "results", tmp_path / "scratch", seconds=60, device="cpu",
            cases=(Case("random", "eager", "fp32"),), work=WORK, say=lambda line: None,
            worker="tests.gpu_check.stub_worker",
        )  # fmt: skip
        check.run()
    hashes = {document.weights_hash for document in Store(tmp_path / "results").documents()}
    assert len(hashes) == 1
    asset = tmp_path / "scratch" / "random" / "asset"
    assert load_gpt(asset).config == TINY.gpt
    assert load_vocoder(asset).embed.weight.isfinite().all()


def test_a_number_that_is_none_fails_the_case(tmp_path: Path, tiny_voice: Voice, monkeypatch) -> None:
    monkeypatch.setenv("GPU_CHECK_STUB", "nan")
    check, _ = stubbed(tmp_path, tiny_voice, seconds=60)
    check.run()
    first = Store(tmp_path / "results").documents()[0]
    assert first.status == "failed" and first.failure.kind == "ParityError"
    assert first.measures.values["parity_mel_relative"] is None
    assert "nan" in first.measures.reasons["parity_mel_relative"]


def test_without_a_gpu_it_says_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gpu_check", "--results", tmp_path / "results"],
        capture_output=True, text=True, timeout=600, env={"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout.startswith("No GPU check: torch ") and done.stdout.count("\n") == 1
    assert not done.stderr and not (tmp_path / "results").exists()


def test_the_worker_needs_neither_pydantic_nor_the_lab_s_other_packages() -> None:
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'pydantic', 'yaml', 'typer', 'rich', 'psutil', 'pynvml', 'tokenizers',\n"
        "                'pybase16384', 'safetensors', 'filelock', 'scipy', 'pandas', 'soundfile', 'soxr'}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import labkit.gpu_check.check, labkit.gpu_check.worker, labkit.engines.torch_stages\n"
        "import labkit.engines.graph_stages, labkit.engines.compiled_stages, labkit.model.checkpoint\n"
        "import labkit.model.random_weights\n"
        "from labkit.environment import describe_environment, machine_class\n"
        "assert machine_class(describe_environment())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, cwd=ROOT)
