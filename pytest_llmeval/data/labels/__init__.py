"""Label sets and word lists that ship as data files."""

__all__ = ("Taxonomy",)

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmeval.data.files.documents import InputFile

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "taxonomies", _PACKAGE.parent / "taxonomies")  # in a wheel, in a checkout


class Taxonomy:
    """A taxonomy that ships with the package.

    Attributes:
        name: File name without its suffix, such as ``question_types``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def path(self) -> Path:
        """Its file.

        Raises:
            FileNotFoundError: There is no taxonomy of this name.
        """
        for folder in _FOLDERS:
            path = folder / f"{self.name}.yaml"
            if path.is_file():
                return path
        raise FileNotFoundError(f"no taxonomy {self.name!r} in {_FOLDERS[0]}")

    def load(self) -> Mapping[str, Any]:
        """Its data, which is read once.

        Raises:
            FileNotFoundError: There is no taxonomy of this name.
        """
        return _load(self.name)


@cache
def _load(name: str) -> Mapping[str, Any]:
    """The data of a taxonomy that ships with the package."""
    path = Taxonomy(name).path
    data: Mapping[str, Any] = InputFile(path, path.name).read_document().data
    return data
