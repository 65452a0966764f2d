"""Settings of a suite file."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core import Case, CaseLabels, CaseRecord, Metric, Parts, excerpt, limit
from pytest_llmeval.data import DeclaredType, FilePattern, describe
from pytest_llmeval.judges import JudgeSpec
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.reports import SampleReport
from pytest_llmeval.suites._reading import SuiteReading

if TYPE_CHECKING:
    from pytest_llmeval.targets import TargetSpec

_MOST_REPEATS = 1000
_SAME = 1e-9
_STOPS: Final = ("goal_reached", "gave_up", "out_of_scope")
_WANTS: Final = ("persona", "goal", "knows")
_STOP_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class SampleSettings:
    """The setting ``sample`` of a suite file: how many cases run, and how they are drawn.

    Attributes:
        cases: How many.
        by: A label; each of its values has its share of them.
        seed: Another one draws other cases.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    cases: int
    by: str | None = None
    seed: int = 0


class CaseSample(Struct, frozen=True):
    """The sample of a suite's cases that runs.

    Attributes:
        cases: How many.
        total: Of how many.
        by: The label of the strata; ``None`` if there is only one.
        weights: Case id to how many cases it represents, in means of all; those that represent as many as the mean of
            them are left out.
    """

    cases: int
    total: int
    by: str | None = None
    weights: Mapping[str, float] = {}

    @property
    def share(self) -> float:
        """The share of all cases that it has."""
        return self.cases / self.total

    def weigh(self, records: Iterable[CaseRecord]) -> list[CaseRecord]:
        """The records of the sample's cases with their weights."""
        return [
            replace(record, weight=self.weights[record.id]) if record.id in self.weights else record
            for record in records
        ]

    @property
    def report(self) -> SampleReport:
        """The sample of a suite, as reports have it."""
        return SampleReport(self.cases, self.total, self.by, bool(self.weights))


def read_sample(reading: SuiteReading, entry: Any) -> SampleSettings | None:
    """Read ``sample`` of a suite file: how many cases run, and how they are drawn."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        reading.fault(("sample",), f"found {describe(entry)}, expected a mapping such as {{cases: 200, by: topic}}")
        return None
    settings: SampleSettings | None = reading.check(SampleSettings, entry, ("sample",))
    if settings is not None and settings.cases < 1:
        reading.fault(("sample", "cases"), f"found {settings.cases}, expected a number of cases of at least 1")
    return settings


def draw(cases: Sequence[Case], settings: SampleSettings) -> tuple[frozenset[str], CaseSample] | None:
    """The case ids in a suite's sample, and its description; ``None`` if all cases run.

    Within a stratum the cases with the smallest digests of seed and id are drawn. So the same file gives the same
    sample, and a case that is added takes the place of one other at most, besides those that move between strata with
    their sizes. Cases that always run are in every sample, and represent themselves.
    """
    if len(cases) <= settings.cases:
        return None
    always = [case for case in cases if case.always]
    strata: dict[str, list[Case]] = {}
    for case in cases:
        if not case.always:
            name = CaseLabels(case.labels).value(settings.by) if settings.by else ""
            strata.setdefault(name, []).append(case)
    sizes = {name: len(members) for name, members in sorted(strata.items())}
    counts = _allot_cases(sizes, max(0, settings.cases - len(always)))
    stands = {case.id: 1.0 for case in always}
    for name, members in strata.items():
        own = sorted(members, key=lambda case: _sample_rank(case, settings.seed))[: counts[name]]
        stands |= {case.id: sizes[name] / counts[name] for case in own}
    typical = len(cases) / len(stands)
    weights = {name: stand / typical for name, stand in stands.items() if abs(stand / typical - 1) > _SAME}
    return frozenset(stands), CaseSample(len(stands), len(cases), settings.by, weights)


def _sample_rank(case: Case, seed: int) -> tuple[str, str]:
    """Sort key by which the cases of a sample are drawn: the digest of seed and id, then the id."""
    return sha256(f"{seed}\n{case.id}".encode("utf-8", "surrogatepass")).hexdigest(), case.id


def _allot_cases(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """The number of a sample's cases from each stratum, by largest remainders of the sizes, one at least.

    >>> _allot_cases({"a": 50, "b": 30, "c": 1}, 8)
    {'a': 4, 'b': 3, 'c': 1}
    """
    whole = sum(sizes.values())
    count = max(min(count, whole), len(sizes))
    quotas = {name: count * size / whole for name, size in sizes.items()}
    counts = {name: max(1, int(quota)) for name, quota in quotas.items()}

    def excess(name: str) -> tuple[float, str]:
        return counts[name] - quotas[name], name

    while sum(counts.values()) < count:
        counts[min(counts, key=excess)] += 1
    while sum(counts.values()) > count:  # one to each was more than their share
        counts[max((name for name in counts if counts[name] > 1), key=excess)] -= 1
    return counts


WHEN_DECIDED = "when_decided"
_LEAST_BLOCK = 10
_BLOCKS = 20
_MOST_CONFIDENT = 0.999999


@dataclass(frozen=True)
class StopSettings:
    """The setting ``stop`` of a suite file, for a suite that stops when its gates are decided.

    Attributes:
        confidence: With which the verdicts on all gates together are those of a complete run.
        block: How many cases run between two looks; ``None``: a twentieth of them, 10 at least.
        always: Tags of cases that always run, besides those that say so themselves.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    confidence: float = 0.99
    block: int | None = None
    always: tuple[str, ...] = ()

    def keeps(self, case: Case) -> bool:
        """Whether a case of a suite that may stop always runs."""
        return case.always or not frozenset(self.always).isdisjoint(case.tags)

    def block_of(self, cases: int) -> int:
        """The number of cases of a suite that run between two looks at its gates."""
        return self.block or max(_LEAST_BLOCK, math.ceil(cases / _BLOCKS))


