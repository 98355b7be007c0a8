"""`python -m labkit.sweep.worker JOB.json`: execute one notebook; exit code 0 or 1.

What went wrong is written to `failure.json` beside the job. It is taken from the exception: the metadata that
papermill saves calls cells "completed" whose kernel was killed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Body of the child process."""
    from labkit.run.process import die_with_parent

    file = Path(sys.argv[1])
    job = json.loads(file.read_text(encoding="utf-8"))
    die_with_parent(os.getppid())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    try:
        from labkit.sweep.notebook import execute_notebook

        execute_notebook(Path(job["notebook"]), Path(job["output"]), job["parameters"])
    except Exception as error:  # the border of a process: everything is reported, nothing is swallowed
        file.with_name("failure.json").write_text(json.dumps(describe(error)), encoding="utf-8")
        traceback.print_exc()
        raise SystemExit(1) from None


def describe(error: Exception) -> dict[str, Any]:
    """The fields of a `JobFailure`; an error raised inside a cell is named by its own class."""
    from papermill.exceptions import PapermillExecutionError

    if isinstance(error, PapermillExecutionError):
        return {"kind": error.ename, "message": error.evalue, "traceback": plain("\n".join(error.traceback))}
    message = str(error) or type(error).__name__
    if type(error).__name__ == "DeadKernelError":
        message = "the notebook's kernel died: it was killed, or it crashed"
    return {"kind": type(error).__name__, "message": message, "traceback": plain(traceback.format_exc())}


def plain(text: str) -> str:
    """The text without terminal colours."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


if __name__ == "__main__":
    main()
