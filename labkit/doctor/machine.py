"""Checks of the machine: folders, disk, cores, instruction sets, memory, fonts.

The results folder is probed with a file that goes away again; nothing else is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from labkit.doctor.check import GIB, Check
from labkit.environment import container_limits, describe_cpu
from labkit.errors import LabError

CACHE_FAIL, CACHE_WARN = 1 * GIB, 6 * GIB  # nano needs little; a full-size voice and its exports about 5 GiB
MEMORY_WARN = 4 * GIB  # a full-size voice in float32 with its export


def results_folder() -> Check:
    from labkit.results.store import Store

    try:
        store = Store()
        store.check_writable()
    except LabError as error:
        return Check("results folder", "fail", str(error), "Choose another folder with LABKIT_RESULTS.")
    free = shutil.disk_usage(store.folder).free
    return Check("results folder", "ok", f"{store.folder.resolve()} is writable, {free / GIB:.0f} GiB free")


def cache() -> Check:
    from labkit.voices import cache_folder

    folder = cache_folder()
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    found, remedy = (
        f"{folder}, {free / GIB:.1f} GiB free",
        "Free some space, or set LABKIT_CACHE to a larger disk.",
    )
    if not os.access(existing, os.W_OK):
        return Check(
            "cache folder", "fail", f"{existing} is not writable", "Set LABKIT_CACHE to a writable folder."
        )
    if free < CACHE_WARN:
        found += "; a full-size voice and its exports take about 5 GiB"
    return Check(
        "cache folder",
        "fail" if free < CACHE_FAIL else "warn" if free < CACHE_WARN else "ok",
        found,
        remedy if free < CACHE_WARN else "",
    )


def cores() -> Check:
    cpu, limits = describe_cpu(), container_limits()
    usable, quota = cpu["cores_usable"], limits["cpu_limit_cores"]
    found = f"{cpu['model']}: {usable} of {cpu['cores_logical']} cores usable"
    if quota is not None and quota < usable:
        remedy = "Use no more threads than that or raise the limit: throttled runs time the limit."
        return Check("cores", "warn", f"{found}, but the container is limited to {quota:g}", remedy)
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads) > usable:
        return Check(
            "cores",
            "warn",
            f"{found}, OMP_NUM_THREADS={threads}",
            f"Set OMP_NUM_THREADS to at most {usable}.",
        )
    return Check("cores", "ok", found)


def instructions() -> Check:
    isa = describe_cpu()["isa"]
    if isa is None:
        return Check("CPU instructions", "ok", "not listed by this system")
    found = ", ".join(isa)
    int8 = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"} & set(isa)
    if not int8:
        return Check(
            "CPU instructions",
            "warn",
            f"{found}: none for INT8 dot products",
            "Expect little from the int8 recipes here.",
        )
    return Check("CPU instructions", "ok", found)


def memory() -> Check:
    import psutil

    available = psutil.virtual_memory().available
    limit = container_limits()["memory_limit_bytes"]
    within = "no container limit" if limit is None else f"container limit {limit / GIB:.1f} GiB"
    found = f"{available / GIB:.1f} GiB available, {within}"
    if min(available, limit or available) < MEMORY_WARN:
        remedy = "Nano runs in 1 GiB; full-size voices need 4 GiB: close programs or raise the limit."
        return Check("memory", "warn", found, remedy)
    return Check("memory", "ok", found)


def chinese_font() -> Check:
    """Titles with Chinese texts show boxes without one; fontconfig knows, matplotlib would take seconds."""
    remedy = "Install one, e.g. `apt install fonts-wqy-microhei`; until then Chinese in plots shows as boxes."
    program = shutil.which("fc-list")
    if program is None:
        return Check("CJK font", "warn", "fc-list is not installed, so fonts cannot be listed", remedy)
    listed = subprocess.run(
        [program, ":lang=zh", "family"], capture_output=True, text=True, timeout=20, check=False
    )
    families = sorted({line.split(",")[0].strip() for line in listed.stdout.splitlines() if line.strip()})
    if not families:
        return Check("CJK font", "warn", "no font for Chinese", remedy)
    return Check("CJK font", "ok", families[0])
