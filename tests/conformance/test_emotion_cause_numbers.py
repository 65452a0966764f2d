import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.tasks.emotion_cause._pairs import (
    clean_span,
    format_pair,
    locate_span,
    parse_internal,
    validate_submission,
    whole_number,
)
from pytest_llmeval.tasks.emotion_cause._scores import EMOTIONS, SCORED

FOLDER = CONFORMANCE / "emotion_cause"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

SPELLINGS = {"s1-capitalised_emotion", "s1-U_prefix_on_cause", "s2-capitalised_emotion", "s2-cause_with_U_prefix"}
"""Rejected by the official script, read here: the spelling of the requirement document."""

ODDITIES = {"s2-pair_with_three_items", "s2-cause_with_span"}
"""Read by the official script as something that nobody means, rejected here."""

REVERSED = {"s1-degenerate_reversed_spans"}
"""Accepted by the official script; here the spans that end before they start fail their case."""

PAIR_NAMES = {f"{part}_pair": f"pair_{part}" for part in ("precision", "recall", "f1")}


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


@cache
def gold(subtask: int) -> dict[int, dict[str, Any]]:
    conversations = json.loads((FOLDER / "gold.json").read_text("utf-8"))[f"subtask{subtask}"]
    return {each["conversation_ID"]: each for each in conversations}


def cases(row: dict[str, Any]) -> list[Case]:
    predicted = {whole_number(each["conversation_ID"]): each for each in row["predictions"]}
    override = row.get("gold_pairs_override", {})
    out = []
    for number in row["gold_ids"]:
        expected = dict(gold(row["subtask"])[number])
        expected["emotion-cause_pairs"] = override.get(str(number), expected["emotion-cause_pairs"])
        out.append(Case(id=str(number), expected=expected, prediction=predicted[number]))
    return out


def values(row: dict[str, Any]) -> dict[str, float | None]:
    result = score(get_evaluator("emotion_cause", subtask=row["subtask"]), cases(row), confidence=None)
    assert all(case.reason is None for case in result.cases) == (row["id"] not in REVERSED), row["id"]
    return {name: metric.value for name, metric in result.metrics.items()}


def agree(found: Any, expected: Any, where: Any) -> None:
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9, rel=0)), where


def test_scores_are_those_of_the_official_script() -> None:
    for row in read("cases.jsonl"):
        found = values(row)
        for name, expected in row["expected"].items():
            agree(found[PAIR_NAMES.get(name, name.lower())], expected, (row["id"], name))


def test_submissions_are_rejected_that_the_official_script_stops_at() -> None:
    for row in read("errors.jsonl"):
        chosen = [gold(row["subtask"])[number] for number in row["gold_ids"]]
        faults = validate_submission(row["predictions"], row["subtask"], chosen)
        rejected = (row["expected_error"] is not None or row["id"] in ODDITIES) and row["id"] not in SPELLINGS
        assert bool(faults) == rejected, (row["id"], faults)


def test_accepted_files_among_the_malformed_ones_have_the_official_scores() -> None:
    checked = []
    for row in read("errors.jsonl"):
        if row["expected"] is not None and row["id"] not in ODDITIES:
            found = values(row)
            for name, expected in row["expected"].items():
                agree(found[PAIR_NAMES.get(name, name.lower())], expected, (row["id"], name))
            checked.append(row["id"])
    assert checked == ["s2-cause_is_an_integer"]


def test_a_malformed_pair_names_conversation_and_pair_and_fails_its_case_only() -> None:
    for row in read("errors.jsonl"):
        numbers = {whole_number(each["conversation_ID"]) for each in row["predictions"]}
        chosen = [gold(row["subtask"])[number] for number in row["gold_ids"]]
        faults = validate_submission(row["predictions"], row["subtask"], chosen)
        if numbers < set(row["gold_ids"]) or not any(fault.position for fault in faults):
            continue
        result = score(get_evaluator("emotion_cause", subtask=row["subtask"]), cases(row), confidence=None)
        failed = {case.id: case.reason for case in result.cases if case.reason is not None}
        assert failed == {str(fault.conversation): str(fault) for fault in faults}
        (reason,) = failed.values()
        assert reason.startswith(f"conversation {faults[0].conversation}, pair {faults[0].position} "), row["id"]


