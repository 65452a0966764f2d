"""One case from prediction to verdict, for items, bulk suites and Python tests."""

import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from pytest_llmeval.core import (
    MISSING,
    AnswerShown,
    AnyError,
    BudgetError,
    Case,
    CaseOutcome,
    CaseRecord,
    Evaluator,
    JudgeError,
    LlmevalError,
    MediaError,
    Observation,
    Opaque,
    PredictionError,
    Reading,
    RecordedCounts,
    ShownPrints,
    as_line,
    counted,
    form_of,
    number,
)
from pytest_llmeval.numbers import TOLERANCE, Abstained, Repeats, Unmet, UsageEvaluator
from pytest_llmeval.run._job import CaseAnswer, costs_of, target_scores, why_figures_unknown, with_figures
from pytest_llmeval.run._measuring import explained, measure_answered, measure_each, not_computed
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import LoadedSuite, Registry

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgedEvaluator, StoredJudgement, Verdict

_NOT_USERS = ("asyncio", "pytest_llmeval")
_VARYING_KEYS = ("usage", "trace")
_LONGEST_STEP = 120
_PLAIN = (str, int, float, list, tuple, Mapping, type(None))
"""Types of JSON data, which no library needs to read."""

_SKIP, _XFAIL = "skip", "xfail"


class Execution(Struct, frozen=True):
    """The result of running a case: its record, unmet limits, error and judge verdicts.

    Attributes:
        case: The case, with its prediction where there is one.
        record: What summaries read.
        unmet: Limits that it did not meet.
        error: What the target raised.
        entries: Judgements that can be recorded.
        repeats: What each repeat gave, where there are several.
    """

    case: Case
    record: CaseRecord
    unmet: Sequence[Unmet] = ()
    error: BaseException | None = None
    entries: "Sequence[StoredJudgement]" = ()
    repeats: "Sequence[Execution]" = ()

    @classmethod
    def skipped(cls, case: Case) -> "Execution":
        """The execution of a case that has the tag ``skip``."""
        return cls(case, CaseRecord(case.id, case.labels, "skipped", reason="Skipped: unconditional skip"))

    @property
    def answered(self) -> Sequence[Case]:
        """The executed case with its prediction, once per repeat."""
        return [repeat.case for repeat in self.repeats] or (self.case,)

    def require_budget(self) -> None:
        """Refuse an execution that ended because the budget is spent.

        Raises:
            LlmevalError: The budget is spent.
        """
        if isinstance(self.error, BudgetError):
            stored = "finished verdicts are stored: run the command again with a new budget"
            raise LlmevalError(f"{self.error}; {stored}")

    def with_record(self, **changes: Any) -> "Execution":
        """The execution with some fields of its record changed."""
        return structs.replace(self, record=structs.replace(self.record, **changes))

    def scores(self, suite: LoadedSuite) -> dict[str, float | None]:
        """The executed case's metrics by their names in the suite."""
        return _scores(suite, suite.reported, self.record.observations)

    def as_expected(self) -> "Execution":
        """The execution whose failure is ``xfailed`` if the case has the tag ``xfail``, where no mark does so."""
        if not is_xfail(self.case) or self.record.outcome not in CaseRecord.BAD:
            return self
        return self.with_record(outcome="xfailed")


Measure = Callable[[LoadedSuite, str, Evaluator, Case], Observation | Exception]


