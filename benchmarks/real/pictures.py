"""The pictures of ``docs/proof.md``, drawn from the numbers of the tables."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

LEFT, WIDTH, ROW, BAR = 230, 400, 34, 12
COLOURS = ("#b33", "#47a")
STYLE = "text{font:12px sans-serif;fill:#222}.end{text-anchor:end}.head{font-weight:bold}"


class Bars(NamedTuple):
    """Two bars for each row.

    Attributes:
        title: Of the picture.
        legend: What either bar is.
        rows: Name and two shares; ``None`` where there is none.
    """

    title: str
    legend: tuple[str, str]
    rows: Sequence[tuple[str, tuple[float | None, float | None]]]


def rows_of(page: str, name: str) -> list[list[str]]:
    """Return the cells of a table of the page."""
    text = page.partition(f"<!-- table {name}:")[2].partition("<!-- end of table -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def number(cell: str) -> float | None:
    """Return a share or a percentage."""
    if cell == "n/a":
        return None
    return float(cell.removesuffix(" %")) / 100 if cell.endswith("%") else float(cell)


def wrong(page: str) -> Bars:
    """Rules with 100 cases of AlpacaEval: alarms without a fall, and falls of ten points that stop no merge."""
    alarms = {row[0]: number(row[5]) for row in rows_of(page, "alarms")}
    missed = {row[0]: number(row[3].split(" / ")[-1]) for row in rows_of(page, "falls")}
    open_ = {name: missed.get(f"{name} cannot tell") or 0.0 for name in missed}
    rules = [name for name, each in alarms.items() if each is not None and not name.endswith("cannot tell")]
    return Bars(
        "AlpacaEval, 100 instructions: how often is each rule wrong?",
        ("red, although the candidate is no worse", "not red, although it is 10 points worse"),
        [(name.replace("`", ""), (alarms[name], (missed[name] or 0.0) + open_[name])) for name in rules],
    )


def easy(page: str) -> Bars:
    """Judges on easy and on hard pairs."""
    return Bars(
        "LLMBar: right in both orders of the answers",
        ("hard pairs (Neighbor): the worse answer looks better", "easy pairs (Natural)"),
        [(row[0], (number(row[5]), number(row[1]))) for row in rows_of(page, "judges")],
    )


PICTURES = {"proof_wrong.svg": wrong, "proof_easy.svg": easy}


def svg(bars: Bars) -> Iterator[str]:
    """Yield the lines of an SVG file."""
    top = 64
    height = top + ROW * len(bars.rows) + 8
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 70} {height}" role="img">'
    yield f"<title>{escape(bars.title)}</title><style>{STYLE}</style>"
    yield '<rect width="100%" height="100%" fill="#fff"/>'
    yield f'<text class="head" x="12" y="20">{escape(bars.title)}</text>'
    for place, (text, colour) in enumerate(zip(bars.legend, COLOURS, strict=True)):
        y = 36 + 16 * place
        yield f'<rect x="12" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="28" y="{y}">{escape(text)}</text>'
    for row, (name, shares) in enumerate(bars.rows):
        y = top + ROW * row
        yield f'<text class="end" x="{LEFT - 10}" y="{y + BAR + 4}">{escape(name)}</text>'
        for place, (each, colour) in enumerate(zip(shares, COLOURS, strict=True)):
            if each is not None:
                at = y + place * (BAR + 1)
                yield f'<rect x="{LEFT}" y="{at}" width="{max(1, WIDTH * each):.0f}" height="{BAR}" fill="{colour}"/>'
                yield f'<text x="{LEFT + WIDTH * each + 6:.0f}" y="{at + BAR - 1}">{100 * each:.0f} %</text>'
    yield "</svg>"
