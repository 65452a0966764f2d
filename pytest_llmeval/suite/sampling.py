"""Samples of the cases of a suite: drawn by strata, the same in every run, and weighted back."""

__all__ = ("CaseSample", "SampleEntry", "SampleSettings", "draw", "read_sample")

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.results import UNLABELLED, CaseRecord
from pytest_llmeval.data.files.plain import STRICT
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.reports.form import SampleReport

_SAME = 1e-9


@dataclass(frozen=True)
class SampleEntry:
    """``sample`` as a suite file writes it."""

    __pydantic_config__: ClassVar = STRICT

    cases: int
    by: str | None = None
    seed: int = 0


class SampleSettings(Struct, frozen=True):
    """Which cases of a suite run.

    Attributes:
        cases: How many.
        by: A label; each of its values has its share of them.
        seed: Another one draws other cases.
    """

    cases: int
    by: str | None = None
    seed: int = 0


class CaseSample(Struct, frozen=True):
    """The cases of a suite that were drawn.

    Attributes:
        cases: How many.
        of: Of how many.
        by: The label of the strata; ``None`` where there is one.
        weights: Case id to how many cases it stands for, in means of all; those that stand for as many as the mean of
            them are left out.
    """

    cases: int
    of: int
    by: str | None = None
    weights: Mapping[str, float] = {}

    @property
    def share(self) -> float:
        """The share of all cases that it has."""
        return self.cases / self.of

    def weigh(self, records: Iterable[CaseRecord]) -> list[CaseRecord]:
        """Return records of its cases with their weights."""
        return [replace(each, weight=self.weights[each.id]) if each.id in self.weights else each for each in records]

    @property
    def report(self) -> SampleReport:
        """What reports say of it."""
        return SampleReport(self.cases, self.of, self.by, bool(self.weights))


def read_sample(
    entry: Any,
    check: Callable[[type[SampleEntry], Any, tuple[str, ...]], SampleEntry | None],
    fault: Callable[..., None],
) -> SampleSettings | None:
    """Read ``sample``."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        fault(("sample",), f"found {describe(entry)}, expected a mapping such as {{cases: 200, by: topic}}")
        return None
    found = check(SampleEntry, entry, ("sample",))
    if found is None:
        return None
    if found.cases < 1:
        fault(("sample", "cases"), f"found {found.cases}, expected a number of cases of at least 1")
    return SampleSettings(found.cases, found.by, found.seed)


def draw(cases: Sequence[Case], settings: SampleSettings) -> tuple[frozenset[str], CaseSample] | None:
    """Return the ids of the cases that are drawn, and what the sample is; ``None`` where all of them are wanted.

    Within a stratum the cases with the smallest digests of seed and id are drawn. So the same file gives the same
    sample, and a case that is added takes the place of one other at most, besides those that move between strata with
    their sizes. Cases that always run are in every sample, and stand for themselves.
    """
    if len(cases) <= settings.cases:
        return None
    always = [case for case in cases if case.always]
    strata: dict[str, list[Case]] = {}
    for case in cases:
        if not case.always:
            name = case.labels.get(settings.by, UNLABELLED) if settings.by else ""
            strata.setdefault(name, []).append(case)
    sizes = {name: len(members) for name, members in sorted(strata.items())}
    counts = _allotted(sizes, max(0, settings.cases - len(always)))
    stands = {case.id: 1.0 for case in always}
    for name, members in strata.items():
        own = sorted(members, key=lambda case: _rank(case, settings.seed))[: counts[name]]
        stands |= {case.id: sizes[name] / counts[name] for case in own}
    typical = len(cases) / len(stands)
    weights = {name: each / typical for name, each in stands.items() if abs(each / typical - 1) > _SAME}
    return frozenset(stands), CaseSample(len(stands), len(cases), settings.by, weights)


def _rank(case: Case, seed: int) -> tuple[str, str]:
    return sha256(f"{seed}\n{case.id}".encode("utf-8", "surrogatepass")).hexdigest(), case.id


def _allotted(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Share a number of cases out in proportion to the sizes of strata, by largest remainders, one to each at least.

    >>> _allotted({"a": 50, "b": 30, "c": 1}, 8)
    {'a': 4, 'b': 3, 'c': 1}
    """
    whole = sum(sizes.values())
    count = max(min(count, whole), len(sizes))
    quotas = {name: count * size / whole for name, size in sizes.items()}
    counts = {name: max(1, int(quota)) for name, quota in quotas.items()}

    def excess(name: str) -> tuple[float, str]:
        return counts[name] - quotas[name], name

    while sum(counts.values()) < count:
        counts[min(counts, key=excess)] += 1
    while sum(counts.values()) > count:  # one to each was more than their share
        counts[max((name for name in counts if counts[name] > 1), key=excess)] -= 1
    return counts
