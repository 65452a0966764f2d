"""Usage as counts that add up."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Struct, field, structs

from pytest_llmeval.core import (
    AnyNumber,
    CaseRecord,
    FloatArray,
    JudgeCall,
    Metric,
    Observation,
    RecordedCounts,
    Sums,
    TargetUsage,
    WrittenField,
    counted,
)

_FIGURES = {
    "judge_calls": "calls made in this run",
    "judge_tokens": "of calls made in this run",
    "total_cost_usd": "of all calls made in this run",
    "judge_cost_usd": "of calls made in this run",
    "latency_s": "of judge calls, when they were made",
    "target_latency_s": "of target calls, when they were made",
    "target_tokens": "as the target says",
    "target_cost_usd": "as the target says, or by its model",
    "cost_per_success_usd": "of answers that passed",
}
"""Figure to how it is computed."""


@dataclass(frozen=True)
class UsageEvaluator(RecordedCounts):
    """The evaluator of usage: sums of a suite's calls, and mean latencies, whose percentiles over cases make sense."""

    name = "\x00usage"
    """The label of these counts; no evaluator of a suite can have it."""
    origin = "calls are recorded"
    TARGET_FIGURES: ClassVar = ("target_latency_s", "target_tokens", "target_cost_usd")
    """The figures of a case's own target, which thresholds can limit."""

    def describe(self) -> Sequence[Metric]:
        """The figures of usage as metrics; all of them are better when small."""
        return [
            Metric(name, higher_is_better=False, high=None, signature=signature) for name, signature in _FIGURES.items()
        ]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Totals of usage, ``nan`` if a part of them is unknown, and mean latencies."""
        import numpy as np

        judged = sums["verdicts"] > 0
        answered = sums["target_usages"] > 0
        priced = answered & (sums["target_unpriced"] == 0)
        called = judged | (sums["target_asked"] > 0)
        spent = sums["cost_usd"] + sums["target_spent_usd"]
        known = (sums["unpriced"] == 0) & (sums["target_unpriced_now"] == 0)
        return {
            "judge_calls": np.where(judged, sums["calls"], np.nan),
            "judge_tokens": np.where(judged & (sums["uncounted"] == 0), sums["tokens"], np.nan),
            "total_cost_usd": np.where(called & known, spent, np.nan),
            "judge_cost_usd": np.where(judged & (sums["unpriced"] == 0), sums["cost_usd"], np.nan),
            "latency_s": sums["seconds"] / sums["timed"],
            "target_latency_s": sums["target_seconds"] / sums["target_timed"],
            "target_tokens": np.where(answered & (sums["target_uncounted"] == 0), sums["target_tokens"], np.nan),
            "target_cost_usd": np.where(priced, sums["target_cost_usd"], np.nan),
            "cost_per_success_usd": np.where(priced, sums["attempts_cost_usd"], np.nan) / sums["successes"],
        }

    @staticmethod
    def observation_of(
        calls: Iterable[JudgeCall],
        target_seconds: Sequence[float],
        target_usage: Sequence[TargetUsage] = (),
        successes: int = 0,
    ) -> Observation:
        """The counts of judge and target calls, tokens, costs and latencies of one case.

        Args:
            calls: To judges.
            target_seconds: Latency of each call of the target.
            target_usage: What each prediction took. Of several, by repeats, tokens and money of one count: their mean.
            successes: How many of these predictions passed.
        """
        counts: dict[str, float] = {}

        def add(name: str, amount: float) -> None:
            counts[name] = counts.get(name, 0) + amount

        for call in calls:
            add("verdicts", 1)
            if call.seconds is not None:
                add("seconds", call.seconds)
                add("timed", 1)
            if not call.fresh:
                continue
            add("calls", 1)
            if call.input_tokens is None or call.output_tokens is None:
                add("uncounted", 1)
            else:
                add("input_tokens", call.input_tokens)
                add("output_tokens", call.output_tokens)
                add("tokens", call.input_tokens + call.output_tokens)
            if call.cost_usd is None:
                add("unpriced", 1)
            else:
                add("cost_usd", call.cost_usd)
        for seconds in target_seconds:
            add("target_seconds", seconds)
            add("target_timed", 1)
        for usage in target_usage:
            add("target_usages", 1)
            tokens, cost, attempts = _target_tokens(usage), usage.cost_usd, len(target_usage)
            add("target_uncounted" if tokens is None else "target_tokens", 1 if tokens is None else tokens / attempts)
            add("target_unpriced" if cost is None else "target_cost_usd", 1 if cost is None else cost / attempts)
            add("attempts_cost_usd", cost or 0)
            if usage.origin != "given":
                add("target_asked", 1)
            if usage.origin == "run":
                add("target_unpriced_now" if cost is None else "target_spent_usd", 1 if cost is None else cost)
        if target_usage:
            add("successes", successes)
        return Observation(counts)


def successes_of(record: CaseRecord) -> int:
    """The number of passed answers to a case."""
    return int(record.outcome == "passed") if record.repeats is None else int(record.repeats["passed"])


class JudgeUsage(Struct, frozen=True):
    """Questions to one juror of a panel, and their cost in this run.

    Attributes:
        verdicts: Questions answered, stored ones included.
        calls: Of them, those that were asked in this run.
        input_tokens: Of those calls; ``None`` if a provider did not report them.
        output_tokens: As above.
        cost_usd: Of those calls; ``None`` if a price is not known.
    """

    verdicts: int = 0
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: AnyNumber | None = None

    def __str__(self) -> str:
        """The verdicts, requests, tokens and cost as part of a report line."""
        parts = [f"{counted(self.verdicts, 'verdict')}, {self.calls} requested in this run"]
        if self.calls:
            known = self.input_tokens is not None and self.output_tokens is not None
            amounts = [f"{self.input_tokens} + {self.output_tokens} tokens"] if known else []
            amounts += [f"{self.cost_usd:.4f} USD"] if self.cost_usd is not None else []
            parts += [", ".join(amounts)] if amounts else []
        return "; ".join(parts)

    @classmethod
    def from_calls(cls, calls: Sequence[JudgeCall]) -> "JudgeUsage":
        """The usage of judge calls, added up."""
        fresh = [call for call in calls if call.fresh]
        return cls(
            verdicts=len(calls),
            calls=len(fresh),
            input_tokens=_known_total([call.input_tokens for call in fresh]),
            output_tokens=_known_total([call.output_tokens for call in fresh]),
            cost_usd=_known_sum([call.cost_usd for call in fresh]),
        )


class CascadeUse(Struct, frozen=True):
    """Counts of the questions of one evaluator to a cascade of judges.

    Attributes:
        audit: The share of sure verdicts that the large judge is also asked for.
        verdicts: Of the cascade.
        unsure: Of them, those of which the small judge was unsure.
        audited: Of the others, those that the large judge was asked for nevertheless.
        differing: Of the audited ones, those with which the large judge disagrees.
    """

    audit: AnyNumber
    verdicts: int
    unsure: int
    audited: int
    differing: int

    @classmethod
    def from_counts(cls, audit: float, counts: Mapping[str, float]) -> "CascadeUse":
        """The errors that counts of verdicts on audited questions add up to."""
        verdicts, sure, audited, wrong = (round(counts[name]) for name in ("verdicts", "sure", "audited", "wrong"))
        return cls(audit, verdicts, verdicts - sure, audited, wrong)

    @property
    def sure(self) -> int:
        """Verdicts of which the small judge was sure."""
        return self.verdicts - self.unsure

    @property
    def not_asked(self) -> int:
        """Verdicts for which the large judge was not asked."""
        return self.sure - self.audited


class UsageReport(Struct, frozen=True):
    """The usage of a suite's judges in this run, summed from its counts.

    Attributes:
        verdicts: Questions answered, stored ones included.
        calls: Of them, those that were asked in this run.
        input_tokens: Of those calls; ``None`` if a provider did not report them.
        output_tokens: As above.
        judge_cost_usd: Of those calls; ``None`` if a price is not known.
        latency_s: Percentiles of all calls when they were made, such as ``{"p50": 0.8, "p95": 1.6}``; ``None`` where
            that is not known.
        target_latency_s: Of the calls of the target, when they were made.
        target_tokens: Of one prediction per case, the mean of repeated ones; ``None`` if one does not say how many.
        target_cost_usd: Likewise; ``None`` if the cost of one of them is not known.
        jurors: Name of a juror to its part of this, if a panel judges.
        cascades: Label of an evaluator to the counts of its questions, if a cascade judges.
    """

    verdicts: int = 0
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    judge_cost_usd: AnyNumber | None = None
    latency_s: Mapping[str, AnyNumber] | None = None
    target_latency_s: Mapping[str, AnyNumber] | None = None
    target_tokens: Annotated[AnyNumber | None, WrittenField.TOGETHER] = None
    target_cost_usd: Annotated[AnyNumber | None, WrittenField.TOGETHER] = None
    jurors: Annotated[Mapping[str, JudgeUsage], WrittenField.IF_KNOWN] = field(default_factory=dict)
    cascades: Annotated[Mapping[str, CascadeUse], WrittenField.IF_KNOWN] = field(default_factory=dict)

    @property
    def judges(self) -> JudgeUsage:
        """The questions to all judges, and their cost."""
        return JudgeUsage(self.verdicts, self.calls, self.input_tokens, self.output_tokens, self.judge_cost_usd)

    @classmethod
    def from_records(
        cls, records: Sequence[CaseRecord], cascades: Mapping[str, Mapping[str, float]] | None = None, audit: float = 0
    ) -> "UsageReport | None":
        """The usage of a suite's judges over its cases; ``None`` if there is none.

        Args:
            records: Of the cases.
            cascades: Label of an evaluator to the counts of its questions to a cascade of judges.
            audit: The share of sure verdicts that the cascade audits.
        """
        calls = [call for record in records for call in record.calls]
        target = [seconds for record in records for seconds in record.target_seconds]
        usages = [usage for record in records for usage in record.target_usage]
        if not calls and not target and all(usage.says_nothing for usage in usages):
            return None
        names = sorted({call.judge for call in calls if call.judge})
        judges = JudgeUsage.from_calls(calls)
        return cls(
            verdicts=judges.verdicts,
            calls=judges.calls,
            input_tokens=judges.input_tokens,
            output_tokens=judges.output_tokens,
            judge_cost_usd=judges.cost_usd,
            latency_s=_latency_percentiles([call.seconds for call in calls if call.seconds is not None]),
            target_latency_s=_latency_percentiles(target),
            target_tokens=_of_one_attempt(records, _target_tokens) if usages else None,
            target_cost_usd=_of_one_attempt(records, lambda usage: usage.cost_usd) if usages else None,
            jurors={name: JudgeUsage.from_calls([call for call in calls if call.judge == name]) for name in names},
            cascades={label: CascadeUse.from_counts(audit, counts) for label, counts in (cascades or {}).items()},
        )


def _of_one_attempt(records: Sequence[CaseRecord], amount: "Callable[[TargetUsage], float | None]") -> float | None:
    """A target's usage over cases, for one answer each: of several repeats, their mean."""
    means = [
        None if total is None else total / len(record.target_usage)
        for record in records
        if record.target_usage
        for total in [_known_sum(list(map(amount, record.target_usage)))]
    ]
    return _known_sum(means)


