"""Small images, sounds and documents, and contents that are none."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval.core import MediaLimits, MediaRun

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
WAV = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\4\0\0\0\0\0\1\0"
GIF = b"GIF89a\x03\0\x02\0\0\0\0;"
JPEG = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\xff\xda"


def png(width: int = 3, height: int = 2, color: tuple[int, int, int] = (255, 0, 0), more: bytes = b"") -> bytes:
    """Return an image of one colour.

    Args:
        width: In pixels.
        height: In pixels.
        color: Red, green and blue.
        more: What stands behind its end.
    """
    rows = (b"\0" + bytes(color) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, *zip(*chunks, strict=True))) + more


def png_of(width: int, height: int) -> bytes:
    """Return the beginning of an image that says it is as large as this, which its data are not."""
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class NoStore:
    """Keeps nothing, so that contents stay in memory."""

    def keep(self, digest: str, data: bytes) -> Path | None:
        """Return no file."""

    def find(self, digest: str) -> Path | None:
        """Return no file."""


@pytest.fixture
def in_memory() -> Iterator[None]:
    """Hold contents in memory, with the usual limits before and after."""
    MediaRun(NoStore, MediaLimits()).begin()
    yield
    MediaRun(NoStore, MediaLimits()).begin()
