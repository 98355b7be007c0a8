"""From a recipe to the files its engines load, each made once and cached by the hash of what decides its bytes.

`prepare` is the one entrance. It loads neither torch nor an engine's runtime: what is missing is made by a process of
its own (`python -m labkit.artifacts`), so that a measured process stays free of exporters and their memory. Stages of
the torch engine need no making: their artifact is the voice's own files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import labkit.errors
from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.plans import Plan, check_recipe, plan_stage, voice_files
from labkit.engines.base import Artifact
from labkit.errors import ArtifactError, UnavailableError
from labkit.spec import Recipe, StageName
from labkit.voices import cache_folder

if TYPE_CHECKING:
    from labkit.voices import Voice

__all__ = ["cache_folder", "check_recipe", "prepare"]

Progress = Callable[[str], None]


def prepare(
    recipe: Recipe,
    voice: Voice,
    *,
    audio_path: str = "hidden",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> dict[StageName, Artifact]:
    """Find or make the artifact of each stage, verified; empty for a recipe that is a whole pipeline.

    `progress` gets a line per step of making. SpecError for a choice no engine knows, ParityError for a stage whose
    numbers are wrong, ArtifactError when files cannot be made or written.
    """
    check_recipe(recipe, voice=voice, audio_path=audio_path)
    store = ArtifactFolder(cache)
    plans = {
        stage: plan_stage(stage, choice, voice, audio_path) for stage, choice in recipe.choices().items()
    }
    tell = progress or (lambda _: None)
    found = {stage: store.find(plan.content_hash) for stage, plan in plans.items() if plan.is_made}
    missing = [stage for stage, (manifest, _) in found.items() if manifest is None]
    if missing:
        _make_in_child([plans[stage] for stage in missing], voice, audio_path, store, tell)
    return {
        stage: _made(plan, voice, store, found[stage][0]) if plan.is_made else _own(plan, voice, audio_path)
        for stage, plan in plans.items()
    }


def making_command() -> list[str]:
    """The command line of the making process."""
    return [sys.executable, "-m", "labkit.artifacts"]


def _own(plan: Plan, voice: Voice, audio_path: str) -> Artifact:
    files = voice_files(plan.stage, audio_path)
    return Artifact(
        stage=plan.stage,
        choice=plan.choice,
        folder=voice.folder,
        files=files,
        size_bytes=sum((voice.folder / name).stat().st_size for name in files),
        build_s=0.0,
        cached=False,
        content_hash=plan.content_hash,
        voice_folder=voice.folder,
        details={} if plan.speaker_token is None else {"speaker_token": plan.speaker_token},
    )


def _made(plan: Plan, voice: Voice, store: ArtifactFolder, found: dict[str, Any] | None) -> Artifact:
    manifest, problem = (found, "") if found else store.find(plan.content_hash)
    if manifest is None:
        raise ArtifactError(
            f"the artifact of stage {plan.stage!r} is gone right after it was made{f': {problem}' if problem else ''}; "
            f"does another process clean {store.root}?"
        )
    return Artifact(
        stage=plan.stage,
        choice=plan.choice,
        folder=store.path(plan.content_hash),
        files=tuple(manifest["files"]),
        size_bytes=sum(each["size_bytes"] for each in manifest["files"].values()),
        build_s=sum(manifest["seconds"].values()),
        cached=found is not None,
        content_hash=plan.content_hash,
        voice_folder=voice.folder,
        details={**manifest["details"], "seconds": manifest["seconds"], "tools": manifest["inputs"]["tools"]},
    )


def _make_in_child(
    plans: list[Plan], voice: Voice, audio_path: str, store: ArtifactFolder, tell: Progress
) -> None:
    """Run the making process and pass on its progress and its errors; it is ended with this one's interruption."""
    request = {
        "voice": str(voice.folder),
        "audio_path": audio_path,
        "cache": str(store.root.parent),
        "stages": [{"stage": plan.stage, "choice": plan.choice.model_dump(mode="json")} for plan in plans],
    }
    child = subprocess.Popen(
        making_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
    )
    assert child.stdin is not None and child.stdout is not None
    failure: dict[str, str] = {}
    try:
        with suppress(BrokenPipeError):  # a child that ended at once is reported below
            child.stdin.write(json.dumps(request))
            child.stdin.close()
        for line in child.stdout:
            message: dict[str, Any] = json.loads(line)
            if "unavailable" in message:
                raise UnavailableError(**message["unavailable"])
            if "failure" in message:
                failure = message["failure"]
            else:
                tell(message["progress"])
        code = child.wait()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if failure:
        kind = getattr(labkit.errors, failure["kind"], ArtifactError)
        raise kind(failure["message"])
    if code:
        cause = f"signal {-code} (out of memory?)" if code < 0 else f"exit code {code}"
        names = ", ".join(f"{plan.stage} {plan.choice.engine} {plan.choice.precision}" for plan in plans)
        raise ArtifactError(
            f"making {names} for voice {voice.name!r} ended with {cause}; nothing half-made was kept."
        )


def _environment() -> dict[str, str]:
    """This process's environment, with the package found where it was found here."""
    package_parent = str(Path(labkit.errors.__file__).parent.parent)
    paths = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
