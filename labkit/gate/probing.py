"""The parent of a probe: what it is keyed by, the order of its children, and the document they leave.

A probe is keyed by everything that decides its scores, the lab's own code among it: on unchanged code an interrupted
gate goes on where it stopped, and changed code is always measured anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from labkit.errors import SpecError, StoreError
from labkit.gate.anchor import Anchor
from labkit.gate.document import ItemScore, Part, ProbeDocument, find_probe, probe_folder, write_probe
from labkit.gate.order import ANCHORS, Order
from labkit.gate.spec import GateSpec
from labkit.results.arrays import load_arrays, save_arrays
from labkit.results.schema import Failure, RunStatus
from labkit.results.store import Store, new_run_id
from labkit.run.clips import ReferenceSpeech, save_references
from labkit.run.document import ending
from labkit.run.process import watch
from labkit.run.request import Plan, plan_run
from labkit.run.tasks import Event, EventLog, Job, events_file, log_file, user_error
from labkit.spec import Recipe

Tell = Callable[[str], None]
# parts of the package that change no score
_NO_SCORES = (
    "bench",
    "cli",
    "compare",
    "doctor",
    "faults",
    "report",
    "search",
    "sensitivity",
    "sweep",
    "training",
    "upstream",
)
_TOOLS = ("numpy", "torch", "onnx", "onnxruntime", "soxr")
_LOG_TAIL = 4000
_ANSWERS = ("logits", "hidden")  # a megabyte a sentence, and needed of the reference alone


@dataclass(frozen=True)
class Ask:
    """One probe that is wanted. `anchors`: the reference's tokens and fingerprints by sentence, from a baseline; the
    reference speaks its own tokens when there are none. `reference`: the reference's probe of the same part."""

    gate: GateSpec
    recipe: Recipe
    part: Part
    anchors: Mapping[str, Anchor] | None = None
    reference: ProbeDocument | None = None
    seeds: tuple[int, ...] = ()
    judged: bool = True


@dataclass
class _Found:
    """What the children reported."""

    stage: str = "prepare"
    scores: list[ItemScore] = field(default_factory=list)
    by_codebook: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failure: Event | None = None

    def take(self, event: Event) -> None:
        match event["kind"]:
            case "stage":
                self.stage = event["name"]
            case "scores":
                self.scores += [ItemScore(**row) for row in event["rows"]]
            case "codebooks":
                self.by_codebook[event["item"]] = {**event["means"], "kl_steps": event["kl_steps"]}
            case "note":
                self.notes.append(event["text"])
            case "failure":
                self.failure = event


def check_recipe_for_gate(gate: GateSpec, recipe: Recipe) -> Plan:
    """Everything a user can get wrong about one recipe of a gate; returns what is known before any work."""
    if recipe.pipeline:
        raise SpecError(
            f"recipe {recipe.name!r} is a whole pipeline of its own: a gate needs three stages to feed the reference's "
            "tokens to. Compare it with `labkit compare`."
        )
    plan = plan_run(gate.run_spec(recipe))
    if not plan.voice.for_quality:
        raise SpecError(
            f"voice {gate.voice!r} has random weights: a gate would judge noise. Choose another voice."
        )
    return plan


def probe(ask: Ask, store: Store, tell: Tell) -> ProbeDocument:
    """Carry out one probe in fresh processes, or find it in the store. User's errors are raised before any work."""
    plan = check_recipe_for_gate(ask.gate, ask.recipe)
    work = work_of(ask, plan)
    work_hash = hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:16]
    title = f"{ask.recipe.name}, {ask.part}"
    if done := find_probe(store, work_hash):
        tell(f"{title}: already there as {done.probe_id}")
        return done
    store.check_writable()
    began, started = time.monotonic(), datetime.now(UTC)
    found = _Found()
    with tempfile.TemporaryDirectory(prefix="labkit-gate-", ignore_cleanup_errors=True) as temporary:
        job = Job(Path(temporary), ask.gate.run_spec(ask.recipe), plan.texts, plan.language, judged=True)
        status, failure = _carry_out(ask, plan, job, store, found, tell)
        from labkit.environment import describe_environment, machine_class

        environment = describe_environment()
        document = ProbeDocument(
            probe_id=f"{new_run_id(ask.recipe.name, started)}-{ask.part}-{work_hash}",
            started_at=started.isoformat(), part=ask.part, recipe=ask.recipe, work=work, work_hash=work_hash,
            status=status, failure=failure, environment=environment, machine_class=machine_class(environment),
            scores=tuple(found.scores), by_codebook=found.by_codebook, notes=(*plan.notes, *found.notes),
            wall_s=round(time.monotonic() - began, 1),
        )  # fmt: skip
        _keep(store, document, job.folder, whole=ask.reference is None)
    tell(f"{title}: {status} in {document.wall_s:.0f} s" + (f" ({failure.message})" if failure else ""))
    return document


