"""The judges that a question is put to."""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import FieldsError, JudgeCall, JudgeError, JudgingShown, LlmevalError
from pytest_llmeval.judges._protocol import (
    ChatClient,
    JudgeClient,
    JudgeReply,
    JudgeRequest,
    Message,
    Question,
    UnaskedError,
    Verdict,
)
from pytest_llmeval.judges._reduction import candidates, cascaded, case_repeat, is_unsure, opinions, reduced, unanswered
from pytest_llmeval.judges._spec import (
    CascadeRule,
    JudgeSpec,
    PanelSpec,
    Price,
    Reduce,
    cascade_model,
    numbered,
    panel_faults,
    panel_model,
)
from pytest_llmeval.judges._stored_judgement import StoredJudgement, components, judgement_key
from pytest_llmeval.judges.questions._modes import render

if TYPE_CHECKING:
    from pytest_llmeval.judges._recordings import Judgements

_ALONE = ""
"""The name of a judge that is no juror among others."""


Judgeable: TypeAlias = (
    str
    | JudgeSpec
    | JudgeClient
    | ChatClient
    | Callable[[JudgeRequest], JudgeReply | str | Awaitable[JudgeReply | str]]
)
"""A judge: ``PROVIDER:NAME`` of a model, a spec, a client, or a function, plain or async."""


@dataclass(frozen=True)
class Panel:
    """A panel of several judges for Python code, in place of one judge.

    Attributes:
        judges: Two or more; as a mapping with names for reports, otherwise they are called by their models.
        reduce: ``mean``, ``median``, ``majority`` or ``unanimous``; ``None``: the majority of words such as yes and no,
            the mean of scores.
        min_judges: How many verdicts a question needs; ``None``: that of every judge.

    Raises:
        FieldsError: A `ValueError` with every fault.
    """

    judges: Mapping[str, Judgeable] | Sequence[Judgeable]
    reduce: Reduce | None = None
    min_judges: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.judges, str) or not isinstance(self.judges, Mapping | Sequence):  # a text is a sequence, too
            raise FieldsError(
                [("judges", f"found {self.judges!r}, expected a list or a mapping of two or more judges")]
            )
        if faults := panel_faults(len(self.judges), self.reduce, self.min_judges):
            raise FieldsError(faults)

    @property
    def named(self) -> dict[str, Judgeable]:
        """The judges of a panel in Python, each under a name of its own."""
        if isinstance(self.judges, Mapping):
            return dict(self.judges)
        return dict(zip(numbered([_name_of_judge(judge) for judge in self.judges]), self.judges, strict=True))

    @property
    def least(self) -> int:
        """The number of verdicts that a question needs."""
        return self.min_judges or len(self.judges)


def _name_of_judge(judge: Judgeable) -> str:
    """The name of a panel's judge in reports: its model, or the name of the user's function or class."""
    if isinstance(judge, JudgeSpec):
        return str(judge.model)
    return judge if isinstance(judge, str) else getattr(judge, "__name__", type(judge).__name__)


class NoJudgeError(JudgeError):
    """The suite has no judge."""

    is_unasked = True


StoredReplies: TypeAlias = Callable[[str], StoredJudgement | None]
"""Key to the judgement that is stored under it."""


@dataclass
class Juror:
    """A judge of a suite with its model, client and recordings, alone or in a panel.

    Attributes:
        model: ``PROVIDER:NAME``, as keys and recordings have it.
        parameters: What the user set, such as ``temperature``.
        recordings: Committed judgements.
        client: Whom to ask; ``None`` until one is needed.
        price: Of the model; ``None`` where none is known.
        way: Address and key source; affects availability, not verdicts.
        absent: Why there is no client when one is needed.
        writes: Whether it writes tokens, as models of embeddings do not.
        spec: How it is reached.
    """

    model: str
    parameters: dict[str, Any]
    recordings: "Judgements"
    client: JudgeClient | None = None
    price: Price | None = None
    way: str = ""
    absent: str = (
        "no judge is configured: add 'judge: {model: PROVIDER:NAME}' to the suite, use --llmeval-judge-model, "
        "or define the fixture judge_client"
    )
    writes: bool = True
    spec: JudgeSpec = field(default_factory=JudgeSpec)

    @property
    def largest_call(self) -> dict[str, Any]:
        """The parameters that limit what a call may cost."""
        return self.parameters if self.writes else {**self.parameters, "max_tokens": 1}


