"""Comparison of two states of a suite."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from dataclasses import replace as case_replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, structs

from pytest_llmeval.baselines import contents_of, digests_of, evaluator_prints
from pytest_llmeval.core import MISSING, Case, LlmevalError, as_line, counted, listed
from pytest_llmeval.data import Document
from pytest_llmeval.gates import Gate, GateKey, LimitGate
from pytest_llmeval.numbers import Limit, matched_by_content
from pytest_llmeval.suites import KEYS, LoadedSuite
from pytest_llmeval.workbench.mutation._mutants import Mutant, mutation_of, score_mutants, score_unjudged

if TYPE_CHECKING:
    from dataclasses import Field

    from pytest_llmeval.evaluators import Check, CheckKind
    from pytest_llmeval.suites import Registry

_EXCUSES: Final = frozenset({"skip", "xfail"})
_MOST_LISTED: Final = 5
"""Cases with wrong answers that pass now, before they are only counted."""

_Place: TypeAlias = Callable[[int], tuple[str, int]]
"""From the number of a check to its file and line."""

_MOST_MUTATED: Final = 200
"""Changed cases of a suite whose answers are mutated."""


class Loosening(Struct, frozen=True, order=True):
    """One thing that the later state asks less of, or that cannot be compared.

    Attributes:
        file: Relative to the folder that is compared.
        line: In the later state, or in the earlier one if it is gone; 0 if it has none.
        subject: The thing, such as ``gate f1 >= 0.7`` or ``expected of case 12``.
        change: What happened to it.
        before: Its earlier value; empty if that says nothing.
        after: Its later value.
        gone: Whether the line is one of the earlier state.
        note: Whether it is for information only.
    """

    file: str
    line: int
    subject: str
    change: str
    before: str = ""
    after: str = ""
    gone: bool = False
    note: bool = False

    @property
    def name(self) -> str:
        """The name by which it is allowed: independent of lines and values."""
        return f"{self.file}::{self.subject}"

    @property
    def place(self) -> str:
        """File and line."""
        line = f":{self.line}" if self.line else ""
        return f"{self.file}{line}{' (base)' if self.gone else ''}"


@dataclass(frozen=True)
class SuiteState:
    """One state of a suite.

    Attributes:
        file: The suite file, relative to the folder that is compared.
        suite: Loaded.
        document: The file, for lines.
    """

    file: str
    suite: LoadedSuite
    document: Document

    def line(self, *place: str | int) -> int:
        """Return the line of a value, or of what is nearest to it; 0 if unknown."""
        return self.document.locate(place)[0]

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        listed = self.document.data.get("cases") or ()
        return {self.line("cases", number): number for number in range(len(listed))}

    def case_place(self, case: Case, *inside: str | int) -> tuple[str, int]:
        """Return file and line of a case, or of a value in it."""
        file = self.suite.files.get(case.id)
        if file is not None:
            return file, case.line
        number = self._numbers.get(case.line)
        return self.file, case.line if number is None else self.line("cases", number, *inside)

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """Every case by id."""
        return {case.id: case for case in self.suite.cases}

    @cached_property
    def checks(self) -> "Sequence[Check]":
        """The checks of all cases."""
        return [each for evaluator in self.suite.evaluators.values() for each in getattr(evaluator, "ready", ())]


def compare_suites(base: SuiteState, head: SuiteState, registry: "Registry") -> Iterator[Loosening]:
    """Yield what the later state of a suite asks less of.

    Nothing is run and no judge is asked; answers that the suite has are changed to wrong ones and scored.

    Args:
        base: The earlier state.
        head: The later state.
        registry: What is known to the suite.
    """
    yield from _settings(base, head)
    yield from _limits(base, head)
    yield from _gates(base, head)
    yield from _evaluators(base, head)
    kinds = registry.checks
    yield from _suite_checks(base, head, kinds)
    pairs = case_pairs(contents_of(base.suite), contents_of(head.suite))
    yield from _cases(base, head, pairs, kinds)
    yield from _blind_cases(base, head, pairs, registry)


def _settings(base: SuiteState, head: SuiteState) -> Iterator[Loosening]:
    old, new = base.suite, head.suite
    asks_less = {
        "abstained": new.abstained == "allowed",
        "approve": new.approve.failures,
        "cluster_by": old.cluster_by is not None,
        "confidence": new.confidence is None or (old.confidence is not None and new.confidence < old.confidence),
        "conversation": old.conversation.user is not None,
        "judge": False,  # evaluators and judges are compared together
        "mode": new.mode == "test",
        "sample": "sample" in head.document.data,
        "snapshot": old.snapshot is not None and old.snapshot.enabled,
        "target": False,  # another answer is not another demand
    }
    deciding = [name for name, key in KEYS.items() if key.carried and key.decides == "scores"]
    for key in sorted({*asks_less, *deciding}):
        if asks_less.get(key, True) and _value(base, key) != _value(head, key):
            gone = key not in head.document.data
            line = (base if gone else head).line(key)
            before, after = (as_line(side.document.data.get(key, ""), 100) for side in (base, head))
            yield Loosening(head.file, line, f"key {key}", "changed", before, after, gone)
    if readable := sorted(set(_unread(old)) - set(_unread(new))):
        yield Loosening(head.file, head.line("systems"), "must_not_read", "removed", as_line(readable, 100))
    for name in old.systems:
        if name not in new.systems:
            yield Loosening(head.file, base.line("systems", name), f"system {name}", "removed", gone=True)
            continue
        ids = {case.id for case in new.systems[name].cases}
        lost = [case for case in old.systems[name].cases if case.id in head.cases and case.id not in ids]
        if lost:
            text = f"{counted(len(lost), 'case')} left out"
            yield Loosening(head.file, head.line("systems", name), f"answers of system {name}", text)


def _unread(suite: LoadedSuite) -> Iterator[str]:
    """Yield what the commands of a suite must not read, each with its system."""
    targets = {"": suite.target, **{name: each.target for name, each in suite.systems.items()}}
    for name, target in targets.items():
        workspace = None if target is None else target.workspace_spec
        yield from (f"{name} {each}".strip() for each in (workspace.must_not_read if workspace is not None else ()))


def _value(state: SuiteState, key: str) -> Any:
    """Return the value of a key; of a sample, which is not drawn here, what the file says."""
    return state.document.data.get(key) if key == "sample" else getattr(state.suite, key)


def _limits(base: SuiteState, head: SuiteState) -> Iterator[Loosening]:
    for metric, finding in compare_limits(base.suite.thresholds, head.suite.thresholds):
        line = (base if finding.gone else head).line("thresholds", metric)
        yield structs.replace(finding, file=head.file, line=line)


def compare_limits(base: Mapping[str, Limit], head: Mapping[str, Limit]) -> Iterator[tuple[str, Loosening]]:
    """Yield the metrics whose limits are gone or weaker, with what happened, without its place."""
    for metric, old in base.items():
        new = head.get(metric)
        if change := loosened(old, new):
            after = "" if new is None else str(new)
            yield metric, Loosening("", 0, f"threshold {metric}", change, str(old), after, gone=new is None)


def loosened(old: Limit | None, new: Limit | None) -> str:
    """Return what happened to a limit if it holds for more scores; else nothing."""
    if old is None or old == Limit():
        return ""
    if new is None or new == Limit():
        return "removed"
    wider_below = old.min is not None and (new.min is None or new.min < old.min)
    wider_above = old.max is not None and (new.max is None or new.max > old.max)
    return "loosened" if wider_below or wider_above else ""


def _gates(base: SuiteState, head: SuiteState) -> Iterator[Loosening]:
    for number, finding in compare_gates(base.suite.gates, head.suite.gates):
        line = (base if finding.gone else head).line("gates", number)
        yield structs.replace(finding, file=head.file, line=line)


def compare_gates(base: Sequence[Gate], head: Sequence[Gate]) -> Iterator[tuple[int, Loosening]]:
    """Yield the gates that are gone or weaker, without their place: the position among the gates of their state."""
    for number, gate in enumerate(base):
        rivals = [each for each in head if _about(each) == _about(gate)]
        best = min(rivals, key=lambda each: len(_weaker(gate, each)), default=None)
        if best is None:
            yield number, Loosening("", 0, f"gate {gate}", "removed", gone=True)
        elif changes := _weaker(gate, best):
            before = ", ".join(f"{name} {old}" if name else str(gate) for name, old, _ in changes)
            after = ", ".join(f"{name} {new}" if name else str(best) for name, _, new in changes)
            yield head.index(best), Loosening("", 0, f"gate {gate}", "loosened", before, after)


def _about(gate: Gate) -> tuple[object, ...]:
    return gate.tags, gate.metric, gate.statistic, gate.by, gate.system, gate.against


_ANY: Final = GateKey(object, "")


def _weaker(old: Gate, new: Gate) -> list[tuple[str, object, object]]:
    """Return name, old and new value of every field by which a gate fails less often, or may do so."""
    changes: list[tuple[str, object, object]] = []
    if type(old) is not type(new) and (
        getattr(old, "proves_safety", False) or not getattr(new, "proves_safety", False)
    ):
        changes.append(("rule", old.rule, new.rule))
    if isinstance(old, LimitGate) and isinstance(new, LimitGate):
        before, after = _range(old), _range(new)
        if any(late < early for early, late in zip(before, after, strict=True)):
            changes.append(("", old, new))
    shared = {each.name: each for each in fields(new)}
    for each in fields(old):
        if not each.compare or each.name not in shared or each.name == "bounds":
            continue
        name, key = next(iter(_keys(each) or _keys(shared[each.name]) or [(each.name, _ANY)]))
        early, late = (gate.allowed if name in gate.tags else getattr(gate, each.name) for gate in (old, new))
        if early != late and key.asks_less(early, late):
            changes.append((name, early, late))
    return changes


def _keys(declared: "Field[Any]") -> list[tuple[str, GateKey]]:
    """Return the keys that set a field of a gate, by name."""
    return [*declared.metadata.get("keys", {}).items()]


def _range(gate: LimitGate) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """Return lower and upper end of the values that pass, each larger for a stricter gate."""
    low = high = (float("-inf"), False)
    for bound in gate.bounds:
        strict = bound.operator in (">", "<")
        if bound.operator in (">=", ">", "=="):
            low = max(low, (bound.limit, strict))
        if bound.operator in ("<=", "<", "=="):
            high = max(high, (-bound.limit, strict))
    return low, high


def _evaluators(base: SuiteState, head: SuiteState) -> Iterator[Loosening]:
    if base.suite.judge != head.suite.judge:
        keys = [key for key in ("judge", "judges", "reduce", "min_judges") if key in base.document.data]
        now = [key for key in ("judge", "judges", "reduce", "min_judges") if key in head.document.data]
        if keys:
            line = head.line(now[0]) if now else base.line(keys[0])
            values = [as_line({key: state.document.data.get(key) for key in keys}) for state in (base, head)]
            yield Loosening(head.file, line, "judge", "changed", values[0], values[1], not now)
    old, new = evaluator_prints(base.suite), evaluator_prints(head.suite)
    for label, before in old.items():
        evaluator = base.suite.evaluators[label]
        if evaluator.asserts:
            continue
        noun = "judging evaluator" if evaluator.asks else "evaluator"
        after = new.get(label)
        if after is None:
            yield Loosening(head.file, base.line("evaluators"), f"{noun} {label}", "removed", gone=True)
        elif before != after:
            options = sorted({*before.options, *after.options})
            differing = [each for each in options if before.options.get(each) != after.options.get(each)]
            values = [as_line({each: side.options.get(each) for each in differing}) for side in (before, after)]
            line = head.line("evaluators", _number_of(head, label))
            yield Loosening(head.file, line, f"{noun} {label}", "changed", values[0], values[1])


def _number_of(state: SuiteState, label: str) -> int:
    """Return the position of an evaluator in its file."""
    listed = state.document.data.get("evaluators") or ()
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        names = [entry] if isinstance(entry, str) else [entry.get("as"), *entry]
        if label in names:
            return number
    return 0


def _suite_checks(base: SuiteState, head: SuiteState, kinds: "Mapping[str, CheckKind]") -> Iterator[Loosening]:
    yield from _lost_checks(
        base.checks,
        head.checks,
        kinds,
        "",
        lambda number: (head.file, base.line("checks", number)),
        lambda number: (head.file, head.line("checks", number)),
    )


def _lost_checks(
    old: "Sequence[Check]",
    new: "Sequence[Check]",
    kinds: "Mapping[str, CheckKind]",
    whose: str,
    base_place: _Place,
    head_place: _Place,
) -> Iterator[Loosening]:
    """Yield the checks that no later check is as strict as."""
    same = {_entry(each) for each in old}
    fresh = [(number, each) for number, each in enumerate(new) if _entry(each) not in same]
    for number, each in enumerate(old):
        if any(_is_as_strict(each, other, kinds) for other in new):
            continue
        successor = next(((place, other) for place, other in fresh if other.key == each.key), None)
        subject, before = f"check {each.name}{whose}", as_line(each.entry, 100)
        if successor is None:
            yield Loosening(*base_place(number), subject, "removed", before, gone=True)
        else:
            fresh.remove(successor)
            yield Loosening(*head_place(successor[0]), subject, "changed", before, as_line(successor[1].entry, 100))


def _entry(check: "Check") -> str:
    entry = check.entry
    plain = {key: value for key, value in entry.items() if key != "name"} if isinstance(entry, Mapping) else entry
    return json.dumps(plain, sort_keys=True, default=str)


def _is_as_strict(old: "Check", new: "Check", kinds: "Mapping[str, CheckKind]") -> bool:
    """Return whether a check surely fails on every answer on which an earlier one fails."""
    if _entry(old) == _entry(new):
        return True
    if old.key != new.key or not (isinstance(old.entry, Mapping) and isinstance(new.entry, Mapping)):
        return False
    settings = [{key: each[key] for key in each if key not in (old.key, "name")} for each in (old.entry, new.entry)]
    if settings[0] != settings[1]:
        return False
    before, after = old.entry.get(old.key), new.entry.get(old.key)
    kind = kinds.get(old.key.removeprefix("not_"))
    if kind is not None and kind.each:
        every = after if isinstance(after, list) else [after]
        return all(
            any(_is_tighter(old.key, each, late) for late in every)
            for each in (before if isinstance(before, list) else [before])
        )
    return _is_tighter(old.key, before, after)


def _is_tighter(key: str, before: Any, after: Any) -> bool:
    if before == after:
        return True
    if isinstance(before, int | float) and isinstance(after, int | float):
        return (key.startswith("max_") and after < before) or (key.startswith("min_") and after > before)
    if isinstance(before, str) and isinstance(after, str):
        return (key in ("contains", "icontains") and before in after) or (
            key in ("not_contains", "not_icontains") and after in before
        )
    return False


def case_pairs(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, str]:
    """Return earlier to later id of each case that is in both; a renamed one is known by its content.

    Args:
        base: Id to content in the earlier state.
        head: Id to content in the later state.
    """
    same = {name: name for name in base if name in head}
    old, new = ({name: side[name] for name in side if name not in same} for side in (base, head))
    return same | {before: now for now, before in matched_by_content(new, old).items()}


def _cases(
    base: SuiteState, head: SuiteState, pairs: Mapping[str, str], kinds: "Mapping[str, CheckKind]"
) -> Iterator[Loosening]:
    for case in base.suite.cases:
        if case.id not in pairs:
            yield Loosening(*base.case_place(case), f"case {case.id}", "removed", as_line(case.input, 100), gone=True)
            continue
        yield from _case(base, head, case, head.cases[pairs[case.id]], kinds)


def _case(
    base: SuiteState, head: SuiteState, old: Case, new: Case, kinds: "Mapping[str, CheckKind]"
) -> Iterator[Loosening]:
    whose = f"of case {new.id}"
    for part in ("input", "expected"):
        before, after = getattr(old, part), getattr(new, part)
        if before == after:
            continue
        change = "changed"
        if part == "expected" and after != MISSING and after in _answers(base, old.id, head, new.id):
            change = "changed to what was answered"
        yield Loosening(
            *head.case_place(new, part), f"{part} {whose}", change, as_line(before, 100), as_line(after, 100)
        )
    lost = {name: value for name, value in old.labels.items() if new.labels.get(name) != value}
    if lost:
        now = {name: new.labels.get(name) for name in lost}
        yield Loosening(
            *head.case_place(new, "labels"), f"labels {whose}", "changed", as_line(lost, 100), as_line(now, 100)
        )
    for tag in new.tags:
        if tag in _EXCUSES and tag not in old.tags:
            yield Loosening(*head.case_place(new, "tags"), f"tag {tag} {whose}", "added")
    for metric in sorted({*old.thresholds, *new.thresholds}):
        before, after = base.suite.limits(old).get(metric), head.suite.limits(new).get(metric)
        if change := loosened(before, after):
            values = (str(before), "" if after is None else str(after))
            yield Loosening(*head.case_place(new, "thresholds", metric), f"threshold {metric} {whose}", change, *values)
    if old.checks:
        later = [*new.checks, *head.checks]
        yield from _lost_checks(
            old.checks,
            later,
            kinds,
            f" {whose}",
            lambda number: base.case_place(old, "checks", number),
            lambda number: head.case_place(new, "checks", number),
        )


def _answers(base: SuiteState, old: str, head: SuiteState, new: str) -> list[Any]:
    """Return what the systems of a suite answered a case, before or now."""
    answers = []
    for state, name in ((base, old), (head, new)):
        lists = [state.suite.cases, *(each.cases for each in state.suite.systems.values())]
        for case in (case for cases in lists for case in cases if case.id == name):
            answers += [
                case.prediction,
                *([case.prediction.get("answer")] if isinstance(case.prediction, dict) else []),
            ]
    return [each for each in answers if each is not MISSING and each is not None]


def _blind_cases(
    base: SuiteState, head: SuiteState, pairs: Mapping[str, str], registry: "Registry"
) -> Iterator[Loosening]:
    """Yield the cases that wrong answers pass now and did not before: mutants of the earlier state's own answers."""
    changed = [name for name in _changed_cases(base, head, pairs) if base.cases[name].prediction is not MISSING]
    cases = tuple(base.cases[name] for name in changed[:_MOST_MUTATED])
    if not cases:
        return
    try:
        mutants = mutation_of(structs.replace(base.suite, cases=cases, systems={}), registry.mutators).mutants
    except LlmevalError:  # no answer passes: there is nothing that could be noticed
        return
    now = [
        Mutant(head.cases[pairs[each.case.id]], each.mutator, _answered(head.cases[pairs[each.case.id]], each))
        for each in mutants
    ]
    before = score_mutants(score_unjudged, base.suite, mutants)
    after = score_mutants(score_unjudged, head.suite, now)
    survivors: dict[str, list[str]] = {}
    for mutant, early, late in zip(now, before, after, strict=True):
        if early.record.outcome == "failed" and late.record.outcome == "passed":
            survivors.setdefault(mutant.case.id, []).append(mutant.mutator.name)
    if len(survivors) > _MOST_LISTED:
        text = f"{counted(sum(map(len, survivors.values())), 'wrong answer')} noticed before now passing"
        yield Loosening(head.file, 1, "mutants", text, after=as_line(f"of cases {listed(survivors)}", 100))
        return
    for name, mutators in survivors.items():
        text = f"{counted(len(mutators), 'wrong answer')} noticed before now passing"
        place = head.case_place(head.cases[name])
        yield Loosening(*place, f"mutants of case {name}", text, after=as_line(", ".join(mutators), 100))


def _answered(case: Case, mutant: Mutant) -> Case:
    return case_replace(case, prediction=mutant.changed.prediction, origin=None)


def _changed_cases(base: SuiteState, head: SuiteState, pairs: Mapping[str, str]) -> list[str]:
    """Return the cases of both states whose scores or limits may differ for the same answer."""
    old, new = digests_of(base.suite), digests_of(head.suite)
    same = [_entry(each) for each in base.checks] == [_entry(each) for each in head.checks]
    same = same and evaluator_prints(base.suite) == evaluator_prints(head.suite)
    return [before for before, now in pairs.items() if not same or old[before] != new[now]]
