"""What the machine says of itself: complete, JSON-fit, and the same class for the same machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import environment
from labkit.environment import describe_environment, machine_class, package_versions


@pytest.fixture(scope="module")
def facts() -> dict:
    return describe_environment()


def test_facts_are_strict_json_and_nulls_have_reasons(facts: dict) -> None:
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["gpus"] is not None or facts["gpus_reason"]
    assert facts["git_commit"] is not None or facts["git_reason"]
    assert facts["cpu"]["isa"] is not None or facts["cpu"]["isa_reason"]
    assert facts["memory_bytes"] > 2**28
    assert 1 <= facts["cpu"]["cores_usable"] <= facts["cpu"]["cores_logical"]
    assert facts["packages"]["numpy"]


def test_the_class_knows_what_changes_speed_and_ignores_the_rest(facts: dict) -> None:
    name = machine_class(facts)
    assert facts["cpu"]["model"] in name
    others = [
        facts | {"cpu": facts["cpu"] | {"model": "another CPU"}},
        facts | {"cpu": facts["cpu"] | {"cores_usable": 99}},
        facts | {"cpu": facts["cpu"] | {"isa": ["sse4_2"]}},
        facts | {"cpu_limit_cores": 0.5},
        facts | {"gpus": [{"name": "a GPU", "memory_bytes": 1}]},
    ]
    assert len({name, *map(machine_class, others)}) == len(others) + 1
    assert machine_class(facts | {"packages": {}, "git_commit": "x", "memory_bytes": 1}) == name


def cgroups(tmp_path: Path, lines: str, files: dict[str, str]) -> tuple[Path, Path]:
    own = tmp_path / "own"
    own.write_text(lines)
    root = tmp_path / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root, own


@pytest.mark.parametrize(
    ("lines", "files", "memory", "cores"),
    [
        (
            "0::/a/b\n",
            {"a/b/memory.max": "max", "a/memory.max": "4294967296", "a/b/cpu.max": "150000 100000"},
            2**32,
            1.5,
        ),
        ("0::/gone\n", {"memory.max": "1073741824", "cpu.max": "max 100000"}, 2**30, None),
        (
            "4:memory:/x\n3:cpu,cpuacct:/\n",
            {
                "memory/x/memory.limit_in_bytes": "1000000", "memory/memory.limit_in_bytes": "9223372036854771712",
                "cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000",
            },
            1_000_000,
            0.5,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, None),
    ],
)  # fmt: skip
def test_the_tightest_container_limit_counts(
    monkeypatch, tmp_path: Path, lines: str, files: dict[str, str], memory: int | None, cores: float | None
) -> None:
    root, own = cgroups(tmp_path, lines, files)
    folders = environment._own_groups(root, own)
    monkeypatch.setattr(environment, "_own_groups", lambda: folders)
    assert environment.container_limits() == {"memory_limit_bytes": memory, "cpu_limit_cores": cores}


def test_absent_packages_are_absent() -> None:
    assert set(package_versions(("numpy", "no-such-package"))) == {"numpy"}


def test_outside_a_checkout_the_commit_is_null_with_a_reason(tmp_path: Path) -> None:
    found = environment._git(tmp_path)
    assert found["git_commit"] is None and "not run from a git checkout" in found["git_reason"]
    (tmp_path / ".git").mkdir()
    broken = environment._git(tmp_path)
    assert broken["git_commit"] is None and "git does not answer" in broken["git_reason"]


def test_describing_loads_no_backend() -> None:
    code = (
        "import sys; from labkit.environment import describe_environment; describe_environment();"
        "heavy = {'torch', 'onnxruntime', 'pandas', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
