"""The verdict of several judges."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import asdict

from pytest_llmeval.core import JudgeError, LlmevalError
from pytest_llmeval.judges._protocol import ROUNDING, Mode, Verdict
from pytest_llmeval.judges._spec import CascadeRule, Reduce
from pytest_llmeval.judges.questions._replies import FLAGS, UNNAMED_DEFECTS

_VOTES: Final = ("majority", "unanimous")


Votes: TypeAlias = Mapping[str, float | None]
"""Juror to score from 0 to 1 for one thing that is judged; ``None`` where the juror failed."""


class PanelVerdict(Verdict, frozen=True):
    """The joint verdict of a panel of judges. Its details have that of each juror as ``jurors``.

    Attributes:
        undecided: The scores between which a vote did not decide; the lowest of them counts.
        votes: What the jurors gave.
    """

    undecided: tuple[float, ...] = ()
    votes: tuple[Votes, ...] = ()

    @staticmethod
    def votes_in(verdicts: "Sequence[Verdict | LlmevalError]") -> "list[Votes]":
        """The votes of jurors in the verdicts of a panel, also in questions on which too few gave one."""
        return [
            vote for verdict in verdicts if isinstance(verdict, PanelVerdict | PanelError) for vote in verdict.votes
        ]

    @staticmethod
    def juror_lines(jurors: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """A line for each juror in the details of a panel's verdict, with its score and reasons."""
        lines = []
        for name, juror in jurors.items():
            gives, why = ("no verdict", juror["missing"]) if "missing" in juror else (f"{juror['score']:g}", "")
            why = why or juror.get("reasoning", "")
            lines.append(f"{name} gives {gives}: {why}" if why else f"{name} gives {gives}")
        return lines


class CascadeVerdict(Verdict, frozen=True):
    """The verdict of a cascade of two judges. Its details have that of each judge as ``jurors``.

    Attributes:
        first: What the small judge said, if it was sure; else ``None``.
        audited: Whether it was sure, and the large one was asked nevertheless.
        differs: Of an audited one: whether the large judge disagrees by more than the tolerance of the mode.
        adds: Of an audited one: score of the large judge minus that of the small one, as a share of the scale.
    """

    first: Verdict | None = None
    audited: bool = False
    differs: bool = False
    adds: float = 0.0


class PanelError(JudgeError):
    """Too few jurors of a panel gave a verdict.

    Attributes:
        votes: What the others gave.
    """

    def __init__(self, message: str, votes: tuple[Votes, ...]) -> None:
        super().__init__(message)
        self.votes = votes


def reduced(
    mode: Mode, opinions: Mapping[str, Verdict | LlmevalError], reduce: Reduce | None, least: int
) -> Verdict | LlmevalError:
    """The joint verdict of a panel of judges, or the error for which it has none.

    Args:
        mode: Of the question.
        opinions: Juror to its verdict, or to why it has none.
        reduce: How verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        least: How many verdicts it takes.
    """
    verdicts = [opinion for opinion in opinions.values() if isinstance(opinion, Verdict)]
    failed = {name: opinion for name, opinion in opinions.items() if not isinstance(opinion, Verdict)}
    # A spent budget, or a cache that cannot be used, is no failure of a juror: it holds for the run.
    if stopped := next((error for error in failed.values() if not isinstance(error, JudgeError)), None):
        return stopped
    if mode.asks_one and verdicts:
        return verdicts[0]
    votes = () if mode.asks_one else _votes(mode, opinions)
    least = 1 if mode.asks_one else least
    if len(verdicts) < least:
        first = next(iter(failed.values()))
        if not verdicts and type(first) is not JudgeError and len(set(map(type, failed.values()))) == 1:
            return first  # judges are switched off, or there are none
        why = "; ".join(f"{name}: {error}" for name, error in failed.items())
        return PanelError(f"found {len(verdicts)} of {len(opinions)} verdicts, expected at least {least}: {why}", votes)
    how = reduce or ("majority" if mode.decides or mode.reply_schema is None else "mean")
    jurors = {name: shown_verdict(opinion) for name, opinion in opinions.items()}
    reasoning = "; ".join(PanelVerdict.juror_lines(jurors))
    if mode.listing is not None:
        rows = zip(*map(mode.listing.grades, verdicts), strict=True)
        joined = mode.listing.join(verdicts, [decided(row, how)[0] for row in rows])
        return PanelVerdict(joined.score, reasoning, {**joined.details, "jurors": jurors}, votes=votes)
    score, undecided = decided([verdict.score for verdict in verdicts], how)
    details: dict[str, Any] = {"jurors": jurors, **_findings(verdicts, how)}
    if undecided:
        score = score if mode.tied is None else mode.tied
        details["undecided"] = undecided
    return PanelVerdict(score, reasoning, details, tuple(undecided), votes)


