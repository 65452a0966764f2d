"""Label sets that ship as data files, with lookup and suggestions."""

__all__ = ("LabelSet", "load_taxonomy", "taxonomy_path")

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core import quotation, suggest
from pytest_llmeval.data.files.documents import InputFile

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "taxonomies", _PACKAGE.parent / "taxonomies")  # in a wheel, in a checkout
_LONGEST_SHOWN = 60


def taxonomy_path(name: str) -> Path:
    """The file of a label set that ships with the package.

    Raises:
        FileNotFoundError: There is no label set of this name.
    """
    for folder in _FOLDERS:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    raise FileNotFoundError(f"no taxonomy {name!r} in {_FOLDERS[0]}")


@cache
def load_taxonomy(name: str) -> Mapping[str, Any]:
    """A label set that ships with the package.

    Args:
        name: File name without its suffix, such as ``question_types``.

    Raises:
        FileNotFoundError: There is no label set of this name.
    """
    path = taxonomy_path(name)
    data: Mapping[str, Any] = InputFile(path, path.name).read_document().data
    return data


@dataclass(frozen=True, eq=False)  # equal only to itself, so that it can be hashed, and suggestions cached
class LabelSet:
    """Labels, the other names that each goes by, and the labels below each.

    Attributes:
        names: Every name to its label; a label is a name of itself. Without names nothing is checked.
        members: A label to the labels below it.
    """

    names: Mapping[str, str]
    members: Mapping[str, "LabelSet"] = field(default_factory=dict)

    @cached_property
    def below(self) -> "LabelSet":
        """The labels below any label."""
        return LabelSet({name: label for member in self.members.values() for name, label in member.names.items()})

    def fault(self, kind: str, name: str) -> str | None:
        """The reason why a name is not in this set; ``None`` if it is, or if the set or the name is empty."""
        if not name or not self.names or name in self.names:
            return None
        return f"{kind} {_quoted_label(name)} is unknown{_label_hint(self, name[: _LONGEST_SHOWN * 2])}"

    def member_fault(self, kind: str, name: str, parent: str) -> str | None:
        """The reason why a name is not a child of `parent`; an empty or unknown parent accepts any member."""
        members = self.members.get(self.names.get(parent, ""), self.below)
        if members.names and name not in members.names and name in self.below.names:
            owners = [label for label, member in self.members.items() if name in member.names]
            own = ", ".join(map(repr, owners))
            return f"{kind} {_quoted_label(name)} belongs to {own}, not to {_quoted_label(parent)}"
        return members.fault(kind, name)


def _quoted_label(name: str) -> str:
    """A label that a label set does not have, quoted and shortened for a message."""
    return quotation(name, _LONGEST_SHOWN)


@lru_cache(maxsize=4096)  # looking for the nearest name takes longer than scoring an event
def _label_hint(labels: LabelSet, name: str) -> str:
    """The hint at the most similar label of a label set, for a message about an unknown label."""
    return suggest(name, labels.names)