@dataclass(frozen=True)
class JudgePanel:
    """The judges of a suite; one judge is a panel of one.

    Attributes:
        jurors: Name to judge. All of them have the recordings of the suite.
        reduce: How their verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        least: How many verdicts a question needs.
        cascade: When the second of two judges is asked; ``None``: all of them always are.
    """

    jurors: Mapping[str, Juror]
    reduce: Reduce | None = None
    least: int = 1
    cascade: CascadeRule | None = None

    @classmethod
    def of_one(cls, juror: Juror) -> "JudgePanel":
        """The panel that a single judge is."""
        return cls({_ALONE: juror})

    @classmethod
    def from_spec(cls, spec: PanelSpec, jurors: Sequence[Juror]) -> "JudgePanel":
        """The panel of a suite file that has several judges."""
        return cls(dict(zip(spec.names, jurors, strict=True)), spec.reduce, spec.least, spec.cascade)

    @classmethod
    def from_python(cls, judges: Judgeable | Panel, *, writes: bool = True) -> "JudgePanel":
        """The panel of a judge, or of several, that Python code names; its clients are connected.

        Args:
            judges: The judge or judges.
            writes: As in `Juror`.

        Raises:
            JudgeError: One cannot judge.
        """
        if isinstance(judges, Panel):
            jurors = {name: _sole_juror(judge, writes=writes) for name, judge in judges.named.items()}
            return cls(jurors, judges.reduce, judges.least)
        return cls.of_one(_sole_juror(judges, writes=writes))

    @classmethod
    def without_clients(cls, spec: JudgeSpec | PanelSpec, recordings: "Judgements") -> "JudgePanel":
        """The panel of a suite's judge or judges, for questions that are worked out without a run."""
        jurors = [Juror(judge.model or JudgeSpec.OWN, judge.request_parameters(), recordings) for judge in spec.jurors]
        return cls.from_spec(spec, jurors) if isinstance(spec, PanelSpec) else cls.of_one(*jurors)

    @property
    def models(self) -> list[str]:
        """The model of each juror."""
        return [juror.model for juror in self.jurors.values()]

    @property
    def most_calls(self) -> int:
        """The most calls that a question takes, if none is repeated."""
        return len(self.jurors) + (self.cascade.opinions - 1 if self.cascade is not None else 0)

    @property
    def is_alone(self) -> bool:
        """True if it is one judge, whose verdicts are not reduced."""
        return _ALONE in self.jurors

    @property
    def model(self) -> str:
        """The models in their order and their reduction, which with the parameters decide its verdicts."""
        if self.cascade is not None:
            return cascade_model(self.models, self.cascade)
        return self.models[0] if self.is_alone else panel_model(self.models, self.reduce, self.least)

    @property
    def parameters(self) -> Any:
        """The parameters that the user set for the judge, or for each juror."""
        parameters = [juror.parameters for juror in self.jurors.values()]
        return parameters[0] if self.is_alone else parameters

    def bind(self, question: Question, case: str, repeat: int = 0, asker: str = "") -> "PanelQuestion":
        """A question to every juror, or to one if that is enough; see `JurorQuestion` and `PanelQuestion`."""
        if self.cascade is not None:
            return PanelQuestion(self, question, self._steps(self.cascade, question, case, repeat, asker))
        jurors = candidates(self.jurors, question.mode, self.least)
        bound = {name: JurorQuestion(juror, question, case, repeat, asker) for name, juror in jurors.items()}
        return PanelQuestion(self, question, bound)

    def _steps(
        self, cascade: CascadeRule, question: Question, case: str, repeat: int, asker: str
    ) -> "dict[str, JurorQuestion]":
        """A question to the judges of a cascade; what is no verdict, such as a list, is for the large one."""
        (small, first), (large, last) = self.jurors.items()
        bound = {large: JurorQuestion(last, question, case, repeat, asker)}
        if question.mode.asks_one:
            return bound
        repeats = opinions(small, repeat, cascade).items()
        return {name: JurorQuestion(first, question, case, key_repeat, asker) for name, key_repeat in repeats} | bound


