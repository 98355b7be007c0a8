"""`labkit listen page | import | results` as they are typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from labkit.cli import app
from labkit.listening.trials import read_test
from labkit.results.store import Store
from tests.listening.conftest import BASE, OTHER
from tests.listening.test_votes import answers

run = CliRunner().invoke


def test_from_page_to_opinions(store: Store, tmp_path: Path) -> None:
    folder = ["--results", str(store.folder)]
    empty = run(app, ["listen", "results", *folder])
    assert empty.exit_code == 0 and "no votes" in empty.output
    made = run(app, ["listen", "page", "--runs", f"{BASE},{OTHER}", "-o", str(tmp_path / "l.html"), *folder])
    assert made.exit_code == 0 and (tmp_path / "l.html").exists()
    test = read_test(store, re.search(r"listening test (\w+):", made.output)[1])
    for rater in ("Ana", "Bo"):
        (tmp_path / f"{rater}.json").write_text(json.dumps(answers(test, rater)))
    files = [str(tmp_path / "Ana.json"), str(tmp_path / "Bo.json")]
    assert "8 votes added" in run(app, ["listen", "import", *files, *folder]).output
    assert "0 votes added, 8 known already" in run(app, ["listen", "import", files[0], *folder]).output
    shown = run(app, ["listen", "results", *folder]).output
    assert "human_mos" in shown and "4.00 to 4.00" in shown and "Ana" in shown
    values = json.loads(
        run(app, ["listen", "results", test.id, "--leave-out", "Bo", "--json", *folder]).output
    )
    assert {row["recipe"]: row["mean"] for row in values["opinions"]} == {BASE: 4, OTHER: 2}
    assert values["opinions"][0]["low"] is None and len(values["listeners"]) == 2