def _target_tokens(usage: TargetUsage) -> float | None:
    """The tokens that one prediction of a target read and wrote; ``None`` if either is unknown."""
    read, written = usage.input_tokens, usage.output_tokens
    return None if read is None or written is None else read + written


def _known_total(amounts: Sequence[int | None]) -> int | None:
    """The total tokens of judge calls; ``None`` if the count of one is unknown."""
    return None if None in amounts else sum(filter(None, amounts))


def _known_sum(amounts: Sequence[float | None]) -> float | None:
    """The total of usage amounts, such as costs; ``None`` if one is unknown."""
    return None if None in amounts else math.fsum(filter(None, amounts))


def _latency_percentiles(seconds: Sequence[float]) -> dict[str, float] | None:
    """The 50th and 95th percentile of call latencies in a usage report; ``None`` without calls."""
    import numpy as np

    if not seconds:
        return None
    return {f"p{percent}": float(np.percentile(seconds, percent)) for percent in (50, 95)}


class SpentMoney(Struct, frozen=True):
    """US dollars spent in a run.

    Attributes:
        judges: On judges.
        users: On simulated users.
        targets: On answers of targets.
    """

    judges: AnyNumber | None = 0.0
    users: AnyNumber | None = 0.0
    targets: AnyNumber | None = 0.0

    COMPUTED: ClassVar = {"total": "targets"}

    @property
    def total(self) -> float | None:
        """The dollars spent on all of them; ``None`` where some are not known."""
        return _known_sum(structs.astuple(self))


