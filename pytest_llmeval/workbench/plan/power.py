"""The commands on how often a gate is wrong: ``llmeval power`` plans what finds a drop, ``prove`` repeats runs."""

import math
import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli.console import CommandResult, amount, count, open_noted, say, share, table_lines, write_text
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.observation import FloatArray, Observation
from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.core.verdicts import GateOutcome
from pytest_llmeval.core.wording import counted, limit, number, unknown_name
from pytest_llmeval.evaluators.functions import RecordedScores
from pytest_llmeval.gates.contract import split_statistic
from pytest_llmeval.gates.drop import WATCHED_RUNS, DropGate
from pytest_llmeval.gates.rules import judge_together
from pytest_llmeval.numbers.case_scores import TOLERANCE
from pytest_llmeval.numbers.case_statistics import CaseStatistics
from pytest_llmeval.numbers.pairing import RunPairing
from pytest_llmeval.reports.form import SuiteReport
from pytest_llmeval.reports.json import read_report
from pytest_llmeval.suites.suite import Suite
from pytest_llmeval.workbench.plan.spread import Plan, Planned, Sources, planned
from pytest_llmeval.workbench.reports import paired_scores, with_ids_of

if TYPE_CHECKING:
    import numpy as np


_POWER = (
    "Print how many cases and repeats find a drop in 80 of 100 runs, and which drop the suite finds as it is. How much "
    "scores vary is taken from the approved run, from reports (of a suite with repeats, or of a second run), or from "
    "what is stated. The exit code is 2 if a file cannot be used or nothing is known."
)
_DROPS = (0.01, 0.02, 0.05, 0.1)
_REPEATS = (1, 3, 10)
_BAR = 20

