"""A listening test in a notebook: a player, buttons and a field for the keys; each vote is kept as it is cast.

It draws and asks; what a vote means is in `labkit.listening.votes`. Without a person at the notebook it shows the
first open trial and waits for nothing, so the notebook runs from top to bottom under papermill.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from labkit.errors import UnavailableError, UserError
from labkit.listening.clips import heard
from labkit.listening.order import ordered
from labkit.listening.page import QUESTIONS
from labkit.listening.trials import ListeningTest
from labkit.listening.votes import SAME, answered, vote_on
from labkit.report.audio import opus_uri
from labkit.results.ratings import append_votes
from labkit.results.store import Store

if TYPE_CHECKING:
    import ipywidgets

MOS_WORDS = ("1 bad", "2 poor", "3 fair", "4 good", "5 excellent")
AB_WORDS = ("1 A is better", "2 the same", "3 B is better")


def listen(store: Store, test: ListeningTest, rater: str) -> ipywidgets.Widget:
    """The test as a widget, at the first trial that this listener has not answered."""
    return ListeningPanel(store, test, rater).widget


class ListeningPanel:
    """One listener at one test. `answer` casts a vote as a button or a key does."""

    def __init__(self, store: Store, test: ListeningTest, rater: str) -> None:
        try:
            import ipywidgets
        except ImportError as error:
            raise UnavailableError(
                "listening in a notebook needs ipywidgets, and it is not installed.",
                "pip install ipywidgets, or use the page: labkit listen page.",
            ) from error
        if not rater.strip():
            raise UserError("a listening test needs the listener's name; set the parameter rater.")
        self.store, self.test, self.rater = store, test, rater.strip()
        done = answered(store, test, self.rater)
        self.open = [trial for trial in ordered(test, self.rater) if trial.id not in done]
        self._make(ipywidgets)
        self._show()

    def answer(self, number: int) -> None:
        """Vote on the trial shown, by the number of a choice, and go on to the next."""
        if not self.open:
            return
        trial = self.open[0]
        choices: tuple[Any, ...] = (trial.clips[0], SAME, trial.clips[-1]) if self._pairs else (1, 2, 3, 4, 5)
        if not 1 <= number <= len(choices):
            return
        append_votes(self.store.folder, [vote_on(self.test, trial, choices[number - 1], rater=self.rater)])
        del self.open[0]
        self._show(autoplay=True)

    @property
    def _pairs(self) -> bool:
        return self.test.kind == "ab"

    def _make(self, widgets: Any) -> None:
        self.heading = widgets.HTML()
        self.players = [widgets.Audio(autoplay=False, loop=False) for _ in range(2 if self._pairs else 1)]
        self.buttons = []
        for number, word in enumerate(AB_WORDS if self._pairs else MOS_WORDS, start=1):
            button = widgets.Button(description=word, layout=widgets.Layout(width="auto"))
            button.on_click(lambda _, number=number: self.answer(number))
            self.buttons.append(button)
        self.keys = widgets.Text(placeholder="or type the number here", layout=widgets.Layout(width="180px"))
        self.keys.observe(self._key, names="value")
        named = zip("AB", self.players, strict=False) if self._pairs else [("", self.players[0])]
        rows = [widgets.HBox([widgets.HTML(f"<b>{name}</b>"), player]) for name, player in named]
        self.choices = widgets.HBox([*self.buttons, self.keys])
        self.widget = widgets.VBox([self.heading, *rows, self.choices])

    def _key(self, change: dict[str, Any]) -> None:
        pressed = str(change["new"]).strip()
        if not pressed:
            return
        self.keys.value = ""
        if pressed.isdecimal():
            self.answer(int(pressed))

    def _show(self, *, autoplay: bool = False) -> None:
        from html import escape

        total = len(self.test.trials)
        if not self.open:
            self.heading.value = f"<h3>Thank you, {escape(self.rater)}</h3>All {total} answers are kept."
            self.widget.children = (self.heading,)
            return
        trial = self.open[0]
        text = self.test.text_of(trial)
        said = f" · <q>{escape(text)}</q>" if text else ""
        self.heading.value = (
            f"<h3>{QUESTIONS[self.test.kind]}</h3>{total - len(self.open) + 1} of {total}{said}"
        )
        for number, (player, clip) in enumerate(zip(self.players, trial.clips, strict=True)):
            player.autoplay = autoplay and number == 0
            player.format = "ogg"
            player.value = base64.b64decode(
                opus_uri(heard(self.store, self.test.clips[clip])).partition(",")[2]
            )
