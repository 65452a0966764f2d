"""What the package loads from the files of a test."""

__all__ = ("Loaded", "cases_of", "load_source", "load_text", "write")

import json
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.formats.base import Source
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.registry import Registry, default_registry
from pytest_llmeval.suite.suite import Suite

Loaded: TypeAlias = tuple[list[Case], list[str]]
"""Cases, and faults as they are shown."""


def write(name: str, data: Any) -> str:
    """Write a file into the current folder, text as it is and other data as JSON; return its name."""
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return name


def cases_of(source: Source, folder: Path) -> Loaded:
    """Load what a source names in a folder."""
    faults: list[Fault] = []
    return source.load(folder, faults), list(map(str, faults))


def load_source(name: str, folder: Path, **options: Any) -> Loaded:
    """Load by the source of a name, with options as a suite file gives them."""
    return cases_of(
        TypeAdapter(default_registry().source(name)).validate_json(json.dumps(options), strict=True), folder
    )


def load_text(text: str, folder: Path, *, root: Path | None = None, registry: Registry | None = None) -> Suite:
    """Write ``s.eval.yaml`` into a folder and load it."""
    path = folder / "s.eval.yaml"
    path.write_text(text, encoding="utf-8")
    return load_suite(path, registry or default_registry(), root=root or folder, display_path=path.name)
