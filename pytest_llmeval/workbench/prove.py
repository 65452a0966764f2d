"""The command ``llmeval prove``: how often a gate is wrong, by repeated runs of one's own suite."""

import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import amount, count, say, share
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import counted, limit, number, unknown_name
from pytest_llmeval.scoring.case_scores import TOLERANCE

if TYPE_CHECKING:
    import numpy as np

    from pytest_llmeval.core.observation import FloatArray
    from pytest_llmeval.evaluators.functions import RecordedScores
    from pytest_llmeval.gates.contract import GateOutcome
    from pytest_llmeval.gates.drop import DropGate
    from pytest_llmeval.gates.statistics.pairing import RunPairing
    from pytest_llmeval.reports.form import SuiteReport

_PROVE = (
    "Say how often a gate with max_drop is wrong on your cases, with your noise. Every two of the runs, which are of "
    "one version, are compared: a red gate is a false alarm. Then cases and runs are drawn at random, scores are made "
    "to fall, and the gate is judged again. The exit code is 2 if a report cannot be used, or the runs do not suffice."
)
_FALLS = (0.05, 0.1, 0.2)
_RUNS = 2
_NONE_SEEN = 3
"""No event in n trials: at 95 % confidence its rate is at most so many in n."""

_SUSPECT = 4
"""Runs whose gates are red in more than one of so many pairs are suspected to be of several versions."""

_ANY = "any drop"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _PROVE
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="JSON reports of runs of the same version")
    parser.add_argument("--max-drop", type=amount, default=0.0, metavar="NUMBER", help="of the gate (default: 0)")
    parser.add_argument("--confidence", type=share, default=0.95, metavar="SHARE", help="of the gate (default: 0.95)")
    parser.add_argument("--metric", action="append", metavar="NAME", help="only this metric; can be repeated")
    parser.add_argument(
        "--fall", type=amount, action="append", metavar="NUMBER", help="true fall to find; can be repeated"
    )
    parser.add_argument(
        "--simulations", type=count, default=200, metavar="N", help="pull requests to simulate (default: 200)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the simulations (default: 0)")
    parser.set_defaults(run=_prove, code_of_faults=2)


@dataclass(frozen=True)
class RepeatedScores:
    """One metric in several runs of the same version.

    Attributes:
        evaluator: The metric, as an evaluator.
        scores: Runs by cases.
        clusters: For every case, the number of its cluster.
        gate: The gate to try.
    """

    evaluator: "RecordedScores"
    scores: "FloatArray"
    clusters: "np.typing.NDArray[np.intp]"
    gate: "DropGate"

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.evaluator.metrics[0]

    @cached_property
    def worst(self) -> float | None:
        """The worst value of the metric; ``None`` if it has none."""
        metric = self.evaluator.describe()[0]
        return metric.low if metric.higher_is_better else metric.high

    @property
    def room(self) -> float | None:
        """By how much the mean can fall; ``None`` without a worst value."""
        return None if self.worst is None else abs(float(self.scores.mean()) - self.worst)

    def outcome(self, now: "FloatArray", before: "FloatArray", clusters: "Sequence[int]") -> tuple[bool, "GateOutcome"]:
        """Return whether the mean is worse, and what the gate says."""
        from pytest_llmeval.gates.rules import judge_together

        drop = float((before - now).mean()) * (1 if self.evaluator.describe()[0].higher_is_better else -1)
        pairing = self._pairing(now, before, clusters)
        return drop > TOLERANCE, judge_together([self.gate.examine(pairing)])[0].outcome

    def pairs(self) -> "Iterator[tuple[bool, GateOutcome]]":
        """Compare every run with every other."""
        for now, before in permutations(self.scores, 2):
            yield self.outcome(now, before, [*self.clusters])

    def simulated(self, fall: float, times: int, seed: int) -> "Iterator[tuple[bool, GateOutcome]]":
        """Compare drawn runs, the second of which is worse by `fall`.

        Cases (or clusters) are drawn with replacement, and for each case two different runs. Of a metric with a worst
        value, so many cases fall to it that the mean falls by `fall`; of others, all fall by as much.
        """
        import numpy as np

        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode()), round(1e6 * fall)])
        members = [np.flatnonzero(self.clusters == each) for each in np.unique(self.clusters)]
        sign = -1.0 if self.evaluator.describe()[0].higher_is_better else 1.0
        for _ in range(times):
            drawn = [members[each] for each in rng.integers(len(members), size=len(members))]
            cases = np.concatenate(drawn)
            clusters = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
            runs = rng.permuted(np.tile(np.arange(len(self.scores)), (len(cases), 1)), axis=1)[:, :_RUNS].T
            now, before = self.scores[runs, cases]
            if self.room is None or self.worst is None:
                now = now + sign * fall
            else:
                now = np.where(rng.random(len(cases)) < (fall / self.room if fall else 0.0), self.worst, now)
            yield self.outcome(now, before, clusters.tolist())

    def _pairing(self, now: "FloatArray", before: "FloatArray", clusters: "Sequence[int]") -> "RunPairing":
        from pytest_llmeval.core.observation import Observation
        from pytest_llmeval.core.results import CaseRecord
        from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
        from pytest_llmeval.gates.statistics.pairing import RunPairing

        label = self.gate.cluster_by
        runs = [
            CaseStatistics.exact(
                CaseRecord(
                    f"{place:06}",
                    {label: str(cluster)} if label else {},
                    "passed",
                    {"recorded": Observation({f"sum {self.name}": float(score), f"cases {self.name}": 1})},
                )
                for place, (score, cluster) in enumerate(zip(scores, clusters, strict=True))
            )
            for scores in (now, before)
        ]
        return RunPairing(runs[0], runs[1], {"recorded": self.evaluator})


