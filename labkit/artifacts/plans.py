"""What has to exist for a recipe, worked out without making or loading anything.

A plan is one stage's choice checked against what engine and makers can do, and the inputs that decide its files.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from labkit.artifacts.files import content_hash
from labkit.artifacts.recorded import half_set
from labkit.engines.base import ChecksOptions, get_engine
from labkit.errors import SpecError
from labkit.export.options import GPT_OPTIONS, VOCODER_OPTIONS
from labkit.model import layout
from labkit.quantize import dynamic, openvino_weights, ranges, static, weight_only
from labkit.quantize.layers import LayerList, layers_of
from labkit.spec import Option, Recipe, StageChoice, StageName, nearest

if TYPE_CHECKING:
    from labkit.voices import Voice

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Maker:
    """One way of making files. Raise `version` whenever the same inputs would give other files than before.

    `options` are the stage options that change the files, each with the values it may take, its default first;
    `check` refuses those that contradict each other.
    """

    name: str
    version: int
    options: Mapping[str, tuple[Option, ...]] = field(default_factory=dict)
    packages: tuple[str, ...] = ("torch", "onnx", "onnxruntime")
    check: Callable[[Mapping[str, Option]], None] | None = None


_VOICE_FILES = Maker("voice-files", version=1, packages=())
_EXPORT_GPT = Maker("export-gpt", version=3, options=GPT_OPTIONS)
_EXPORT_DECODER = Maker("export-network", version=2)
_EXPORT_VOCODER = Maker("export-network", version=2, options=VOCODER_OPTIONS)
_QUANTIZE_GPT_DYNAMIC = Maker("quantize-gpt-dynamic", version=3, options=dynamic.OPTIONS)
_QUANTIZE_NETWORK_DYNAMIC = Maker("quantize-network-dynamic", version=1, options=dynamic.NETWORK_OPTIONS)
_QUANTIZE_GPT_INT8 = Maker(
    "quantize-gpt-int8-weight", version=3, options=weight_only.INT8_OPTIONS, check=weight_only.check_options
)
_QUANTIZE_GPT_INT4 = Maker(
    "quantize-gpt-int4-weight", version=3, options=weight_only.INT4_OPTIONS, check=weight_only.check_options
)
_QUANTIZE_GPT_STATIC = Maker("quantize-gpt-static", version=3, options=static.OPTIONS)
_HALVE_GPT = Maker("halve-gpt", version=1, options=GPT_OPTIONS)
_HALVE_DECODER = Maker("halve-network", version=1)
_HALVE_VOCODER = Maker("halve-network", version=1, options=VOCODER_OPTIONS)
_OPENVINO_GPT = Maker("openvino-gpt", version=1, packages=("torch", "openvino"))
_OPENVINO_GPT_INT8 = replace(_OPENVINO_GPT, options=openvino_weights.INT8_OPTIONS)
_OPENVINO_GPT_INT4 = replace(_OPENVINO_GPT, options=openvino_weights.INT4_OPTIONS)

# (engine, stage, precision) -> maker; engines that are not here read the voice's own files
_MAKERS: dict[tuple[str, StageName, str], Maker] = {
    ("ort-cpu", "gpt", "fp32"): _EXPORT_GPT,
    ("ort-cpu", "decoder", "fp32"): _EXPORT_DECODER,
    ("ort-cpu", "vocoder", "fp32"): _EXPORT_VOCODER,
    ("ort-cpu", "gpt", "fp16"): _HALVE_GPT,
    ("ort-cpu", "decoder", "fp16"): _HALVE_DECODER,
    ("ort-cpu", "vocoder", "fp16"): _HALVE_VOCODER,
    ("ort-cpu", "gpt", "int8-dynamic"): _QUANTIZE_GPT_DYNAMIC,
    ("ort-cpu", "decoder", "int8-dynamic"): _QUANTIZE_NETWORK_DYNAMIC,
    ("ort-cpu", "vocoder", "int8-dynamic"): _QUANTIZE_NETWORK_DYNAMIC,
    ("ort-cpu", "gpt", "int8-static"): _QUANTIZE_GPT_STATIC,
    ("ort-cpu", "gpt", "int8-weight"): _QUANTIZE_GPT_INT8,
    ("ort-cpu", "gpt", "int4-weight"): _QUANTIZE_GPT_INT4,
    ("openvino", "gpt", "fp32"): _OPENVINO_GPT,
    ("openvino", "gpt", "bf16"): _OPENVINO_GPT,
    ("openvino", "gpt", "int8-weight"): _OPENVINO_GPT_INT8,
    ("openvino", "gpt", "int4-weight"): _OPENVINO_GPT_INT4,
    ("openvino", "decoder", "fp32"): _EXPORT_DECODER,
    ("openvino", "decoder", "bf16"): _EXPORT_DECODER,
    ("openvino", "vocoder", "fp32"): _EXPORT_VOCODER,
}


@dataclass(frozen=True)
class Plan:
    """One stage's choice, and everything that decides the bytes of its files."""

    stage: StageName
    choice: StageChoice
    maker: str
    make_options: Mapping[str, Option]
    inputs: Inputs
    content_hash: str
    speaker_token: int | None

    @property
    def is_made(self) -> bool:
        """False when the engine reads the voice's own files."""
        return self.maker != _VOICE_FILES.name


