"""Media: images, sounds and documents as values, whose identity is the digest of their content."""

import io
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final, Self

from pytest_llmeval.core._errors import MediaError
from pytest_llmeval.core._media_forms import (
    MEDIA_TYPE,
    MediaForm,
    MediaLimits,
    MediaRun,
    MediaStore,
    known_media,
    media_run,
    size_text,
)
from pytest_llmeval.core._media_types import (
    agreed_type,
    dimensions,
    has_dimensions,
    type_by_content,
    type_by_ending,
    usual_ending,
    usual_name,
)
from pytest_llmeval.core.wording import quotation


class _Shelf:
    """The images, sounds and documents that this process has met, by digest.

    Attributes:
        run: The run that it has begun; ``None`` before the first one.
        limits: Of the run.
        store: Keeps what has no file; ``None`` holds it in memory.
        known: The media that have been written as forms.
        counted: Digests of those that count for the run.
        size: Bytes of these.
    """

    def __init__(self) -> None:
        self.run: MediaRun | None = None
        self.limits = MediaLimits()
        self.store: MediaStore | None = None
        self.known: dict[str, Media] = known_media
        self.counted: set[str] = set()
        self.size = 0

    def begin(self, run: MediaRun | None) -> None:
        """Begin a run, which counts its media from none."""
        self.run = run
        if run is not None:
            self.store, self.limits = run.open_store(), run.limits or self.limits
        self.counted, self.size = set(), 0

    def add(self, medium: "Media") -> None:
        """Add a medium that is written as a form.

        Raises:
            MediaError: The media of the run are too large.
        """
        if medium.sha256 not in self.counted:
            if self.size + medium.size > self.limits.run:
                most = size_text(self.limits.run)
                raise MediaError(f"the media of this run take more than {most}: raise --llmeval-media-limit")
            self.counted.add(medium.sha256)
            self.size += medium.size
        known = self.known.get(medium.sha256)
        if known is None or medium.path is not None or not known.is_readable:
            self.known[medium.sha256] = known = medium
        known.keep(self.store)

    def find(self, form: MediaForm) -> "Media":
        """The medium of a JSON form.

        Raises:
            MediaError: Its content is not here.
        """
        digest = form.data["sha256"]
        if digest not in self.known:
            path = self.store.find(digest) if self.store is not None else None
            if path is None:
                raise MediaError(
                    f"the content of {form.line} is not here, expected it in .llmeval/media: "
                    "run the target again, or copy that folder from where it ran"
                )
            self.known[digest] = _medium_at(form, path)
        return self.known[digest]


