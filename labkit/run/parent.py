"""The order of a run: check, prepare, measure, judge, record.

It knows the children by name and what each failure means for the next. It measures only what must be seen from
outside: the peak memory of the measured process tree.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import StoreError
from labkit.measure.memory import TreeMemory
from labkit.results.schema import Failure, RunDocument, RunStatus
from labkit.results.store import Store, new_run_id
from labkit.run.clips import SPOKEN, kept_clips
from labkit.run.document import Findings, audio_name, ending, finish_measures, missing_scores, verdict
from labkit.run.process import watch
from labkit.run.request import Plan, plan_run
from labkit.run.tasks import BuildClock, Event, EventLog, Job, events_file, log_file, user_error
from labkit.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Tell = Callable[[str], None]
UNSAVED = (
    "labkit-unsaved-"  # begins the name of a temporary folder with a document that its store could not take
)
_LOG_TAIL = 4000  # characters of a crashed child's output that are kept
_CHILDREN = 3
_BUILDS_S = 4 * 3600.0  # generous: what the parent does not limit is ended by whoever watches it, at last


def run(
    spec: RunSpec,
    *,
    store: Path | str | None = None,
    sweep: str | None = None,
    progress: Tell | None = None,
) -> RunDocument:
    """Carry out one run in fresh processes, record it, and return its document.

    Raises the user's errors (`UserError`) and `StoreError` before any work. From then on whatever happens becomes
    the document's status: `ok`, `failed`, `oom`, `timeout`, `unavailable`, `invalid`.
    `spec.limits.seconds` holds for each child (prepare, measure, judge), `memory_gb` for the measured one. Building
    artifacts, which is done once for many runs, has no limit here and counts in none.
    Interrupted (Ctrl-C), the children are ended and nothing is recorded. A store that becomes unwritable meanwhile
    is a `StoreError` that names where the document was put instead.
    """
    tell = progress or (lambda line: None)
    target = Store(store)
    target.check_writable()
    plan = plan_run(spec)
    started = datetime.now(UTC)
    findings = Findings(notes=list(plan.notes))
    with tempfile.TemporaryDirectory(prefix="labkit-run-", ignore_cleanup_errors=True) as folder:
        job = Job(Path(folder), spec, plan.texts, plan.language, judged=plan.judged)
        try:
            status, failure = carry_out(plan, job, findings, tell)
        except KeyboardInterrupt:
            tell(f"{spec.recipe.name}: interrupted; nothing was recorded")
            raise
        audio = _audio(job) if spec.keep_audio else {}
    document = _compose(plan, findings, started, status, failure, sweep, audio)
    _keep(document, audio, target)
    tell(f"{spec.recipe.name}: {status}" + (f" ({failure.message})" if failure else ""))
    return document


def _keep(document: RunDocument, audio: dict[str, NDArray[np.float32]], store: Store) -> None:
    """Record the run; when the store has become unwritable meanwhile, leave the document where it can be fetched."""
    try:
        store.write(document, audio=audio)
    except StoreError as error:
        silent = tuple(sample.model_copy(update={"audio": None}) for sample in document.samples)
        spare = Store(tempfile.mkdtemp(prefix=UNSAVED))
        try:
            file = spare.write(document.model_copy(update={"samples": silent}))
        except StoreError:  # no room anywhere: the first reason is the one to mend
            shutil.rmtree(spare.folder, ignore_errors=True)
            raise error from None
        raise StoreError(
            f"{error} The run itself is not lost: move {file} into {store.runs_folder}."
        ) from error


def longest_run_s(spec: RunSpec) -> float:
    """Seconds after which a run has surely ended by itself, for whoever watches over it from outside."""
    return _CHILDREN * spec.limits.seconds + _BUILDS_S + 60.0


def carry_out(plan: Plan, job: Job, findings: Findings, tell: Tell) -> tuple[RunStatus, Failure | None]:
    """Start the children in turn, as far as the run comes."""
    if plan.unavailable is not None:
        return "unavailable", Failure(
            kind="UnavailableError",
            message=plan.unavailable.reason,
            stage="prepare",
            remedy=plan.unavailable.remedy,
        )
    _child("prepare", job, findings, tell)
    if findings.failure is not None:
        if findings.failure["user"]:
            raise user_error(findings.failure)
        return verdict(findings, trained=plan.judged)
    _child("measure", job, findings, tell, limited=True)
    if findings.failure is not None and findings.failure["user"] and not findings.samples:
        raise user_error(findings.failure)
    status, failure = verdict(findings, trained=bool(plan.voice.for_quality))
    if findings.measured and status in ("ok", "invalid"):
        _judge(plan, job, findings, tell)
    return status, failure


def _child(task: str, job: Job, findings: Findings, tell: Tell, *, limited: bool = False) -> None:
    """One child to its end, its events folded in as they come."""
    limits = job.spec.limits
    log, building = EventLog(events_file(job.folder, task)), BuildClock()

    def take(event: Event) -> None:
        findings.take(event)
        building.take(event)
        if event["kind"] == "stage":
            tell(
                f"{job.spec.recipe.name}: {event['name']}"
                + (f": {event['detail']}" if event["detail"] else "")
            )

    def tick(memory: TreeMemory) -> None:
        if limited and not findings.measured and memory.peak_bytes is not None:
            findings.values["rss_peak_bytes"] = memory.peak_bytes
        for event in log.new():
            take(event)

    job.write()
    ended = watch(
        f"labkit.run.{task}",
        job.folder,
        log=log_file(job.folder, task),
        threads=job.spec.threads,
        seconds=limits.seconds,
        memory_bytes=round(limits.memory_gb * 1e9) if limited and limits.memory_gb is not None else None,
        on_tick=tick,
        excused_s=building.seconds,
    )
    for event in log.new():
        take(event)
    if findings.failure is None:
        findings.failure = ending(ended, task, limits, _tail(log_file(job.folder, task)))


def _judge(plan: Plan, job: Job, findings: Findings, tell: Tell) -> None:
    """Quality, or why there is none. A judge that fails costs the scores it owes and nothing else."""
    if not job.spec.quality:
        return
    if not plan.judged:
        findings.quality = missing_scores(
            f"voice {job.spec.voice!r} has random weights: its audio means nothing"
        )
        return
    cause, findings.failure = findings.failure, None
    _child("judge", job, findings, tell)
    if findings.failure is not None:
        reason = f"the judge did not come so far: {findings.failure['message']}"
        findings.notes.append(reason)
        done = {score.metric for score in findings.quality}
        findings.quality += [score for score in missing_scores(reason) if score.metric not in done]
    findings.failure = cause


def _compose(
    plan: Plan,
    findings: Findings,
    started: datetime,
    status: RunStatus,
    failure: Failure | None,
    sweep: str | None,
    audio: dict[str, NDArray[np.float32]],
) -> RunDocument:
    from labkit.environment import describe_environment, machine_class

    finish_measures(findings, status)
    environment = describe_environment()
    return RunDocument(
        run_id=new_run_id(plan.spec.recipe.name, started),
        started_at=started.isoformat(),
        spec=plan.spec,
        work_hash=plan.spec.work_hash(),
        sweep=sweep,
        status=status,
        failure=failure,
        environment=environment,
        weights_hash=plan.voice.weights_hash,
        corpus_hash=plan.corpus_hash,
        machine_class=machine_class(environment),
        measures=findings.measures(),
        artifacts=tuple(findings.artifacts),
        placement=findings.placement,
        samples=findings.recorded_samples(audio),
        quality=tuple(findings.quality),
        notes=tuple(findings.notes),
    )


def _audio(job: Job) -> dict[str, Any]:
    """Clips of the first repetition, by file name; unsound ones cannot be stored as audio."""
    import numpy as np

    return {
        audio_name(clip.item): clip.audio
        for clip in kept_clips(job, SPOKEN)
        if clip.audio.size and np.isfinite(clip.audio).all()
    }


def _tail(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:] if file.exists() else ""
