"""Which runs may stand in one table, what its heading says, and which runs newer ones have taken the place of.

It knows the identity of runs and none of their numbers. Two runs stand together when they did the same work on like
machines; a recipe stands once in a table, and runs of another version of their voice, corpus or recipe than the
current one in none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labkit.results.schema import RunDocument

AXES = ("voice", "corpus", "scenario", "device", "threads", "seed", "speaker", "audio_path", "machine_class")
_VOICE, _MACHINE = AXES.index("voice"), AXES.index("machine_class")
# how much of an axis' work was done: an invocation's choice, and other numbers for another choice
AMOUNTS = ("texts", "repeats", "max_steps")
_PLAIN = ("voice", "corpus", "scenario", "device", "machine_class")  # their values speak for themselves
_COUNTED = {"threads": "thread", "texts": "text", "repeats": "repeat"}


@dataclass(frozen=True)
class Alike:
    """Runs for one table, one for each recipe, under the heading that tells them from the other tables."""

    title: str
    documents: tuple[RunDocument, ...]


@dataclass(frozen=True)
class SortedRuns:
    """All tables, and how many runs stand in none because of what has changed since, by what that is."""

    tables: tuple[Alike, ...]
    outdated: dict[str, int]

    @property
    def outdated_words(self) -> str:
        """One sentence about the runs that were left out; empty when there are none."""
        parts = [f"{n} of another version of {what}" for what, n in self.outdated.items()]
        return f"Runs left out: {'; '.join(parts)}." if parts else ""


def sort_runs(documents: Sequence[RunDocument]) -> SortedRuns:
    """Runs into tables: voices and machines that were measured last come first, of one voice and machine the kinds of
    work in the order in which they were first done, newest amounts first.

    Of the runs of one recipe in a table the last `ok` one is kept, or the last when none was ok.
    """
    documents = sorted(documents, key=lambda document: document.run_id)
    current, outdated = _by_current_version(documents)
    named = [name for name in (*AXES, *AMOUNTS) if name == "scenario" or _varies(current, name)]
    works: dict[tuple[str, ...], dict[tuple[str, ...], list[RunDocument]]] = {}
    for document in current:
        tables = works.setdefault(_values(document, AXES), {})
        tables.setdefault(_values(document, AMOUNTS), []).append(document)
    latest = {(d.spec.voice, d.machine_class): d.run_id for d in current}
    newest_first = sorted(works, key=lambda work: latest[work[_VOICE], work[_MACHINE]], reverse=True)
    found = []
    for tables in (works[work] for work in newest_first):
        for members in sorted(tables.values(), key=lambda runs: runs[-1].run_id, reverse=True):
            kept = _once_by_recipe(members)
            outdated += Counter(
                f"recipe {run.spec.recipe.name}"
                for run in members
                if run.spec.recipe != kept[run.spec.recipe.name].spec.recipe
            )
            title = " · ".join(_words(members[0], name) for name in named)
            found.append(Alike(title, tuple(sorted(kept.values(), key=lambda run: run.run_id))))
    return SortedRuns(tuple(found), dict(outdated))


def _by_current_version(documents: Iterable[RunDocument]) -> tuple[list[RunDocument], Counter[str]]:
    """Runs by the weights and the corpus that their voice and corpus have had last.

    A run that broke off before it knew them may be one of these.
    """
    documents = list(documents)
    weights = {d.spec.voice: d.weights_hash for d in documents if d.weights_hash}
    corpora = {d.spec.corpus: d.corpus_hash for d in documents if d.corpus_hash}
    current, outdated = [], Counter[str]()
    for document in documents:
        voice, corpus = document.spec.voice, document.spec.corpus
        if document.weights_hash not in (None, weights.get(voice)):
            outdated[f"voice {voice}"] += 1
        elif document.corpus_hash not in (None, corpora.get(corpus)):
            outdated[f"corpus {corpus}"] += 1
        else:
            current.append(document)
    return current, outdated


def _once_by_recipe(runs: Iterable[RunDocument]) -> dict[str, RunDocument]:
    """By name of recipe: its last ok run, or its last; `runs` in the order of time."""
    kept: dict[str, RunDocument] = {}
    for run in runs:
        before = kept.get(run.spec.recipe.name)
        if before is None or run.status == "ok" or before.status != "ok":
            kept[run.spec.recipe.name] = run
    return kept


def _values(document: RunDocument, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(_value(document, name)) for name in names)


def _value(document: RunDocument, name: str) -> object:
    return getattr(document if name == "machine_class" else document.spec, name)


def _varies(documents: Iterable[RunDocument], name: str) -> bool:
    return len({_value(document, name) for document in documents}) > 1


def _words(document: RunDocument, name: str) -> str:
    value = _value(document, name)
    if name in _PLAIN:
        return str(value)
    if name in _COUNTED:
        return f"{'all' if value is None else value} {_COUNTED[name]}{'' if value == 1 else 's'}"
    return f"{name.replace('_', ' ')} {value}"