class Media:
    """An image, a sound or a document. Two are equal if their content and their type are.

    Attributes:
        type: Media type, such as ``image/png``; that of the content.
        sha256: Digest of the content; empty for an address.
        size: Bytes of the content.
        width: Of an image, in pixels; ``None`` where it is unknown.
        height: As above.
        url: An address that models get in place of a content; it is never fetched.

    Example:
        >>> Media(data=b"%PDF-1.7 ...")
        <Media application/pdf, 12 B, sha256 cd98c5bce101>
    """

    __slots__ = ("_data", "_path", "height", "sha256", "size", "type", "url", "width")

    type: str
    sha256: str
    size: int
    width: int | None
    height: int | None
    url: str

    def __init__(self, *, data: bytes | None = None, type: str | None = None, url: str = "") -> None:  # noqa: A002 (as in suite files)
        """Make a medium of bytes, or of an address.

        Args:
            data: The content.
            type: Media type; default: what the content, or the ending of the address, is.
            url: An address that begins with ``https:``, in place of the content.

        Raises:
            MediaError: There is no content, it is too large, or it is not of the type.
        """
        if (data is None) is not bool(url):
            raise MediaError("found data and an address, or neither, expected one of them: data or url")
        self._data: bytes | None = None if data is None else bytes(data)
        self._path: Path | None = None
        self.url = url
        if self._data is not None:
            self._read(self._data, type, "")
            return
        self.type = _type_of_address(url, type)
        self.sha256, self.size = "", 0
        self.width, self.height = None, None

    def _read(self, data: bytes, declared: str | None, name: str) -> None:
        _check_size(len(data))
        self.type = _type_of(data, declared, name)
        self.sha256, self.size = sha256(data).hexdigest(), len(data)
        self.width, self.height = _check_dimensions(self.type, data)

    @classmethod
    def from_path(cls, path: str | Path, type: str | None = None) -> Self:  # noqa: A002 (as above)
        """The medium in a file.

        Args:
            path: The file; relative to the current folder.
            type: Media type; default: that of the content.

        Raises:
            MediaError: The file cannot be read, is empty or too large, or is not what its name or the type says.
        """
        file = Path(path).absolute()
        try:
            if not S_ISREG(file.stat().st_mode):
                raise MediaError(f"found {str(path)!r}, which is no file, expected one")
            if file.stat().st_size > _shelf().limits.file:
                _check_size(file.stat().st_size)
            data = file.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "embedded null byte"
            raise MediaError(f"{str(path)!r} cannot be read: {reason}") from None
        medium = cls._in_file(file)
        medium._read(data, type, file.name)  # noqa: SLF001 (its own class)
        return medium

    @classmethod
    def of_named(cls, data: bytes, name: str, type: str | None = None) -> Self:  # noqa: A002 (as above)
        """The medium of a content that has a name.

        Args:
            data: The content.
            name: Its ending says of what type it is.
            type: Media type; default: that of the content.

        Raises:
            MediaError: It is empty or too large, or is not what its name or the type says.
        """
        medium = cls._in_file(None)
        medium._data = data  # noqa: SLF001 (its own class)
        medium._read(data, type, name)  # noqa: SLF001 (its own class)
        return medium

    @classmethod
    def _in_file(cls, path: Path | None) -> Self:
        medium = cls.__new__(cls)
        medium._data, medium._path, medium.url = None, path, ""  # noqa: SLF001 (its own class)
        return medium

    @classmethod
    def from_audio(cls, samples: Any, rate: int) -> Self:
        """A sound as WAV with 16 bits.

        Args:
            samples: A NumPy array of whole numbers of 16 bits, or of numbers from -1 to 1; channels are its columns.
            rate: Samples a second.
        """
        import wave

        import numpy as np

        array = np.asarray(samples)
        if not np.issubdtype(array.dtype, np.integer):
            array = np.round(np.clip(array, -1, 1) * 32767)
        stream = io.BytesIO()
        with wave.open(stream, "wb") as sound:
            sound.setnchannels(1 if array.ndim == 1 else array.shape[1])
            sound.setsampwidth(2)
            sound.setframerate(rate)
            sound.writeframes(array.astype("<i2").tobytes())
        return cls(data=stream.getvalue(), type="audio/wav")

    @classmethod
    def of_form(cls, form: MediaForm) -> "Media":
        """The medium behind its JSON form in a case.

        Raises:
            MediaError: Its content is not here.
        """
        return _medium_at(form, None) if "url" in form.data else _shelf().find(form)

    @staticmethod
    def restore_all(value: Any) -> Any:
        """A value of a case with media in place of their forms, as functions of users get it.

        A form whose content is not here stays as it is.
        """

        def medium_or_form(form: MediaForm) -> Any:
            try:
                return Media.of_form(form)
            except MediaError:
                return form.data

        return MediaForm.replace_all(value, medium_or_form)

    @staticmethod
    def limits() -> MediaLimits:
        """The limits of the run that began last."""
        return _shelf().limits

    @staticmethod
    def form_of(value: Any) -> dict[str, Any] | None:
        """The JSON form of an object that is an image, sound or document, whose content is now known to the run.

        Raises:
            MediaError: It is too large, or damaged.
        """
        medium = _medium_from(value)
        if medium is None:
            return None
        if not medium.url:
            _shelf().add(medium)
        return medium.form

    @staticmethod
    def type_by_ending(name: str) -> str | None:
        """The media type that the ending of a file name says; ``None`` for an unknown one.

        >>> Media.type_by_ending("scans/Invoice-7.PNG")
        'image/png'
        """
        return type_by_ending(name)

    @property
    def ending(self) -> str:
        """The usual ending, with its dot, of files of its type; empty if none is known."""
        return usual_ending(self.type)

    @property
    def kind(self) -> str:
        """What it is for models: ``image``, ``audio``, ``video``, or ``document``."""
        kind = self.type.partition("/")[0]
        return kind if kind in ("image", "audio", "video") else "document"

    @property
    def form(self) -> dict[str, Any]:
        """The JSON form of the medium."""
        if self.url:
            return {"media": self.type, "url": self.url}
        form: dict[str, Any] = {"media": self.type, "sha256": self.sha256, "bytes": self.size}
        return form | ({"width": self.width, "height": self.height} if self.width is not None else {})

    @property
    def data(self) -> bytes:
        """The bytes of the medium.

        Raises:
            MediaError: It is an address, or its file is gone or has changed.
        """
        if self._data is not None:
            return self._data
        if self._path is None:
            raise MediaError(f"{self.url} is an address, which is not fetched")
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise MediaError(f"{self._path.name} cannot be read any more ({error.strerror})") from None
        if sha256(data).hexdigest() != self.sha256:
            raise MediaError(f"{self._path.name} has changed since it was read")
        return data

    @property
    def location(self) -> str:
        """The address or the path of the medium, by which another program can read it.

        Raises:
            MediaError: It has none.
        """
        if self.url:
            return self.url
        if self._path is None:
            line = MediaForm(self.form).line
            raise MediaError(f"{line} is only in memory, expected a folder .llmeval that can be written")
        return str(self._path)

    def __bytes__(self) -> bytes:
        return self.data

    @property
    def path(self) -> Path | None:
        """The file of the medium; ``None`` for an address, and for what is only in memory."""
        return self._path

    @property
    def is_readable(self) -> bool:
        """Whether the content is in memory or its file is still there."""
        return self._data is not None or (self._path is not None and self._path.is_file())

    def keep(self, store: MediaStore | None) -> None:
        """Move a content in memory to a store, if there is one."""
        if store is not None and self._data is not None and (path := store.keep(self.sha256, self._data)) is not None:
            self._path, self._data = path, None

    def __eq__(self, other: object) -> bool:
        """Whether content and type are equal."""
        return isinstance(other, Media) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, str, str]:
        return self.type, self.sha256, self.url

    def __repr__(self) -> str:
        return f"<Media {MediaForm(self.form).line}>"