def execute(
    suite: LoadedSuite,
    answer: CaseAnswer,
    measure: Measure | None = None,
    *,
    explains_all: bool = True,
    started: float | None = None,
) -> Execution:
    """The execution of a case of a suite with one answer: its scores and outcome.

    Args:
        suite: The case's suite.
        answer: Its prediction and what judges said, or why there is none.
        measure: Measures with an evaluator that needs no judge; default: the case alone.
        explains_all: Whether evaluators also say what is wrong with an answer that passes.
        started: When the case began, by `time.perf_counter`; default: how long it took is not recorded.

    Returns:
        The execution. Nothing is raised for what the target, a judge or an evaluator did: it is in the record.
    """
    case = answer.case
    if answer.error is not None:
        return _with_costs(unanswered(case, answer.error, suite.secret_variables), [answer], started)
    observations: dict[str, Observation] = {}
    errors: dict[str, str] = {}
    for label, evaluator in suite.evaluators.items():
        measured: Observation | Exception
        if label in answer.failed:
            measured = answer.failed[label]
        elif isinstance(evaluator, RecordedCounts):
            measured = _agreement(evaluator, answer)
        elif label in suite.asking:
            verdicts = answer.verdicts.get(label, ())
            measured = measure_answered(suite.asking[label], case, suite.readings[label], verdicts)
        elif measure:
            measured = measure(suite, label, evaluator, case)
        else:
            measured = measure_each(evaluator, [case], suite.readings[label])[0]
        if isinstance(measured, Observation):
            observations[label] = measured
        else:
            errors[label] = Secrets.of_variables(suite.secret_variables).presentable(AnyError(measured).full_text)
    outcome, reason, missed = _conclude(suite, [answer], suite.evaluators, observations, errors)
    names = tuple(_unmet_names(suite, suite.evaluators, observations, missed)) if reason else ()
    record = CaseRecord(
        case.id,
        case.labels,
        outcome,
        observations,
        errors,
        reason,
        lines=explained(suite, case, observations) if explains_all or outcome != "passed" else {},
        answers=[AnswerShown(case.prediction)],
        unmet=names,
        answered=_print_predictions(suite, [case]),
        **_costs([answer], started),
    )
    return Execution(case, record, missed, entries=answer.entries)


def unjudged_answer(suite: LoadedSuite, case: Case) -> CaseAnswer:
    """A case with its prediction as an answer without judges, which leaves judged metrics undefined."""
    from pytest_llmeval.judges import UnaskedError

    case = with_figures(case, suite.parts_of(case))
    if not suite.judged:
        return CaseAnswer(case)
    verdicts: dict[str, list[list[Verdict | JudgeError]]] = {}
    failed: dict[str, Exception] = {}
    for label, evaluator in suite.asking.items():
        try:
            views = suite.readings[label].views(case)
            verdicts[label] = [[UnaskedError.off()] * len(evaluator.questions(view)) for view in views]
        except Exception as error:  # noqa: BLE001 (an error of an evaluator concerns this case only)
            failed[label] = error
    return CaseAnswer(case, verdicts=verdicts, failed=failed)


_MOST_TRIED = 200
"""Cases whose expected answers are tried: more would show little more, and take long."""


def unmet_by_expected(suite: LoadedSuite) -> Iterator[str]:
    """Yield limits and checks that the expected answers themselves do not meet, with the first case of each.

    Judges, models of embeddings and users' code are not asked. A limit that a perfect score exceeds is meant so.
    """
    unmet_cases: dict[str, tuple[str, list[str]]] = {}
    cases = [case for case in suite.cases if case.expected is not MISSING and case.expected is not None][:_MOST_TRIED]
    for case in cases:
        if suite.checked or suite.limits(case):
            for name, text in _unmet_by_expected(suite, case).items():
                unmet_cases.setdefault(name, (text, []))[1].append(case.id)
    for name, (text, ids) in unmet_cases.items():
        of_cases = f"case {ids[0]!r}" if len(ids) == 1 else f"{len(ids)} cases, first {ids[0]!r}"
        yield f"{name}: the expected answer itself does not meet it ({of_cases}: {text})"


def _unmet_by_expected(suite: LoadedSuite, case: Case) -> Mapping[str, str]:
    """The limits and checks of a case that none of its expected answers meets when it is executed, by name."""
    expected = case.expected
    common: dict[str, str] | None = None
    for prediction in [expected, *(expected if isinstance(expected, list) else ())]:
        answer = unjudged_answer(suite, replace(case, prediction=prediction, origin=None))
        untried = {
            label: PredictionError("not tried")
            for label, evaluator in suite.evaluators.items()
            if evaluator.batch > 1 or evaluator.is_of_users()
        }
        execution = execute(suite, structs.replace(answer, failed={**answer.failed, **untried}), explains_all=False)
        observations = execution.record.observations
        if not observations or any(
            observation.malformed is not None and not suite.evaluators[label].asserts
            for label, observation in observations.items()
        ):
            continue  # the ground truth is of another form than answers
        low = {unmet.metric: str(unmet) for unmet in execution.unmet if _is_worse(suite, unmet)}
        lines = "; ".join(
            observation.malformed for observation in observations.values() if observation.malformed is not None
        )
        limits = {unmet.metric for unmet in execution.unmet}
        checks = {name: lines for name in execution.record.unmet if name.startswith("check") and name not in limits}
        current = {**low, **checks}
        common = current if common is None else {name: text for name, text in common.items() if name in current}
        if not common:
            break
    return common or {}


