"""The listening page in a real browser, used by keyboard as a listener would, from the file alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labkit.compare.opinions import votes_frame
from labkit.listening import import_votes, make_test, write_page
from labkit.results.store import Store
from tests.results.factory import TEXTS, clip, document

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "results")
    for number, name in enumerate(("torch-fp32", "ort-int8-dynamic")):
        audio = {f"{item}.flac": clip(200 + 40 * i + 5 * number, 0.4) for i, item in enumerate(TEXTS)}
        store.write(document(name), audio=audio)
    return store


@pytest.fixture
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


def hear(page: Any, *keys: str) -> None:
    """Play every side to its end; the answers open only then."""
    for key in keys:
        if page.locator(".playing").count() == 0:
            page.keyboard.press(key)
        page.wait_for_function("() => !document.querySelector('.playing')", timeout=20_000)
    page.wait_for_selector("[data-answer]:enabled", timeout=20_000)


def test_a_rating_survives_a_closed_tab_and_is_imported(store: Store, browser: Any, tmp_path: Path) -> None:
    test = make_test(store, ["torch-fp32", "ort-int8-dynamic"])
    path = write_page(store, test, tmp_path / "listen.html")
    context = browser.new_context(accept_downloads=True, viewport={"width": 900, "height": 760})
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert not page.locator("#storage").is_visible()
    page.screenshot(path=str(tmp_path / "intro.png"))
    page.fill("#rater", "Ana Ruiz")
    page.keyboard.press("Enter")
    assert page.locator("[data-answer]:enabled").count() == 0
    page.keyboard.press("3")  # nothing was heard yet
    assert "1 of 8" in page.inner_text("#count")
    for number in (1, 2, 3):
        hear(page, " ")
        page.screenshot(path=str(tmp_path / "trial.png"))
        page.keyboard.press("4")
        page.wait_for_function(
            f"() => document.querySelector('#count').textContent.startsWith('{number + 1}')"
        )
    page.keyboard.press("Backspace")
    page.keyboard.press("2")  # the third answer, changed
    page.close()

    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert page.input_value("#rater") == "Ana Ruiz"
    assert "3 answers are kept" in page.inner_text("#resume")
    page.click("text=Start")
    for _ in range(5):
        hear(page, " ")
        page.keyboard.press("5")
    page.wait_for_selector("#end:not([hidden])")
    page.screenshot(path=str(tmp_path / "end.png"))
    with page.expect_download() as download:
        page.click("#end .save")
    assert re.fullmatch(rf"votes-{test.id}-Ana-Ruiz\.json", download.value.suggested_filename)
    download.value.save_as(tmp_path / "votes.json")
    assert json.loads(page.input_value("#raw")) == json.loads((tmp_path / "votes.json").read_text())
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    found = import_votes(store, tmp_path / "votes.json")
    assert (found.rater, found.added, found.missing) == ("Ana Ruiz", 8, 0)
    assert sorted(votes_frame(store)["value"]) == [2, 4, 4, 5, 5, 5, 5, 5]


def test_pairs_are_judged_by_side_and_counted_by_run(store: Store, browser: Any, tmp_path: Path) -> None:
    test = make_test(store, ["torch-fp32", "ort-int8-dynamic"], kind="ab")
    path = write_page(store, test, tmp_path / "listen.html")
    page = browser.new_page(viewport={"width": 900, "height": 760})
    page.goto(path.as_uri())
    page.fill("#rater", "Bo")
    page.keyboard.press("Enter")
    wanted = {trial.id: trial.clips[0 if trial.anchor else 1] for trial in test.trials}
    for _ in test.trials:
        hear(page, "a", "b")
        page.screenshot(path=str(tmp_path / "pair.png"))
        # a listener with a key: always for the other run, for the plain clip against the muffled, else for neither
        sides = page.evaluate("() => trials[at].sides")
        better = [side for side in (0, 1) if sides[side] == wanted[page.evaluate("() => trials[at].id")]]
        page.keyboard.press("13"[better[0]] if len(better) == 1 else "2")
    page.wait_for_selector("#end:not([hidden])")
    (tmp_path / "votes.json").write_text(page.input_value("#raw"))
    import_votes(store, tmp_path / "votes.json")
    votes = votes_frame(store).set_index("anchor")["value"]
    assert votes[""].tolist() == [1, 1, 1] and votes["low"] == -1 and votes["null"] == 0
