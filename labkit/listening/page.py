"""A listening test as one HTML file: sound, script and looks inside, nothing fetched, no kernel needed.

The file holds no name of a recipe and no word on which trial tests the listener: those are in the test's key, in the
results store. Its script keeps votes in the browser as they are cast and saves them as a file that
`labkit listen import` reads.
"""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, select_autoescape

from labkit.errors import StoreError
from labkit.listening.clips import heard
from labkit.listening.trials import ListeningTest
from labkit.listening.votes import FORMAT
from labkit.report.audio import opus_uri
from labkit.results.store import Store, write_atomic

QUESTIONS = {
    "mos": "How good does this speech sound?",
    "ab": "Which of the two sounds better?",
}


def write_page(store: Store, test: ListeningTest, out: Path) -> Path:
    """Write the page of a test; `StoreError` when a clip cannot be read or the page cannot be written."""
    html = render(store, test)
    try:
        write_atomic(out, html.encode())
    except OSError as error:
        raise StoreError(
            f"the page {out} cannot be written ({error}); choose another file with --out."
        ) from error
    return out


def render(store: Store, test: ListeningTest) -> str:
    """The page as text. Trials stand in the order of their ids, which tells nothing; the script shuffles them."""
    data = {
        "format": FORMAT,
        "test": test.id,
        "kind": test.kind,
        "seed": test.seed,
        "clips": {name: opus_uri(heard(store, clip)) for name, clip in sorted(test.clips.items())},
        "trials": [
            {"id": trial.id, "clips": list(trial.clips), "text": test.text_of(trial)}
            for trial in sorted(test.trials, key=lambda trial: trial.id)
        ],
        "example": [clip.id for clip in test.example()],
    }
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("labkit.listening", "."), PackageLoader("labkit.report", ".")]),
        autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("listen.html.j2").render(
        kind=test.kind,
        question=QUESTIONS[test.kind],
        trials=len(test.trials),
        # inside a script element, "</" would end it and "<!--" would hide it
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    )