def check_recipe(
    recipe: Recipe, device: str | None = None, *, voice: Voice | None = None, audio_path: str = "hidden"
) -> None:
    """Refuse unknown engines, and precisions and options that they do not know (on a device, if given).

    With a voice, blocks and layers that it does not have are refused, too; its sizes alone are read. SpecError names
    the stage and the value.
    """
    for stage, choice in recipe.choices().items():
        try:
            blocks = voice.config.blocks(stage, audio_path) if voice else None
            maker = _check_choice(stage, choice, device, blocks)
            if voice:
                _complete(choice, maker, voice.config.gpt.layers)
        except SpecError as error:
            raise SpecError(f"recipe {recipe.name!r}, stage {stage!r}: {error}") from error


def plan_stage(stage: StageName, choice: StageChoice, voice: Voice, audio_path: str) -> Plan:
    """Work out one stage's plan; reads the voice's hash, not its weights."""
    maker = _check_choice(stage, choice, blocks=voice.config.blocks(stage, audio_path))
    options = _complete(choice, maker, voice.config.gpt.layers)
    speaker_token = voice.tokenizer().token_id("[spk_emb]") if stage == "gpt" else None
    inputs: Inputs = {
        "stage": stage,
        "engine": choice.engine,
        "precision": choice.precision,
        "maker": maker.name,
        "maker_version": maker.version,
        "options": options,
        "weights_hash": voice.weights_hash,
        "tools": tool_versions(maker.packages),
    }
    if stage == "decoder":
        inputs["audio_path"] = audio_path
    if choice.precision == "fp16":
        inputs["recordings"] = half_set(voice, audio_path).content_hash
    if choice.precision == "int8-static" or options.get("algorithm") == "gptq":
        from labkit.calibration import calibration_set

        if package := ranges.PACKAGES.get(str(options.get("calibrator"))):
            inputs["tools"][package] = _version(package)
        inputs["calibration"] = calibration_set(voice, sentences=int(options["sentences"])).content_hash
    return Plan(stage, choice, maker.name, options, inputs, content_hash(inputs), speaker_token)


def _complete(choice: StageChoice, maker: Maker, layers: int) -> dict[str, Option]:
    """All of the maker's options; those that name layers in one form, and checked against the voice's."""
    options = {name: choice.options.get(name, values[0]) for name, values in maker.options.items()}
    for name, values in maker.options.items():
        if isinstance(values, LayerList):
            layers_of(name, options[name], layers)
            options[name] = values.canonical(name, options[name])
    return options


def voice_files(stage: StageName, audio_path: str) -> tuple[str, ...]:
    """The voice's own files that a stage reads, relative to its asset folder."""
    if stage == "gpt":
        return layout.GPT_CONFIG, layout.GPT_WEIGHTS, layout.EMBED_WEIGHTS
    if stage == "vocoder":
        return (layout.VOCODER_WEIGHTS,)
    return (layout.DVAE_WEIGHTS if audio_path == "codes" else layout.DECODER_WEIGHTS,)


def _check_choice(
    stage: StageName, choice: StageChoice, device: str | None = None, blocks: int | None = None
) -> Maker:
    engine = get_engine(choice.engine)
    precisions = engine.precisions(stage, device)
    if choice.precision not in precisions:
        place = f" on {device}" if device else ""
        raise SpecError(
            f"engine {choice.engine!r} cannot run it in {choice.precision}{place}; "
            f"it can in {', '.join(precisions) or 'no precision'}."
        )
    maker = _MAKERS.get((choice.engine, stage, choice.precision), _VOICE_FILES)
    known = {**engine.run_options, **maker.options}
    for name, value in choice.options.items():
        if name not in known:
            hint = nearest(name, known)
            listed = f"known options: {', '.join(known)}" if known else "it has none"
            raise SpecError(
                f"option {name!r} is unknown to engine {choice.engine!r} in {choice.precision}{hint}; {listed}."
            )
        values = known[name]
        if isinstance(values, LayerList):
            values.canonical(name, value)
        # 1 == True, but an option that wants a truth value should not take a number
        elif not any(type(value) is type(allowed) and value == allowed for allowed in values):
            raise SpecError(f"option {name!r} cannot be {value!r}; it may be {', '.join(map(repr, values))}.")
    if isinstance(engine, ChecksOptions):
        engine.check_options(stage, choice.options, device, blocks)
    if maker.check:
        maker.check({name: choice.options.get(name, values[0]) for name, values in maker.options.items()})
    return maker


def tool_versions(packages: tuple[str, ...] = Maker.packages) -> dict[str, str]:
    """The installed versions of the tools that make artifacts."""
    return {name: _version(name) for name in packages}


def _version(package: str) -> str:
    """Installed version of a tool, whichever of its builds is installed; empty when it is not."""
    for name in (package, f"{package}-gpu", f"{package}-directml"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""
