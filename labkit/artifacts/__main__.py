"""The making process: a request as JSON on stdin, one JSON line per step of progress or failure on stdout."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.making import make
from labkit.artifacts.plans import plan_stage
from labkit.errors import LabError, UnavailableError
from labkit.spec import StageChoice
from labkit.voices import resolve_voice


def main() -> int:
    request = json.load(sys.stdin)
    # whatever a tool prints must not mix with the protocol
    replies, sys.stdout = sys.stdout, sys.stderr

    def reply(**message: object) -> None:
        print(json.dumps(message), file=replies, flush=True)

    try:
        voice = resolve_voice(request["voice"])
        store = ArtifactFolder(Path(request["cache"]))
        for wanted in request["stages"]:
            choice = StageChoice.model_validate(wanted["choice"])
            plan = plan_stage(wanted["stage"], choice, voice, request["audio_path"])
            make(plan, voice, request["audio_path"], store, lambda line: reply(progress=line))
    except UnavailableError as error:
        reply(unavailable={"reason": error.reason, "remedy": error.remedy})
        return error.exit_code
    except LabError as error:
        reply(failure={"kind": type(error).__name__, "message": str(error)})
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        reply(failure={"kind": "ArtifactError", "message": f"{type(error).__name__}: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
