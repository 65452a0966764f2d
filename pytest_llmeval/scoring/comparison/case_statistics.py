"""The counts of each case of a run, stored for comparison with later runs. No texts."""

__all__ = ("CaseDigest", "CaseStatistics")

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import CaseOutcome, CaseRecord
from pytest_llmeval.scoring.table import Table

_OUTCOMES = get_args(CaseOutcome)
_KEYS = ("id", "outcome", "data", "limits", "labels", "counts", "undefined", "errored", "errors")
_DIGITS = 12
_EXACT = 2**53


class CaseDigest(NamedTuple):
    """What a case was, as fingerprints.

    Attributes:
        data: Of its input, expectation and labels.
        limits: Of its thresholds; nothing where it has none.
    """

    data: str
    limits: str = ""


@dataclass(frozen=True)
class CaseStatistics:
    """The counts of every case of a run, sorted by id: enough to compute every metric and to pair two runs.

    Attributes:
        records: One per case, without details and reasons.
        digests: Id to what the case was; files of earlier versions have none.
    """

    records: tuple[CaseRecord, ...]
    digests: Mapping[str, CaseDigest] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: Iterable[CaseRecord],
        evaluators: Iterable[str] | None = None,
        digests: Mapping[str, CaseDigest] | None = None,
    ) -> "CaseStatistics":
        """Keep what comparisons need of recorded cases.

        Args:
            records: One per case; those that did not run included.
            evaluators: Labels of the evaluators to keep; default: all.
            digests: Id to what the case was, as far as it is known.

        Returns:
            The statistics. Counts have twelve significant digits, which files of different machines agree about.
        """
        kept = None if evaluators is None else frozenset(evaluators)
        bare = sorted((_bare(record, kept) for record in records), key=lambda record: record.id)
        return cls(tuple(bare), dict(digests or {}))

    @classmethod
    def exact(cls, records: Iterable[CaseRecord]) -> "CaseStatistics":
        """Store case records unchanged, to compare two runs of one process."""
        return cls(tuple(sorted(records, key=lambda record: record.id)))

    def only(self, ids: AbstractSet[str]) -> "CaseStatistics":
        """Return the statistics of some of the cases."""
        return CaseStatistics(tuple(record for record in self.records if record.id in ids), self.digests)

    def table(self, evaluators: Mapping[str, Evaluator]) -> Table:
        """Return the matrix of the cases, which gives the metrics."""
        return Table(evaluators, self.records)

    def to_lines(self) -> Iterator[str]:
        """Yield one line of ASCII JSON per case, without its line end; equal cases give equal lines."""
        for record in self.records:
            yield json.dumps(_to_json(record, self.digests.get(record.id)), allow_nan=False)

    @property
    def text(self) -> str:
        """The lines, each with its end."""
        return "".join(f"{line}\n" for line in self.to_lines())

    @classmethod
    def from_lines(cls, lines: Iterable[str], file: str = "case statistics") -> "CaseStatistics":
        """Read what `to_lines` wrote; the round trip is identity.

        Args:
            lines: Of the file.
            file: How errors call it.

        Raises:
            SuiteError: Lines are not what `to_lines` writes, or an id occurs twice; all faults are listed.
        """
        records: dict[str, CaseRecord] = {}
        digests: dict[str, CaseDigest] = {}
        faults = []
        for number, line in enumerate(lines, 1):
            try:
                record, digest = _from_json(line)
            except _Fault as fault:
                faults.append(Fault(file, number, 1, fault.field, fault.message))
                continue
            if record.id in records:
                faults.append(Fault(file, number, 1, "id", f"found {record.id!r} twice, expected it once"))
            records[record.id] = record
            if digest is not None:
                digests[record.id] = digest
        if faults:
            raise SuiteError(faults)
        return cls.of(records.values(), digests=digests)


