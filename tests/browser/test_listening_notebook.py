"""The listening notebook in a real JupyterLab: buttons and the field for keys cast votes that are kept at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from labkit.results.ratings import read_votes
from labkit.results.store import Store
from tests.browser.test_jupyterlab import ALL_CELLS_RAN, CHROMIUM, FLAGS, lab  # noqa: F401  (a fixture)
from tests.results.factory import TEXTS, clip, document

pytestmark = pytest.mark.browser
PLAYABLE = """() => { const players = [...document.querySelectorAll('.jp-OutputArea audio')];
    return players.length === 2 && players.every(player => player.duration > 0.3); }"""


def test_votes_are_cast_in_jupyterlab(lab: str, tmp_path: Path) -> None:  # noqa: F811
    playwright = pytest.importorskip("playwright.sync_api")
    pytest.importorskip("ipywidgets")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    store = Store(tmp_path / "results")
    for name in ("torch-fp32", "ort-int8-dynamic"):
        store.write(document(name), audio={f"{item}.flac": clip(seconds=0.5) for item in TEXTS})
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1300, "height": 2600})
        page.goto(f"{lab}/lab/tree/50_listen.ipynb?token=t&reset", timeout=120_000)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        page.wait_for_function("() => /\\| Idle/.test(document.body.innerText)", timeout=90_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
        page.wait_for_function(ALL_CELLS_RAN, timeout=300_000)
        page.get_by_role("button", name="1 A is better").click(timeout=60_000)
        page.wait_for_function("() => document.body.innerText.includes('2 of 5')", timeout=60_000)
        page.get_by_placeholder("or type the number here").press_sequentially("2")
        page.wait_for_function("() => document.body.innerText.includes('3 of 5')", timeout=60_000)
        page.wait_for_function(PLAYABLE, timeout=60_000)
        page.screenshot(path=str(tmp_path / "listen.png"))
        browser.close()
    deadline = time.monotonic() + 10
    while len(votes := read_votes(store.folder)[0]) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(votes) == 2 and votes[1].value == 0 and {vote.rater for vote in votes} == {"listener 1"}