def is_unsure(rule: CascadeRule, mode: Mode, verdicts: Sequence[Verdict]) -> bool:
    """Whether the small judge of a cascade is unsure, so that the large judge must decide.

    Args:
        rule: Of the cascade.
        mode: Of the question.
        verdicts: All opinions of the small judge.
    """
    if rule.when.score_between is None:
        return any(mode.differ(first, second) for first, second in combinations(verdicts, 2))
    low, high = rule.when.score_between
    return any(low - ROUNDING <= share <= high + ROUNDING for share in mode.shares(verdicts[0]))


def cascaded(
    rule: CascadeRule, mode: Mode, names: Sequence[str], answers: Mapping[str, Verdict | LlmevalError]
) -> Verdict | LlmevalError:
    """The verdict of a cascade: that of the large judge if it was asked, else the first of the small one.

    Args:
        rule: Of the cascade.
        mode: Of the question.
        names: As in `pytest_llmeval.judges._spec.unanswered`.
        answers: As there.
    """
    *small, large = names
    failed = (answer for answer in answers.values() if not isinstance(answer, Verdict | JudgeError))
    decides = next(failed, answers[large] if large in answers else answers[small[0]])
    if not isinstance(decides, Verdict):
        return decides
    details = {**decides.details, "jurors": {name: shown_verdict(answer) for name, answer in answers.items()}}
    opinions = [answer for name in small if isinstance(answer := answers[name], Verdict)]
    if len(opinions) < len(small) or is_unsure(rule, mode, opinions):
        return CascadeVerdict(decides.score, decides.reasoning, details)
    first = CascadeVerdict(decides.score, decides.reasoning, details, opinions[0])
    if large not in answers:
        return first
    shares = list(zip(mode.shares(opinions[0]), mode.shares(decides), strict=True))
    adds = sum(there - here for here, there in shares) / max(1, len(shares))
    return CascadeVerdict(
        decides.score,
        decides.reasoning,
        details,
        opinions[0],
        audited=True,
        differs=mode.differ(opinions[0], decides),
        adds=adds,
    )


def _votes(mode: Mode, opinions: Mapping[str, Verdict | LlmevalError]) -> tuple[Votes, ...]:
    """The votes of a panel's jurors on each thing that a question has them judge."""
    rows = {name: mode.shares(opinion) for name, opinion in opinions.items() if isinstance(opinion, Verdict)}
    things = max(map(len, rows.values()), default=1)
    return tuple({name: rows[name][place] if name in rows else None for name in opinions} for place in range(things))


def decided(scores: Sequence[float], how: Reduce) -> tuple[float, list[float]]:
    """The joint score of a panel's jurors, and the scores between which a vote is undecided: the lowest counts.

    >>> decided([1, 0, 1], "majority"), decided([1, 0], "majority"), decided([1, 0, 1], "unanimous")
    ((1, []), (0, [0, 1]), (0, [0, 1]))
    """
    if how == "median":
        from statistics import median

        return median(scores), []
    if how not in _VOTES:
        return math.fsum(scores) / len(scores), []
    votes = Counter(scores)
    needed = max(votes.values()) if how == "majority" else len(scores)
    winners = sorted(score for score, count in votes.items() if count >= needed) or sorted(votes)
    return winners[0], winners if len(winners) > 1 else []


