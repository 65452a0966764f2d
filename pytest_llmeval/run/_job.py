"""The job of answering a case, the answer, what that took (seconds, tokens, money), and the targets that answer."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import (
    LARGEST,
    MISSING,
    Case,
    JudgeCall,
    JudgeError,
    JudgingShown,
    LlmevalError,
    MediaLimits,
    MediaRun,
    MissingExtraError,
    NoAnswer,
    Parts,
    PredictionError,
    TargetUsage,
    is_finite_number,
)
from pytest_llmeval.numbers import UsageEvaluator
from pytest_llmeval.services import Background, Secrets
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.data import MediaFolder
    from pytest_llmeval.judges import JudgeAccess, StoredJudgement, Verdict
    from pytest_llmeval.services import RunCalls
    from pytest_llmeval.targets import BatchTarget, Target, World

Answers: TypeAlias = Mapping[str, Case | PredictionError]
"""Cases with their predictions, or why they have none, by id: one, or those of a block."""

FIGURE_DIGITS: Final = 6
"""Decimals of a latency: enough for people, and recordings stay readable."""

TARGET_TOKENS: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "request_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "response_tokens"),
}
"""The names that providers and libraries give to the tokens read and written."""

_UNKNOWN: Final = {
    "target_tokens": "the prediction says no input_tokens and output_tokens; set parts.usage",
    "target_cost_usd": "the prediction says neither cost_usd nor tokens of a model with a known price; set parts.usage",
}


def begin_run(root: Path, limits: MediaLimits | None = None) -> None:
    """Begin a run of cases, which counts its media from none and keeps them below a folder.

    Args:
        root: Of the run.
        limits: Of its media; default: as before.
    """

    def open_folder() -> "MediaFolder":
        from pytest_llmeval.data import MediaFolder

        return MediaFolder(root)

    MediaRun(open_folder, limits).begin()


class LoadedCase(Struct, frozen=True):
    """A case together with the suite that was loaded with it.

    Attributes:
        suite: The suite.
        case: The case.
        key: What its results are gathered under.
    """

    suite: LoadedSuite
    case: Case
    key: SuiteKey

    @property
    def is_skipped(self) -> bool:
        """Whether the case has the tag that skips it, for runs of cases without pytest's marks."""
        return "skip" in self.case.tags

    @property
    def place(self) -> tuple[SuiteKey, str]:
        """Suite key and case id of the case: a Python test has its own prediction for a case of a suite."""
        return self.key, self.case.id


class EarlyCalls(NamedTuple):
    """The calls of targets and judges that a case may make before its turn, while its fixtures are not set up."""

    target: bool = False
    judge: bool = False


class Job(Struct, frozen=True):
    """One repeat of one case that a target is to answer.

    Attributes:
        loaded: The case.
        repeat: Counted from 0.
        load_target: Returns what answers the case, loaded at the first need; raises `PredictionError` if nothing does.
        judge: Where its questions go; ``None`` where the suite has no judge.
        shared: Whether other processes may want the same prediction.
        user: Plays the user of its conversation; ``None`` where nobody does.
        opponents: Name of another system to its job for the same case, or why there is none.
        block: Cases that are asked for together; default: the case alone.
        messages: What has been said in its conversation, to which the target replies; ``None``: it gets the input.
        world: In which the target answers, once it is set up.
        around: Returns a context manager that is entered around the target's work, in the thread or task of that.
    """

    loaded: LoadedCase
    repeat: int
    load_target: "Callable[[], Target | BatchTarget]"
    judge: "JudgeAccess | None" = None
    shared: bool = False
    user: "JudgeAccess | None" = None
    opponents: "Mapping[str, Job | NoAnswer]" = {}
    block: Sequence[Case] = ()
    messages: list[Any] | None = None
    world: "World | None" = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def suite(self) -> LoadedSuite:
        """The suite of the job's case."""
        return self.loaded.suite

    @property
    def parts(self) -> Parts:
        """The paths to the parts of the case's prediction."""
        return self.suite.parts_of(self.case)

    @property
    def case(self) -> Case:
        """The case that the job is to answer."""
        return self.loaded.case

    @property
    def cases(self) -> Sequence[Case]:
        """The cases that the job asks for: its own, or a block of them."""
        return self.block or (self.case,)

    @property
    def key(self) -> SuiteKey:
        """The key under which the results of the case are gathered."""
        return self.loaded.key

    @property
    def place(self) -> tuple[SuiteKey, str, int]:
        """The suite, test, case and repeat that distinguish the job from all others."""
        return self.loaded.key, self.loaded.case.id, self.repeat

    def prepare(self, *, asks_target: bool) -> None:
        """Load the targets and connect the judge, which must happen in the thread of the tests."""
        __tracebackhide__ = True
        for opponent in self.opponents.values():
            if isinstance(opponent, Job):
                opponent.prepare(asks_target=opponent.case.prediction is MISSING)
        if asks_target:
            with suppress(Exception):  # raised again for every case that asks
                self.load_target()
                if self.suite.target is not None and self.suite.target.world is not None:
                    self.suite.called(self.suite.target.world, "world")
            if self.user is not None:
                self.user.open()
        if self.judge is not None:
            self.judge.open()