def _is_worse(suite: LoadedSuite, unmet: Unmet) -> bool:
    """Whether an executed case's score is on the bad side of its limit, rather than beyond the good one."""
    if unmet.value is None or unmet.abstained:
        return False
    is_low = unmet.limit.min is not None and unmet.value < unmet.limit.min
    return is_low is not suite.metrics.lower_is_better(unmet.metric)


def _print_predictions(suite: LoadedSuite, cases: Sequence[Case]) -> str:
    """The fingerprint of an executed case's predictions as judges see them, for a bridge between judges."""
    if not suite.judged:
        return ""
    predictions = [_stable_part(case.prediction) for case in cases]
    return ShownPrints.fingerprint(predictions[0] if len(predictions) == 1 else predictions)


def _stable_part(prediction: Any) -> Any:
    """The prediction of an executed case without usage and spans, which differ whenever it is made again."""
    if not isinstance(prediction, Mapping):
        return prediction
    return {name: value for name, value in prediction.items() if name not in _VARYING_KEYS}


def _agreement(evaluator: RecordedCounts, answer: CaseAnswer) -> Observation:
    """The agreement of a panel's jurors on an executed case; undefined where they are not asked."""
    from pytest_llmeval.evaluators import VerdictStatistics
    from pytest_llmeval.judges import UnaskedError

    assert isinstance(evaluator, VerdictStatistics)  # a suite has no other counts that are recorded
    judged = [verdict for verdicts in answer.verdicts.get(evaluator.of, ()) for verdict in verdicts]
    unasked = next((verdict for verdict in judged if isinstance(verdict, UnaskedError)), None)
    return evaluator.measure_verdicts(judged) if unasked is None else evaluator.absent(str(unasked))


def execute_repeats(
    suite: LoadedSuite,
    answers: Sequence[CaseAnswer],
    measure: Measure | None = None,
    *,
    explains_all: bool = True,
    started: float | None = None,
) -> Execution:
    """The execution of a case with several answers: one reduced score per metric, and how much they differ.

    A case one of whose repeats could not be scored is errored: a mean over the others would hide it.
    """
    parts = [execute(suite, answer, measure, explains_all=explains_all, started=started) for answer in answers]
    if len(parts) == 1:
        return parts[0]
    from pytest_llmeval.run._partings import first_parting

    passed = [
        None if part.record.outcome == "errored" else part.record.outcome in CaseRecord.UNFAILED for part in parts
    ]
    scores = [_scores(suite, suite.evaluators, part.record.observations) for part in parts]
    broken = next((number for number, part in enumerate(parts, 1) if part.error is not None), None)
    if broken is not None:
        merged = parts[broken - 1]
        if merged.record.outcome == "not_run":
            return _with_costs(merged, answers, started)
        if merged.record.outcome == "errored":
            merged = merged.with_record(reason=f"repeat {broken} of {len(parts)}: {merged.record.reason}")
    else:
        observations: dict[str, Observation] = {}
        errors: dict[str, str] = {}
        for label in suite.evaluators:
            for number, execution in enumerate(parts, 1):
                if label in execution.record.errors:
                    errors.setdefault(label, f"repeat {number} of {len(parts)}: {execution.record.errors[label]}")
            if label not in errors:
                repeated = [part.record.observations[label] for part in parts]
                observations[label] = suite.reported[label].reduce(repeated)
        if None not in passed:
            observations[Repeats.RELIABILITY] = suite.repeats.reliability_of(map(bool, passed))
        silent = _abstained_repeats(suite, [part.record.observations for part in parts], observations)
        outcome, why, missed = _conclude(suite, answers, suite.reported, observations, errors, silent)
        if None in passed:
            errors[Repeats.RELIABILITY] = f"repeat {passed.index(None) + 1} of {len(parts)} could not be scored"
        case = answers[0].case
        names = tuple(_unmet_names(suite, suite.reported, observations, missed)) if why else ()
        record = CaseRecord(case.id, case.labels, outcome, observations, errors, why, unmet=names)
        merged = Execution(case, record, missed)
    repeats = Repeats.summary(passed, scores)
    parts_at = first_parting([answer.case for answer in answers], partial(_shown_step, suite))
    repeats |= {} if parts_at is None else {"parts_at": parts_at}
    lines, display_answers = repeated_answers([part.record for part in parts])
    answered = _print_predictions(suite, [answer.case for answer in answers]) if broken is None else ""
    merged = merged.with_record(repeats=repeats, lines=lines, answers=display_answers, answered=answered)
    return _with_costs(structs.replace(merged, repeats=parts), answers, started)


