"""The application after a change: tidier code, and wrong pictures."""

__all__ = ("draw",)

from collections.abc import Mapping
from typing import Any

from screen_drawing import BOX, FIELD_LEFT, GAP, LINE, WIDTH, blank, draw_chart, png, write

from pytest_llmeval import Media


def draw(request: Mapping[str, Any]) -> Media:
    """Draw a chart whose values are sorted and whose names are not, or a form whose rows are all one line apart."""
    picture, pen = blank()
    if "chart" in request:
        draw_chart(pen, list(zip(request["chart"], sorted(request["chart"].values()), strict=True)))
    else:
        for number, (name, lines) in enumerate(request["form"].items()):
            top = 3 + number * (LINE + GAP)
            write(pen, 3, top + 2, name)
            pen.rectangle((FIELD_LEFT, top, WIDTH - 4, top + lines * LINE), outline=BOX)
    return png(picture)