Next: TypeAlias = Callable[[Job], Awaitable[Answers]]
"""What a link asks if it cannot answer itself: the rest of the chain."""

Link: TypeAlias = Callable[[Job, Next], Awaitable[Answers]]
"""One way to answer a job: by itself, or by what the next link answers."""


class CaseAnswer(Struct):
    """The answer of one repeat of a case, with the judges' verdicts on it.

    Attributes:
        case: The case, with its prediction where there is one.
        error: Why there is no prediction, or no verdict because the budget is spent.
        verdicts: Evaluator label to what the judge said, turn by turn, to each of its questions.
        failed: Evaluator label to why its questions could not be put.
        calls: To judges.
        entries: Judgements that can be recorded.
        judgings: Questions to judges and their replies.
        made: Where the prediction comes from, as in `TargetUsage`.
    """

    case: Case
    error: BaseException | None = None
    verdicts: "dict[str, list[list[Verdict | JudgeError]]]" = {}
    failed: dict[str, Exception] = {}
    calls: list[JudgeCall] = []
    entries: "list[StoredJudgement]" = []
    judgings: list[JudgingShown] = []
    origin: Literal["run", "recorded", "given"] = "given"


def answer_to(job: Job, answers: Answers) -> Case:
    """The target's answer to the case of a job.

    Raises:
        PredictionError: There is none.
    """
    answer = answers[job.case.id]
    if isinstance(answer, PredictionError):
        raise answer
    return answer


def with_figures(case: Case, parts: Parts, recorded: Mapping[str, float] = {}) -> Case:
    """An answered case with its target's latency, tokens and cost, readable in `Case.parts`.

    Args:
        case: The case.
        parts: Where the parts of its prediction are.
        recorded: What was measured: ``latency_s``, which else the prediction may say, and the ``cost_usd`` that was
            worked out first.
    """
    usage = usage_of_target(parts, case.prediction, recorded.get("cost_usd"))
    figures: dict[str, Any] = {} if usage is None else usage._asdict()
    figures.pop("origin", None)
    latency = recorded.get("latency_s", _reported_latency(parts, case.prediction))
    if latency is not None:
        figures["latency_s"] = latency
    return case.with_part_paths(parts, figures) if figures else case


def with_parts(case: Case, parts: Parts) -> Case:
    """An answered case with the paths of its prediction's parts, even if the prediction states no usage."""
    known = with_figures(case, parts)
    return known if known.origin is not None or parts == Parts() else case.with_part_paths(parts)


def usage_of_target(parts: Parts, prediction: Any, cost_usd: float | None = None) -> TargetUsage | None:
    """The usage that the prediction of an answered case states; ``None`` where it states none.

    Args:
        parts: Where the parts are.
        prediction: The prediction.
        cost_usd: What the answer cost if the prediction does not say so; default: by the published price of its model.
    """
    if not isinstance(prediction, Mapping) and parts.usage is None:
        return None
    try:
        usage = parts.find("usage", prediction)
    except PredictionError:
        return TargetUsage()
    if usage is MISSING:
        return None
    reported: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
    tokens = {name: _first(reported, names) for name, names in TARGET_TOKENS.items()}
    cost = _first(reported, ("cost_usd", "cost"))
    if cost is None:
        cost = cost_usd
    if cost is None and isinstance(reported.get("model"), str):
        cost = _price_tokens(reported["model"], tokens["input_tokens"], tokens["output_tokens"])
    return TargetUsage(tokens["input_tokens"], tokens["output_tokens"], cost)


def _reported_latency(parts: Parts, prediction: Any) -> float | None:
    """The latency in seconds that the prediction of an answered case itself states, as those of traces do."""
    try:
        usage = parts.find("usage", prediction)
    except PredictionError:
        return None
    return _amount(usage.get("latency_s")) if isinstance(usage, Mapping) else None


