"""The evaluator of checks: counts, rates, composition, errors, and checks of the user's own."""

from typing import Any

import pytest
from examples import met, observed, unmet

from pytest_llmeval import Case, Observation, score
from pytest_llmeval.core import EvaluatorError, JudgeError, Totals
from pytest_llmeval.evaluators import CheckKind, CheckReader, Checks
from pytest_llmeval.evaluators.checks._reading import Unlocated
from pytest_llmeval.judges import Verdict

A, B, Z = {"contains": "a"}, {"contains": "b"}, {"contains": "z"}
SLOW = {"quotes": True}
"""A check that cannot be made, since there are no contexts."""


def rates(checks: Checks, *observations: Observation) -> dict[str, float | None]:
    pooled = Observation(dict(Totals.add_up(observations)))
    return checks.scores(pooled)


def test_the_rate_is_pooled_over_cases_and_names_have_rates_of_their_own() -> None:
    checks = Checks((A, {"contains": "b", "name": "has b"}, {"max_chars": 2}))
    found = [checks.measure(Case(text, prediction=text)) for text in ("ab", "abc", "c")]
    assert rates(checks, *found) == {
        "check_rate": 6 / 9,
        "check[contains]": 2 / 3,
        "check[has b]": 2 / 3,
        "check[max_chars]": 2 / 3,
    }


def test_weights_count_in_the_rate_and_not_in_the_rates_of_names() -> None:
    checks = Checks(({"contains": "a", "weight": 3}, Z))
    assert rates(checks, checks.measure(Case("a", prediction="a"))) == {"check_rate": 0.75, "check[contains]": 0.5}


def test_a_case_has_the_checks_of_the_suite_and_its_own() -> None:
    checks = Checks((A,))
    found = checks.measure(Case("a", prediction="ab", checks=(Z,)))
    assert rates(checks, found)["check_rate"] == 0.5
    assert found.malformed == "found 'ab', expected contains: 'z'"
    assert found.details == {"wrong": ["found 'ab', expected contains: 'z'"]}


def test_every_case_is_held_to_its_own_checks_however_many_lists_there_are() -> None:
    texts = [f"text {number}" for number in range(600)]
    cases = [Case(text, prediction=text, checks=read_checks({"equals": text})) for text in texts]
    cases.append(Case("other", prediction="other", checks=read_checks({"equals": "text 1"})))
    measured = [Checks.of_checks(()).measure(case).counts["made[equals]"] for case in cases]
    shared = Checks.of_checks(())
    assert measured == [1] * 601
    assert [shared.measure(case).malformed is None for case in cases] == [True] * 600 + [False]


def test_a_case_without_checks_has_no_rate() -> None:
    assert Checks().measure(Case("a", prediction="x")).undefined == {"check_rate": "no check"}


def test_all_unmet_checks_are_named() -> None:
    found = Checks((Z, {"max_chars": 1, "name": "short"})).measure(Case("a", prediction="ab"))
    lines = ["found 'ab', expected contains: 'z'", "short: found 2 characters, expected max_chars: 1"]
    assert found.details["wrong"] == lines
    assert found.malformed == f"{lines[0]}; and 1 more"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"any_of": [A, Z]}, True),
        ({"any_of": [Z, SLOW]}, None),
        ({"any_of": [A, SLOW]}, True),
        ({"any_of": [Z]}, False),
        ({"not_any_of": [A, Z]}, False),
        ({"not_any_of": [Z]}, True),
        ({"all_of": [A, B]}, True),
        ({"all_of": [A, Z]}, False),
        ({"all_of": [A, SLOW]}, None),
        ({"all_of": [Z, SLOW]}, False),
        ({"not_all_of": [A, Z]}, True),
        ({"at_least": {"n": 2, "of": [A, B, Z]}}, True),
        ({"at_least": {"n": 3, "of": [A, B, Z]}}, False),
        ({"at_least": {"n": 2, "of": [A, SLOW, Z]}}, None),
        ({"at_least": {"n": 2, "of": [A, B, SLOW]}}, True),
        ({"any_of": [{"all_of": [A, B]}, Z]}, True),
        ({"any_of": ["is_json", A]}, True),
    ],
)
def test_checks_are_composed_and_errors_count_only_where_they_could_decide(entry: Any, expected: bool | None) -> None:
    assert met(entry, "ab") is expected


