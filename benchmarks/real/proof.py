"""How often is a gate wrong on published data? The tables and pictures that ``docs/proof.md`` summarises and shows.

Run: ``python benchmarks/real/proof.py`` repeats a seeded tenth of each table and prints what the page has otherwise;
``--full`` writes the page's tables and draws its pictures anew. ``README.md`` in this folder has the sources.

The rules that people use are functions of this module, each a formula over scores of cases. Ours are the gates of the
package, called as a library.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy import stats

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from few_cases import paired  # noqa: E402 (a script of the folder above)
from real.pictures import PICTURES, svg  # noqa: E402
from stopping import early  # noqa: E402
from tables import DOCS, Row, mean, published_tables, rows, share, table, write_or_check  # noqa: E402

from pytest_llmeval.gates import DropGate, GateEvidence, LiftGate  # noqa: E402
from pytest_llmeval.gates._drop import AnytimeGate, SafeGate  # noqa: E402
from pytest_llmeval.numbers import RunPairing  # noqa: E402

Array = np.ndarray

LEVEL = 0.05
SIZES = (10, 30, 100, 300)
FALLS = {0: (-0.01, 1e-9), 2: (0.015, 0.025), 5: (0.04, 0.06), 10: (0.09, 0.11)}
"""Points to the range of the difference of two systems, over all instructions, that counts as such a fall."""


@cache
def tau_bench() -> Array:
    """Return the rewards of tau-bench, tasks by trials."""
    with (HERE / "tau_bench_airline.csv").open(encoding="utf-8") as file:
        rows = [(int(row["task"]), int(row["trial"]), float(row["reward"])) for row in csv.DictReader(file)]
    rewards = np.full((50, 4), np.nan)
    for task, trial, reward in rows:
        rewards[task, trial] = reward
    return rewards


@cache
def alpaca_eval() -> Array:
    """Return the preferences of AlpacaEval, instructions by systems."""
    with gzip.open(HERE / "alpaca_eval_preferences.csv.gz", "rt", encoding="utf-8") as file:
        return np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])


@dataclass(frozen=True, eq=False)
class Runs:
    """What a rule sees.

    Attributes:
        before: Scores of the approved runs, runs by cases.
        now: Scores of the runs of the candidate.
        limit: The value of the approved system over all that is known of it: a threshold that was set with care.
    """

    before: Array
    now: Array
    limit: float

    @cached_property
    def pairing(self) -> RunPairing:
        """Both first runs, for gates of the package; they share the resamples."""
        return paired(self.now[0], self.before[0])

    @property
    def drops(self) -> Array:
        """How much worse each case is in the first run of the candidate."""
        drops: Array = self.before[0] - self.now[0]
        return drops


@dataclass(frozen=True)
class Rule:
    """A rule that says whether a candidate may be merged.

    Attributes:
        name: Of its row.
        verdict: Returns ``red``, ``green`` or ``cannot tell``, and how many cases were asked.
        before: The number of approved runs that it takes.
        now: The number of runs of the candidate that it takes.
        pairs: Whether it compares each case with itself, so that both runs need the same cases.
    """

    name: str
    verdict: Callable[[Runs], tuple[str, float]]
    before: int = 1
    now: int = 1
    pairs: bool = False


def red(formula: Callable[[Runs], bool]) -> Callable[[Runs], tuple[str, float]]:
    """Return a verdict that is red where the formula holds, and takes one run of all cases."""
    return lambda runs: ("red" if formula(runs) else "green", runs.now.shape[1])


PASSES = 0.5
"""A case with a lower score fails: in tau-bench the task is not solved, in AlpacaEval the reference is preferred."""


def best_of_three(runs: Runs) -> tuple[str, float]:
    """Run again while the mean is below the approved one, three runs at most."""
    below = runs.now[:3].mean(axis=1) < runs.before[0].mean() - 1e-9
    return "red" if below.all() else "green", runs.now.shape[1] * (3 if below.all() else int(below.argmin()) + 1)


def mean_of_two(runs: Runs) -> tuple[str, float]:
    """Compare the means of two runs of either system."""
    return "red" if runs.now[:2].mean() < runs.before[:2].mean() - 1e-9 else "green", 2 * runs.now.shape[1]


def _error(scores: Array) -> float:
    return float(scores.std(ddof=1)) / float(np.sqrt(len(scores)))


def unpaired(runs: Runs) -> bool:
    """Z test of two samples: the drop is above 1.96 standard errors of the difference of independent means."""
    return float(runs.drops.mean()) > 1.96 * np.hypot(_error(runs.before[0]), _error(runs.now[0])) + 1e-9


def apart(runs: Runs) -> bool:
    """The 95 % intervals of both means, each 1.96 standard errors to either side, do not overlap."""
    return float(runs.drops.mean()) > 1.96 * (_error(runs.before[0]) + _error(runs.now[0])) + 1e-9


def sign_test(runs: Runs) -> bool:
    """More cases got worse than better, two-sided binomial p at most 0.05."""
    worse, better = int((runs.drops > 1e-9).sum()), int((runs.drops < -1e-9).sum())
    return worse > better and stats.binomtest(worse, worse + better).pvalue <= LEVEL


def paired_t(runs: Runs) -> bool:
    """Student's test of the differences of cases, two-sided p at most 0.05."""
    error = _error(runs.drops)
    return float(runs.drops.mean()) > stats.t.ppf(1 - LEVEL / 2, len(runs.drops) - 1) * error + 1e-9