def _first(reported: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """The first amount of tokens or money that an answered case reports under one of several names."""
    return next((amount for name in names if (amount := _amount(reported.get(name))) is not None), None)


def _amount(value: Any) -> float | None:
    """The tokens or cost that an answered case reports, if usable as a number; services may write anything there."""
    return value if is_finite_number(value) and 0 <= value <= LARGEST else None


def _price_tokens(model: str, read: float | None, written: float | None) -> float | None:
    """The cost of an answered case's tokens by the published price of its model; ``None`` if a count is unknown."""
    if read is None or written is None:
        return None
    from pytest_llmeval.judges import Price

    price = Price.of_model(model)
    return None if price is None else price.of_tokens(read, written)


def costs_of(answers: "Sequence[CaseAnswer]") -> tuple[list[float], list[TargetUsage]]:
    """The known latencies of a case's answers, and the usage of each answer."""
    seconds: list[float] = []
    usage: list[TargetUsage] = []
    for answer in answers:
        if answer.case.prediction is MISSING:
            continue
        figures: Mapping[str, Any] = answer.case.origin.figures if answer.case.origin is not None else {}
        if "latency_s" in figures:
            seconds.append(figures["latency_s"])
        read, written, cost = map(figures.get, ("input_tokens", "output_tokens", "cost_usd"))
        usage.append(TargetUsage(read, written, cost, answer.origin))
    return seconds, usage


def target_scores(answers: "Sequence[CaseAnswer]") -> dict[str, float | None]:
    """The latency, tokens and cost of an answered case as scores of its target; ``None`` where one is unknown."""
    return UsageEvaluator().scores(UsageEvaluator.observation_of((), *costs_of(answers)))


def why_figures_unknown(figures: Mapping[str, float | None]) -> dict[str, str]:
    """The reason why a run does not know tokens and cost of a target; a latency needs none."""
    unknown = [name for name in _UNKNOWN if name in figures and figures[name] is None]
    return {
        name: f"{_UNKNOWN[name]}{MissingExtraError.price_hint() if name == 'target_cost_usd' else ''}"
        for name in unknown
    }


_NO_TARGET: Final = (
    "no prediction and no target: add 'prediction' to the case or 'target' to the suite, or define llmeval_target in "
    "a conftest.py"
)


def why_unanswered(suite: LoadedSuite) -> str:
    """The reason why a run leaves cases of a suite without prediction unanswered; empty if something answers."""
    if suite.system and suite.target is None and suite.model is None:
        return f"the system {suite.system!r} has no prediction for this case"
    return _NO_TARGET if suite.model is None and (suite.target is None or suite.target.is_for_fixture) else ""


class SuiteTargets(Struct):
    """The targets of suites that a process has loaded.

    Attributes:
        background: Closes connections and processes in the end.
        calls: Of the run.
        slow_down: Called when a model is asked too often.
    """

    background: Background
    calls: "RunCalls"
    slow_down: Callable[[], None] = lambda: None
    _targets: "dict[tuple[Path, str], Target | BatchTarget | PredictionError]" = {}

    def load(self, suite: LoadedSuite) -> "Target | BatchTarget":
        """The target of a suite that this process runs.

        Raises:
            PredictionError: The suite has none, or it cannot be loaded.
        """
        if reason := why_unanswered(suite):
            raise PredictionError(reason)
        if suite.place not in self._targets:
            try:
                self._targets[suite.place] = self._connect(suite)
            except PredictionError as error:
                self._targets[suite.place] = error
            Secrets.remember(suite.secret_variables)  # its module may have read a file of variables
        target = self._targets[suite.place]
        if isinstance(target, PredictionError):
            raise target
        return target

    def _connect(self, suite: LoadedSuite) -> "Target | BatchTarget":
        """The target of a suite, ready to be called."""
        if suite.model is not None:
            return self._connect_model(suite)
        spec = suite.target
        assert spec is not None
        if spec.python is not None:
            return suite.called(spec.python)
        from pytest_llmeval.targets import BatchTarget, connect_target

        if spec.workspace is None:
            target = connect_target(spec, suite.path.parent, self.calls)
        else:
            try:
                target = Registry.installed().extensions("placed")[-1].make(BatchTarget, spec, suite.path.parent)
            except LlmevalError as error:
                raise PredictionError(str(error)) from error
        self.background.closing.append(target.aclose)
        return target

    def _connect_model(self, suite: LoadedSuite) -> "Target":
        """The target of a suite that a model answers."""
        from pytest_llmeval.judges import JudgeConnection

        assert suite.model is not None
        client = JudgeConnection(suite.model.spec).open(on_rate_limit=lambda _: self.slow_down(), calls=self.calls)
        self.background.closing.append(client.aclose)
        return suite.model.target(client)