def test_gold_spans_are_cleaned_and_located_by_the_official_rule() -> None:
    for row in read("span_positions.jsonl"):
        assert clean_span(row["span"]) == row["cleaned"], row
        assert list(locate_span(row["span"], row["utterance"])) == row["position"], row


def two_step_cases(row: dict[str, Any]) -> list[Case]:
    gold_pairs: dict[int, list[list[str]]] = {}
    candidates: dict[int, list[list[str]]] = {}
    keep: dict[int, list[int]] = {}
    for raw in row["true_pairs"]:
        number, pair = parse_internal(raw)
        gold_pairs.setdefault(number, []).append(format_pair(pair))
    for raw, kept in zip(row["candidate_pairs"], row["keep"], strict=True):
        number, pair = parse_internal(raw)
        candidates.setdefault(number, []).append(format_pair(pair))
        keep.setdefault(number, []).append(kept)
    return [
        Case(
            id=str(number),
            expected=gold_pairs.get(number, []),
            prediction={"candidates": candidates.get(number, []), "keep": keep.get(number, [])},
        )
        for number in sorted({*gold_pairs, *candidates})
    ]


def flat_two_step(expected: dict[str, Any]) -> Iterable[tuple[str, float]]:
    """Yield the recorded scores by the names that they have here."""
    yield "keep_rate", expected["keep_rate"]
    for step in ("filtered", "all"):
        for part, value in expected[step].items():
            yield f"{step}_{part}", value
        for name, value in expected[f"{step}_by_emotion"].items():
            if name == "f1":
                yield from ((f"{step}_f1[{emotion}]", each) for emotion, each in value.items())
            else:
                yield name.replace("weighted_", f"weighted_{step}_"), value


def test_scores_of_two_steps_are_those_of_the_project() -> None:
    evaluator = get_evaluator("emotion_cause", subtask=2, two_step=True)
    names = set()
    for row in read("builtin.jsonl"):
        if row["kind"] == "step2":
            found = score(evaluator, two_step_cases(row), confidence=None).metrics
            for name, expected in flat_two_step(row["expected"]):
                agree(found[name].value, expected, (row["id"], name))
                names.add(name)
    assert len(names) == 1 + 2 * (3 + 6 + 6)


def utterance_cases(row: dict[str, Any], label: Callable[[int], Any]) -> list[Case]:
    return [
        Case(id=str(place), expected=list(map(label, right[:length])), prediction=list(map(label, answered[:length])))
        for place, (right, answered, length) in enumerate(zip(row["true"], row["pred"], row["doc_len"], strict=True))
    ]


def test_scores_of_single_utterances_are_those_of_classification() -> None:
    """The project adds 1e-8 to every denominator, classification nothing: the scores agree to 1e-7."""
    binary = get_evaluator("classification", labels=["emotion", "none"], positive="emotion")
    emotions = get_evaluator("classification", labels=list(EMOTIONS))
    for row in read("builtin.jsonl"):
        if row["kind"] != "step1":
            continue
        expected = row["expected"]
        two = score(binary, utterance_cases(row, lambda each: "emotion" if each else "none"), confidence=None).metrics
        for part, value in expected["binary"].items():
            assert two[f"positive_{part}"].value == pytest.approx(value, abs=1e-7, rel=0), (row["id"], part)
        seven = score(emotions, utterance_cases(row, EMOTIONS.__getitem__), confidence=None).metrics
        for emotion, value in expected["emotion_f1"].items():
            assert seven[f"f1[{emotion}]"].value == pytest.approx(value, abs=1e-7, rel=0), (row["id"], emotion)
        weighted = expected["emotion_weighted_f1"]
        assert seven["f1_weighted"].value == pytest.approx(weighted, abs=1e-7, rel=0), row["id"]


def test_f1_of_each_emotion_is_what_the_weighted_average_is_made_of() -> None:
    evaluator = get_evaluator("emotion_cause", subtask=2)
    for row in read("cases.jsonl"):
        if row["subtask"] == 2 and row["level"] == "medium":
            listed = cases(row)
            pairs = {(case.id, *map(str, pair)) for case in listed for pair in case.expected["emotion-cause_pairs"]}
            found = score(evaluator, listed, confidence=None).metrics
            share = {each: sum(pair[1].endswith(each) for pair in pairs) / len(pairs) for each in SCORED}
            average = sum(share[each] * (found[f"pair_f1[{each}]"].value or 0.0) for each in SCORED)
            agree(average, row["expected"]["weighted_f1"], row["id"])
