"""The JSON forms of images, sounds and documents, and how they are shown."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

from msgspec import Struct

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE: Final = re.compile(r"[a-z]+/[\w.+-]+", re.ASCII)
_KEYS: Final = frozenset({"media", "sha256", "bytes", "width", "height", "url"})


class MediaForm(Struct, frozen=True):
    """The JSON form of an image, a sound or a document in a value of a case; it never has the content.

    Attributes:
        data: Type, digest, size and dimensions; or type and address.
    """

    data: Mapping[str, Any]

    @staticmethod
    def matches(value: Any) -> bool:
        """Whether a value of a case is such a form."""
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

    @classmethod
    def find_all(cls, value: Any) -> Iterator[Self]:
        """Yield the forms in a value, in order; the same one may come twice."""
        if isinstance(value, Mapping):
            if cls.matches(value):
                yield cls(value)
                return
            for held in value.values():
                yield from cls.find_all(held)
        elif isinstance(value, list | tuple):
            for held in value:
                yield from cls.find_all(held)

    @classmethod
    def replace_all(cls, value: Any, replace: Callable[[Self], Any]) -> Any:
        """A value of a case with a replacement for each form of a medium; the value itself if it has none."""
        if type(value) is dict:
            if cls.matches(value):
                return replace(cls(value))
            held = {name: cls.replace_all(field, replace) for name, field in value.items()}
            return value if all(held[name] is field for name, field in value.items()) else held
        if type(value) is list:
            items = [cls.replace_all(item, replace) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    @classmethod
    def describe_all(cls, value: Any) -> Any:
        """A value of a case for people, with a line of text in place of each image, sound or document."""
        return cls.replace_all(value, lambda form: f"<{form.line}>")

    @property
    def line(self) -> str:
        """A line of text about the medium for people: type, dimensions, size and digest."""
        form = self.data
        if "url" in form:
            return f"{form['media']} at {form['url']}"
        dimensions = [f"{form['width']} x {form['height']}"] if "width" in form else []
        return ", ".join([form["media"], *dimensions, size_text(form["bytes"]), f"sha256 {form['sha256'][:12]}"])


class MediaText(str):
    """A text in place of a value that holds media: what is written where only text can stand.

    Attributes:
        media: Their forms.
    """

    __slots__ = ("media",)
    media: tuple[Mapping[str, Any], ...]

    @classmethod
    def carrying(cls, text: str, value: Any) -> str:
        """A text that carries the images, sounds and documents of a value; the text itself if it has none."""
        media = tuple(form.data for form in MediaForm.find_all(value))
        if not media:
            return text
        carrier = cls(text)
        carrier.media = media
        return carrier


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

    @property
    def file_text(self) -> str:
        """The largest size of one medium, for people."""
        return size_text(self.file)


class MediaRun(NamedTuple):
    """The place and the limits of the media of a run, which most runs never look at.

    Attributes:
        open_store: Opens the place of contents that have no file of their own; called for the first medium.
        limits: Of the run; ``None``: as before.
    """

    open_store: Callable[[], MediaStore]
    limits: MediaLimits | None = None

    def begin(self) -> None:
        """Begin the run, whose images, sounds and documents are counted from none."""
        _BEGUN[:] = [self]

    @staticmethod
    def has_media() -> bool:
        """Whether this process has met any image, sound or document."""
        return bool(known_media)


_BEGUN: Final[list[MediaRun]] = []

known_media: Final[dict[str, Any]] = {}
"""Digest to `Media` of those that this process has met."""


def media_run() -> MediaRun | None:
    """The place and limits of media in the run that began last; ``None`` before the first one."""
    return _BEGUN[0] if _BEGUN else None


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
