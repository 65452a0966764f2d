"""Loosenings: what one of two states of a suite asks less of answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as case_replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, structs

from pytest_llmeval.baselines import SuiteIdentity
from pytest_llmeval.core import MISSING, Case, LlmevalError, as_line, counted, listed
from pytest_llmeval.gates import Gate
from pytest_llmeval.numbers import CaseMatching, Threshold
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.workbench._suite_dump import JUDGE_KEYS, CheckDump, GateDump, SuiteDump
from pytest_llmeval.workbench.mutation._mutants import Mutant, mutation_of, score_mutants, score_unjudged

if TYPE_CHECKING:
    from pytest_llmeval.suites import Registry

_EXCUSES: Final = frozenset({"skip", "xfail"})
_LENIENCE: Final = ("fail", "report", "allow")
"""What can be done about a judge that no labels confirm, the strictest first."""

_MOST_LISTED: Final = 5
"""Cases with wrong answers that pass now, before they are only counted."""

_Place: TypeAlias = Callable[[int], tuple[str, int]]
"""From the number of a check to its file and line."""

_MOST_MUTATED: Final = 200
"""Changed cases of a suite whose answers are mutated."""


class Loosening(Struct, frozen=True, order=True):
    """A requirement on answers that the later of two states of a suite lowers, as ``llmeval guard`` reports it.

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


class LoadedState(NamedTuple):
    """One state of a suite that the guard has loaded, with its data.

    Attributes:
        suite: It.
        dump: The same, as data.
    """

    suite: LoadedSuite
    dump: SuiteDump


def compare_suites(base: SuiteDump, head: SuiteDump) -> Iterator[Loosening]:
    """Yield the requirements on answers that the later state of a suite lowers."""
    yield from _settings(base, head)
    for metric, finding in _limits(base.limits, head.limits):
        line = (base if finding.gone else head).line("thresholds", metric)
        yield structs.replace(finding, file=head.file, line=line)
    for finding in _gates(base.gates, head.gates):
        yield structs.replace(finding, file=head.file)
    yield from _evaluators(base, head)
    yield from _lost_checks(
        base.checks,
        head.checks,
        "",
        lambda number: (head.file, base.line("checks", number)),
        lambda number: (head.file, head.line("checks", number)),
    )
    yield from _cases(base, head)


_ASKS_LESS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "abstained": lambda _, new: bool(new == "allowed"),
    "approve": lambda _, new: bool(new["failures"]),
    "cluster_by": lambda old, _: old is not None,
    "compare_by": lambda *_: False,  # it chooses what is shown
    "confidence": lambda old, new: new is None or (old is not None and new < old),
    "conversation": lambda old, _: old["user"] is not None,
    "gates": lambda *_: False,  # as the thresholds, they are compared one by one
    "group_by": lambda *_: False,  # it chooses what is shown
    "judge": lambda *_: False,  # judges are compared with what they are written as
    "mode": lambda _, new: bool(new == "test"),
    "reference": lambda *_: False,  # gates name it
    "sample": lambda _, new: new is not None,
    "snapshot": lambda old, _: old is not None and bool(old["enabled"]),
    "stop": lambda _, new: new is not None,
    "target": lambda *_: False,  # another answer is not another demand
    "thresholds": lambda *_: False,
    "uncalibrated": lambda old, new: _LENIENCE.index(new) > _LENIENCE.index(old),
}
"""Key to whether its later value asks less than the earlier; any change of another key may do so."""


