"""The counts of each case of a run, and sums of steps between runs, stored for later comparisons. No texts."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec
from msgspec import Struct, structs

from pytest_llmeval.core import (
    Abstention,
    CaseOutcome,
    CaseRecord,
    Evaluator,
    Fault,
    JsonNumber,
    Observation,
    SuiteError,
    Totals,
    decode,
)
from pytest_llmeval.numbers._case_scores import CaseDigest
from pytest_llmeval.numbers._repeats import FALLEN
from pytest_llmeval.numbers._table import OUTCOME, OUTCOME_EVALUATOR, Table

_DIGITS = 12
_EXACT = 2**53
_CHAIN_DIGITS = 9


class CaseStatistics(Struct, frozen=True):
    """The counts of every case of a run, sorted by id: enough to compute every metric and to pair two runs.

    Attributes:
        records: One per case, without details and reasons.
        digests: Id to what the case was; empty if that is not known.
    """

    records: tuple[CaseRecord, ...]
    digests: Mapping[str, CaseDigest] = {}

    @classmethod
    def pooled(cls, runs: "Sequence[CaseStatistics]", abstained: Abstention = "fell") -> "CaseStatistics":
        """The runs as one, whose counts are means over the runs.

        A case that errored in some of the runs has the means of the others; cases that the first run does not have are
        left out.

        Args:
            runs: At least one.
            abstained: ``fell``: a run in which a case leaves nothing to score, and in another something, counts as the
                worst value; ``allowed``: the case has the means of the others.
        """
        by_id = [{record.id: record for record in run.records} for run in runs]
        cases = [[run[record.id] for run in by_id if record.id in run] for record in runs[0].records]
        return structs.replace(runs[0], records=tuple(_mean_record(case, abstained) for case in cases))

    @classmethod
    def from_records(
        cls,
        records: Iterable[CaseRecord],
        evaluators: Iterable[str] | None = None,
        digests: Mapping[str, CaseDigest] | None = None,
    ) -> "CaseStatistics":
        """The statistics that comparisons of runs need of recorded cases.

        Args:
            records: One per case; those that did not run included.
            evaluators: Labels of the evaluators to keep; default: all.
            digests: Id to what the case was, as far as it is known.

        Returns:
            The statistics. Counts have twelve significant digits, which files of different machines agree about.
        """
        labels = None if evaluators is None else frozenset(evaluators)
        bare = sorted((_bare_record(record, labels) for record in records), key=lambda record: record.id)
        return cls(tuple(bare), dict(digests or {}))

    @classmethod
    def exact(cls, records: Iterable[CaseRecord]) -> "CaseStatistics":
        """Store case records unchanged, to compare two runs of one process."""
        return cls(tuple(sorted(records, key=lambda record: record.id)))

    def only(self, ids: AbstractSet[str]) -> "CaseStatistics":
        """The statistics of some of the cases."""
        return CaseStatistics(tuple(record for record in self.records if record.id in ids), self.digests)

    def renamed(self, previous: Mapping[str, str]) -> "CaseStatistics":
        """The statistics with other ids; cases whose id another case takes are left out.

        Args:
            previous: New id to the id so far.
        """
        if not previous:
            return self
        names = {old: new for new, old in previous.items()}
        records = [
            structs.replace(record, id=names.get(record.id, record.id))
            for record in self.records
            if record.id in names or record.id not in previous
        ]
        digests = {
            names.get(case, case): digest
            for case, digest in self.digests.items()
            if case in names or case not in previous
        }
        return CaseStatistics(tuple(sorted(records, key=lambda record: record.id)), digests)

    def table(self, evaluators: Mapping[str, Evaluator]) -> Table:
        """The matrix of the cases, which gives the metrics."""
        return Table(evaluators, self.records)

    def to_lines(self) -> Iterator[str]:
        """Yield one line of ASCII JSON per case, without its line end; equal cases give equal lines."""
        for record in self.records:
            line = _Line.from_record(record, self.digests.get(record.id))
            # Separators and escapes of the standard library: lines are committed, and their digest is approved.
            yield json.dumps(msgspec.to_builtins(line), allow_nan=False)

    @property
    def text(self) -> str:
        """The lines of the cases as text, each with its end."""
        return "".join(f"{line}\n" for line in self.to_lines())

    @classmethod
    def from_lines(cls, lines: Iterable[str], file: str = "case statistics") -> "CaseStatistics":
        """The statistics in lines that `to_lines` wrote; the round trip is identity.

        Args:
            lines: Of the file.
            file: How errors call it.

        Raises:
            SuiteError: Lines are not what `to_lines` writes, or an id occurs twice; all faults are listed.
        """
        records: dict[str, CaseRecord] = {}
        digests: dict[str, CaseDigest] = {}
        faults = []
        for number, text in enumerate(lines, 1):
            try:
                line = decode(text, _Line)
                record = line.record()
            except (ValueError, RecursionError) as error:
                faults.append(Fault(file, number, 1, "", f"the counts of a case cannot be read: {error}"))
                continue
            if record.id in records:
                faults.append(Fault(file, number, 1, "id", f"found {record.id!r} twice, expected it once"))
            records[record.id] = record
            if line.data:
                digests[record.id] = CaseDigest(line.data, line.limits)
        if faults:
            raise SuiteError(faults)
        return cls.from_records(records.values(), digests=digests)


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A case in the file of case statistics, a line of JSON: counts by evaluator, and metrics without a value."""

    id: str
    outcome: CaseOutcome
    data: str = ""
    limits: str = ""
    labels: dict[str, str] = {}
    counts: dict[str, dict[str, JsonNumber]] = {}
    undefined: dict[str, list[str]] = {}
    errored: dict[str, list[str]] = {}
    abstained: dict[str, list[str]] = {}
    errors: list[str] = []
    answered: str = ""
    weight: JsonNumber = 1.0

    @classmethod
    def from_record(cls, record: CaseRecord, digest: CaseDigest | None) -> "_Line":
        """The line of a recorded case."""
        seen = record.observations
        return cls(
            record.id,
            record.outcome,
            *(digest or ("", "")),
            dict(record.labels),
            {label: dict(observation.counts) for label, observation in seen.items()},
            {label: list(observation.undefined) for label, observation in seen.items() if observation.undefined},
            {label: list(observation.errored) for label, observation in seen.items() if observation.errored},
            {label: list(observation.abstained) for label, observation in seen.items() if observation.abstained},
            list(record.errors),
            record.answered,
            record.weight,
        )

    def record(self) -> CaseRecord:
        """The record of the case in the line.

        Raises:
            ValueError: Counts are missing, or not finite.
        """
        if strange := sorted(
            (self.undefined.keys() | self.errored.keys() | self.abstained.keys()) - self.counts.keys()
        ):
            raise ValueError(f"counts of {strange[0]!r} are missing")
        observations = {
            label: Observation(
                counts,
                undefined=dict.fromkeys(self.undefined.get(label, ()), ""),
                errored=dict.fromkeys(self.errored.get(label, ()), ""),
                abstained=tuple(self.abstained.get(label, ())),
            )
            for label, counts in self.counts.items()
        }
        for label, observation in observations.items():
            if fault := observation.fault():
                raise ValueError(f"{label}: {fault}")
        errors = dict.fromkeys(self.errors, "")
        return CaseRecord(
            self.id, self.labels, self.outcome, observations, errors, answered=self.answered, weight=self.weight
        )


