"""papermill with its sharp edges covered: parameters are checked, files are whole, kernels share no ports.

It knows notebooks and kernels. It trusts exceptions only: after a killed kernel the saved notebook says that all
cells were completed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.log import logger

from labkit.errors import SpecError
from labkit.spec import nearest
from labkit.sweep.executor import unfinished

START_TIMEOUT_S = 120  # a kernel starts in half a second on an idle machine
ENGINE = "labkit"


def find_notebook(name: str) -> Path:
    """One of the lab's notebooks: from `LABKIT_NOTEBOOKS`, the project's folder or the installed package's copy."""
    own = os.environ.get("LABKIT_NOTEBOOKS")
    package = Path(__file__).parents[1]
    places = [Path(own)] if own else [package.parent / "notebooks", package / "assets" / "notebooks"]
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve()
    raise SpecError(
        f"notebook {name} is not in {' or '.join(map(str, places))}; run inside a checkout of the project, "
        "or point LABKIT_NOTEBOOKS at its notebooks folder."
    )


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Every parameter is one that the notebook declares and is plain JSON; papermill would only warn."""
    try:
        known = list(papermill.inspect_notebook(str(notebook)))
    except (OSError, nbformat.reader.NotJSONError) as error:
        raise SpecError(f"notebook {notebook} cannot be read: {error}") from error
    for name, value in parameters.items():
        if name not in known:
            raise SpecError(
                f"{notebook.name} has no parameter {name!r}{nearest(name, known)}; "
                f"known parameters: {', '.join(known) or 'none'}."
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SpecError(
                f"{notebook.name}: parameter {name!r} is not plain and finite: {error}."
            ) from error


def execute_notebook(notebook: Path, output: Path, parameters: Mapping[str, Any]) -> None:
    """Run a notebook with parameters; whatever happens, `output` is a whole file or is not touched.

    Raises `SpecError` before the kernel starts, and what papermill raises after: `PapermillExecutionError` for an
    error in a cell, `DeadKernelError` for a killed kernel.
    """
    check_parameters(notebook, parameters)
    temporary = unfinished(output, os.getpid())
    try:
        papermill.execute_notebook(
            str(notebook),
            str(temporary),
            parameters=dict(parameters),
            engine_name=ENGINE,
            progress_bar=False,
            log_output=True,
            start_timeout=START_TIMEOUT_S,
        )
    finally:
        if temporary.exists():  # also a failed notebook is worth reading
            os.replace(temporary, output)


class _PrivateKernelManager(AsyncKernelManager):
    """Talks to its kernel through sockets in a folder of its own: ports of two kernels can clash, these cannot."""

    def __init__(self, **options: Any) -> None:
        # socket paths are limited to about a hundred characters, and TMPDIR may be long
        self._folder = tempfile.mkdtemp(prefix="lk-", dir="/tmp" if sys.platform != "win32" else None)
        if sys.platform != "win32":
            options.setdefault("transport", "ipc")
            options.setdefault("connection_file", f"{self._folder}/{uuid.uuid4().hex[:8]}.json")
        super().__init__(**options)

    @property
    def kernel_spec(self) -> KernelSpec:
        """This interpreter: a kernel of that name elsewhere on the machine may have no labkit, or another one."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="labkit", language="python")

    async def _async_cleanup_resources(self, restart: bool = False) -> None:
        await super()._async_cleanup_resources(restart=restart)
        if not restart:
            shutil.rmtree(self._folder, ignore_errors=True)

    cleanup_resources = _async_cleanup_resources


class _LabEngine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(  # the signature is papermill's
        cls,
        nb_man: Any,
        kernel_name: str,
        log_output: bool = False,
        stdout_file: Any = None,
        stderr_file: Any = None,
        start_timeout: int = START_TIMEOUT_S,
        execution_timeout: int | None = None,
        **options: Any,
    ) -> Any:
        options.pop("input_path", None)
        client = PapermillNotebookClient(
            nb_man,
            timeout=execution_timeout,
            startup_timeout=start_timeout,
            kernel_name=kernel_name,
            log=logger,
            log_output=log_output,
            stdout_file=stdout_file,
            stderr_file=stderr_file,
            interrupt_on_timeout=True,
            kernel_manager_class=_PrivateKernelManager,
            **options,
        )
        return client.execute(env=dict(os.environ))


papermill_engines.register(ENGINE, _LabEngine)
