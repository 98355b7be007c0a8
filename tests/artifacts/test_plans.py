from __future__ import annotations

import importlib.metadata

import pytest

from labkit.artifacts import prepare
from labkit.artifacts.plans import check_recipe, plan_stage, voice_files
from labkit.engines.torch_engine import TorchEngine
from labkit.errors import SpecError
from labkit.model.rounding import units_of
from labkit.run.request import plan_run
from labkit.spec import STAGES, Option, Recipe, RunSpec, StageChoice, StageName, default_recipes
from labkit.spec.runs import AudioPath
from labkit.voices import Voice


def choice(precision: str = "int8-dynamic", **options: Option) -> StageChoice:
    return StageChoice(engine="ort-cpu", precision=precision, options=options)


def test_every_recipe_that_ships_can_be_planned(tiny_voice: Voice) -> None:
    recipes = default_recipes()
    assert {"torch-fp32", "torch-bf16", "ort-fp32", "ort-int8-dynamic", "upstream"} <= set(recipes)
    for recipe in recipes.values():
        check_recipe(recipe, "cpu")
        for stage, wanted in recipe.choices().items():
            plan_stage(stage, wanted, tiny_voice, "hidden")


def test_defaults_written_out_are_the_same_artifact(tiny_voice: Voice) -> None:
    plain, written = (
        plan_stage("gpt", each, tiny_voice, "hidden") for each in (choice(), choice(per_channel=True))
    )
    assert plain.content_hash == written.content_hash


def test_options_of_the_session_do_not_remake_files_and_options_of_the_maker_do(tiny_voice: Voice) -> None:
    plain, session, maker = (
        plan_stage("gpt", each, tiny_voice, "hidden").content_hash
        for each in (choice(), choice(arena=False), choice(quantize_heads=True))
    )
    assert plain == session != maker


def test_the_audio_path_decides_the_decoder_alone(tiny_voice: Voice) -> None:
    hashes = {
        path: {stage: plan_stage(stage, choice("fp32"), tiny_voice, path).content_hash for stage in STAGES}
        for path in ("hidden", "codes")
    }
    differing = {stage for stage in STAGES if hashes["hidden"][stage] != hashes["codes"][stage]}
    assert differing == {"decoder"}
    assert len(set(hashes["hidden"].values())) == 3
    assert voice_files("decoder", "codes") == ("DVAE.safetensors",)


def test_another_tool_version_is_another_artifact(tiny_voice: Voice, monkeypatch) -> None:
    before = plan_stage("gpt", choice(), tiny_voice, "hidden")
    assert before.inputs["tools"].keys() == {"torch", "onnx", "onnxruntime"}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99")
    assert plan_stage("gpt", choice(), tiny_voice, "hidden").content_hash != before.content_hash


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (choice("bf16"), "cannot run it in bf16; it can in fp32, fp16, int8-dynamic"),
        (choice(per_chanel=True), "option 'per_chanel' is unknown.*did you mean 'per_channel'"),
        (choice("fp32", per_channel=True), "option 'per_channel' is unknown"),
        (choice(arena=1), "option 'arena' cannot be 1; it may be True, False"),
        (
            choice(graph_optimization_level="most"),
            "'graph_optimization_level' cannot be 'most'; it may be 'all'",
        ),
        (choice("int4-weight", algorithm="hqq", symmetric=True), "hqq and symmetric: true contradict"),
        (choice("int4-weight", fp32_layers="0,1", int8_layers=1), "both name layer 1; keep it in one"),
        (StageChoice(options={"arena": True}), "option 'arena' is unknown to engine 'torch' in fp32"),
        (StageChoice(options={"istft": "numpy"}), "option 'istft' is for stage 'vocoder'"),
        (
            StageChoice(engine="openvino", precision="fp16"),
            "engine 'openvino' cannot run it in fp16; it can in fp32, bf16, int8-weight, int4-weight",
        ),
        (
            StageChoice(engine="onnx"),
            "engine 'onnx' is unknown; known engines: torch, torch-compile, ort-cpu, openvino",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_recipe_stage_and_value(wanted: StageChoice, message: str) -> None:
    with pytest.raises(SpecError, match=f"recipe 'mine', stage 'gpt': .*{message}"):
        check_recipe(Recipe(name="mine", gpt=wanted))


def test_a_precision_may_be_refused_on_one_device_only() -> None:
    recipe = Recipe(name="half", vocoder=StageChoice(precision="fp16"))
    check_recipe(recipe)
    check_recipe(recipe, "cuda")
    with pytest.raises(SpecError, match=r"stage 'vocoder'.*fp16 on cpu"):
        check_recipe(recipe, "cpu")


def test_an_option_may_be_refused_on_one_device_only_before_any_work() -> None:
    recipe = Recipe(name="recorded", gpt=StageChoice(options={"cuda_graph": True}))
    check_recipe(recipe)
    check_recipe(recipe, "cuda:1")
    with pytest.raises(SpecError, match=r"recipe 'recorded', stage 'gpt': option 'cuda_graph'.*not for cpu"):
        plan_run(RunSpec(recipe=recipe, device="cpu"))


@pytest.mark.parametrize("stage", ["gpt", "decoder", "vocoder"])
@pytest.mark.parametrize("audio_path", ["hidden", "codes"])
def test_a_block_that_the_voice_lacks_is_refused_and_its_last_is_not(
    tiny_voice: Voice, stage: StageName, audio_path: AudioPath
) -> None:
    def check(block: int) -> None:
        damaged = StageChoice(options={"round_blocks": str(block), "round_bits": 3})
        recipe = Recipe.model_validate({"name": "hurt", stage: damaged})
        check_recipe(recipe, voice=tiny_voice, audio_path=audio_path)

    artifact = prepare(Recipe(name="whole"), tiny_voice, audio_path=audio_path)[stage]
    network = TorchEngine().load_module(stage, artifact, device="cpu", threads=1, audio_path=audio_path)
    blocks = sum(unit.kind == "block" for unit in units_of(network))
    check(blocks - 1)
    with pytest.raises(
        SpecError, match=rf"recipe 'hurt', stage '{stage}'.*'{blocks}'.*blocks 0 to {blocks - 1}"
    ):
        check(blocks)


def test_layers_are_named_in_one_form_and_must_be_there(tiny_voice: Voice) -> None:
    def planned(value: Option):
        options = {"fp32_layers": value}
        choice = StageChoice(engine="ort-cpu", precision="int4-weight", options=options)
        check_recipe(Recipe(name="mixed", gpt=choice))
        return plan_stage("gpt", choice, tiny_voice, "hidden")

    assert planned("1,0").content_hash == planned("0, 1").content_hash != planned(0).content_hash
    with pytest.raises(SpecError, match="layers 0 to 1"):
        planned("2")
    with pytest.raises(SpecError, match=r"stage 'gpt': option 'fp32_layers' cannot be 'all'"):
        planned("all")
