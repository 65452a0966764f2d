"""The making of a plan, without a call."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import (
    Case,
    JudgeError,
    LlmevalError,
    NoAnswer,
    Parts,
    PredictionParts,
    TargetUsage,
    counted,
    price_hint,
)
from pytest_llmeval.judges import (
    SIMULATED_USER,
    Asking,
    Judgement,
    Judgements,
    Juror,
    JurorQuestion,
    JurorVerdict,
    PanelQuestion,
    Usage,
    Verdict,
    case_repeat,
    cost_usd,
    is_unsure,
    price_of,
    read_text,
    uncounted_media,
)
from pytest_llmeval.run import (
    Answering,
    CaseRunner,
    EarlyCalls,
    FromFixtures,
    Job,
    LoadedCase,
    beginning,
    usage_of_target,
    user_questions,
    with_others,
)
from pytest_llmeval.workbench.plan import (
    NOTHING,
    BudgetUse,
    CallSample,
    CostEstimate,
    PlannedCalls,
    PlannedStop,
    PlannedSuite,
    RunPlan,
    planned,
)

if TYPE_CHECKING:
    from pytest_llmeval.baselines import Keeper
    from pytest_llmeval.judges import JudgeOptions, Price, StoredJudgement, SuiteJudges
    from pytest_llmeval.suites import LoadedSuite, SuiteKey

_PLACEHOLDER = "an answer that does not exist yet"
"""Stands for answers when evaluators are asked how many questions they will have about them."""

_UNRECORDED_CASES = ("case", "without a recorded prediction: no call, but errors")
_UNANSWERED = ("case", "with neither a prediction nor a target: no call, but errors")
_UNRECORDED_VERDICTS = ("verdict", "not recorded: no call, but errors")
_UNCOUNTED = ("file", "(sounds, documents, addresses) without a rule for tokens: calls are taken to be as stored ones")
_ASKED_AGAIN = ("further call", "at most, if replies cannot be read and are asked for once more")


@dataclass
class _CallTally:
    """What was counted of one suite, or of one of its systems.

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
class Planner:
    """Adds up what the cases of a run need.

    Attributes:
        answering: Knows what is recorded.
        judges: Knows what is stored.
        options: Of the run.
    """

    answering: Answering
    judges: "SuiteJudges"
    options: "JudgeOptions"
    _tallies: "dict[SuiteKey, _CallTally]" = field(default_factory=dict)
    _counted_keys: set[str] = field(default_factory=set)
    _own_parts: "dict[SuiteKey, LoadedSuite]" = field(default_factory=dict)
    _blocks: set[Any] = field(default_factory=set)
    _called: "set[tuple[SuiteKey, str, int]]" = field(default_factory=set)
    _notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reasons: dict[str, None] = field(default_factory=dict)

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
            self._notes[_UNRECORDED_CASES] += 1
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
            self._notes[_UNANSWERED] += 1

    def _with_own_parts(self, job: Job) -> Job:
        """Return the job with parts under their names, as a placeholder has them: the suite may look elsewhere."""
        if job.suite.parts == Parts() or job.case.conversation:
            return job
        if job.key not in self._own_parts:
            self._own_parts[job.key] = structs.replace(job.suite, parts=Parts())
        return structs.replace(job, loaded=structs.replace(job.loaded, suite=self._own_parts[job.key]))

    def _others(self, job: Job) -> dict[str, Any]:
        """Return the answers of opponents, ``None`` for those that must be asked for, and count the calls for these."""
        others = self.answering.opponents.at_hand(job)
        for name, opponent in job.opponents.items():
            if isinstance(opponent, Job) and others[name] is None:
                if _is_answered(opponent.suite):
                    self._add_target_calls(self._tally(opponent), opponent, has_target=False)
                else:
                    others[name] = NoAnswer(f"nothing answers for {name}")
        return others

    def _tally(self, job: Job) -> _CallTally:
        if job.key not in self._tallies:
            self._tallies[job.key] = _CallTally(job.suite)
        tally = self._tallies[job.key]
        if job.judge is not None:  # a system that was counted as an opponent first has none yet
            panels = [job.judge.panel, *map(job.judge.panel_for, job.suite.asking.values())]
            tally.judges |= {juror.model: juror for panel in panels for juror in panel.jurors.values()}
        if job.user is not None:
            tally.judges |= {juror.model: juror for juror in job.user.panel.jurors.values()}
        return tally

    def _add_target_calls(self, tally: _CallTally, job: Job, *, has_target: bool) -> None:
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

    def _add_user_turns(self, tally: _CallTally, job: Job) -> None:
        """Count what the simulated user is asked: what follows the first turn depends on what the target says."""
        user, most = user_questions(job), job.suite.conversation.limit
        if user is None or most is None or not self.judges.store.asks:
            return
        if not beginning(job.case.input):
            self._counted(tally, user.next(()))
            most -= 1
        (juror,) = user.next(()).expected
        tally.turns[juror.juror.model, SIMULATED_USER] += most
        tally.more = _plus(tally.more, most)

    def _add_questions(self, tally: _CallTally, job: Job, case: Case) -> None:
        """Count the questions about an answer."""
        if self.options.mode != "off":
            self._count_rounds(tally, job, case, self._counted)

    def _count_rounds(
        self, tally: _CallTally, job: Job, case: Case, count: Callable[[_CallTally, PanelQuestion], Judgement | None]
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

    def _counted(self, tally: _CallTally, question: PanelQuestion) -> Judgement | None:
        """Count one question, once for each juror; return what became of it if it needs no call, or represents that."""
        verdicts: dict[str, JurorVerdict] = {}
        while names := question.unanswered(verdicts):
            known = [self._counted_once(tally, question.jurors[name]) for name in names]
            if None in known:
                self._add_unsure(tally, question, verdicts)
                return _foreseen(question)
            verdicts |= {name: verdict for name, verdict in zip(names, known, strict=True) if verdict is not None}
        return question.judgement(verdicts)

    def _add_unsure(self, tally: _CallTally, question: PanelQuestion, verdicts: Mapping[str, JurorVerdict]) -> None:
        """Count the call of the large judge of a cascade, where the verdict of the small one is still to come."""
        large = list(question.jurors.values())[-1]
        if question.cascade is None or verdicts:
            return
        if question.audited:
            self._counted_once(tally, large)
        elif self._known(large) is None:
            tally.unsure[large.juror.model, large.question.mode.name][large.key] = question

    def _counted_once(self, tally: _CallTally, question: JurorQuestion) -> JurorVerdict | None:
        known = self._known(question)
        if known is None and question.key not in self._counted_keys:
            self._counted_keys.add(question.key)
            tally.modes[question.juror.model, question.question.mode.name] += 1
            self._count_media(question)
            tally.again += question.question.mode.asks_again
        elif known is not None and known.call is None:
            self._notes[_UNRECORDED_VERDICTS] += 1
        else:
            tally.stored += known is not None
        return known

    def _count_media(self, question: JurorQuestion) -> None:
        forms = (form for text in question.question.texts.values() for form in getattr(text, "media", ()))
        if uncounted := uncounted_media(forms):
            self._notes[_UNCOUNTED] += uncounted

    def _add_likely_questions(self, tally: _CallTally, job: Job, prediction: Any, others: Mapping[str, Any]) -> None:
        """Count the questions about answers of which one does not exist yet: they seldom depend on what it says."""
        if self.options.mode in ("off", "replay"):
            return
        likely = {
            name: PredictionParts(prediction=_placeholder(opponent))
            for name, opponent in job.opponents.items()
            if isinstance(opponent, Job) and others[name] is None
        }
        case = with_others(job.case.answered(prediction), {**others, **likely})
        if any(asking.error is not None for asking in self._count_rounds(tally, job, case, self._counted_as_likely)):
            tally.more = None

    def _counted_as_likely(self, tally: _CallTally, question: PanelQuestion) -> Judgement | None:
        if question.question.shared:
            return self._counted(tally, question)
        new = [each for each in question.expected if each.key not in self._counted_keys]
        self._counted_keys.update(each.key for each in new)
        tally.likely.update((each.juror.model, each.question.mode.name) for each in new)
        tally.again += sum(each.question.mode.asks_again for each in new)
        if not question.audited:
            self._add_unsure(tally, question, {})
        return _foreseen(question)

    def _known(self, question: JurorQuestion) -> JurorVerdict | None:
        """The judgements that need no call; a cache that does not exist is not made."""
        if self.options.mode == "refresh":
            return None
        recorded, store = question.juror.recordings.get(question.key) is not None, self.judges.store
        needs_cache = store.asks or self.options.mode == "defer"
        return store.stored(question) if recorded or self._has_cache or not needs_cache else None

    @cached_property
    def _has_cache(self) -> bool:
        return self.options.cache.exists()

    def plan(self) -> RunPlan:
        """Return the plan of everything that was added."""
        suites = [self._planned(key, tally) for key, tally in self._tallies.items()]
        tallies = [tally for tally in self._tallies.values() if tally.again]
        if tallies and all(tally.more is not None for tally in tallies):
            self._notes[_ASKED_AGAIN] = sum(tally.again + tally.later.total() for tally in tallies)
        counts = (f"{counted(count, noun)} {what}" for (noun, what), count in self._notes.items())
        return RunPlan(suites, list(self._budget(suites)), self.options.concurrency, [*counts, *self._reasons])

    def _planned(self, key: "SuiteKey", tally: _CallTally) -> PlannedSuite:
        likely, more, later = Counter(tally.likely), tally.more, Counter(tally.later)
        for place, questions in tally.unsure.items():
            expected = round(len(questions) * (self._past.unsure_share(next(iter(questions.values()))) or 0))
            likely[place] += expected
            more = _plus(more, len(questions) - expected)
            later[place[:1], place[1:]] += len(questions) - expected
        judge = replace(NOTHING, stored=tally.stored, more=more)
        for model, mode in {**tally.modes, **likely}:
            judge += self._planned_mode(tally, model, mode, tally.modes[model, mode], likely[model, mode])
        for (model, mode), turns in tally.turns.items():
            judge += replace(self._planned_mode(tally, model, mode, turns), calls=0)
        if more is None:
            judge = judge.without_bound()
        for (models, modes), count in later.items():
            judge = judge.with_later(count, self._largest(tally, models, modes)) if count else judge
        target = replace(NOTHING, stored=tally.answered, more=tally.target_more)
        target += self._planned_target(key, tally)
        return PlannedSuite(tally.suite.name, key.display_path, key.variant, target, judge)

    def _planned_mode(self, tally: _CallTally, model: str, mode: str, calls: int, likely: int = 0) -> PlannedCalls:
        judge = tally.judges[model]
        samples = self._past.samples(mode, judge.model, self._price(judge))
        if all(sample.tokens is None for sample in samples):
            self._reasons[f"no stored call of mode {mode!r} tells its tokens: tokens, cost and time are unknown"] = None
        if judge.price is None:
            self._reasons[f"the price of {judge.model} is unknown: set 'price' beside 'model'{price_hint()}"] = None
        return planned(calls, samples, concurrency=self.options.concurrency, likely=likely)

    def _largest(self, tally: _CallTally, models: Sequence[str], modes: Sequence[str]) -> CallSample:
        """The largest call of one of some modes to one of some models; ``None`` where unknown."""
        jurors = [tally.judges[model] for model in models]
        samples = [self._past.samples(mode, juror.model, self._price(juror)) for mode in modes for juror in jurors]
        calls = [planned(1, sample, concurrency=1) for sample in samples]
        tokens, usd = ([getattr(call, unit).high for call in calls] for unit in ("tokens", "usd"))
        return CallSample(*(max(each) if each and None not in each else None for each in (tokens, usd)))

    def _price(self, judge: Juror) -> "Price | None":
        """Return the price of a judge's calls, live or deferred."""
        if self.options.mode != "defer":
            return judge.price
        if judge.price is not None:
            self._reasons["judges cost the rate of the batch interface: 'batch' of their price"] = None
        return judge.price and judge.price.of_batches

    @cached_property
    def _past(self) -> "_PastCalls":
        return _PastCalls(self._entries())

    def _entries(self) -> "Iterator[StoredJudgement]":
        read = [judge.recordings for tally in self._tallies.values() for judge in tally.judges.values()]
        for each in {recordings.path: recordings for recordings in read}.values():
            # In mode refresh they are not read to be used.
            yield from (each if self.options.mode != "refresh" else Judgements.read(each.path)).entries.values()
        if self._has_cache:
            yield from self.judges.store.replies.entries()

    def _planned_target(self, key: "SuiteKey", tally: _CallTally) -> PlannedCalls:
        suite = tally.suite
        most = [self.options.concurrency]
        if suite.target is not None:
            http = suite.target.http
            most += [each for each in (suite.target.concurrency, http and http.concurrency) if each]
        samples = list(self._past_answers(key, suite)) if tally.target else []
        forecast = planned(tally.target, samples, concurrency=min(most))
        figures = {"tokens": forecast.tokens.median, "cost": forecast.usd.median, "time": forecast.seconds}
        if suite.model is not None and tally.target and price_of(suite.model.spec) is None:
            self._reasons[
                f"the price of {suite.model.spec.model} is unknown: set 'price' beside 'model'{price_hint()}"
            ] = None
            del figures["cost"]
        if unknown := [name for name, figure in figures.items() if figure is None]:
            named = f"{key.display_path}[{key.variant}]" if key.variant else key.display_path
            reason = f"no recorded prediction of {named} tells what its target takes: {', '.join(unknown)} unknown"
            self._reasons[reason] = None
        return forecast

    def _past_answers(self, key: "SuiteKey", suite: "LoadedSuite") -> Iterator[CallSample]:
        recordings = self.answering.recordings
        for row in recordings.rows_of(key.display_path, key.variant) if recordings is not None else ():
            figures: Mapping[str, float] = row.get("figures", {})
            usage = usage_of_target(suite.parts, row["prediction"], figures.get("cost_usd")) or TargetUsage()
            parts = (usage.input_tokens, usage.output_tokens)
            cost = usage.cost_usd
            if suite.model is not None:
                read, written = (None if part is None else int(part) for part in parts)
                cost = cost_usd(price_of(suite.model.spec), Usage(read, written))
            yield CallSample(None if None in parts else sum(filter(None, parts)), cost, figures.get("latency_s"))

    def _budget(self, suites: Sequence[PlannedSuite]) -> Iterator[BudgetUse]:
        """Yield the use of each limit, counted as in a run: of targets, only models make calls that are limited.

        What another target takes, only its predictions say, so an unknown amount of it may be added.
        """
        limits, used, is_open = self.options.budget, sum((suite.judge for suite in suites), NOTHING), False
        for planned_suite, tally in zip(suites, self._tallies.values(), strict=True):
            target = planned_suite.target
            if tally.suite.model is None:
                is_open |= None in (target.tokens.median, target.usd.median)
                tokens, usd = (
                    estimate if estimate.median is not None else CostEstimate()
                    for estimate in (target.tokens, target.usd)
                )
                target = replace(NOTHING, more=target.more, tokens=tokens, usd=usd)
            used += target
        is_open |= used.more != 0
        if limits.calls is not None:
            yield BudgetUse("calls", limits.calls, used.expected, None, used.more != 0)
        for unit, limit, spread in (("tokens", limits.tokens, used.tokens), ("usd", limits.usd, used.usd)):
            if limit is not None:
                yield BudgetUse(unit, limit, spread.median, spread.high, is_open, spread.least)


def _foreseen(question: PanelQuestion) -> Judgement | None:
    verdict = question.question.foreseen
    return None if verdict is None else Judgement(verdict)


def _is_answered(suite: "LoadedSuite") -> bool:
    """Whether something other than a fixture answers cases that carry no prediction."""
    return suite.model is not None or (suite.target is not None and not suite.target.is_for_fixture)


def _prediction_of(job: Job) -> Any:
    """A prediction in place of an answer: a text, with passages where these may be read from it, or a conversation."""
    text = _placeholder(job)
    if job.case.conversation:
        return text
    is_given = isinstance(job.case.input, Mapping) and "contexts" in job.case.input
    passages = {} if is_given or job.suite.model is not None else {"contexts": [f"a passage of {text}"]}
    return {"answer": text, **passages}


def _placeholder(job: Job) -> str:
    """Return a text with a citation for each answer, its own, so that two systems ask the same about their pair."""
    return f"{_PLACEHOLDER}: {job.key.variant} {job.case.id} {job.repeat} [1]"


def _turns(job: Job) -> tuple[int, int]:
    """The least number of calls of the target for a conversation, and the number that may follow."""
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
    """The largest number of calls that may follow, to all jurors of a panel, where some questions are there already."""
    most = sum(map(asking.evaluator.most_follow_ups, asking.views))
    return max(0, most - followed) * asking.panel.most_calls


def _plus(first: int | None, other: int) -> int | None:
    return None if first is None else first + other


class _PastCalls:
    """Stored calls by mode."""

    def __init__(self, entries: "Iterable[StoredJudgement]") -> None:
        self._by_mode: dict[str, dict[str, StoredJudgement]] = defaultdict(dict)
        for entry in entries:
            self._by_mode[entry.components["mode"]][entry.key] = entry

    def samples(self, mode: str, model: str, price: "Price | None") -> list[CallSample]:
        """The calls of a mode: those of a model or, if it has none, those of all models.

        Args:
            mode: The mode.
            model: ``PROVIDER:NAME``.
            price: What the tokens of the model cost now.
        """
        entries = list(self._by_mode[mode].values())
        own = [entry for entry in entries if entry.components["model"] == model]
        return [_sample(entry.usage, price, entry.seconds) for entry in own or entries]

    def unsure_share(self, question: PanelQuestion) -> float | None:
        """Return the share of stored verdicts of which the small judge of a cascade is unsure; ``None`` without any."""
        rule, mode = question.cascade, question.question.mode
        small = next(iter(question.jurors.values())).juror.model
        groups: dict[str, list[Verdict]] = defaultdict(list)
        for entry in self._by_mode[mode.name].values():
            made_of = entry.components
            if made_of["model"] == small:
                place = {**made_of, "repeat": case_repeat(made_of["repeat"])}
                with suppress(JudgeError):
                    groups[json.dumps(place, sort_keys=True)].append(read_text(mode, entry.reply))
        asked_enough = [group for group in groups.values() if rule is not None and len(group) == rule.opinions]
        if rule is None or not asked_enough:
            return None
        return sum(is_unsure(rule, mode, each) for each in asked_enough) / len(asked_enough)


def _sample(usage: Usage, price: "Price | None", seconds: float) -> CallSample:
    parts = (usage.input_tokens, usage.output_tokens)
    # An imported score has taken no time: it was no call.
    return CallSample(
        None if None in parts else sum(filter(None, parts)), cost_usd(price, usage), seconds if seconds > 0 else None
    )


def plan_cases(runner: CaseRunner, cases: Iterable[tuple[LoadedCase, bool]]) -> RunPlan:
    """The calls that cases would take; none is made.

    Args:
        runner: The runner of the cases.
        cases: Each with whether a fixture answers it if it carries no prediction.

    Raises:
        LlmevalError: The cache or recordings cannot be read.
    """
    planner = Planner(runner.answering, runner.judges, runner.options)
    for loaded, has_target in cases:
        for job in runner.jobs(loaded, FromFixtures(), EarlyCalls()):
            planner.add(job, has_target=has_target)
    return planner.plan()


def plan_run(runner: CaseRunner, cases: Sequence[tuple[LoadedCase, bool]], keeper: "Keeper") -> RunPlan:
    """Return the plan of all cases, and of those before suites are expected to stop.

    Raises:
        LlmevalError: As in `plan_cases`.
    """
    plan = plan_cases(runner, cases)
    ordered = {loaded.key: loaded.suite for loaded, _ in cases if loaded.suite.order is not None}
    if not ordered:
        return plan
    from pytest_llmeval.workbench.early._stopping import foresee

    stops = foresee(ordered.items(), runner.judges, keeper)

    def runs(loaded: LoadedCase) -> bool:
        order, most = loaded.suite.order, stops.get(loaded.key)
        return order is None or most is None or order.ranks[loaded.case.id] < most

    return replace(
        plan,
        stops=[
            PlannedStop(suite.name, key.display_path, key.variant, stops[key], len(suite.cases))
            for key, suite in ordered.items()
        ],
        stopping=plan_cases(runner, [case for case in cases if runs(case[0])]),
    )
