"""The objects behind the fixtures ``judge`` and ``evaluate``."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from pytest_llmeval.core import (
    BudgetError,
    Case,
    Evaluator,
    EvaluatorError,
    JudgeError,
    LlmevalError,
    Observation,
    Reading,
    printable,
)
from pytest_llmeval.judges import Asking, JudgeAccess, JudgedEvaluator, Judgement, JudgeSpec, UnaskedError, Verdict
from pytest_llmeval.plugin._payload import LOADER, RUNNER, conclude, keep_judgements, note_scores, stop_spent
from pytest_llmeval.plugin._user_loops import USER_LOOPS
from pytest_llmeval.run import CaseRunner, FromFixtures, LoadedCase, get_checks, measure_returned
from pytest_llmeval.suites import Registry, get_evaluator

_EVALUATED = pytest.StashKey[list["TestScored"]]()
_LISTED = 20


class EvalCase(Case):
    """A case of a suite, in a Python test: `input` and `expected` are objects of the types that the suite declares."""

    _request: pytest.FixtureRequest
    _loaded: LoadedCase
    _is_scored: bool

    def __init__(self, request: pytest.FixtureRequest, loaded: LoadedCase) -> None:
        case = loaded.suite.typed(loaded.case)
        super().__init__(**{field.name: getattr(case, field.name) for field in fields(Case)})
        object.__setattr__(self, "_request", request)  # a case is frozen
        object.__setattr__(self, "_loaded", loaded)
        object.__setattr__(self, "_is_scored", False)

    def __repr__(self) -> str:
        return f"Case({self.id!r})"

    def score(self, prediction: Any) -> dict[str, float | None]:
        """Score a prediction with the suite's evaluators; see `Case.score`."""
        __tracebackhide__ = True
        loaded = self._loaded
        item = self._request.node
        if self._is_scored:
            raise pytest.fail.Exception(
                f"case {self.id!r}: found a second call of score, expected one in a test: score another answer in a "
                "test of its own, or with the fixture evaluate",
                pytrace=False,
            )
        object.__setattr__(self, "_is_scored", True)
        offered = FromFixtures(judge=partial(self._request.getfixturevalue, "judge_client"))
        runner: CaseRunner = item.config.stash[RUNNER]
        execution = runner.run_returned(loaded, prediction, offered)
        conclude(item, loaded, execution)
        return execution.scores(loaded.suite)


class TestScored(Mapping[str, float | None]):
    """The scores of one answer: metric name to value, ``None`` where it is undefined.

    Attributes:
        evaluator: Who scored.
        wrong: What is wrong with the answer, in the evaluator's words.
        details: What the evaluator found.
        absent: Metric name to why it has no value.
    """

    __test__ = False

    def __init__(self, evaluator: Evaluator, case: Case, observation: Observation) -> None:
        self.evaluator = evaluator.name
        self.details = observation.details
        self.absent = {**observation.undefined, **observation.errored}
        self.wrong = [observation.malformed] if observation.malformed else list(evaluator.explain(case, observation))
        self._scores = evaluator.scores(observation)

    def __getitem__(self, name: str) -> float | None:
        if name not in self._scores:
            known = ", ".join(self._scores)
            raise KeyError(f"{self.evaluator} has no metric {name!r}, expected one of {known}")
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def __repr__(self) -> str:
        scores = ", ".join(f"{name}={_score_text(value)}" for name, value in self._scores.items())
        return f"{self.evaluator}({'; '.join([scores, *self.wrong[:3]])})"


