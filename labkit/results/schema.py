"""The run document, version 1: one run carried out once, as immutable raw numbers.

It knows the shape of what is stored and refuses NaN, unknown keys and nulls without a reason. Statistics are
computed by whoever reads. Units stand in the names (`latency_s`, `rss_peak_bytes`).
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labkit.spec import RunSpec

SCHEMA_VERSION: Final = 1
RunStatus = Literal["ok", "failed", "oom", "timeout", "unavailable", "invalid"]
Number = float | int | None


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Measures(_Record):
    """Named numbers; a null needs its reason in `reasons`."""

    values: dict[str, Number] = Field(default_factory=dict)
    reasons: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nulls_have_reasons(self) -> Measures:
        silent = [name for name, value in self.values.items() if value is None and name not in self.reasons]
        if silent:
            raise ValueError(f"null without a reason: {', '.join(sorted(silent))}")
        return self


class Sample(Measures):
    """One repetition of one text.

    values: latency_s, cpu_s, audio_s, rtf, prefill_s, decode_s, decoder_s, vocoder_s, first_step_s, ttft_s,
    steps, … ; series: raw values per step, e.g. `step_s`.
    """

    phase: Literal["warmup", "measured"]
    repetition: int = Field(ge=0)
    item: str
    order: int = Field(ge=0, description="position in the run, warm-ups included")
    ended: bool | None = None
    flags: tuple[str, ...] = Field(default=(), strict=False, description="validity findings, e.g. 'hit_max'")
    series: dict[str, list[float]] = Field(default_factory=dict)
    audio: str | None = Field(None, description="file name beside the document, when kept")


class ClipScore(_Record):
    """One quality metric on one clip. `value` null has its reason."""

    item: str
    repetition: int
    metric: str
    value: float | None
    unit: str
    reason: str = ""
    scorer: str = ""
    scorer_version: str = ""

    @model_validator(mode="after")
    def _null_has_reason(self) -> ClipScore:
        if self.value is None and not self.reason:
            raise ValueError(f"metric {self.metric!r} of {self.item!r} is null without a reason")
        return self


class ArtifactRecord(_Record):
    """What was built or found in the cache for one stage."""

    stage: str
    engine: str
    precision: str
    size_bytes: int
    build_s: float | None
    cached: bool
    content_hash: str
    details: dict[str, Any] = Field(default_factory=dict)


class Failure(_Record):
    """Why a run is not `ok`."""

    kind: str = Field(description="class of the error, or the finding for an invalid run")
    message: str
    stage: str | None = Field(None, description="prepare, load, warmup, speak, quality, …")
    remedy: str = ""
    traceback: str = ""


class RunDocument(_Record):
    """Everything known about one run. `run_id` sorts by start time and is unique."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    started_at: str = Field(description="UTC, ISO 8601")
    spec: RunSpec
    work_hash: str
    sweep: str | None = None
    status: RunStatus
    failure: Failure | None = None
    environment: dict[str, Any]
    weights_hash: str | None = None
    corpus_hash: str | None = None
    machine_class: str
    measures: Measures = Field(default_factory=Measures, description="numbers of the whole run")
    artifacts: tuple[ArtifactRecord, ...] = Field(default=(), strict=False)
    placement: dict[str, dict[str, int]] = Field(default_factory=dict)
    samples: tuple[Sample, ...] = Field(default=(), strict=False)
    quality: tuple[ClipScore, ...] = Field(default=(), strict=False)
    notes: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _status_has_its_cause(self) -> RunDocument:
        if (self.status == "ok") == (self.failure is not None):
            raise ValueError(f"status {self.status!r} and failure {self.failure!r} contradict each other")
        return self