class CaseOrder(Struct, frozen=True, dict=True):
    """The order of cases in a suite that may stop early, and after which cases its gates are judged.

    Attributes:
        ids: In their order: those that always run, then the others at random.
        numbers: Number of the unit of each case, a cluster or the case alone; -1 where it always runs.
        ends: After how many cases gates are looked at; the last one is after all of them.
        confidence: Of the verdicts.
    """

    ids: tuple[str, ...]
    numbers: tuple[int, ...]
    ends: tuple[int, ...]
    confidence: float

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The place of each case in the order of a suite that may stop, from 0."""
        return {name: rank for rank, name in enumerate(self.ids)}

    def end_of(self, case: str) -> int:
        """The number of cases after which gates are looked at once a case has run."""
        rank = self.ranks[case]
        return next(end for end in self.ends if rank < end)


def read_stop(reading: SuiteReading, entry: Any) -> StopSettings | None:
    """Read ``stop`` of a suite file: ``when_decided``, ``never`` or a mapping."""
    if entry is None or entry == "never":
        return None
    if entry == WHEN_DECIDED:
        return StopSettings()
    if not isinstance(entry, dict):
        reading.fault(
            ("stop",), f"found {describe(entry)}, expected when_decided, never or a mapping with confidence or block"
        )
        return None
    settings: StopSettings | None = reading.check(StopSettings, entry, ("stop",))
    if settings is None:
        return None
    if not 0.5 <= settings.confidence <= _MOST_CONFIDENT:  # noqa: PLR2004 (less is a guess)
        reading.fault(
            ("stop", "confidence"), f"found {settings.confidence}, expected 0.5 to {_MOST_CONFIDENT}, such as 0.99"
        )
    if settings.block is not None and settings.block < 1:
        reading.fault(("stop", "block"), f"found {settings.block}, expected a number of cases of at least 1")
    return settings


Policy: TypeAlias = Literal["fail", "warn"]
AnchorPolicy: TypeAlias = Literal["best", "keep"]

_MOST_APPROVALS = 1000
_MOST_POOLED = 100


class Tolerance(Struct, frozen=True):
    """The fall below an approved score that a suite allows a metric: the larger of two allowances.

    Attributes:
        absolute: In units of the metric.
        relative: As a share of the approved value.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def at(self, approved: float) -> float:
        """The allowed fall below an approved value."""
        return max(self.absolute, self.relative * abs(approved))

    def __str__(self) -> str:
        return f"{limit(self.relative * 100)}% of the approved value" if self.relative else limit(self.absolute)


EXACT = Tolerance()


