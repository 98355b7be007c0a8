"""The same summary in a terminal and as markdown."""

from __future__ import annotations

from rich.console import Console

from labkit.report.tables import markdown_table, summary_table
from labkit.results.frames import wide_row
from labkit.results.schema import RunDocument
from labkit.results.units import format_value
from tests.results.factory import SPEED, document, failed


def printed(documents: list[RunDocument], width: int = 110, **options: object) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115  closed with the console
    console.print(summary_table(documents, **options))
    return console.export_text()


def test_the_terminal_table_fits_and_says_what_failed() -> None:
    text = printed(
        [document(name) for name in SPEED] + [failed("upstream", "unavailable", message="not installed")]
    )
    assert max(map(len, text.splitlines())) <= 110
    for word in (*SPEED, "RTF", "baseline", "unavailable", "not installed", "look into the log"):
        assert word in text
    assert "4 of 5 runs are ok" in text


def test_a_reason_and_its_remedy_are_two_sentences() -> None:
    for message in ("it was killed", "it was killed."):
        text = printed([failed("ort-fp32", message=message)])
        assert "it was killed. look into the log" in " ".join(text.split())


def test_every_document_is_listed_by_id() -> None:
    runs = [document("torch-fp32"), document("torch-fp32"), failed("ort-fp32", "oom")]
    text = printed(runs, with_ids=True)
    assert all(run.run_id[:20] in text for run in runs)
    assert "oom" in text


def test_the_list_keeps_status_and_speed_whole_in_a_narrow_terminal() -> None:
    run = document("ort-int8-dynamic")
    text = printed([run, failed("ort-fp32", "unavailable")], width=80, with_ids=True)
    assert "unavailable" in text and run.run_id in text
    assert format_value("rtf_p50", wide_row(run).numbers["rtf_p50"]) in text


def test_no_runs_say_how_to_make_one() -> None:
    assert "labkit run" in printed([])
    assert "No runs" in markdown_table([])


def test_markdown_has_one_line_for_each_run_and_keeps_its_columns() -> None:
    text = markdown_table(
        [document(name) for name in SPEED] + [failed("ort|odd".replace("|", "-"), message="a | b\nc")]
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 5
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "a \\| b c" in text
