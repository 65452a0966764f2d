"""How the verdicts of a panel become one."""

__all__ = ("PanelVerdict", "Reduce", "decided", "reduced")

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from pytest_llmeval.core.errors import JudgeError, LlmevalError
from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.questions.replies import FLAGS

Reduce: TypeAlias = Literal["mean", "median", "majority", "unanimous"]

_VOTES: Final = ("majority", "unanimous")


@dataclass(frozen=True, slots=True)
class PanelVerdict(Verdict):
    """The verdict of a panel.

    Attributes:
        undecided: The scores between which a vote did not decide; the lowest of them counts.
    """

    undecided: tuple[float, ...] = ()


def reduced(
    mode: Mode, given: "Mapping[str, Verdict | LlmevalError]", reduce: Reduce | None, least: int
) -> Verdict | LlmevalError:
    """Return the verdict of a panel, or why it has none.

    Args:
        mode: Of the question.
        given: Juror to its verdict, or to why it has none.
        reduce: How verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        least: How many verdicts it takes.

    Returns:
        A `PanelVerdict`. Its details have the verdict of each juror as ``jurors``.
    """
    verdicts = {name: each for name, each in given.items() if isinstance(each, Verdict)}
    failed = {name: each for name, each in given.items() if not isinstance(each, Verdict)}
    # A spent budget, or a cache that cannot be used, is no failure of a juror: it holds for the run.
    if stopped := next((each for each in failed.values() if not isinstance(each, JudgeError)), None):
        return stopped
    if len(verdicts) < least:
        first = next(iter(failed.values()))
        if not verdicts and type(first) is not JudgeError and len(set(map(type, failed.values()))) == 1:
            return first  # judges are switched off, or there are none
        why = "; ".join(f"{name}: {each}" for name, each in failed.items())
        return JudgeError(f"found {len(verdicts)} of {len(given)} verdicts, expected at least {least}: {why}")
    how = reduce or ("majority" if mode.reply_schema is None else "mean")
    score, undecided = decided([each.score for each in verdicts.values()], how)
    details: dict[str, Any] = {"jurors": {name: _shown(each) for name, each in given.items()}}
    details |= {"undecided": undecided} if undecided else {}
    details |= _flags(list(verdicts.values()), how)
    return PanelVerdict(score, _reasoning(verdicts), details, tuple(undecided))


def decided(scores: Sequence[float], how: Reduce) -> tuple[float, list[float]]:
    """Return what scores are reduced to, and those between which a vote did not decide: then the lowest of them counts.

    >>> decided([1, 0, 1], "majority"), decided([1, 0], "majority"), decided([1, 0, 1], "unanimous")
    ((1, []), (0, [0, 1]), (0, [0, 1]))
    """
    if how not in _VOTES:
        return (median(scores) if how == "median" else math.fsum(scores) / len(scores)), []
    votes = Counter(scores)
    wanted = max(votes.values()) if how == "majority" else len(scores)
    winners = sorted(score for score, count in votes.items() if count >= wanted) or sorted(votes)
    return winners[0], winners if len(winners) > 1 else []


def _flags(verdicts: Sequence[Verdict], how: Reduce) -> dict[str, bool]:
    """Return the defects that the panel found: in a tie, and without unanimity, a defect counts as found."""
    return {
        flag: bool(-decided([-float(bool(each.details[flag])) for each in verdicts], _vote(how))[0])
        for flag in FLAGS
        if all(flag in each.details for each in verdicts)
    }


def _vote(how: Reduce) -> Reduce:
    return how if how in _VOTES else "majority"


def _reasoning(verdicts: Mapping[str, Verdict]) -> str:
    said = [f"{name} gives {each.score:g}: {each.reasoning}" for name, each in verdicts.items() if each.reasoning]
    return "; ".join(said)


def _shown(given: Verdict | LlmevalError) -> dict[str, Any]:
    if not isinstance(given, Verdict):
        return {"missing": str(given)}
    return {name: value for name, value in asdict(given).items() if value not in ("", {})}