def _shown_step(suite: LoadedSuite, text: str) -> str:
    """A step of an agent in an executed case: on one line, cut, and without the suite's secrets."""
    return as_line(Secrets.of_variables(suite.secret_variables).without(text), _LONGEST_STEP)


def _conclude(
    suite: LoadedSuite,
    answers: Sequence[CaseAnswer],
    evaluators: Mapping[str, Evaluator],
    observations: Mapping[str, Observation],
    errors: Mapping[str, str],
    silent: Mapping[str, Abstained] | None = None,
) -> tuple[CaseOutcome, str | None, Sequence[Unmet]]:
    """The outcome of a case with its reason, and the limits that its scores do not meet."""
    silent = _find_abstained(suite, observations) if silent is None else silent
    limits = suite.limits(answers[0].case)
    figures = target_scores(answers) if any(name in limits for name in UsageEvaluator.TARGET_FIGURES) else {}
    scores = _scores(suite, evaluators, observations) if limits else {}
    missed = Unmet.of_case(limits, {**scores, **figures}, silent)
    below = _below_gates(suite, scores) if missed else {}
    gated = suite.judged_metrics if missed else ()
    worst = next(iter(below), "")
    missed.sort(
        key=lambda unmet: (
            unmet.metric != worst,
            unmet.metric not in gated,
            unmet.metric in UsageEvaluator.TARGET_FIGURES,
        )
    )
    reasons = [f"{label}: {why}" for label, why in errors.items()]
    reasons += [f"{name}: {why}" for name, why in why_figures_unknown(figures).items() if name in limits]
    for label, observation in observations.items():
        reasons += [f"{label}: {why}" for why in not_computed(observation.errored)]
    failed_to_compute = bool(reasons)
    reasons += [
        f"{label}: {observation.malformed}"
        for label, observation in observations.items()
        if observation.malformed is not None
    ]
    reasons += _wrong_steps(suite, answers[0].case, evaluators, observations, missed)
    reasons += map(str, missed)
    if worst and worst not in limits:
        reasons.append(below[worst])
    outcome: CaseOutcome = "passed"
    if reasons:
        outcome = "errored" if failed_to_compute else "failed"
    elif nothing := _awaited_reason(suite, observations) or _nothing_scored(observations):
        outcome, reasons = "not_scored", [nothing]
    return (
        outcome,
        Secrets.of_variables(suite.secret_variables).presentable("; ".join(reasons)) if reasons else None,
        missed,
    )


def _awaited_reason(suite: LoadedSuite, observations: Mapping[str, Observation]) -> str:
    """The reason why an executed case cannot be held to its limits yet; empty if no verdict is pending."""
    if not suite.judged:
        return ""
    from pytest_llmeval.judges import UnaskedError

    why = str(UnaskedError.pending())
    return why if any(why in observation.undefined.values() for observation in observations.values()) else ""


