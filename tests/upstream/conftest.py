"""Upstream's environment for the live tests, or the reason why they are skipped."""

from __future__ import annotations

import pytest

from labkit.engines.base import Unavailable
from labkit.upstream.environment import availability


@pytest.fixture(scope="session")
def upstream_environment() -> None:
    answer = availability()
    if isinstance(answer, Unavailable):
        pytest.skip(f"{answer.reason} {answer.remedy}")
