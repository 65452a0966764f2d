"""Measure how often intervals of a cascade of judges cover what the large judge alone would say, and what it saves.

Each run draws cases: how good an answer is, what the large judge makes of it, and what the small one does, which is
wrong about a share of the answers of which it is sure, always in the same direction. The cascade asks the large judge
about scores between 0.3 and 0.8 and about a random share of the others. Every number is from some hundred runs, scored
by the evaluators of the package. `coverage` is the share of the intervals with a level of 0.95 that hold the mean of
the large judge over all answers that could have been drawn; `uncorrected` is that of ordinary intervals.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.core import CaseRecord, MetricValue, Observation
from pytest_llmeval.evaluators import Cascaded, Judge
from pytest_llmeval.judges import CascadeVerdict, Verdict
from pytest_llmeval.numbers import Table

if TYPE_CHECKING:
    import numpy as np

LABEL = "judge"
JUDGE = Judge(mode="continuous")
BETWEEN = (0.3, 0.8)
SIZES = (200, 500, 2000)
AUDITS = (0.05, 0.1, 0.2)
ERRORS = (0.0, 0.05, 0.2)


class Setting(NamedTuple):
    """What is simulated: cases, audited share, share of the sure verdicts that are wrong, kind of scores."""

    cases: int
    audit: float
    wrong: float
    binary: bool


class Covered(NamedTuple):
    """What came of the runs of a setting; shares of them, widths and calls as means."""

    defined: float
    coverage: float
    plain: float
    width: float
    large_calls: float


def draws(setting: Setting, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores of the large and the small judge, and which cases are audited if the small one is sure."""
    import numpy as np

    good = random.random(setting.cases) < 0.7
    doubtful = random.random(setting.cases) < 0.25
    if setting.binary:
        large = np.where(doubtful, random.random(setting.cases) < 0.5, good).astype(float)
        small = np.where(doubtful, 0.5, large)
    else:
        large = np.where(doubtful, random.uniform(0.2, 0.9, setting.cases), np.where(good, 0.9, 0.1))
        large = np.clip(large + random.normal(0, 0.05, setting.cases), 0, 1)
        small = np.where(doubtful, 0.5, np.where(good, 0.95, 0.05))
    # It takes bad answers for good ones.
    fooled = ~doubtful & ~good & (random.random(setting.cases) < setting.wrong / 0.3)
    small = np.where(fooled, 1.0, small)
    return large, small, random.random(setting.cases) < setting.audit


def observation(large: float, small: float, audited: bool) -> Observation:
    """Return what a run counts of one case."""
    low, high = BETWEEN
    unsure = low <= small <= high
    first = None if unsure else Verdict(small)
    verdict = CascadeVerdict(large if unsure or audited else small, first=first, audited=audited and not unsure)

    def counted(verdicts: Sequence[Sequence[Verdict]]) -> Observation:
        return Observation({"score": verdicts[0][0].score, "n": 1})

    found = Cascaded.with_audit(counted([[verdict]]), [[verdict]], counted)
    assert isinstance(found, Observation)
    return found


def summary(observations: Sequence[Observation], audit: float) -> MetricValue:
    """Return the score of a run with its interval."""
    records = [CaseRecord(str(number), observations={LABEL: each}) for number, each in enumerate(observations)]
    return Table({LABEL: Cascaded(JUDGE, audit)}, records).metrics(range(len(records)), 0.95)["judge_score"]


def mean_of_large(setting: Setting) -> float:
    """Return the mean of the large judge over all answers that could be drawn."""
    import numpy as np

    large, *_ = draws(setting._replace(cases=2_000_000), np.random.default_rng(1))
    return float(large.mean())


def covered(setting: Setting, runs: int, truth: float) -> Covered:
    """Simulate runs of a setting; ``nan`` where no run has a value."""
    import numpy as np

    random = np.random.default_rng([runs, setting.cases, round(1000 * setting.audit), round(1000 * setting.wrong)])
    rows = []
    for _ in range(runs):
        large, small, audited = draws(setting, random)
        seen = [observation(*each) for each in zip(large.tolist(), small.tolist(), audited.tolist(), strict=True)]
        found = summary(seen, setting.audit)
        scores = np.array([each.counts["score"] for each in seen])
        plain = abs(scores.mean() - truth) <= 1.96 * scores.std() / np.sqrt(len(scores))
        calls = sum("cascade.sure" not in each.counts or "cascade.audited" in each.counts for each in seen)
        rows.append((held(found, truth), plain, width(found), calls / setting.cases))
    inside, plain_inside, widths, large = np.array(rows, dtype=float).T
    defined = np.isfinite(inside)
    parts = (inside[defined], plain_inside, widths[defined], large)
    return Covered(float(defined.mean()), *(float(each.mean()) for each in parts))


def held(metric: MetricValue, truth: float) -> float:
    """Return whether an interval holds a number; ``nan`` without an interval."""
    if metric.value is None or metric.low is None or metric.high is None:
        return float("nan")
    return float(metric.low <= truth <= metric.high)


def width(metric: MetricValue) -> float:
    """Return the width of an interval."""
    return float("nan") if metric.low is None or metric.high is None else metric.high - metric.low


def line(kind: Setting, runs: int) -> Mapping[str, str]:
    """Return a row of the table: a kind of runs, by the number of cases."""
    truth = mean_of_large(kind)
    by_size = {cases: covered(kind._replace(cases=cases), runs, truth) for cases in SIZES}
    few, some, many = by_size.values()
    return {
        "scores": "0 or 1" if kind.binary else "graded",
        "wrong": f"{kind.wrong:g}",
        "audit": f"{kind.audit:g}",
        **{f"coverage at {cases:,}": f"{found.coverage:.3f}" for cases, found in by_size.items()},
        f"uncorrected at {SIZES[-1]:,}": f"{many.plain:.3f}",
        f"width at {SIZES[1]:,}": f"{some.width:.3f}",
        f"defined at {SIZES[0]:,}": f"{few.defined:.2f}",
        "large": f"{some.large_calls:.0%}",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="simulated runs of each kind and size")
    options = parser.parse_args()
    for number, (binary, wrong, audit) in enumerate(product((True, False), ERRORS, AUDITS)):
        row = line(Setting(0, audit, wrong, binary), options.runs)
        if not number:
            sys.stdout.write(f"| {' | '.join(row)} |\n|{'---|' * len(row)}\n")
        sys.stdout.write(f"| {' | '.join(row.values())} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
