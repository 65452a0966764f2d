"""The chance to find a drop, drawn: one curve for the suite as it is, and for two and four times its cases."""

__all__ = ("power_svg",)

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from pytest_llmeval.core.wording import number

if TYPE_CHECKING:
    from pytest_llmeval.scoring.power import Plan

_WIDTH, _HEIGHT, _LEFT, _TOP, _PANEL = 360, 160, 60, 34, 230
_STEPS = 60
_POWER = 0.8
_SIZES = ((1, "#888", "5 4"), (2, "#47a", "2 2"), (4, "#136", "none"))
_STYLE = "text{font:12px sans-serif;fill:#222}path{fill:none;stroke-width:1.8}line{stroke:#bbb}.end{text-anchor:end}"


def power_svg(plans: "Mapping[str, Plan]", cases: int, repeats: int) -> Iterator[str]:
    """Yield the lines of an SVG file with a panel for each metric; equal plans give equal lines."""
    height = _PANEL * max(1, len(plans)) + 6
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 100} {height}" role="img">\n'
    yield f"<title>Chance to find a drop</title>\n<style>{_STYLE}</style>\n"
    yield '<rect width="100%" height="100%" fill="#fff"/>\n'
    for place, (name, plan) in enumerate(plans.items()):
        yield f'<g transform="translate({_LEFT} {_TOP + place * _PANEL})">\n'
        yield from _panel(name, plan, cases, repeats)
        yield "</g>\n"
    yield "</svg>\n"


def _panel(name: str, plan: "Plan", cases: int, repeats: int) -> Iterator[str]:
    smallest = plan.detectable(cases, repeats)
    most = min(plan.room, 1.5 * smallest if smallest else 1.0) or 1.0
    yield f'<text x="0" y="-14">{escape(name)}: chance to find a true drop</text>\n'
    for share in (0.0, _POWER, 1.0):
        y = _HEIGHT * (1 - share)
        yield f'<line x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>\n'
        yield f'<text class="end" x="-8" y="{y + 4:.1f}">{share:.0%}</text>\n'
    for part in range(4):
        x, drop = _WIDTH * part / 3, most * part / 3
        yield f'<text class="end" x="{x + 14:.1f}" y="{_HEIGHT + 18}">{number(drop)}</text>\n'
    for times, color, dash in _SIZES:
        found = [plan.chance(most * step / _STEPS, times * cases, repeats) for step in range(_STEPS + 1)]
        points = (f"{_WIDTH * step / _STEPS:.1f} {_HEIGHT * (1 - chance):.1f}" for step, chance in enumerate(found))
        yield f'<path d="M{" L".join(points)}" stroke="{color}" stroke-dasharray="{dash}"/>\n'
    for row, (times, color, dash) in enumerate(_SIZES):
        y = 8 + 18 * row
        yield f'<path d="M{_WIDTH + 8} {y} h20" stroke="{color}" stroke-dasharray="{dash}"/>\n'
        yield f'<text x="{_WIDTH + 34}" y="{y + 4}">{times * cases}</text>\n'
    yield f'<text x="{_WIDTH + 34}" y="{12 + 18 * len(_SIZES)}">cases</text>\n'