def _settings(base: SuiteDump, head: SuiteDump) -> Iterator[Loosening]:
    """Yield settings of a suite whose change asks less of answers, or may do so."""
    for key, old in base.settings.items():
        new = head.settings.get(key)
        if old != new and _ASKS_LESS.get(key, lambda *_: True)(old, new):
            gone = bool(head.lines) and key not in head.written
            line = (base if gone else head).line(key)
            early, late = (
                as_line(side.written.get(key, "" if side.lines else side.settings.get(key)), 100)
                for side in (base, head)
            )
            yield Loosening(head.file, line, f"key {key}", "changed", early, late, gone)
    if readable := sorted({*base.unread} - {*head.unread}):
        yield Loosening(head.file, head.line("systems"), "must_not_read", "removed", as_line(readable, 100))
    for name, cases in base.systems.items():
        if name not in head.systems:
            yield Loosening(head.file, base.line("systems", name), f"system {name}", "removed", gone=True)
        elif lost := [case for case in cases if case in head.cases and case not in head.systems[name]]:
            text = f"{counted(len(lost), 'case')} left out"
            yield Loosening(head.file, head.line("systems", name), f"answers of system {name}", text)


def _limits(base: Mapping[str, Threshold], head: Mapping[str, Threshold]) -> Iterator[tuple[str, Loosening]]:
    """Yield metrics whose thresholds are gone or weaker in the later state of a suite, without the line."""
    for metric, old in base.items():
        new = head.get(metric)
        if change := _loosened(old, new):
            after = "" if new is None else str(new)
            yield metric, Loosening("", 0, f"threshold {metric}", change, str(old), after, gone=new is None)


def _loosened(old: Threshold | None, new: Threshold | None) -> str:
    """The change of a threshold that more scores pass now; empty if no further score does."""
    if old is None or old == Threshold():
        return ""
    if new is None or new == Threshold():
        return "removed"
    wider_below = old.min is not None and (new.min is None or new.min < old.min)
    wider_above = old.max is not None and (new.max is None or new.max > old.max)
    return "loosened" if wider_below or wider_above else ""


def _gates(base: Sequence[GateDump], head: Sequence[GateDump]) -> Iterator[Loosening]:
    """Yield the gates that are gone or weaker in the later state of a suite, without their file."""
    later = [(dump, dump.gate()) for dump in head]
    for before in base:
        gate = before.gate()
        if gate is None:  # a rule of the project, of which only equality is known
            same = [dump for dump in head if (dump.text, dump.rule) == (before.text, before.rule)]
            if not any({**dump.values, "line": 0} == {**before.values, "line": 0} for dump in same):
                yield Loosening("", before.line, f"gate {before.text}", "removed or changed", gone=True)
            continue
        rivals = [(dump, rival) for dump, rival in later if rival is not None and _about(rival) == _about(gate)]
        best, rival = min(rivals, key=lambda state: len(gate.loosenings(state[1])), default=(None, gate))
        if best is None:
            yield Loosening("", before.line, f"gate {gate}", "removed", gone=True)
        elif changes := gate.loosenings(rival):
            old = ", ".join(f"{name} {early}" if name else str(gate) for name, early, _ in changes)
            new = ", ".join(f"{name} {late}" if name else str(rival) for name, _, late in changes)
            yield Loosening("", best.line, f"gate {gate}", "loosened", old, new)


def _about(gate: Gate) -> tuple[object, ...]:
    """The subject of a gate, by which gates of two states of a suite are matched."""
    return gate.tags, gate.metric, gate.statistic, gate.by, gate.system, gate.against


def _evaluators(base: SuiteDump, head: SuiteDump) -> Iterator[Loosening]:
    """Yield changes of the judge and of evaluators between two states of a suite."""
    if base.settings["judge"] != head.settings["judge"]:
        keys, now = ([key for key in JUDGE_KEYS if key in side.written] for side in (base, head))
        if keys:
            line = head.line(now[0]) if now else base.line(keys[0])
            early, late = (as_line({key: side.written.get(key) for key in keys}) for side in (base, head))
            yield Loosening(head.file, line, "judge", "changed", early, late, not now)
        elif not base.lines or any(evaluator.noun.startswith("judging") for evaluator in base.evaluators.values()):
            early, late = (as_line(side.settings["judge"] or "") for side in (base, head))
            yield Loosening(head.file, head.line(*now[:1]), "judge", "changed", early, late)
    for label, before in base.evaluators.items():
        subject, after = f"{before.noun} {label}", head.evaluators.get(label)
        if after is None:
            yield Loosening(head.file, base.line("evaluators"), subject, "removed", gone=True)
        elif before.definition != after.definition or before.options != after.options:
            old, new = before.options, after.options
            differing = [option for option in sorted({*old, *new}) if old.get(option) != new.get(option)]
            early, late = (as_line({option: side.get(option) for option in differing}) for side in (old, new))
            yield Loosening(head.file, after.line, subject, "changed", early, late)