WORDS = {"failed": "red", "passed": "green", "undecided": "cannot tell"}


@lru_cache(8)
def judged(gate: DropGate | SafeGate, runs: Runs) -> tuple[str, float]:
    """Return the verdict of a gate of the package."""
    return WORDS[GateEvidence.judge_together([gate.examine(runs.pairing)])[0].outcome], runs.now.shape[1]


def ours(gate: DropGate | SafeGate) -> Callable[[Runs], tuple[str, float]]:
    return lambda runs: judged(gate, runs)


def stopped(runs: Runs) -> tuple[str, float]:
    """Stop when the default gate is decided, or judge all cases."""
    found, cases = early(DEFAULT, runs.drops, np.arange(len(runs.drops)))
    return (WORDS[found], cases) if found else judged(DEFAULT, runs)


def weighed(runs: Runs) -> tuple[str, float]:
    """Weigh all runs since the approval; red where any of them is."""
    earlier: list = []
    for now in runs.now:
        found, run = ANYTIME.weigh(ANYTIME.examine(paired(now, runs.before[0])), earlier)
        if found.outcome == "failed":
            return "red", runs.now.size
        earlier += [run] if run else []
    return "green", runs.now.size


DEFAULT, ANYTIME = DropGate("score", 0.02), AnytimeGate("score", 0.0)
RULES = (
    Rule("any failing case", red(lambda runs: runs.now[0].min() < PASSES)),
    Rule("any drop", red(lambda runs: runs.drops.mean() > 1e-9)),
    Rule("more than 2 points", red(lambda runs: runs.drops.mean() > 0.02 + 1e-9)),
    Rule("more than 5 points", red(lambda runs: runs.drops.mean() > 0.05 + 1e-9)),
    Rule("threshold at the baseline", red(lambda runs: runs.now[0].mean() < runs.limit - 1e-9)),
    Rule("best of three runs", best_of_three, now=3),
    Rule("means of two runs", mean_of_two, before=2, now=2),
    Rule("unpaired z", red(unpaired)),
    Rule("intervals apart", red(apart)),
    Rule("sign test", red(sign_test), pairs=True),
    Rule("paired t", red(paired_t), pairs=True),
    Rule("ours: `max_drop: 0.02`", ours(DEFAULT), pairs=True),
    Rule("ours: `max_drop: 0`", ours(DropGate("score", 0.0)), pairs=True),
    Rule("ours: `non_inferiority` 0.05", ours(SafeGate("score", 0.05)), pairs=True),
    Rule("ours: `stop: when_decided`", stopped, pairs=True),
    Rule("ours: `anytime`", weighed, now=3, pairs=True),
)
GATES = (*RULES[11:13], RULES[14])
"""Gates that can be undecided."""

Outcomes = dict[str, list[tuple[str, float]]]

CHEAPER = 14
"""Rules that are formulas see so many draws for each one that a gate sees: some 4,000."""


def compared(
    compare: Callable[[int, tuple[Rule, ...]], Outcomes], simulations: int, rules: tuple[Rule, ...]
) -> Outcomes:
    """Return what rules say of simulations, of which those that are formulas see more."""
    gates = tuple(rule for rule in rules if rule.name.startswith("ours: "))
    formulas = tuple(rule for rule in rules if rule not in gates)
    return {
        **compare(simulations=CHEAPER * simulations, rules=formulas),
        **compare(simulations=simulations, rules=gates),
    }