class Evaluate:
    """Scores answers with any evaluator: ``evaluate.text(answer, expected)["f1"]``."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Callable[..., TestScored]:
        kinds = {kind.replace(".", "_"): kind for kind in Registry.installed()}
        if name not in kinds:
            raise AttributeError(f"evaluate has no evaluator {name!r}, expected one of {', '.join(kinds)}")
        return partial(self._with, kinds[name])

    def checks(self, answer: Any, *checks: Any, expected: Any = None, input: Any = None) -> TestScored:  # noqa: A002 (as in a case)
        """The scores of an answer by checks, in a test with the fixture ``evaluate``.

        Args:
            answer: What was answered.
            checks: As in a suite file, such as ``{"contains": "Paris"}`` or ``pytest_llmeval.max_words(30)``.
            expected: What is right, for checks that read it.
            input: What was asked.
        """
        return self._score_answer(get_checks(*checks), answer, expected, input)

    def _with(self, kind: str, answer: Any, expected: Any = None, *, input: Any = None, **options: Any) -> TestScored:  # noqa: A002 (as in a case)
        """The scores of an answer by an evaluator of a name."""
        if kind == "judge" and not options:
            options = {"mode": "continuous"}
        return self._score_answer(get_evaluator(kind, **options), answer, expected, input)

    def _score_answer(self, evaluator: Evaluator, answer: Any, expected: Any, value: Any) -> TestScored:
        """The scores of an answer, which are noted for the test's report."""
        __tracebackhide__ = True
        item = self._request.node
        ask = AskJudge(self._request).about_required
        case, observation = measure_returned(evaluator, Case(item.name, value, expected), answer, ask)
        scored = TestScored(evaluator, case, observation)
        if not item.config.pluginmanager.has_plugin(_AttachEvaluations.__name__):
            item.config.pluginmanager.register(_AttachEvaluations(), _AttachEvaluations.__name__)
        item.stash.setdefault(_EVALUATED, []).append(scored)
        note_scores(item, [(f"{scored.evaluator}.{name}", value) for name, value in scored.items()])
        return scored


class _AttachEvaluations:
    """Puts the scores of the fixture ``evaluate`` on a test's report; registered once a test uses it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget the scores of an earlier attempt at a test."""
        item.stash[_EVALUATED] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Any:
        """Hand over the scores; a failing test shows what is wrong in the words of the evaluators."""
        scored = item.stash.get(_EVALUATED, [])
        if call.when == "call" and call.excinfo is not None:
            wrong = [f"{scores.evaluator}: {line}" for scores in scored for line in scores.wrong]
            if wrong:
                item.add_report_section("call", "llmeval", printable("\n".join(wrong), lines=True))
        report = yield
        if call.when == "teardown" and scored:
            report.llmeval_evaluated = json.dumps([(scores.evaluator, dict(scores)) for scores in scored])
        return report


class TestEvaluations:
    """The scores of a run's tests with the fixture ``evaluate``, in the process that gets all reports."""

    __test__ = False

    def __init__(self) -> None:
        self._scores: dict[str, list[tuple[str, dict[str, float | None]]]] = {}

    def take(self, nodeid: str, text: str, *, passed: bool) -> None:  # noqa: ARG002 (of snapshots alone)
        """Keep the scores that a test's report carries."""
        self._scores[nodeid] = json.loads(text)

    def lines(self, *, everything: bool) -> list[str]:
        """A line for each test with the fixture ``evaluate``, sorted.

        Args:
            everything: Whether all of them are listed.
        """
        lines = [printable(f"{nodeid}  {_list_test_scores(scores)}") for nodeid, scores in sorted(self._scores.items())]
        if len(lines) <= _LISTED or everything:
            return lines
        return [*lines[:_LISTED], f"and {len(lines) - _LISTED} more tests: -v"]


def _list_test_scores(scores_of_test: list[tuple[str, dict[str, float | None]]]) -> str:
    """The line on what a Python test has scored with the fixture ``evaluate``, for the end of a run."""
    return "; ".join(
        f"{evaluator} " + ", ".join(f"{name} {_score_text(value)}" for name, value in scores.items())
        for evaluator, scores in scores_of_test
    )


def _score_text(value: float | None) -> str:
    """A score of the fixture ``evaluate`` in the list of scores at the end of a run."""
    return "-" if value is None else f"{value:.4f}"