def _lost_checks(
    old: Sequence[CheckDump],
    new: Sequence[CheckDump],
    whose: str,
    base_place: _Place,
    head_place: _Place,
) -> Iterator[Loosening]:
    """Yield the checks of the earlier state that no check of the later state equals in strictness."""
    same = {dump.identity for dump in old}
    fresh = [(number, dump) for number, dump in enumerate(new) if dump.identity not in same]
    for number, check in enumerate(old):
        if any(_is_as_strict(check, other) for other in new):
            continue
        successor = next(((place, other) for place, other in fresh if other.key == check.key), None)
        subject, before = f"check {check.name}{whose}", as_line(check.entry, 100)
        if successor is None:
            yield Loosening(*base_place(number), subject, "removed", before, gone=True)
        else:
            fresh.remove(successor)
            yield Loosening(*head_place(successor[0]), subject, "changed", before, as_line(successor[1].entry, 100))


def _is_as_strict(old: CheckDump, new: CheckDump) -> bool:
    """Whether a later check fails on every answer on which an earlier check fails."""
    if old.identity == new.identity:
        return True
    if old.key != new.key or not (isinstance(old.entry, Mapping) and isinstance(new.entry, Mapping)):
        return False
    settings = [{key: entry[key] for key in entry if key not in (old.key, "name")} for entry in (old.entry, new.entry)]
    if settings[0] != settings[1]:
        return False
    before, after = old.entry.get(old.key), new.entry.get(old.key)
    if old.each:
        every = after if isinstance(after, list) else [after]
        return all(
            any(_is_tighter(old.key, early, late) for late in every)
            for early in (before if isinstance(before, list) else [before])
        )
    return _is_tighter(old.key, before, after)


def _is_tighter(key: str, before: Any, after: Any) -> bool:
    """Whether the new value of a check's key, such as ``max_words``, is at least as strict as the old one."""
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
    """The ids of the cases that are in both states of a suite, earlier to later; content identifies renamed ones.

    Args:
        base: Id to content in the earlier state.
        head: Id to content in the later state.
    """
    same = {name: name for name in base if name in head}
    old, new = ({name: side[name] for name in side if name not in same} for side in (base, head))
    return same | {before: now for now, before in CaseMatching.match_contents(new, old).items()}


def _cases(base: SuiteDump, head: SuiteDump) -> Iterator[Loosening]:
    """Yield the cases that a suite's later state removes, and the requirements that it lowers on the others."""
    pairs = case_pairs(base.contents, head.contents)
    for name, old in base.cases.items():
        if name not in pairs:
            before = as_line(old.parts.get("input", ""), 100)
            yield Loosening(*old.place(), f"case {name}", "removed", before, gone=True)
        else:
            yield from _case(base, head, name, pairs[name])


