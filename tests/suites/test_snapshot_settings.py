"""The key ``snapshot`` of a suite file, and what makes runs of a suite comparable."""

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from project import load_text

from pytest_llmeval import Case, Evaluator
from pytest_llmeval.baselines import fingerprint
from pytest_llmeval.baselines._comparable import Comparable, SuiteIdentity
from pytest_llmeval.core import SuiteError
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.suites import LoadedSuite, Registry, SnapshotSettings, Tolerance, load_suite
from pytest_llmeval.suites._schema import suite_schema


def load(folder: Path, snapshot: str) -> LoadedSuite:
    evaluators, cases = "[{text: {metrics: [f1, rougeL]}}]", "[{id: a, expected: x, prediction: x}]"
    return load_text(f"evaluators: {evaluators}\nsnapshot: {snapshot}\ncases: {cases}\n", folder)


@pytest.mark.parametrize(
    ("written", "settings"),
    [
        ("null", None),
        ("true", SnapshotSettings()),
        ("false", SnapshotSettings(enabled=False)),
        ("{}", SnapshotSettings()),
        ("{tolerance: 0.01}", SnapshotSettings(tolerance=Tolerance(0.01))),
        (
            "{tolerance: {f1: 0.02, rougeL: {relative: 0.05}, pass_rate: 1}}",
            SnapshotSettings(
                tolerances={"f1": Tolerance(0.02), "rougeL": Tolerance(relative=0.05), "pass_rate": Tolerance(1.0)}
            ),
        ),
        (
            "{metrics: [f1], not_comparable: warn, history: 3}",
            SnapshotSettings(metrics=("f1",), not_comparable="warn", history=3),
        ),
    ],
)
def test_snapshot_says_what_is_kept_and_what_may_fall(
    tmp_path: Path, written: str, settings: SnapshotSettings | None
) -> None:
    assert load(tmp_path, written).snapshot == settings


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("yes", "s.eval.yaml:2:11  snapshot: found the text 'yes', expected a mapping"),
        (
            "{tolerances: 1}",
            "snapshot.tolerances: unknown key tolerances, did you mean tolerance?",
        ),
        ("{tolerance: -1}", "snapshot.tolerance: found -1.0, expected a number of at least 0"),
        ("{tolerance: .inf}", "snapshot.tolerance: found"),
        ("{tolerance: a}", "snapshot.tolerance: found the text 'a', expected a number"),
        (
            "{tolerance: {f2: 1}}",
            "snapshot.tolerance.f2: unknown metric f2, did you mean f1?",
        ),
        ("{tolerance: {f1: {absolute: 1}}}", "snapshot.tolerance.f1.absolute: unknown key absolute"),
        ("{tolerance: {f1: {relative: -1}}}", "snapshot.tolerance.f1.relative: found -1.0"),
        ("{metrics: []}", "snapshot.metrics: found an empty list, expected at least one metric"),
        ("{metrics: [f1, bleu]}", "snapshot.metrics[1]: unknown metric bleu"),
        ("{not_comparable: ignore}", "snapshot.not_comparable: found the text 'ignore', expected one of 'fail'"),
        ("{history: 0}", "snapshot.history: found 0, expected 1 to 1000"),
    ],
)
def test_a_fault_of_snapshot_is_told_with_its_place(tmp_path: Path, written: str, fault: str) -> None:
    with pytest.raises(SuiteError) as raised:
        load(tmp_path, written)
    assert fault in str(raised.value)


def test_an_id_that_reads_like_a_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text("evaluators: [text]\ncases: [{id: 'snapshot[f1]', prediction: x}, {id: b, prediction: x}]\n")
    suite = load_suite(path, Registry.installed(), root=tmp_path)
    assert "expected one that does not begin with 'gate[' or 'snapshot['" in str(suite.faults[0])


def test_the_schema_knows_snapshot() -> None:
    schema = suite_schema(Registry.installed())
    suite: dict[str, Any] = {"evaluators": ["text"]}
    validator = jsonschema.Draft202012Validator(schema)
    for good in (True, {"tolerance": {"f1": {"relative": 0.1}}}, {"tolerance": 0.1, "not_comparable": "warn"}):
        validator.validate({**suite, "snapshot": good})
    for bad in ("yes", {"tolerance": -1}, {"tolerance": {"f1": {"absolute": 1}}}, {"not_comparable": "no"}):
        assert not validator.is_valid({**suite, "snapshot": bad})


