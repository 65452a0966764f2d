"""A system of a suite: its cases, and who answers them."""

__all__ = ("Only", "System")

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault

if TYPE_CHECKING:
    from pytest_llmeval.suite.models import ModelSystem
    from pytest_llmeval.targets.spec import TargetSpec

Only: TypeAlias = Literal["predicted"]


class System(Struct, frozen=True):
    """A system with its cases.

    Attributes:
        cases: With its predictions; without, where a target answers.
        target: Answers the cases; ``None`` where predictions are recorded.
        model: Answers the cases in place of a target.
        faults: Of its predictions.
        left_out: How many cases are left out because it has no prediction for them.
    """

    cases: tuple[Case, ...]
    target: "TargetSpec | None" = None
    model: "ModelSystem | None" = None
    faults: tuple[Fault, ...] = ()
    left_out: int = 0

    def only(self, which: Only | None) -> "System":
        """Return the system with the cases that have a prediction, if only they are wanted."""
        if which is None:
            return self
        kept = tuple(case for case in self.cases if case.prediction is not MISSING)
        return replace(self, cases=kept, left_out=self.left_out + len(self.cases) - len(kept))
