"""Which cases two runs have in common: the same ids, with the same input, expectation and labels."""

__all__ = ("CaseMatching", "match")

from collections.abc import Sequence
from typing import NamedTuple

from pytest_llmeval.core.wording import counted
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics

_NAMED = 5


class CaseMatching(NamedTuple):
    """The cases of two runs, by what can be compared; ids are sorted.

    Attributes:
        unchanged: In both runs, and the same as far as both say what they were.
        new: Only in the current run.
        gone: Only in the baseline.
        edited: In both, with another input, expectation or label.
        known: Whether both runs say what their cases were, so that edits can be seen.
        same_limits: Whether the unchanged cases have the thresholds that they had.
    """

    unchanged: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    edited: tuple[str, ...]
    known: bool
    same_limits: bool

    def __str__(self) -> str:
        parts = [_named("new", self.new), _named("gone", self.gone), _named("edited", self.edited)]
        text = "; ".join(filter(None, parts))
        return f"{counted(len(self.unchanged), 'unchanged case')} compared" + (f"; {text}" if text else "")


def match(current: CaseStatistics, baseline: CaseStatistics) -> CaseMatching:
    """Match the cases of two runs by id and digest; without a digest on either side, the id decides."""
    here = {record.id for record in current.records}
    there = {record.id for record in baseline.records}
    common = sorted(here & there)
    digests = {
        each: (current.digests[each], baseline.digests[each])
        for each in common
        if each in current.digests and each in baseline.digests
    }
    edited = {case for case, (now, before) in digests.items() if now.data != before.data}
    return CaseMatching(
        tuple(each for each in common if each not in edited),
        tuple(sorted(here - there)),
        tuple(sorted(there - here)),
        tuple(sorted(edited)),
        bool(current.digests and baseline.digests),
        all(now.limits == before.limits for case, (now, before) in digests.items() if case not in edited),
    )


def _named(word: str, ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{len(ids)} {word} ({', '.join(ids[:_NAMED])}{more})" if ids else ""
