"""The images, sounds and documents of a page."""

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pytest_llmeval.core import Media, MediaError, MediaForm

LARGEST_EMBEDDED: Final = 300_000
"""Most bytes of a content that the page itself holds."""

_MOST_EMBEDDED: Final = 10_000_000
_MOST_PIXELS: Final = 12_000_000
_EMBEDDED: Final = frozenset(
    ("image/bmp", "image/gif", "image/jpeg", "image/png", "image/webp", "audio/flac", "audio/mpeg", "audio/wav")
)
"""What browsers draw or play of bytes alone."""
_LINKED: Final = frozenset(
    (
        *_EMBEDDED,
        *("application/pdf", "audio/mp4", "audio/ogg", "image/avif", "image/heic", "image/tiff"),
        *("text/csv", "text/plain", "video/mp4", "video/webm", "video/x-msvideo"),
    )
)
"""What a browser may open; in SVG and HTML it would run scripts."""


class EmbeddedMedium(NamedTuple):
    """The content of an image, sound or document that the HTML report holds itself.

    Attributes:
        name: By which the script finds it.
        text: In Base64.
    """

    name: str
    text: str


class PageMedia:
    """The images, sounds and documents of the HTML report: embedded, linked, or by path.

    Attributes:
        places: Digest to where the content is: ``piece`` in the page, or beside it, ``href`` if a browser may open it,
            else ``path``.
        embedded: The contents that the page holds.
    """

    def __init__(self, values: Iterable[Any], folder: Path | None) -> None:
        """Find the contents of media.

        Args:
            values: What the page shows.
            folder: Of the page; ``None`` if it has none, so that no file is beside it.
        """
        self.places: dict[str, dict[str, str]] = {}
        self.embedded: list[EmbeddedMedium] = []
        size = 0
        for medium in _readable(values):
            if _can_embed(medium) and size + medium.size <= _MOST_EMBEDDED:
                size += medium.size
                name = f"m{len(self.embedded)}"
                self.embedded.append(EmbeddedMedium(name, b64encode(medium.data).decode("ascii")))
                self.places[medium.sha256] = {"piece": name}
            elif folder is not None and medium.path is not None and (path := _relative(medium.path, folder)):
                self.places[medium.sha256] = {"href": _address(medium, path)} if _can_link(medium) else {"path": path}


def _readable(values: Iterable[Any]) -> Iterator[Media]:
    """Yield the media in values of reported cases whose content is available, each once."""
    met: set[str] = set()
    for value in values:
        for form in MediaForm.find_all(value):
            digest = form.data.get("sha256", "")
            if digest and digest not in met:
                met.add(digest)
                try:
                    medium = Media.of_form(form)
                    _ = medium.data
                except MediaError:
                    continue  # the page has its type, size and digest
                yield medium


def _can_embed(medium: Media) -> bool:
    """Whether the HTML report may hold a medium itself, by its type, size and pixels."""
    pixels = (medium.width or 0) * (medium.height or 0)
    return medium.type in _EMBEDDED and medium.size <= LARGEST_EMBEDDED and pixels <= _MOST_PIXELS


def _can_link(medium: Media) -> bool:
    """Whether the HTML report may link a medium: browsers run nothing of its file, by content and ending."""
    return medium.type in _LINKED and medium.path is not None and Media.type_by_ending(medium.path.name) in _LINKED


def _relative(path: Path, folder: Path) -> str:
    """The path of a media file from the HTML report's folder; empty if it is on another drive."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return ""


def _address(medium: Media, path: str) -> str:
    """The address by which the HTML report links a media file; of a document, its first page."""
    return quote(path) + ("#page=1" if medium.type == "application/pdf" else "")