def test_a_composed_check_says_which_of_its_parts_are_unmet() -> None:
    said = unmet({"any_of": [{"contains": "receipt"}, {"contains": "invoice"}], "name": "bill"}, "paid")
    assert said.startswith("bill: found 0 of 2 met (found 'paid', expected contains: 'receipt'; found 'paid', ")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"contains": "s", "on": "output.summary"}, True),
        ({"contains": "c", "on": "contexts[0]"}, True),
        ({"json_subset": {"answer": "a"}, "on": "prediction"}, True),
        ({"any_of": [{"contains": "s"}, {"contains": "z"}], "on": "output.summary"}, True),
        ({"any_of": [{"contains": "a", "on": "answer"}], "on": "output.summary"}, True),
        ({"contains": "s", "on": "nothing.here"}, None),
    ],
)
def test_a_check_reads_another_part_where_it_says_so(entry: Any, expected: bool | None) -> None:
    assert met(entry, {"answer": "a", "contexts": ["c"], "output": {"summary": "s"}}) is expected


def test_a_missing_part_is_an_error_that_says_what_there_is() -> None:
    found = observed({"contains": "a"}, {"text": "a", "contexts": []})
    why = "contains: 'a': the prediction has the keys text, contexts; no 'answer'; set parts.answer"
    assert found.errored == {"check_rate": why, "check[contains]": why}


def test_a_check_that_cannot_be_made_takes_the_rate_of_its_case_and_leaves_the_other_names() -> None:
    found = Checks((A, SLOW)).measure(Case("a", prediction="a"))
    assert found.counts == {"made[contains]": 1, "met[contains]": 1}
    assert set(found.errored) == {"check_rate", "check[quotes]"}


def test_a_check_of_few_cases_counts_those_cases_only_and_one_that_is_never_made_is_reported() -> None:
    own = read_checks({"contains": "a", "name": "own"}, {"quotes": True})
    cases = [Case("1", prediction="a", checks=own), Case("2", prediction="b"), Case("3", prediction="c")]
    metrics = score(Checks.of_checks(read_checks({"min_chars": 1}), own), cases).metrics
    counts = {name: (each.scored, each.undefined, each.errored) for name, each in metrics.items()}
    assert counts == {
        "check_rate": (2, 0, 1),
        "check[min_chars]": (3, 0, 0),
        "check[own]": (1, 2, 0),
        "check[quotes]": (0, 2, 1),
    }
    assert metrics["check[own]"].low is None
    assert metrics["check[quotes]"].value is None


def test_checks_are_scored_in_python() -> None:
    result = score(Checks((A,)), [Case("1", prediction="a"), Case("2", prediction="b"), Case("3", prediction="ca")])
    assert result.metrics["check_rate"].value == pytest.approx(2 / 3)
    assert [case.outcome for case in result.cases] == ["passed", "failed", "passed"]


CRITERIA = ({"judge": "Says a."}, {"any_of": [{"judge": "Says b."}, A]}, {"not_judge": "Is rude.", "name": "polite"})


def test_a_judge_is_asked_about_each_criterion_and_the_verdicts_decide() -> None:
    checks = Checks.of_checks(read_checks(*CRITERIA))
    case = Case("1", input={"question": "What?"}, prediction="x")
    asked = checks.questions(case)  # type: ignore[attr-defined]  # a judge is needed
    assert [each.texts for each in asked] == [
        {"question": "What?", "answer": "x", "criterion": text} for text in ("Says a.", "Says b.", "Is rude.")
    ]
    found = checks.measure_judged(case, [Verdict(0, "It does not."), Verdict(1), Verdict(1, "Very.")])  # type: ignore[attr-defined]  # as above
    assert found.details["wrong"] == [
        "found the judge's no: 'It does not.', expected judge: 'Says a.'",
        "polite: found the judge's yes: 'Very.', expected not_judge: 'Is rude.'",
    ]


def read_checks(*entries: Any) -> Any:

    return CheckReader(Checks.kinds(), Unlocated()).read(list(entries), ())


def test_a_criterion_without_verdict_is_an_error_and_the_other_checks_count() -> None:
    checks = Checks.of_checks(read_checks({"judge": "Says a."}, A))
    found = checks.measure_judged(Case("1", prediction="a"), [JudgeError("no reply")])  # type: ignore[attr-defined]  # a judge is needed
    assert found.errored["check[judge]"] == "judge: 'Says a.': no reply"
    assert found.counts == {"made[contains]": 1, "met[contains]": 1}