@dataclass(frozen=True)
class JurorQuestion:
    """One question about one case, in one repeat, to one judge.

    Attributes:
        juror: Whom it goes to.
        question: What is asked.
        case: Id of the case.
        repeat: Counted from 0.
        asker: Distinguishes cases of one id: those of other suites, variants of the target, and tests.
    """

    juror: Juror
    question: Question
    case: str
    repeat: int = 0
    asker: str = ""

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The question as the model gets it."""
        return render(self.question)

    @property
    def turn(self) -> tuple[str, str, str, int]:
        """The identity of the question in its run: equal only if the same case runs again and asks the same."""
        return self.key, self.asker, self.case, self.repeat

    @cached_property
    def key(self) -> str:
        """The key of the judgement."""
        return judgement_key(self.question, self.messages, **self._terms)

    def components(self) -> dict[str, Any]:
        """The components of the judgement's key."""
        return components(self.question, self.messages, **self._terms)

    @property
    def _terms(self) -> dict[str, Any]:
        """The components of a key besides the question; repeats share the key of a shared question."""
        return {
            "model": self.juror.model,
            "parameters": self.juror.parameters,
            "repeat": 0 if self.question.shared else self.repeat,
        }

    def stored_verdict(self, stored: "StoredReplies") -> "JurorVerdict | None":
        """The verdict in a recorded reply, or else in a stored one, without its call.

        Args:
            stored: Returns what is stored under a key.
        """
        entry = self.juror.recordings.get(self.key) or stored(self.key)
        if entry is None:
            return None
        try:
            return JurorVerdict(self.question.mode.read_text(entry.reply))
        except JudgeError as error:
            return JurorVerdict(error)

    def request(self) -> JudgeRequest:
        """The request for a client, in which the model has no provider."""
        mode, name = self.question.mode, self.juror.model.partition(":")[2]
        return JudgeRequest(self.messages, name, self.juror.parameters, mode.reply_schema, mode.expected_of)


class JurorVerdict(Struct, frozen=True):
    """The answer of one judge to a question, with the cost of the call.

    Attributes:
        verdict: The verdict, or why there is none.
        call: What it cost, if a model was ever asked.
        entry: What can be recorded.
        unread: The call before it, whose reply could not be read.
    """

    verdict: Verdict | LlmevalError
    call: JudgeCall | None = None
    entry: StoredJudgement | None = None
    unread: JudgeCall | None = None

    @property
    def score(self) -> float | None:
        """The score of the verdict, if there is one."""
        return self.verdict.score if isinstance(self.verdict, Verdict) else None

    @property
    def reply(self) -> str:
        """The text of the reply, or else the reasons of the verdict, or why there is none."""
        if self.entry is not None:
            return self.entry.reply
        return (isinstance(self.verdict, Verdict) and self.verdict.reasoning) or str(self.verdict)

    @property
    def calls(self) -> Sequence[JudgeCall]:
        """All calls of judges that the verdict took."""
        return [call for call in (self.unread, self.call) if call is not None]


class Judgement(Struct, frozen=True):
    """The joint judgement of a panel on one question, with the answer of each juror.

    Attributes:
        verdict: The verdict, or why there is none.
        jurors: Name to the answer of each judge that was asked.
    """

    verdict: Verdict | LlmevalError
    jurors: Mapping[str, JurorVerdict] = {}

    @property
    def calls(self) -> Sequence[JudgeCall]:
        """All calls of judges that the judgement took."""
        return [call._replace(judge=name) for name, juror in self.jurors.items() for call in juror.calls]

    def judgings(self, question: Question, evaluator: str) -> list[JudgingShown]:
        """The question and the reply of each juror, as reports show them.

        Args:
            question: The question, whose media are left out.
            evaluator: Label of the evaluator that asked.
        """
        texts = {name: str(text) for name, text in question.texts.items()}
        mode = question.mode.name
        return [
            JudgingShown(evaluator, mode, texts, juror.reply, juror.score, juror.call and juror.call.cost_usd, name)
            for name, juror in self.jurors.items()
        ]

    @property
    def entries(self) -> Sequence[StoredJudgement]:
        """The judgements that can be recorded."""
        return [juror.entry for juror in self.jurors.values() if juror.entry is not None]


