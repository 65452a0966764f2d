"""Steps of CI that evaluate, in two states of a repository: those that no longer run or no longer fail."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import LlmevalError, as_line, excerpt
from pytest_llmeval.data import Document, display_path, read_document
from pytest_llmeval.workbench._loosening import Loosening

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

_LONGEST, _MOST = 100, 1_000


class _EvaluatingStep(NamedTuple):
    """A step that evaluates: its place, its commands and what decides whether they count."""

    place: tuple[str | int, ...]
    commands: str
    conditions: str


def compare_workflows(base: Path, head: Path) -> Iterator[Loosening]:
    """Yield the steps of CI that evaluate and that a later state of a repository lacks or has changed.

    Args:
        base: The earlier state of the repository.
        head: The later state.
    """
    for path in sorted(file for pattern in _FILES for file in base.glob(pattern)):
        name = display_path(path, base)
        old, new = _document(path, name), _document(head / name, name)
        steps = [] if old is None else list(_steps(old))
        if steps and new is None:
            yield Loosening(name, 1, "workflow", "removed, or cannot be read", gone=True)
        elif old is not None and new is not None:
            yield from _compare(name, old, steps, new)


def _compare(name: str, old: Document, steps: list[_EvaluatingStep], new: Document) -> Iterator[Loosening]:
    later = list(_steps(new))
    for step in steps:
        subject = f"step {excerpt(step.commands, _LONGEST)}"
        same = [each for each in later if each.commands == step.commands]
        if not same:
            line = old.locate(step.place)[0]
            yield Loosening(name, line, subject, "removed or changed", gone=True)
        elif not any(each.conditions == step.conditions for each in same):
            line = new.locate(same[0].place)[0]
            before, after = (excerpt(each.conditions, _MOST) for each in (step, same[0]))
            yield Loosening(name, line, subject, "runs or fails otherwise", before, after)


def _document(path: Path, name: str) -> Document | None:
    try:
        return read_document(path, name)
    except (LlmevalError, OSError):
        return None


def _steps(document: Document) -> Iterator[_EvaluatingStep]:
    yield from _within(document.data, (), {})


def _within(value: Any, place: tuple[str | int, ...], conditions: Mapping[str, Any]) -> Iterator[_EvaluatingStep]:
    if isinstance(value, Mapping):
        own = {
            str(key): each
            for key, each in value.items()
            if not (key in _HARMLESS or key in _SCRIPTS or place[-1:] == ("jobs",) or _has_commands(each))
        }
        inside = {**conditions, **{f"{len(place)} {key}": each for key, each in own.items()}}
        for key, each in value.items():
            if key in _SCRIPTS and isinstance(each, str | list):
                text = each if isinstance(each, str) else "\n".join(map(str, each))
                if _EVALUATES.search(text):
                    yield _EvaluatingStep((*place, key), as_line(text.strip(), 10_000), _described(inside))
            elif str(key) not in own:
                yield from _within(each, (*place, key), inside)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _within(each, (*place, number), conditions)
            if isinstance(each, Mapping) and any(name in str(each.get("run", "")) for name in _FOR_LATER):
                conditions = {**conditions, f"{len(place)} before: {each['run']}": True}


def _has_commands(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(key in _SCRIPTS or _has_commands(each) for key, each in value.items())
    return isinstance(value, list) and any(map(_has_commands, value))


def _described(conditions: Mapping[str, Any]) -> str:
    return as_line({key.partition(" ")[2]: value for key, value in conditions.items()}, 100_000) if conditions else ""
