"""Fixtures of runs with ``--llmeval``; fixtures of the same name in plugins, conftests and tests win."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.plugin._pytest_private import fixture_functions

if TYPE_CHECKING:
    from pytest_llmeval.core import Evaluator
    from pytest_llmeval.plugin._evaluate import AskJudge, EvalCase, Evaluate
    from pytest_llmeval.plugin._score_snapshot import ScoreSnapshot


@pytest.fixture
def eval_case(request: pytest.FixtureRequest) -> "EvalCase":
    """The case under test, in a test marked ``@pytest.mark.llmeval("suite.eval.yaml")`` or in a fixture of a suite."""
    return _case_of_fixture(request, "eval_case")


@pytest.fixture
def case(request: pytest.FixtureRequest) -> "EvalCase":
    """The case under test, in a test over a suite: ``@support.test``, or marked ``llmeval("suite.eval.yaml")``."""
    return _case_of_fixture(request, "case")


def _case_of_fixture(request: pytest.FixtureRequest, fixture: str) -> "EvalCase":
    """The case behind the fixtures ``case`` and ``eval_case``; fails a test that runs over no suite."""
    from pytest_llmeval.plugin._payload import case_of

    item = request.node
    faults = getattr(request, "param", None)
    if isinstance(faults, Exception):
        raise pytest.fail.Exception(str(faults), pytrace=False)
    loaded = case_of(item)
    if loaded is None:
        mark = item.get_closest_marker("llmeval")
        marker = f"; found the marker with {', '.join(mark.kwargs)}=" if mark is not None and mark.kwargs else ""
        raise pytest.fail.Exception(
            f"{item.nodeid}: {fixture} needs the marker @pytest.mark.llmeval('suite.eval.yaml') on the test, or, "
            "for cases in Python, support = ev.suite('support', cases=...) and @support.test" + marker,
            pytrace=False,
        )
    if getattr(item, "bulk", ()):
        raise pytest.fail.Exception(
            f"{item.nodeid}: {fixture} is one case, but mode: bulk runs all of them in one item", pytrace=False
        )
    from pytest_llmeval.plugin._evaluate import EvalCase

    return EvalCase(request, loaded)


@pytest.fixture
def llmeval_target() -> "Callable[[Any], Any] | None":
    """Override this in a conftest to return what answers a case's input; ``None`` means the suite's own target.

    A parametrised override makes a model matrix: every parameter has its own metrics, gates and reports.
    """
    return None


@pytest.fixture
def judge_client() -> Any:
    """Override this in a conftest to return your own judge; ``None`` means the one that the suite names.

    A judge is anything with a method ``complete``, or a callable: it gets a `JudgeRequest`, whose ``str()`` is the
    whole prompt, and returns (or awaits) text or a `JudgeReply`. It is asked only for verdicts that are stored nowhere.
    """
    return None


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> "AskJudge":
    """A cached judge for Python tests: ``judge(question, answer, reference=..., mode=...)`` returns a verdict.

    Who judges is said on the command line or in pytest's configuration, or by the fixture ``judge_client``. Recorded
    judgements lie in ``__llmeval__/`` next to the test file.
    """
    from pytest_llmeval.plugin._evaluate import AskJudge

    asking = AskJudge(request)
    asking.require_model()
    return asking


@pytest.fixture
def evaluators(request: pytest.FixtureRequest) -> "Mapping[str, Evaluator]":
    """Evaluators by name; in a suite, its own come with the options of the file."""
    from pytest_llmeval.plugin._evaluate import EvaluatorsByName
    from pytest_llmeval.plugin._payload import case_of

    loaded = case_of(request.node)
    return EvaluatorsByName(loaded.suite.evaluators if loaded is not None else {})


@pytest.fixture
def evaluate(request: pytest.FixtureRequest) -> "Evaluate":
    """Scores in any test: ``evaluate.text(answer, expected)["f1"]``, ``evaluate.checks(answer, {"contains": "x"})``.

    All evaluators are there by name; options are keyword arguments. What a test scores is listed
    at the end of the run and stands in JUnit files; a failing test shows what is wrong.
    """
    from pytest_llmeval.plugin._evaluate import Evaluate

    return Evaluate(request)


@pytest.fixture
def score_snapshot(request: pytest.FixtureRequest) -> "ScoreSnapshot":
    """Compares scores with those that were approved with ``--snapshot-update``."""
    from pytest_llmeval.plugin._score_snapshot import ScoreSnapshot

    return ScoreSnapshot(request.node)


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> "partial[Any]":
    """Judges the results of another runner: ``gate(report, "accuracy >= 0.8")``; see `pytest_llmeval.gate`.

    Without gates, they are compared with those that were approved with ``--snapshot-update``; their scores are in
    ``__llmeval__/`` next to the test file, under the name of the test.
    """
    approve = bool(request.config.getoption("update_snapshots", False))
    return partial(
        import_module("pytest_llmeval").gate, folder=request.path.parent, name=request.node.name, approve=approve
    )


FIXTURES = {
    "case": case,
    "eval_case": eval_case,
    "evaluate": evaluate,
    "evaluators": evaluators,
    "gate": gate,
    "judge": judge,
    "judge_client": judge_client,
    "llmeval_target": llmeval_target,
    "score_snapshot": score_snapshot,
}
"""Name to fixture."""


_FOR_TESTS = ("case", "eval_case", "evaluate", "evaluators", "gate", "judge", "score_snapshot")
"""Fixtures that tests use, while users override the others."""


def replacement_notes(item: pytest.Function, error: BaseException) -> Iterator[str]:
    """Name the fixtures of the user's that a failing test used as ours of the same name."""
    if not isinstance(error, TypeError | AttributeError):
        return
    for name in _FOR_TESTS:
        function = fixture_functions(item, name)[-1:]
        if name not in item.funcargs or not function or function[0].__module__.startswith("pytest_llmeval."):
            continue
        if _is_about(error, item.funcargs[name]):
            code = unwrap(function[0]).__code__
            place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
            yield f"{name} is your fixture in {place}, which replaces that of pytest-llmeval: rename yours"


def _is_about(error: TypeError | AttributeError, value: object) -> bool:
    """Whether an error says that a fixture's value lacks an attribute, or cannot be called so."""
    if isinstance(error, AttributeError):
        return error.obj is value
    name = getattr(value, "__qualname__", "")
    return str(error).startswith(f"{name}(" if name else f"'{type(value).__name__}' object is not")
