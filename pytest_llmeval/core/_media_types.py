"""The type and the dimensions of a content, by what it begins with."""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS: Final = {b"avif": "image/avif", b"heic": "image/heic", b"heix": "image/heic", b"M4A ": "audio/mp4"}
"""Brands of ISO base media files; any other one is a video."""

_STARTS: Final[Sequence[tuple[bytes, str]]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
)
_MP3_FRAMES: Final = frozenset({b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"})
_BITMAP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})

_ENDINGS: Final = {
    "avi": "video/x-msvideo",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "m4a": "audio/mp4",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "oga": "audio/ogg",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "svg": "image/svg+xml",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
}
_RARE: Final = frozenset({"htm", "jpeg", "oga", "tif"})
_OTHER_NAMES: Final = {
    "application/x-pdf": "application/pdf",
    "audio/mp3": "audio/mpeg",
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-ms-bmp": "image/bmp",
    "image/x-png": "image/png",
}
"""Media types to the name that is used here."""

_SPECIAL: Final[Mapping[str, Callable[[str], bool]]] = {
    "application/zip": lambda claim: claim.startswith("application/"),
    "audio/ogg": lambda claim: claim in ("audio/opus", "video/ogg", "application/ogg"),
    "image/svg+xml": lambda claim: claim in ("application/xml", "text/xml", "text/plain"),
    "video/mp4": lambda claim: claim in ("audio/mp4", "video/quicktime", "image/heif"),
    "video/webm": lambda claim: claim in ("audio/webm", "video/x-matroska", "audio/x-matroska"),
}
"""Types of containers to what may be in them: then the name decides."""

_KNOWN: Final = frozenset(
    (*_RIFF.values(), *_BRANDS.values(), *dict(_STARTS).values(), "image/bmp", "image/svg+xml", "video/mp4")
)
"""The types that a content shows."""

_SVG: Final = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*|<!DOCTYPE[^>\[]*>\s*)*<svg[\s>]", re.DOTALL)
_SEARCHED: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def type_by_ending(name: str) -> str | None:
    """The media type that the ending of a file name says; ``None`` for an unknown one.

    >>> type_by_ending("scans/Invoice-7.PNG")
    'image/png'
    """
    return _ENDINGS.get(name.rpartition(".")[2].lower()) if "." in name else None


def usual_ending(kind: str) -> str:
    """The usual ending, with its dot, of files of a media type; empty if none is known.

    >>> usual_ending("image/jpeg"), usual_ending("text/x-notes")
    ('.jpg', '')
    """
    return next((f".{ending}" for ending, name in _ENDINGS.items() if name == kind and ending not in _RARE), "")


def usual_name(name: str) -> str:
    """A media type without parameters, under its usual name.

    >>> usual_name("image/JPG"), usual_name("text/plain; charset=utf-8")
    ('image/jpeg', 'text/plain')
    """
    bare = name.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(bare, bare)


def type_by_content(data: bytes) -> str | None:
    """The media type that the first bytes of a content show; ``None`` for text and unknown contents.

    >>> type_by_content(b"GIF89a..."), type_by_content(b"Dear Sir")
    ('image/gif', None)
    """
    for start, kind in _STARTS:
        if data.startswith(start):
            return kind
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data.startswith(b"BM") and len(data) > 26 and int.from_bytes(data[14:18], "little") in _BITMAP_HEADERS:  # noqa: PLR2004 (its header)
        return "image/bmp"
    if data[:2] in _MP3_FRAMES:
        return "audio/mpeg"
    return "image/svg+xml" if _SVG.match(data[:_SEARCHED].removeprefix(_BOM)) else None


def agreed_type(data: bytes, claim: str | None) -> str | None:
    """The media type of a content; ``None`` if its bytes contradict its name or the user, or are unknown.

    Args:
        data: The content.
        claim: What its name or the user says; ``None`` if nobody says anything.
    """
    actual = type_by_content(data)
    if actual is None:
        is_no_text = claim is not None and claim.startswith("text/") and b"\0" in data and not data.startswith(_UTF_16)
        return None if claim in _KNOWN or is_no_text else claim
    if claim is None or claim == actual:
        return actual
    return claim if actual in _SPECIAL and _SPECIAL[actual](claim) else None


def has_dimensions(kind: str) -> bool:
    """Whether width and height can be read from contents of a media type."""
    return kind in _DIMENSIONS


def dimensions(kind: str, data: bytes) -> tuple[int, int] | None:
    """Width and height of an image in pixels; ``None`` if the content is damaged."""
    try:
        width, height = _DIMENSIONS[kind](data)
    except (struct.error, IndexError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _png(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG image in pixels, from its header."""
    if data[12:16] != b"IHDR":
        raise ValueError("no header")
    return struct.unpack_from(">II", data, 16)


def _gif(data: bytes) -> tuple[int, int]:
    """Width and height of a GIF image in pixels, from its header."""
    return struct.unpack_from("<HH", data, 6)


def _bmp(data: bytes) -> tuple[int, int]:
    """Width and height of a BMP image in pixels, from its header of either size."""
    if data[14] == 12:  # noqa: PLR2004 (the size of the oldest header)
        return struct.unpack_from("<HH", data, 18)
    width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height)  # from the top down if negative


def _jpeg(data: bytes) -> tuple[int, int]:
    """Width and height of a JPEG image in pixels, from its first frame."""
    for marker, start in _segments(data):
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, start + 3)
            return width, height
    raise ValueError("no frame")


_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of frames, without those of tables between them."""


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield marker and start of the segments of a JPEG up to its scan; as decoders do, it skips bytes between these."""
    place = 2
    while (place := data.find(b"\xff", place)) > 0:
        marker = data[place + 1]
        if marker in (0, 0xFF):  # no marker, and a byte that fills
            place += 1
            continue
        if marker in (0xD9, 0xDA):
            return
        yield marker, place + 2
        place += 2 + max(2, int.from_bytes(data[place + 2 : place + 4], "big"))


def _webp(data: bytes) -> tuple[int, int]:
    """Width and height of a WebP image in pixels, from its extended, lossless or lossy header."""
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no frame")


_DIMENSIONS: Final[Mapping[str, Callable[[bytes], tuple[int, int]]]] = {
    "image/bmp": _bmp,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
}
