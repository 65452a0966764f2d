"""Imports in tests: write a source, import it, and look at what became of it."""

__all__ = ("Imported", "run_import", "source_paths", "write_source")

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_llmeval.cli import main


@dataclass(frozen=True)
class Imported:
    """What an import wrote and printed.

    Attributes:
        code: The exit code.
        out: Standard output.
        err: Standard error.
        folder: Where it wrote.
    """

    code: int
    out: str
    err: str
    folder: Path

    def suite(self, name: str = "suite") -> Any:
        """Return the content of a suite file."""
        return yaml.safe_load((self.folder / f"{name}.eval.yaml").read_text(encoding="utf-8"))

    @property
    def report(self) -> str:
        """The text of IMPORT.md."""
        return (self.folder / "IMPORT.md").read_text(encoding="utf-8")


def write_source(folder: Path, name: str, content: Any) -> Path:
    """Write a source: text as it is, data as JSON, which is YAML too."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def run_import(
    capsys: pytest.CaptureFixture[str], format_name: str, *arguments: object, to: Path | None = None
) -> Imported:
    """Run ``llmeval import``; what is written must be free of faults."""
    target = to or Path("imported")
    code = main(["import", format_name, *map(str, arguments), "--to", str(target)])
    captured = capsys.readouterr()
    if any(target.rglob("*.eval.yaml")):
        valid = main(["validate", str(target)])
        assert valid == 0, capsys.readouterr().out
        capsys.readouterr()
    return Imported(code, captured.out, captured.err, target)


def source_paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a source that is neither a list nor an object, and of empty ones."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from source_paths(value, (*path, key))
    elif isinstance(data, list) and data:
        for number, value in enumerate(data):
            yield from source_paths(value, (*path, number))
    else:
        yield path
