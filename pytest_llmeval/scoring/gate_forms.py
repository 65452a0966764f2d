"""The nearest right form of a gate that is written in a wrong one."""

__all__ = ("MetricNames", "as_share", "nearest_gate", "nearest_limit", "nearest_subject")

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import limit
from pytest_llmeval.scoring.gates import STATISTICS

_PERCENT = 100

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:\s*%)?"
_OPERATOR = ">=|<=|==|>|<"
_OUTSIDE = r"(?![^(\[]*[)\]])"
"""Not inside brackets, where labels and arguments stand."""

_WRITTEN: tuple[tuple[str, str], ...] = (
    (r"(?<=\d),(?=\d)", "."),
    (r"([<>=!])\s+=", r"\1="),
    (r"([<>])={2,}", r"\1="),
    (rf"(\w+)\(([^()<>=]+?)\s*([<>=]+)\s*({_NUMBER})\)", r"\1(\2) \3 \4"),
    (
        r"\b(?:is |must be |should be )?(?:at least|no less than|not less than|greater (?:than )?or equal(?: to)?)\b",
        ">=",
    ),
    (r"\b(?:is |must be |should be )?(?:at most|no more than|not more than|less (?:than )?or equal(?: to)?)\b", "<="),
    (r"\b(?:is |must be |should be )?(?:greater than|more than|higher than|above|over)\b", ">"),
    (r"\b(?:is |must be |should be )?(?:less than|lower than|below|under)\b", "<"),
    (r"\b(?:equals|equal to|is)\b", "=="),
    (r"=>|[≥⩾]", ">="),
    (r"=<|[≤⩽]", "<="),
    (r"={3,}|(?<![<>=!])=(?![<>=])", "=="),
)
"""Spellings of decimals and operators, and what they are."""

_AND = re.compile(rf"(?:\s+and\s+|\s*&&?\s*|\s*[;,]\s*){_OUTSIDE}")
_PLAIN = re.compile(rf"(?P<subject>.+?)\s*(?P<operator>{_OPERATOR})\s*(?P<limit>{_NUMBER})(?:\s+by\s+(?P<by>\S+))?")
_BARE = re.compile(rf"(?P<subject>.+?)(?:\s*:\s*|\s+)(?P<limit>{_NUMBER})")
_FLIPPED = re.compile(rf"(?P<limit>{_NUMBER})\s*(?P<operator>{_OPERATOR})\s*(?P<subject>[^<>=]+)")
_CHAIN = re.compile(
    rf"(?P<limit>{_NUMBER})\s*(?P<operator>{_OPERATOR})\s*(?P<subject>[^<>=]+?)\s*(?P<rest>(?:{_OPERATOR})\s*{_NUMBER})"
)
_MIRROR = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}

_ALIASES = {
    **{name: name for name in STATISTICS},
    **dict.fromkeys(("avg", "average"), "mean"),
    "med": "median",
    **dict.fromkeys(("minimum", "lowest", "worst", "smallest"), "min"),
    **dict.fromkeys(("maximum", "highest", "best", "largest"), "max"),
    **dict.fromkeys(("lower", "lower_bound", "ci_low"), "low"),
    **dict.fromkeys(("upper", "upper_bound", "ci_high"), "high"),
}
_PERCENTILE = re.compile(r"[pq](\d+(?:\.\d+)?)")
_PERCENTILE_OF = re.compile(r"(percentile|quantile)\(\s*(.+?)\s*,\s*(.+?)\s*\)", re.IGNORECASE)
_STATISTIC_OF = re.compile(r"([\w.]+)\s*[(\[]\s*(.+?)\s*[)\]]")
_STATISTIC_FIRST = re.compile(r"(\w+?)(?:\s+of\s+|\s+|_)(.+)")
_STATISTIC_LAST = re.compile(r"(.+?)[\s._(\[]+(\w+)[)\]]?")


@dataclass(frozen=True)
class MetricNames:
    """The metrics of a suite, as the forms of gates need them.

    Attributes:
        near: Returns the metric of a name, or the one most like it; ``None`` if none is.
        declared: Returns the declaration of a metric.
    """

    near: Callable[[str], str | None]
    declared: Callable[[str], Metric | None]


class _Found(NamedTuple):
    """One comparison that was recognised."""

    subject: str
    operator: str
    limit: str
    by: str | None = None

    def __str__(self) -> str:
        if self.by is None:
            return f"{self.subject} {self.operator} {self.limit}"
        return f"{{metric: {self.subject}, {'min' if '>' in self.operator else 'max'}: {self.limit}, by: {self.by}}}"


