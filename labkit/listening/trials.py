"""A listening test: the clips of some runs, the trials over them, and the key that tells which clip is whose.

Names stay hidden: clips and trials bear ids made from hashes, and the key lies in the results store
(`<store>/listening/<test>.json`), not in what a listener is given. Some trials test the listener: a muffled clip
(`low`), a clip heard twice (`repeat`), a pair of equal clips (`null`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from labkit.errors import StoreError, UserError
from labkit.report.said import texts_said
from labkit.results.schema import RunDocument
from labkit.results.store import Store, write_atomic

Kind = Literal["mos", "ab"]
KINDS: tuple[Kind, ...] = get_args(Kind)
METRIC = {"mos": "human_mos", "ab": "human_ab"}
FORMAT = 1
MIN_ITEMS = 2
_ANCHOR_EVERY = 8  # one trial of each kind of anchor for so many texts, and never fewer than one


@dataclass(frozen=True)
class Clip:
    """What an id stands for. `muffled`: the clip is played through the anchor's low-pass filter."""

    id: str
    run_id: str
    recipe: str
    item: str
    text: str
    audio: str
    muffled: bool = False


@dataclass(frozen=True)
class Trial:
    """One question. `clips`: one id for a rating; for a pair the base's id, then that of what is held against it."""

    id: str
    clips: tuple[str, ...]
    item: str
    anchor: str = ""


@dataclass(frozen=True)
class ListeningTest:
    """Complete: two equal tests ask the same. `id` is the hash of what is asked."""

    id: str
    kind: Kind
    seed: int
    clips: dict[str, Clip]
    trials: tuple[Trial, ...]

    def text_of(self, trial: Trial) -> str:
        return self.clips[trial.clips[0]].text

    def trial(self, wanted: str) -> Trial | None:
        return next((trial for trial in self.trials if trial.id == wanted), None)

    def example(self) -> tuple[Clip, Clip]:
        """A clip as it is and muffled, to hear the ends of the scale before the first question."""
        low = next(clip for clip in self.clips.values() if clip.muffled)
        plain = next(
            c for c in self.clips.values() if not c.muffled and (c.run_id, c.item) == (low.run_id, low.item)
        )
        return plain, low


def make_test(
    store: Store, runs: Sequence[str], *, kind: Kind = "mos", seed: int = 0, texts: int | None = None
) -> ListeningTest:
    """Plan a test of runs (ids, or recipes: then the last well run with kept audio), and keep its key in the store.

    For pairs, the first run is what the others are held against. Only texts that all runs kept are heard; `texts`
    takes the first so many. `UserError` for an unknown run, runs of unlike voices or corpora, or too few texts.
    """
    if kind not in KINDS:
        raise UserError(f"a listening test cannot be of kind {kind!r}; it may be {' or '.join(KINDS)}.")
    documents = _find(store, runs)
    if kind == "ab" and len(documents) < 2:
        raise UserError("pairs need at least two runs; name a second one with --runs BASE,OTHER.")
    items = _common_items(documents)[:texts]
    if len(items) < MIN_ITEMS:
        raise UserError(
            f"{len(items)} texts have audio in all of {', '.join(runs)}; a test needs {MIN_ITEMS}. "
            "Run with --keep-audio and the same corpus."
        )
    asked = [FORMAT, kind, seed, [d.run_id for d in documents], items]
    name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]
    planner = _Planner(name, documents, items)
    trials = planner.ratings() if kind == "mos" else planner.pairs()
    test = ListeningTest(name, kind, seed, planner.clips, tuple(trials))
    _keep_key(store, test)
    return test


def audible(store: Store) -> list[str]:
    """Recipes with a well run whose audio was kept, in alphabetical order."""
    return _audible(store.documents())


def read_test(store: Store, name: str) -> ListeningTest:
    """A test by its id, from the key in the store; `UserError` names the known ones."""
    path = _key_file(store, name)
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.json"))) or "none"
        raise UserError(f"listening test {name!r} has no key in {path.parent}; tests with one: {known}.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return ListeningTest(
            id=values["id"],
            kind=values["kind"],
            seed=values["seed"],
            clips={clip["id"]: Clip(**clip) for clip in values["clips"]},
            trials=tuple(Trial(**{**trial, "clips": tuple(trial["clips"])}) for trial in values["trials"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}); make the test again, with the same runs."
        ) from error


