"""`bench peers`: upstream, the lab's recipes and llama.cpp at full size, interleaved in one run.

Three races: decode steps on one core, the same on one and on two threads, and the sound that decoder and vocoder make.
Only ratios within a race mean something: the machine's state is in every number, and in all arms alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from labkit.bench.arms import Arm, Tell, llama_arm, sound_arm, step_arm
from labkit.bench.llama_file import TYPES
from labkit.bench.own import BASE, check_counts, check_room, pinned_core, this_machine, usable_cores
from labkit.bench.race import Course, Figures, Lane, race
from labkit.bench.targets import peer_targets
from labkit.errors import SpecError
from labkit.spec import Recipe, default_recipes, find_recipe
from labkit.voices import Voice, resolve_voice

STEP, THREADS, SOUND = "step", "threads", "sound"
RACES = (STEP, THREADS, SOUND)
STEP_RECIPES = (
    BASE, "torch-fp32", "torch-bf16", "torch-compile-bf16", "ort-fp32", "ort-int8-dynamic", "ort-int8-dynamic-narrow",
    "ort-int8-weight", "ort-int8-weight-128", "ort-int4-rtn", "ort-int4-rtn-128",
    "openvino-fp32", "openvino-bf16", "openvino-int8-weight", "openvino-int4-hqq",
)  # fmt: skip
THREAD_RECIPES = (BASE, "ort-fp32", "ort-int8-dynamic", "ort-int4-rtn-128", "openvino-fp32")
SOUND_RECIPES = (
    BASE, "torch-fp32", "torch-bf16", "torch-bf16-fft", "ort-fp32", "ort-int8-all", "openvino-fp32", "openvino-bf16",
)  # fmt: skip
TITLES: Mapping[str, str] = {
    STEP: "one decode step on one core",
    THREADS: "one decode step on one thread and on two",
    SOUND: "decoder and vocoder on one core",
}
Watch = Callable[[str, Figures], None]
"""Called with a race's name and its figures as soon as it is over."""


def bench_peers(
    *,
    rounds: int = 10,
    steps: int = 8,
    context: int = 300,
    sound_steps: int = 234,
    voice: str = "random",
    races: Sequence[str] = RACES,
    recipes: Sequence[str] | None = None,
    llama: Sequence[str] = TYPES,
    core: int | None = None,
    progress: Tell | None = None,
    on_race: Watch | None = None,
) -> Figures:
    """Run the races and return all figures as plain values (JSON): races by name, targets.

    sound_steps: what sound is made of, 234 steps are 5 s. recipes: instead of each race's own; upstream is always
    among them. llama: how llama.cpp's matrices are stored (`TYPES`), none to leave it out. core: where one-threaded
    arms run, the last one when left out. Raises the user's errors before any work; a recipe that cannot run here is a
    row with its reason.
    """
    tell = progress or (lambda line: None)
    check_counts(rounds=rounds, steps=steps, context=context)
    _check_names("race", races, RACES)
    _check_names("type of llama.cpp", llama, TYPES)
    known = default_recipes()
    chosen = {
        name: [find_recipe(each, known) for each in dict.fromkeys((BASE, *(recipes or own)))]
        for name, own in ((STEP, STEP_RECIPES), (THREADS, THREAD_RECIPES), (SOUND, SOUND_RECIPES))
    }
    one = (pinned_core(core),)
    full = resolve_voice(voice, tell)
    check_room(full, context, rounds, steps)
    figures: Figures = {"voice": voice, "machine": this_machine(), "races": {}}
    plans: dict[str, tuple[list[Lane], Course]] = {
        STEP: (
            [*_steps(chosen[STEP], full, one, tell), *_llamas(llama, full, one, tell)],
            Course(context, steps, rounds),
        ),
        THREADS: (
            _pairs(chosen[THREADS], full, one, tell),
            Course(context, steps, rounds, clock="network_wall_s"),
        ),
        SOUND: (_sounds(chosen[SOUND], full, one, tell), Course(sound_steps, 1, rounds, grows=False)),
    }
    for name in races:
        lanes, course = plans[name]
        if not lanes:
            figures["races"][name] = {"reason": "one usable core has no room for two threads"}
            continue
        tell(f"bench: {TITLES[name]}: {len(lanes)} arms")
        outcome: Figures = {
            "length": course.length,
            "takes": course.takes,
            "rounds": course.rounds,
            "clock": course.clock,
            "arms": race(lanes, course, tell),
        }
        figures["races"][name] = outcome
        if on_race:
            on_race(name, outcome)
    return {**figures, "targets": peer_targets(figures["races"])}


def two_threads(name: str) -> str:
    """What the row of a recipe on two threads is called."""
    return f"{name}, 2 threads"


def _steps(recipes: Sequence[Recipe], voice: Voice, cores: tuple[int, ...], tell: Tell) -> list[Lane]:
    return [Lane(each.name, partial(step_arm, each, voice, cores, tell), BASE, cores) for each in recipes]


def _sounds(recipes: Sequence[Recipe], voice: Voice, cores: tuple[int, ...], tell: Tell) -> list[Lane]:
    return [Lane(each.name, partial(sound_arm, each, voice, cores, tell), BASE, cores) for each in recipes]


def _llamas(kinds: Sequence[str], voice: Voice, cores: tuple[int, ...], tell: Tell) -> list[Lane]:
    def lane(kind: str) -> Lane:
        opening: Callable[[], Arm] = partial(llama_arm, kind, voice, cores, tell)
        return Lane(f"llama.cpp-{kind.lower()}", opening, BASE, cores)

    return [lane(kind) for kind in kinds]


def _pairs(recipes: Sequence[Recipe], voice: Voice, one: tuple[int, ...], tell: Tell) -> list[Lane]:
    """Each recipe on one core and on two, the second beside the first; nothing where there is one core."""
    others = [core for core in usable_cores() if core not in one]
    if not others:
        return []
    two = (others[-1], *one)
    return [
        lane
        for each in recipes
        for lane in (
            Lane(each.name, partial(step_arm, each, voice, one, tell), None, one),
            Lane(two_threads(each.name), partial(step_arm, each, voice, two, tell), each.name, two),
        )
    ]


def _check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise SpecError(f"bench: {what} {name!r} is unknown; known: {', '.join(known)}.")