def _nothing_scored(observations: Mapping[str, Observation]) -> str:
    """The reason why no evaluator scored an executed case; empty if one did, or if its answer left nothing to score."""
    measured = {label: observation for label, observation in observations.items() if label != Repeats.RELIABILITY}
    if any(
        observation.counts or observation.abstained or not observation.undefined for observation in measured.values()
    ):
        return ""
    reasons = dict.fromkeys(reason for observation in measured.values() for reason in observation.undefined.values())
    return next(iter(reasons), "")


def _find_abstained(suite: LoadedSuite, observations: Mapping[str, Observation]) -> Mapping[str, Abstained]:
    """The metrics to which an executed case's answer gives nothing to score; none if the suite allows that."""
    reasons = {
        suite.metrics.full_name(label, name): observation.undefined[name]
        for label, observation in observations.items()
        for name in observation.abstained
    }
    return suite.find_abstained(reasons, reasons)


def _abstained_repeats(
    suite: LoadedSuite, repeats: Sequence[Mapping[str, Observation]], reduced: Mapping[str, Observation]
) -> Mapping[str, Abstained]:
    """The metrics to which some repeats of a case give nothing to score, with the score that counts these as worst.

    Args:
        suite: Of the case.
        repeats: The observations of each repeat.
        reduced: Those of the case.
    """
    silent = [_find_abstained(suite, repeat) for repeat in repeats]
    scores = _scores(suite, suite.reported, reduced) if any(silent) else {}
    out = {}
    for name in dict.fromkeys(name for abstained in silent for name in abstained):
        those = [abstained[name] for abstained in silent if name in abstained]
        score = scores.get(name)
        value = those[0].value if score is None else score
        out[name] = Abstained(f"{len(those)} of {counted(len(repeats), 'repeat')}: {those[0].reason}", value)
    return out


def _below_gates(suite: LoadedSuite, scores: Mapping[str, float | None]) -> dict[str, str]:
    """The metrics by which an executed case pulls a gate down, each with score and gate; the worst first.

    The score of the case is on the wrong side of the gate's limit or, for a gate on a drop, short of the best value.
    How far is measured in shares of the metric's range; metrics without one come last.
    """
    misses: list[tuple[bool, float, str, str]] = []
    for gate in suite.ordered_gates:
        score, (low, high) = scores.get(gate.metric), suite.metrics.ranges([gate.metric]).get(gate.metric, (0.0, 0.0))
        if score is None or gate.system not in ("", suite.system):
            continue
        best = low if suite.metrics.lower_is_better(gate.metric) else high
        limits = gate.shortfalls(score, best if high > low else None)
        short = max((abs(limit - score) for limit in limits), default=0.0)
        if short > TOLERANCE:
            share = short / (high - low) if high > low else short
            misses.append((high > low, share, gate.metric, f"lowers gate {gate}: {number(score, *limits)}"))
    texts: dict[str, str] = {}
    for _, _, metric, text in sorted(misses, key=lambda miss: (not miss[0], -miss[1])):
        texts.setdefault(metric, text)
    return texts


def _wrong_steps(
    suite: LoadedSuite,
    case: Case,
    evaluators: Mapping[str, Evaluator],
    observations: Mapping[str, Observation],
    missed: Sequence[Unmet],
) -> Iterator[str]:
    """Yield the first wrong step of an executed case by each evaluator of calls whose limits it does not meet."""
    names = {unmet.metric for unmet in missed}
    for label, observation in observations.items():
        evaluator = evaluators[label]
        if not names or evaluator.reads.part != "tool_calls":
            continue
        first = next(iter(evaluator.explain(case, observation)), "")
        if first and names & _scores(suite, evaluators, {label: observation}).keys():
            yield f"{label}: {first}"


def _unmet_names(
    suite: LoadedSuite,
    evaluators: Mapping[str, Evaluator],
    observations: Mapping[str, Observation],
    missed: Sequence[Unmet],
) -> Iterator[str]:
    """Yield the limits and checks that an executed case does not meet, and evaluators that cannot read it."""
    yield from (unmet.metric for unmet in missed)
    for label, observation in observations.items():
        if observation.malformed is None:
            continue
        if suite.evaluators[label].asserts:
            scores = _scores(suite, evaluators, {label: observation})
            yield from (name for name, score in scores.items() if "[" in name and score is not None and score < 1)
        else:
            yield f"malformed: {label}"


