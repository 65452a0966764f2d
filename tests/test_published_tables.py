"""Simulated tables of the documentation agree with the code that writes them, and a stale one is noticed."""

import importlib
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from project import ROOT
from scipy import stats

from pytest_llmeval.numbers import mid_p_interval, wilson_interval

PAGES = {each.name: each.read_text(encoding="utf-8") for each in sorted((ROOT / "docs").glob("*.md"))}
MORE = "../benchmarks/calibration.md"
DECIDERS = "../benchmarks/deciders.md"
PAGES.update((name, (ROOT / "docs" / name).read_text(encoding="utf-8")) for name in (MORE, DECIDERS))
MARKED = [(page, name) for page, text in PAGES.items() for name in re.findall(r"<!-- table ([\w-]+)", text)]
DICE = """# Dice

<!-- table dice: 4000 simulations, python benchmarks/tables.py dice -->

| faces | sixes | eyes on average | odd / even |
|---|---|---|---|
| 6 | 0.167 | 3.50 | 0.5 / 0.5 |
| 12 | 0.083 | 6.50 | 0.5 / 0.5 |

<!-- end of table -->

Not loaded.
"""


@pytest.fixture(scope="session")
def tables() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        module = importlib.import_module("tables")
        module.published_tables()
        yield module


def dice(tables: Any, sixes: float = 1.0) -> Any:
    """A table of this test: how often dice with some faces give what."""

    def rows(simulations: int, seed: int) -> Iterator[tuple[Any, ...]]:
        for faces in (6, 12):
            rng = random.Random(seed * faces)
            thrown = [rng.randint(1, faces) for _ in range(simulations)]
            halves = tuple(tables.share((each % 2 == odd for each in thrown), 1) for odd in (1, 0))
            yield (faces, tables.share(each <= sixes for each in thrown), tables.mean(thrown, 2), halves)

    return tables.PublishedTable("dice", "dice.md", ("faces", "sixes", "eyes on average", "odd / even"), 4000, rows)


def test_every_table_has_its_place(tables: Any) -> None:
    assert sorted(MARKED) == sorted((each.page, name) for name, each in tables.published_tables().items())


QUICK = {
    *("alarms", "answers", "anytime", "churn", "corrected", "cost", "drift", "luck", "mode_shares", "plans", "shares"),
    *("skills", "validation", "without-proof"),
}
"""Tables whose check takes less than half a second."""


@pytest.mark.timeout(300)  # each table has its own time, and with it an item of its own, which workers share
@pytest.mark.parametrize(
    ("page", "name"),
    [pytest.param(*place, id=place[1], marks=[pytest.mark.release] * (place[1] not in QUICK)) for place in MARKED],
)
def test_a_page_agrees_with_the_code_of_today(page: str, name: str, tables: Any) -> None:
    assert list(tables.published_tables()[name].disagreements(PAGES[page])) == []


@pytest.mark.parametrize(
    ("cell", "stale", "complaint"),
    [
        pytest.param("| 0.167 |", "| 0.267 |", "sixes is 0.267, the check has 0.", id="rate"),
        pytest.param("| 6.50 |", "| 8.50 |", "eyes on average is 8.50, the check has 6.", id="mean"),
        pytest.param("6.50 | 0.5 / 0.5", "6.50 | 0.8 / 0.5", "odd / even is 0.8 / 0.5, the check has", id="pair"),
        pytest.param("| 12 |", "| 20 |", "faces is 20, the check has 12", id="label"),
        pytest.param("| 0.083 |", "| n/a |", "sixes is n/a, the check has 0.", id="no number"),
        pytest.param("| 12 | 0.083 | 6.50 | 0.5 / 0.5 |\n", "", "1 rows of", id="row"),
        pytest.param("| faces |", "| sides |", "expected 2 of ['faces', ", id="header"),
        pytest.param(": 4000 sim", ": 40000 sim", "expected '<!-- table dice: 4000 simulations", id="marker"),
    ],
)
def test_a_stale_cell_is_named(cell: str, stale: str, complaint: str, tables: Any) -> None:
    assert list(dice(tables).disagreements(DICE)) == []
    assert cell in DICE
    (line,) = dice(tables).disagreements(DICE.replace(cell, stale))
    assert complaint in line


