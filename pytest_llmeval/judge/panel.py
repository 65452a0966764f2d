"""A panel of judges: several models answer each question, and their verdicts become one."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, get_args

from msgspec.structs import asdict

from pytest_llmeval.core.errors import FieldsError, JudgeError, LlmevalError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.questions.replies import FLAGS, UNNAMED_DEFECTS
from pytest_llmeval.judge.spec import JudgeSpec, Reduce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_llmeval.judge.contract import Mode

__all__ = (
    "PanelError",
    "PanelSpec",
    "PanelVerdict",
    "Votes",
    "candidates",
    "decided",
    "is_panel",
    "juror_lines",
    "jurors_of",
    "numbered",
    "panel_faults",
    "panel_model",
    "reduced",
    "replaced_jurors",
)


_T = TypeVar("_T")
_FEWEST = 2
_PANEL = "panel ("
_JURORS = "): "


@dataclass(frozen=True)
class PanelSpec:
    """The judges of a suite file that has several.

    Attributes:
        judges: The jurors, two or more, each with a model.
        reduce: How their verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        min_judges: How many verdicts a question needs; ``None``: that of every juror.

    Raises:
        FieldsError: With every fault.
    """

    judges: tuple[JudgeSpec, ...]
    reduce: Reduce | None = None
    min_judges: int | None = None

    def __post_init__(self) -> None:
        faults = panel_faults(len(self.judges), self.reduce, self.min_judges)
        if any(spec.model is None for spec in self.judges):
            faults.append(("judges", "found a juror without a model, expected PROVIDER:NAME"))
        calls = [(spec.model, repr(spec.request_parameters())) for spec in self.judges]
        if twice := next((call[0] for number, call in enumerate(calls) if call in calls[:number]), None):
            faults.append(("judges", f"found {twice!r} twice with the same parameters, expected distinct judges"))
        if faults:
            raise FieldsError(faults)

    @property
    def names(self) -> tuple[str, ...]:
        """What reports call the jurors: by their models, with a number where several have the same."""
        return tuple(numbered([str(spec.model) for spec in self.judges]))

    @property
    def least(self) -> int:
        """How many verdicts a question needs."""
        return self.min_judges or len(self.judges)


def numbered(names: "Sequence[str]") -> list[str]:
    """Return names of which each stands once.

    >>> numbered(["openai:a", "openai:b", "openai:a"])
    ['openai:a #1', 'openai:b', 'openai:a #2']
    """
    return [
        name if names.count(name) == 1 else f"{name} #{names[: number + 1].count(name)}"
        for number, name in enumerate(names)
    ]


def panel_faults(jurors: int, reduce: Any, least: Any) -> list[tuple[str, str]]:
    """Return what is wrong with a panel: name of the setting to fault."""
    faults = []
    if jurors < _FEWEST:
        faults.append(("judges", f"found {counted(jurors, 'judge')}, expected two or more"))
    if reduce is not None and reduce not in get_args(Reduce):
        faults.append(("reduce", f"found {reduce!r}, expected one of {', '.join(get_args(Reduce))}"))
    if least is not None and not (type(least) is int and 1 <= least <= jurors):
        faults.append(("min_judges", f"found {least!r}, expected 1 to {jurors}, the number of judges"))
    return faults


def panel_model(models: "Sequence[str]", reduce: Reduce | None, least: int) -> str:
    """Return what stands for the models of a panel, in place of that of a single judge.

    >>> panel_model(["openai:a", "openai:b"], "mean", 2)
    'panel (mean, 2 of 2): openai:a, openai:b'
    """
    return f"{_PANEL}{reduce or 'majority or mean'}, {least} of {len(models)}{_JURORS}{', '.join(models)}"


def is_panel(model: str) -> bool:
    """Return whether what decides verdicts is a panel; see `panel_model`."""
    return model.startswith(_PANEL)


def replaced_jurors(old: str, new: str) -> list[tuple[str, str]]:
    """Return who left a panel and who took the place, unless more than that has changed; see `panel_model`.

    >>> replaced_jurors("panel (mean, 2 of 2): openai:a, openai:a", "panel (mean, 2 of 2): openai:a, openai:b")
    [('openai:a #2', 'openai:b')]
    """
    (how, _, before), (how_now, _, after) = (each.partition(_JURORS) for each in (old, new))
    jurors, others = before.split(", "), after.split(", ")
    if how != how_now or len(jurors) != len(others):
        return []
    named = zip(numbered(jurors), jurors, others, strict=True)
    return [(name, now) for name, was, now in named if was != now]


def candidates(jurors: Mapping[str, _T], mode: "Mode", least: int) -> dict[str, _T]:
    """Return who may be asked: all jurors, or for a mode that asks one, the first, and one for each that may fail."""
    return dict(list(jurors.items())[: len(jurors) - least + 1 if mode.asks_one else None])


def jurors_of(spec: "JudgeSpec | PanelSpec") -> tuple[JudgeSpec, ...]:
    """Return the judges of a suite."""
    return spec.judges if isinstance(spec, PanelSpec) else (spec,)


_VOTES: Final = ("majority", "unanimous")


Votes: TypeAlias = Mapping[str, float | None]
"""Juror to score from 0 to 1 for one thing that is judged; ``None`` where the juror failed."""


class PanelVerdict(Verdict, frozen=True):
    """The verdict of a panel. Its details have that of each juror as ``jurors``.

    Attributes:
        undecided: The scores between which a vote did not decide; the lowest of them counts.
        votes: What the jurors gave.
    """

    undecided: tuple[float, ...] = ()
    votes: tuple[Votes, ...] = ()


class PanelError(JudgeError):
    """Too few jurors gave a verdict.

    Attributes:
        votes: What the others gave.
    """

    def __init__(self, message: str, votes: tuple[Votes, ...]) -> None:
        super().__init__(message)
        self.votes = votes


def reduced(
    mode: Mode, given: "Mapping[str, Verdict | LlmevalError]", reduce: Reduce | None, least: int
) -> Verdict | LlmevalError:
    """Return the verdict of a panel, or why it has none.

    Args:
        mode: Of the question.
        given: Juror to its verdict, or to why it has none.
        reduce: How verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        least: How many verdicts it takes.
    """
    verdicts = [each for each in given.values() if isinstance(each, Verdict)]
    failed = {name: each for name, each in given.items() if not isinstance(each, Verdict)}
    # A spent budget, or a cache that cannot be used, is no failure of a juror: it holds for the run.
    if stopped := next((each for each in failed.values() if not isinstance(each, JudgeError)), None):
        return stopped
    if mode.asks_one and verdicts:
        return verdicts[0]
    votes = () if mode.asks_one else _votes(mode, given)
    least = 1 if mode.asks_one else least
    if len(verdicts) < least:
        first = next(iter(failed.values()))
        if not verdicts and type(first) is not JudgeError and len(set(map(type, failed.values()))) == 1:
            return first  # judges are switched off, or there are none
        why = "; ".join(f"{name}: {each}" for name, each in failed.items())
        return PanelError(f"found {len(verdicts)} of {len(given)} verdicts, expected at least {least}: {why}", votes)
    how = reduce or ("majority" if mode.decides or mode.reply_schema is None else "mean")
    jurors = {name: _shown(each) for name, each in given.items()}
    reasoning = "; ".join(juror_lines(jurors))
    if mode.listing is not None:
        rows = zip(*map(mode.listing.grades, verdicts), strict=True)
        joined = mode.listing.join(verdicts, [decided(row, how)[0] for row in rows])
        return PanelVerdict(joined.score, reasoning, {**joined.details, "jurors": jurors}, votes=votes)
    score, undecided = decided([each.score for each in verdicts], how)
    details: dict[str, Any] = {"jurors": jurors, **_findings(verdicts, how)}
    if undecided:
        score = score if mode.tied is None else mode.tied
        details["undecided"] = undecided
    return PanelVerdict(score, reasoning, details, tuple(undecided), votes)


def _votes(mode: Mode, given: "Mapping[str, Verdict | LlmevalError]") -> tuple[Votes, ...]:
    """Return what each juror gave for each thing that is judged."""
    low, high = mode.scale
    rows: dict[str, Sequence[float]] = {}
    for name, each in given.items():
        if isinstance(each, Verdict):
            rows[name] = mode.listing.grades(each) if mode.listing is not None else [(each.score - low) / (high - low)]
    things = max(map(len, rows.values()), default=1)
    return tuple({name: rows[name][place] if name in rows else None for name in given} for place in range(things))


def decided(scores: Sequence[float], how: Reduce) -> tuple[float, list[float]]:
    """Return what scores are reduced to, and those between which a vote did not decide: then the lowest of them counts.

    >>> decided([1, 0, 1], "majority"), decided([1, 0], "majority"), decided([1, 0, 1], "unanimous")
    ((1, []), (0, [0, 1]), (0, [0, 1]))
    """
    if how == "median":
        from statistics import median

        return median(scores), []
    if how not in _VOTES:
        return math.fsum(scores) / len(scores), []
    votes = Counter(scores)
    wanted = max(votes.values()) if how == "majority" else len(scores)
    winners = sorted(score for score, count in votes.items() if count >= wanted) or sorted(votes)
    return winners[0], winners if len(winners) > 1 else []


def _findings(verdicts: Sequence[Verdict], how: Reduce) -> dict[str, Any]:
    """Return the findings that all verdicts have: defects, and grades besides the score.

    Others, such as remarks, are those of one juror, which its own verdict shows.
    """
    found: dict[str, Any] = {}
    for name in verdicts[0].details:
        values = [each.details.get(name) for each in verdicts]
        if name in FLAGS:
            # A defect counts as found where a vote does not decide; a juror who does not mention it has no vote.
            votes = [
                -float(bool(value))
                for value, each in zip(values, verdicts, strict=True)
                if name not in each.details.get(UNNAMED_DEFECTS, ())
            ]
            found[name] = bool(votes) and bool(-decided(votes, _vote(how))[0])
            if not votes:
                found.setdefault(UNNAMED_DEFECTS, []).append(name)
        elif grades := _grades(values):
            found[name] = {each: decided([grade[each] for grade in grades], how)[0] for each in grades[0]}
    return found


def _grades(values: Sequence[Any]) -> Sequence[Mapping[str, float]]:
    """Return values if they are grades by name, the same names in all of them; else nothing."""
    if not all(isinstance(each, Mapping) and each.keys() == values[0].keys() for each in values):
        return ()
    numbers = [number for each in values for number in each.values()]
    return values if all(type(number) in (int, float) for number in numbers) else ()


def _vote(how: Reduce) -> Reduce:
    return how if how in _VOTES else "majority"


def juror_lines(jurors: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each juror in the details of a verdict: what it gives, and why."""
    lines = []
    for name, each in jurors.items():
        gives, why = ("no verdict", each["missing"]) if "missing" in each else (f"{each['score']:g}", "")
        why = why or each.get("reasoning", "")
        lines.append(f"{name} gives {gives}: {why}" if why else f"{name} gives {gives}")
    return lines


def _shown(given: Verdict | LlmevalError) -> dict[str, Any]:
    if not isinstance(given, Verdict):
        return {"missing": str(given)}
    return {name: value for name, value in asdict(given).items() if value not in ("", {})}