def _with_costs(execution: Execution, answers: Sequence[CaseAnswer], started: float | None) -> Execution:
    """The execution of a case with the latency, tokens and cost of its answers."""
    entries = [entry for answer in answers for entry in answer.entries]
    return structs.replace(execution.with_record(**_costs(answers, started)), entries=entries)


def _costs(answers: Sequence[CaseAnswer], started: float | None) -> dict[str, Any]:
    """The fields of a case record for the latency, tokens and cost of its answers."""
    seconds, usage = costs_of(answers)
    return {
        "calls": [call for answer in answers for call in answer.calls],
        "target_seconds": seconds,
        "target_usage": usage,
        "judgings": [judging for answer in answers for judging in answer.judgings],
        "duration_s": 0.0 if started is None else time.perf_counter() - started,
    }


def measure_returned(
    evaluator: Evaluator,
    case: Case,
    returned: Any,
    ask: "Callable[[JudgedEvaluator, Case, Reading], Sequence[Sequence[Verdict | JudgeError]]]",
) -> tuple[Case, Observation]:
    """The scores of what the user's code returned for a case of no suite.

    Args:
        evaluator: Measures.
        case: The case, without a prediction.
        returned: The answer.
        ask: Returns the verdicts, as `Asking.verdicts` has them; called if the evaluator asks a judge.

    Returns:
        The case as the evaluator sees it, and the observation.

    Raises:
        Exception: The case cannot be measured.
    """
    __tracebackhide__ = True
    from pytest_llmeval.judges import JudgedEvaluator

    answered, reading = answered_with(case.in_forms(), returned), Reading.for_evaluator(evaluator)
    if isinstance(evaluator, JudgedEvaluator) and evaluator.asks_judge:
        measured = measure_answered(evaluator, answered, reading, ask(evaluator, answered, reading))
    else:
        measured = measure_each(evaluator, [answered], reading)[0]
    if not isinstance(measured, Observation):
        raise measured
    return reading.views(answered)[0], measured


def unanswered(case: Case, error: BaseException, secrets: Sequence[str] = ()) -> Execution:
    """The execution of a case that has no prediction because of an error.

    Args:
        case: The case.
        error: Why.
        secrets: Names of environment variables whose values the reason does not show.
    """
    if isinstance(error, BudgetError | CutShortError):
        return Execution(case, CaseRecord(case.id, case.labels, "not_run", reason=str(error)), error=error)
    reason = str(error) if isinstance(error, PredictionError) else AnyError(error).text
    reason = PredictionError.in_its_turn(error, reason)
    if isinstance(error, Exception) and not isinstance(error, PredictionError):  # no skip, and no end of the run
        reason += AnyError(error).line
    reason = Secrets.of_variables(secrets).presentable(reason)
    record = CaseRecord(case.id, case.labels, "errored", errors={"": reason}, reason=reason)
    return Execution(case, record, error=_without_own_frames(error))


def is_skipped(case: Case) -> bool:
    """Whether a case has the tag that skips it, for runs of cases without pytest's marks."""
    return _SKIP in case.tags


def is_xfail(case: Case) -> bool:
    """Whether a case has the tag by which a run expects it to fail."""
    return _XFAIL in case.tags


def as_approved(record: CaseRecord, approved: Collection[str]) -> CaseRecord:
    """The record of an executed case, whose failure is known if it misses only limits and checks approved as unmet.

    A case that could not be scored failed in another way.
    """
    if record.outcome != "failed" or not record.unmet or not set(record.unmet) <= set(approved):
        return record
    return structs.replace(record, outcome="known_failure")