def test_a_rubric_passes_at_its_mark() -> None:
    rubric = {
        "criteria": "Be kind.",
        "levels": [{"score": 0, "meaning": "rude"}, {"score": 1, "meaning": "so"}, {"score": 2, "meaning": "kind"}],
        "pass_mark": 2,
    }
    checks = Checks.of_checks(read_checks({"rubric": rubric}))
    outcomes = [checks.measure_judged(Case("1", prediction="x"), [Verdict(level)]).malformed for level in (1, 2)]  # type: ignore[attr-defined]  # a judge is needed
    assert outcomes[0] is not None
    assert outcomes[0].startswith("found the judge's level 1, expected rubric: ")
    assert outcomes[1] is None


def test_no_judge_is_needed_where_no_check_asks_one() -> None:
    assert type(Checks.of_checks(read_checks(A))) is Checks


def polite(answer: str) -> bool:
    """The answer thanks."""
    return "thank" in answer.lower()


def at_most(answer: str, most: int) -> tuple[bool, str]:
    return len(answer) <= most, f"{len(answer)} letters"


def broken(answer: object) -> bool:
    raise RuntimeError(f"no {answer}")


def own(*entries: Any) -> Checks:
    kinds = {kind.name: kind for kind in map(CheckKind.from_function, (polite, at_most, broken))}
    host = Unlocated()
    read = CheckReader(kinds, host).read(list(entries), ())
    assert host.faults == []
    return Checks.of_checks(read)


def test_functions_of_users_are_checks() -> None:
    checks = own("polite", {"at_most": 3}, {"not_polite": None, "name": "curt"})
    found = checks.measure(Case("a", prediction="Thanks"))
    assert found.details["wrong"] == [
        "found 6 letters, expected at_most: 3",
        "curt: found 'Thanks', expected not_polite",
    ]


def test_an_exception_of_a_users_check_is_an_error_of_the_case() -> None:
    found = own("broken").measure(Case("a", prediction="x"))
    assert found.errored["check[broken]"] == "broken: RuntimeError: no x"


@pytest.mark.parametrize("name", ["not_this", "on", "any_of", "two words", ""])
def test_a_check_needs_a_name_without_meaning(name: str) -> None:
    def check(answer: str) -> bool:
        return bool(answer)

    check.__name__ = ""
    with pytest.raises(EvaluatorError, match="found the check name"):
        CheckKind.from_function(check, name)


def test_a_check_takes_an_answer_and_at_most_one_argument() -> None:
    with pytest.raises(EvaluatorError, match=r"expected a function of \(answer\) or \(answer, argument\)"):
        CheckKind.from_function(lambda answer, one, two: answer == one == two, "check")


WORKED = {"answer": "Done.", "outcome": {"exit_code": 0, "files": {"calc.py": "a + b"}}}


@pytest.mark.parametrize(
    ("entry", "unmet"),
    [
        ({"starts_with": "Fixed:"}, "CHANGES.md was not written, expected starts_with: "),
        ({"min_chars": 1}, "CHANGES.md was not written, expected min_chars: 1"),
        ({"not_contains": "TODO"}, ""),
        ({"equals": ""}, ""),
    ],
)
def test_a_file_that_an_agent_did_not_write_is_empty(entry: dict[str, Any], unmet: str) -> None:
    evaluator = Checks.of_checks(read_checks({**entry, "on": 'outcome.files."CHANGES.md"'}))
    observation = evaluator.measure(Case("1", prediction=WORKED))
    assert observation.errored == {}
    lines = observation.details.get("wrong", [])
    assert len(lines) == bool(unmet)
    assert all(line.startswith(unmet) for line in lines)


def test_another_part_that_the_outcome_lacks_fails_its_check() -> None:
    evaluator = Checks.of_checks(read_checks({"not_contains": "x", "on": "outcome.flies"}))
    observation = evaluator.measure(Case("1", prediction=WORKED))
    assert (observation.errored, "nothing at 'outcome.flies'" in str(observation)) == ({}, True)
    assert evaluator.measure(Case("1", prediction={"answer": "Done."})).errored