def test_a_check_repeats_a_seeded_tenth_of_the_rows_with_a_tenth_of_the_simulations(tables: Any) -> None:
    repeated: list[tuple[int, int]] = []

    def rows(simulations: int, _seed: int) -> Iterator[tuple[Any, ...]]:
        for number in tables.rows(range(25)):
            repeated.append((number, simulations))
            yield (number, 2 * number)

    table = tables.PublishedTable("doubles", "doubles.md", ("number", "double"), 300, rows)
    page = table.written(f"{table.marker}\n\n<!-- end of table -->\n")
    assert [number for number, _ in repeated] == [*range(25)]
    repeated.clear()
    assert list(table.disagreements(page)) == []
    drawn = [number for number, simulations in repeated if simulations == 30]
    assert len(drawn) == len(repeated) == 3
    repeated.clear()
    assert [*table.disagreements(page, seed=1)] == []
    assert drawn != [number for number, _ in repeated]
    stale = page.replace(f"| {drawn[1]} | {2 * drawn[1]} |", f"| {drawn[1]} | 99 |")
    assert list(table.disagreements(stale)) == [f"{drawn[1]} | 99: double is 99, the check has {2 * drawn[1]}"]
    assert "24 rows of" in next(table.disagreements(page.replace("| 7 | 14 |\n", "")))


def test_a_rule_that_changed_makes_a_page_stale(tables: Any) -> None:
    assert len(list(dice(tables, sixes=2.0).disagreements(DICE))) == 2


def test_a_table_is_written_between_its_markers_and_nothing_else_changes(tables: Any) -> None:
    table = dice(tables)
    written = table.written(DICE.replace(table.marker, "<!-- table dice -->"))
    assert re.sub(r"0\.\d{3}|\d\.\d\d", "", written) == re.sub(r"0\.\d{3}|\d\.\d\d", "", DICE)
    assert table.written(written) == written
    assert list(table.disagreements(written)) == []
    with pytest.raises(ValueError, match=r"dice\.md has no markers of table dice"):
        table.written("Nothing here.")


Row = dict[str, str]
FEW_RIGHT = [("binary 0.67", "3")]
"""There, a collapse of half of the cases fails although equally good runs show it in more than 0.05: see the page."""


def is_equally_good(row: Row) -> bool:
    return row.get("fall per step", row.get("true drop", "0")) == "0" and row.get("right before") == row.get(
        "right now"
    )


@pytest.mark.parametrize(
    ("name", "column", "nominal", "counts"),
    [
        ("comparisons", "false alarms", 0.05, is_equally_good),
        ("comparisons", "McNemar", 0.05, is_equally_good),
        ("comparisons", "mid-p", 0.05, is_equally_good),
        ("skew", "gate", 0.025, is_equally_good),
        ("hard_runs", "share", 0.025, is_equally_good),
        ("projects", "red, one family", 0.025, is_equally_good),
        ("watched", "anytime", 0.05, is_equally_good),
        *(("commits", f"anytime, {size} cases", 0.05, is_equally_good) for size in (50, 100, 200)),
        ("churn", "equally good", 0.025, is_equally_good),
        ("drift", "`max_drift: 0.06` fails", 0.025, is_equally_good),
        *(
            ("without-proof", gates, 0.05, lambda row: (row["scores"], row["cases"]) not in FEW_RIGHT)
            for gates in ("1 gate", "2 gates", "10 gates", "100 gates")
        ),
        ("bridged", "across the bridge", 0.025, is_equally_good),
        ("bridges", "`max_drop` 0.05 fails", 0.025, is_equally_good),
        ("bridges", "`non_inferiority` 0.15 passes", 0.025, lambda row: not is_equally_good(row)),  # a fall of 0.2
        ("systems", "some gain is significant", 0.025, lambda row: row["gates"] == "judged together"),
    ],
)
def test_no_cell_has_more_false_alarms_than_promised(
    name: str, column: str, nominal: float, counts: Callable[[Row], bool], tables: Any
) -> None:
    table = tables.published_tables()[name]
    most = nominal + 3 * math.sqrt(nominal * (1 - nominal) / table.simulations)
    cells = [row[column] for row in rows_of(table) if counts(row)]
    assert cells
    assert [cell for cell in cells if cell and float(cell) > most] == []


