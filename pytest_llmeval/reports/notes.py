"""What reports show of single cases: location, texts, findings; and the worst cases."""

__all__ = (
    "TEXTS",
    "CaseNote",
    "ReportedTexts",
    "WorstCases",
    "case_notes",
    "repeats_line",
    "without_texts",
    "worst_cases",
)

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct, field

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.results import AnswerShown, CaseRecord, JudgingShown, MetricIndex, Result

ReportedTexts: TypeAlias = Literal["none", "failing", "all"]
"""Cases whose texts are in reports."""

TEXTS: tuple[ReportedTexts, ...] = get_args(ReportedTexts)

_FAILING = ("failed", "errored", "xfailed", "known_failure")
_WORST = 5
_OWN_DETAILS = ("repeats", "undefined")
"""Details of the run itself, which quote nothing but where repeats part."""

_PARTING = "parts_at"

_NOTHING: tuple[Any, ...] = (None, [], {})
_SLACK = 1e-6
"""Official scorers of pairs stay just below the best score."""


class CaseNote(Struct, frozen=True):
    """What reports show of a case besides its scores.

    Attributes:
        line: Line in its file; 0 if it has none.
        file: Data file that contains it; empty for the suite file.
        lines: Evaluator label to its findings.
        input: What the target received.
        expected: The ground truth.
        answers: The prediction; with repeats, each different one, those that failed most often first.
        judgings: Questions to judges and their replies.
        has_texts: Whether reports of all cases show input, expected and answers; an error analysis does so anyway.
    """

    line: int = 0
    file: str = ""
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    input: Any = None
    expected: Any = None
    answers: Sequence[AnswerShown] = ()
    judgings: Sequence[JudgingShown] = ()
    has_texts: bool = False

    def place(self, suite_file: str) -> str:
        """Return file and line in the form that editors and terminals link."""
        file = self.file or suite_file
        return f"{file}:{self.line}" if self.line else file

    @property
    def findings(self) -> list[str]:
        """Findings of all evaluators, each with the label of its evaluator."""
        return [f"{label}: {line}" for label, lines in self.lines.items() for line in lines]

    def texts(self) -> dict[str, Any]:
        """Return input, expected and prediction by name, as far as they exist."""
        texts = {
            name: value for name, value in (("input", self.input), ("expected", self.expected)) if value is not None
        }
        if self.answers:
            texts["prediction"] = self.answers[0].value
        if any(each.times > 1 for each in self.answers) or len(self.answers) > 1:
            texts["answers"] = [_answer(each) for each in self.answers]
        return texts


def _answer(answer: AnswerShown) -> dict[str, Any]:
    passed = {} if answer.passed is None else {"passed": answer.passed}
    return {"prediction": answer.value, "times": answer.times, **passed}


class WorstCases(Struct, frozen=True):
    """The cases that are farthest from the best value of a metric, the worst first.

    Attributes:
        metric: The metric.
        scores: Case id to score.
    """

    metric: str
    scores: Mapping[str, float]


def case_notes(
    cases: Iterable[Case], records: Iterable[CaseRecord], texts: ReportedTexts, files: Mapping[str, str]
) -> dict[str, CaseNote]:
    """Return the notes of cases, by id.

    Args:
        cases: Cases of the suite; those with answers have their texts as reports show them.
        records: Their results.
        texts: Which cases get their texts; ``none`` drops the findings as well, which quote them.
        files: Case id to data file, for cases outside the suite file.
    """
    by_id = {each.id: each for each in cases}
    notes = {}
    for record in records:
        case = by_id[record.id]
        file = files.get(case.id, "")
        if texts == "none":
            notes[case.id] = CaseNote(case.line, file)
        else:
            shown = texts == "all" or record.outcome in _FAILING
            received, expected = (case.input, case.expected) if record.answers else (None, None)
            notes[case.id] = CaseNote(
                case.line, file, record.lines, received, expected, record.answers, record.judgings, shown
            )
    return notes


def without_texts(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only the numbers in the details of a case: any text may quote the user's.

    Example:
        >>> without_texts({"fact_check": {"claim": "It is open.", "n": 2, "cited": [{"why": "words"}]}})
        {'fact_check': {'n': 2}}
    """
    kept = {name: each if name in _OWN_DETAILS else _without_texts(each) for name, each in details.items()}
    if isinstance(repeats := kept.get("repeats"), Mapping) and _PARTING in repeats:
        kept["repeats"] = {**repeats, _PARTING: _without_texts(repeats[_PARTING])}
    return {name: each for name, each in kept.items() if each not in _NOTHING}


def repeats_line(repeats: Mapping[str, Any]) -> str:
    """Say how the repeats of a case went, and where they part.

    >>> call, answer = {"what": "refund()", "repeats": [1, 3]}, {"what": "a message of the assistant", "repeats": [2]}
    >>> parts_at = {"turn": 2, "step": 1, "variants": [call, answer]}
    >>> repeats_line({"times": 3, "passed": 2, "status": "flaky", "parts_at": parts_at})
    '2 of 3 passed; they part in turn 2, step 1: refund() (1, 3), a message of the assistant (2)'
    """
    went = f"{repeats['passed']} of {repeats['times']} passed"
    parting = repeats.get(_PARTING)
    if parting is None:
        return went
    place = (
        f"step {parting['step']}" if parting.get("turn") is None else f"turn {parting['turn']}, step {parting['step']}"
    )
    variants = [(each.get("what", ""), ", ".join(map(str, each["repeats"]))) for each in parting["variants"]]
    listed = ", ".join(f"{what} ({numbers})".strip() for what, numbers in variants)
    return f"{went}; they part in {place}: {listed}"


def _without_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _without_texts(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in _NOTHING}
    if isinstance(value, list | tuple):
        return [each for each in map(_without_texts, value) if each not in _NOTHING]
    return None if isinstance(value, str) else value


def worst_cases(result: Result, metrics: MetricIndex, gated: Iterable[str]) -> WorstCases | None:
    """Return the worst cases by the first metric that a gate judges, or else by the first metric.

    A case with the best possible score is not among them. ``None`` where there is no such case.
    """
    names = [name for name in (*gated, *result.metrics) if name in result.metrics]
    if not names:
        return None
    found = metrics.find(names[0])
    lower = metrics.lower_is_better(names[0])
    best = None if found is None else found.metric.low if lower else found.metric.high
    scored = [(case.id, score) for case in result.cases if (score := case.metrics.get(names[0])) is not None]
    below = [(name, score) for name, score in scored if best is None or abs(score - best) > _SLACK]
    below.sort(key=lambda each: -each[1] if lower else each[1])
    return WorstCases(names[0], dict(below[:_WORST])) if below else None
