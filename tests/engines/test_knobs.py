"""Every knob of `ort-cpu`: it changes what it says, and never what is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.artifacts import check_recipe
from labkit.engines.base import Artifact
from labkit.engines.ort_cpu import OrtCpuEngine
from labkit.engines.ort_session import KNOBS
from labkit.engines.ort_stages import OrtCopyingGpt, OrtGpt
from labkit.errors import SpecError
from labkit.export.gpt_onnx import export_gpt
from labkit.model.checkpoint import load_gpt
from labkit.spec import Option, Recipe, StageChoice, default_recipes, load_recipes, load_sweep
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

SPEAKER_TOKEN = 7


@pytest.fixture(scope="module")
def folder(tiny_voice: Voice, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("gpt")
    return folder, export_gpt(load_gpt(tiny_voice.folder), folder)


def gpt_with(folder: tuple[Path, dict], voice: Voice, threads: int = 1, **options: Option) -> OrtGpt:
    artifact = Artifact(
        stage="gpt", choice=StageChoice(engine="ort-cpu", options=options), folder=folder[0],
        files=tuple(file.name for file in folder[0].iterdir()), size_bytes=0, build_s=None, cached=True,
        content_hash="", voice_folder=voice.folder,
        details={"speaker_token": SPEAKER_TOKEN, "step_weights_bytes": 1000, **folder[1]},
    )  # fmt: skip
    stage = OrtCpuEngine().load("gpt", artifact, device="cpu", threads=threads, audio_path="hidden")
    assert isinstance(stage, OrtGpt)
    return stage


TURNED = [(name, value) for name, values in KNOBS.items() for value in values[1:]]
COMPANIONS: dict[str, dict[str, Option]] = {"inter_op_spinning": {"execution": "parallel"}}


@pytest.mark.parametrize(("name", "value"), TURNED)
def test_no_knob_changes_what_is_said(folder, tiny_voice: Voice, name: str, value: Option) -> None:
    """Batches of mixed lengths, twice over the same cache."""
    ids, mask = prompts((3, 6, 1), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed = codes(5, 3)
    options = {name: value, **COMPANIONS.get(name, {})}
    check_recipe(Recipe(name="knob", gpt=StageChoice(engine="ort-cpu", options=options)))
    plain, turned = gpt_with(folder, tiny_voice), gpt_with(folder, tiny_voice, **options)
    for given in (ids, ids[:, ::-1].copy()):
        wanted, found = (drive(stage, given, mask, None, fed) for stage in (plain, turned))
        assert largest_difference(wanted, found) < 2e-5
    for stage in (plain, turned):
        stage.close()


def test_knobs_reach_the_session(folder, tiny_voice: Voice) -> None:
    options: dict[str, Option] = {
        "graph_optimization_level": "disabled", "execution": "parallel", "arena": False, "memory_reuse": False,
        "prepacking": False, "spinning": False, "inter_op_spinning": False,
    }  # fmt: skip
    settings = gpt_with(folder, tiny_voice, 3, **options).session.get_session_options()
    assert settings.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert settings.execution_mode.name == "ORT_PARALLEL"
    assert (settings.intra_op_num_threads, settings.inter_op_num_threads) == (3, 3)
    assert (
        not settings.enable_cpu_mem_arena
        and not settings.enable_mem_reuse
        and not settings.enable_mem_pattern
    )
    for entry, value in (
        ("session.disable_prepacking", "1"),
        ("session.intra_op.allow_spinning", "0"),
        ("session.inter_op.allow_spinning", "0"),
    ):
        assert settings.get_session_config_entry(entry) == value


def test_what_is_not_turned_is_onnx_runtimes_own_default(folder, tiny_voice: Voice) -> None:
    import onnxruntime as ort

    own, ours = ort.SessionOptions(), gpt_with(folder, tiny_voice).session.get_session_options()
    for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "execution_mode"):
        assert getattr(ours, name) == getattr(own, name), name
    assert ours.graph_optimization_level == own.graph_optimization_level
    with pytest.raises(RuntimeError):  # no entry: the session has its own allocator
        ours.get_session_config_entry("session.use_env_allocators")


def test_an_arena_that_grows_as_requested_is_the_process_own(folder, tiny_voice: Voice) -> None:
    settings = gpt_with(folder, tiny_voice, arena_strategy="as-requested").session.get_session_options()
    assert settings.get_session_config_entry("session.use_env_allocators") == "1"


def test_without_binding_the_cache_is_another_one_after_each_step(folder, tiny_voice: Voice) -> None:
    stage = gpt_with(folder, tiny_voice, io_binding=False)
    assert isinstance(stage, OrtCopyingGpt)
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    stage.reset(1, 8)
    stage.prefill(ids, mask, None)
    before = stage.memory()["kv_bytes"]
    stage.step(codes(1, 1)[0])
    assert stage.memory()["kv_bytes"] == before == 8 * stage.memory()["kv_row_position_bytes"]
    stage.close()


@pytest.mark.parametrize(
    ("stage", "options", "words"),
    [
        ("gpt", {"arena_strategy": "as-requested", "arena": False}, "'arena_strategy' turns nothing"),
        ("gpt", {"inter_op_spinning": False}, "'inter_op_spinning' turns nothing"),
        ("gpt", {"execution": "parallel", "memory_pattern": True}, "needs sequential execution"),
        ("decoder", {"io_binding": True}, "a decoder has no cache"),
        ("gpt", {"io_binding": False, "graph": "portable"}, "the fused graph's"),
        ("gpt", {"arena_strategy": "big"}, r"'arena_strategy' cannot be 'big'; it may be 'power-of-two'"),
        ("gpt", {"io_binding": 1}, "'io_binding' cannot be 1; it may be True, False"),
        ("gpt", {"arena_stategy": "as-requested"}, "did you mean 'arena_strategy'"),
    ],
)
def test_knobs_that_turn_nothing_are_refused_before_any_work(stage: str, options: dict, words: str) -> None:
    recipe = Recipe(name="mine", **{stage: StageChoice(engine="ort-cpu", options=options)})
    with pytest.raises(SpecError, match=rf"recipe 'mine', stage '{stage}': .*{words}"):
        check_recipe(recipe)


def test_the_sweep_turns_every_knob_and_every_recipe_can_run() -> None:
    sweeps = Path(__file__).parent.parent.parent / "sweeps"
    spec = load_sweep(sweeps / "knobs.yaml")
    recipes = load_recipes(sweeps / "knobs-recipes.yaml")
    turned = set()
    for run in spec.runs(recipes):
        check_recipe(run.recipe)
        turned |= set(run.recipe.gpt.options.items())
    assert {(name, value) for name, value in TURNED} <= turned
    assert set(recipes) - set(default_recipes()) == set(spec.recipe) - {spec.baseline}