@dataclass(frozen=True)
class AskJudge:
    """The judge as a Python test's fixture asks it about one answer at a time."""

    request: pytest.FixtureRequest

    def require_model(self) -> None:
        """Fail a test whose judge can be asked, but nothing names a model.

        Raises:
            pytest.fail.Exception: Neither a setting nor the fixture ``judge_client`` names one.
        """
        access = self._access()
        juror = next(iter(access.panel.jurors.values()))
        if juror.model == JudgeSpec.OWN and access.judges.store.asks and self._own_client() is None:
            raise pytest.fail.Exception(juror.absent, pytrace=False)

    def _own_client(self) -> Any:
        """The judge that the user's fixture ``judge_client`` returns."""
        return self.request.getfixturevalue("judge_client")

    def __call__(self, question: Any, answer: Any, reference: Any = None, **options: Any) -> Verdict:
        """Return a verdict, stored or new.

        Args:
            question: What was asked.
            answer: What was answered.
            reference: What is right.
            options: Of the evaluator ``judge``: ``mode`` (default ``continuous``), ``language``, ``rubric``.

        Returns:
            The verdict; its score is on the scale of the mode.

        Raises:
            EvaluatorError: An option is wrong.
            JudgeError: There is no verdict.
            pytest.skip.Exception: Judges are switched off, or the budget is spent.
        """
        __tracebackhide__ = True
        evaluator: Any = get_evaluator("judge", **{"mode": "continuous", **options})
        case = Case(self.request.node.name, question, reference, answer)
        verdicts = self.about(evaluator, case, None)
        judged = evaluator.judged(case)
        verdict = judged.verdict(verdicts[0])
        if verdict is None:
            raise LlmevalError(f"there is nothing to judge: {judged.texts.absent}")
        return verdict  # type: ignore[no-any-return]  # evaluators are made from names, which have no types

    def about_required(
        self, evaluator: JudgedEvaluator, case: Case, reading: Reading
    ) -> "Sequence[Sequence[Verdict | JudgeError]]":
        """The verdicts that an evaluator needs about a test's case; the test fails if nothing names a model."""
        __tracebackhide__ = True
        self.require_model()
        return self.about(evaluator, case, reading)

    def about(
        self, evaluator: JudgedEvaluator, case: Case, reading: Reading | None
    ) -> "Sequence[Sequence[Verdict | JudgeError]]":
        """The verdicts that an evaluator needs about a test's case, stored or new.

        Args:
            evaluator: Asks.
            case: The case.
            reading: What the evaluator reads of it; ``None`` where the prediction is the answer itself.

        Raises:
            Exception: Its questions cannot be put.
            pytest.skip.Exception: Judges are switched off, or the budget is spent.
        """
        __tracebackhide__ = True
        access = self._access()
        views = [case] if reading is None else reading.views(case)
        asking = Asking(evaluator, views, access.panel, case.id, asker=self.request.node.nodeid)
        judges = access.judges
        if not asking.is_known(judges.service):
            access.open()
            with self.request.config.stash[USER_LOOPS].running(self.request.node):
                judges.background.run(asking.ask(judges.service))
        if asking.error is not None:
            raise asking.error
        for _, judgement in asking.judged:
            self._conclude(judgement, case.id)
        return asking.verdicts

    def _access(self) -> JudgeAccess:
        """The judge of the test's file."""
        stash, path = self.request.config.stash, self.request.path
        judges = stash[RUNNER].judges
        panel = judges.judge_of(path, JudgeSpec(), stash[LOADER].display_path(path))
        return JudgeAccess(panel, judges, path, JudgeSpec(), self._own_client)

    def _conclude(self, judgement: Judgement, case: str) -> None:
        """Keep what can be recorded; skip the test where a verdict was not to be asked for."""
        verdict = judgement.verdict
        if judgement.entries:
            entries = [structs.replace(entry, case=case) for entry in judgement.entries]
            keep_judgements(self.request.node, self.request.path, entries)
        if isinstance(verdict, BudgetError):
            stop_spent(self.request.session, verdict)
        if isinstance(verdict, UnaskedError):
            pytest.skip(str(verdict))


class EvaluatorsByName(Mapping[str, Evaluator]):
    """The fixture ``evaluators``: those of the suite with their options, others with their defaults."""

    def __init__(self, own: Mapping[str, Evaluator]) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Evaluator:
        try:
            return self._own[name] if name in self._own else get_evaluator(name)
        except EvaluatorError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *Registry.installed()]))

    def __len__(self) -> int:
        return sum(1 for _ in self)