@dataclass(frozen=True)
class ToleranceEntry:
    """A tolerance under ``snapshot`` of a suite file in its mapping form."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    relative: float


@dataclass(frozen=True)
class SnapshotEntry:
    """``snapshot`` as a suite file writes it, if it is not just ``true`` or ``false``.

    Attributes:
        tolerance: Of all metrics, or of each by name.
        metrics: Which metrics; ``None`` for all.
        not_comparable: What happens if the approved scores are of other data or another evaluator.
        history: How many approvals the file remembers.
        anchor: Whether a run that is significantly better becomes the anchor, or only one that the user names.
        pool: How many of the last approved runs of equal data are the baseline of gates together.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    tolerance: Any = None
    metrics: tuple[str, ...] | None = None
    not_comparable: Policy = "fail"
    history: int = 20
    anchor: AnchorPolicy = "best"
    pool: int = 1


@dataclass(frozen=True)
class SnapshotSettings(SnapshotEntry):
    """Settings of a suite for storing its scores and comparing them with the approved ones.

    Attributes:
        enabled: Whether they are; overrides the ini option ``llmeval_snapshots``.
        tolerance: Default for metrics without their own; ``None`` if the file sets none.
        tolerances: Metric name to tolerance.
        excluded: Metrics that are never part of it, as declared.
    """

    tolerance: Tolerance | None = None
    enabled: bool = True
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    excluded: tuple[str, ...] = ()

    def tolerance_of(self, metric: str) -> Tolerance:
        """The largest fall below the approved score of a metric that the suite accepts."""
        return self.tolerances.get(metric, self.tolerance or EXACT)

    def leaves(self, metric: str) -> bool:
        """Whether the suite has no tolerance for a metric, so that a gate with ``max_drop`` may decide."""
        return self.tolerance is None and metric not in self.tolerances

    def keeps(self, metric: str) -> bool:
        """Whether a metric is part of the suite's snapshot."""
        families = tuple(name.partition("[")[0] + "[" for name in self.excluded if "[" in name)
        if metric in self.excluded or metric.startswith(families):
            return False
        return self.metrics is None or metric in self.metrics


def read_snapshot(reading: SuiteReading, entry: Any) -> SnapshotSettings | None:
    """Read ``snapshot`` of a suite file; without it the ini option decides."""
    if entry is None:
        return None
    if isinstance(entry, bool):
        return SnapshotSettings(enabled=entry)
    path = ("snapshot",)
    checked = reading.check(SnapshotEntry, entry, path)
    if checked is None:
        return None
    for key, count, most in (("history", checked.history, _MOST_APPROVALS), ("pool", checked.pool, _MOST_POOLED)):
        if not 1 <= count <= most:
            reading.fault((*path, key), f"found {count}, expected 1 to {most}")
    if checked.metrics == ():
        reading.fault((*path, "metrics"), "found an empty list, expected at least one metric")
    for number, name in enumerate(checked.metrics or ()):
        if wrong := reading.metric_fault(name, extra=(Metric.PASS_RATE,)):
            reading.fault((*path, "metrics", number), wrong)
    place = (*path, "tolerance")
    shared: Tolerance | None = None
    own: dict[str, Tolerance] = {}
    if isinstance(checked.tolerance, Mapping):
        for name, tolerance in checked.tolerance.items():
            if wrong := reading.metric_fault(name, extra=(Metric.PASS_RATE,)):
                reading.fault((*place, name), wrong, key=True)
            own[name] = _read_tolerance(reading, tolerance, (*place, name))
    elif checked.tolerance is not None:
        shared = _read_tolerance(reading, checked.tolerance, place)
    return SnapshotSettings(**{**vars(checked), "tolerance": shared}, tolerances=own)


def _read_tolerance(reading: SuiteReading, entry: Any, place: Sequence[str | int]) -> Tolerance:
    """Read a tolerance under ``snapshot`` of a suite file: a number, or a mapping with ``relative``."""
    relative = isinstance(entry, Mapping)
    if relative:
        checked = reading.check(ToleranceEntry, entry, place)
        number = None if checked is None else checked.relative
        place = (*place, "relative")
    else:
        number = reading.check(float, entry, place)
    if number is None:
        return EXACT
    if not (math.isfinite(number) and number >= 0):
        reading.fault(place, f"found {number}, expected a number of at least 0")
    return Tolerance(relative=number) if relative else Tolerance(absolute=number)