def _bare_record(record: CaseRecord, evaluators: frozenset[str] | None) -> CaseRecord:
    """Reduce a case to what its line of case statistics stores: sorted counts without reasons or details."""
    observations = {
        label: _bare_observation(record.observations[label])
        for label in sorted(record.observations)
        if evaluators is None or label in evaluators
    }
    errors: dict[str, str] = {}
    if record.errors:
        errors = dict.fromkeys(
            sorted(label for label in record.errors if evaluators is None or label in evaluators or not label), ""
        )
    labels = dict(sorted(record.labels.items())) if record.labels else {}
    weight = 1.0 if record.weight == 1 else _round_count(record.weight)
    return CaseRecord(record.id, labels, record.outcome, observations, errors, answered=record.answered, weight=weight)


def _bare_observation(observation: Observation) -> Observation:
    """Reduce an observation to what a line of case statistics stores of it."""
    counts = {name: _round_count(observation.counts[name]) for name in sorted(observation.counts)}
    if not (observation.undefined or observation.errored or observation.abstained):  # as of most
        return Observation(counts)
    return Observation(
        counts,
        undefined=dict.fromkeys(sorted(observation.undefined), ""),
        errored=dict.fromkeys(sorted(observation.errored), ""),
        abstained=tuple(sorted(observation.abstained)),
    )


