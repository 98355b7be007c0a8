from __future__ import annotations

from xml.etree import ElementTree as Tree

from labkit.report.gate_junit import gate_junit
from tests.report.gate_factory import gate_result


def test_a_standard_parser_reads_cases_failures_and_skips() -> None:
    result = gate_result(damage=0.05)
    root = Tree.fromstring(gate_junit(result).encode())
    cases = root.findall(".//testcase")
    assert root.tag == "testsuites" and len(cases) == len(result.lines) == int(root.get("tests", ""))
    failed = {(case.get("classname"), case.get("name")) for case in cases if case.find("failure") is not None}
    wanted = {
        (f"gate.{line.recipe}.{line.family}", line.verdict.metric)
        for line in result.lines
        if line.verdict.outcome == "fail"
    }
    assert failed == wanted and len(failed) == int(root.get("failures", "")) > 0
    skipped = [case for case in cases if case.find("skipped") is not None]
    assert len(skipped) == int(root.get("skipped", "")) == 2  # two recipes with too few sentences
    assert "24 are the minimum" in str(skipped[0].find("skipped").get("message"))  # type: ignore[union-attr]


def test_suites_add_up() -> None:
    root = Tree.fromstring(gate_junit(gate_result(damage=0.05)).encode())
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["ort-fp32", "hurt"]
    for name in ("tests", "failures", "skipped"):
        assert sum(int(suite.get(name, "")) for suite in suites) == int(root.get(name, ""))


def test_a_verdict_that_only_informs_fails_nothing() -> None:
    from dataclasses import replace

    result = gate_result(damage=0.05)
    lines = tuple(replace(line, verdict=replace(line.verdict, gates=False)) for line in result.lines)
    root = Tree.fromstring(gate_junit(replace(result, lines=lines)).encode())
    assert root.get("failures") == "0"