def read_target(reading: SuiteReading, entry: Any) -> "TargetSpec | None":
    """Read ``target`` of a suite file: the application that answers its cases."""
    if entry is None:
        return None
    from pytest_llmeval.targets import TargetSpec

    spec = TargetSpec(entry) if isinstance(entry, str) else reading.check(TargetSpec, entry, ("target",))
    if spec is None:
        return None
    for path, message in spec.faults(reading.document.objects):
        reading.fault(("target", *path), message)
    return spec


@dataclass(frozen=True)
class SimulatedUser(JudgeSpec):
    """A model that plays the user in the conversations of a suite; its settings as a model are those of judges.

    Attributes:
        persona: Who the user is. That of a case goes before it, as do goal and knowledge.
        goal: What the user wants.
        knows: What the user knows.
        max_turns: Most calls of the target.
        stop: The reasons for which the user may end a conversation.
        language: Of the instructions; ``auto``: by the script of the goal.
        instructions: File of the instructions, in place of those that ship.
        unrecorded: What happens where an agent says something that no recording answers: the model is asked, the case
            fails, or the conversation stops there. A run that records asks.
        checks_role: Whether the suite's judge, if it has one, says whether the user kept to its role.

    Raises:
        FieldsError: With every fault.
    """

    persona: str = ""
    goal: str = ""
    knows: dict[str, Any] = field(default_factory=dict)
    max_turns: int = 12
    stop: tuple[str, ...] = _STOPS
    language: Literal["auto", "en", "zh"] = "auto"
    instructions: str | None = None
    unrecorded: Literal["ask", "fail", "stop"] = "ask"
    checks_role: bool = True

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Yield the faults of the settings, each with its key."""
        yield from super()._faults()
        if self.model is None:
            yield "model", "the model that plays the user is missing: write PROVIDER:NAME"
        if self.max_turns < 1:
            yield "max_turns", f"found {self.max_turns}, expected a whole number of at least 1"
        if wrong := [reason for reason in self.stop if not _STOP_NAME.fullmatch(reason)]:
            yield "stop", f"found {wrong[0]!r}, expected names of lower-case letters such as goal_reached"
        if not self.stop:
            yield "stop", "found an empty list, expected at least one reason such as goal_reached"

    @cached_property
    def way(self) -> str:
        """The text of all that decides what the simulated user says, besides the case and the target's words."""
        settings = [self.model, self.address, self.request_parameters(), self.stop, self.language, self.instructions]
        return json.dumps([*settings, self.max_turns])

    def wants_of(self, value: Any) -> dict[str, Any]:
        """The persona, goal and knowledge of a case's user, or those of the suite.

        Args:
            value: Input of the case: the goal as text, an object of the three, or messages that begin the conversation.

        Raises:
            ValueError: It is none of these, or nobody says the goal; ``found ..., expected ...``.
        """
        expected = "expected the user's goal as text, or an object with goal, persona and knows"
        own: Mapping[str, Any] = {}
        if isinstance(value, str):
            own = {"goal": value}
        elif isinstance(value, Mapping):
            own = value
        elif value is not None and not isinstance(value, list):
            raise ValueError(f"found {excerpt(json.dumps(value), 40)} as input, {expected}")
        if unknown := sorted(map(str, own.keys() - set(_WANTS))):
            raise ValueError(f"found {unknown[0]!r} in the input, {expected}")
        wants = {name: own.get(name) if own.get(name) not in (None, "", {}) else getattr(self, name) for name in _WANTS}
        for name, kind, expectation in (
            ("persona", str, "text"),
            ("goal", str, "text"),
            ("knows", Mapping, "names with values"),
        ):
            if not isinstance(wants[name], kind):
                raise ValueError(f"found {excerpt(json.dumps(wants[name]), 40)} as {name}, expected {expectation}")  # noqa: TRY004 (a fault)
        if not str(wants["goal"]).strip():
            raise ValueError("the goal of the simulated user is missing: write it as input, or in conversation.user")
        return wants