@dataclass(frozen=True)
class PanelQuestion:
    """One question about one case, in one repeat, to a panel.

    Attributes:
        panel: Whom it goes to.
        question: What is asked.
        jurors: Name to the question as the juror gets it. Of a mode that asks one, the others take the place of a juror
            that fails; of a cascade, the last is the large judge.
        audited: Of a cascade: whether the large judge is asked even if the small one is sure.
    """

    panel: JudgePanel
    question: Question
    jurors: Mapping[str, JurorQuestion]
    audited: bool = False

    @cached_property
    def key(self) -> str:
        """The keys of the judgements that the panel expects, in one text."""
        return " ".join(question.key for question in self.expected)

    @property
    def asks_one(self) -> bool:
        """True if one verdict is enough."""
        return self.question.mode.asks_one

    @property
    def cascade(self) -> CascadeRule | None:
        """The rule by which the large judge is asked; ``None`` if that does not depend on others."""
        return None if self.asks_one else self.panel.cascade

    @property
    def expected(self) -> tuple[JurorQuestion, ...]:
        """The question to each juror, as far as none fails; to the large judge of a cascade if it is asked anyway."""
        every = tuple(self.jurors.values())
        if self.cascade is not None:
            return every if self.audited else every[:-1]
        return every[: 1 if self.asks_one else None]

    @property
    def askable(self) -> Collection[JurorQuestion]:
        """The question to each juror that may get it; the large judge of a cascade may."""
        return self.expected if self.cascade is None else self.jurors.values()

    @property
    def foreseen(self) -> Judgement | None:
        """The judgement in a plan, if the question foresees one."""
        verdict = self.question.foreseen
        return None if verdict is None else Judgement(verdict)

    def known(self, verdict_of: Callable[[JurorQuestion], JurorVerdict | None]) -> Judgement | None:
        """The judgement, if enough jurors have a verdict.

        Args:
            verdict_of: Returns the verdict of a juror, if it has one.
        """
        answers: dict[str, JurorVerdict] = {}
        while names := self.unanswered(answers):
            for name in names:
                verdict = verdict_of(self.jurors[name])
                if verdict is None:
                    return None
                answers[name] = verdict
        return self.judgement(answers)

    def unsure_share(self, entries: Iterable[StoredJudgement]) -> float | None:
        """The share of stored verdicts of which the small judge of a cascade is unsure; ``None`` without any.

        Args:
            entries: Stored judgements of the mode, each once.
        """
        rule, mode = self.cascade, self.question.mode
        small = next(iter(self.jurors.values())).juror.model
        groups: dict[str, list[Verdict]] = defaultdict(list)
        for entry in entries:
            made_of = entry.components
            if made_of["model"] == small:
                place = {**made_of, "repeat": case_repeat(made_of["repeat"])}
                with suppress(JudgeError):
                    groups[json.dumps(place, sort_keys=True)].append(mode.read_text(entry.reply))
        asked_enough = [opinions for opinions in groups.values() if rule is not None and len(opinions) == rule.opinions]
        if rule is None or not asked_enough:
            return None
        return sum(is_unsure(rule, mode, opinions) for opinions in asked_enough) / len(asked_enough)

    def unanswered(self, answers: Mapping[str, JurorVerdict]) -> Sequence[str]:
        """The jurors to ask next, all at a time; none once there is enough for a verdict.

        Args:
            answers: Name to answer, so far.
        """
        names = list(self.jurors)
        if any(isinstance(answer.verdict, UnaskedError) for answer in answers.values()):
            return []
        if self.cascade is not None:
            verdicts = {name: answer.verdict for name, answer in answers.items()}
            return unanswered(self.cascade, self.question.mode, names, verdicts, audited=self.audited)
        if not self.asks_one:
            return [] if answers else names
        failed = all(isinstance(answer.verdict, JudgeError) for answer in answers.values())
        return names[len(answers) : len(answers) + 1] if failed else []

    def judgement(self, answers: Mapping[str, JurorVerdict]) -> Judgement:
        """The judgement that the answers of the jurors are."""
        return Judgement(self._reduce_verdicts({name: answer.verdict for name, answer in answers.items()}), answers)

    def _reduce_verdicts(self, verdicts: Mapping[str, Verdict | LlmevalError]) -> Verdict | LlmevalError:
        """The joint verdict of the jurors."""
        if self.panel.is_alone:
            return verdicts[_ALONE]
        if unasked := [verdict for verdict in verdicts.values() if isinstance(verdict, UnaskedError)]:
            return unasked[0]
        if self.cascade is not None:
            return cascaded(self.cascade, self.question.mode, list(self.jurors), verdicts)
        return reduced(self.question.mode, verdicts, self.panel.reduce, self.panel.least)


def _sole_juror(llm: Any, *, writes: bool) -> Juror:
    """A juror for a model that Python code passes: a name, a `JudgeSpec`, or the user's own object."""
    from pytest_llmeval.judges._recordings import Judgements
    from pytest_llmeval.judges.clients import JudgeConnection

    spec = JudgeSpec(llm) if isinstance(llm, str) else llm
    client = JudgeConnection.client_of(spec)
    spec = spec if isinstance(spec, JudgeSpec) else getattr(llm, "spec", None)
    known = spec if isinstance(spec, JudgeSpec) else JudgeSpec()
    parameters, recordings = known.request_parameters(), Judgements(Path())
    return Juror(known.model or "", parameters, recordings, client, way=known.way, writes=writes, spec=known)