def _prove(options: Namespace) -> int:
    from pytest_llmeval.reports.reading import read_report

    if len(options.runs) < _RUNS:
        raise LlmevalError("found one run, expected two or more of the same version, with nothing changed in between")
    reports = [read_report(each).suites for each in options.runs]
    known = {(each.path, each.suite): each for each in reports[0]}
    proven = False
    for key, first in known.items():
        runs = [each for report in reports for each in report if (each.path, each.suite) == key]
        if len(runs) < len(reports):
            say([f"{first.suite} ({first.path}): in {len(runs)} of {len(reports)} runs only"])
            continue
        say(_lines(runs, options))
        proven = True
    if not proven:
        raise LlmevalError("the runs have no suite in common")
    return 0


def _lines(runs: "Sequence[SuiteReport]", options: Namespace) -> Iterator[str]:
    from pytest_llmeval.cli.paired import paired_scores

    pair = paired_scores(runs[-1], runs[0])
    names = pair.compared(options.metric)
    if unknown := set(options.metric or ()) - set(names):
        raise LlmevalError(unknown_name("metric", min(unknown), [*runs[0].metrics]))
    first = runs[0]
    yield f"{first.suite} ({first.path}): {len(runs)} runs of the same version"
    for name in names:
        yield ""
        scores = _repeated(runs, name, options)
        if isinstance(scores, str):
            yield f"{name}: {scores}"
        else:
            yield from _metric(scores, options)


def _repeated(runs: "Sequence[SuiteReport]", name: str, options: Namespace) -> RepeatedScores | str:
    """Return the scores of the cases that have one in all runs, or why there is nothing to tell."""
    import numpy as np

    from pytest_llmeval.cli.paired import with_ids_of
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.evaluators.functions import RecordedScores
    from pytest_llmeval.gates.drop import DropGate

    by_run = []
    for run in (runs[0], *(with_ids_of(runs[0], each)[0] for each in runs[1:])):
        ran = (case for case in run.cases if case.ran)
        values = {
            each.id: float(each.outcome == "passed") if name == PASS_RATE else each.metrics.get(name) for each in ran
        }
        by_run.append({case: float(value) for case, value in values.items() if value is not None})
    common = [case for case in runs[0].cases if all(case.id in each for each in by_run)]
    if len(common) < _RUNS:
        return f"{counted(len(common), 'case')} with a score in all runs, expected two or more"
    scores = np.array([[each[case.id] for case in common] for each in by_run])
    if not np.ptp(scores, axis=0).any():
        return "all runs are equal, as answers of a cache are: they say nothing about noise. Run again without it"
    label = runs[0].clusters.label if runs[0].clusters else None
    units = [case.labels.get(label, case.id) if label else case.id for case in common]
    clusters = np.unique(units, return_inverse=True)[1]
    ranges = {name: runs[0].ranges[name]} if name in runs[0].ranges else {}
    ranges |= {name: (0.0, 1.0)} if name == PASS_RATE else {}
    lower = frozenset({name} & {*runs[0].lower_is_better})
    gate = DropGate(name, options.max_drop, confidence=options.confidence, cluster_by=label)
    return RepeatedScores(RecordedScores((name,), lower, ranges), scores, clusters, gate)


def _metric(repeated: RepeatedScores, options: Namespace) -> Iterator[str]:
    """Yield what is said about one metric."""
    from tabulate import tabulate

    cases, times = repeated.scores.shape[1], options.simulations
    pairs = [*repeated.pairs()]
    rows = [("these runs", f"{len(pairs)} pairs", *_counts(pairs))]
    falls = [0.0, *(options.fall or _FALLS)]
    outcomes = {}
    for fall in falls:
        if repeated.room is not None and fall > repeated.room:
            rows.append((f"fall of {limit(fall)}", "", f"impossible: {number(repeated.room)} at most", "", ""))
            continue
        outcomes[fall] = [*repeated.simulated(fall, times, options.seed)]
        title = f"fall of {limit(fall)}" if fall else "nothing changed"
        rows.append((title, f"{times} simulated", *_counts(outcomes[fall])))
    yield f"{repeated.name}: {counted(cases, 'case')}, mean {number(float(repeated.scores.mean()))}"
    headers = ("", "", f"{_ANY} is red", f"{repeated.gate} is red", "cannot tell")
    align = ("left", "left", "right", "right", "right")
    yield from tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align).splitlines()
    if _SUSPECT * _red(pairs) > len(pairs):
        yield "these runs differ by more than noise seldom does: are they of one version?"
    yield _sentence(cases, {fall: _red(each) for fall, each in outcomes.items()}, times)


def _counts(outcomes: "Sequence[tuple[bool, GateOutcome]]") -> tuple[str, str, str]:
    open_ = sum(outcome == "undecided" for _, outcome in outcomes)
    return str(sum(worse for worse, _ in outcomes)), str(_red(outcomes)), str(open_)


def _red(outcomes: "Sequence[tuple[bool, GateOutcome]]") -> int:
    return sum(outcome == "failed" for _, outcome in outcomes)


def _sentence(cases: int, red: dict[float, int], times: int) -> str:
    """Say in one sentence what the gate is worth."""
    rates = [f"of {limit(fall)} in {100 * hits / times:.0f}" for fall, hits in red.items() if fall]
    falls = f"a fall {', '.join(rates)} of 100 pull requests is found" if rates else "no fall is possible"
    alarms = f"1 in {times / red[0.0]:.0f}" if red[0.0] else f"at most 1 in {times / _NONE_SEEN:.0f}"
    return f"with your {counted(cases, 'case')} and your noise, {falls}; false alarms {alarms}"