@lru_cache
def systems_compared(
    size: int,
    points: int,
    simulations: int,
    seed: int,
    base: tuple[float, float] = (0, 1),
    rules: tuple[Rule, ...] = RULES,
) -> Outcomes:
    """Return what rules say of pairs of systems of AlpacaEval that differ by so many points.

    The mean of the approved system is in the range `base`. The 797 instructions are the population, from which `size`
    are drawn with replacement: on all of them, it is known how much worse a system is.
    """
    scores = alpaca_eval()
    values = scores.mean(axis=0)
    low, high = FALLS[points]
    falls = values[:, None] - values[None, :]
    approved = ((values >= base[0]) & (values < base[1]))[:, None]
    pairs = np.argwhere((falls >= low) & (falls <= high) & approved & ~np.eye(len(values), dtype=bool))
    rng = np.random.default_rng([seed, size, points])
    found: Outcomes = {rule.name: [] for rule in rules if rule.now == 1}
    for before, now in pairs[rng.integers(len(pairs), size=simulations)]:
        drawn = rng.integers(len(scores), size=size)
        runs = Runs(scores[None, drawn, before], scores[None, drawn, now], float(values[before]))
        for rule in rules:
            if rule.name in found:
                found[rule.name].append(rule.verdict(runs))
    return found


