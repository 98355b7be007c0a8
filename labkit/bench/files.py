"""What `bench peers` leaves behind: run documents as each race ends, and its figures as JSON, markdown and PNG."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from labkit.bench.chart import save_chart
from labkit.bench.documents import run_documents
from labkit.bench.peers_table import peers_markdown
from labkit.errors import UserError
from labkit.results.store import Store
from labkit.voices import resolve_voice

Figures = dict[str, Any]
JSON_FILE, TEXT_FILE, PLOT_FILE = "peers.json", "peers.md", "peers.png"


class Keeper:
    """Refuses before any work what cannot be written. `out`: folder of the figures and the plot, if they are wanted."""

    def __init__(self, store: Store, voice: str, out: Path | None) -> None:
        self._store, self._voice, self._out = store, voice, out
        self.documents: list[Path] = []
        store.check_writable()
        if out is not None:
            try:
                out.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=out).close()
            except OSError as error:
                raise UserError(
                    f"{out} cannot be written: {error}; choose another folder with --out."
                ) from error

    def keep(self, race: str, figures: Figures) -> None:
        """Write the documents of a race that is over: an interruption costs the races after it alone."""
        for document in run_documents(race, figures, resolve_voice(self._voice), self._voice):
            self.documents.append(self._store.write(document))

    def finish(self, figures: Figures) -> list[Path]:
        """Write the figures of all races; returns what was written, documents as their folder."""
        written = list(dict.fromkeys(file.parent for file in self.documents))
        if self._out is None:
            return written
        file = self._out / JSON_FILE
        file.write_text(json.dumps(figures, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        text = self._out / TEXT_FILE
        text.write_text(peers_markdown(figures), encoding="utf-8")
        plot = save_chart(figures, self._out / PLOT_FILE)
        return [*written, file, text, *filter(None, [plot])]
