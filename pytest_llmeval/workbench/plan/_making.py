"""The making of a plan, without a call."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_llmeval.core import MissingExtraError, counted
from pytest_llmeval.judges import Usage
from pytest_llmeval.run import CallCounter, CaseRunner, LoadedCase
from pytest_llmeval.workbench.plan import (
    NOTHING,
    BudgetUse,
    CallSample,
    CostEstimate,
    PlannedCalls,
    PlannedStop,
    PlannedSuite,
    RunPlan,
    planned,
)

if TYPE_CHECKING:
    from pytest_llmeval.baselines import Keeper
    from pytest_llmeval.judges import JudgeOptions, Price, StoredJudgement
    from pytest_llmeval.suites import LoadedSuite, SuiteKey

_ASKED_AGAIN = ("further call", "at most, if replies cannot be read and are asked for once more")


@dataclass
class Forecast:
    """The tokens, cost and time that counted calls of a run will take, by past calls of the same kind.

    Attributes:
        counter: What was counted.
    """

    counter: CallCounter
    _reasons: dict[str, None] = field(default_factory=dict)

    def plan(self) -> RunPlan:
        """Return the plan of everything that was added."""
        suites = list(map(self._planned, self.counter.tallies))
        needed = [tally.judge for tally in self.counter.tallies.values() if tally.judge.again]
        if needed and all(calls.more is not None for calls in needed):
            self.counter.notes[_ASKED_AGAIN] = sum(calls.again + calls.later.total() for calls in needed)
        counts = (f"{counted(count, noun)} {what}" for (noun, what), count in self.counter.notes.items())
        return RunPlan(suites, list(self._budget(suites)), self._options.concurrency, [*counts, *self._reasons])

    def _planned(self, key: "SuiteKey") -> PlannedSuite:
        tally = self.counter.tallies[key]
        calls = tally.judge
        likely, more, later = Counter(calls.likely), calls.more, Counter(calls.later)
        for place, questions in calls.unsure.items():
            first = next(iter(questions.values()))
            expected = round(len(questions) * (first.unsure_share(self._past.of_mode(place[1])) or 0))
            likely[place] += expected
            more = _plus(more, len(questions) - expected)
            later[place[:1], place[1:]] += len(questions) - expected
        judge = replace(NOTHING, stored=calls.stored, more=more)
        for model, mode in {**calls.modes, **likely}:
            judge += self._planned_mode(key, model, mode, calls.modes[model, mode], likely[model, mode])
        for (model, mode), turns in calls.turns.items():
            judge += replace(self._planned_mode(key, model, mode, turns), calls=0)
        if more is None:
            judge = judge.without_bound()
        for (models, modes), count in later.items():
            judge = judge.with_later(count, self._largest(key, models, modes)) if count else judge
        target = replace(NOTHING, stored=tally.answered, more=tally.target_more)
        target += self._planned_target(key)
        return PlannedSuite(tally.suite.name, key.display_path, key.variant, target, judge)

    def _planned_mode(self, key: "SuiteKey", model: str, mode: str, calls: int, likely: int = 0) -> PlannedCalls:
        judge = self.counter.tallies[key].judge.jurors[model]
        samples = self._past.samples(mode, judge.model, self._price(judge.price))
        if all(sample.tokens is None for sample in samples):
            self._reasons[f"no stored call of mode {mode!r} tells its tokens: tokens, cost and time are unknown"] = None
        if judge.price is None:
            self._reasons[_unknown_price(judge.model)] = None
        return planned(calls, samples, concurrency=self._options.concurrency, likely=likely)

    def _largest(self, key: "SuiteKey", models: Sequence[str], modes: Sequence[str]) -> CallSample:
        """The largest call of one of some modes to one of some models; ``None`` where unknown."""
        jurors = [self.counter.tallies[key].judge.jurors[model] for model in models]
        samples = [
            self._past.samples(mode, juror.model, self._price(juror.price)) for mode in modes for juror in jurors
        ]
        calls = [planned(1, sample, concurrency=1) for sample in samples]
        tokens, usd = ([getattr(call, unit).high for call in calls] for unit in ("tokens", "usd"))
        return CallSample(*(max(amounts) if amounts and None not in amounts else None for amounts in (tokens, usd)))

    def _price(self, live: "Price | None") -> "Price | None":
        """The price of a judge's calls, live or deferred."""
        if self._options.mode != "defer":
            return live
        if live is not None:
            self._reasons["judges cost the rate of the batch interface: 'batch' of their price"] = None
        return live and live.of_batches

    @property
    def _options(self) -> "JudgeOptions":
        return self.counter.judges.options

    @cached_property
    def _past(self) -> "_PastCalls":
        return _PastCalls(self.counter.stored_judgements())

    def _planned_target(self, key: "SuiteKey") -> PlannedCalls:
        tally = self.counter.tallies[key]
        suite = tally.suite
        most = [self._options.concurrency]
        if suite.target is not None:
            http = suite.target.http
            most += [limit for limit in (suite.target.concurrency, http and http.concurrency) if limit]
        samples = list(self._past_answers(key, suite)) if tally.target else []
        forecast = planned(tally.target, samples, concurrency=min(most))
        figures = {"tokens": forecast.tokens.median, "cost": forecast.usd.median, "time": forecast.seconds}
        if suite.model is not None and tally.target and suite.model.spec.known_price is None:
            self._reasons[_unknown_price(suite.model.spec.model)] = None
            del figures["cost"]
        if unknown := [name for name, figure in figures.items() if figure is None]:
            named = f"{key.display_path}[{key.variant}]" if key.variant else key.display_path
            reason = f"no recorded prediction of {named} tells what its target takes: {', '.join(unknown)} unknown"
            self._reasons[reason] = None
        return forecast

    def _past_answers(self, key: "SuiteKey", suite: "LoadedSuite") -> Iterator[CallSample]:
        for usage, seconds in self.counter.recorded_answers(key, suite):
            parts = (usage.input_tokens, usage.output_tokens)
            cost = usage.cost_usd
            if suite.model is not None:
                read, written = (None if part is None else int(part) for part in parts)
                cost = Usage(read, written).cost_usd(suite.model.spec.known_price)
            yield CallSample(None if None in parts else sum(filter(None, parts)), cost, seconds)

    def _budget(self, suites: Sequence[PlannedSuite]) -> Iterator[BudgetUse]:
        """Yield the use of each limit, counted as in a run: of targets, only models make calls that are limited.

        What another target takes, only its predictions say, so an unknown amount of it may be added.
        """
        limits, used, is_open = (
            self._options.budget,
            sum((suite.judge for suite in suites), NOTHING),
            False,
        )
        for planned_suite, tally in zip(suites, self.counter.tallies.values(), strict=True):
            target = planned_suite.target
            if tally.suite.model is None:
                is_open |= None in (target.tokens.median, target.usd.median)
                tokens, usd = (
                    estimate if estimate.median is not None else CostEstimate()
                    for estimate in (target.tokens, target.usd)
                )
                target = replace(NOTHING, more=target.more, tokens=tokens, usd=usd)
            used += target
        is_open |= used.more != 0
        if limits.calls is not None:
            yield BudgetUse("calls", limits.calls, used.expected, None, used.more != 0)
        for unit, limit, spread in (("tokens", limits.tokens, used.tokens), ("usd", limits.usd, used.usd)):
            if limit is not None:
                yield BudgetUse(unit, limit, spread.median, spread.high, is_open, spread.least)


