"""Options of the command line and the configuration for judges."""

__all__ = ("MODES", "JudgeMode", "JudgeOptions", "records")

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.panel import PanelSpec
from pytest_llmeval.judge.spec import JudgeSpec

JudgeMode: TypeAlias = Literal["auto", "replay", "record", "refresh", "off"]

MODES: tuple[JudgeMode, ...] = ("auto", "replay", "record", "refresh", "off")


def records(mode: JudgeMode) -> bool:
    """Return whether the judgements that a run uses are written beside its suites."""
    return mode in ("record", "refresh")


@dataclass(frozen=True)
class JudgeOptions:
    """Options of a run.

    Attributes:
        mode: Which stores are read, and whether a model may be asked.
        model: ``PROVIDER:NAME``; overrides the suites.
        base_url: Where it is served.
        concurrency: Most calls at a time, of judges and targets, over all processes.
        budget: Most that the run may spend on judges.
        cache: The working cache.
        run: Id of the run.
        worker: Name of this process among those of the run; nothing where it is the only one.
    """

    mode: JudgeMode = "auto"
    model: str | None = None
    base_url: str | None = None
    concurrency: int = 16
    budget: Budget = field(default_factory=Budget)
    cache: Path = Path(".llmeval/cache.sqlite3")
    run: str = ""
    worker: str = ""

    @property
    def shares(self) -> bool:
        """Whether the run has several processes."""
        return bool(self.worker)

    def owner(self, worker: str) -> str:
        """Return how the owners of leases begin that a process of the run is; the name of the process follows."""
        return f"{self.run} {worker}"

    def chosen(self, suite: JudgeSpec | PanelSpec) -> JudgeSpec | PanelSpec:
        """Return who judges a suite: of a panel the juror of the model that the user names, or that model alone."""
        if isinstance(suite, JudgeSpec):
            return self.spec(suite)
        if self.model is None:
            return replace(suite, judges=tuple(map(self.spec, suite.judges)))
        return self.spec(next((each for each in suite.judges if each.model == self.model), JudgeSpec()))

    def spec(self, suite: JudgeSpec) -> JudgeSpec:
        """Return who judges in place of one judge of a suite.

        Another model than the suite's is not at the suite's address, and has neither its key nor its price.
        """
        if self.model is not None and self.model != suite.model:
            return replace(suite, model=self.model, base_url=self.base_url, api_key_env=None, price=None)
        return suite if self.base_url is None else replace(suite, base_url=self.base_url)