def nearest_gate(text: str, metrics: MetricNames) -> str:
    """Return `` (did you mean 'f1 >= 0.5'?)``, with several gates where a text joins them; empty if nothing is near."""
    for wrong, right in _WRITTEN:
        text = re.sub(wrong, right, text)
    found: list[_Found] = []
    for part in _AND.split(text.strip(" \t\"'`").rstrip(",;.")):
        more = list(_comparisons(part, metrics, found[-1].subject if found else ""))
        if not more:
            return ""
        found += more
    meant = " and ".join(repr(str(each)) if each.by is None else str(each) for each in found)
    return f" (did you mean {'the gates ' if len(found) > 1 else ''}{meant}?)"


def nearest_limit(text: str) -> str:
    """Return the hint for a threshold in text, such as ``80%`` or ``>= 0.5``; empty if that is no limit."""
    for wrong, right in _WRITTEN:
        text = re.sub(wrong, right, text)
    match = re.fullmatch(rf"(?P<operator>>=|<=)?\s*(?P<limit>{_NUMBER})", text.strip())
    if match is None:
        return ""
    value = _limit(match["limit"], None)
    keys = {None: value, ">=": f"{{min: {value}}}", "<=": f"{{max: {value}}}"}
    return f" (did you mean {keys[match['operator']]}?)"


def nearest_subject(text: str, metrics: MetricNames) -> str | None:
    """Return the metric, or statistic of one, that is most like a text, such as ``mean(f1)``; ``None`` if none is."""
    text = text.strip()
    if call := _PERCENTILE_OF.fullmatch(text):
        return _percentile_of(call, metrics)
    for pattern, statistic, metric in ((_STATISTIC_OF, 1, 2), (_STATISTIC_FIRST, 1, 2), (_STATISTIC_LAST, 2, 1)):
        parts = pattern.fullmatch(text)
        named = _statistic(parts[statistic]) if parts else None
        near = metrics.near(parts[metric]) if parts and named else None
        if near is not None:
            return f"{named}({near})"
    return metrics.near(text)


def _comparisons(part: str, metrics: MetricNames, before: str) -> Iterator[_Found]:
    """Yield what one part of a text compares; a part without subject has that of the part before it."""
    if chain := _CHAIN.fullmatch(part):
        subject = nearest_subject(chain["subject"], metrics)
        if subject is not None:
            yield _Found(subject, _MIRROR[chain["operator"]], _limit(chain["limit"], _metric(subject, metrics)))
            yield from _comparisons(f"{subject} {chain['rest']}", metrics, subject)
        return
    if before and re.fullmatch(rf"(?:{_OPERATOR})\s*{_NUMBER}", part):
        part = f"{before} {part}"
    for pattern in (_FLIPPED, _PLAIN, _BARE):
        match = pattern.fullmatch(part)
        subject = nearest_subject(match["subject"], metrics) if match else None
        if match is None or subject is None:
            continue
        parts = match.groupdict()
        metric = _metric(subject, metrics)
        operator = parts.get("operator") or ("<=" if metric is not None and not metric.higher_is_better else ">=")
        operator = _MIRROR[operator] if pattern is _FLIPPED else operator
        yield _Found(subject, operator, _limit(match["limit"], metric), parts.get("by"))
        return


def _metric(subject: str, metrics: MetricNames) -> Metric | None:
    """Return the declaration of the metric in ``mean(f1)``."""
    return metrics.declared(subject) or metrics.declared(subject.partition("(")[2].removesuffix(")"))


def as_share(value: float, metric: Metric) -> float | None:
    """Return the share that a percentage means; ``None`` where a metric is none, or a number no percentage of it."""
    return value / _PERCENT if metric.high == 1 and 1 < value <= _PERCENT else None


def _limit(text: str, metric: Metric | None) -> str:
    value = float(text.rstrip("% "))
    if "%" in text:
        return limit(value / _PERCENT)
    share = None if metric is None else as_share(value, metric)
    return limit(value if share is None else share)


def _statistic(name: str) -> str | None:
    """Return the statistic that a word names."""
    name = name.lower()
    if percentile := _PERCENTILE.fullmatch(name):
        return f"p{min(round(float(percentile[1])), 100)}"
    return _ALIASES.get(name)


def _percentile_of(call: "re.Match[str]", metrics: MetricNames) -> str | None:
    """Read ``percentile(f1, 90)``, in either order."""
    for metric, number in ((call[2], call[3]), (call[3], call[2])):
        near = metrics.near(metric)
        if near is not None and re.fullmatch(_NUMBER, number):
            share = float(number.rstrip("% ")) * (100 if call[1].lower() == "quantile" else 1)
            return f"p{min(max(round(share), 0), 100)}({near})"
    return None