class _Fault(Exception):  # noqa: N818 (it never leaves this module)
    """What is wrong with a field of a line."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(message)


def _bare(record: CaseRecord, kept: frozenset[str] | None) -> CaseRecord:
    observations = {
        label: Observation(
            {name: _rounded(count) for name, count in sorted(each.counts.items())},
            undefined=dict.fromkeys(sorted(each.undefined), ""),
            errored=dict.fromkeys(sorted(each.errored), ""),
        )
        for label, each in sorted(record.observations.items())
        if kept is None or label in kept
    }
    errors = dict.fromkeys(sorted(label for label in record.errors if kept is None or label in kept or not label), "")
    labels = dict(sorted(record.labels.items()))
    return CaseRecord(record.id, labels, record.outcome, observations, errors)


def _rounded(count: float) -> float:
    """Return a count as an integer if it is one, else with the digits that machines agree about."""
    if type(count) is int and -_EXACT < count < _EXACT:
        return count
    value = float(count)
    if value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return float(f"{value:.{_DIGITS}g}")


def _to_json(record: CaseRecord, digest: CaseDigest | None) -> dict[str, Any]:
    """Return a record as JSON data; empty parts are left out, except that a measured case has its counts."""
    data: dict[str, Any] = {"id": record.id, "outcome": record.outcome}
    if digest is not None:
        data |= {name: value for name, value in digest._asdict().items() if value}
    if record.labels:
        data["labels"] = dict(record.labels)
    if record.observations:
        data["counts"] = {label: dict(each.counts) for label, each in record.observations.items()}
    for part in ("undefined", "errored"):
        named = {label: list(getattr(each, part)) for label, each in record.observations.items()}
        if any(named.values()):
            data[part] = {label: names for label, names in named.items() if names}
    if record.errors:
        data["errors"] = list(record.errors)
    return data


def _from_json(line: str) -> tuple[CaseRecord, CaseDigest | None]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Fault("", f"found invalid JSON ({error}), expected one case as an object") from None
    if not isinstance(data, dict):
        raise _Fault("", f"found {type(data).__name__}, expected one case as an object")
    for key in data:
        if key not in _KEYS:
            raise _Fault(key, f"found an unknown key, expected {', '.join(_KEYS)}")
    if not isinstance(data.get("id"), str):
        raise _Fault("id", f"found {data.get('id')!r}, expected text")
    if data.get("outcome") not in _OUTCOMES:
        raise _Fault("outcome", f"found {data.get('outcome')!r}, expected one of {', '.join(_OUTCOMES)}")
    labels = _mapping(data, "labels")
    if not all(isinstance(value, str) for value in labels.values()):
        raise _Fault("labels", f"found {labels!r}, expected text for every label")
    counts = _mapping(data, "counts")
    undefined, errored = _mapping(data, "undefined"), _mapping(data, "errored")
    observations = {
        label: Observation(
            _counts(each, label),
            undefined=_names(undefined.get(label, []), "undefined"),
            errored=_names(errored.get(label, []), "errored"),
        )
        for label, each in counts.items()
    }
    if strange := sorted((undefined.keys() | errored.keys()) - counts.keys()):
        raise _Fault("counts", f"found no counts of {strange[0]!r}, expected counts of every evaluator listed")
    errors = _names(data.get("errors", []), "errors")
    return CaseRecord(data["id"], labels, data["outcome"], observations, errors), _digest(data)


def _digest(data: Mapping[str, Any]) -> CaseDigest | None:
    for key in CaseDigest._fields:
        if not isinstance(data.get(key, ""), str):
            raise _Fault(key, f"found {data[key]!r:.40}, expected text")
    return CaseDigest(data["data"], data.get("limits", "")) if "data" in data else None


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise _Fault(key, f"found {type(value).__name__}, expected an object")
    return value


def _counts(counts: Any, label: str) -> dict[str, float]:
    if not isinstance(counts, dict):
        raise _Fault(f"counts.{label}", f"found {type(counts).__name__}, expected an object")
    for name, count in counts.items():
        try:
            usable = type(count) in (int, float) and math.isfinite(count)
        except OverflowError:
            usable = False
        if not usable:
            raise _Fault(f"counts.{label}.{name}", f"found {count!r:.40}, expected a finite number")
    return counts


def _names(names: Any, key: str) -> dict[str, str]:
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise _Fault(key, f"found {type(names).__name__}, expected a list of names")
    return dict.fromkeys(names, "")
