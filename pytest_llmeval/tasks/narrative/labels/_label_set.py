"""A set of labels, with lookup and suggestions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from pytest_llmeval.core import quotation, suggest

_LONGEST_SHOWN = 60


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