class SavedMoney(Struct, frozen=True):
    """US dollars saved in a run.

    Attributes:
        stored: By stored verdicts and recorded answers: what they cost when they were made.
        stop: By cases that were not needed, at what those that decided cost.
        cascade: By the calls of the large judge of a cascade that were not made, at the mean price of the others.
    """

    stored: AnyNumber | None = 0.0
    stop: AnyNumber | None = 0.0
    cascade: AnyNumber | None = 0.0

    COMPUTED: ClassVar = {"total": "cascade"}

    @property
    def total(self) -> float | None:
        """The sum of what was saved."""
        return _known_sum(structs.astuple(self))


class Money(Struct, frozen=True):
    """US dollars of a run; ``None`` if the price of a part is unknown, 0 if there was nothing to pay.

    Attributes:
        spent: In this run.
        saved: Calls that were not made, by their price.
    """

    spent: SpentMoney = SpentMoney()
    saved: SavedMoney = SavedMoney()

    COMPUTED: ClassVar = {"full": "saved"}

    @property
    def full(self) -> float | None:
        """The cost of a run without anything stored, and with the large judge for everything."""
        return _known_sum([self.spent.total, self.saved.total])

    @classmethod
    def of_records(
        cls, records: Sequence[CaseRecord], cascades: Mapping[str, CascadeUse], large_judge: str = ""
    ) -> "Money | None":
        """The money of a suite; ``None`` if nothing was asked.

        Args:
            records: Of the cases, in which a call that several share is made once; see `CaseRecord.claim_calls`.
            cascades: What became of the questions to a cascade of judges.
            large_judge: Its name among the jurors.
        """
        calls = [call for record in records for call in record.calls]
        usages = [usage for record in records for usage in record.target_usage if usage.origin != "given"]
        if not calls and not usages:
            return None
        fresh = [call for call in calls if call.fresh]
        calls_by_id = {call.id: call for call in calls}
        fresh_ids = {call.id for call in fresh}
        stored = [call.cost_usd for name, call in calls_by_id.items() if name not in fresh_ids]
        recorded = [usage.cost_usd for usage in usages if usage.origin == "recorded"]
        left = sum(cascade.not_asked for cascade in cascades.values())
        price = _price([call for call in calls_by_id.values() if call.judge == large_judge]) if left else 0.0
        spent = SpentMoney(
            judges=_known_sum([call.cost_usd for call in fresh if not call.user]),
            users=_known_sum([call.cost_usd for call in fresh if call.user]),
            targets=_known_sum([usage.cost_usd for usage in usages if usage.origin == "run"]),
        )
        return cls(spent, SavedMoney(_known_sum([*stored, *recorded]), cascade=None if price is None else left * price))

    @classmethod
    def total(cls, parts: "Iterable[Money | None]") -> "Money | None":
        """The money of several suites; ``None`` if nothing was asked in any."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        spent = zip(*(structs.astuple(money.spent) for money in known), strict=True)
        saved = zip(*(structs.astuple(money.saved) for money in known), strict=True)
        return cls(SpentMoney(*map(_known_sum, spent)), SavedMoney(*map(_known_sum, saved)))

    def with_stop(self, saved: float | None) -> "Money":
        """The money of a suite that stopped early."""
        return structs.replace(self, saved=structs.replace(self.saved, stop=saved))


def _price(calls: Sequence[JudgeCall]) -> float | None:
    """The mean price of judge calls; ``None`` if there is none, or one has no known price."""
    total = _known_sum([call.cost_usd for call in calls]) if calls else None
    return None if total is None else total / len(calls)
