"""The judge that gave the recorded verdicts: rules on pixels, in place of a model that sees."""

__all__ = ("PixelJudge",)

import base64
import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any


class PixelJudge:
    """Looks for bars and boxes in the picture that it is shown."""

    def chat(self, messages: list[dict[str, Any]]) -> str:
        """Answer the question about a criterion with yes or no; pictures come as a vision model gets them."""
        parts = messages[-1]["content"]
        text = next(part["text"] for part in parts if part["type"] == "text")
        criterion = json.loads(text.removeprefix("<data>").partition("</data>")[0])["criterion"]
        (address,) = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
        rows = pixel_rows(base64.b64decode(address.partition(",")[2]))
        if named := re.search(r"bar of ([A-Z]+)", criterion):
            highest = highest_bar(rows)
            return f"{'yes' if highest == named[1] else 'no'}: the bar of {highest} is the highest"
        overlapping = overlapping_boxes(rows)
        return f"{'no' if overlapping else 'yes'}: {overlapping or 'no'} boxes overlap"


def pixel_rows(data: bytes) -> Sequence[bytes]:
    """Return the rows of a picture, a byte a pixel, which is the number of its colour."""
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    pixels = picture.tobytes()
    return [pixels[start : start + picture.width] for start in range(0, len(pixels), picture.width)]


def highest_bar(rows: Sequence[bytes]) -> str:
    """Return the name under the highest bar."""
    from screen_drawing import BAR, FLOOR

    top = next(row for row in rows if BAR in row)
    return read(rows[FLOOR + 3 : FLOOR + 8], top.index(BAR))


def read(rows: Sequence[bytes], left: int) -> str:
    """Return the letters of a line from a column on, up to the first gap."""
    from screen_drawing import GLYPHS, INK

    letters = {shape: letter for letter, shape in GLYPHS.items()}
    word = ""
    for start in range(left, len(rows[0]) - 2, 4):
        digits = (sum((row[start + column] == INK) * (4 >> column) for column in range(3)) for row in rows)
        letter = letters.get("".join(map(str, digits)))
        if letter is None:
            break
        word += letter
    return word


def overlapping_boxes(rows: Sequence[bytes]) -> int:
    """Return how many boxes overlap another one: their left edges have no gap between them."""
    from screen_drawing import BOX, FIELD_LEFT

    heights = [len(list(run)) for is_box, run in groupby(row[FIELD_LEFT] == BOX for row in rows) if is_box]
    edges = list(horizontal_edges(rows))
    overlapping, start = 0, 0
    for height in heights:
        first = next(top for top in edges if top >= start)
        count = sum(first <= edge < first + height for edge in edges) // 2
        overlapping += count if count > 1 else 0
        start = first + height
    return overlapping


def horizontal_edges(rows: Sequence[bytes]) -> Iterator[int]:
    """Yield the rows in which boxes begin and end."""
    from screen_drawing import BOX, FIELD_LEFT

    yield from (number for number, row in enumerate(rows) if row[FIELD_LEFT + 1] == BOX)
