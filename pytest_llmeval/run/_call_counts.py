"""The calls that cases need, counted without a call."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import Case, LlmevalError, NoAnswer, Parts, TargetUsage
from pytest_llmeval.judges import Judgements, NeededCalls
from pytest_llmeval.run._answering import Answering, with_others
from pytest_llmeval.run._case_runner import CaseRunner, FromFixtures
from pytest_llmeval.run._conversation import beginning, user_questions
from pytest_llmeval.run._job import EarlyCalls, Job, LoadedCase, usage_of_target

if TYPE_CHECKING:
    from pytest_llmeval.judges import StoredJudgement, SuiteJudges
    from pytest_llmeval.suites import LoadedSuite, SuiteKey

_PLACEHOLDER = "an answer that does not exist yet"
"""Stands for answers when evaluators are asked how many questions they will have about them."""

_UNRECORDED_CASES = ("case", "without a recorded prediction: no call, but errors")
_UNANSWERED = ("case", "with neither a prediction nor a target: no call, but errors")


@dataclass
class CallTally:
    """The calls that the cases of one suite need, or of one of its systems.

    Attributes:
        suite: The suite.
        judge: Calls of judges.
        target: Calls of the target.
        target_more: Further calls of the target at most.
        answered: Predictions that are stored.
    """

    suite: "LoadedSuite"
    judge: NeededCalls
    target: int = 0
    target_more: int = 0
    answered: int = 0


@dataclass
class CallCounter:
    """Counts the judge and target calls that cases would need, for a plan; makes none.

    Attributes:
        answering: Knows what is recorded.
        judges: Knows what is stored.
        tallies: What was counted, by suite and system.
        notes: Noun and predicate of what was met besides calls, to how often.
    """

    answering: Answering
    judges: "SuiteJudges"
    tallies: "dict[SuiteKey, CallTally]" = field(default_factory=dict)
    notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _counted_keys: set[str] = field(default_factory=set)
    _own_parts: "dict[SuiteKey, LoadedSuite]" = field(default_factory=dict)
    _blocks: set[Any] = field(default_factory=set)
    _called: "set[tuple[SuiteKey, str, int]]" = field(default_factory=set)

    def add(self, job: Job, *, has_target: bool) -> None:
        """Count what one repeat of a case needs.

        Args:
            job: The repeat.
            has_target: Whether a fixture answers cases that carry no prediction.
        """
        tally = self._tally(job)
        suite = job.suite
        try:
            case = self.answering.recorded.known(job)
        except LlmevalError:
            self.notes[_UNRECORDED_CASES] += 1
            return
        others = self._others(job)
        if case is not None:
            tally.answered += suite.model is not None or suite.target is not None or has_target
            if None in others.values():
                self._add_likely_questions(tally, job, case.prediction, others)
            else:
                self._add_questions(tally, job, with_others(case, others))
        elif has_target or _is_answered(suite):
            self._add_target_calls(tally, job, has_target=has_target)
            self._add_likely_questions(tally, self._with_own_parts(job), _prediction_of(job), others)
        else:
            self.notes[_UNANSWERED] += 1

    def _with_own_parts(self, job: Job) -> Job:
        """The job with parts under their names, as a placeholder has them: the suite may look elsewhere."""
        if job.suite.parts == Parts() or job.case.conversation:
            return job
        if job.key not in self._own_parts:
            self._own_parts[job.key] = structs.replace(job.suite, parts=Parts())
        return structs.replace(job, loaded=structs.replace(job.loaded, suite=self._own_parts[job.key]))

    def _others(self, job: Job) -> dict[str, Any]:
        """The answers of opponents, ``None`` for those that must be asked for; their calls are counted."""
        others = self.answering.opponents.at_hand(job)
        for name, opponent in job.opponents.items():
            if isinstance(opponent, Job) and others[name] is None:
                if _is_answered(opponent.suite):
                    self._add_target_calls(self._tally(opponent), opponent, has_target=False)
                else:
                    others[name] = NoAnswer(f"nothing answers for {name}")
        return others

    def _tally(self, job: Job) -> CallTally:
        """The tally of the suite or system of a job."""
        if job.key not in self.tallies:
            self.tallies[job.key] = CallTally(job.suite, NeededCalls(self.judges, self._counted_keys, self.notes))
        tally = self.tallies[job.key]
        if job.judge is not None:  # a system that was counted as an opponent first has none yet
            for panel in (job.judge.panel, *map(job.judge.panel_for, job.suite.asking.values())):
                tally.judge.add_jurors(panel)
        if job.user is not None:
            tally.judge.add_jurors(job.user.panel)
        return tally

    def _add_target_calls(self, tally: CallTally, job: Job, *, has_target: bool) -> None:
        """Count the calls for an answer, which are made once, anyone who needs it."""
        place = (job.key, job.case.id, job.repeat)
        if place in self._called:
            return
        self._called.add(place)
        http = job.suite.target.http if job.suite.target is not None and not has_target else None
        if job.case.conversation:
            turns, more = _turns(job)
            tally.target += turns
            tally.target_more += more
            self._add_user_turns(tally, job)
        elif http is not None and http.batch > 1:
            block = (job.key, job.repeat, self.answering.batched.first_of(job.suite, http.batch, job.case))
            tally.target += block not in self._blocks
            self._blocks.add(block)
        else:
            tally.target += 1

    def _add_user_turns(self, tally: CallTally, job: Job) -> None:
        """Count what the simulated user is asked: what follows the first turn depends on what the target says."""
        user, most = user_questions(job), job.suite.conversation.limit
        if user is None or most is None or not self.judges.store.asks:
            return
        if not beginning(job.case.input):
            tally.judge.count(user.next(()))
            most -= 1
        tally.judge.add_turns(user.next(()), most)

    def _add_questions(self, tally: CallTally, job: Job, case: Case) -> None:
        """Count the questions about an answer."""
        if self.judges.options.mode != "off":
            tally.judge.add_askings(self.answering.askings(job, case).values())

    def _add_likely_questions(self, tally: CallTally, job: Job, prediction: Any, others: Mapping[str, Any]) -> None:
        """Count the questions about answers of which one does not exist yet: they seldom depend on what it says."""
        if self.judges.options.mode in ("off", "replay"):
            return
        likely = {
            name: opponent.case.answered(_placeholder(opponent)).parts
            for name, opponent in job.opponents.items()
            if isinstance(opponent, Job) and others[name] is None
        }
        case = with_others(job.case.answered(prediction), {**others, **likely})
        tally.judge.add_askings(self.answering.askings(job, case).values(), likely=True)

    def stored_judgements(self) -> "Iterator[StoredJudgement]":
        """Yield the judgements that are recorded or stored, also those that mode ``refresh`` does not use."""
        read = [judge.recordings for tally in self.tallies.values() for judge in tally.judge.jurors.values()]
        for recordings in {recordings.path: recordings for recordings in read}.values():
            unused = self.judges.options.mode == "refresh"
            yield from (Judgements.read(recordings.path) if unused else recordings).entries.values()
        if self.judges.options.cache.exists():
            yield from self.judges.store.replies.entries()

    def recorded_answers(self, key: "SuiteKey", suite: "LoadedSuite") -> Iterator[tuple[TargetUsage, float | None]]:
        """Yield what the recorded answers of a suite took, each with its seconds if they are known."""
        recordings = self.answering.recordings
        for row in recordings.rows_of(key.display_path, key.variant) if recordings is not None else ():
            figures: Mapping[str, float] = row.get("figures", {})
            usage = usage_of_target(suite.parts, row["prediction"], figures.get("cost_usd"))
            yield usage or TargetUsage(), figures.get("latency_s")

    @staticmethod
    def of_cases(runner: CaseRunner, cases: Iterable[tuple[LoadedCase, bool]]) -> "CallCounter":
        """Count the judge and target calls that cases would make, for a plan, without a call.

        Args:
            runner: The runner of the cases.
            cases: Each with whether a fixture answers it if it carries no prediction.

        Raises:
            LlmevalError: The cache or recordings cannot be read.
        """
        counter = CallCounter(runner.answering, runner.judges)
        for loaded, has_target in cases:
            for job in runner.jobs(loaded, FromFixtures(), EarlyCalls()):
                counter.add(job, has_target=has_target)
        return counter


def _is_answered(suite: "LoadedSuite") -> bool:
    """Whether a suite itself, and not a fixture, answers cases that carry no prediction."""
    return suite.model is not None or (suite.target is not None and not suite.target.is_for_fixture)


def _prediction_of(job: Job) -> Any:
    """A stand-in for a target's answer while calls are counted: a text, with passages if any, or a conversation."""
    text = _placeholder(job)
    if job.case.conversation:
        return text
    is_given = isinstance(job.case.input, Mapping) and "contexts" in job.case.input
    passages = {} if is_given or job.suite.model is not None else {"contexts": [f"a passage of {text}"]}
    return {"answer": text, **passages}


def _placeholder(job: Job) -> str:
    """The stand-in text of an answer while calls are counted, distinct by system, so that pairs are asked once."""
    return f"{_PLACEHOLDER}: {job.key.variant} {job.case.id} {job.repeat} [1]"


def _turns(job: Job) -> tuple[int, int]:
    """The least number of target calls that a conversation makes, and the number that may follow."""
    script = beginning(job.case.input)
    calls = sum(
        message["role"] == "user" and not (following and following[0]["role"] == "assistant")
        for number, message in enumerate(script)
        for following in [script[number + 1 : number + 2]]
    )
    settings = job.suite.conversation
    most = settings.limit
    if settings.stop == "target" or settings.user is not None:
        return 1, 0 if most is None else most - 1
    return calls if most is None else min(calls, most), 0