def _plus(first: int | None, other: int) -> int | None:
    """The sum of a number of planned calls and further ones; ``None`` if unknown."""
    return None if first is None else first + other


class _PastCalls:
    """The stored judge calls by mode, from which a run plan estimates others."""

    def __init__(self, entries: "Iterable[StoredJudgement]") -> None:
        self._by_mode: dict[str, dict[str, StoredJudgement]] = defaultdict(dict)
        for entry in entries:
            self._by_mode[entry.components["mode"]][entry.key] = entry

    def samples(self, mode: str, model: str, price: "Price | None") -> list[CallSample]:
        """The calls of a mode: those of a model or, if it has none, those of all models.

        Args:
            mode: The mode.
            model: ``PROVIDER:NAME``.
            price: What the tokens of the model cost now.
        """
        entries = list(self._by_mode[mode].values())
        own = [entry for entry in entries if entry.components["model"] == model]
        return [_sample(entry.usage, price, entry.seconds) for entry in own or entries]

    def of_mode(self, mode: str) -> "Iterable[StoredJudgement]":
        """Return the calls of a mode."""
        return self._by_mode[mode].values()


def _sample(usage: Usage, price: "Price | None", seconds: float) -> CallSample:
    """Tokens, cost and time of one past call, as a sample for the plan of a run."""
    parts = (usage.input_tokens, usage.output_tokens)
    # An imported score has taken no time: it was no call.
    return CallSample(
        None if None in parts else sum(filter(None, parts)), usage.cost_usd(price), seconds if seconds > 0 else None
    )


def plan_cases(runner: CaseRunner, cases: Iterable[tuple[LoadedCase, bool]]) -> RunPlan:
    """Plan the judge and target calls that cases would take, without making any.

    Args:
        runner: The runner of the cases.
        cases: Each with whether a fixture answers it if it carries no prediction.

    Raises:
        LlmevalError: The cache or recordings cannot be read.
    """
    return Forecast(CallCounter.of_cases(runner, cases)).plan()


def plan_run(runner: CaseRunner, cases: Sequence[tuple[LoadedCase, bool]], keeper: "Keeper") -> RunPlan:
    """Plan the calls of all cases of a run, and of those before suites are expected to stop early.

    Raises:
        LlmevalError: As in `plan_cases`.
    """
    plan = plan_cases(runner, cases)
    ordered = {loaded.key: loaded.suite for loaded, _ in cases if loaded.suite.order is not None}
    if not ordered:
        return plan
    from pytest_llmeval.workbench.early._stopping import foresee

    stops = foresee(ordered.items(), runner.judges, keeper)

    def runs(loaded: LoadedCase) -> bool:
        order, most = loaded.suite.order, stops.get(loaded.key)
        return order is None or most is None or order.ranks[loaded.case.id] < most

    return replace(
        plan,
        stops=[
            PlannedStop(suite.name, key.display_path, key.variant, stops[key], len(suite.cases))
            for key, suite in ordered.items()
        ],
        stopping=plan_cases(runner, [case for case in cases if runs(case[0])]),
    )


def _unknown_price(model: str | None) -> str:
    """The reason why a plan does not know what calls of a model cost."""
    return f"the price of {model} is unknown: set 'price' beside 'model'{MissingExtraError.price_hint()}"