def test_the_table_of_few_cases_has_all_that_is_promised(tables: Any) -> None:
    scores = ("binary 0.67", "binary 0.95", "continuous", "skewed", "clustered")
    rows = rows_of(tables.published_tables()["without-proof"])
    assert [(row["scores"], row["cases"]) for row in rows] == [
        (kind, str(size)) for kind in scores for size in (3, 5, 8, 10, 20, 50, 200)
    ]
    assert list(rows[0])[2:] == ["1 gate", "2 gates", "10 gates", "100 gates"]
    shares = [row["answers that a commit changes"] for row in rows_of(tables.published_tables()["commits"])]
    assert shares == ["100%", "30%", "10%", "5%", "2%"]


def rows_of(table: Any) -> list[Row]:
    """Return the published rows of a table by header."""
    _, _, after = PAGES[table.page].partition(table.marker)
    rows = re.findall(r"^\|(.*)\|$", after.partition("<!-- end of table -->")[0], re.MULTILINE)
    return [dict(zip(table.headers, map(str.strip, row.split("|")), strict=True)) for row in rows[2:]]


def test_gates_find_as_much_as_in_the_earlier_version() -> None:
    _, _, after = PAGES[MORE].partition("<!-- table power:")
    pairs = re.findall(r"(\S+) / (\S+)", after.partition("<!-- end of table -->")[0])
    assert len(pairs) == 18
    assert [pair for pair in pairs if float(pair[0]) < float(pair[1]) - 0.03] == []


@pytest.mark.usefixtures("tables")
def test_the_proof_stays_short_and_its_pictures_show_its_tables() -> None:
    page = PAGES["proof.md"]
    words = [word for line in page.splitlines() if line[:1] not in {"|", "<"} for word in line.split()]
    assert len(words) <= 360
    assert len(page.split()) <= 500, "tables belong into benchmarks/calibration.md"
    pictures = importlib.import_module("real.pictures")
    for name, picture in pictures.PICTURES.items():
        drawn = "\n".join(pictures.svg(picture(PAGES[MORE]))) + "\n"
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == drawn, "python benchmarks/real/proof.py --full"


