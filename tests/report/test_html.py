"""The page carries everything with it, shows what failed, and never shows a document's text as markup."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from labkit.errors import StoreError, UserError
from labkit.report import build_report
from labkit.results.store import Store
from labkit.spec import SweepSpec
from tests.results.factory import TEXTS, clip, document, failed


class Tags(HTMLParser):
    """Counts elements, checks that they close, and collects what they refer to."""

    VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.references: list[str] = []
        self.titles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        values = dict(attrs)
        self.references += [value for name in ("src", "href") if (value := values.get(name))]
        self.titles += [value for name, value in attrs if name == "title" and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(Store(tmp_path / "results"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about an untouched store."""
    store = fill(Store(tmp_path_factory.mktemp("page") / "results"))
    path = build_report(store, sweep="demo")
    assert path == store.folder / "reports" / "demo.html"
    return path.read_text(encoding="utf-8")


def fill(store: Store) -> Store:
    store.write_sweep(
        SweepSpec(name="demo", recipe=("ort-fp32", "torch-fp32"), baseline="ort-fp32", description="Two.")
    )
    for name in ("torch-fp32", "ort-fp32"):
        store.write(document(name), audio={f"{item}.flac": clip() for item in TEXTS})
    store.write(failed("upstream", "unavailable", message="its environment is missing"))
    return store


def test_one_file_holds_everything(page: str) -> None:
    tags = Tags(page)
    assert tags.open == []
    assert tags.count["audio"] == 2 * len(TEXTS)
    assert tags.count["svg"] == 3
    assert [ref for ref in tags.references if not ref.startswith(("data:", "#"))] == []
    assert len(page) < 1_000_000


def test_it_shows_status_reasons_and_the_sweeps_own_baseline(page: str) -> None:
    for words in ("vs ort-fp32", "unavailable here", "its environment is missing", "2 of 3 runs are ok",
                  "Example CPU 9000"):  # fmt: skip
        assert words in page
    assert any("median of 9 samples" in title for title in Tags(page).titles)


def test_text_of_documents_is_never_markup(store: Store) -> None:
    store.write(failed("odd", message="<script>alert(1)</script>", sweep="demo"))
    text = build_report(store, sweep="demo").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_lost_audio_is_told_in_its_place(store: Store) -> None:
    ok = next(d for d in store.documents() if d.status == "ok")
    store.audio_file(ok.run_id, f"{TEXTS[0]}.flac").write_bytes(b"not audio")
    store.audio_file(ok.run_id, f"{TEXTS[1]}.flac").unlink()
    text = build_report(store, sweep="demo").read_text(encoding="utf-8")
    assert text.count("cannot be read") == 2
    assert Tags(text).count["audio"] == 2 * len(TEXTS) - 2


def test_damaged_documents_are_named_on_the_page(store: Store) -> None:
    (store.runs_folder / "20260101T000000.000000Z-torn.json").write_text("{")
    assert "-torn.json" in build_report(store, sweep="demo").read_text(encoding="utf-8")


def test_all_runs_are_reported_without_a_sweep(store: Store, tmp_path: Path) -> None:
    store.write(document("torch-bf16", sweep=None))
    text = build_report(store, out=tmp_path / "own.html", baseline="torch-bf16").read_text(encoding="utf-8")
    assert "vs torch-bf16" in text


def test_nothing_to_report_is_an_error_with_a_remedy(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'nope'.*recorded sweeps: demo"):
        build_report(store, sweep="nope")
    with pytest.raises(UserError, match="labkit sweep"):
        build_report(Store(tmp_path / "empty"))


def test_a_baseline_without_a_run_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match=r"baseline 'torch-fp23' has no run here.*torch-fp32"):
        build_report(store, sweep="demo", baseline="torch-fp23")


def test_a_page_of_failures_only_is_still_a_page(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(failed("torch-fp32", "oom"))
    text = build_report(store, sweep="demo").read_text(encoding="utf-8")
    assert "None of 1 runs gave numbers" in text
    assert "<svg" not in text


def test_a_page_that_cannot_be_written_names_the_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"page\.html cannot be written"):
        build_report(store, sweep="demo", out=tmp_path / "file" / "page.html")
    (tmp_path / "page.html").mkdir()
    with pytest.raises(StoreError, match=r"page\.html cannot be written"):
        build_report(store, sweep="demo", out=tmp_path / "page.html")
    assert not list(tmp_path.glob(".page.html.*"))


def test_no_backend_is_loaded(store: Store) -> None:
    code = (
        "import sys; from labkit.report import build_report; from labkit.results.store import Store\n"
        f"build_report(Store({str(store.folder)!r}), sweep='demo')\n"
        "print([name for name in ('torch', 'onnxruntime', 'papermill') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_both_themes_are_styled(page: str) -> None:
    used = set(re.findall(r"var\((--\w+)\)", page))
    light, dark = (
        set(re.findall(r"(--\w+):", block)) for block in re.findall(r":root \{(.*?)\}", page, re.S)
    )
    assert used <= light
    assert dark == light
