"""The command ``llmeval power``."""

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from pytest_llmeval.cli import CommandResult, NumberArgument
from pytest_llmeval.core import GateResult, LlmevalError, Metric, counted, limit, number, unknown_name
from pytest_llmeval.data import OutputFile
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.workbench._console import open_noted, table_lines
from pytest_llmeval.workbench.plan._simulation import RepeatedScores
from pytest_llmeval.workbench.plan._spread import EARLIER_RUNS, Plan, Planned, Sources, planned

_POWER = (
    "Print how many cases and repeats find a drop in 80 of 100 runs, and which drop the suite finds as it is. How much "
    "scores vary is taken from the approved run, from reports (of a suite with repeats, or of a second run), or from "
    "what is stated. With --simulate, gates are also judged on drawn cases and runs whose scores are made to fall. The "
    "exit code is 2 if a file cannot be used or nothing is known."
)
_DROPS = (0.01, 0.02, 0.05, 0.1)
_REPEATS = (1, 3, 10)
_BAR = 20
_SIMULATED_RUNS = 2
_NONE_SEEN = 3
"""No event in n trials: at 95 % confidence its rate is at most so many in n."""

_SUSPECT = 4
"""Runs whose gates are red in more than one of so many pairs are suspected to be of several versions."""

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
        "--drop",
        type=NumberArgument(least=0),
        action="append",
        metavar="NUMBER",
        help="true drop to find; may be repeated",
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="only this metric; may be repeated")
    parser.add_argument(
        "--report",
        type=Path,
        action="append",
        metavar="FILE",
        help="JSON report of the suite, or FILE#SYSTEM; may be repeated",
    )
    parser.add_argument(
        "--confidence", type=NumberArgument(share=True), metavar="SHARE", help="of the test; default: that of the gate"
    )
    parser.add_argument(
        "--cluster-by", metavar="LABEL", help="label of cases that belong together; default: cluster_by of the suite"
    )
    parser.add_argument(
        "--within", type=NumberArgument(least=0), metavar="SD", help="standard deviation of a case's score over repeats"
    )
    parser.add_argument(
        "--between",
        type=NumberArgument(least=0),
        metavar="SD",
        help="standard deviation of a change's effect on a case",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the chance to find a drop into an SVG file")
    parser.add_argument(
        "--simulate",
        type=NumberArgument(least=1, whole=True),
        metavar="N",
        help="pull requests to simulate from two or more --report of the same version (default: none)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the simulations (default: 0)")
    parser.set_defaults(run=_power, code_of_faults=2)


def _power(options: Namespace) -> CommandResult:
    """Run ``llmeval power``: report which drops of a metric the gates of a suite can find."""
    suite = open_noted(options.suite)
    sources = Sources.read(suite, options.suite, options.report or ())
    every = _planned(options, sources)
    lines = [f"{suite.name} ({options.suite}): {_size(suite)}"]
    plans_data = []
    for plan in every:
        lines += _lines(plan, suite, options.drop)
        plans_data.append(_plan_data(plan, suite, options.drop))
        if options.simulate:
            simulated, text = _simulate(plan, sources, options)
            plans_data[-1]["simulated"] = simulated
            lines += ["", *text]
    if options.plot:
        plans = {plan.name: plan.plan for plan in every if plan.plan is not None}
        OutputFile(options.plot).save_text(_svg(plans, len(suite.cases), suite.repeats.times))
    size = {"cases": len(suite.cases), "repeats": suite.repeats.times}
    return CommandResult(0, {"suite": suite.name, **size, "plans": plans_data}, lines)


def _plan_data(planned: Planned, suite: LoadedSuite, drops: Sequence[float] | None) -> dict[str, Any]:
    """The power of one metric as JSON data: detectable drop, chances and cases needed."""
    plan, cases, times = planned.plan, len(suite.cases), suite.repeats.times
    data: dict[str, Any] = {"metric": planned.name, "basis": planned.basis, "detectable": None, "drops": []}
    if plan is not None and plan.spread.of_case(times):
        sizes = [drop for drop in drops or _usual(plan.allowed) if drop <= plan.room]
        chances = ((size, plan.chance(size, cases, times), plan.cases(size, times)) for size in sizes)
        data["drops"] = [dict(zip(("drop", "chance", "cases"), chance, strict=True)) for chance in chances]
        data["detectable"] = plan.detectable(cases, times)
    return data


def _usual(allowed: float) -> list[float]:
    """The drops that a power table lists by default, beyond the drop that the gate tolerates."""
    return [allowed + drop for drop in _DROPS]


def _planned(options: Namespace, sources: Sources) -> list[Planned]:
    """Plan the tests of the metrics that ``llmeval power`` is asked about.

    Raises:
        LlmevalError: The options give nothing to plan.
    """
    suite = sources.suite
    labels = {label for case in suite.cases for label in case.labels}
    stated = None if options.within is None and options.between is None else (options.within, options.between)
    faults = []
    if options.cluster_by is not None and options.cluster_by not in labels:
        faults.append(unknown_name("label", options.cluster_by, labels))
    if not sources.metrics and stated is None:
        faults.append(f"{options.suite} has no approved run: approve one, or pass --report, --within or --between")
    elif stated is None:
        known = (*sources.metrics, Metric.PASS_RATE)
        unknown = [name for name in options.metric or () if Gate.split_statistic(name)[1] not in known]
        faults += [unknown_name("metric", name, known) for name in unknown]
    if options.simulate and len(sources.reports) < _SIMULATED_RUNS:
        faults.append("--simulate needs two or more --report of the same version, with nothing changed in between")
    if faults:
        raise LlmevalError("\n".join(faults))
    names = options.metric or sources.gated or (sources.metrics if stated is None else ("any metric",))
    how = {"confidence": options.confidence, "cluster_by": options.cluster_by or suite.cluster_by, "stated": stated}
    return [planned(sources, name, gate=gate, **how) for name in dict.fromkeys(names) for gate in sources.gates(name)]


def _size(suite: LoadedSuite) -> str:
    """The number of cases and repeats of a suite in words."""
    repeats = f", each run {suite.repeats.times} times" if suite.repeats.times > 1 else ""
    return counted(len(suite.cases), "case") + repeats


def _lines(planned: Planned, suite: LoadedSuite, drops: Sequence[float] | None) -> Iterator[str]:
    """Yield the power table of one metric: chances to find drops, and the cases that would be needed."""
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
    variants = _within(plan, planned.gate)
    rows = []
    for size in drops or _usual(plan.allowed):
        chances = [variant.chance(size, cases, times) for variant in variants]
        if size > plan.room:
            rows.append((limit(size), *["impossible"] * len(chances), "", *[""] * len(tried)))
            continue
        needed = [_needed(plan.cases(size, repeats), planned.cluster) for repeats in tried]
        rows.append((limit(size), *map(number, chances), "#" * round(_BAR * chances[-1]), *needed))
    unit = "cases (clusters)" if planned.cluster > 1 else "cases"
    columns = [f"{unit} x {repeats}" if len(tried) > 1 else unit for repeats in tried]
    chances_of = [counted(variant.runs, "run") if variant.runs else "chance" for variant in variants]
    headers = ("max_drop" if plan.safe else "drop", *chances_of, "", *columns)
    yield from table_lines([headers, *rows], f"r{'r' * len(chances_of)}l{'r' * len(tried)}")
    yield from _advice(plan, cases, times)


def _family(planned: Planned) -> str:
    """The words on what the test of a metric is adjusted for: the number of groups and of other gates."""
    groups = f", smallest of {counted(planned.groups, 'group')}" if planned.groups else ""
    gates = f", beside {counted(planned.gates - 1, 'other gate')}" if planned.gates > 1 else ""
    return groups + gates


def _detectable(plan: Plan, drop: float | None) -> str:
    """The sentence on the smallest drop of a metric that a suite finds."""
    if plan.safe:
        which = "no max_drop that is possible" if drop is None else f"a max_drop of {number(drop)}"
        return f"an equally good run meets {which} in 80 of 100 runs"
    often = "80 of 100 runs"
    if plan.runs:
        within = f"within {counted(plan.runs, 'run')} that have it, after {EARLIER_RUNS} equally good ones"
        often = f"80 of 100 histories, {within}"
    if drop is None:
        most = f": the largest possible one is {number(plan.room)}" if math.isfinite(plan.room) else ""
        return f"not detectable: this suite finds no drop in {often}{most}"
    return f"this suite finds a drop of {number(drop)} in {often}"


def _within(plan: Plan, gate: ChangeGate | None) -> list[Plan]:
    """The power plan of a gate; of one that weighs many runs, with fewer of them."""
    watched = () if gate is None else gate.watched_runs
    return [replace(plan, runs=runs) for runs in watched] or [plan]


def _needed(cases: int | None, cluster: float) -> str:
    """The cell of a power table with the number of cases that finds a drop, and of clusters if there are any."""
    if cases is None:
        return "tolerated"
    return f"{cases} ({math.ceil(cases / cluster)})" if cluster > 1 else str(cases)


def _advice(plan: Plan, cases: int, times: int) -> Iterator[str]:
    """Yield advice whether more cases or more repeats make smaller drops detectable."""
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
    """Yield the SVG file of ``llmeval power``: for each metric, power curves for several numbers of cases."""
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
    """Yield the SVG elements of the power curves of one metric."""
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
    """The smallest drop that can be found, as a text."""
    return "not detectable" if drop is None else number(drop)


def _simulate(planned: Planned, sources: Sources, options: Namespace) -> tuple[dict[str, Any], list[str]]:
    """The share of red gates in pairs of runs and in simulated pull requests, as data and as text."""
    repeated = RepeatedScores.from_sources(sources, planned)
    if isinstance(repeated, str):
        return {"why": repeated, "rows": []}, [f"{planned.name}: {repeated}"]
    rows = [_outcome_counts(None, repeated.pairs())]
    for drop in [0.0, *(options.drop or _usual(repeated.gate.tolerated))]:
        possible = repeated.room is None or drop <= repeated.room
        simulated = repeated.simulated(drop, options.simulate, options.seed) if possible else ()
        rows.append(_outcome_counts(drop, simulated))
    cases, mean = repeated.scores.shape[1], float(repeated.scores.mean())
    title = f"{planned.name}: {counted(cases, 'case')}, mean {number(mean)}"
    return {"cases": cases, "mean": mean, "rows": rows}, [title, *_simulated_lines(repeated, rows)]


def _outcome_counts(drop: float | None, verdicts: Iterable[tuple[bool, GateResult]]) -> dict[str, Any]:
    """The numbers of red and undecided gates in simulated pull requests with one size of drop."""
    seen = [(worse, verdict.outcome) for worse, verdict in verdicts]
    return {
        "drop": drop,
        "compared": len(seen),
        "worse": sum(worse for worse, _ in seen),
        "red": sum(outcome == "failed" for _, outcome in seen),
        "undecided": sum(outcome == "undecided" for _, outcome in seen),
    }


def _simulated_lines(repeated: RepeatedScores, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of ``llmeval power --simulate``: red gates with and without a true drop."""
    cases, (these, *simulated) = repeated.scores.shape[1], rows
    cells = [("these runs", f"{these['compared']} pairs", *_cells(these))]
    for row in simulated:
        title = f"drop of {limit(row['drop'])}" if row["drop"] else "nothing changed"
        if row["compared"]:
            cells.append((title, f"{row['compared']} simulated", *_cells(row)))
        else:
            cells.append((title, "", f"impossible: {number(repeated.room or 0.0)} at most", "", ""))
    headers = ("", "", "any drop is red", f"{repeated.gate} is red", "cannot tell")
    yield from table_lines([headers, *cells], "llrrr")
    if _SUSPECT * these["red"] > these["compared"]:
        yield "these runs differ by more than noise seldom does: are they of one version?"
    red = {row["drop"]: row["red"] for row in simulated if row["compared"]}
    yield _sentence(cases, red, simulated[0]["compared"])


def _cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The table cells of one row of simulated pull requests."""
    return str(row["worse"]), str(row["red"]), str(row["undecided"])


def _sentence(cases: int, red: Mapping[float, int], times: int) -> str:
    """The sentence on the power of a gate in simulated pull requests."""
    rates = [f"of {limit(drop)} in {100 * hits / times:.0f}" for drop, hits in red.items() if drop]
    drops = f"a drop {', '.join(rates)} of 100 pull requests is found" if rates else "no drop is possible"
    alarms = f"1 in {times / red[0.0]:.0f}" if red[0.0] else f"at most 1 in {times / _NONE_SEEN:.0f}"
    return f"with your {counted(cases, 'case')} and your noise, {drops}; false alarms {alarms}"
