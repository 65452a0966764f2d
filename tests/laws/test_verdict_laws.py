"""Laws of verdicts on results: no unit, nothing that was not written and no other file makes one better."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import gate, judge, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_llmeval.core import GateResult, LlmevalError
from pytest_llmeval.data import Document
from pytest_llmeval.exchange import GateVerdict
from pytest_llmeval.exchange.gating import GateOptions, judge_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.gates._drop import LiftGate
from pytest_llmeval.numbers import compare
from pytest_llmeval.workbench.plan._spread import Plan, ScoreSpread

RULES: Sequence[Mapping[str, Any]] = (
    {},
    {"test": "bca"},
    {"test": "permutation"},
    {"test": "mcnemar"},
    {"test": "mcnemar_mid_p"},
    {"rule": "non_inferiority"},
    {"undecided": "fail"},
    {"cluster_by": "doc"},
    {"by": "doc"},
)

shares = st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 2), min_size=3, max_size=30)
yes_or_no = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 1.0])] * 2), min_size=12, max_size=40)
scales = st.sampled_from([(100.0, 0.0), (4.0, 1.0), (1000.0, -500.0), (0.01, 3.0), (-100.0, 0.0), (-4.0, 5.0)])
quick = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def rows(scores: Iterable[float], metric: str = "m", **more: Any) -> list[ResultRow]:
    return [
        ResultRow(f"c{place:03}", metric, score, labels={"doc": f"d{place // 3}"}, **more)
        for place, score in enumerate(scores)
    ]


def judged(
    new: Sequence[ResultRow], old: Sequence[ResultRow], root: Path, *gates: Mapping[str, Any], **more: Any
) -> GateVerdict:
    return judge_results(new, old, (), GateOptions(Document("", {"gates": gates} if gates else {}), **more), root)


def gates_of(verdict: GateVerdict) -> list[GateResult]:
    return [each for suite in verdict.finished.report.suites for each in suite.gates]


def outcomes(verdict: GateVerdict) -> list[tuple[str, str]]:
    return [(each.outcome, each.word) for each in gates_of(verdict)]


@quick
@given(shares | yes_or_no, scales, st.sampled_from(RULES), st.sampled_from([0.0, 0.1]))
def test_a_change_of_the_unit_changes_no_verdict(
    tmp_path: Path, pairs: Any, scale: Any, rule: Mapping[str, Any], max_drop: float
) -> None:
    factor, shift = scale
    gate = {"metric": "m", "max_drop": max_drop, **rule}
    other = {**gate, "max_drop": max_drop * abs(factor)}
    ends = sorted([shift, shift + factor])
    falling = ["m"] if factor < 0 else []
    olds, news = zip(*pairs, strict=True)
    plain = judged(rows(news), rows(olds), tmp_path, gate)
    olds, news = ([factor * each + shift for each in scores] for scores in (olds, news))
    scaled = judged(rows(news), rows(olds), tmp_path, other, ranges={"m": (ends[0], ends[1])}, lower_is_better=falling)
    assert (plain.word, plain.code(), outcomes(plain)) == (scaled.word, scaled.code(), outcomes(scaled))


@quick
@given(yes_or_no, st.sampled_from([(100.0, 0.0), (4.0, 1.0), (1000.0, 250.0)]))
def test_scores_that_reach_both_ends_need_no_range(tmp_path: Path, pairs: Any, scale: Any) -> None:
    olds, news = zip(*[*pairs, (0.0, 0.0), (1.0, 1.0)], strict=True)
    plain = judged(rows(news), rows(olds), tmp_path)
    olds, news = ([scale[0] * each + scale[1] for each in scores] for scores in (olds, news))
    scaled = judged(rows(news), rows(olds), tmp_path)
    assert (plain.word, plain.code(), outcomes(plain)) == (scaled.word, scaled.code(), outcomes(scaled))


@pytest.mark.parametrize(
    ("olds", "news"),
    [
        ([5, 5, 4, 5, 4, 5, 5, 5], [5, 1, 4, 1, 4, 5, 1, 5]),
        ([100.0] * 6, [99.999] * 4 + [100.0] * 2),
        ([1 + 1e-6, 1, 0.75, 1, 0.75, 1, 1, 1], [1 + 1e-6, 0, 0.75, 0, 0.75, 1, 0, 1]),
        ([3.0] * 11, [3.0] * 11),
    ],
)
def test_a_few_scores_without_ends_decide_nothing(tmp_path: Path, olds: Any, news: Any) -> None:
    for rule in ({"max_drop": 0}, {"max_drop": 0.5}, {"max_drop": 0.5, "test": "permutation"}):
        verdict = judged(rows(news), rows(olds), tmp_path, {"metric": "m", **rule})
        assert (verdict.word, verdict.code()) == ("cannot tell", 2), verdict.why
        assert "m has no range" in verdict.why[0]
        assert verdict.next_step.startswith("declare the range of m: --range m=LOW..HIGH; --undecided pass ")


def test_equal_runs_without_ends_are_seldom_worse(tmp_path: Path, thorough: bool) -> None:
    """Nominal is 0.025: of 100 runs, 6 or fewer are within two and a half errors of it; of 20 runs, 2 or fewer."""
    runs, most = (100, 6) if thorough else (20, 2)
    for count, draw in ((12, "normal"), (16, "lognormal")):
        red = 0
        for seed in range(runs):
            rng = np.random.default_rng([seed, count])
            level = rng.normal(100, 1, count)
            noise = getattr(rng, draw)
            red += judged(rows(level + noise(size=count)), rows(level + noise(size=count)), tmp_path).word == "worse"
        assert red <= most


def test_a_score_out_of_its_range_is_named(tmp_path: Path) -> None:
    with pytest.raises(LlmevalError, match="found m 7 in case 'c001', expected 1 to 5"):
        judged(rows([5, 7]), rows([5, 5]), tmp_path, ranges={"m": (1.0, 5.0)})


@pytest.mark.parametrize("cases", [30, 60])
def test_a_case_that_collapses_takes_no_fall_of_graded_scores_back(cases: int) -> None:
    """It widens the scatter, but in the direction of the fall, which the test for skewed values knows."""
    rng = np.random.default_rng(cases)
    noise = rng.normal(0.03, 0.07 * np.sqrt(cases / 30), (4, cases))
    olds, failed = [0.8] * cases, 0
    for news in np.clip(0.8 - np.vstack([noise, np.full(cases, 0.05)]), 0, 1):
        if judge(gate(), run(news.tolist()), run(olds)).outcome == "failed":
            failed += 1
            assert judge(gate(), run([0.0, *news[1:].tolist()]), run(olds)).outcome == "failed"
    assert failed


@quick
@given(yes_or_no, st.sets(st.tuples(st.integers(0, 11), st.integers(1, 3)), min_size=1, max_size=12))
def test_what_was_not_written_never_makes_a_verdict_pass(tmp_path: Path, pairs: Any, lost: Any) -> None:
    """Neither a repeat, nor its score of one metric, nor a case."""
    olds, news = zip(*pairs, strict=True)
    old = [row for repeat in (1, 2, 3) for metric in "mn" for row in rows(olds, metric, repeat=repeat)]
    new = [row for repeat in (1, 2, 3) for metric in "mn" for row in rows(news, metric, repeat=repeat)]
    for metrics in ("m", "mn"):
        kept = [row for row in new if (int(row.case[1:]), row.repeat) not in lost or row.metric not in metrics]
        verdict = judged(kept, old, tmp_path)
        assert verdict.decision != "passed"
        assert verdict.missing or verdict.errored


def test_failing_repeats_that_are_not_written_are_missing(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    right = rng.beta(4, 1, 60)
    old = [row for repeat in range(5) for row in rows((rng.random(60) < right) * 1.0, repeat=repeat)]
    new = [row for repeat in range(5) for row in rows((rng.random(60) < right - 0.15) * 1.0, repeat=repeat)]
    kept = [row for row in new if row.score or rng.random() < 0.3]
    verdict = judged(kept, old, tmp_path)
    assert (verdict.decision, verdict.is_measured) == ("undecided", False)
    assert any(each.startswith("found 4 of 5 repeats for ") for each in verdict.missing)


@pytest.mark.parametrize("field", ["suite", "system"])
def test_a_command_is_one_family(tmp_path: Path, field: str) -> None:
    """Six falls of six are significant alone (p 0.031), and not among twenty tests."""
    old, new = [1.0] * 60, [0.0] * 6 + [1.0] * 54

    def files(scores: Sequence[float]) -> list[ResultRow]:
        many = [rows(scores if n == 0 else old, **{field: f"s{n:02}"}) for n in range(20)]
        return [row for each in many for row in each]

    assert judged(rows(new), rows(old), tmp_path).word == "worse"
    verdict = judged(files(new), files(old), tmp_path)
    assert verdict.word == "cannot tell"
    assert any("1 of 20 tests that are judged together" in each.known for each in gates_of(verdict))
    assert any(each.startswith("20 gates") and "one family" in each for each in verdict.notes)


def test_cases_that_change_alike_are_clustered_first(tmp_path: Path) -> None:
    """Of thirty documents with three questions each, five fall and one rises."""
    olds = [1.0] * 75 + [0.0] * 15
    news = [0.0] * 15 + [1.0] * 63 + [0.0] * 12
    verdict = judged(rows(news), rows(olds), tmp_path)
    assert "cases with the same doc change alike, and 90 are worth 30: set cluster_by: doc" in verdict.notes
    assert (verdict.word, verdict.next_step[:23]) == ("worse", "set cluster_by: doc, a ")
    assert "look at the cases above" in verdict.next_step
    clustered = judge_results(rows(news), rows(olds), (), GateOptions(Document("", {"cluster_by": "doc"})), tmp_path)
    assert (clustered.word, "change alike" in " ".join(clustered.notes)) == ("cannot tell", False)


def test_a_rise_has_its_own_interval_and_few_of_all_cases_are_named(tmp_path: Path) -> None:
    olds, news = [0.0, 1.0] * 20, [1.0] * 40
    verdict = judged(rows(news), rows(olds), tmp_path)
    assert re.search(r"a rise \(95% interval of the rise 0\.3\d+\.\.0\.6\d+, 40 cases\)", verdict.why[0])
    shorter = judged(rows(news), rows(olds[:-4]), tmp_path, lower_is_better=["m"])
    assert shorter.word == "worse"
    (found,) = gates_of(shorter)
    assert found.cause.endswith(". 36 of 40 cases compared.")
    assert "a rise (95% interval of the rise " in found.known
    assert found.known.endswith("; 36 of 40 cases compared")
    assert "36 paired cases of 40" in found.reason


def test_the_word_says_what_is_known(tmp_path: Path) -> None:
    many, few = [1.0] * 180 + [0.0] * 20, [1.0] * 36 + [0.0] * 4
    same = judged(rows(many), rows(many), tmp_path)
    assert (same.word, same.code(), same.next_step) == ("no drop", 0, "nothing to do")
    assert "a drop of 0.05 (5% of the range) is ruled out" in same.why[0]
    open_ = judged(rows(few), rows(few), tmp_path)
    assert (open_.word, open_.code()) == ("cannot tell", 0)
    assert "40 cases find a drop of 0.2088 in 80 of 100 runs, " in open_.why[0]
    assert "more would rule it out if there is none" in open_.why[0]
    assert judged(rows(few), rows(few), tmp_path, tolerance=0.2).word == "no drop"
    assert judged(rows([1.0] * 40), rows([1.0] * 20 + [0.0] * 20), tmp_path).word == "better"
    fell = judged(rows([1.0] * 45 + [0.0] * 15), rows([1.0] * 41 + [0.0] * 4 + [1.0] * 15), tmp_path)
    assert (fell.word, fell.decision) == ("worse", "failed")
    noisy = [1.0] * 40 + [0.0] * 8 + [1.0] * 2 + [0.0] * 10, [1.0] * 40 + [1.0] * 8 + [0.0] * 2 + [1.0] * 5 + [0.0] * 5
    within = judged(rows(noisy[0]), rows(noisy[0][:50] + noisy[1][50:]), tmp_path)
    assert (within.word, within.code(), within.next_step == "nothing to do") == ("cannot tell", 0, False)


@pytest.mark.parametrize("gate", ["m >= 0.8", "low(m) >= 0.3", "mean(m) >= 0.8", "median(m) >= 0.8", "min(m) >= 0.8"])
def test_abstentions_pass_no_limit(tmp_path: Path, gate: Any) -> None:
    scored, silent = rows([1.0] * 3), [ResultRow(f"c{n:03}", "m", abstained="no claim") for n in range(3, 60)]
    verdict = judged([*scored, *silent], (), tmp_path, gate)
    assert (verdict.word, verdict.code()) == ("cannot tell", 2)
    assert "3 of 60 cases scored" in verdict.why[0]
    assert verdict.next_step.startswith("have the cases answered that abstain, or set abstained: allowed; ")
    allowed = Document("", {"gates": [gate], "abstained": "allowed"})
    assert judge_results([*scored, *silent], (), (), GateOptions(allowed), tmp_path).code() == 0


def test_what_no_gate_reads_is_a_note(tmp_path: Path) -> None:
    blank = [ResultRow("c000", "n", error="nan"), *rows([1.0] * 11, "n")[1:]]
    verdict = judged([*rows([1.0] * 11), *blank], (), tmp_path, "m >= 0.5")  # type: ignore[arg-type]
    assert (verdict.word, verdict.code(), verdict.errored) == ("passed", 0, 0)
    assert "no score, and no gate reads it: n in 1 case" in verdict.notes
    assert judged([*rows([1.0] * 11), *blank], (), tmp_path, "n >= 0.5").code() == 2  # type: ignore[arg-type]


def test_the_pass_rate_is_that_of_the_tool(tmp_path: Path) -> None:
    ran = rows([1.0, 0.0], "passed")
    verdict = judged(ran, (), tmp_path, "pass_rate >= 0.9")  # type: ignore[arg-type]
    assert (verdict.word, verdict.why) == ("failed", ["passed >= 0.9: passed is 0.5000, expected >= 0.9"])
    with pytest.raises(LlmevalError, match="the results do not say which cases passed"):
        judged(rows([1.0, 0.0]), (), tmp_path, "pass_rate >= 0.9")  # type: ignore[arg-type]


@pytest.mark.parametrize("test", ["bootstrap", "permutation", "mcnemar", "wilcoxon"])
def test_a_pair_of_which_one_answer_may_abstain_leaves_both_runs(tmp_path: Path, test: str) -> None:
    """Sixteen right answers abstain and the others are the same; then wrong ones do, while six right ones fall."""
    gates = [{"metric": "m", "max_drop": 0, "test": test}]

    def verdict(news: Sequence[float | None], olds: Sequence[float]) -> GateVerdict:
        new = [
            ResultRow(f"c{n:03}", "m", score, abstained="" if score is not None else "no claim")
            for n, score in enumerate(news)
        ]
        allowed = Document("", {"gates": gates, "abstained": "allowed"})
        return judge_results(new, rows(olds), (), GateOptions(allowed), tmp_path)

    olds = [1.0] * 32 + [0.0] * 8
    same = verdict([None] * 16 + olds[16:], olds)
    assert same.decision != "failed"
    assert "0.6667 -> 0.6667" in gates_of(same)[0].reason
    fell = verdict([0.0] * 6 + [1.0] * 26 + [None] * 8, olds)
    assert (fell.word, fell.decision) == ("worse", "failed")


def test_eight_wins_of_eight_decide_with_one_p(tmp_path: Path) -> None:
    """Twelve evals, three runs each: four are equal, and eight win in one of their runs."""
    scores = {("with", repeat): [1.0] * 12 for repeat in (1, 2, 3)}
    scores |= {("without", repeat): [1.0] * 4 + [float(repeat < 3)] * 8 for repeat in (1, 2, 3)}
    both = [row for (name, repeat), own in scores.items() for row in rows(own, system=name, repeat=repeat)]
    verdict = judged(both, (), tmp_path, power=0.2)
    (lift,) = gates_of(verdict)
    assert (verdict.word, lift.outcome, lift.word) == ("better", "passed", "better")
    (table,) = verdict.finished.report.systems
    differences = [each.differences["m"] for each in table.systems if each.differences]
    assert [f"p {each.p_value:.4f}" in lift.reason for each in differences] == [True]
    seven = [row for row in both if row.case != "c011"] + rows([1.0], system="with") + rows([1.0], system="without")
    assert judged(seven, (), tmp_path).decision in ("undecided", "passed")


@pytest.mark.release
@pytest.mark.parametrize(("cases", "often", "rise"), [(12, 0.8, 0.05), (20, 0.9, 0.02), (50, 0.9, 0.02)])
def test_frequent_small_rises_that_rare_large_losses_take_back_are_seldom_better(
    cases: int, often: float, rise: float
) -> None:
    """Nominal is 0.025; of 100 runs, 7 or fewer are within three errors of it."""
    better = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, cases])
        drawn = rng.random(cases)
        loss = often * rise / 0.5
        change = np.where(drawn < often, rise, np.where(drawn < often + loss, -0.5, 0.0))
        better += judge(gate(), run((0.7 + change).tolist()), run([0.7] * cases)).word == "better"
    assert better <= 7


def test_the_power_of_a_lift_is_that_of_the_rule_which_decides(tmp_path: Path) -> None:
    """With one loss, unseen losses could take the gain back: twelve cases are not enough to rule them out."""
    scores = {"with": [1.0] * 11 + [0.5], "without": [1.0] * 2 + [0.5] * 9 + [1.0]}
    both = [row for name, own in scores.items() for row in rows(own, system=name)]
    verdict = judged(both, (), tmp_path, power=0.2)
    assert any("a difference of 0.2 in m of with needs " in note for note in verdict.notes), verdict.notes


def test_a_test_of_the_typical_case_passes_no_collapse(tmp_path: Path) -> None:
    olds = list(np.linspace(0.5, 1, 60))
    news = [score if place % 7 else 0.0 for place, score in enumerate(olds)]
    verdict = judged(rows(news), rows(olds), tmp_path, {"metric": "m", "max_drop": 0, "test": "wilcoxon"})
    assert verdict.decision != "passed"
    alone = judged(rows(olds), rows(olds), tmp_path, {"metric": "m", "max_drop": 0, "test": "wilcoxon"})
    assert "the power of test wilcoxon, which is about the typical case, is not computed" in gates_of(alone)[0].reason


@pytest.mark.parametrize(
    ("olds", "guard"),
    [
        ([0.0] * 4 + [1.0] * 26, "4 cases changed, and a sign test needs 6 that rise"),
        ([0.9] * 30, "unseen cases could take the gain back, which 36 cases would rule out"),
    ],
)
def test_a_lift_that_a_guard_stops_names_the_guard(olds: list[float], guard: str) -> None:
    found = judge(LiftGate("score", 0.0, against="other"), run([1.0] * 30), run(olds))
    assert (found.outcome, guard in found.reason) == ("undecided", True), found.reason


def test_gate_table_and_plan_have_one_detectable_drop(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for olds in ((rng.random(60) < 0.8) * 1.0, rng.beta(4, 2, 60)):
        news = np.where(rng.random(60) < 0.3, rng.permutation(olds), olds)
        (found,) = gates_of(judged(rows(news), rows(olds), tmp_path, {"metric": "m", "max_drop": 0}))
        table = compare(run(news.tolist()), run(olds.tolist())).metrics["score"]
        assert table.detectable is not None
        assert f"minimum detectable drop {table.detectable:.4f}" in found.reason
        binary = len(set(olds)) == 2
        plan = Plan(ScoreSpread(float(np.var(news - olds))), room=float(np.mean(olds)), reach=1.0 if binary else None)
        planned = plan.detectable(60)
        assert planned is not None
        if binary:  # counted, where a run gives an upper bound
            assert 0.7 * table.detectable < planned <= table.detectable
        else:
            assert planned == pytest.approx(table.detectable, rel=0.03)


def test_the_power_of_a_drop_is_that_of_the_gate_which_decides(tmp_path: Path) -> None:
    """Of documents, whose cases move together, more cases are needed than of cases."""
    olds = [1.0] * 36
    news = [float(place // 3 % 4 > 0) for place in range(36)]
    needed = []
    for more in ({}, {"cluster_by": "doc"}):
        verdict = judged(rows(news), rows(olds), tmp_path, {"metric": "m", "max_drop": 0, **more}, power=0.3)
        (note,) = (note for note in verdict.notes if note.startswith("power: "))
        needed.append(note)
    assert "needs 28 more cases (64 in all)" in needed[0]
    clusters = re.search(r"needs \d+ more clusters \((\d+) in all\)", needed[1])
    assert clusters is not None
    assert int(clusters[1]) > 64 / 3