_SHELF: Final = _Shelf()
_LONGEST: Final = 80
_ADDRESS: Final = re.compile(r"https://[^\s/?#@\x00-\x1f\x7f]+(?:[/?#][^\s\x00-\x1f\x7f]*)?")


def _shelf() -> _Shelf:
    """The images, sounds and documents of this process, begun anew for a run that began since."""
    run = media_run()
    if run is not _SHELF.run:
        _SHELF.begin(run)
    return _SHELF


def _medium_at(form: MediaForm, path: Path | None) -> Media:
    """The medium of a JSON form whose content is in a file; without a path it is an address."""
    medium, data = Media._in_file(path), form.data  # noqa: SLF001 (its own module)
    medium.type, medium.url = data["media"], data.get("url", "")
    medium.sha256, medium.size = data.get("sha256", ""), data.get("bytes", 0)
    medium.width, medium.height = data.get("width"), data.get("height")
    return medium


def _check_size(size: int) -> None:
    """Refuse an image, sound or document that is empty or larger than ``--llmeval-media-limit``."""
    if not size:
        raise MediaError("found an empty content, expected some")
    if size > _shelf().limits.file:
        most = size_text(_shelf().limits.file)
        raise MediaError(f"found {size_text(size)}, expected at most {most}: raise --llmeval-media-limit")


def _type_of(data: bytes, declared: str | None, name: str) -> str:
    """The media type of a content, as its bytes, its name or the user say.

    Args:
        data: The content.
        declared: What the user says; ``None`` if nothing.
        name: Of its file; empty if it has none.
    """
    claim = type_by_ending(name) if declared is None else _read_declared_type(declared)
    kind = agreed_type(data, claim)
    if kind is not None:
        return kind
    actual = type_by_content(data)
    if claim is None:
        raise MediaError("found a content of unknown type, expected `type` beside it, such as text/plain")
    whose = "its name" if declared is None else "`type`"
    raise MediaError(f"found {actual or 'something else'}, expected {claim}, as {whose} says")