@dataclass(frozen=True)
class ConversationSpec:
    """The setting ``conversation`` of a suite file: who leads conversations, and when they end.

    Attributes:
        stop: ``script``: after the reply to the last message of the script; ``target``: when the target ends it.
        max_turns: Most calls of the target.
        user: Plays the user after the script, if there is one, up to the end.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    stop: Literal["script", "target"] = "script"
    max_turns: int | None = None
    user: SimulatedUser | None = None

    @property
    def limit(self) -> int | None:
        """The most calls of the target in a conversation; ``None`` for no limit."""
        if self.user is None:
            return self.max_turns
        return self.user.max_turns if self.max_turns is None else min(self.max_turns, self.user.max_turns)


def read_conversation(reading: SuiteReading, entry: Any) -> ConversationSpec:
    """Read ``conversation`` of a suite file: who leads conversations, and when they end."""
    if entry is None:
        return ConversationSpec()
    spec: ConversationSpec | None = reading.check(ConversationSpec, entry, ("conversation",))
    if spec is None:
        return ConversationSpec()
    if spec.max_turns is not None and spec.max_turns < 1:
        reading.fault(("conversation", "max_turns"), f"found {spec.max_turns}, expected at least 1")
    if spec.stop == "target" and spec.limit is None:
        reading.fault(("conversation",), "found stop: target without max_turns, expected a limit such as max_turns: 10")
    return _with_instructions(reading, spec)


def _with_instructions(reading: SuiteReading, spec: ConversationSpec) -> ConversationSpec:
    """Settings of conversations with the text of a simulated user's instructions in place of their file."""
    user = spec.user
    if user is None or user.instructions is None:
        return spec
    place = ("conversation", "user", "instructions")
    text = reading.read_file(user.instructions, place)
    if text is not None and not (isinstance(text, str) and text.strip()):
        reading.fault(place, f"found {user.instructions!r} without a text, expected instructions")
    return replace_fields(spec, user=replace_fields(user, instructions=text if isinstance(text, str) else None))


def read_repeats(reading: SuiteReading, entry: Any) -> Repeats:
    """Read ``repeats`` of a suite file; repeated cases have metrics of their own."""
    repeats = _repeats_of_entry(reading, entry)
    if repeats.times > 1:
        reading.add_evaluator(repeats.reliability, ("repeats",))
    return repeats


def _repeats_of_entry(reading: SuiteReading, entry: Any) -> Repeats:
    """Read the value of ``repeats`` in a suite file: a number, or a mapping with ``times``."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        if not 1 <= entry <= _MOST_REPEATS:
            reading.fault(("repeats",), f"found {entry}, expected 1 to {_MOST_REPEATS}")
            return Repeats()
        return Repeats(entry)
    if not isinstance(entry, Mapping):
        reading.fault(("repeats",), f"found {describe(entry)}, expected a whole number or a mapping with 'times'")
        return Repeats()
    repeats: Repeats | None = reading.check(Repeats, entry, ("repeats",))
    if repeats is not None and repeats.times > _MOST_REPEATS:
        reading.fault(("repeats", "times"), f"found {repeats.times}, expected 1 to {_MOST_REPEATS}")
    return repeats or Repeats()


def read_confidence(reading: SuiteReading, value: float | None) -> float | None:
    """Read ``confidence`` of a suite file, the level of its intervals."""
    if value is not None and not 0 < value < 1:
        reading.fault(("confidence",), f"found {value}, expected a number between 0 and 1, such as 0.95")
    return value


def read_compared(reading: SuiteReading, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Read ``compare_by`` of a suite file, the metrics that comparisons of systems list first."""
    for number, name in enumerate(metrics):
        if fault := reading.metric_fault(name, (Metric.PASS_RATE,)):
            reading.fault(("compare_by", number), fault)
    return metrics


def read_inputs(reading: SuiteReading, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Read ``inputs`` of a suite file: patterns, each of which must match a file."""
    for number, pattern in enumerate(patterns):
        try:
            with FilePattern.within(reading.root):
                files = FilePattern(reading.path.parent, pattern).inputs()
        except ValueError as error:
            reading.fault(("inputs", number), str(error))
            continue
        if Path(pattern).is_absolute() or not files:
            reading.fault(("inputs", number), f"found {pattern!r}, expected a relative pattern that matches a file")
    return patterns


def read_parts(reading: SuiteReading, entry: Any) -> Parts:
    """Read ``parts`` of a suite file: a JMESPath for each part of a prediction."""
    if entry is None:
        return Parts()
    parts: Parts | None = reading.check(Parts, entry, ("parts",))
    if parts is None:
        return Parts()
    for name, path in vars(parts).items():
        if path is not None:
            reading.is_expression(path, ("parts", name))
    return parts