def _findings(verdicts: Sequence[Verdict], how: Reduce) -> dict[str, Any]:
    """The joint findings of a panel's jurors: defects, and grades besides the score.

    Others, such as remarks, are those of one juror, which its own verdict shows.
    """
    findings: dict[str, Any] = {}
    for name in verdicts[0].details:
        values = [verdict.details.get(name) for verdict in verdicts]
        if name in FLAGS:
            # A defect counts as found where a vote does not decide; a juror who does not mention it has no vote.
            votes = [
                -float(bool(value))
                for value, verdict in zip(values, verdicts, strict=True)
                if name not in verdict.details.get(UNNAMED_DEFECTS, ())
            ]
            findings[name] = bool(votes) and bool(-decided(votes, _vote_rule(how))[0])
            if not votes:
                findings.setdefault(UNNAMED_DEFECTS, []).append(name)
        elif grades := _grades(values):
            findings[name] = {key: decided([grade[key] for grade in grades], how)[0] for key in grades[0]}
    return findings


def _grades(values: Sequence[Any]) -> Sequence[Mapping[str, float]]:
    """A finding of all jurors if it is grades by name, the same names in all of them; else nothing."""
    if not all(isinstance(value, Mapping) and value.keys() == values[0].keys() for value in values):
        return ()
    numbers = [number for value in values for number in value.values()]
    return values if all(type(number) in (int, float) for number in numbers) else ()


def _vote_rule(how: Reduce) -> Reduce:
    """The rule by which a panel votes on defects: its own if that is a vote, else the majority."""
    return how if how in _VOTES else "majority"


def shown_verdict(opinion: Verdict | LlmevalError) -> dict[str, Any]:
    """A juror's part of the details of a joint verdict: its scores, or the reason why it gave none."""
    if not isinstance(opinion, Verdict):
        return {"missing": str(opinion)}
    return {name: value for name, value in asdict(opinion).items() if value not in ("", {})}


_MOST_REPEATS = 1000
"""Repeats of a case are counted from 0 to 999, so that those of further opinions are none of a case."""


def opinions(name: str, repeat: int, rule: CascadeRule) -> dict[str, int]:
    """The names of a cascade's opinions of the small judge, and their repeats in judgement keys.

    >>> from pytest_llmeval.judges._spec import Doubt
    >>> opinions("openai:a", 3, CascadeRule(Doubt(disagree=2)))
    {'openai:a': 3, 'openai:a (opinion 2)': 1003}
    """
    named = {name: repeat}
    for number in range(1, rule.opinions):
        named[f"{name} (opinion {number + 1})"] = repeat + number * _MOST_REPEATS
    return named


def case_repeat(repeat: int) -> int:
    """The repeat of a case from the repeat in a judgement key, which also numbers the opinion."""
    return repeat % _MOST_REPEATS


def unanswered(
    rule: CascadeRule,
    mode: Mode,
    names: Sequence[str],
    answers: Mapping[str, Verdict | LlmevalError],
    *,
    audited: bool,
) -> Sequence[str]:
    """The judges of a cascade to ask next; none once there is a verdict.

    Args:
        rule: Of the cascade.
        mode: Of the question.
        names: The opinions of the small judge, and the large one as the last.
        answers: What each judge that was asked said, or why it said nothing.
        audited: Whether it belongs to the random share.
    """
    *small, large = names
    if large in answers:
        return ()
    if missing := [name for name in small if name not in answers]:
        return missing
    # A spent budget, or a cache that cannot be used, is no failure of the small judge: it holds for the run.
    if any(isinstance(answer, LlmevalError) and not isinstance(answer, JudgeError) for answer in answers.values()):
        return ()
    verdicts = [answer for answer in answers.values() if not isinstance(answer, LlmevalError)]
    return (large,) if audited or len(verdicts) < len(small) or is_unsure(rule, mode, verdicts) else ()


_T = TypeVar("_T")


def candidates(jurors: Mapping[str, _T], mode: Mode, least: int) -> dict[str, _T]:
    """The jurors of a panel that may be asked: all, or for a mode that asks one, the first and its substitutes."""
    return dict(list(jurors.items())[: len(jurors) - least + 1 if mode.asks_one else None])