def test_the_front_page_and_the_proof_say_what_the_tables_say(tables: Any) -> None:
    every = tables.published_tables()
    alarms, falls = ({row["rule"]: row for row in rows_of(every[name])} for name in ("alarms", "falls"))
    rule = "ours: `max_drop: 0`"

    def percent(cell: str, of: int = 0) -> int:
        return round(100 * float(cell.split(" / ")[of]))

    def found(size: str, points: int) -> int:
        return 100 - percent(falls[rule][size], points) - percent(falls[f"{rule} cannot tell"][size], points)

    proof, readme = PAGES["proof.md"], (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"*any drop is red* fails {percent(alarms['any drop']['n = 100'])} of 100 equal candidates" in proof
    ours = percent(alarms[rule]["n = 100"])
    assert f"`max_drop: 0` fails {ours}, finds {found('n = 100', 2)} of 100 falls of ten points, and" in proof
    assert f"and {found('n = 100', 1)} of five." in proof
    unknown = percent(falls[f"{rule} cannot tell"]["n = 30"], 2)
    assert f"cannot tell in {unknown} of 100 falls of ten points" in proof
    assert f"could not tell in {unknown} of 100 falls of ten" in " ".join(readme.split())


def test_the_default_of_each_tool_has_its_version_and_the_line_that_documents_it() -> None:
    _, _, after = PAGES[DECIDERS].partition("| tool | verdict without settings | place |\n|---|---|---|\n")
    tools = [line for line in after.partition("\n\n")[0].splitlines() if ", a service |" not in line]
    assert len(tools) == 4
    assert [line for line in tools if not re.match(r"\| [\w-]+ \d+(\.\d+)+ \|.*`[\w/.]+`, line \d+", line)] == []


@pytest.mark.release
@pytest.mark.usefixtures("tables")
def test_the_gate_says_of_the_compared_runs_what_the_comparison_says() -> None:
    deciders = importlib.import_module("deciders")
    _, _, after = PAGES[DECIDERS].partition("\n| pair of runs |")
    rows = [line.strip("| ").split(" | ") for line in after.partition("\n\n")[0].splitlines()[2:]]
    situations = deciders.situations()
    assert [row[0] for row in rows] == list(situations)
    for situation, *_, ours in rows:
        code, word = re.findall(r"^(exit code \d): ([a-z ]+)", deciders.this_package(situations[situation]))[0]
        assert (ours.startswith(f"`{word}"), ours.endswith(code)) == (True, True), situation


NEIGHBOURS = re.compile(
    r"Of (\d+) [\w ]+ and a (?:rate|mode) of ([\d.]+)( %)?, 0 to (\d) [\w ]+ have a probability of (0\.\d+), "
    r"0 to (\d) have (0\.\d+)"
)


def test_where_a_page_says_that_no_interval_can_hold_what_is_promised_no_counts_have_that_probability() -> None:
    found = NEIGHBOURS.findall(PAGES[MORE])
    assert len(found) == 3
    for cases, rate, percent, *neighbours in found:
        rare = float(rate) / 100 if percent else 1 - float(rate)
        law = stats.binom(int(cases), rare)
        for counts, chance in zip(neighbours[::2], neighbours[1::2], strict=True):
            assert f"{law.cdf(int(counts)):.3f}" == chance
        below = law.cdf(range(-1, int(cases) + 1))
        assert not ((below[:, None] - below >= 0.93) & (below[:, None] - below <= 0.97)).any()


def test_what_a_page_says_of_intervals_by_exact_arithmetic_is_right() -> None:
    def held(rule: Callable[[float, float, float], tuple[float, float]], cases: int, rate: float) -> str:
        bounds = [rule(count, cases, 0.95) for count in range(cases + 1)]
        chances = stats.binom.pmf(range(cases + 1), cases, rate)
        return f"{sum(each for each, (low, high) in zip(chances, bounds, strict=True) if low <= rate <= high):.3f}"

    rules = (wilson_interval, mid_p_interval)
    few, more = ([held(rule, *each) for rule in rules] for each in ((10, 0.7), (20, 0.98)))
    assert f"holds a rate of 0.7 in {few[0]}, the mid-p one in {few[1]}; but" in PAGES[MORE]
    assert f"of 20 labels and a rate of 0.98, they hold {more[0]} and {more[1]}" in PAGES[MORE]
    unseen = stats.binom.pmf(0, 20, 0.125)
    assert unseen < 0.07
    assert f"shows no error in 20 labels with a probability of {unseen:.3f}" in PAGES[MORE]


def test_statisticians_find_a_table_of_contents() -> None:
    listed = re.findall(r"\]\(#([\w-]+)\)", PAGES["statistics.md"].partition("\n## ")[0])
    assert len(listed) > 8
    sections = re.findall(r"^## (.+)$", PAGES["statistics.md"], re.MULTILINE)
    assert {each.lower().replace(" ", "-") for each in sections} <= {*listed}


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("emotion-cause.md", ("| emotion-cause pairs", "| emotion-cause spans")),
        ("fact-checking.md", ("| fact checks",)),
        ("memory-qa.md", ("| questions",)),
        ("narrative.md", ("| stories",)),
        ("case-retrieval.md", ("| ranking", "| attributes of legal cases")),
    ],
)
def test_each_page_of_a_task_has_its_speed_as_it_was_measured(page: str, rows: tuple[str, ...]) -> None:
    readme = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    against_originals = readme.partition("\n## `originals.py`")[2].partition("\n## ")[0]
    lines = [line for line in against_originals.splitlines() if line.startswith(rows)]
    ratios = iter([f"{float(ratio):.1f}" for line in lines for ratio in re.findall(r"(\d+\.\d+)(?!\d| s)", line)])
    shown = re.findall(r"\d+\.\d+", PAGES[page].partition("\n## Speed\n")[2].partition("\n## ")[0])
    assert shown
    assert [ratio for ratio in shown if ratio not in ratios] == []  # in the order of the columns


def test_the_page_on_regressions_stays_short() -> None:
    assert len(PAGES["regressions.md"].split()) <= 2500, "derivations belong into docs/statistics.md"


def test_a_share_of_none_or_all_is_not_certain(tables: Any) -> None:
    never, ever = tables.share([False] * 50), tables.share([True] * 50)
    assert (str(never), str(ever)) == ("0.000", "1.000")
    assert min(never.error, ever.error) > 0.02
    assert str(tables.mean([-0.0001, 0.0])) == "0.000"