def work_of(ask: Ask, plan: Plan) -> dict[str, Any]:
    """What decides the scores of a probe, as plain values."""
    anchors = ask.anchors or {}
    tokens = hashlib.sha256(b"".join(anchors[key].codes.tobytes() for key in sorted(anchors))).hexdigest()
    return {
        "part": ask.part,
        "recipe": ask.recipe.content_hash(),
        "weights": plan.voice.weights_hash,
        "corpus": plan.corpus_hash,
        "texts": len(plan.texts),
        "tokens": tokens if anchors else None,
        "seeds": list(ask.seeds),
        "panel": sorted(ask.gate.panel) if ask.judged else [],
        "settings": ask.gate.model_dump(
            mode="json", include={"device", "threads", "speaker", "audio_path", "max_steps", "reference_seed"}
        ),
        "reference": ask.reference.work_hash if ask.reference else None,
        "code": code_hash(),
    }


@cache
def code_hash() -> str:
    """Hash of the lab's own sources that can change a score, and of the versions of what they stand on."""
    from labkit.environment import package_versions

    package = Path(__file__).parents[1]
    digest = hashlib.sha256(json.dumps(package_versions(_TOOLS), sort_keys=True).encode())
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] not in _NO_SCORES:
            digest.update(place.as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _carry_out(
    ask: Ask, plan: Plan, job: Job, store: Store, found: _Found, tell: Tell
) -> tuple[RunStatus, Failure | None]:
    if plan.unavailable is not None:
        return "unavailable", Failure(
            kind="UnavailableError", message=plan.unavailable.reason, stage="prepare", remedy=plan.unavailable.remedy
        )  # fmt: skip
    reference = str(probe_folder(store, ask.reference).resolve()) if ask.reference else None
    Order(ask.part, ask.seeds, ask.gate.panel if ask.judged else (), reference).write(job.folder)
    if ask.anchors is not None:
        codes = {
            item: ReferenceSpeech(anchor.codes.astype("int64"), None) for item, anchor in ask.anchors.items()
        }
        save_references(job, codes)
        if ask.part == "forced" and ask.reference is None:  # the reference is held to its own fingerprint
            arrays = [anchor.arrays(item) for item, anchor in ask.anchors.items()]
            save_arrays(job.folder / ANCHORS, {key: each for one in arrays for key, each in one.items()})
    elif ask.part == "forced":
        _child("labkit.run.prepare", job, found, tell)
    for task in ("labkit.gate.probe", "labkit.gate.judge"):
        if found.failure is None:
            _child(task, job, found, tell)
    if found.failure is None:
        return "ok", None
    if found.failure["user"]:
        raise user_error(found.failure)
    failure = found.failure
    return failure["status"], Failure(
        kind=failure["type"], message=failure["message"], stage=found.stage, remedy=failure["remedy"],
        traceback=failure["traceback"],
    )  # fmt: skip


def _child(module: str, job: Job, found: _Found, tell: Tell) -> None:
    """One child to its end, its events folded in as they come."""
    task, limits = module.rpartition(".")[2], job.spec.limits
    log = EventLog(events_file(job.folder, task))

    def tick(_: object = None) -> None:
        for event in log.new():
            found.take(event)
            if event["kind"] == "stage":
                tell(
                    f"{job.spec.recipe.name}: {event['name']}"
                    + (f": {event['detail']}" if event["detail"] else "")
                )

    job.write()
    ended = watch(
        module, job.folder, log=log_file(job.folder, task), threads=job.spec.threads, seconds=limits.seconds,
        memory_bytes=round(limits.memory_gb * 1e9) if limits.memory_gb is not None else None, on_tick=tick,
    )  # fmt: skip
    tick()
    if found.failure is None:
        words = log_file(job.folder, task).read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
        found.failure = ending(ended, task, limits, words)


def _keep(store: Store, document: ProbeDocument, folder: Path, *, whole: bool) -> None:
    """Arrays first, the document last: one that can be read has all its files."""
    target = probe_folder(store, document)
    try:
        target.mkdir(parents=True)
        for file in sorted([*folder.glob("forced-*.npz"), *folder.glob("free-*.npz")]):
            if whole:
                shutil.move(file, target / file.name)
            else:
                save_arrays(
                    target / file.name, {k: a for k, a in load_arrays(file).items() if k not in _ANSWERS}
                )
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise StoreError(f"{target} cannot be written ({error}); free some disk space.") from error
    write_probe(store, document)
