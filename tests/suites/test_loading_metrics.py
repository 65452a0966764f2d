"""What a suite file may say about metrics: names, directions, families, and evaluators that share a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval import Case, ErrorBucket, Evaluator, Metric, Observation, SuiteError, Sums
from pytest_llmeval.core import CaseRecord, FloatArray, LabelTable, MetricTable, ReportTable, unknown_name
from pytest_llmeval.numbers import Threshold, summarize
from pytest_llmeval.suites import LoadedSuite, Registry


@dataclass(frozen=True)
class Nothing(Evaluator):
    """Declares metrics and measures nothing."""

    def describe(self) -> Sequence[Metric]:
        return [Metric("f1")]

    def measure(self, case: Case) -> Observation:
        return Observation({}, undefined={"f1": case.id})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"f1": sums["f1"]}


class Clash(Nothing):
    name = "clash"


class Errors(Nothing):
    name = "errors"

    def describe(self) -> Sequence[Metric]:
        return [Metric("error_rate", higher_is_better=False), Metric("error_rate[kind]", higher_is_better=False)]


class Passing(Nothing):
    name = "passing"

    def describe(self) -> Sequence[Metric]:
        return [Metric("pass_rate")]


@dataclass(frozen=True)
class Choosy(Nothing):
    name = "choosy"
    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"found share {self.share}, expected a number from 0 to 1")


@dataclass(frozen=True)
class Bucketed(Errors):
    name = "bucketed"
    metric: str = "error_rate"

    def error_buckets(self) -> Sequence[ErrorBucket]:
        if not self.metric:
            raise LookupError("which metric?")
        return [ErrorBucket("bad", self.metric, above=0.5)]


CASES = "[{id: a, expected: x, prediction: y}]"


def load(
    folder: Path, evaluators: str, rest: str = "", cases: str = CASES, more: type[Evaluator] = Clash
) -> LoadedSuite:
    registry = Registry.installed()
    for each in dict.fromkeys((Clash, Errors, Passing, Choosy, Bucketed, more)):
        registry.register(each)
    text = f"evaluators: {evaluators}\n{rest}\ncases: {cases}\n"
    return load_text(text, folder, registry=registry)


def faults(folder: Path, evaluators: str, rest: str = "", more: type[Evaluator] = Clash) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load(folder, evaluators, rest, more=more)
    return [str(fault) for fault in caught.value.faults]


TEXT = "{text: {metrics: [f1]}}"


def test_two_evaluators_with_the_same_metric_are_told_how_to_differ(tmp_path: Path) -> None:
    assert faults(tmp_path, f"[{TEXT}, clash]") == [
        (
            "s.eval.yaml:1:39  evaluators[1]: found metric 'f1', which 'text' reports too, expected distinct names: "
            "rename this evaluator with 'as'"
        )
    ]


def test_as_gives_an_evaluator_a_name_under_which_its_metrics_are_known(tmp_path: Path) -> None:
    suite = load(tmp_path, f"[{TEXT}, {{clash: {{as: other}}}}]", "thresholds: {other.f1: 0.5}\ngates: [other.f1 > 0]")
    assert list(suite.evaluators) == ["text", "other"]
    assert suite.thresholds == {"other.f1": Threshold(min=0.5)}


def test_the_name_of_the_pass_rate_is_taken(tmp_path: Path) -> None:
    assert faults(tmp_path, "[passing]") == [
        (
            "s.eval.yaml:1:14  evaluators[0]: found metric 'pass_rate', which 'the suite' reports too, "
            "expected distinct names: rename this evaluator with 'as'"
        )
    ]
    assert list(load(tmp_path, "[{passing: {as: mine}}]").evaluators) == ["mine"]


def test_a_bare_number_is_no_limit_where_lower_is_better(tmp_path: Path) -> None:
    found = "found a bare number, which is a minimum, but lower is better here, expected {max: 0.2}"
    assert faults(tmp_path, "[errors]", "thresholds: {error_rate: 0.2}") == [
        f"s.eval.yaml:2:26  thresholds.error_rate: {found}"
    ]
    assert faults(tmp_path, "[{errors: {as: e}}]", "thresholds: {e.error_rate: 0.2}") == [
        f"s.eval.yaml:2:28  thresholds['e.error_rate']: {found}"
    ]


def test_either_end_can_be_asked_for_where_lower_is_better(tmp_path: Path) -> None:
    suite = load(tmp_path, "[errors]", "thresholds: {error_rate: {max: 0.2}}\ngates: [error_rate <= 0.1]")
    assert suite.thresholds == {"error_rate": Threshold(max=0.2)}


def test_a_bare_number_is_no_limit_for_a_member_of_such_a_family(tmp_path: Path) -> None:
    assert "but lower is better here" in "".join(faults(tmp_path, "[errors]", "thresholds: {'error_rate[a b]': 0.2}"))


@pytest.mark.parametrize("metric", ["f1[joy]", "support[not good]", "f1[f1 [x]]", "accuracy"])
def test_any_member_of_a_family_can_be_named(tmp_path: Path, metric: str) -> None:
    suite = load(tmp_path, "[classification]", f"thresholds: {{'{metric}': 0.5}}\ngates: ['{metric} >= 0.5']")
    assert list(suite.thresholds) == [metric]


@pytest.mark.parametrize("metric", ["f1[joy", "f2[joy]", "f1", "c.f1[joy]", "accuracy[joy]"])
def test_what_is_no_member_of_a_family_is_unknown(tmp_path: Path, metric: str) -> None:
    found = faults(tmp_path, "[classification]", f"gates: ['{metric} >= 0.5']")
    assert len(found) == 1
    assert f"gates[0]: unknown metric {metric}" in found[0]


def test_metrics_of_an_evaluator_that_cannot_be_built_are_not_called_unknown(tmp_path: Path) -> None:
    known = sorted([*Registry.installed(), "bucketed", "choosy", "clash", "errors", "passing"])
    assert faults(tmp_path, "[clsh]", "gates: [f1 > 0]\nthresholds: {f1: 0.5}") == [
        f"s.eval.yaml:1:14  evaluators[0]: {unknown_name('evaluator', 'clsh', known)}"
    ]


def test_what_an_evaluator_says_of_its_options_is_told_with_their_place(tmp_path: Path) -> None:
    assert faults(tmp_path, "[{choosy: {share: 2}}]") == [
        "s.eval.yaml:1:23  evaluators[0].choosy: found share 2.0, expected a number from 0 to 1"
    ]
    assert faults(tmp_path, "[{choosy: {share: half}}]") == [
        "s.eval.yaml:1:31  evaluators[0].choosy.share: found the text 'half', expected a number"
    ]


@pytest.mark.parametrize("metric", ["error_rate", "error_rate[late]"])
def test_an_error_bucket_is_about_a_metric_or_a_member_of_a_family(tmp_path: Path, metric: str) -> None:
    suite = load(tmp_path, f"[{{bucketed: {{as: b, metric: '{metric}'}}}}]")
    assert [each.metric for each in suite.evaluators["b"].error_buckets()] == [metric]


@pytest.mark.parametrize(
    ("metric", "fault"),
    [
        (
            "eror_rate",
            "ValueError: error bucket 'bad': unknown metric eror_rate, did you mean error_rate?",
        ),
        ("", "LookupError: which metric?"),
    ],
)
def test_an_error_bucket_that_could_never_be_filled_is_a_fault_of_the_suite(
    tmp_path: Path, metric: str, fault: str
) -> None:
    (found,) = faults(tmp_path, f"[{{bucketed: {{metric: '{metric}'}}}}]")
    told, _, place = found.partition(" (tests/")  # where an evaluator's own code raised
    assert told == f"s.eval.yaml:1:25  evaluators[0].bucketed: evaluator 'bucketed' cannot be built: {fault}"
    assert place.endswith(" in error_buckets)") == (not metric)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (
            MetricTable("k", ("task", "value"), [(("all",), ("f2",))]),
            "table 'k': unknown metric f2, did you mean f1?",
        ),
        (
            LabelTable("by label", "label", {"F1": "f1[label]"}),
            "table 'by label': unknown metric f1[label], expected one of f1",
        ),
    ],
)
def test_a_table_of_a_metric_that_nobody_reports_is_a_fault_of_the_suite(
    tmp_path: Path, table: ReportTable, fault: str
) -> None:
    class Tabled(Nothing):
        name = "tabled"

        def tables(self) -> Sequence[ReportTable]:
            return [table]

    (found,) = faults(tmp_path, "[tabled]", more=Tabled)
    assert found == f"s.eval.yaml:1:14  evaluators[0]: evaluator 'tabled' cannot be built: ValueError: {fault}"


def test_an_evaluator_is_asked_for_its_metrics_as_often_for_many_cases_as_for_one(tmp_path: Path) -> None:
    asked = []

    class Counting(Errors):
        name = "counting"

        def describe(self) -> Sequence[Metric]:
            asked.append(self.name)
            return super().describe()

        def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
            return {"error_rate": sums["n"]}

    cases = ", ".join(f"{{id: c{each}, prediction: x, thresholds: {{error_rate: {{max: 1}}}}}}" for each in range(50))
    gates = "gates: [error_rate <= 1, 'error_rate[late] <= 1']"
    suite = load(tmp_path, "[counting]", gates, f"[{cases}]", Counting)
    records = [CaseRecord(case.id, observations={"counting": Observation({"n": 1})}) for case in suite.cases]
    result = summarize(suite.metrics, records, group_by=("kind",), confidence=None)
    assert result.metrics["error_rate"].value == 50
    assert suite.metrics.lower_is_better("error_rate[late]")
    assert len(asked) == 2  # once to check the file, once for the suite
