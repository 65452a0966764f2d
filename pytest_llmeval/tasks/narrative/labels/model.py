"""The content of a label file: labels, their names, and their hierarchy."""

__all__ = (
    "ActionType",
    "Actions",
    "Category",
    "Label",
    "Level1",
    "Polarity",
    "Relationships",
    "Sentiment",
    "Sentiments",
)

from dataclasses import dataclass
from typing import ClassVar, Literal

STRICT = {"extra": "forbid"}

Polarity = Literal["positive", "neutral", "negative"]


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label and what else it is called.

    Attributes:
        label: As annotations write it.
        zh: Its Chinese name.
        aliases: More names.
        description: What it means.
    """

    __pydantic_config__: ClassVar = STRICT

    label: str
    zh: str | None = None
    aliases: tuple[str, ...] = ()
    description: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The other names."""
        return (*filter(None, (self.zh,)), *self.aliases)


@dataclass(frozen=True, kw_only=True)
class Level1(Label):
    """A relationship label of level 1, with those of level 2 below it."""

    level2: tuple[Label, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sentiment(Label):
    """A sentiment: its polarity, and how well-disposed it is.

    Attributes:
        polarity: ``None``: that of the sentiment of this name in the shipped file, if it has one.
    """

    polarity: Polarity | None = None
    level: float | None = None


@dataclass(frozen=True, kw_only=True)
class ActionType(Label):
    """A type of action and the contexts that are usual for it."""

    contexts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Category(Label):
    """A category of actions, its short name, and the types below it."""

    short: str | None = None
    types: tuple[ActionType, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The other names."""
        return (*filter(None, (self.short, self.zh)), *self.aliases)


@dataclass(frozen=True, kw_only=True)
class Relationships:
    """A file of relationships."""

    __pydantic_config__: ClassVar = STRICT

    relationships: tuple[Level1, ...]


@dataclass(frozen=True, kw_only=True)
class Sentiments:
    """A file of sentiments."""

    __pydantic_config__: ClassVar = STRICT

    sentiments: tuple[Sentiment, ...]


@dataclass(frozen=True, kw_only=True)
class Actions:
    """A file of actions."""

    __pydantic_config__: ClassVar = STRICT

    categories: tuple[Category, ...]
    statuses: tuple[Label, ...] = ()
    functions: tuple[Label, ...] = ()
