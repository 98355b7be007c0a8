"""The workflow for users' repositories: valid YAML, and what it calls exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "voice-gate.yml"


@pytest.fixture(scope="module")
def workflow() -> dict:
    return yaml.safe_load(WORKFLOW.read_text())


def test_it_gates_pull_requests_and_nights(workflow: dict) -> None:
    triggers = workflow[True]  # YAML reads `on` as true
    assert "pull_request" in triggers and triggers["schedule"]
    assert workflow["permissions"] == {"contents": "read"}


def test_every_make_target_it_calls_exists(workflow: dict) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = {match for run in runs for match in re.findall(r"make ([a-z-]+)", run)}
    assert called == {"gate", "gate-full"} <= targets


def test_its_gate_is_the_makefile_s(workflow: dict) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for name in ("BASELINE", "GATE"):
        assert re.search(rf"^{name}\s+\?= {re.escape(workflow['env'][name])}$", makefile, re.MULTILINE)
    assert (ROOT / workflow["env"]["GATE"]).is_file()
