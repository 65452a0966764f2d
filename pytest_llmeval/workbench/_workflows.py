"""Steps of CI that evaluate, in two states of a repository: those that no longer run or no longer fail."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import LlmevalError, as_line, excerpt
from pytest_llmeval.data import Document, InputFile, display_path
from pytest_llmeval.workbench._loosening import Loosening
from pytest_llmeval.workbench._test_code import text_of

_FILES: Final = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml")
_EVALUATES: Final = re.compile(r"\b(pytest|llmeval|tox|nox)\b")
_SCRIPTS: Final = ("run", "script")
_HARMLESS: Final = frozenset(
    {
        *("name", "run-name", "id", "uses", "with", "runs-on", "permissions", "outputs", "concurrency"),
        *("stage", "stages", "image", "tags", "cache", "artifacts", "coverage", "interruptible"),
    }
)
"""Keys of a step and of what it is in that decide neither whether it runs, nor what it does, nor if it can fail."""
_FOR_LATER: Final = ("GITHUB_ENV", "GITHUB_PATH")
"""Files by which a step sets variables of later ones."""

_CHECKED_OUT: Final = ("ref", "repository", "path")
"""Settings of a step by which later ones find another checkout."""

_RUNNERS: Final = {"make": "Makefile", "just": "justfile", "tox": "tox.ini", "nox": "noxfile.py", "npm": "package.json"}
"""Program to the file with what it runs."""

_LIST_OF_PACKAGES: Final = ".txt"
_JUDGES: Final = re.compile(r"\b(pytest|llmeval)\b")
_WORD: Final = re.compile(r"[\w./-]+")
_LONGEST, _MOST = 100, 1_000


class _EvaluatingStep(NamedTuple):
    """A CI step that runs evaluations: its place, commands, and the conditions under which they count."""

    place: tuple[str | int, ...]
    commands: str
    conditions: str


def compare_workflows(base: Path, head: Path) -> Iterator[Loosening]:
    """Yield the evaluating CI steps that a pull request removes or changes.

    Args:
        base: The earlier state of the repository.
        head: The later state.
    """
    scripts = set[str]()
    for path in sorted(file for pattern in _FILES for file in base.glob(pattern)):
        name = display_path(path, base)
        old, new = _document(path, name), _document(head / name, name)
        steps = [] if old is None else list(_within(old.data, (), {}, base))
        if steps and new is None:
            yield Loosening(name, 1, "workflow", "removed, or cannot be read", gone=True)
        elif old is not None and new is not None:
            yield from _compare(name, old, steps, new, list(_within(new.data, (), {}, base)))
        scripts |= {script for step in steps for script in _scripts_of(step.commands, base)}
    for script in sorted(scripts):
        lines = _evaluating_lines(base / script)
        if [line for line in lines if line not in _evaluating_lines(head / script)]:
            yield Loosening(script, 0, "script", "changed, and CI evaluates by it")


def _scripts_of(commands: str, top: Path) -> Iterator[str]:
    """Yield the scripts of a repository through which CI commands run evaluations."""
    for line in commands.splitlines():
        words = [] if _JUDGES.search(line) else [_RUNNERS.get(word, word) for word in _WORD.findall(line)]
        inside = (os.path.normpath(word) for word in words if not word.startswith("/"))
        yield from (name for name in inside if not name.startswith(os.pardir) and _evaluating_lines(top / name))


def _evaluating_lines(path: Path) -> list[str]:
    """The lines of a repository's file that run evaluations; for a script that has such lines, all lines."""
    lines = text_of(path).splitlines()
    evaluating = [line for line in lines if _JUDGES.search(line)] if path.suffix != _LIST_OF_PACKAGES else []
    return lines if evaluating and path.name not in _RUNNERS.values() else evaluating


def _compare(
    name: str, old: Document, steps: list[_EvaluatingStep], new: Document, later: list[_EvaluatingStep]
) -> Iterator[Loosening]:
    """Yield evaluating steps of a CI workflow that are gone, or that run or fail under other conditions."""
    for step in steps:
        subject = f"step {excerpt(as_line(step.commands, _MOST), _LONGEST)}"
        same = [candidate for candidate in later if candidate.commands == step.commands]
        if not same:
            line = old.locate(step.place)[0]
            yield Loosening(name, line, subject, "removed or changed", gone=True)
        elif not any(candidate.conditions == step.conditions for candidate in same):
            line = new.locate(same[0].place)[0]
            before, after = (excerpt(side.conditions, _MOST) for side in (step, same[0]))
            yield Loosening(name, line, subject, "runs or fails otherwise", before, after)


def _document(path: Path, name: str) -> Document | None:
    """A CI workflow file; ``None`` if it cannot be read."""
    try:
        return InputFile(path, name).read_document()
    except (LlmevalError, OSError):
        return None


def _within(
    value: Any, place: tuple[str | int, ...], conditions: Mapping[str, Any], top: Path
) -> Iterator[_EvaluatingStep]:
    """Yield the evaluating steps inside a value of a CI workflow, with the conditions that they run under."""
    if isinstance(value, Mapping):
        own = {
            str(key): inner
            for key, inner in value.items()
            if not (key in _HARMLESS or key in _SCRIPTS or place[-1:] == ("jobs",) or _has_commands(inner))
        }
        inside = {**conditions, **{f"{len(place)} {key}": inner for key, inner in own.items()}}
        for key, inner in value.items():
            if text := _commands(key, value):
                if _EVALUATES.search(text) or any(_scripts_of(text, top)):
                    yield _EvaluatingStep((*place, key), text, _described(inside))
            elif str(key) not in own:
                yield from _within(inner, (*place, key), inside, top)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _within(inner, (*place, number), conditions, top)
            if isinstance(inner, Mapping) and (text := _for_later(inner)):
                conditions = {**conditions, f"{len(place)} before: {text}": True}


def _commands(key: Any, step: Mapping[Any, Any]) -> str:
    """The commands under a key of a CI step, or an action with its settings; empty for other keys."""
    value = step[key]
    if key == "uses":
        return as_line({"uses": value, "with": step.get("with")}, _MOST)
    text = value if isinstance(value, str) else "\n".join(map(str, value)) if isinstance(value, list) else ""
    return text.strip() if key in _SCRIPTS else ""


def _for_later(step: Mapping[Any, Any]) -> str:
    """The part of a CI step that changes what later steps do."""
    commands, settings = str(step.get("run", "")), step.get("with")
    if any(name in commands for name in _FOR_LATER):
        return commands
    is_checkout = "checkout" in str(step.get("uses", ""))
    chosen = {key: settings[key] for key in _CHECKED_OUT if key in settings} if isinstance(settings, Mapping) else {}
    return as_line(chosen, _MOST) if is_checkout and chosen else ""


def _has_commands(value: Any) -> bool:
    """Whether a value of a CI workflow contains commands."""
    if isinstance(value, Mapping):
        return any(_commands(key, value) or _has_commands(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_commands, value))


def _described(conditions: Mapping[str, Any]) -> str:
    """The conditions that an evaluating CI step runs under, as one line."""
    return as_line({key.partition(" ")[2]: value for key, value in conditions.items()}, 100_000) if conditions else ""
