"""Laws of every rule of gates: no unit, no worse answer and nothing that was not written makes a verdict better."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from builders import gate_of, subjects_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pytest_llmeval.data import Document
from pytest_llmeval.exchange import GateVerdict
from pytest_llmeval.exchange.gating import GateOptions, judge_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.gates import Gate
from pytest_llmeval.gates._gate import PERCENTILES, VALUE
from pytest_llmeval.gates._rules import RULES, rule_of

SIZES: Mapping[str, Sequence[float]] = {"score": (0.7,), "change": (0.1, 0.0), "": (0.1,)}
"""Numbers of a key in each unit."""

SHARED = {"by": "doc", "cluster_by": "doc", "against": "without"}
"""Labels and systems in the rows of the tests, by keys that name some."""


def gates_of(rule: type[Gate]) -> Iterator[dict[str, Any]]:
    """Yield gates of a rule by its declaration: each statistic that it understands, and each choice of its keys."""
    tag, *_ = rule.tags
    keys = rule.keys()
    named = {"rule": rule.rule} if rule.rule else {}
    smallest, *others = (
        {"metric": subject, tag: keys[tag].kind(size), **named}
        for subject in subjects_of(rule, "m")
        for size in SIZES[keys[tag].unit]
    )
    yield from (smallest, *others)
    for name in (key for key in keys if key not in smallest):
        choices = get_args(keys[name].kind) or ((SHARED[name],) if name in SHARED else ())
        yield from ({**smallest, name: choice} for choice in choices)


def is_accepted(keys: Mapping[str, Any]) -> bool:
    try:
        gate_of(keys)
    except ValueError:
        return False
    return True


GATES = {
    rule: [keys for keys in gates_of(rule) if is_accepted(keys)]
    for rule in RULES
    if rule.__module__.startswith("pytest_llmeval.")
}
"""Each rule that ships, with gates of it."""

RANKS = ("failed", "undecided", "passed")
every_gate = pytest.mark.parametrize(
    "keys",
    [
        # The first gate of a rule is judged in every run of the tests, the others before a release.
        pytest.param(keys, marks=[pytest.mark.release] if place else [], id=f"{rule.__name__}-{place}")
        for rule, several in GATES.items()
        for place, keys in enumerate(several)
    ],
)
answers = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 1.0])] * 2), min_size=12, max_size=40)
grades = st.lists(st.tuples(*[st.integers(0, 16).map(lambda part: part / 16)] * 2), min_size=12, max_size=40)
scores = st.one_of(answers, grades)
"""Pairs of scores that are 0 or 1, or anything in between that each unit writes exactly."""

quick = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
Scores = Sequence[tuple[float, float]]


def test_every_statistic_of_every_rule_is_in_a_gate_here() -> None:
    for rule, gates in GATES.items():
        assert {keys["metric"] for keys in gates} == set(subjects_of(rule, "m"))


def rows(scores: Sequence[float], system: str, repeat: int) -> list[ResultRow]:
    return [
        ResultRow(f"c{place:03}", "m", score, labels={"doc": f"d{place // 6}"}, system=system, repeat=repeat)
        for place, score in enumerate(scores)
    ]


def verdict_on(
    keys: Mapping[str, Any],
    pairs: Scores,
    root: Path,
    *,
    repeats: int = 1,
    lost: Sequence[tuple[int, int]] = (),
    **options: Any,
) -> GateVerdict:
    """Judge pairs of a score before and one now: of two runs, or of two systems if the gate is against one."""
    every = range(1, repeats + 1)
    olds, news = zip(*pairs, strict=True)
    base = [row for repeat in every for row in rows(olds, "without" if "against" in keys else "", repeat)]
    system = "with" if "against" in keys else ""
    ran = [row for repeat in every for row in rows(news, system, repeat)]
    written = [row for row in ran if (int(row.case[1:]), row.repeat) not in lost]
    before = [*base, *ran] if "against" in keys else base
    now = [*base, *written] if "against" in keys else written
    return judge_results(now, before, (), GateOptions(Document("", {"gates": [keys]}), **options), root)


def mirror_of(word: str) -> str:
    """The bound or the statistic on the other side, if there is one."""
    if word in PERCENTILES:
        return f"p{100 - int(word[1:])}"
    return {"min": "max", "max": "min", "low": "high", "high": "low"}.get(word, word)


def in_unit(keys: Mapping[str, Any], factor: float, shift: float) -> dict[str, Any]:
    """Return a gate for scores that are multiplied and shifted: of a negative factor, less is better."""
    declared = rule_of(keys).keys()
    scaled = {}
    for name, value in keys.items():
        match declared[name].unit:
            case "change":
                scaled[name] = abs(factor) * value
            case "score":
                scaled[mirror_of(name) if factor < 0 else name] = factor * value + shift
            case _:
                scaled[name] = value
    statistic, metric = Gate.split_statistic(keys["metric"])
    if factor < 0 and statistic != VALUE:
        scaled["metric"] = f"{mirror_of(statistic)}({metric})"
    return scaled


def has_unit(keys: Mapping[str, Any]) -> bool:
    """Whether the numbers of a gate are in the unit of its metric."""
    rule = rule_of(keys)
    return all(rule.keys()[tag].unit for tag in rule.tags)


@every_gate
@quick
@given(scores, st.sampled_from([(100.0, 0.0), (4.0, 1.0), (-1000.0, 250.0)]))
def test_a_change_of_the_unit_changes_no_verdict(tmp_path: Path, keys: Any, pairs: Any, unit: Any) -> None:
    if not has_unit(keys):
        pytest.skip("the numbers of the rule are in no unit of a metric")
    factor, shift = unit
    statistic, _ = Gate.split_statistic(keys["metric"])
    # With a negative factor a gate on the least score is one on the greatest: of rules that understand both.
    assume(factor > 0 or mirror_of(statistic) in rule_of(keys).statistics)
    low, high = sorted([shift, shift + factor])
    scaled_pairs = [(factor * old + shift, factor * new + shift) for old, new in pairs]
    plain = verdict_on(keys, pairs, tmp_path)
    scaled = verdict_on(
        in_unit(keys, factor, shift),
        scaled_pairs,
        tmp_path,
        ranges={"m": (low, high)},
        lower_is_better=["m"] if factor < 0 else [],
    )
    assert (plain.word, plain.code()) == (scaled.word, scaled.code()), (plain.why, scaled.why)


@every_gate
@quick
@given(scores, st.integers(0, 100))
def test_a_worse_answer_makes_no_verdict_better(tmp_path: Path, keys: Any, pairs: Any, place: int) -> None:
    before = verdict_on(keys, pairs, tmp_path)
    worse = list(pairs)
    worse[place % len(pairs)] = (pairs[place % len(pairs)][0], 0.0)
    after = verdict_on(keys, worse, tmp_path)
    assert RANKS.index(after.decision) <= RANKS.index(before.decision), (before.why, after.why)


@every_gate
@quick
@given(scores, st.sets(st.tuples(st.integers(0, 11), st.integers(1, 2)), min_size=1, max_size=12))
def test_nothing_passes_by_what_was_not_written(tmp_path: Path, keys: Any, pairs: Any, lost: Any) -> None:
    verdict = verdict_on(keys, pairs, tmp_path, repeats=2, lost=sorted(lost))
    assert verdict.decision != "passed", verdict.why
    assert verdict.missing or verdict.errored
