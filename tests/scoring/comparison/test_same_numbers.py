"""Where nothing errored, a comparison compares the values that the reports show."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from comparisons import judge, run

from pytest_llmeval import Case, Evaluator, Result, compare, get_evaluator, score
from pytest_llmeval.scoring.comparison import estimation
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.regression import RegressionGate

LABELS = ("joy", "anger", "neutral")
WORDS = ("grey", "boats", "鳥", "!!", "")


def spam(flagged: int) -> Result:
    """50 spam mails, all found, and 150 others of which some are flagged too."""
    answers = ["spam"] * (50 + flagged) + ["ham"] * (150 - flagged)
    cases = [
        Case(f"{number:03}", expected="spam" if number < 50 else "ham", prediction=answer)
        for number, answer in enumerate(answers)
    ]
    return score(get_evaluator("classification", positive="spam"), cases)


def test_a_false_alarm_in_one_run_only_takes_no_case_out_of_a_pooled_value() -> None:
    here, there = spam(100), spam(0)
    assert here.metrics["positive_precision"].value == pytest.approx(1 / 3)
    found = judge(RegressionGate("positive_precision", 0.02), here, there)
    assert found.outcome == "failed"
    assert "positive_precision 1.0000 -> 0.3333" in found.reason
    assert judge(RegressionGate("positive_f1", 0.05, rule="proven_safe"), here, there).outcome == "failed"


def test_a_value_that_the_report_does_not_show_is_not_compared() -> None:
    cases = [Case(str(number), expected="ham", prediction="ham") for number in range(9)]
    result = score(get_evaluator("classification", positive="spam"), cases)
    assert result.metrics["positive_f1"].value is None
    assert compare(result, result).metrics["positive_f1"].value is None


def _label(rng: random.Random) -> Any:
    return rng.choice((*LABELS, None, 3.5, ["joy"]))


def _labels(rng: random.Random) -> Any:
    return [rng.choice(LABELS) for _ in range(rng.randint(0, 3))] or rng.choice(LABELS)


def _text(rng: random.Random) -> Any:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4)))


def _boundaries(rng: random.Random) -> Any:
    return {"boundaries": sorted(rng.sample(range(1, 9), rng.randint(0, 3))), "n_sentences": rng.choice((2, 10))}


def _pairs(rng: random.Random) -> Any:
    def pair() -> Sequence[str]:
        return [f"{rng.randint(1, 2)}_{rng.choice(LABELS)}", f"{rng.randint(1, 2)}_grey boats sail"]

    return {
        "conversation": [
            {"utterance_ID": number, "text": "grey boats sail", "speaker": "A", "emotion": rng.choice(LABELS)}
            for number in (1, 2)
        ],
        "emotion-cause_pairs": [pair() for _ in range(rng.randint(0, 2))],
    }


def _hits(rng: random.Random) -> Any:
    return [{"id": each} for each in rng.sample("abcdef", rng.randint(0, 4))]


def _positives(rng: random.Random) -> Any:
    return {"positives": rng.sample("abcdef", rng.randint(0, 3))}


def _claim(rng: random.Random) -> Any:
    claim = {
        "verdict": rng.choice(("Supported", "Refuted", "Not Enough Evidence", None)),
        "evidence_sources": rng.choice((None, [], ["Annals of Ice"], ["Annals of Ice", "Sea Charts"])),
    }
    return {name: each for name, each in claim.items() if each is not None}


def _story(rng: random.Random) -> Any:
    people = [
        {"name": name, **({"archetype": rng.choice(("hero", "villain"))} if rng.random() < 0.7 else {})}
        for name in rng.sample(("Fox", "Owl", "Hare"), rng.randint(0, 3))
    ]
    return {"characters": people}


Maker: TypeAlias = Callable[[random.Random], Any]

MADE: Mapping[str, tuple[Callable[[], Evaluator], Maker, Maker]] = {
    "positive": (lambda: get_evaluator("classification", positive="joy"), _labels, _label),
    "ignore": (lambda: get_evaluator("classification", ignore=("neutral",)), _labels, _labels),
    "text": (lambda: get_evaluator("text", metrics=["exact_match", "f1", "rougeL", "bleu1"]), _text, _text),
    "segmentation": (lambda: get_evaluator("segmentation"), _boundaries, _boundaries),
    "emotion_cause": (lambda: get_evaluator("emotion_cause"), _pairs, _pairs),
    "retrieval skip": (lambda: get_evaluator("retrieval", k=[1, 3], unfilled_ranks="skip"), _positives, _hits),
    "retrieval": (lambda: get_evaluator("retrieval", k=[1, 3]), _positives, _hits),
    "fact_check": (lambda: get_evaluator("fact_check"), _claim, _claim),
    "narrative.characters": (lambda: get_evaluator("narrative.characters"), _story, _story),
}


@pytest.mark.parametrize("name", sorted(MADE))
@pytest.mark.parametrize("statistic", ["value", "mean"])
def test_what_is_compared_is_what_both_reports_show(name: str, statistic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimation, "resample_count", lambda *_: 20)  # no interval is looked at
    build, gold, answer = MADE[name]
    evaluator = build()
    for seed in range(12):
        rng = random.Random(seed)
        expected = [gold(rng) if rng.random() < 0.9 else None for _ in range(rng.randint(1, 9))]
        here, there = (_scored(evaluator, expected, answer, rng) for _ in range(2))
        for baseline in (there, CaseStatistics.of(there.records)):
            found = compare(here, baseline, statistic=statistic).metrics
            for metric in found.keys() - {"pass_rate"}:
                for result, compared in ((here, found[metric].value), (there, found[metric].baseline)):
                    if metric not in result.metrics:  # a label that only the other run has
                        continue
                    wanted = getattr(result.metrics[metric], statistic)
                    assert compared == (None if wanted is None else pytest.approx(wanted, abs=1e-9)), (seed, metric)
                assert not any("left out" in note for note in found[metric].notes)


def _scored(evaluator: Evaluator, expected: Sequence[Any], answer: Maker, rng: random.Random) -> Result:
    cases = [Case(str(n), expected=each, prediction=answer(rng)) for n, each in enumerate(expected)]
    result = score(evaluator, cases, confidence=None)
    assert not any(case.outcome == "errored" for case in result.cases), [case.reason for case in result.cases]
    return result


def test_a_case_that_errored_in_one_run_is_left_out_of_both() -> None:
    found = compare(run(["error", 1, 1]), run([0, 0, 1])).metrics["score"]
    assert (found.value, found.baseline) == (1, 0.5)
    assert any("1 case left out" in note for note in found.notes)