def halves_compared(simulations: int, seed: int, rules: tuple[Rule, ...] = RULES) -> Outcomes:
    """Return what rules say of one system of AlpacaEval that answers one half of the instructions, then the other."""
    scores = alpaca_eval()
    rng = np.random.default_rng([seed, len(scores)])
    found: Outcomes = {rule.name: [] for rule in rules if rule.now == 1 and not rule.pairs}
    for system in rng.integers(scores.shape[1], size=simulations):
        first, second = rng.permutation(scores[:, system])[: len(scores) // 2 * 2].reshape(2, -1)
        runs = Runs(first[None], second[None], float(scores[:, system].mean()))
        for rule in rules:
            if rule.name in found:
                found[rule.name].append(rule.verdict(runs))
    return found


@lru_cache
def trials_compared(size: int, points: int, simulations: int, seed: int, rules: tuple[Rule, ...] = RULES) -> Outcomes:
    """Return what rules say of trials of one agent in tau-bench, on `size` tasks, in random order of the trials.

    Of `points` above 0, so many of the candidate's successes become failures that its mean falls by as much.
    """
    rewards = tau_bench()
    rng = np.random.default_rng([seed, size, points])
    found: Outcomes = {rule.name: [] for rule in rules}
    for _ in range(simulations):
        tasks = rng.permutation(len(rewards))[:size]
        trials = rewards[tasks][:, rng.permutation(4)].T
        worse = np.where(rng.random(trials.shape) < points / 100 / rewards.mean(), 0.0, trials)
        for rule in rules:
            runs = Runs(trials[: rule.before], worse[rule.before :][: rule.now], float(rewards[tasks].mean()))
            found[rule.name].append(rule.verdict(runs))
    return found


def every_pair(rule: Rule, word: str = "red") -> str:
    """Return in how many of the possible choices of trials a rule says `word`, on all tasks."""
    rewards = tau_bench().T
    orders = {
        (frozenset(each[: rule.before]), *_compared(rule, each[rule.before :][: rule.now]))
        for each in permutations(range(4))
    }
    verdicts = []
    for order in orders:
        before, now = [*order[0]], [*order[1:]]
        runs = Runs(rewards[before], rewards[now], float(rewards.mean()))
        verdicts.append(rule.verdict(runs)[0])
    return f"{verdicts.count(word)} of {len(verdicts)}"


def _compared(rule: Rule, trials: tuple[int, ...]) -> tuple[int, ...]:
    """Return the trials of the candidate, in order where the rule depends on it."""
    return trials if rule.verdict is weighed else tuple(sorted(trials))


def _row(rule: Rule, word: str) -> str:
    """Return how the row of a rule begins, or of how often it gives no verdict."""
    return rule.name + (" cannot tell" if word == "cannot tell" else "")


def _is(word: str, outcomes: Iterable[tuple[str, float]]) -> list[bool]:
    return [verdict == word for verdict, _ in outcomes]


@table(
    "alarms",
    "../benchmarks/calibration.md",
    ("rule", "tau-bench, all pairs", "tau-bench, 30 tasks", *(f"n = {size}" for size in SIZES), "halves"),
    simulations=300,
)
def alarms(simulations: int, seed: int) -> Iterator[Row]:
    """How often is a rule red although nothing got worse?"""
    drawn = rows([*((rule, "red") for rule in RULES), *((rule, "cannot tell") for rule in GATES)])
    rules = tuple(rule for rule in RULES if rule in {each for each, _ in drawn})
    ways = [
        partial(trials_compared, 30, 0, seed=seed),
        *(partial(systems_compared, size, 0, seed=seed) for size in SIZES),
        partial(halves_compared, seed=seed),
    ]
    outcomes = [compared(way, simulations, rules) for way in ways]
    for rule, word in drawn:
        rates = [share(_is(word, each[rule.name]), 2) if rule.name in each else "n/a" for each in outcomes]
        yield (_row(rule, word), every_pair(rule, word), *rates)


@table(
    "falls",
    "../benchmarks/calibration.md",
    ("rule", *(f"n = {size}" for size in SIZES), "tau-bench, 50 tasks, 20 points"),
    simulations=300,
)
def falls(simulations: int, seed: int) -> Iterator[Row]:
    """How often is a rule green although the candidate is 2 / 5 / 10 points worse?"""
    drawn = rows([*((rule, "green") for rule in RULES), *((rule, "cannot tell") for rule in GATES)])
    rules = tuple(rule for rule in RULES if rule in {each for each, _ in drawn})
    systems = [
        [compared(partial(systems_compared, size, points, seed=seed), simulations, rules) for points in (2, 5, 10)]
        for size in SIZES
    ]
    trials = compared(partial(trials_compared, 50, 20, seed=seed), simulations, rules)
    for rule, word in drawn:
        cells = [
            tuple(share(_is(word, each[rule.name]), 2) for each in row) if rule.name in row[0] else "n/a"
            for row in systems
        ]
        yield (_row(rule, word), *cells, share(_is(word, trials[rule.name]), 2))


BASES = {"below 0.08": (0.0, 0.08), "0.08 to 0.2": (0.08, 0.2)}


@table(
    "base-rates",
    "../benchmarks/calibration.md",
    ("approved mean", *(rule.name for rule in (RULES[1], RULES[10], RULES[12])), "ours cannot tell"),
    simulations=300,
)
def base_rates(simulations: int, seed: int) -> Iterator[Row]:
    """How often is a rule red with 100 instructions, without a fall / of a fall of 5 points, by the base rate?"""
    rules = (RULES[1], RULES[10], RULES[12])
    for name, base in rows(BASES.items()):
        both = [
            compared(partial(systems_compared, 100, points, seed=seed, base=base), simulations, rules)
            for points in (0, 5)
        ]
        cells = [tuple(share(_is("red", each[rule.name]), 2) for each in both) for rule in rules]
        yield (name, *cells, tuple(share(_is("cannot tell", each[rules[-1].name]), 2) for each in both))


@table(
    "cost",
    "../benchmarks/calibration.md",
    ("rule", "tau-bench, 50 tasks", "20 points worse", "AlpacaEval, 300", "10 points worse"),
    simulations=300,
)
def cost(simulations: int, seed: int) -> Iterator[Row]:
    """How many cases are asked until the verdict, on average?"""
    drawn = rows((RULES[1], RULES[5], RULES[6], RULES[11], RULES[14]))
    outcomes = (
        *(trials_compared(50, each, simulations, seed, tuple(drawn)) for each in (0, 20)),
        *(systems_compared(300, each, simulations, seed, rules=tuple(drawn)) for each in (0, 10)),
    )
    for rule in drawn:
        means = [mean((cases for _, cases in each[rule.name]), 0) if rule.name in each else "n/a" for each in outcomes]
        yield (rule.name, *means)


@table(
    "skills",
    "../benchmarks/calibration.md",
    ("skill", "wins / ties / losses", "its gate", "its next gate", "sign test", "ours: `lift(score) >= 0`"),
)
def skills(simulations: int, seed: int) -> Iterator[Row]:
    """What gates say of published comparisons with and without a skill."""
    del simulations, seed
    with (HERE / "skill_gate_records.csv").open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    for each in rows(records):
        wins, ties, losses = counts = tuple(int(each[name]) for name in ("wins", "ties", "losses"))
        gain = np.repeat([1.0, 0.0, -1.0], counts)
        tested = stats.binomtest(wins, wins + losses).pvalue <= LEVEL
        sign = "cannot tell" if not tested else "pass" if wins > losses else "fail"
        verdict = GateEvidence.judge_together([LiftGate("score", 0.0).examine(paired((1 + gain) / 2, (1 - gain) / 2))])[
            0
        ].outcome
        gates = [each[name] or "n/a" for name in ("gate_old", "gate_new")]
        yield (each["skill"], f"{wins} / {ties} / {losses}", *gates, sign, {**WORDS, "passed": "pass"}[verdict])


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Recompute tables of benchmarks/calibration.md, and pictures of docs/proof.md, from published data."
    )
    parser.add_argument("--full", action="store_true", help="write tables and pictures; default: check a tenth")
    options = parser.parse_args()
    names = [name for name, each in published_tables().items() if each.rows.__module__.startswith("real.")]
    code = write_or_check(names, check=not options.full)
    page = (DOCS / "../benchmarks/calibration.md").read_text(encoding="utf-8")
    for name, picture in PICTURES.items() if options.full else ():
        (DOCS / name).write_text("\n".join(svg(picture(page))) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    from real.proof import main as run  # tables are declared in the module of this name, not in the script

    sys.exit(run())