_WIDTH, _HEIGHT, _LEFT, _TOP, _PANEL = 360, 160, 60, 34, 230
_STEPS = 60
_GOAL = 0.8
_SIZES = ((1, "#888", "5 4"), (2, "#47a", "2 2"), (4, "#136", "none"))
_STYLE = "text{font:12px sans-serif;fill:#222}path{fill:none;stroke-width:1.8}line{stroke:#bbb}.end{text-anchor:end}"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval power``."""
    parser.description = _POWER
    parser.add_argument("suite", type=Path, help="suite file")
    parser.add_argument(
        "--drop", type=amount, action="append", metavar="NUMBER", help="true drop to find; may be repeated"
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="only this metric; may be repeated")
    parser.add_argument(
        "--report", type=Path, action="append", metavar="FILE", help="JSON report of the suite; may be repeated"
    )
    parser.add_argument("--confidence", type=share, metavar="SHARE", help="of the test; default: that of the gate")
    parser.add_argument(
        "--cluster-by", metavar="LABEL", help="label of cases that belong together; default: cluster_by of the suite"
    )
    parser.add_argument("--within", type=amount, metavar="SD", help="standard deviation of a case's score over repeats")
    parser.add_argument(
        "--between", type=amount, metavar="SD", help="standard deviation of a change's effect on a case"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the chance to find a drop into an SVG file")
    parser.set_defaults(run=_power, code_of_faults=2)


def _power(options: Namespace) -> CommandResult:
    suite = open_noted(options.suite)
    planned = _planned(options, suite)
    lines = [f"{suite.name} ({options.suite}): {_size(suite)}"]
    lines += (line for each in planned for line in _lines(each, suite, options.drop))
    if options.plot:
        plans = {each.name: each.plan for each in planned if each.plan is not None}
        write_text(options.plot, _svg(plans, len(suite.cases), suite.repeats.times))
    plans_data = [_plan_data(each, suite, options.drop) for each in planned]
    size = {"cases": len(suite.cases), "repeats": suite.repeats.times}
    return CommandResult(0, {"suite": suite.name, **size, "plans": plans_data}, lines)


def _plan_data(planned: Planned, suite: Suite, drops: Sequence[float] | None) -> dict[str, Any]:
    """Return a plan as data: the drop that is found in 80 of 100 runs, and for others the chance and the cases."""
    plan, cases, times = planned.plan, len(suite.cases), suite.repeats.times
    data: dict[str, Any] = {"metric": planned.name, "basis": planned.basis, "detectable": None, "drops": []}
    if plan is not None and plan.spread.of_case(times):
        sizes = [each for each in drops or _usual(plan) if each <= plan.room]
        chances = ((each, plan.chance(each, cases, times), plan.cases(each, times)) for each in sizes)
        data["drops"] = [dict(zip(("drop", "chance", "cases"), each, strict=True)) for each in chances]
        data["detectable"] = plan.detectable(cases, times)
    return data


def _usual(plan: Plan) -> list[float]:
    return [plan.allowed + each for each in _DROPS]


def _planned(options: Namespace, suite: Suite) -> list[Planned]:
    """Plan the chosen metrics.

    Raises:
        LlmevalError: The options give nothing to plan.
    """
    sources = Sources.read(suite, options.suite, options.report or ())
    labels = {label for case in suite.cases for label in case.labels}
    stated = None if options.within is None and options.between is None else (options.within, options.between)
    faults = []
    if options.cluster_by is not None and options.cluster_by not in labels:
        faults.append(unknown_name("label", options.cluster_by, labels))
    if not sources.metrics and stated is None:
        faults.append(f"{options.suite}: found no approved run, expected one, or --report, --within or --between")
    elif stated is None:
        known = (*sources.metrics, PASS_RATE)
        unknown = [name for name in options.metric or () if split_statistic(name)[1] not in known]
        faults += [unknown_name("metric", name, known) for name in unknown]
    if faults:
        raise LlmevalError("\n".join(faults))
    names = options.metric or sources.gated or (sources.metrics if stated is None else ("any metric",))
    how = {"confidence": options.confidence, "cluster_by": options.cluster_by or suite.cluster_by, "stated": stated}
    return [planned(sources, name, gate=gate, **how) for name in dict.fromkeys(names) for gate in sources.gates(name)]


def _size(suite: Suite) -> str:
    repeats = f", each run {suite.repeats.times} times" if suite.repeats.times > 1 else ""
    return counted(len(suite.cases), "case") + repeats


def _lines(planned: Planned, suite: Suite, drops: Sequence[float] | None) -> Iterator[str]:
    plan, cases, times = planned.plan, len(suite.cases), suite.repeats.times
    yield ""
    if plan is None or not plan.spread.of_case(times):
        yield f"{planned.name}: nothing to plan from: {'no score differs' if plan else planned.basis}"
        return
    yield f"{planned.name}: {planned.basis}"
    clusters = f", in clusters of {planned.cluster:.3g}" if planned.cluster > 1 else ""
    test = f"{plan.confidence * 100:g}% confidence{_family(planned)}{clusters}"
    yield f"{_detectable(plan, plan.detectable(cases, times))} ({test})"
    tried = [times] if plan.spread.within is None else sorted({*_REPEATS, times})
    rows = []
    for size in drops or _usual(plan):
        chances = [each.chance(size, cases, times) for each in _within(plan)]
        if size > plan.room:
            rows.append((limit(size), *["impossible"] * len(chances), "", *[""] * len(tried)))
            continue
        needed = [_needed(plan.cases(size, each), planned.cluster) for each in tried]
        rows.append((limit(size), *map(number, chances), "#" * round(_BAR * chances[-1]), *needed))
    unit = "cases (clusters)" if planned.cluster > 1 else "cases"
    columns = [f"{unit} x {each}" if len(tried) > 1 else unit for each in tried]
    chances_of = [counted(each.runs, "run") if each.runs else "chance" for each in _within(plan)]
    headers = ("max_drop" if plan.safe else "drop", *chances_of, "", *columns)
    yield from table_lines([headers, *rows], f"r{'r' * len(chances_of)}l{'r' * len(tried)}")
    yield from _advice(plan, cases, times)


def _family(planned: Planned) -> str:
    """Say what the test is adjusted for."""
    groups = f", smallest of {counted(planned.groups, 'group')}" if planned.groups else ""
    gates = f", beside {counted(planned.gates - 1, 'other gate')}" if planned.gates > 1 else ""
    return groups + gates


def _detectable(plan: Plan, drop: float | None) -> str:
    """Say which drop is found."""
    if plan.safe:
        which = "no max_drop that is possible" if drop is None else f"a max_drop of {number(drop)}"
        return f"an equally good run meets {which} in 80 of 100 runs"
    often = "80 of 100 runs"
    if plan.runs:
        from pytest_llmeval.workbench.plan.spread import EARLIER_RUNS

        within = f"within {counted(plan.runs, 'run')} that have it, after {EARLIER_RUNS} equally good ones"
        often = f"80 of 100 histories, {within}"
    if drop is None:
        most = f": the largest possible one is {number(plan.room)}" if math.isfinite(plan.room) else ""
        return f"not detectable: this suite finds no drop in {often}{most}"
    return f"this suite finds a drop of {number(drop)} in {often}"


def _within(plan: Plan) -> list[Plan]:
    """Return the plan; of a gate that weighs many runs, with fewer of them."""
    return [replace(plan, runs=each) for each in WATCHED_RUNS] if plan.runs else [plan]


def _needed(cases: int | None, cluster: float) -> str:
    if cases is None:
        return "tolerated"
    return f"{cases} ({math.ceil(cases / cluster)})" if cluster > 1 else str(cases)


def _advice(plan: Plan, cases: int, times: int) -> Iterator[str]:
    """Yield advice on adding cases or repeats."""
    more = _size_of(plan.detectable(2 * cases, times))
    if plan.spread.within is None:
        yield f"twice the cases: {more}; what repeats bring is not known without --within or a --report of repeats"
        return
    yield f"twice the cases: {more}; twice the repeats: {_size_of(plan.detectable(cases, 2 * times))}"
    if plan.spread.between:
        least = plan.limit(cases)
        yield "more cases pay: no number of repeats finds " + ("any" if least is None else f"less than {number(least)}")
    else:
        yield "cases and repeats pay alike, as long as a change moves all cases alike"


def _svg(plans: Mapping[str, Plan], cases: int, repeats: int) -> Iterator[str]:
    """Yield an SVG file: a panel for each metric, with a curve for the suite and for two and four times its cases."""
    height = _PANEL * max(1, len(plans)) + 6
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 100} {height}" role="img">\n'
    yield f"<title>Chance to find a drop</title>\n<style>{_STYLE}</style>\n"
    yield '<rect width="100%" height="100%" fill="#fff"/>\n'
    for place, (name, plan) in enumerate(plans.items()):
        yield f'<g transform="translate({_LEFT} {_TOP + place * _PANEL})">\n'
        yield from _panel(name, plan, cases, repeats)
        yield "</g>\n"
    yield "</svg>\n"


def _panel(name: str, plan: Plan, cases: int, repeats: int) -> Iterator[str]:
    smallest = plan.detectable(cases, repeats)
    most = min(plan.room, 1.5 * smallest if smallest else 1.0)
    most = 1.0 if most == 0 else most
    yield f'<text x="0" y="-14">{escape(name)}: chance to find a true drop</text>\n'
    for chance in (0.0, _GOAL, 1.0):
        y = _HEIGHT * (1 - chance)
        yield f'<line x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>\n'
        yield f'<text class="end" x="-8" y="{y + 4:.1f}">{chance:.0%}</text>\n'
    for part in range(4):
        x, drop = _WIDTH * part / 3, most * part / 3
        yield f'<text class="end" x="{x + 14:.1f}" y="{_HEIGHT + 18}">{number(drop)}</text>\n'
    for times, color, dash in _SIZES:
        chances = [plan.chance(most * step / _STEPS, times * cases, repeats) for step in range(_STEPS + 1)]
        points = (f"{_WIDTH * step / _STEPS:.1f} {_HEIGHT * (1 - chance):.1f}" for step, chance in enumerate(chances))
        yield f'<path d="M{" L".join(points)}" stroke="{color}" stroke-dasharray="{dash}"/>\n'
    for row, (times, color, dash) in enumerate(_SIZES):
        y = 8 + 18 * row
        yield f'<path d="M{_WIDTH + 8} {y} h20" stroke="{color}" stroke-dasharray="{dash}"/>\n'
        yield f'<text x="{_WIDTH + 34}" y="{y + 4}">{times * cases}</text>\n'
    yield f'<text x="{_WIDTH + 34}" y="{12 + 18 * len(_SIZES)}">cases</text>\n'


def _size_of(drop: float | None) -> str:
    return "not detectable" if drop is None else number(drop)


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


def add_prove(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval prove``."""
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

    evaluator: RecordedScores
    scores: FloatArray
    clusters: "np.typing.NDArray[np.intp]"
    gate: DropGate

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

    def outcome(self, now: FloatArray, before: FloatArray, clusters: Sequence[int]) -> tuple[bool, GateOutcome]:
        """Return whether the mean is worse, and what the gate says."""
        drop = float((before - now).mean()) * (1 if self.evaluator.describe()[0].higher_is_better else -1)
        pairing = self._pairing(now, before, clusters)
        return drop > TOLERANCE, judge_together([self.gate.examine(pairing)])[0].outcome

    def pairs(self) -> Iterator[tuple[bool, GateOutcome]]:
        """Compare every run with every other."""
        for now, before in permutations(self.scores, 2):
            yield self.outcome(now, before, [*self.clusters])

    def simulated(self, fall: float, times: int, seed: int) -> Iterator[tuple[bool, GateOutcome]]:
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

    def _pairing(self, now: FloatArray, before: FloatArray, clusters: Sequence[int]) -> RunPairing:

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


