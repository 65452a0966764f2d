"""The application of this suite: it draws bar charts and forms as pictures of 96 x 64 pixels."""

__all__ = ("draw", "draw_chart", "draw_form")

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_llmeval import Media

try:
    from PIL import Image, ImageDraw
except ImportError as error:
    raise ImportError(
        "the example suite `screens` draws with Pillow: pip install 'pytest-llmeval-suite[images]'"
    ) from error

WIDTH, HEIGHT = 96, 64
PAPER, INK, BAR, BOX = range(4)
COLOURS = bytes((255, 255, 255, 32, 32, 32, 31, 92, 153, 150, 90, 20))

SHAPES = (
    "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 "
    "65555 25552 65644 25563 65655 34216 72222 55557 55552 55775 55255 55222 71247"
)
GLYPHS = {letter: SHAPES[number * 6 : number * 6 + 5] for number, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
"""Letter to five rows of three pixels, each an octal digit: a font file would draw other pixels on other machines."""

FLOOR = HEIGHT - 10
FIELD_LEFT, LINE, GAP = 26, 8, 4


def draw(request: Mapping[str, Any]) -> Media:
    """Draw what an input asks for: a chart of values by name, or a form of fields by name with their lines of text."""
    picture, pen = blank()
    if "chart" in request:
        draw_chart(pen, list(request["chart"].items()))
    else:
        draw_form(pen, request["form"])
    return png(picture)


def blank() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Return an empty picture, and what draws on it."""
    picture = Image.new("P", (WIDTH, HEIGHT), PAPER)
    picture.putpalette(COLOURS)
    return picture, ImageDraw.Draw(picture)


def draw_chart(pen: ImageDraw.ImageDraw, bars: Sequence[tuple[str, float]]) -> None:
    """Draw a bar above each name, the highest one up to the top."""
    most, step = max(value for _, value in bars), WIDTH // len(bars)
    for number, (name, value) in enumerate(bars):
        left = number * step + 3
        pen.rectangle((left, FLOOR - round(value / most * (FLOOR - 4)), left + step - 7, FLOOR), fill=BAR)
        write(pen, left, FLOOR + 3, name)


def draw_form(pen: ImageDraw.ImageDraw, fields: Mapping[str, int]) -> None:
    """Draw a box for each field, as high as its lines need."""
    top = 3
    for name, lines in fields.items():
        bottom = top + lines * LINE
        write(pen, 3, top + 2, name)
        pen.rectangle((FIELD_LEFT, top, WIDTH - 4, bottom), outline=BOX)
        top = bottom + GAP


def write(pen: ImageDraw.ImageDraw, left: int, top: int, text: str) -> None:
    """Write capital letters."""
    for number, letter in enumerate(text):
        for row, digit in enumerate(GLYPHS[letter]):
            for column in range(3):
                if int(digit) & 4 >> column:
                    pen.point((left + number * 4 + column, top + row), fill=INK)


def png(picture: Image.Image) -> Media:
    """Return a picture as PNG without compression.

    Recorded verdicts belong to a content. Compressed, the same pixels are other bytes with another version of zlib.
    """
    pixels = picture.tobytes()
    rows = b"".join(b"\0" + pixels[start : start + WIDTH] for start in range(0, len(pixels), WIDTH))
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(rows), 0xFFFF - len(rows)) + rows
    stored += struct.pack(">I", zlib.adler32(rows))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", COLOURS), (b"IDAT", stored), (b"IEND", b""))
    return Media(data=b"\x89PNG\r\n\x1a\n" + b"".join(chunk for name, data in chunks for chunk in chunk_of(name, data)))


def chunk_of(name: bytes, data: bytes) -> Iterator[bytes]:
    """Yield the parts of a chunk of PNG: length, name, data and checksum."""
    yield from (struct.pack(">I", len(data)), name, data, struct.pack(">I", zlib.crc32(name + data)))
