"""What judges and recipes for them are worth, by LLMBar: tables that ``docs/proof.md`` summarises.

People chose the better of two answers 419 times. Judges were asked twice, with the answers in either order; a verdict
is right if it is that of the people.
"""

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from cascades import observation, summary
from few_cases import corrected_interval
from scipy import stats
from tables import Row, mean, rows, share, table

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import CaseRecord, MetricValue
from pytest_llmeval.numbers import Table

Array = np.ndarray

SUBSETS = ("Natural", "GPTOut", "Manual", "GPTInst", "Neighbor")
JUDGES = ("GPT-4", "PaLM2", "LLaMA2", "ChatGPT-0301", "ChatGPT", "Falcon")
PROMPT = "Vanilla"
LABELS = (20, 40, 100, 200)
Z = float(stats.norm.ppf(0.975))


@cache
def verdicts(judge: str) -> tuple[Array, Array, Array, Array]:
    """Return, for each pair: its subset, whether people chose the first answer, and the judge's choice in both orders.

    A choice is 1 for the first answer, 0 for the second, and 0.5 where nothing could be read.
    """
    with gzip.open(Path(__file__).parent / "llmbar_verdicts.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["judge"], row["prompt"]) == (judge, PROMPT)]
    rows.sort(key=lambda row: (row["subset"], int(row["pair"])))
    first = {"1": 1.0, "2": 0.0, "": 0.5}
    columns = ([first[row[name]] for row in rows] for name in ("label", "shown_as_is", "shown_swapped"))
    people, as_is, swapped = map(np.array, columns)
    return np.array([row["subset"] for row in rows]), people, as_is, swapped


def percent(part: Array) -> str:
    return f"{100 * float(part.mean()):.0f} %"


@table("judges", "../benchmarks/calibration.md", ("judge", *SUBSETS, "order decides"))
def judges(_simulations: int, _seed: int) -> Iterator[Row]:
    """Pairs on which a judge is right in both orders, by subset, and those on which the order decides."""
    for judge in JUDGES:
        subset, people, as_is, swapped = verdicts(judge)
        right = (as_is == people) & (swapped == people)
        yield (judge, *(percent(right[subset == each]) for each in SUBSETS), percent(as_is != swapped))


Chosen = tuple[Array, Array]
"""For each pair, the choice, and how many calls it took."""


def one_order(judge: str) -> Chosen:
    _, _, as_is, _ = verdicts(judge)
    return as_is, np.ones(len(as_is))


def both_orders(judge: str) -> Chosen:
    """Ask in both orders, and choose nothing where they disagree."""
    _, _, as_is, swapped = verdicts(judge)
    return np.where(as_is == swapped, as_is, 0.5), np.full(len(as_is), 2.0)


def panel(names: Sequence[str]) -> Chosen:
    """Follow most of the judges, each asked once."""
    votes = np.mean([one_order(each)[0] for each in names], axis=0)
    return np.select([votes > 0.5, votes < 0.5], [1.0, 0.0], 0.5), np.full(len(votes), float(len(names)))


def cascade(small: str, large: str) -> Chosen:
    """Ask the small judge in both orders, and the large one where these disagree."""
    chosen, calls = both_orders(small)
    unsure = chosen == 0.5
    return np.where(unsure, one_order(large)[0], chosen), calls + unsure


WAYS: tuple[tuple[str, Callable[[], Chosen]], ...] = (
    ("ChatGPT, one order", lambda: one_order("ChatGPT")),
    ("ChatGPT, both orders", lambda: both_orders("ChatGPT")),
    ("PaLM2, one order", lambda: one_order("PaLM2")),
    ("PaLM2, both orders", lambda: both_orders("PaLM2")),
    ("GPT-4, one order", lambda: one_order("GPT-4")),
    ("GPT-4, both orders", lambda: both_orders("GPT-4")),
    ("panel of the five others", lambda: panel([each for each in JUDGES if each != "GPT-4"])),
    ("panel of GPT-4, PaLM2, LLaMA2", lambda: panel(("GPT-4", "PaLM2", "LLaMA2"))),
    ("PaLM2 in both orders, then GPT-4", lambda: cascade("PaLM2", "GPT-4")),
    ("ChatGPT in both orders, then GPT-4", lambda: cascade("ChatGPT", "GPT-4")),
)


@table(
    "ways",
    "../benchmarks/calibration.md",
    ("asked", "right", "wrong", "no choice", "wrong on Neighbor", "calls per pair"),
)
def ways(_simulations: int, _seed: int) -> Iterator[Row]:
    """What panels, a swap of the answers and cascades win and cost."""
    subset, people, _, _ = verdicts("GPT-4")
    for name, way in WAYS:
        chosen, calls = way()
        wrong = chosen == 1 - people
        shares = (chosen == people, wrong, chosen == 0.5, wrong[subset == "Neighbor"])
        yield (name, *map(percent, shares), f"{calls.mean():.2f}")


AGREEMENT = get_evaluator("judge_agreement", mode="default_binary")
CASES = 400


@cache
def agreements() -> dict[tuple[float, float], CaseRecord]:
    """Return the record of a case by what people said and what the judge said."""
    kinds = [(people, judge) for people in (0.0, 1.0) for judge in (0.0, 1.0)]
    cases = [
        Case(
            f"{number}",
            input="Which?",
            expected={"reference": "A", "human": people},
            prediction="yes"[: int(3 * judge)] or "no",
        )
        for number, (people, judge) in enumerate(kinds)
    ]
    found = score(AGREEMENT, cases, judge=lambda request: "Yes." if "yes" in str(request.messages[-1]) else "No.")
    return dict(zip(kinds, found.records, strict=True))


def held(low: float | None, high: float | None, truth: float) -> bool | None:
    """Return whether an interval holds a number; ``None`` where there is no interval, as with too few audits."""
    return None if low is None or high is None else low <= truth <= high


def agreement_holds(judge: str, labels: int, rng: np.random.Generator) -> bool | None:
    """Return whether the interval of the agreement on drawn labels holds that on all pairs."""
    _, people, as_is, _ = verdicts(judge)
    drawn = rng.integers(len(people), size=labels)
    said = np.rint(as_is + 0.01)
    records = [
        CaseRecord(f"{place}", observations=agreements()[people[each], said[each]].observations)
        for place, each in enumerate(drawn)
    ]
    found = Table({"judge_agreement": AGREEMENT}, records).metrics(range(labels), 0.95)["agreement"]
    return held(found.low, found.high, float((people == said).mean()))


def corrected_holds(judge: str, labels: int, rng: np.random.Generator) -> bool | None:
    """Return whether the interval of the corrected score of drawn pairs holds what people say of all."""
    _, people, as_is, _ = verdicts(judge)
    drawn = rng.integers(len(people), size=CASES)
    return held(*corrected_interval(as_is[drawn], people[drawn], labels), float(people.mean()))


def audit_holds(small: str, audited: int, rng: np.random.Generator) -> bool | None:
    """Return whether the interval of a cascade with about so many audits holds what the large judge says of all."""
    large, (chosen, _) = one_order("GPT-4")[0], both_orders(small)
    drawn = rng.integers(len(large), size=CASES)
    share_audited = audited / CASES / float((chosen != 0.5).mean())
    rows = zip(large[drawn], chosen[drawn], rng.random(CASES) < share_audited, strict=True)
    found: MetricValue = summary([observation(float(a), float(b), bool(c)) for a, b, c in rows], share_audited)
    return held(found.low, found.high, float(large.mean()))


INTERVALS: tuple[tuple[str, Callable[[str, int, np.random.Generator], bool | None], str], ...] = (
    ("`agreement`, GPT-4", agreement_holds, "GPT-4"),
    ("`agreement`, ChatGPT", agreement_holds, "ChatGPT"),
    ("`corrected(judge_score)`, GPT-4", corrected_holds, "GPT-4"),
    ("`corrected(judge_score)`, ChatGPT", corrected_holds, "ChatGPT"),
    ("cascade of ChatGPT and GPT-4", audit_holds, "ChatGPT"),
)


@table(
    "intervals",
    "../benchmarks/calibration.md",
    ("95 % interval of", *(f"{each} labels" for each in LABELS)),
    simulations=500,
)
def intervals(simulations: int, seed: int) -> Iterator[Row]:
    """How often our intervals hold the truth, with labels (or audits) of so many of the pairs."""
    for number, (name, holds, judge) in rows(enumerate(INTERVALS)):
        cells = []
        for labels in LABELS:
            rng = np.random.default_rng([seed, number, labels])
            held_or_none = [holds(judge, labels, rng) for _ in range(simulations)]
            cells.append(share((each for each in held_or_none if each is not None), 2))
        yield (name, *cells)


def corrected_rate(passed: Array | float, right: Array | float, refused: Array | float) -> Array:
    """Correct a pass rate by the rates at which a judge passes right answers and refuses wrong ones."""
    with np.errstate(all="ignore"):
        found: Array = np.clip((np.asarray(passed) + refused - 1) / (np.asarray(right) + refused - 1), 0, 1)
    return found


def fixed_rate_bootstrap(people: Array, said: Array, passed: float, rng: np.random.Generator) -> tuple[float, float]:
    """Resample the labels, correct the observed rate by each resample's rates, and take percentiles."""
    drawn = rng.integers(len(people), size=(2_000, len(people)))
    wanted, given = people[drawn], said[drawn]
    with np.errstate(all="ignore"):
        right = (wanted * given).sum(axis=1) / wanted.sum(axis=1)
        refused = ((1 - wanted) * (1 - given)).sum(axis=1) / (1 - wanted).sum(axis=1)
    values = corrected_rate(passed, right, refused)
    low, high = np.nanquantile(values, (0.025, 0.975))
    return float(low), float(high)


def lang_reiczigel(people: Array, said: Array, passed: float, answers: int) -> tuple[float, float]:
    """Interval of a prevalence by an imperfect test (Lang and Reiczigel 2014)."""
    positive, negative = people.sum() + 2, (1 - people).sum() + 2
    right, refused = ((people * said).sum() + 1) / positive, (((1 - people) * (1 - said)).sum() + 1) / negative
    size = answers + Z**2
    rate = (answers * passed + Z**2 / 2) / size
    value = (rate + refused - 1) / (right + refused - 1)
    errors = right * (1 - right) / positive, refused * (1 - refused) / negative
    shift = 2 * Z**2 * (value * errors[0] - (1 - value) * errors[1])
    variance = rate * (1 - rate) / size + value**2 * errors[0] + (1 - value) ** 2 * errors[1]
    half = Z * np.sqrt(variance) / abs(right + refused - 1)
    return float(np.clip(value + shift - half, 0, 1)), float(np.clip(value + shift + half, 0, 1))


RECIPES = ("labels resampled, rate fixed", "Lang and Reiczigel", "ours: `corrected(judge_score)`")


@table(
    "recipes",
    "../benchmarks/calibration.md",
    ("judge passes right / refuses wrong", "labels", *RECIPES),
    simulations=500,
)
def recipes(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage and width of 95 % intervals of a pass rate of 0.7 by 100 answers that a judge passed or refused."""
    for right, refused, labels in rows(((0.9, 0.8, 40), (0.95, 0.95, 40), (0.95, 0.95, 100))):
        rng = np.random.default_rng([seed, round(100 * right), labels])
        found = np.array([_recipes(right, refused, labels, rng) for _ in range(simulations)])
        cells = [(share(found[:, each, 0], 2), mean(found[:, each, 1], 2)) for each in range(len(RECIPES))]
        yield (f"{right:g} / {refused:g}", labels, *cells)


PASS_RATE, ANSWERS = 0.7, 100


def _recipes(right: float, refused: float, labels: int, rng: np.random.Generator) -> list[tuple[bool | None, float]]:
    """Return whether each interval holds the rate, and its width."""
    people = (rng.random(ANSWERS + labels) < PASS_RATE).astype(float)
    said = np.where(people == 1, rng.random(len(people)) < right, rng.random(len(people)) < 1 - refused).astype(float)
    passed = float(said[labels:].mean())
    found = (
        fixed_rate_bootstrap(people[:labels], said[:labels], passed, rng),
        lang_reiczigel(people[:labels], said[:labels], passed, ANSWERS),
        corrected_interval(said, people, labels),
    )
    return [(held(*each, PASS_RATE), each[1] - each[0]) for each in found]
