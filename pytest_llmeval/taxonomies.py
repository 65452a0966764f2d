"""Label sets that ship as data."""

__all__ = ("load_taxonomy",)

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmeval.reading import read_document

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "taxonomies", _HERE.parent / "taxonomies")  # in a wheel, in a checkout


@cache
def load_taxonomy(name: str) -> Mapping[str, Any]:
    """Return a shipped label set.

    Args:
        name: File name without its suffix, such as ``question_types``.

    Raises:
        FileNotFoundError: There is none of that name.
    """
    for folder in _FOLDERS:
        path = folder / f"{name}.yaml"
        if path.is_file():
            data: Mapping[str, Any] = read_document(path, path.name).data
            return data
    raise FileNotFoundError(f"no taxonomy {name!r} in {_FOLDERS[0]}")
