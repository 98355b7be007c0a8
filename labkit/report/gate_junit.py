"""A gate's result as JUnit XML: a suite for each recipe, a case for each metric; undecided ones are skipped."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from labkit.report.gate_markdown import change_words, limit_words
from labkit.report.gate_result import FAMILIES, GateResult, Line


def gate_junit(result: GateResult) -> str:
    """The file's text. A case that informs only, such as wall-clock time, is skipped as well."""
    root = Tree.Element("testsuites", name=f"voice gate {result.name}", time=f"{result.seconds:.1f}")
    totals = dict.fromkeys(("tests", "failures", "skipped"), 0)
    for recipe, lines in result.by_recipe():
        suite = Tree.SubElement(root, "testsuite", name=recipe)
        cases = [_case(suite, line) for line in lines]
        counts = {"tests": len(cases), "failures": cases.count("failure"), "skipped": cases.count("skipped")}
        for name, count in counts.items():
            suite.set(name, str(count))
            totals[name] += count
        suite.set("errors", "0")
    for name, count in totals.items():
        root.set(name, str(count))
    Tree.indent(root)
    return Tree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Tree.Element, line: Line) -> str:
    """Add one case; returns `failure`, `skipped` or `pass`."""
    verdict = line.verdict
    case = Tree.SubElement(
        suite, "testcase", classname=f"gate.{line.recipe}.{line.family}", name=verdict.metric, time="0"
    )
    words = (
        f"{FAMILIES[line.family]}: {line.label} changed by {change_words(line, verdict.change)} "
        f"(limit {limit_words(line)}, N = {verdict.n})"
    )
    why = "; ".join(verdict.reasons)
    if verdict.outcome == "pass":
        Tree.SubElement(case, "system-out").text = words
        return "pass"
    if verdict.outcome == "fail" and verdict.gates:
        Tree.SubElement(case, "failure", message=words, type="regression").text = why
        return "failure"
    Tree.SubElement(case, "skipped", message=f"{verdict.outcome}: {why or words}")
    return "skipped"