def _prove(options: Namespace) -> CommandResult:

    if len(options.runs) < _RUNS:
        raise LlmevalError("found one run, expected two or more of the same version, with nothing changed in between")
    reports = [read_report(each).suites for each in options.runs]
    known = {(each.path, each.suite): each for each in reports[0]}
    suites: list[dict[str, Any]] = []
    lines: list[str] = []
    for key, first in known.items():
        runs = [each for report in reports for each in report if (each.path, each.suite) == key]
        if len(runs) < len(reports):
            lines.append(f"{first.suite} ({first.path}): in {len(runs)} of {len(reports)} runs only")
            continue
        metrics = dict(_proofs(runs, options))
        data = [{"metric": name, **proof} for name, (proof, _) in metrics.items()]
        suites.append({"suite": first.suite, "path": first.path, "metrics": data})
        lines.append(f"{first.suite} ({first.path}): {len(runs)} runs of the same version")
        lines += (line for _, text in metrics.values() for line in ("", *text))
    if not suites:
        say(lines)
        raise LlmevalError("the runs have no suite in common")
    return CommandResult(0, {"suites": suites}, lines)


def _proofs(
    runs: Sequence[SuiteReport], options: Namespace
) -> Iterator[tuple[str, tuple[Mapping[str, Any], Sequence[str]]]]:
    """Yield for each metric its name, what is found as data, and lines."""
    pair = paired_scores(runs[-1], runs[0])
    names = pair.compared(options.metric)
    if unknown := set(options.metric or ()) - set(names):
        raise LlmevalError(unknown_name("metric", min(unknown), [*runs[0].metrics]))
    for name in names:
        scores = _repeated(runs, name, options)
        if isinstance(scores, str):
            yield name, ({"why": scores, "rows": []}, [f"{name}: {scores}"])
        else:
            rows = list(_proof_rows(scores, options))
            mean = float(scores.scores.mean())
            yield name, ({"cases": scores.scores.shape[1], "mean": mean, "rows": rows}, list(_metric(scores, rows)))


