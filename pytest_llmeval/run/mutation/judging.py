"""Mutants before judges: what they would cost, and their verdicts, which go to a cache of their own."""

__all__ = ("JudgedScorer",)

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import BudgetError, LlmevalError
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.panel import jurors_of
from pytest_llmeval.reports.plan import RunPlan
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.job import EarlyCalls, LoadedCase
from pytest_llmeval.run.mutation.making import Mutation, kinds_of
from pytest_llmeval.run.planning import plan_cases
from pytest_llmeval.suite.suite import Suite, SuiteKey


@dataclass(frozen=True)
class JudgedScorer:
    """Scores answers with the suite's judges. Recorded verdicts are read; nothing is written but the cache.

    Attributes:
        key: Of the suite.
        options: How judges are asked; the cache should be one of mutants alone.
    """

    key: SuiteKey
    options: JudgeOptions

    def refuse(self, suite: Suite) -> None:
        """Refuse judges that exist in pytest only.

        Raises:
            LlmevalError: One of them does.
        """
        for each in jurors_of(suite.judge) if suite.asks_judge else ():
            if each.provider in (None, "fixture"):
                raise LlmevalError(f"--judges: found {each.model!r}, expected a model: a fixture judges in pytest only")

    def plan(self, mutations: Sequence[Mutation]) -> RunPlan:
        """Return what judging recorded answers, mutants and rewrites would call; nothing is called.

        Raises:
            LlmevalError: The cache or recordings cannot be read.
        """
        runner = CaseRunner(self.options)
        try:
            return plan_cases(runner, ((each, False) for mutation in mutations for each in self._loaded(mutation)))
        finally:
            runner.close(whole_run=False)

    def _loaded(self, mutation: Mutation) -> Iterator[LoadedCase]:
        for suite, cases in _kinds(mutation):
            for case in cases:
                yield LoadedCase(structs.replace(suite, cases=tuple(cases)), case, self._key(suite))

    def _key(self, suite: Suite) -> SuiteKey:
        return self.key._replace(variant=suite.system)

    def __call__(self, suite: Suite, cases: Sequence[Case]) -> list[Execution]:
        """Score answered cases, of which no two have the same id.

        Raises:
            LlmevalError: The budget is spent.
        """
        scored = structs.replace(suite, cases=tuple(cases))
        runner = CaseRunner(self.options, explains_all=False)
        loaded = [LoadedCase(scored, case, self._key(suite)) for case in cases]
        early = EarlyCalls(judge=True)
        try:
            made = [runner.run(each, following=loaded[at:], early=early) for at, each in enumerate(loaded, 1)]
        finally:
            runner.close(whole_run=False)
        for each in made:
            if isinstance(each.error, BudgetError):
                raise LlmevalError(
                    f"{each.error}; finished verdicts are stored: run the command again with a new budget"
                )
        return made


def _kinds(mutation: Mutation) -> Iterator[tuple[Suite, list[Case]]]:
    """Yield everything that is judged, in groups without two answers to one case."""
    yield mutation.suite, mutation.cases
    for mutants in (mutation.mutants, mutation.rewrites):
        for places in kinds_of(mutants).values():
            yield mutation.suite, [mutants[place].changed for place in places]
