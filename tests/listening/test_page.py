"""The page as a file: nothing fetched, no names inside. What it does is tested in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from labkit.errors import StoreError
from labkit.listening.page import render, write_page
from labkit.listening.trials import make_test
from labkit.results.store import Store
from tests.listening.conftest import BASE, OTHER
from tests.results.factory import TEXTS


@pytest.mark.parametrize("kind", ["mos", "ab"])
def test_the_page_tells_no_names_and_fetches_nothing(store: Store, kind: str) -> None:
    test = make_test(store, [BASE, OTHER], kind=kind)  # type: ignore[arg-type]
    html = render(store, test)
    run_ids = {clip.run_id for clip in test.clips.values()}
    for hidden in (BASE, OTHER, *run_ids, *TEXTS, '"low"', '"null"', "anchor"):
        assert hidden not in html
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|@import|url\(", html)
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])
    assert {trial["id"] for trial in data["trials"]} == {trial.id for trial in test.trials}
    assert all(uri.startswith("data:audio/ogg;base64,") for uri in data["clips"].values())
    assert set(data["clips"]) == set(test.clips)


def test_a_page_that_cannot_be_written_is_named(store: Store, tmp_path: Path) -> None:
    test = make_test(store, [BASE, OTHER])
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another file with --out"):
        write_page(store, test, tmp_path / "file" / "listen.html")
