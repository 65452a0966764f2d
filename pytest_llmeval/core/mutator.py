"""Mutators: changes of an answer that make it wrong by construction, and rewrites that must not matter."""

__all__ = ("AnswerChange", "Mutator", "Neighbours")

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Evaluator


@dataclass
class Neighbours:
    """What a mutator may look at besides the case.

    Attributes:
        others: Other cases of the suite whose answers pass and that expect something else, the next ones first.
        labels: All expected labels, sorted; empty where cases expect no classes.
        most: The most frequent expected label; ``None`` where cases expect no classes.
        evaluators: Those of the suite, by label: their options may say what matters.
        seed: Of everything random: seed of the run, suite, case and mutator.
    """

    others: Sequence[Case] = ()
    labels: Sequence[str] = ()
    most: str | None = None
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)
    seed: str = ""

    @cached_property
    def rng(self) -> random.Random:
        """Random numbers by the seed; most mutators need none."""
        return random.Random(self.seed)  # noqa: S311 (no secret)

    def evaluator(self, name: str) -> Evaluator | None:
        """Return the suite's first evaluator of a name, whatever its label; ``None`` if it has none."""
        return next((each for each in self.evaluators.values() if each.name == name), None)

    def option(self, name: str, option: str, default: Any) -> Any:
        """Return an option of the suite's first evaluator of a name; `default` if it has none of that name."""
        return getattr(self.evaluator(name), option, default)


AnswerChange: TypeAlias = Callable[[Case, Neighbours], Any]
"""From an answered case and its neighbours to a changed prediction; ``None`` where the change does not apply."""


class Mutator(Struct, frozen=True):
    """One way to change answers, known by its name.

    Attributes:
        name: Of the change, as reports list it.
        why: Why the result is wrong, such as ``it says nothing``; for a rewrite, why it is not.
        change: Returns the changed prediction, or ``None`` where the change does not apply, and so would not be known
            to be wrong. It is pure: it leaves the case as it is, and is random by ``neighbours.rng`` only.
        advice: What notices such answers, such as a check; empty for a rewrite.
        evaluators: Names of evaluators; it is used in suites that have one of them. Empty: in all suites.
        equivalent: Whether it is a rewrite: an answer as good as before, which must not fail.
        gives_way: Whether it is left out in suites with an evaluator that another mutator names: that one knows the
            form of the predictions, and which of its parts matter.
    """

    name: str
    why: str
    change: AnswerChange
    advice: str = ""
    evaluators: tuple[str, ...] = ()
    equivalent: bool = False
    gives_way: bool = False