def _case(base: SuiteDump, head: SuiteDump, name: str, now: str) -> Iterator[Loosening]:
    """Yield what one case asks less of in a suite's later state: input, expectation, labels, tags, limits, checks."""
    old, new, whose = base.cases[name], head.cases[now], f"of case {now}"
    for part in ("input", "expected"):
        before, after = (case.parts.get(part, MISSING) for case in (old, new))
        if before == after:
            continue
        change = "changed"
        if part == "expected" and after is not MISSING and after in (*old.answers, *new.answers):
            change = "changed to what was answered"
        early, late = (as_line(case.parts.get(part, ""), 100) for case in (old, new))
        yield Loosening(*new.place(part), f"{part} {whose}", change, early, late)
    lost = {label: value for label, value in old.labels.items() if new.labels.get(label) != value}
    if lost:
        early, late = (as_line(labels, 100) for labels in (lost, {label: new.labels.get(label) for label in lost}))
        yield Loosening(*new.place("labels"), f"labels {whose}", "changed", early, late)
    for tag in new.tags:
        if tag in _EXCUSES and tag not in old.tags:
            yield Loosening(*new.place("tags"), f"tag {tag} {whose}", "added")
    for metric in sorted({*old.limits, *new.limits}):
        limits = [(side.limits | case.limits).get(metric) for side, case in ((base, old), (head, new))]
        if change := _loosened(*limits):
            early, late = ("" if limit is None else str(limit) for limit in limits)
            yield Loosening(*new.place("thresholds", metric), f"threshold {metric} {whose}", change, early, late)
    yield from _lost_checks(
        old.checks,
        [*new.checks, *head.checks],
        f" {whose}",
        lambda number: old.place("checks", number),
        lambda number: new.place("checks", number),
    )


def compare_loaded(base: LoadedState, head: LoadedState, registry: "Registry") -> Iterator[Loosening]:
    """Yield lowered requirements of a loaded suite, and wrong answers that it no longer notices.

    Nothing is run and no judge is asked; answers that the suite has are changed to wrong ones and scored.

    Args:
        base: The earlier state.
        head: The later state.
        registry: What is known to the suite.
    """
    yield from compare_suites(base.dump, head.dump)
    yield from _blind_cases(base, head, registry)


def _blind_cases(base: LoadedState, head: LoadedState, registry: "Registry") -> Iterator[Loosening]:
    """Yield the cases that pass wrong answers now and failed them before, by mutants of earlier answers."""
    pairs = case_pairs(base.dump.contents, head.dump.contents)
    old, new = ({case.id: case for case in state.suite.cases} for state in (base, head))
    changed = [name for name in _changed_cases(base, head, pairs) if old[name].prediction is not MISSING]
    cases = tuple(old[name] for name in changed[:_MOST_MUTATED])
    if not cases:
        return
    try:
        mutants = mutation_of(structs.replace(base.suite, cases=cases, systems={}), registry.mutators).mutants
    except LlmevalError:  # no answer passes: there is nothing that could be noticed
        return
    now = [
        Mutant(new[pairs[mutant.case.id]], mutant.mutator, _answered(new[pairs[mutant.case.id]], mutant))
        for mutant in mutants
    ]
    before = score_mutants(score_unjudged, base.suite, mutants)
    after = score_mutants(score_unjudged, head.suite, now)
    survivors: dict[str, list[str]] = {}
    for mutant, early, late in zip(now, before, after, strict=True):
        if early.record.outcome == "failed" and late.record.outcome == "passed":
            survivors.setdefault(mutant.case.id, []).append(mutant.mutator.name)
    if len(survivors) > _MOST_LISTED:
        text = f"{counted(sum(map(len, survivors.values())), 'wrong answer')} noticed before now passing"
        yield Loosening(head.dump.file, 1, "mutants", text, after=as_line(f"of cases {listed(survivors)}", 100))
        return
    for name, mutators in survivors.items():
        text = f"{counted(len(mutators), 'wrong answer')} noticed before now passing"
        yield Loosening(
            *head.dump.cases[name].place(), f"mutants of case {name}", text, after=as_line(", ".join(mutators), 100)
        )


def _answered(case: Case, mutant: Mutant) -> Case:
    """Return a case with the wrong answer of a mutant."""
    return case_replace(case, prediction=mutant.changed.prediction, origin=None)


def _changed_cases(base: LoadedState, head: LoadedState, pairs: Mapping[str, str]) -> list[str]:
    """The cases of both states of a suite whose scores or limits may differ for the same answer."""
    before, now = SuiteIdentity(base.suite), SuiteIdentity(head.suite)
    old, new = before.digests, now.digests
    same = [check.identity for check in base.dump.checks] == [check.identity for check in head.dump.checks]
    same = same and before.evaluators == now.evaluators
    return [first for first, later in pairs.items() if not same or old[first] != new[later]]
