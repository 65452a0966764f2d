"""Options of the whole evaluation: names, events, the score of relationships, components of a user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval import Case, Evaluator, Metric, Observation, get_evaluator, score
from pytest_llmeval.core import SuiteError
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.tasks.narrative._composite import Narrative

if TYPE_CHECKING:
    from pytest_llmeval.core import FloatArray, Sums


@dataclass(frozen=True)
class Themes(Evaluator):
    """The share of the themes of a story that are found."""

    name = "themes"

    def describe(self) -> Sequence[Metric]:
        return [Metric("theme_recall")]

    def measure(self, case: Case) -> Observation:
        gold = set(case.expected.get("themes", ()))
        if not gold:
            return Observation({}, undefined={"theme_recall": "no themes"})
        return Observation({"found": len(gold & set(case.prediction.get("themes", ()))), "gold": len(gold)})

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        return {"theme_recall": sums["found"] / sums["gold"]}


GOLD = {"characters": [{"name": "Mira", "alias": "the miller"}], "themes": ["greed", "luck"]}


def relationship(level1: str) -> dict[str, str]:
    return {"agent": "A", "target": "B", "relationship_level1": level1}


def events(*names: str) -> dict[str, Any]:
    return {"narrative_events": [{"id": name} for name in names]}


def test_strict_matching_knows_main_names_only() -> None:
    for name, metric in (("characters", "character_f1"), ("relationships", "relationship_f1")):
        gold = GOLD | {"narrative_events": [{"id": 1, "relationships": [{"agent": "Mira", "target": "B"}]}]}
        predicted = {
            "characters": [{"name": "the miller", "alias": "Mira"}],
            "narrative_events": [{"id": 1, "relationships": [{"agent": "the miller", "target": "B"}]}],
        }
        values = [
            get_evaluator(f"narrative.{name}", match=match).evaluate(predicted, gold)[metric]
            for match in ("aliases", "strict")
        ]
        assert values == [1, 0]


def test_strict_matching_excludes_fuzzy_names() -> None:
    with pytest.raises(ValueError, match=r"^fuzzy: found 0.8 with match: strict, expected match: aliases$"):
        Narrative(fuzzy=0.8, match="strict")


def test_an_unknown_way_of_matching_is_named() -> None:
    with pytest.raises(ValueError, match=r"match: .*strikt.*strict"):
        Narrative(match="strikt")  # type: ignore[arg-type]


def test_hallucinated_events_lower_precision_and_are_counted() -> None:
    cases = [
        Case(id="a", expected=events("a", "b"), prediction=events("a", "x", "y")),
        Case(id="b", expected=events("a"), prediction=events("a")),
        Case(id="c", expected={"characters": [{"name": "A"}]}, prediction=events("z")),
    ]
    metrics = score(Narrative(), cases, confidence=None).metrics
    values = {name: metrics[f"event_{name}"].value for name in ("precision", "recall", "f1")}
    assert values == {"precision": 2 / 4, "recall": 2 / 3, "f1": pytest.approx(4 / 7)}
    assert metrics["extra_events"].value == 2
    assert metrics["extra_events"].undefined == 1


def test_labelled_relationships_may_be_the_score() -> None:
    gold, predicted = (
        {"narrative_events": [{"id": 1, "relationships": [relationship(level1)]}]} for level1 in ("Romance", "Neutral")
    )
    assert Narrative().evaluate(predicted, gold)["overall_score"] == 1
    found = Narrative(relationship_score="labelled").evaluate(predicted, gold)
    assert (found["overall_score"], found["component_scores"]["relationships"]) == (0, 0)


@pytest.mark.parametrize("given", [Themes(), "test_narrative_options:Themes"])
def test_a_users_component_is_part_of_the_overall_score_by_weight(given: Any) -> None:
    predicted = {"characters": [{"name": "Mira"}], "themes": ["luck"]}
    found = Narrative(components={"themes": given}).evaluate(predicted, GOLD)
    assert found["component_scores"]["themes"] == 0.5
    assert found["detailed_results"]["themes"]["theme_recall"] == 0.5
    assert found["overall_score"] == 0.75
    weighted = Narrative(components={"themes": given}, weights={"themes": 3}).evaluate(predicted, GOLD)
    assert weighted["overall_score"] == pytest.approx((1 + 3 * 0.5) / 4)


def test_a_component_may_be_an_evaluator_of_a_conftest(tmp_path: Path) -> None:
    registry = Registry.installed()
    registry.register(Themes)
    path = tmp_path / "s.eval.yaml"
    path.write_text(
        "evaluators: [{narrative: {components: {themes: themes}}}]\n"
        "cases: [{id: a, expected: {themes: [luck]}, prediction: {themes: [luck]}}]\n"
    )
    suite = load_suite(path, registry, root=tmp_path)
    assert "narrative_themes" in [metric.name for metric in suite.evaluators["narrative"].describe()]
    with pytest.raises(SuiteError, match="unknown evaluator themes, expected one of"):
        load_suite(path, Registry.installed(), root=tmp_path)


def test_a_users_component_without_ground_truth_is_left_out() -> None:
    evaluator = Narrative(components={"themes": Themes()})
    cases = [
        Case(id="a", expected=GOLD, prediction={"themes": ["luck"]}),
        Case(id="b", expected={"characters": [{"name": "A"}]}, prediction={"characters": [{"name": "A"}]}),
        Case(id="c", expected={"themes": ["luck"]}, prediction={"themes": ["luck"]}),
    ]
    metrics = score(evaluator, cases, confidence=None).metrics
    assert metrics["narrative_themes"].value == 2 / 3
    assert metrics["narrative_themes"].undefined == 1
    assert metrics["overall_score"].mean == pytest.approx((0.25 + 1 + 1) / 3)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({"characters": Themes()}, "found the name 'characters', expected a new one"),
        ({"themes": 3}, "components.themes: found 3, expected an evaluator or its name"),
        ({"themes": "nowhere:Themes"}, "components.themes: 'nowhere:Themes'"),
        ({"themes": "json:JSONDecoder"}, "found 'json:JSONDecoder', expected a subclass of Evaluator"),
    ],
)
def test_an_impossible_component_is_refused(components: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Narrative(components=components)


def test_a_weight_of_an_unknown_component_is_refused() -> None:
    with pytest.raises(ValueError, match=r"theme, did you mean themes"):
        Narrative(components={"themes": Themes()}, weights={"theme": 1})
