"""The judge calls that questions need, counted without a call."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_llmeval.judges._panel import Judgement, JudgePanel, Juror, JurorQuestion, JurorVerdict, PanelQuestion

if TYPE_CHECKING:
    from pytest_llmeval.judges._asking import Asking
    from pytest_llmeval.judges._judges import SuiteJudges

_UNRECORDED = ("verdict", "not recorded: no call, but errors")
_UNCOUNTED = ("file", "(sounds, documents, addresses) without a rule for tokens: calls are taken to be as stored ones")


@dataclass
class NeededCalls:
    """The judge calls that the questions of one suite need, or of one of its systems; none is made.

    Attributes:
        judges: Know what is stored.
        keys: The keys of the questions that were counted, also of other suites.
        notes: Noun and predicate of what was met besides calls, to how often.
        jurors: Model to judge.
        modes: Model and mode to how many calls are certain.
        likely: As above, to how many are likely.
        turns: As above, to how many may follow in conversations; what they take is foreseen for all of them.
        more: Further questions at most; ``None`` where their number is unknown.
        again: Replies that would be asked for once more if they could not be read.
        later: Models that may be asked and modes of the questions, to how many of these further questions there are.
        unsure: As `modes`, to the questions that go to the large judge of a cascade if the small one is unsure, by key.
        stored: Verdicts that are stored.
    """

    judges: "SuiteJudges"
    keys: set[str]
    notes: Counter[tuple[str, str]]
    jurors: dict[str, Juror] = field(default_factory=dict)
    modes: Counter[tuple[str, str]] = field(default_factory=Counter)
    likely: Counter[tuple[str, str]] = field(default_factory=Counter)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    more: int | None = 0
    again: int = 0
    later: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=Counter)
    unsure: "defaultdict[tuple[str, str], dict[str, PanelQuestion]]" = field(default_factory=lambda: defaultdict(dict))
    stored: int = 0

    def add_jurors(self, panel: JudgePanel) -> None:
        """Add the judges of a panel."""
        self.jurors |= {juror.model: juror for juror in panel.jurors.values()}

    def add_turns(self, question: PanelQuestion, most: int) -> None:
        """Add the turns of a simulated user that may follow, each with a question like this one."""
        (juror,) = question.expected
        self.turns[juror.juror.model, question.question.mode.name] += most
        self._add_more(most)

    def add_askings(self, askings: "Iterable[Asking]", *, likely: bool = False) -> None:
        """Count questions round by round, up to the first reply that is not there and that more may depend on.

        Args:
            askings: The questions of evaluators about a case.
            likely: Whether the case is not answered yet: questions seldom depend on what an answer says.
        """
        for asking in askings:
            if not asking.is_answered(self._count_likely if likely else self.count):
                most = asking.most_follow_ups * asking.panel.most_calls
                self._add_more(most)
                self.later[tuple(asking.panel.models), tuple(asking.evaluator.follow_up_modes)] += most
            if likely and asking.error is not None:
                self.more = None

    def _add_more(self, most: int) -> None:
        """Add further questions."""
        self.more = None if self.more is None else self.more + most

    def count(self, question: PanelQuestion) -> Judgement | None:
        """Count one question, once for each juror; return what became of it if it needs no call, or represents that."""
        verdicts: dict[str, JurorVerdict] = {}
        while names := question.unanswered(verdicts):
            known = [self._count_once(question.jurors[name]) for name in names]
            if None in known:
                if not verdicts:  # that of the small judge of a cascade is still to come
                    self._add_unsure(question)
                return question.foreseen
            verdicts |= {name: verdict for name, verdict in zip(names, known, strict=True) if verdict is not None}
        return question.judgement(verdicts)

    def _count_likely(self, question: PanelQuestion) -> Judgement | None:
        """The judgement of a question about an answer that does not exist yet; its calls count as likely."""
        if question.question.shared:
            return self.count(question)
        new = [expected for expected in question.expected if expected.key not in self.keys]
        self.keys.update(expected.key for expected in new)
        self.likely.update((expected.juror.model, expected.question.mode.name) for expected in new)
        self.again += sum(expected.question.mode.asks_again for expected in new)
        if not question.audited:
            self._add_unsure(question)
        return question.foreseen

    def _add_unsure(self, question: PanelQuestion) -> None:
        """Count the call of the large judge of a cascade."""
        large = list(question.jurors.values())[-1]
        if question.cascade is None:
            return
        if question.audited:
            self._count_once(large)
        elif self._known(large) is None:
            self.unsure[large.juror.model, large.question.mode.name][large.key] = question

    def _count_once(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict of one juror; a question without one is counted, once for all cases that share it."""
        known = self._known(question)
        if known is None and question.key not in self.keys:
            self.keys.add(question.key)
            self.modes[question.juror.model, question.question.mode.name] += 1
            if uncounted := question.question.uncounted_media:
                self.notes[_UNCOUNTED] += uncounted
            self.again += question.question.mode.asks_again
        elif known is not None and known.call is None:
            self.notes[_UNRECORDED] += 1
        else:
            self.stored += known is not None
        return known

    def _known(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict that needs no call; a cache that does not exist is not made."""
        mode, store = self.judges.options.mode, self.judges.store
        if mode == "refresh":
            return None
        is_recorded = question.juror.recordings.get(question.key) is not None
        needs_cache = store.asks or mode == "defer"
        return store.stored(question) if is_recorded or self._has_cache or not needs_cache else None

    @cached_property
    def _has_cache(self) -> bool:
        """Whether stored replies exist."""
        return self.judges.options.cache.exists()
