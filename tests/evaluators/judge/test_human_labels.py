"""Labels that people gave in a review: to which answers they belong, what they weigh, and what comes of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from pytest_llmeval import Case, JudgeRequest, Result, score
from pytest_llmeval.core import ShownPrints, SuiteError, Sums
from pytest_llmeval.evaluators import HumanLabel, HumanLabels, Judge
from pytest_llmeval.evaluators._rubric import Level, Rubric
from pytest_llmeval.evaluators.judge._agreement import JudgeAgreement
from pytest_llmeval.evaluators.judge._human_labels import OTHER_ANSWER, PeopleScores
from pytest_llmeval.judges import Verdict
from pytest_llmeval.workbench.reviews.draws import inclusion_probabilities, picked

NAME = "corrected(judge_score)"
YES_NO = (0.0, 1.0)


def case(number: int, verdict: float, **more: Any) -> Case:
    """A case whose prediction is what the judge will say."""
    given = {"input": f"Where is {number}?", "expected": "Paris", "prediction": f"In Paris {verdict}", **more}
    return Case(f"c{number}", **given)


def label(of: Case, said: str | int | None, annotator: str = "ana", **more: Any) -> HumanLabel:
    """What a person says of the answer to a case."""
    prints = ShownPrints.of_case({"reference": str(of.expected)}, of.input, of.prediction)
    given = {"scale": "yesno" if isinstance(said, str) else "1-5", "cases": (of.id,), "reference": prints.reference}
    return HumanLabel(prints.question, prints.answer, annotator, label=said, **{**given, **more})


def scored(folder: Path, cases: Sequence[Case], labels: Sequence[HumanLabel], evaluator: type[Judge] = Judge) -> Result:
    def answer(request: JudgeRequest) -> str:
        said = str(request).rpartition("In Paris ")[2].split()[0].strip('"<')
        return f'{{"score": {said}}}'

    path = folder / "labels.jsonl"
    path.write_text("".join(map(HumanLabel.line, labels)), encoding="utf-8")
    options: dict[str, Any] = {"corrected": True} if evaluator is Judge else {}
    return score(evaluator(mode="continuous", human=str(path), **options), cases, judge=answer)


def test_labels_weigh_by_the_inverse_of_their_probability(tmp_path: Path) -> None:
    cases = [case(number, 0.5) for number in range(40)]
    likely = [label(each, 1, probability=0.5) for each in cases[:10]]  # the share 0, 0.5 below the judge
    rare = [label(each, 5, probability=0.1) for each in cases[10:15]]
    found = scored(tmp_path, cases, [*likely, *rare]).metrics[NAME]
    assert found.value == pytest.approx(0.5 + (20 * -0.5 + 50 * 0.5) / 70)
    alone = scored(tmp_path, cases, [label(each, 1) for each in cases[:10]]).metrics[NAME]
    assert alone.value == pytest.approx(0.0)


def test_unequal_weights_are_worth_fewer_labels(tmp_path: Path) -> None:
    judge = Judge(mode="continuous", corrected=True)
    widths = []
    for probability in (1.0, 0.5, 0.05):
        cases = [case(number, 0.5 + 0.4 * (number % 2)) for number in range(60)]
        said = [label(each, 3, probability=probability if place < 5 else 1.0) for place, each in enumerate(cases[:20])]
        found = scored(tmp_path, cases, said).metrics[NAME]
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    sums = {"labelled": 2, "bound": 2, "stale": 0, "overweight": 3, "overweight_square": 15}
    columns = {name: np.array([float(value)]) for name, value in sums.items()}
    columns |= {name: np.array([0.0]) for name in ("excess",)}
    assert judge.basis(Sums(columns, 1))[NAME].cases == pytest.approx(25 / 17)


def test_several_people_are_one_label_with_their_mean(tmp_path: Path) -> None:
    cases = [case(number, 0.5) for number in range(10)]
    said = [label(each, grade, name) for each in cases for name, grade in (("ana", 5), ("ben", 3))]
    result = scored(tmp_path, cases, said)
    assert result.metrics[NAME].value == pytest.approx(0.75)
    assert result.records[0].observations["judge"].details["human"] == [1.0, 0.5]


def test_a_label_belongs_to_question_and_answer(tmp_path: Path) -> None:
    cases = [case(number, 0.5) for number in range(12)]
    said = [label(each, 5) for each in cases]
    otherwise = [case(0, 0.25), case(1, 0.5, input="Who?"), *cases[2:]]
    result = scored(tmp_path, otherwise, said)
    assert result.metrics[NAME].reason.startswith("2 of 12 labels are of answers that have changed and count as")
    assert result.records[0].observations["judge"].undefined[NAME] == OTHER_ANSWER
    assert result.metrics[NAME].value == pytest.approx(10 / 12)


def test_a_case_with_another_id_keeps_its_labels_unless_the_right_answer_is_another() -> None:
    one = case(1, 0.5)
    labels = HumanLabels([label(one, "yes")])
    prints = ShownPrints.of_case({"reference": "Paris"}, one.input, one.prediction)
    assert labels.scores_of("c1", prints, YES_NO).scores == [1.0]
    assert labels.scores_of("renamed", prints, YES_NO).scores == [1.0]
    other = prints._replace(reference=ShownPrints.fingerprint("London"))
    assert labels.scores_of("c1", other, YES_NO).scores == [1.0]
    assert labels.scores_of("renamed", other, YES_NO).scores == ()


def test_labels_that_name_a_case_go_before_those_of_equal_texts() -> None:
    one = case(1, 0.5)
    labels = HumanLabels([label(one, "no", cases=("a",)), label(one, "yes", cases=("b",), probability=0.5)])
    prints = ShownPrints.of_case({"reference": "Paris"}, one.input, one.prediction)
    assert labels.scores_of("b", prints, YES_NO) == ([1.0], 2.0, True, 0.0)


def test_a_case_that_two_reviews_picked_stands_for_as_many_as_both_say() -> None:
    one = case(1, 0.5)
    said = [label(one, "yes", review=name, probability=0.25) for name in "xy"]
    prints = ShownPrints.of_case({"reference": "Paris"}, one.input, one.prediction)
    assert HumanLabels(said).scores_of("c1", prints, YES_NO) == ([1.0], 8.0, True, 0.0)


def test_a_choice_stays_a_choice_when_the_answer_changes_and_a_new_label_fills_it() -> None:
    before, after = case(1, 0.5), case(1, 0.25)
    old = label(before, "yes", review="x", probability=0.25)
    prints = ShownPrints.of_case({"reference": "Paris"}, after.input, after.prediction)
    assert HumanLabels([old]).scores_of("c1", prints, YES_NO) == ((), 1.0, False, 4.0)
    new = label(after, "no", review="y", again="x", probability=0.25)
    assert HumanLabels([old, new]).scores_of("c1", prints, YES_NO) == ([0.0], 4.0, True, 0.0)
    chosen_anew = replace(new, again="")
    assert HumanLabels([old, chosen_anew]).scores_of("c1", prints, YES_NO) == ([0.0], 8.0, True, 0.0)


def test_the_answer_of_another_system_is_no_answer_that_changed() -> None:
    here, there = case(1, 0.5), case(1, 0.25)
    prints = ShownPrints.of_case({"reference": "Paris"}, here.input, here.prediction)
    assert HumanLabels([label(there, "yes", others=(prints.answer,))]).scores_of("c1", prints, YES_NO) == PeopleScores()


def test_labels_in_a_file_join_those_of_the_case(tmp_path: Path) -> None:
    human = {"reference": "Paris", "human": 0.9}
    cases = [case(number, 0.5, expected=human) for number in range(10)]
    plain = [case(number, 0.5) for number in range(10)]
    result = scored(tmp_path, cases, [label(each, 5, probability=0.5) for each in plain])
    assert result.records[0].observations["judge"].details["human"] == [0.9, 1.0]
    assert result.metrics[NAME].value == pytest.approx(0.95)


def test_a_skipped_answer_is_no_label(tmp_path: Path) -> None:
    cases = [case(number, 0.5) for number in range(12)]
    said = [label(each, None if place < 2 else 5) for place, each in enumerate(cases)]
    counts = [each.observations["judge"].counts for each in scored(tmp_path, cases, said).records]
    assert sum(each.get("labelled", 0) for each in counts) == 10
    assert not any("stale" in each for each in counts)


def test_grades_are_brought_to_the_scale_of_a_rubric(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    one = case(1, 0.5)
    path.write_text(label(one, 4, reference="").line(), encoding="utf-8")
    levels = (Level(1, "bad"), Level(3, "fair"), Level(5, "good"))
    rubric = Rubric(criteria="Is it kind?", levels=levels, pass_mark=3)
    judge = Judge(mode="rubric", rubric=rubric, corrected=True, human=str(path))
    counts = judge.measure_judged(one, [Verdict(1.0)]).counts
    assert counts["excess"] == pytest.approx(0.75)
    assert counts["pass_excess"] == 1


def test_agreement_reads_files_and_weighs_cases(tmp_path: Path) -> None:
    cases = [case(number, number % 2) for number in range(10)]
    said = [label(each, "yes", probability=0.5 if place % 2 else 1.0) for place, each in enumerate(cases)]
    found = scored(tmp_path, [*cases, case(10, 1)], said, JudgeAgreement)
    assert found.metrics["agreement"].value == pytest.approx(10 / 15)
    assert found.metrics["agreement"].scored == 10
    assert found.records[-1].observations["judge_agreement"].undefined["agreement"] == "no human score"
    assert not JudgeAgreement(mode="continuous").questions(case(1, 1, expected=None))


def test_labels_are_asked_for_with_corrected() -> None:
    with pytest.raises(ValueError, match="human: found labels without corrected"):
        Judge(mode="continuous", human="labels.jsonl")


def test_the_last_label_of_a_person_counts(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    one = case(1, 0.5)
    said = [label(one, 1), label(one, 5), label(one, 2, "ben")]
    path.write_text("".join(map(HumanLabel.line, said)), encoding="utf-8")
    assert [(each.annotator, each.label) for each in HumanLabel.read_all([(path, "")])] == [("ana", 5), ("ben", 2)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 6}, "label: found 6, expected one of 1, 2, 3, 4, 5, or null"),
        ({"label": True}, "the label cannot be read"),
        ({"label": "yes"}, "label: found 'yes'"),
        ({"probability": 0.0}, "probability: found 0.0, expected a number above 0, at most 1"),
        ({"probability": 1.5}, "probability: found 1.5"),
        ({"annotator": ""}, "annotator: found an empty text, expected a name"),
        ({"scale": "stars"}, "the label cannot be read"),
        ({"system": "a"}, "unknown field `system`"),
    ],
)
def test_every_faulty_line_of_a_file_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "labels.jsonl"
    good = msgspec.to_builtins(label(case(1, 0.5), 3))
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in (good, {**good, **change}, good, [1])))
    with pytest.raises(SuiteError) as caught:
        HumanLabel.read_all([(path, "labels.jsonl")])
    first, second = caught.value.faults
    assert (first.file, first.line, second.line) == ("labels.jsonl", 2, 4)
    assert message in first.message


def test_intervals_of_picked_labels_hold_the_truth(tmp_path: Path, thorough: bool) -> None:
    """200 answers, two people, 40 picks: with weights, intervals hold what people say on average."""
    truth, covered = 0.7 * 0.97 + 0.3 * 0.03, 0
    seeds, deviation = (24, 0.02) if thorough else (3, 0.06)
    values: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(seeds):
        rng = np.random.default_rng([7, seed])
        right, hard = rng.random(200) < 0.7, rng.random(200) < 0.3
        # Jurors disagree about hard answers, and the judge takes most of those for right.
        judge = np.where(hard, rng.random(200) < 0.95, right).astype(float)
        people = [np.where(rng.random(200) < 0.03, ~right, right) for _ in range(2)]
        cases = [case(number, float(said)) for number, said in enumerate(judge)]
        probabilities = inclusion_probabilities(hard.astype(float).tolist(), 40)
        chosen = picked(probabilities, [each.id for each in cases], seed)
        for weighted, found_values in values.items():
            said = [
                label(cases[place], "yes" if one[place] else "no", name, probability=probabilities[place])
                for place in chosen
                for name, one in zip("ab", people, strict=True)
            ]
            if not weighted:
                said = [replace(each, probability=1.0) for each in said]
            found = scored(tmp_path, cases, said).metrics[NAME]
            assert found.value is not None
            assert found.low is not None
            assert found.high is not None
            found_values.append(found.value)
            covered += weighted and found.low <= truth <= found.high
    assert covered >= seeds - 1
    assert np.mean(values[True]) == pytest.approx(truth, abs=deviation)
    assert np.mean(values[False]) < np.mean(values[True]) - 0.01
