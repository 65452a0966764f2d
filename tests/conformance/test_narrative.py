import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.tasks.narrative._alignment import overlap_ratio
from pytest_llmeval.tasks.narrative._composite import COMPONENTS, Narrative
from pytest_llmeval.tasks.narrative._document import (
    calculate_precision_recall_f1,
    calculate_set_metrics,
    handle_missing_ground_truth,
)
from pytest_llmeval.tasks.narrative.labels import narrative_taxonomy

FOLDER = CONFORMANCE / "narrative"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

TOLERANCE = 1e-9


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


@cache
def units() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / "units.json").read_text("utf-8"))
    return data


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """Recorded cases by id, each with its gold document."""
    golds = {row["story_id"]: row["gold"] for row in lines("stories.jsonl")}
    return {
        row["id"]: row | {"gold": golds[row["story_id"]] | row.get("gold_override", {})} for row in lines("cases.jsonl")
    }


@pytest.fixture(scope="module")
def results(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    evaluator = Narrative()
    return {name: evaluator.evaluate(row["prediction"], row["gold"]) for name, row in rows.items()}


def differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where values differ; what is not expected is not looked at."""
    if isinstance(expected, Mapping):
        return [
            each
            for key, value in expected.items()
            for each in (differences(found[key], value, f"{path}.{key}") if key in found else [f"{path}.{key} absent"])
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(found, expected, strict=True))
        return [each for place, pair in pairs for each in differences(*pair, f"{path}[{place}]")]
    if path.endswith(".gt_incomplete"):
        # Recorded per prediction: false where a silent prediction leaves a gap of the ground truth unnoticed.
        return [] if found or not expected else [f"{path}: found {found!r}, expected {expected!r}"]
    is_number = isinstance(expected, (int, float)) and not isinstance(expected, bool)
    equal = found is not None and abs(found - expected) <= TOLERANCE if is_number else found == expected
    return [] if equal else [f"{path}: found {found!r}, expected {expected!r}"]


def test_every_recorded_field_of_every_case_is_given(
    rows: dict[str, dict[str, Any]], results: dict[str, dict[str, Any]]
) -> None:
    assert len(rows) > 100
    faults = {name: found for name, row in rows.items() if (found := differences(results[name], row["expected"]))}
    assert faults == {}


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_alone_gives_what_the_composite_gives(
    rows: dict[str, dict[str, Any]], results: dict[str, dict[str, Any]], component: str
) -> None:
    alone = get_evaluator(f"narrative.{component}")
    for name, row in rows.items():
        assert alone.evaluate(row["prediction"], row["gold"]) == results[name]["detailed_results"][component], name


def recorded_means() -> tuple[list[str], dict[str, Any]]:
    data = json.loads((FOLDER / "aggregate.json").read_text("utf-8"))
    return data["case_ids"], data["expected"]


def test_aggregate_results_gives_the_recorded_means(results: dict[str, dict[str, Any]]) -> None:
    case_ids, expected = recorded_means()
    found = Narrative().aggregate_results([results[each] for each in case_ids])
    assert differences(found, expected) == []


def test_the_means_of_a_suite_are_the_recorded_ones(rows: dict[str, dict[str, Any]]) -> None:
    case_ids, expected = recorded_means()
    cases = [Case(id=each, expected=rows[each]["gold"], prediction=rows[each]["prediction"]) for each in case_ids]
    metrics = score(Narrative(), cases, confidence=None).metrics
    assert differences(metrics["overall_score"].mean, expected["overall_score"]) == []
    for component, mean in expected["component_scores"].items():
        assert differences(metrics[f"narrative_{component}"].mean, mean) == []


@pytest.mark.parametrize("component", [None, *COMPONENTS])
def test_no_case_leaves_a_metric_undefined_without_a_reason(
    rows: dict[str, dict[str, Any]], component: str | None
) -> None:
    evaluator = get_evaluator("narrative" if component is None else f"narrative.{component}")
    for name, row in rows.items():
        observation = evaluator.measure(Case(id=name, expected=row["gold"], prediction=row["prediction"]))
        undefined = {metric for metric, value in evaluator.scores(observation).items() if value is None}
        assert undefined == set(observation.undefined), name
        assert observation.fault() is None
        assert observation.malformed is None


def test_missing_ground_truth_is_handled_as_recorded() -> None:
    for row in units()["handle_missing_ground_truth"]:
        found = handle_missing_ground_truth(row["prediction"], row["ground_truth"], "some field")
        assert {key: found[key] for key in row["expected"]} == row["expected"], row


def test_precision_recall_and_f1_are_the_recorded_ones() -> None:
    for row in units()["precision_recall_f1"]:
        found = calculate_precision_recall_f1(row["tp"], row["fp"], row["fn"])
        assert found == pytest.approx(row["expected"], abs=TOLERANCE), row


def test_set_metrics_are_the_recorded_ones() -> None:
    for row in units()["set_metrics"]:
        found = calculate_set_metrics(row["prediction"], row["ground_truth"], row["gt_incomplete"])
        assert differences(found, row["expected"]) == [], row


def test_overlap_ratios_are_the_recorded_ones() -> None:
    for row in units()["overlap_ratio"]:
        found = overlap_ratio(tuple(row["a"]), tuple(row["b"]))
        assert found == pytest.approx(row["expected"], abs=TOLERANCE), row


def test_polarities_are_the_recorded_ones() -> None:
    taxonomy = narrative_taxonomy()
    assert {label: taxonomy.polarity(label) for label in units()["polarity"]} == units()["polarity"]
