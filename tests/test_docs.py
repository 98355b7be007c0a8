"""What README and docs tell people to type exists, with those flags; so do the files and names that they point to.

The log is history and may name what is gone.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from labkit import cli

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "lab-log.md"),
]
FOLDERS = (
    "labkit",
    "tests",
    "docs",
    "scripts",
    "sweeps",
    "notebooks",
    "calib",
    "results/baselines",
    ".github",
    ".ci",
)
TO_BE_MADE = re.compile(r"[<*…{]|\bmy[-_.]|\bmine\b")  # a name that stands for the reader's own
COMMAND = re.compile(r"^(?:labkit|make|scripts/\w+)(?= |$)")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def typed(page: Path) -> list[str]:
    """Lines of blocks of code, fenced as shell or indented, that begin with a command of the project."""
    text = page.read_text(encoding="utf-8")
    fenced = [
        line
        for block in re.findall(r"```(?:sh|bash)\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    unfenced = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    indented = [line.strip() for line in unfenced.splitlines() if line.startswith("    ")]
    return [line for line in fenced + indented if COMMAND.match(line)]


def spans(page: Path) -> list[str]:
    """What stands between backticks in a line."""
    unfenced = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", unfenced)


def found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words call, and the words that are left for it."""
    command: Any = typer.main.get_command(cli.app)
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"labkit has no command {words[0]!r} there"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def refuse_unknown_options(line: str) -> None:
    command, words = found(shlex.split(line, comments=True)[1:])
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {
        "--help"
    }
    for word in words:
        if word.startswith("-"):
            assert word.split("=")[0] in known, f"`{line}`: no option {word}"


@every_page
def test_what_is_typed_can_be_parsed(page: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in typed(page):
        program, *words = shlex.split(line, comments=True)
        if program == "labkit":
            command, rest = found(words)
            command.make_context(line, rest)  # a usage error names what is wrong; nothing is carried out
        elif program == "make":
            assert {word for word in words if "=" not in word} <= set(targets), line
        else:
            source = (ROOT / program).read_text(encoding="utf-8")
            assert all(f'"{word}"' in source or word in source for word in words if word.startswith("--")), (
                line
            )


def test_a_command_or_a_flag_that_is_not_there_is_noticed() -> None:
    for line, words in (
        ("labkit sing one", "no command 'sing'"),
        ("labkit say one --loud", "no option --loud"),
    ):
        with pytest.raises(AssertionError, match=words):
            refuse_unknown_options(line)
    command, words = found(["results", "list", "--loud"])
    with pytest.raises(Exception, match="No such option"):
        command.make_context("labkit results list", words)


@every_page
def test_commands_named_in_the_text_exist_with_their_flags(page: Path) -> None:
    for span in spans(page):
        if span.startswith("labkit ") and (line := span.split("…")[0].strip()) != "labkit":
            refuse_unknown_options(line)


@every_page
def test_files_and_names_that_the_text_points_to_exist(page: Path) -> None:
    linked = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in linked if not (page.parent / link).exists()]
    for span in spans(page):
        if TO_BE_MADE.search(span) or " " in span:
            continue
        if span.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            missing += [] if _is_there(ROOT / span) else [span]
        elif re.fullmatch(r"\w+(/\w+)+\.py", span):
            missing += [] if _is_there(ROOT / "labkit" / span) else [span]
        elif re.fullmatch(r"labkit(\.\w+)+(\(\))?", span):
            missing += [] if _is_defined(span.removesuffix("()").split(".")) else [span]
    assert not missing


def _is_there(path: Path) -> bool:
    return path.exists() or path.with_suffix(".py").exists()  # notebooks are named without their ending


def _is_defined(names: list[str]) -> bool:
    """Whether a dotted name is a module, or stands in the source of one."""
    place = ROOT
    for i, name in enumerate(names):
        if (place / name).is_dir():
            place = place / name
        elif (place / f"{name}.py").exists():
            place = place / f"{name}.py"
        else:
            source = place / "__init__.py" if place.is_dir() else place
            return re.search(rf"\b{names[i]}\b", source.read_text(encoding="utf-8")) is not None
    return True