def _round_count(count: float) -> float:
    """A count of a case as an integer if it is one, else with the digits that machines agree about."""
    if type(count) is int and -_EXACT < count < _EXACT:
        return count
    value = float(count)
    if value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return float(f"{value:.{_DIGITS}g}")


def _mean_record(records: Sequence[CaseRecord], abstained: Abstention) -> CaseRecord:
    """Average one case over several approved runs, which form a pooled baseline."""
    labels = dict.fromkeys(label for record in records for label in record.observations)
    observations = {
        label: _mean_observation(
            [record.observations[label] for record in records if label in record.observations], abstained
        )
        for label in sorted(labels)
    }
    errors = dict(records[0].errors) if all(record.errors for record in records) else {}
    outcomes = [outcome for record in records if (outcome := OUTCOME_EVALUATOR.observation_of(record)).counts]
    if outcomes:
        observations[OUTCOME] = _mean_observation(outcomes, abstained)
    errors = {label: why for label, why in errors.items() if label not in observations}
    return structs.replace(records[0], observations=observations, errors=errors)


def _mean_observation(observations: Sequence[Observation], abstained: Abstention) -> Observation:
    """Average an evaluator's counts of one case over the pooled runs in which it did not error."""
    clean = [observation for observation in observations if not observation.errored]
    if not clean:
        return observations[0]
    undefined = {
        name: why
        for name, why in clean[0].undefined.items()
        if all(name in observation.undefined for observation in clean)
    }
    counts = {name: total / len(clean) for name, total in Totals.add_up(clean).items()}
    if abstained == "fell":
        silent = Counter(name for observation in clean for name in observation.abstained if name not in undefined)
        counts |= {FALLEN + name: counts.get(FALLEN + name, 0) + runs / len(clean) for name, runs in silent.items()}
    return Observation(counts, undefined=undefined, abstained=Observation.abstained_of(undefined, clean))


@dataclass(frozen=True, slots=True)
class Chain:
    """The move of a metric from one approved run to another, as the sum of the steps between neighbouring runs.

    Each step is over the cases that both of its runs share, so that all cases may be others in the end. Steps are
    not independent: the luck of a case in the run between two of them enters both. So its errors are added up.

    Attributes:
        moved: The sum.
        steps: How many there are.
        units: Cases, or clusters of them, of the smallest step.
        changed: How many had other results, added up over the steps.
        errors: Case of the last run, or cluster, to its part in the error of the sum; parts are independent.
        remainder: Variance of the sum by cases that are gone.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    moved: float
    steps: int
    units: int
    changed: int
    errors: Mapping[str, float] = field(repr=False)
    remainder: float = 0.0

    @property
    def variance(self) -> float:
        """The variance of the sum of the chain's steps."""
        return self.remainder + math.fsum(error**2 for error in self.errors.values())

    def extended(self, step: "Chain", previous: Mapping[str, str] = {}) -> "Chain":
        """The chain with a further step, rounded as files carry it.

        Args:
            step: From its last run to the next.
            previous: Id of a case to its id in the last run, where these differ.
        """
        before = {name: previous.get(name, name) for name in step.errors}
        errors = {
            name: round(self.errors.get(before[name], 0.0) + error, _CHAIN_DIGITS)
            for name, error in step.errors.items()
        }
        gone = math.fsum(self.errors[name] ** 2 for name in self.errors.keys() - before.values())
        return Chain(
            round(self.moved + step.moved, _CHAIN_DIGITS),
            self.steps + step.steps,
            min(self.units, step.units),
            self.changed + step.changed,
            errors,
            round(self.remainder + step.remainder + gone, 2 * _CHAIN_DIGITS),
        )