CASES = (Case("a", "in", "gold", "x", {"kind": "k"}), Case("b", "in", ["gold"], "y", {}))


def comparable(*cases: Case, evaluators: dict[str, Evaluator] | None = None, **parts: Any) -> Comparable:
    return SuiteIdentity(
        LoadedSuite("s", Path("s.eval.yaml"), evaluators=evaluators or {}, cases=cases or CASES, **parts)
    ).comparable()


def test_order_and_predictions_of_cases_change_nothing() -> None:
    assert comparable(*reversed(CASES)) == comparable()
    assert comparable(*(case.answered("other") for case in CASES)) == comparable()


@pytest.mark.parametrize("change", [{"input": "other"}, {"expected": "other"}, {"labels": {"kind": "l"}}])
def test_other_data_of_the_same_cases_is_told_apart(change: dict[str, Any]) -> None:
    other = comparable(replace(CASES[0], **change), CASES[1])
    assert (other.cases, other.data != comparable().data) == (comparable().cases, True)


def test_other_cases_are_told_apart() -> None:
    assert comparable(CASES[0]).cases != comparable().cases


def test_only_effective_thresholds_count() -> None:
    assert comparable().thresholds == ""
    shared = comparable(thresholds={"f1": Threshold(0.5)})
    own = comparable(*(replace(case, thresholds={"f1": Threshold(0.5)}) for case in CASES))
    assert shared.thresholds == own.thresholds != ""


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Odd(Evaluator):
    """Options of every kind."""

    name = "odd"
    version = "7"
    metrics: tuple[str, ...] = ()
    colour: Colour = Colour.RED
    names: frozenset[str] = frozenset()
    function: Any = None
    nested: Any = None
    listed: list[int] = field(default_factory=list)
    path: str | None = field(default=None, metadata={"path": True})

    describe = measure = summarize = None  # type: ignore[assignment]  # nothing of it is run

    def __post_init__(self) -> None:
        pass


Odd.__abstractmethods__ = frozenset()


def options(**given: Any) -> Any:
    return comparable(evaluators={"x": Odd(**given)}).evaluators["x"].options


def test_an_evaluator_is_known_by_name_version_and_options_that_are_not_defaults() -> None:
    assert comparable(evaluators={"x": Odd()}).evaluators["x"].version == "7"
    assert options(metrics=("f1",), colour=Colour.RED, listed=[]) == {}
    assert options(names=frozenset("cab"), listed=[1], nested=Case("a", input={1: 2.5})) == {
        "names": ["a", "b", "c"],
        "listed": [1],
        "nested": {
            "id": "a", "input": {"1": 2.5}, "expected": None, "prediction": "missing", "labels": {}, "tags": [],
            "thresholds": {}, "line": 0, "checks": [],
        },
    }  # fmt: skip
    assert options(function=fingerprint, nested=object()) == {
        "function": "pytest_llmeval.baselines._comparable.fingerprint",
        "nested": "builtins.object",
    }


def test_a_file_is_known_by_its_place_beside_the_suite_and_its_content(tmp_path: Path) -> None:
    def named(path: str) -> str:
        suite = LoadedSuite("s", tmp_path / "evals" / "s.eval.yaml", evaluators={"x": Odd(path=path)}, cases=CASES)
        text: str = SuiteIdentity(suite).comparable().evaluators["x"].options["path"]
        return text

    labels = tmp_path / "labels.csv"
    labels.write_text("a")
    first = named(str(labels))
    assert first.startswith("../labels.csv sha256:")
    labels.write_text("b")
    assert named(str(labels)) != first
    assert named(str(tmp_path)) == ".."


def test_a_judge_is_part_of_what_must_be_the_same() -> None:
    suite = LoadedSuite("s", Path("s.eval.yaml"), evaluators={}, cases=CASES)
    assert SuiteIdentity(suite).comparable({"judge": {"model": "m", "prompt": "p"}}).judges == {
        "judge": {"model": "m", "prompt": "p"}
    }


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert fingerprint({"b": [1, 2.5, None], "a": "ü"}) == fingerprint({"a": "ü", "b": [1, 2.5, None]})
    assert fingerprint(["x"]) == "sha256:cd65ea2c2ad99e94a85b1b6df72efef9"