def _without_own_frames(error: BaseException) -> BaseException:
    """The error of a case that could not be executed, with a traceback that begins in the user's code."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_USERS:
        frames = frames.tb_next
    return error.with_traceback(frames)


def _scores(
    suite: LoadedSuite, evaluators: Mapping[str, Evaluator], observations: Mapping[str, Observation]
) -> dict[str, float | None]:
    """The scores of an executed case by full metric name, from the observations of its evaluators."""
    scores: dict[str, float | None] = {}
    for label, observation in observations.items():
        own = evaluators[label].scores(observation)
        scores.update({suite.metrics.full_name(label, name): value for name, value in own.items()})
    return scores


def _read(value: Any) -> Any:
    """The prediction in a framework's result object, such as an agent's, read by extensions; any other value itself."""
    listed = value.get("messages") if isinstance(value, Mapping) else [value]
    if not isinstance(listed, list) or not listed or isinstance(listed[-1], _PLAIN):
        return value
    for extension in Registry.installed_extensions("read"):
        value = extension.load()(value)
    return value


def json_like(prediction: Any) -> Any:
    """The JSON form of a prediction in a run, so that a recorded one and a fresh one are scored alike.

    Raises:
        PredictionError: It is no value, such as a function, or cannot be read.
    """
    return answered_with(Case(""), prediction).prediction


def repeated_answers(records: Sequence[CaseRecord]) -> tuple[Mapping[str, Sequence[str]], list[AnswerShown]]:
    """The different answers of an executed case's repeats, and the lines on the one that failed most often.

    Answers that failed come first, the most frequent of them before the others.
    """
    seen: dict[str, AnswerShown] = {}
    lines: dict[str, Mapping[str, Sequence[str]]] = {}
    for record in sorted(records, key=lambda record: record.outcome not in CaseRecord.BAD):
        passed = record.outcome not in CaseRecord.BAD
        for value, *_ in record.answers:
            key = _answer_key(value)
            known = seen.get(key, AnswerShown(value, 0, 0))
            seen[key] = AnswerShown(known.value, known.times + 1, (known.passed or 0) + passed)
            lines.setdefault(key, record.lines)
    ordered = sorted(seen, key=lambda key: (-seen[key].failed, -seen[key].times))
    return (lines[ordered[0]] if ordered else {}), [seen[key] for key in ordered]


def different_answers(values: Iterable[Any]) -> list[AnswerShown]:
    """The different approved answers of a case with their counts, as the report of a run has them."""
    seen: dict[str, AnswerShown] = {}
    for value in values:
        known = seen.get(key := _answer_key(value))
        seen[key] = AnswerShown(value, known.times + 1 if known else 1)
    return sorted(seen.values(), key=lambda answer: -answer.times)


def _answer_key(value: Any) -> str:
    """The text by which a run groups equal answers to a case."""
    return json.dumps(value, sort_keys=True, default=str)


def answered_with(case: Case, returned: Any) -> Case:
    """A case with what the user's code returned as its prediction: the JSON form, beside the object itself.

    Raises:
        PredictionError: It is no value, such as a function, or cannot be read.
    """
    if returned is None or type(returned) is str:
        return case.answered(returned)
    try:
        value = _read(returned)
    except Exception as error:  # what libraries return differs between their versions
        raise PredictionError(f"the returned {type(returned).__name__} cannot be read ({error!r})") from error
    if inspect.isroutine(value) or isinstance(value, _NO_VALUES):
        raise PredictionError(f"the target returned {type(value).__name__}, expected a value")
    try:
        form = _copy_form(form_of(value))
    except MediaError as error:
        raise PredictionError(f"the target returned a medium that cannot be used: {error}") from None
    if form is value:
        return case.answered(form)
    if isinstance(form, Opaque) and isinstance(value, Mapping | list | tuple):
        raise PredictionError(f"the target returned {type(value).__name__}, which is nested too deeply to be read")
    return case.with_object("prediction", form, value)


_NO_VALUES = (type, ModuleType, Iterator, AsyncIterator, Awaitable)
"""Types of what is returned by mistake: not called, not awaited or not read to its end."""


def _copy_form(form: Any) -> Any:
    """A copy of a prediction's JSON form, which stays the same if the user's code changes its object later."""
    if isinstance(form, dict):
        return {name: _copy_form(held) for name, held in form.items()}
    return list(map(_copy_form, form)) if isinstance(form, list) else form


class CutShortError(LlmevalError):
    """The run ended before all answers and verdicts that a case needs had arrived."""

    def __init__(self) -> None:
        super().__init__("the run was cut short")
