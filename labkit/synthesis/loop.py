"""The generate loop: prefill, then one GPT step per 4 codes until every row has ended.

One noise generator per row, keyed by the request's seed and row, so neighbours never change what a row says. A row
that ends before its first code is drawn again a few times (ChatTTS does so without bound). Knows no audio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np

from labkit.engines.base import BoolArray, FloatArray, GptStage, IntArray, StepOutput
from labkit.errors import LabError, SpecError
from labkit.model.config import GptConfig
from labkit.model.sampling import RowNoise, SamplingParams, draw, stack_noise
from labkit.synthesis.request import Prepared, Timings, pad_left, speaker_rows

START_RETRIES = 3
Observer = Callable[[int, StepOutput], None]
"""Called with the step and the GPT's output that predicts it, before codes are drawn."""


class Generation:
    """One batch of rows being decoded; arrays grow as `steps` runs.

    codes: [B, steps, 4]; hidden: [B, steps, D]; lengths: [B] steps recorded per row; active: [B] rows still speaking;
    capped: [B] rows stopped by their limit instead of an end mark.
    """

    def __init__(
        self,
        gpt: GptStage,
        config: GptConfig,
        rows: Sequence[Prepared],
        *,
        max_steps: int | None,
        replay: Sequence[IntArray] | None,
        timings: Timings,
        started: float,
        observe: Observer | None = None,
    ) -> None:
        self.gpt, self.config, self.rows, self.replay = gpt, config, rows, replay
        self.timings, self.started, self.observe = timings, started, observe
        batch, codebooks = len(rows), config.num_codebooks
        prompt = max(len(row.ids) for row in rows)
        room = config.positions - prompt
        if replay is not None:
            _check_replay(replay, batch, config, room)
            self._limits = np.array([len(codes) for codes in replay])
        else:
            self._limits = np.array(
                [min(max_steps or room, row.request.sampling.max_steps, room) for row in rows]
            )
        steps = int(self._limits.max())
        self.capacity = prompt + steps
        self.codes = np.zeros((batch, steps, codebooks), dtype=np.int64)
        self.hidden = np.zeros((batch, steps, config.hidden), dtype=np.float32)
        self.lengths = np.zeros(batch, dtype=np.int64)
        self.active: BoolArray = np.ones(batch, dtype=np.bool_)
        self.capped = np.zeros(batch, dtype=np.bool_)
        self.retried = np.zeros(batch, dtype=np.bool_)
        self._noise = [RowNoise(row.request.seed, row.request.row) for row in rows]
        self._groups = _group_by_sampling(rows)

    def steps(self) -> Iterator[int]:
        """Decode; yields the number of steps recorded so far, after each one."""
        out = self._prefill()
        step = 0
        while True:
            self._check_finite(out, step)
            if self.observe is not None:
                self.observe(step, out)
            codes = self._next_codes(out.logits, step)
            if step == 0:
                self.timings.first_step_s = perf_counter() - self.started
            if not self.active.any():
                return
            self.codes[self.active, step] = codes[self.active]
            self.hidden[self.active, step] = out.hidden[self.active]
            self.lengths[self.active] += 1
            if self.replay is None:
                self.capped |= self.active & (self.lengths == self._limits)
                self.active &= ~self.capped
            step += 1
            yield step
            if not self.active.any():
                return
            begun = perf_counter()
            out = self.gpt.step(self.codes[:, step - 1])
            self.timings.step_s.append(perf_counter() - begun)

    def _prefill(self) -> StepOutput:
        ids, mask = pad_left([row.ids for row in self.rows])
        speaker = speaker_rows([row.request for row in self.rows], self.config.hidden)
        begun = perf_counter()
        self.gpt.reset(len(self.rows), self.capacity)
        out = self.gpt.prefill(ids, mask, speaker)
        self.timings.prefill_s = perf_counter() - begun
        return out

    def _next_codes(self, logits: FloatArray, step: int) -> IntArray:
        """The codes [B, 4] of this step; rows that end here become inactive."""
        if self.replay is not None:
            return self._replayed(step)
        begun = perf_counter()
        codes = self._draw(logits, step)
        ended = (codes == self.config.end_code).any(-1)
        if step == 0:
            codes, ended = self._retry(logits, codes, ended)
        self.active &= ~ended
        self.timings.sample_s += perf_counter() - begun
        return codes

    def _replayed(self, step: int) -> IntArray:
        assert self.replay is not None
        codes = np.zeros((len(self.rows), self.config.num_codebooks), dtype=np.int64)
        for i, row in enumerate(self.replay):
            if step < len(row):
                codes[i] = row[step]
            else:
                self.active[i] = False
        return codes

    def _draw(self, logits: FloatArray, step: int) -> IntArray:
        codes = np.zeros(logits.shape[:2], dtype=np.int64)
        for params, indices in self._groups:
            rows = [i for i in indices if self.active[i]]
            if not rows:
                continue
            noise = None
            if not params.greedy:
                noise = stack_noise([self._noise[i] for i in rows], step, *logits.shape[1:])
            codes[rows] = draw(
                logits[rows], self.codes[rows, :step], params, noise, step=step, end=self.config.end_code
            )
        return codes

    def _retry(self, logits: FloatArray, codes: IntArray, ended: BoolArray) -> tuple[IntArray, BoolArray]:
        """Draw the first codes again, with fresh noise, for sampled rows that ended at once."""
        sampled = np.array([not row.request.sampling.greedy for row in self.rows])
        for attempt in range(1, START_RETRIES + 1):
            again = np.flatnonzero(ended & sampled)
            if len(again) == 0:
                break
            for i in again.tolist():
                request = self.rows[i].request
                self._noise[i] = RowNoise(request.seed, request.row, stream=attempt)
                self.retried[i] = True
            codes[again] = self._draw(logits, 0)[again]
            ended = (codes == self.config.end_code).any(-1)
        return codes, ended

    def _check_finite(self, out: StepOutput, step: int) -> None:
        for name, values in (("logits", out.logits), ("hidden states", out.hidden)):
            if not np.isfinite(values[self.active]).all():
                row = int(
                    np.flatnonzero(self.active & ~np.isfinite(values).reshape(len(values), -1).all(-1))[0]
                )
                raise LabError(
                    f"stage gpt: its {name} are not finite at step {step}, row {row} "
                    f"({self.rows[row].request.text!r}); try a wider precision for this stage."
                )


def _group_by_sampling(rows: Sequence[Prepared]) -> list[tuple[SamplingParams, list[int]]]:
    groups: dict[SamplingParams, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.request.sampling, []).append(i)
    return list(groups.items())


def _check_replay(replay: Sequence[IntArray], batch: int, config: GptConfig, room: int) -> None:
    if len(replay) != batch:
        raise SpecError(
            f"replay: {len(replay)} rows of codes for {batch} requests; give one [T, 4] array each."
        )
    for i, codes in enumerate(replay):
        if codes.ndim != 2 or codes.shape[1] != config.num_codebooks or len(codes) == 0:
            raise SpecError(
                f"replay row {i}: codes have shape {codes.shape}, not [T, {config.num_codebooks}]."
            )
        if codes.min() < 0 or codes.max() >= config.end_code:
            raise SpecError(f"replay row {i}: codes must lie in 0..{config.end_code - 1}.")
        if len(codes) > room:
            raise SpecError(f"replay row {i}: {len(codes)} steps do not fit; the voice has room for {room}.")
