"""The JSON forms of images, sounds and documents, and how they are shown."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

MediaForm: TypeAlias = Mapping[str, Any]
"""The JSON form of a medium: type, digest, size and dimensions; never the content."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE: Final = re.compile(r"[a-z]+/[\w.+-]+", re.ASCII)
_KEYS: Final = frozenset({"media", "sha256", "bytes", "width", "height", "url"})


def is_media(value: Any) -> bool:
    """Whether a value of a case is the JSON form of an image, a sound or a document."""
    if not isinstance(value, Mapping) or "media" not in value or not value.keys() <= _KEYS:
        return False
    kind, digest, url = value["media"], value.get("sha256"), value.get("url")
    if not isinstance(kind, str) or not MEDIA_TYPE.fullmatch(kind):
        return False
    numbers = (value.get(name, 0) for name in ("bytes", "width", "height"))
    if not all(type(number) is int and number >= 0 for number in numbers):
        return False
    if digest is None:
        return isinstance(url, str) and url.startswith("https:")
    return url is None and isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None and "bytes" in value


def media_in(value: Any) -> Iterator[MediaForm]:
    """Yield the forms of images, sounds and documents in a value, in order; the same one may come twice."""
    if isinstance(value, Mapping):
        if is_media(value):
            yield value
            return
        for held in value.values():
            yield from media_in(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from media_in(held)


def replaced_media(value: Any, replace: Callable[[MediaForm], Any]) -> Any:
    """A value of a case with a replacement for each form of a medium; the value itself if it has none."""
    if type(value) is dict:
        if is_media(value):
            return replace(value)
        held = {name: replaced_media(field, replace) for name, field in value.items()}
        return value if all(held[name] is field for name, field in value.items()) else held
    if type(value) is list:
        items = [replaced_media(item, replace) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


class MediaText(str):
    """A text in place of a value that holds media: what is written where only text can stand.

    Attributes:
        media: Their forms.
    """

    __slots__ = ("media",)
    media: tuple[MediaForm, ...]


def text_with_media(text: str, value: Any) -> str:
    """A text that carries the images, sounds and documents of a value; the text itself if it has none."""
    media = tuple(media_in(value))
    if not media:
        return text
    carrying = MediaText(text)
    carrying.media = media
    return carrying


class MediaStore(Protocol):
    """A store for contents of media that have no file of their own, such as the folder of a run."""

    def keep(self, digest: str, data: bytes) -> Path | None:
        """The file of a medium's content, which is written if it is not there; ``None`` if it cannot be written."""

    def find(self, digest: str) -> Path | None:
        """The file of a medium's content that was kept; ``None`` if it is not there."""


class MediaLimits(Struct, frozen=True):
    """Limits on images, sounds and documents: the size of one, of all in a run, and the pixels of an image.

    Attributes:
        file: Bytes of one medium.
        run: Bytes of all media of a run, each counted once.
        pixels: Of one image.
    """

    file: int = 20_000_000
    run: int = 500_000_000
    pixels: int = 100_000_000


class MediaRun(NamedTuple):
    """The place and the limits of the media of a run, which most runs never look at.

    Attributes:
        open_store: Opens the place of contents that have no file of their own.
        limits: Of the run; ``None``: as before.
    """

    open_store: Callable[[], MediaStore]
    limits: MediaLimits | None = None


_BEGUN: Final[list[MediaRun]] = []


def begin_media(open_store: Callable[[], MediaStore], limits: MediaLimits | None = None) -> None:
    """Begin a run, whose images, sounds and documents are counted from none.

    Args:
        open_store: Opens the place of contents that have no file of their own; called for the first medium.
        limits: Of the run; default: as before.
    """
    _BEGUN[:] = [MediaRun(open_store, limits)]


known_media: Final[dict[str, Any]] = {}
"""Digest to `Media` of those that this process has met."""


def knows_media() -> bool:
    """Whether this process has met any image, sound or document."""
    return bool(known_media)


def media_run() -> MediaRun | None:
    """The place and limits of media in the run that began last; ``None`` before the first one."""
    return _BEGUN[0] if _BEGUN else None


def media_line(form: MediaForm) -> str:
    """A line of text about an image, sound or document for people: type, dimensions, size and digest."""
    if "url" in form:
        return f"{form['media']} at {form['url']}"
    dimensions = [f"{form['width']} x {form['height']}"] if "width" in form else []
    return ", ".join([form["media"], *dimensions, size_text(form["bytes"]), f"sha256 {form['sha256'][:12]}"])


def described_media(value: Any) -> Any:
    """A value of a case for people, with a line of text in place of each image, sound or document."""
    return replaced_media(value, lambda form: f"<{media_line(form)}>")


def size_text(size: int) -> str:
    """The size of an image, sound or document, in bytes, for people.

    >>> size_text(999), size_text(2_500), size_text(20_000_000)
    ('999 B', '2.5 kB', '20 MB')
    """
    if size < _THOUSAND:
        return f"{size} B"
    amount, unit = next(
        (size / factor, unit) for factor, unit in _UNITS if size < _THOUSAND * factor or unit == _UNITS[-1][1]
    )
    return f"{amount:.{int(amount < 10)}f} {unit}"  # noqa: PLR2004 (two digits)


_THOUSAND: Final = 1000
_UNITS: Final = ((10**3, "kB"), (10**6, "MB"), (10**9, "GB"))
