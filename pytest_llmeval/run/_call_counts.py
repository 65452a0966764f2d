"""The calls that cases need, counted without a call."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import Case, LlmevalError, NoAnswer, Parts, TargetUsage
from pytest_llmeval.judges import (
    Asking,
    Judgement,
    Judgements,
    Juror,
    JurorQuestion,
    JurorVerdict,
    PanelQuestion,
    uncounted_media,
)
from pytest_llmeval.run._answering import Answering, with_others
from pytest_llmeval.run._case_runner import CaseRunner, FromFixtures
from pytest_llmeval.run._conversation import SIMULATED_USER, beginning, user_questions
from pytest_llmeval.run._job import EarlyCalls, Job, LoadedCase, usage_of_target

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgeOptions, StoredJudgement, SuiteJudges
    from pytest_llmeval.suites import LoadedSuite, SuiteKey

_PLACEHOLDER = "an answer that does not exist yet"
"""Stands for answers when evaluators are asked how many questions they will have about them."""

_UNRECORDED_CASES = ("case", "without a recorded prediction: no call, but errors")
_UNANSWERED = ("case", "with neither a prediction nor a target: no call, but errors")
_UNRECORDED_VERDICTS = ("verdict", "not recorded: no call, but errors")
_UNCOUNTED = ("file", "(sounds, documents, addresses) without a rule for tokens: calls are taken to be as stored ones")


@dataclass
class CallTally:
    """The calls that the cases of one suite need, or of one of its systems.

    Attributes:
        suite: The suite.
        judges: Model to judge.
        modes: Model and mode to how many calls are certain.
        likely: As above, to how many are likely.
        turns: As above, to how many may follow in conversations; what they take is foreseen for all of them.
        more: Further questions at most; ``None`` where their number is unknown.
        again: Replies that would be asked for once more if they could not be read.
        later: Models that may be asked and modes of the questions, to how many of these further questions there are.
        unsure: As `modes`, to the questions that go to the large judge of a cascade if the small one is unsure, by key.
        stored: Verdicts that are stored.
        target: Calls of the target.
        target_more: Further calls of the target at most.
        answered: Predictions that are stored.
    """

    suite: "LoadedSuite"
    judges: dict[str, Juror] = field(default_factory=dict)
    modes: Counter[tuple[str, str]] = field(default_factory=Counter)
    likely: Counter[tuple[str, str]] = field(default_factory=Counter)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    more: int | None = 0
    again: int = 0
    later: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=Counter)
    unsure: "defaultdict[tuple[str, str], dict[str, PanelQuestion]]" = field(default_factory=lambda: defaultdict(dict))
    stored: int = 0
    target: int = 0
    target_more: int = 0
    answered: int = 0


@dataclass
class CallCounter:
    """Counts the judge and target calls that cases would need, for a plan; makes none.

    Attributes:
        answering: Knows what is recorded.
        judges: Knows what is stored.
        options: Of the run.
        tallies: What was counted, by suite and system.
        notes: Noun and predicate of what was met besides calls, to how often.
    """

    answering: Answering
    judges: "SuiteJudges"
    options: "JudgeOptions"
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
            self.tallies[job.key] = CallTally(job.suite)
        tally = self.tallies[job.key]
        if job.judge is not None:  # a system that was counted as an opponent first has none yet
            panels = [job.judge.panel, *map(job.judge.panel_for, job.suite.asking.values())]
            tally.judges |= {juror.model: juror for panel in panels for juror in panel.jurors.values()}
        if job.user is not None:
            tally.judges |= {juror.model: juror for juror in job.user.panel.jurors.values()}
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
            self._count_question(tally, user.next(()))
            most -= 1
        (juror,) = user.next(()).expected
        tally.turns[juror.juror.model, SIMULATED_USER] += most
        tally.more = _plus(tally.more, most)

    def _add_questions(self, tally: CallTally, job: Job, case: Case) -> None:
        """Count the questions about an answer."""
        if self.options.mode != "off":
            self._count_rounds(tally, job, case, self._count_question)

    def _count_rounds(
        self, tally: CallTally, job: Job, case: Case, count: Callable[[CallTally, PanelQuestion], Judgement | None]
    ) -> list[Asking]:
        """Count questions round by round, up to the first reply that is not there and that more may depend on."""
        askings = list(self.answering.askings(job, case).values())
        for asking in askings:
            followed = 0
            while put := asking.next():
                followed += len(put) if asking.judged else 0
                known = [count(tally, question) for question in put]
                verdicts = [judgement for judgement in known if judgement is not None]
                if len(verdicts) < len(put):
                    most = _most_follow_ups(asking, followed)
                    tally.more = _plus(tally.more, most)
                    models = tuple(juror.model for juror in asking.panel.jurors.values())
                    tally.later[models, tuple(asking.evaluator.follow_up_modes)] += most
                    break
                asking.add(verdicts)
        return askings

    def _count_question(self, tally: CallTally, question: PanelQuestion) -> Judgement | None:
        """Count one question, once for each juror; return what became of it if it needs no call, or represents that."""
        verdicts: dict[str, JurorVerdict] = {}
        while names := question.unanswered(verdicts):
            known = [self._count_once(tally, question.jurors[name]) for name in names]
            if None in known:
                self._add_unsure(tally, question, verdicts)
                return _foreseen(question)
            verdicts |= {name: verdict for name, verdict in zip(names, known, strict=True) if verdict is not None}
        return question.judgement(verdicts)

    def _add_unsure(self, tally: CallTally, question: PanelQuestion, verdicts: Mapping[str, JurorVerdict]) -> None:
        """Count the call of the large judge of a cascade, where the verdict of the small one is still to come."""
        large = list(question.jurors.values())[-1]
        if question.cascade is None or verdicts:
            return
        if question.audited:
            self._count_once(tally, large)
        elif self._known(large) is None:
            tally.unsure[large.juror.model, large.question.mode.name][large.key] = question

    def _count_once(self, tally: CallTally, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict of one juror; a question without one is counted, once for all cases that share it."""
        known = self._known(question)
        if known is None and question.key not in self._counted_keys:
            self._counted_keys.add(question.key)
            tally.modes[question.juror.model, question.question.mode.name] += 1
            self._count_media(question)
            tally.again += question.question.mode.asks_again
        elif known is not None and known.call is None:
            self.notes[_UNRECORDED_VERDICTS] += 1
        else:
            tally.stored += known is not None
        return known

    def _count_media(self, question: JurorQuestion) -> None:
        """Count the media of a question whose tokens cannot be estimated."""
        forms = (form for text in question.question.texts.values() for form in getattr(text, "media", ()))
        if uncounted := uncounted_media(forms):
            self.notes[_UNCOUNTED] += uncounted

    def _add_likely_questions(self, tally: CallTally, job: Job, prediction: Any, others: Mapping[str, Any]) -> None:
        """Count the questions about answers of which one does not exist yet: they seldom depend on what it says."""
        if self.options.mode in ("off", "replay"):
            return
        likely = {
            name: opponent.case.answered(_placeholder(opponent)).parts
            for name, opponent in job.opponents.items()
            if isinstance(opponent, Job) and others[name] is None
        }
        case = with_others(job.case.answered(prediction), {**others, **likely})
        if any(asking.error is not None for asking in self._count_rounds(tally, job, case, self._count_as_likely)):
            tally.more = None

    def _count_as_likely(self, tally: CallTally, question: PanelQuestion) -> Judgement | None:
        """The verdict on a question about an answer that does not exist yet; its calls count as likely."""
        if question.question.shared:
            return self._count_question(tally, question)
        new = [expected for expected in question.expected if expected.key not in self._counted_keys]
        self._counted_keys.update(expected.key for expected in new)
        tally.likely.update((expected.juror.model, expected.question.mode.name) for expected in new)
        tally.again += sum(expected.question.mode.asks_again for expected in new)
        if not question.audited:
            self._add_unsure(tally, question, {})
        return _foreseen(question)

    def _known(self, question: JurorQuestion) -> JurorVerdict | None:
        """The judgements that need no call; a cache that does not exist is not made."""
        if self.options.mode == "refresh":
            return None
        recorded, store = question.juror.recordings.get(question.key) is not None, self.judges.store
        needs_cache = store.asks or self.options.mode == "defer"
        return store.stored(question) if recorded or self.has_cache or not needs_cache else None

    @cached_property
    def has_cache(self) -> bool:
        """Whether stored replies exist."""
        return self.options.cache.exists()

    def stored_judgements(self) -> "Iterator[StoredJudgement]":
        """Yield the judgements that are recorded or stored, also those that mode ``refresh`` does not use."""
        read = [judge.recordings for tally in self.tallies.values() for judge in tally.judges.values()]
        for recordings in {recordings.path: recordings for recordings in read}.values():
            unused = self.options.mode == "refresh"
            yield from (Judgements.read(recordings.path) if unused else recordings).entries.values()
        if self.has_cache:
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
        counter = CallCounter(runner.answering, runner.judges, runner.options)
        for loaded, has_target in cases:
            for job in runner.jobs(loaded, FromFixtures(), EarlyCalls()):
                counter.add(job, has_target=has_target)
        return counter


def _foreseen(question: PanelQuestion) -> Judgement | None:
    """The verdict that a question to a panel gets without a call, if the question foresees one."""
    verdict = question.question.foreseen
    return None if verdict is None else Judgement(verdict)


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


def _most_follow_ups(asking: Asking, followed: int = 0) -> int:
    """The largest number of judge calls to a panel that may follow the questions asked so far."""
    most = sum(map(asking.evaluator.most_follow_ups, asking.views))
    return max(0, most - followed) * asking.panel.most_calls


def _plus(first: int | None, other: int) -> int | None:
    """The sum of two numbers of judge calls; ``None`` if the first is unknown."""
    return None if first is None else first + other