class _Planner:
    """Makes trials and the clips they need; ids are hashes, so that they tell nothing and are the same every time."""

    def __init__(self, name: str, documents: list[RunDocument], items: list[str]) -> None:
        self.name, self.documents, self.items = name, documents, items
        self.texts = texts_said(documents[0])
        self.clips: dict[str, Clip] = {}
        self.anchored = items[::_ANCHOR_EVERY]

    def ratings(self) -> list[Trial]:
        """Every clip once; of some texts the base again, and muffled."""
        base = self.documents[0]
        trials = [self._trial([self._clip(d, item)], item) for item in self.items for d in self.documents]
        for item in self.anchored:
            trials.append(self._trial([self._clip(base, item, muffled=True)], item, "low"))
            trials.append(self._trial([self._clip(base, item)], item, "repeat"))
        return trials

    def pairs(self) -> list[Trial]:
        """The base against each other run; of some texts against itself, and against itself muffled."""
        base, *others = self.documents
        trials = [
            self._trial([self._clip(base, item), self._clip(other, item)], item)
            for item in self.items
            for other in others
        ]
        for item in self.anchored:
            plain = self._clip(base, item)
            trials.append(self._trial([plain, self._clip(base, item, muffled=True)], item, "low"))
            trials.append(self._trial([plain, plain], item, "null"))
        return trials

    def _clip(self, document: RunDocument, item: str, muffled: bool = False) -> str:
        clip = Clip(
            id="c" + self._hash(document.run_id, item, muffled),
            run_id=document.run_id,
            recipe=document.spec.recipe.name,
            item=item,
            text=self.texts.get(item, ""),
            audio=_kept(document)[item],
            muffled=muffled,
        )
        self.clips[clip.id] = clip
        return clip.id

    def _trial(self, clips: list[str], item: str, anchor: str = "") -> Trial:
        return Trial("t" + self._hash(*clips, anchor), tuple(clips), item, anchor)

    def _hash(self, *parts: Any) -> str:
        return hashlib.sha256(json.dumps([self.name, *parts]).encode()).hexdigest()[:10]


def _find(store: Store, wanted: Sequence[str]) -> list[RunDocument]:
    """The runs, each once; all of one voice and corpus."""
    known = store.documents()
    found: list[RunDocument] = []
    for name in wanted:
        by_id = [document for document in known if document.run_id == name]
        recipes = [d for d in known if d.spec.recipe.name == name and d.status == "ok" and _kept(d)]
        if not (by_id or recipes):
            heard = _audible(known)
            raise UserError(
                f"no run {name!r} with kept audio is in {store.folder}; "
                f"recipes that can be heard: {', '.join(heard) or 'none (run with --keep-audio)'}."
            )
        document = by_id[0] if by_id else recipes[-1]
        if document.run_id in {each.run_id for each in found}:
            raise UserError(f"run {name!r} is named twice.")
        found.append(document)
    if not found:
        raise UserError("a listening test needs runs; name them with --runs RECIPE_OR_ID,…")
    for what in ("weights_hash", "corpus_hash"):
        if len({getattr(document, what) for document in found}) > 1:
            unlike = "voice" if what == "weights_hash" else "corpus"
            raise UserError(f"not comparable: {', '.join(wanted)} are not of one {unlike}.")
    return found


def _audible(documents: list[RunDocument]) -> list[str]:
    return sorted({d.spec.recipe.name for d in documents if d.status == "ok" and _kept(d)})


def _kept(document: RunDocument) -> dict[str, str]:
    """Text -> the file of its first kept clip."""
    kept: dict[str, str] = {}
    for sample in document.samples:
        if sample.audio and sample.phase == "measured":
            kept.setdefault(sample.item, sample.audio)
    return kept


def _common_items(documents: list[RunDocument]) -> list[str]:
    return [item for item in _kept(documents[0]) if all(item in _kept(d) for d in documents)]


def _key_file(store: Store, name: str) -> Path:
    return store.folder / "listening" / f"{name}.json"


def _keep_key(store: Store, test: ListeningTest) -> None:
    path = _key_file(store, test.id)
    values = {
        "format": FORMAT, "id": test.id, "kind": test.kind, "seed": test.seed,
        "clips": [asdict(clip) for clip in test.clips.values()], "trials": [asdict(trial) for trial in test.trials],
    }  # fmt: skip
    try:
        write_atomic(path, json.dumps(values, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise StoreError(
            f"the key of the listening test cannot be written to {path} ({error}); "
            "choose another folder with --results."
        ) from error
