"""The tour in a real JupyterLab in a real browser: opens, runs from top to bottom, shows players and pictures.

Needs `pip install playwright` and Chromium (Debian: `apt install chromium`). Nothing outside this machine is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
QUIET_SETTINGS = {
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "notebook-extension/tracker": {"windowingMode": "none"},
}
ALL_CELLS_RAN = """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')]
    .filter(prompt => prompt.textContent.trim()).every(prompt => /\\[\\d+\\]/.test(prompt.textContent))"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """A JupyterLab with private folders, serving the notebooks; yields its address."""
    settings = tmp_path / "settings"
    for name, values in QUIET_SETTINGS.items():
        file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    root = tmp_path / "root"
    shutil.copytree(NOTEBOOKS, root)
    private = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "IPYTHONDIR": "ipython", "LABKIT_RESULTS": "results",
    }  # fmt: skip
    environment = {
        **os.environ,
        **{name: str(tmp_path / folder) for name, folder in private.items()},
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
    }
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "lab.log"
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--IdentityProvider.token=t", f"--ServerApp.root_dir={root}",
    ]  # fmt: skip
    with log.open("w") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(server, address, log)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def _wait_until_up(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            pytest.fail(log.read_text()[-2000:])
        try:
            urllib.request.urlopen(f"{address}/api?token=t", timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail("JupyterLab did not come up within two minutes")


def test_the_tour_runs_in_jupyterlab(lab: str, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    asked: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1300, "height": 2800})
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{lab}/lab/tree/00_tour.ipynb?token=t&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        page.wait_for_function("() => /\\| Idle/.test(document.body.innerText)", timeout=90_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
        page.wait_for_function(ALL_CELLS_RAN, timeout=300_000)
        page.screenshot(path=str(tmp_path / "tour.png"))
        assert (
            page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]').count() == 0
        )
        assert page.locator(".jp-OutputArea audio").count() == 2
        assert page.locator(".jp-OutputArea img").count() >= 1
        assert page.locator(".jp-OutputArea table").count() >= 1
        browser.close()
    assert [url for url in asked if not url.startswith((lab, "data:", "blob:"))] == []