def _repeated(runs: Sequence[SuiteReport], name: str, options: Namespace) -> RepeatedScores | str:
    """Return the scores of the cases that have one in all runs, or why there is nothing to tell."""
    import numpy as np

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


def _proof_rows(repeated: RepeatedScores, options: Namespace) -> Iterator[dict[str, Any]]:
    """Yield how often two runs differ: these runs, without a fall, and simulated ones of each fall that is possible."""
    yield _counts(None, [*repeated.pairs()])
    for fall in [0.0, *(options.fall or _FALLS)]:
        if repeated.room is None or fall <= repeated.room:
            yield _counts(fall, [*repeated.simulated(fall, options.simulations, options.seed)])
        else:
            yield _counts(fall, [])


def _counts(fall: float | None, outcomes: Sequence[tuple[bool, GateOutcome]]) -> dict[str, Any]:
    return {
        "fall": fall,
        "compared": len(outcomes),
        "worse": sum(worse for worse, _ in outcomes),
        "red": sum(outcome == "failed" for _, outcome in outcomes),
        "undecided": sum(outcome == "undecided" for _, outcome in outcomes),
    }


def _metric(repeated: RepeatedScores, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is said about one metric."""
    cases, (these, *simulated) = repeated.scores.shape[1], rows
    cells = [("these runs", f"{these['compared']} pairs", *_numbers(these))]
    for row in simulated:
        title = f"fall of {limit(row['fall'])}" if row["fall"] else "nothing changed"
        if row["compared"]:
            cells.append((title, f"{row['compared']} simulated", *_numbers(row)))
        else:
            cells.append((title, "", f"impossible: {number(repeated.room or 0.0)} at most", "", ""))
    yield f"{repeated.name}: {counted(cases, 'case')}, mean {number(float(repeated.scores.mean()))}"
    headers = ("", "", f"{_ANY} is red", f"{repeated.gate} is red", "cannot tell")
    yield from table_lines([headers, *cells], "llrrr")
    if _SUSPECT * these["red"] > these["compared"]:
        yield "these runs differ by more than noise seldom does: are they of one version?"
    red = {each["fall"]: each["red"] for each in simulated if each["compared"]}
    yield _sentence(cases, red, simulated[0]["compared"])


def _numbers(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(row["worse"]), str(row["red"]), str(row["undecided"])


def _sentence(cases: int, red: dict[float, int], times: int) -> str:
    """Say in one sentence what the gate is worth."""
    rates = [f"of {limit(fall)} in {100 * hits / times:.0f}" for fall, hits in red.items() if fall]
    falls = f"a fall {', '.join(rates)} of 100 pull requests is found" if rates else "no fall is possible"
    alarms = f"1 in {times / red[0.0]:.0f}" if red[0.0] else f"at most 1 in {times / _NONE_SEEN:.0f}"
    return f"with your {counted(cases, 'case')} and your noise, {falls}; false alarms {alarms}"