def _read_declared_type(kind: str) -> str:
    """The usual name of the media type that a user declares for an image, sound or document."""
    claim = usual_name(kind)
    if not MEDIA_TYPE.fullmatch(claim):
        raise MediaError(f"found the type {kind!r}, expected a media type such as image/png")
    return claim


def _type_of_address(url: str, declared: str | None) -> str:
    """The media type of an image, sound or document at an address: as declared, or by the ending.

    An address that is not HTTPS, or has a password, is refused.
    """
    quoted = quotation(url, _LONGEST)
    if not url.startswith("https:"):
        raise MediaError(f"found the address {quoted}, expected one that begins with https:")
    if not _ADDRESS.fullmatch(url):
        expected = "expected one such as https://example.org/a.png"
        if "@" in url.partition("//")[2].partition("/")[0]:
            raise MediaError(f"found a user name or password in the address, {expected}")
        raise MediaError(f"found the address {quoted}, {expected}")
    kind = (
        type_by_ending(url.partition("?")[0].partition("#")[0]) if declared is None else _read_declared_type(declared)
    )
    if kind is None:
        raise MediaError(f"found the address {quoted} without a known ending, expected `type` beside it")
    return kind


def _check_dimensions(kind: str, data: bytes) -> tuple[int | None, int | None]:
    """Width and height of an image in a case; ``None`` for what has none.

    Raises:
        MediaError: The image is damaged, or would take too much memory.
    """
    if not has_dimensions(kind):
        return None, None
    size = dimensions(kind, data)
    if size is None:
        raise MediaError(f"found {kind} that is cut or damaged, expected all of it")
    width, height = size
    if width * height > _shelf().limits.pixels:
        most = _shelf().limits.pixels // 10**6
        raise MediaError(f"found an image of {width} x {height} pixels, expected at most {most} million")
    return size


def _medium_from(value: Any) -> Media | None:
    """The image, sound or document that an object of another library is; ``None`` for any other object.

    These are images of PIL, figures of matplotlib, contents of pydantic-ai, and bytes that begin as a medium does.

    Raises:
        MediaError: It is too large, or damaged.
    """
    if isinstance(value, Media):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _media_from_bytes(bytes(value))
    convert = _OF_LIBRARIES.get(type(value).__module__.partition(".")[0])
    return None if convert is None else convert(value, {base.__name__ for base in type(value).__mro__})


def _of_pillow(value: Any, kinds: AbstractSet[str]) -> Media | None:
    """An image of Pillow as a PNG medium; ``None`` for another object of that library."""
    return Media(data=_save_image(lambda stream: value.save(stream, "PNG"))) if "Image" in kinds else None


def _of_matplotlib(value: Any, kinds: AbstractSet[str]) -> Media | None:
    """A figure of matplotlib as a PNG medium; ``None`` for another object of that library."""
    if "Figure" not in kinds:
        return None
    # Without the version of the library, the same figure has the same digest for longer.
    return Media(data=_save_image(lambda stream: value.savefig(stream, format="png", metadata={"Software": None})))


def _of_pydantic_ai(value: Any, kinds: AbstractSet[str]) -> Media | None:
    """A binary content or a file address of pydantic-ai as a medium; ``None`` for another object."""
    if "BinaryContent" in kinds:
        return Media(data=value.data, type=value.media_type)
    if "FileUrl" in kinds and value.url.startswith("https:"):
        return Media(url=value.url, type=value.media_type)
    return None


_OF_LIBRARIES: Final[Mapping[str, Callable[[Any, AbstractSet[str]], Media | None]]] = {
    "PIL": _of_pillow,
    "matplotlib": _of_matplotlib,
    "pydantic_ai": _of_pydantic_ai,
}


def _media_from_bytes(data: bytes) -> Media | None:
    """The image, sound or document that bytes are; damaged ones, which tests may send, are only bytes."""
    kind = type_by_content(data)
    if kind is None or (has_dimensions(kind) and dimensions(kind, data) is None):
        return None
    return Media(data=data)


def _save_image(save: Callable[[io.BytesIO], object]) -> bytes:
    """The bytes of an image file that a library writes into a stream."""
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()
