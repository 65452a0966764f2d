"""The table of rules: every key is a fault in the gates of rules that do not own it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import jsonschema
import numpy as np
import pytest
from builders import gate_of, run, subjects_of
from msgspec import structs
from project import load_text

from pytest_llmeval.core import Fault, GateOutcome, GateResult, LlmevalError, Metric, SuiteError
from pytest_llmeval.gates import DropGate, Gate, GateKey, GateScore, LimitGate, ScoreGate, TextForm, gate_rule, owned
from pytest_llmeval.gates import _rules as rules
from pytest_llmeval.gates._gate import PERCENTILES, STATISTICS, VALUE, GateFault
from pytest_llmeval.gates._rules import RULES, gate_entry, known_keys, rule_of
from pytest_llmeval.reports.html._data import number_line

VALUES = {float: 0.25, int: 1, str: "x", bool: True}
NEEDED: dict[str, dict[str, Any]] = {"adjust": {"by": "kind"}, "max_drift": {"max_drift": 0.75}}
"""What a key needs to make sense beside the smallest gate of a rule."""


def value_of(kind: Any) -> Any:
    return VALUES[kind] if kind in VALUES else get_args(kind)[0]


def smallest(rule: type[Gate], metric: str = "f1") -> dict[str, Any]:
    name = {"rule": rule.rule} if rule.rule else {}
    tag = rule.tags[0]
    return {"metric": subjects_of(rule, metric)[0], tag: value_of(rule.keys()[tag].kind), **name}


def with_key(rule: type[Gate], key: str) -> dict[str, Any]:
    owned = rule.keys()
    needed = NEEDED.get(key, {}) if key in owned else {}
    return {key: value_of(known_keys()[key].kind), **smallest(rule), **needed}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("key", list(known_keys()))
def test_a_key_is_accepted_by_the_rules_that_own_it_and_a_fault_elsewhere(rule: type[Gate], key: str) -> None:
    entry = with_key(rule, key)
    schema = jsonschema.Draft202012Validator(RULES.schema())
    owned = rule.keys()
    if key in owned:
        assert type(gate_of(entry)) is rule
        assert schema.is_valid(entry)
        return
    with pytest.raises(GateFault) as caught:
        gate_of(entry)
    assert not schema.is_valid(entry)
    tags = {tag for each in RULES for tag in each.tags}
    if key in tags:
        assert "expected only one of them" in str(caught.value)
    else:
        assert str(caught.value) == f"{key} does not apply to {rule.title}"
        assert caught.value.faults[0][0] == key


@pytest.mark.parametrize("rule", RULES)
def test_what_a_key_sets_changes_the_gate(rule: type[Gate]) -> None:
    plain = gate_of(smallest(rule))
    for key in rule.keys().keys() - {"metric", "rule", "against", *rule.tags}:
        kind = known_keys()[key].kind
        value = {float: 0.75, int: 7, str: "x", bool: True}.get(kind) or get_args(kind)[-1]
        changed = {
            **smallest(rule),
            **NEEDED.get(key, {}),
            **({"by": "kind"} if key == "min_cases" else {}),
            key: value,
        }
        base = gate_of({name: each for name, each in changed.items() if name != key})
        assert gate_of(changed) != base, key
    assert plain == gate_of({**smallest(rule), "system": None})


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_found_by_its_keys(rule: type[Gate]) -> None:
    assert rule_of(smallest(rule)) is rule


@pytest.mark.parametrize("rule", RULES)
def test_reports_find_the_metric_in_the_text_of_a_gate(rule: type[Gate]) -> None:
    for subject in (*subjects_of(rule), *subjects_of(rule, "exact match")):
        gate = gate_of({**smallest(rule), "metric": subject})
        assert GateResult(str(gate), "passed").metric == gate.metric, str(gate)


@gate_rule
class GapGate(ScoreGate):
    """A gate of a user: the best case minus the worst."""

    max_gap: float = owned(kw_only=False, max_gap=GateKey(float, "the largest gap", unit="change"))
    tags: ClassVar = ("max_gap",)
    title: ClassVar = "a gate with max_gap"
    form: ClassVar = TextForm("gap", "<=", "max_gap")

    @property
    def allowed(self) -> float:
        return self.max_gap

    def verdict(self, score: GateScore) -> tuple[GateOutcome, float | None, str]:
        gap = 1 - score.value
        return ("passed" if gap <= self.max_gap else "failed"), gap, f"the gap is {gap:g}"


@gate_rule
class AnyGapGate(GapGate):
    """Likewise, of any statistic."""

    statistics: ClassVar = (VALUE, *STATISTICS, *PERCENTILES)


@gate_rule
class SayingGate(GapGate):
    """Says what a test has it say."""

    form: ClassVar = TextForm("says", "<=", "max_gap")
    said: ClassVar[Any] = None

    def verdict(self, score: GateScore) -> tuple[GateOutcome, float | None, str]:
        del score
        return type(self).said()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("said", "errors", "outcome", "reason"),
    [
        (lambda: ("passed", 0.5, "as it says"), 0, "passed", "as it says"),
        (lambda: ("passed", 0.5, "as it says"), 1, "failed", "1 case errored; as it says"),
        (lambda: ("failed", 0.5, "as it says"), 1, "failed", "as it says"),
        (lambda: ("passed", float("nan"), "as it says"), 0, "undecided", "cannot tell: its value is nan; as it says"),
        (lambda: ("failed", float("inf"), "as it says"), 0, "failed", "cannot tell: its value is inf; as it says"),
        (lambda: 1 / 0, 0, "failed", "not evaluated: SayingGate: ZeroDivisionError: division by zero"),
        (lambda: ("passed", None, ""), 0, "passed", ""),
        (lambda: ("passed", np.float32(0.5), "as it says"), 0, "passed", "as it says"),
    ],
)
def test_a_rule_of_a_plugin_passes_no_suite_with_errors_and_costs_no_other_gate(
    monkeypatch: pytest.MonkeyPatch, said: Any, errors: int, outcome: str, reason: str
) -> None:
    monkeypatch.setattr(SayingGate, "said", staticmethod(said))
    found = SayingGate("score", 0.1).judge(run([1, 0, *["error"] * errors]))
    assert (found.outcome, found.reason.partition(" (")[0]) == (outcome, reason)
    assert found.value is None or math.isfinite(found.value)
    assert found.value is None or type(found.value) is float


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("value", 0.6), ("mean", 0.6), ("median", 0.625), ("min", 0.0), ("max", 1.0), ("p10", 0.225)],
)
def test_a_rule_judges_the_statistic_that_its_gate_names(statistic: str, value: float) -> None:
    scores = [1, 0.5, 0, 1, 0.75, 0.5, 0.75, 0.75, 0.5, 0.25]
    judged = AnyGapGate("score", 0.5, statistic=statistic).judge(run(scores))
    assert judged.value == pytest.approx(1 - value)
    assert judged.outcome == ("passed" if value >= 0.5 else "failed")


@pytest.mark.parametrize(
    "verdict",
    [
        None,
        True,
        "passed",
        ("ok", 1.0, "fine"),
        (["passed"], 1.0, "fine"),
        ("passed", "1.0", "fine"),
        ("passed", True, "fine"),
        ("passed", 1.0, None),
        ("passed", 1.0),
    ],
)
def test_what_is_no_verdict_fails_its_gate_and_is_named(monkeypatch: pytest.MonkeyPatch, verdict: Any) -> None:
    monkeypatch.setattr(SayingGate, "said", staticmethod(lambda: verdict))
    judged = SayingGate("score", 0.1).judge(run([1, 0]))
    assert (judged.outcome, judged.value) == ("failed", None)
    assert judged.reason == (
        f"not evaluated: SayingGate: verdict returned {verdict!r}, "
        "expected an outcome ('passed', 'failed', 'undecided', 'not_judged'), a number or None, and a text"
    )


def test_a_rule_without_a_verdict_names_the_method_that_is_missing() -> None:
    judged = gate_rule(type("Bare", (GapGate,), {"verdict": ScoreGate.verdict}))("score", 0.1).judge(run([1, 0]))
    assert judged.reason.startswith("not evaluated: Bare: NotImplementedError: define Bare.verdict(self, score)")


def test_a_rule_gets_the_scores_of_single_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[GateScore]()

    def verdict(_: ScoreGate, score: GateScore) -> tuple[GateOutcome, float | None, str]:
        calls.append(score)
        return "passed", 0.5, ""

    monkeypatch.setattr(SayingGate, "verdict", verdict)
    result = run([1, 0, "error"])
    SayingGate("score", 0.5).judge(result)
    assert [(list(call.cases), call.result) for call in calls] == [([1.0, 0.0], result)]


@pytest.mark.parametrize(
    ("statistic", "max_gap", "outcome"),
    [("value", 0.5, "undecided"), ("value", 0.7, "passed"), ("min", 0.5, "undecided"), ("value", 0.1, "failed")],
)
def test_a_gate_that_passes_only_without_cases_that_abstain_is_undecided(
    statistic: str, max_gap: float, outcome: str
) -> None:
    answered = run([1, 0.5])
    silent = structs.replace(answered.metrics["score"], abstained=2)
    judged = AnyGapGate("score", max_gap, statistic=statistic).judge(
        replace(answered, metrics={"score": silent}), counted_as=Metric("score")
    )
    assert judged.outcome == outcome
    doubt = "; 2 of 4 cases scored, and it fails if the others have the worst score"
    assert judged.reason.endswith(doubt) is (outcome == "undecided")


def test_a_statistic_without_a_value_fails_without_a_call_of_the_rule() -> None:
    errored = AnyGapGate("score", 0.5, statistic="median").judge(run(["error"]))
    assert (errored.outcome, errored.value) == ("failed", None)
    assert errored.reason == "median(score) is undefined: 0 cases scored, 0 undefined"
    absent = GapGate("scor", 0.5).judge(run([1]))
    assert (absent.outcome, absent.reason) == ("failed", "scor does not occur in the results")


def test_two_rules_of_one_name_have_their_own_keys() -> None:
    other = gate_rule(
        type(
            "GapGate",
            (GapGate,),
            {"__annotations__": {"sides": int}, "sides": owned(default=1, sides=GateKey(int, "sides"))},
        )
    )
    assert "sides" not in gate_entry(GapGate).__dataclass_fields__
    assert "sides" in gate_entry(other).__dataclass_fields__


def test_a_text_form_that_is_a_statistic_is_refused() -> None:
    form = TextForm("median", ">=", "min_middle")
    rule = gate_rule(type("Middle", (GapGate,), {"form": form}))
    with pytest.raises(
        LlmevalError, match=r"Middle\.form: median\(\.\.\.\) is a statistic: choose another name for the text form"
    ):
        rules.RULES.add(rule)


@gate_rule
class MedianGapGate(GapGate):
    """Likewise, of the median and of no other number."""

    statistics: ClassVar = ("median", "p10")
    form: ClassVar = None


@pytest.fixture
def own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES", rules.GateRules(*RULES, GapGate))


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("statistic", ["mean", "median", "low", "high", "p0", "p100"])
def test_a_rule_refuses_statistics_that_it_does_not_declare(statistic: str) -> None:
    with pytest.raises(ValueError, match=rf"^found '{statistic}\(f1\)' with max_gap, expected a metric$"):
        gate_of({"metric": f"{statistic}(f1)", "max_gap": 0.1})
    with pytest.raises(ValueError, match=rf"^found '{statistic}\(f1\)' with max_gap"):
        rules.gate_of_text(f"gap({statistic}(f1)) <= 0.1", "other")
    assert gate_of({"metric": "f1", "max_gap": 0.1}) == GapGate("f1", 0.1)


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("limit", [float("inf"), float("nan")])
def test_a_limit_of_an_own_rule_is_finite(limit: float) -> None:
    with pytest.raises(ValueError, match=f"^found max_gap {limit}, expected a finite number$"):
        gate_of({"metric": "f1", "max_gap": limit})


@gate_rule
class WeighedGapGate(GapGate):
    """Likewise, with a key beside the one by which it is known."""

    weight: float = owned(default=1.0, weight=GateKey(float, "the weight"))
    tags: ClassVar = ("max_gap",)


def test_a_gate_without_the_key_that_an_own_one_goes_with_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES", rules.GateRules(*RULES, WeighedGapGate))
    with pytest.raises(GateFault, match="max_gap is missing: weight applies to gates with it"):
        rules.rule_of({"metric": "f1", "weight": 2})


def test_a_rule_may_understand_some_statistics_only() -> None:
    entry = {"metric": "p10(f1)", "max_gap": 0.1}
    assert MedianGapGate.read(entry) == MedianGapGate("f1", 0.1, statistic="p10")
    with pytest.raises(
        ValueError, match=r"found 'f1' with max_gap, expected median or p10 of a metric, such as median\(f1\)"
    ):
        MedianGapGate.read(entry | {"metric": "f1"})


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_declares_the_statistics_that_it_reads(rule: type[Gate]) -> None:
    for statistic in (*STATISTICS, *PERCENTILES):
        entry = {**smallest(rule), "metric": f"{statistic}(f1)"}
        if statistic in rule.statistics:
            assert gate_of(entry).statistic == statistic
        else:
            with pytest.raises(ValueError, match=f"with {rule.tags[0]}, expected "):
                gate_of(entry)


def test_a_fault_names_the_statistics_that_a_rule_understands() -> None:
    with pytest.raises(ValueError, match="with max_drop, expected a metric or its mean"):
        gate_of({"metric": "p10(f1)", "max_drop": 0.1})


@pytest.mark.usefixtures("own_rules")
def test_a_rule_brings_the_text_form_by_which_it_is_written_and_read() -> None:
    gate = rules.gate_of_text(" gap(f1)<=.1 ", "other")
    assert gate == GapGate("f1", 0.1)
    assert str(gate) == "gap(f1) <= 0.1"
    assert rules.RULES.of_text(str(gate)) is GapGate
    assert number_line(GateResult(str(gate), "passed", low=0.1), {}) == {"operator": "<="}
    limit = rules.gate_of_text("gap(f1) >= 0.1", "other")
    assert isinstance(limit, LimitGate)
    assert limit.metric == "gap(f1)"


@pytest.mark.usefixtures("own_rules")
def test_a_suite_reads_the_text_form_of_a_rule(tmp_path: Path) -> None:
    head = "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x}]\n"
    suite = load_text(f"{head}gates: ['gap(f1) <= 0.1', 'drop(f1) <= 0.05']\n", tmp_path)
    assert suite.gates == (GapGate("f1", 0.1), DropGate("f1", 0.05))
    for subject, metric in (("gap(p0(f1))", r"p0\(f1\)"), ("gap(mean(f1))", r"mean\(f1\)")):
        with pytest.raises(SuiteError, match=rf"gates\[0\]: found '{metric}' with max_gap, expected a metric"):
            load_text(f"{head}gates: ['{subject} <= 0.1']\n", tmp_path)


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("gap(f1) <= 20", "found max_gap 20, expected at most 1"),
        ("gap(f1) <= -4", "found max_gap -4, expected at least -1"),
        ("{metric: f1, max_gap: 20}", "found max_gap 20, expected at most 1"),
    ],
)
def test_a_number_in_the_unit_of_its_metric_must_be_possible_for_it(tmp_path: Path, gate: str, expected: str) -> None:
    head = "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x}]\n"
    with pytest.raises(SuiteError, match=f"{expected}: f1 lies from 0 to 1"):
        load_text(f"{head}gates: ['{gate}']\n" if "(" in gate else f"{head}gates: [{gate}]\n", tmp_path)


@pytest.mark.parametrize("rule", [each for each in RULES if each.form is not None])
def test_reports_recognise_every_text_form(rule: type[Gate]) -> None:
    for subject in (*subjects_of(rule), *subjects_of(rule, "f1[a, b]")):
        gate = gate_of({**smallest(rule), "metric": subject})
        found = rules.RULES.of_text(str(gate))
        assert found is not None
        assert found.form == rule.form
        assert rules.RULES.of_text(f"{subject} <= 0.2") is None


def test_a_gate_asks_less_in_the_direction_that_its_key_declares() -> None:
    keys = known_keys()
    changes = {
        "max_errors": [(1, 2, True), (2, 1, False)],
        "min_scored": [(30, 10, True), (10, 30, False)],
        "max_drift": [(0.1, None, True), (None, 0.1, False)],
        "undecided": [("observed", "pass", True), ("pass", "fail", False)],
        "confidence": [(0.9, 0.95, True), (0.95, 0.9, True)],
    }
    for name, each in changes.items():
        assert [keys[name].asks_less(early, late) for early, late, _ in each] == [less for *_, less in each], name


@pytest.mark.parametrize("rule", RULES)
def test_a_number_of_a_gate_says_in_which_direction_it_asks_less(rule: type[Gate]) -> None:
    numbers = {name: key for name, key in rule.keys().items() if name.startswith(("min_", "max_"))}
    assert [name for name, key in numbers.items() if not key.looser] in ([], ["max_left_out"])


def test_all_foreign_keys_are_named_with_what_was_probably_meant() -> None:
    with pytest.raises(GateFault) as caught:
        gate_of({"metric": "f1", "min": 0.5, "primary": True, "max_drp": 1, "min_scord": 3})
    first, second, third = (message for _, message in caught.value.faults)
    assert first == "primary does not apply to a gate with a limit"
    assert second == "unknown key max_drp, did you mean max_drop?"
    assert third == "unknown key min_scord, did you mean min_scored?"


class MineGate(ScoreGate):
    """A rule without a declaration."""

    @property
    def allowed(self) -> float:
        return self.max_mine  # type: ignore[attr-defined, no-any-return]

    def verdict(self, score: GateScore) -> tuple[GateOutcome, float | None, str]:
        return "passed", score.value, ""


def declared(base: type = MineGate, bare: bool = False, **attributes: Any) -> Any:
    """A rule ``Mine`` with the key `max_mine`, besides attributes of its own."""
    key = {"max_mine": owned(default=0.0, max_mine=GateKey(float, "mine")), "__annotations__": {"max_mine": float}}
    own = {"tags": ("max_mine",), "form": TextForm("mine", "<=", "max_mine")}
    rule = type("Mine", (base,), {**key, **own, **attributes})
    return rule if bare else gate_rule(rule)


async def verdict_later(gate: ScoreGate, score: GateScore) -> None:
    del gate, score


def verdict_of_result(gate: ScoreGate, result: Any, counted_as: Any) -> None:
    del gate, result, counted_as


def allowed_of(gate: ScoreGate) -> float:
    del gate
    return 1.0


def no_arguments(rule: type[Gate], values: Any) -> dict[str, Any]:
    del rule, values
    return {}


NO_FORM = "Mine has no text form: set form, such as extend.TextForm('gap', '<=', 'max_gap'), or define condition"


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (lambda: 3, "found 3, expected a subclass of pytest_llmeval.extend.ScoreGate"),
        (lambda: Gate, "expected a subclass of pytest_llmeval.extend.ScoreGate"),
        (lambda: GapGate("f1", 0.5), "expected its class GapGate"),
        (lambda: declared(bare=True), "Mine is not decorated: write @extend.gate_rule above the class"),
        (lambda: declared(tags=()), "Mine.tags is empty: name the keys by which the rule is known"),
        (
            lambda: declared(tags="max_mine"),
            "Mine.tags: found 'max_mine', expected a tuple of keys such as ('max_gap',)",
        ),
        (
            lambda: declared(tags=("most",)),
            "Mine.tags: no field has the key 'most': declare it with extend.owned(most=",
        ),
        (
            lambda: declared(max_mine=owned(max_mine=float)),
            "Mine: key max_mine: found <class 'float'>, expected an extend.GateKey",
        ),
        (
            lambda: declared(max_mine=owned(max_mine=GateKey(float, "", unit="cm"))),
            "Mine: key max_mine: found unit 'cm', expected",
        ),  # type: ignore[arg-type]
        (
            lambda: declared(max_mine=owned(max_mine=GateKey(float, "", looser="up"))),
            "Mine: key max_mine: found looser 'up', expected",
        ),  # type: ignore[arg-type]
        (
            lambda: declared(max_mine=owned(max_mine=GateKey(3, ""))),
            "Mine: key max_mine: found 3, expected a type such as float",
        ),
        (
            lambda: declared(tags=("most",), max_mine=owned(most=GateKey(float, ""))),
            "Mine.max_mine: no key has its name, and it has no default",
        ),
        (lambda: declared(base=GapGate), "Mine.max_gap: gates may leave the key out, and it has no default"),
        (
            lambda: declared(statistics=("value", "p999")),
            "Mine.statistics: unknown statistic 'p999', expected value, mean, median",
        ),
        (lambda: declared(statistics=("medain",)), "Mine.statistics: unknown statistic 'medain', did you mean median?"),
        (lambda: declared(statistics="p10"), "Mine.statistics: found 'p10', expected a tuple such as ('value', 'p10')"),
        (lambda: declared(form=None), NO_FORM),
        (
            lambda: declared(form=("mine", "<=", "max_mine")),
            "Mine.form: found ('mine', '<=', 'max_mine'), expected extend.TextForm('mine', '<=', 'max_mine')",
        ),
        (
            lambda: declared(form=TextForm("mine", "!=", "max_mine")),
            "Mine.form: found the operator '!=', expected one of >=, >, <=, <, ==",
        ),
        (lambda: declared(form=TextForm("mi ne", "<=", "max_mine")), "Mine.form: found 'mi ne', expected a word"),
        (
            lambda: declared(form=TextForm("mine", "<=", "max_miny")),
            "Mine.form: unknown key max_miny, did you mean max_mine?",
        ),
        (
            lambda: declared(form=TextForm("p10", "<=", "max_mine")),
            "Mine.form: p10(...) is a statistic: choose another name",
        ),
        (
            lambda: declared(allowed=allowed_of),
            "Mine.allowed is a method, expected a property: write @property above it",
        ),
        (lambda: declared(allowed=Gate.allowed), "Mine has no limit: define the property allowed"),
        (lambda: declared(verdict=ScoreGate.verdict), "Mine has no verdict: define verdict(self, score)"),
        (lambda: declared(verdict=verdict_later), "Mine.verdict is a coroutine function, expected"),
        (
            lambda: declared(verdict=verdict_of_result),
            "Mine.verdict: found parameters gate, result, counted_as, expected self, score",
        ),
        (
            lambda: declared(form=TextForm("drop", "<=", "max_mine")),
            "Mine.form: the text form drop(METRIC) <= NUMBER is taken by DropGate of pytest_llmeval",
        ),
        (
            lambda: declared(form=TextForm("gap", "<=", "max_mine")),
            "Mine.form: the text form gap(METRIC) <= NUMBER is taken by GapGate of plugin.py:3",
        ),
        (
            lambda: declared(
                tags=("max_gap",),
                max_mine=owned(max_gap=GateKey(float, "")),
                arguments=classmethod(no_arguments),
                form=TextForm("mine", "<=", "max_gap"),
            ),
            "Mine.tags: the gate key 'max_gap' is taken by GapGate of plugin.py:3: choose another",
        ),
        (
            lambda: declared(max_mine=owned(max_mine=GateKey(float, ""), min=GateKey(float, ""))),
            "Mine: the gate key 'min' is taken by LimitGate of pytest_llmeval",
        ),
        (
            lambda: declared(
                max_mine=owned(confidence=GateKey(float, "")),
                tags=("confidence",),
                form=TextForm("mine", "<=", "confidence"),
                arguments=classmethod(no_arguments),
            ),
            "Mine: the gate key 'confidence' is taken by DropGate of pytest_llmeval",
        ),
        (
            lambda: declared(
                max_mine=owned(max_drop=GateKey(float, "")),
                tags=("max_drop",),
                rule="anytime",
                form=TextForm("mine", "<=", "max_drop"),
                arguments=classmethod(no_arguments),
            ),
            "Mine.rule: 'anytime' with 'max_drop' is taken by AnytimeGate of pytest_llmeval",
        ),
    ],
)
def test_what_a_rule_declares_wrongly_is_refused_where_it_is_added(rule: Any, fault: str) -> None:
    known = rules.GateRules(*RULES)
    known.add(GapGate, "plugin.py:3")
    before = list(known)
    with pytest.raises(LlmevalError) as caught:
        known.add(rule())
    assert fault in str(caught.value)
    assert list(known) == before


def test_a_rule_that_declares_all_that_it_needs_is_added_once() -> None:
    known = rules.GateRules(*RULES)
    rule = declared()
    for _ in range(2):
        known.add(rule)
    assert list(known) == [*RULES, rule]
    assert rule.title == "a gate with max_mine"


def test_all_that_a_rule_declares_wrongly_is_named_together() -> None:
    with pytest.raises(LlmevalError) as caught:
        rules.GateRules(*RULES).add(declared(statistics=("p999",), form=None, allowed=Gate.allowed))
    assert str(caught.value).count("; Mine") == 2


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize(
    ("gate", "hint"),
    [
        ("drip(f1) <= 0.1", "did you mean 'drop(f1) <= 0.1'?"),
        ("drop(f1) >= 0.1", "did you mean 'drop(f1) <= 0.1'?"),
        ("gpa(f1) <= .1", "did you mean 'gap(f1) <= 0.1'?"),
        ("gap(f1) >= 0.1", "did you mean 'gap(f1) <= 0.1'?"),
        ("maen(f1) >= 0.7", "did you mean 'mean(f1) >= 0.7'?"),
        ("{metric: f1, max_gap: 0.1}", "as a text, expected a mapping: write it without quotes"),
    ],
)
def test_a_malformed_text_form_names_what_is_probably_meant(tmp_path: Path, gate: str, hint: str) -> None:
    head = "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x}]\n"
    with pytest.raises(SuiteError) as caught:
        load_text(f"{head}gates: ['{gate}']\n", tmp_path)
    assert hint in str(caught.value)


@pytest.mark.parametrize("gate", ["mine(f1) <= 0.1", "{metric: f1, max_mine: 0.1}"])
def test_a_limit_that_cannot_be_computed_is_a_fault_of_its_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    rule = declared(allowed=property(lambda gate: gate.most_mine))
    monkeypatch.setattr(rules, "RULES", rules.GateRules(*RULES, rule))
    head = "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x}]\n"
    with pytest.raises(
        SuiteError, match=r"gates\[0\]: Mine: AttributeError: 'Mine' object has no attribute 'most_mine'"
    ):
        load_text(f"{head}gates: ['{gate}']\n" if "(" in gate else f"{head}gates: [{gate}]\n", tmp_path)


def test_a_quoted_mapping_has_the_code_of_malformed_gates(tmp_path: Path) -> None:
    head = "evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n"
    with pytest.raises(SuiteError) as caught:
        load_text(f"{head}gates: ['{{metric: f1}}']\n", tmp_path)
    assert Fault.code_of(caught.value.faults[0].message) == "LE106"
