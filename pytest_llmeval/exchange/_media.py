"""The media of an import: parts of messages of other tools, as ``{file: ...}`` with their files."""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from pytest_llmeval.core import Media, MediaError, excerpt
from pytest_llmeval.exchange._ledger import ImportedSuite, LeftOutError, as_mapping, first_text

_KINDS: Final = frozenset(
    (
        *("audio", "binary", "blob", "document", "file", "image", "image_url", "input_audio", "input_file"),
        *("input_image", "media", "uri", "video"),
        *("audio-url", "document-url", "image-url", "video-url"),
    )
)
"""``type``, ``kind``, ``part_kind`` or ``modality`` of parts that are no text, of all conventions."""

_ENCODED: Final = ("base64", "bytes", "content", "data", "dataBase64", "file_data")
_NAMED: Final = ("url", "uri", "fileUri", "file_uri", "file_url", "image_url", "image", "audio", "video", "document")
_WITHIN: Final = (
    *(
        "source",
        "image_url",
        "input_audio",
        "file",
        "image",
        "content",
        "inline_data",
        "inlineData",
        "file_data",
        "fileData",
    ),
    *("value", "data", "audio", "video", "document"),
)
"""Keys of a part that hold a content, its address, or an object with one of them."""

_TYPES: Final = ("mime_type", "media_type", "mimeType", "mediaType", "mime", "format")
_DEEPEVAL: Final = "image"
"""The kind of ``MLLMImage``, which has none of its own."""
_GEMINI: Final = frozenset(("inline_data", "inlineData", "fileData"))
_DATA: Final = re.compile(
    r"data:(?P<type>[^;,]*)(?:;(?!base64,)[^;,]*)*(?P<base64>;base64)?,(?P<content>.*)", re.DOTALL
)
_BARE: Final = re.compile(r"(?:iVBORw0KGgo|/9j/|R0lGOD|JVBERi0)[A-Za-z0-9+/\r\n]{90,}={0,2}\s*")
"""Base64 of PNG, JPEG, GIF and PDF without a type beside it."""
_SLOT: Final = re.compile(r"\[DEEPEVAL:(?:IMAGE|PDF):([^\[\]]*)\]")
"""Where a text of deepeval shows an image."""
_ASSUMED: Final = {"image": "image/jpeg", "audio": "audio/mpeg", "video": "video/mp4"}
"""The types of addresses that do not say what they are of."""
_SORTS: Final = frozenset((*_ASSUMED, "document"))
_DIGITS: Final = 16
_LONGEST: Final = 60


class MediumPart(NamedTuple):
    """A part of another tool's message that is an image, a sound, a video or a document.

    Attributes:
        address: Address, path, or content in Base64; empty if the source has none.
        type: Its media type as the source says it; empty if it does not.
        kind: What the source calls the part.
        encoded: Whether the address is a content in Base64, where it is no address of a known scheme.
    """

    address: str
    type: str
    kind: str
    encoded: bool

    @property
    def sort(self) -> str:
        """``image``, ``audio``, ``video`` or ``document``."""
        named = (self.type.partition("/")[0], *re.split(r"[-_]", self.kind))
        return next((word for word in named if word in _ASSUMED), "document")


def medium_part(value: Any) -> MediumPart | None:
    """The medium that a part of another tool's message is; ``None`` for texts and data.

    >>> medium_part({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
    MediumPart(address='https://example.org/a.png', type='', kind='image_url', encoded=False)
    """
    fields = as_mapping(as_mapping(value).get("message_content", value))
    kind = first_text(fields, "modality", "type", "kind", "part_kind")
    if fields.keys() & _GEMINI:
        kind = "file"
    elif "dataBase64" in fields or fields.keys() >= {"url", "local"}:
        kind = _DEEPEVAL
    elif (alone := next(iter(fields), "")) in _SORTS and "source" in as_mapping(fields[alone]):
        kind = alone  # of Bedrock
    kind = first_text(fields, "type") if kind not in _KINDS else kind
    if kind not in _KINDS or as_mapping(fields.get("source")).get("type") in ("text", "content"):
        return None
    return MediumPart(*_content_of(fields), kind, False)._replace(encoded=_is_encoded(fields))


def _content_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Address or content, and media type, of a message's part; empty texts if it has none."""
    kind = first_text(fields, *_TYPES)
    if address := first_text(fields, *_ENCODED) or first_text(fields, *_NAMED):
        return address, kind
    for name in _WITHIN:
        if inner := as_mapping(fields.get(name)):
            address, inside = _content_of(inner)
            return address, inside or kind
    return "", kind


def _is_encoded(fields: Mapping[str, Any]) -> bool:
    """Whether a message's part has its medium under a key for Base64."""
    if first_text(fields, *_ENCODED):
        return True
    if first_text(fields, *_NAMED):
        return False
    return any(_is_encoded(inner) for name in _WITHIN if (inner := as_mapping(fields.get(name))))


class ImportedMedia:
    """The media of an imported suite: contents become files named after digests, addresses stay.

    Args:
        suite: Gets the files.
        folder: From which the source names files; ``None`` if it names none.
    """

    def __init__(self, suite: ImportedSuite, folder: Path | None = None) -> None:
        self._suite = suite
        self._folder = folder

    def of_part(self, part: MediumPart) -> dict[str, str]:
        """Return a part as a value of a suite.

        Raises:
            LeftOutError: Its content is not here, or is not what it is said to be.
        """
        is_path = re.match(r"(?:file:|(?![a-z][a-z0-9+.-]+:))", part.address) if part.address else None
        if is_path and not part.encoded and not _BARE.fullmatch(part.address) and not part.address.startswith("<"):
            return self.of_file(part.address.removeprefix("file://"), _type(part.type))
        return self._file(medium_of(part))

    def of_file(self, name: str, kind: str | None = None) -> dict[str, str]:
        """Return a file that the source names as a value of a suite; it is copied.

        Raises:
            LeftOutError: It is not here, is elsewhere on the machine, or is not what it is said to be.
        """
        if self._folder is None:
            raise LeftOutError(f"it names the file {excerpt(name, _LONGEST)}, expected its content or an address")
        path = self._folder / name
        try:
            real = path.resolve()
            if not any(real.is_relative_to(folder.resolve()) for folder in (self._folder, Path.cwd())):
                raise LeftOutError(f"{name} is neither in the folder of the source nor in the present one: copy it")
            if not real.is_file():
                raise LeftOutError(f"there is no file {excerpt(name, _LONGEST)}")
            return self._file(Media.from_path(path, kind))
        except (OSError, ValueError):
            raise LeftOutError(f"there is no file {excerpt(name, _LONGEST)!r}") from None
        except MediaError as error:
            raise LeftOutError(f"{name}: {error}") from None

    def _file(self, medium: Media) -> dict[str, str]:
        value = file_value(medium, f"{self._suite.name}/media")
        if not medium.url:
            self._suite.files[value["file"]] = medium.data
        return value

    def _is_here(self, part: MediumPart) -> bool:
        """Whether what looks like a part has a content or an address, or names a file that is there."""
        if part.address.startswith(("https:", "data:")) or (part.encoded and part.type):
            return True
        with suppress(OSError, ValueError):
            return bool(part.address) and self._folder is not None and (self._folder / part.address).is_file()
        return False

    def shown_in(self, text: str, images: Mapping[str, Any]) -> Any:
        """Return a text of deepeval with its images: a list of texts and media, or the text if it shows none.

        Args:
            text: With the ids of images.
            images: Id to image.

        Raises:
            LeftOutError: An image is not here.
        """
        parts: list[Any] = []
        for number, piece in enumerate(_SLOT.split(text)):
            if number % 2:
                part = medium_part(images.get(piece))
                if part is None:
                    raise LeftOutError(f"the image {excerpt(piece, _LONGEST)} is not in the file: save its images, too")
                parts.append(self.of_part(part))
            elif piece.strip():
                parts.append(piece.strip())
        return text if parts == [text.strip()] else parts[0] if len(parts) == 1 else parts

    def replaced(self, value: Any) -> Any:
        """Return a value with ``{file: ...}`` for contents and parts with addresses; the value itself if it has none.

        Raises:
            LeftOutError: A content is not what it is said to be.
        """
        if isinstance(value, str):
            is_content = _BARE.fullmatch(value) or ((match := _DATA.fullmatch(value)) and match["base64"])
            return self._file(medium_of(MediumPart(value, "", "data", encoded=True))) if is_content else value
        if isinstance(value, list):
            items = [self.replaced(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        if not isinstance(value, Mapping):
            return value
        part = medium_part(value)
        if part is not None and self._is_here(part):
            return self.of_part(part)
        held = {name: self.replaced(child) for name, child in value.items()}
        return value if all(held[name] is child for name, child in value.items()) else held


def medium_of(part: MediumPart) -> Media:
    """The medium of a message's part: a content or an address; a type that the source does not state is a usual one.

    Raises:
        LeftOutError: The part has neither, or the content is not what it is said to be.
    """
    address, kind = part.address, _type(part.type)
    if not address or address.startswith("<"):  # inspect_ai writes <base64-data-removed> where logs have no images
        raise LeftOutError(f"a part {part.kind} has no content in the file, expected Base64 or an address")
    try:
        if match := _DATA.fullmatch(address):
            text = match["content"]
            data = _base64(text) if match["base64"] else unquote_to_bytes(text)
            return Media(data=data, type=kind or match["type"] or None)
        if address.startswith("https:"):
            bare = address.partition("?")[0].partition("#")[0]
            return Media(
                url=address, type=kind or Media.type_by_ending(bare) or _ASSUMED.get(part.sort, "application/pdf")
            )
        if part.encoded or _BARE.fullmatch(address):
            return Media(data=_base64(address), type=kind)
    except MediaError as error:
        raise LeftOutError(str(error)) from None
    raise LeftOutError(f"found the address {excerpt(address, _LONGEST)}, expected one that begins with https: or data:")


def file_value(medium: Media, folder: str) -> dict[str, str]:
    """An imported medium as suite files name it: its address, or a file named after its digest.

    Args:
        medium: The medium.
        folder: Of the file.
    """
    ending, digest = medium.ending, medium.sha256[:_DIGITS]
    name = medium.url or f"{folder}/{digest}{ending}"
    bare = medium.url.partition("?")[0].partition("#")[0] if medium.url else name
    return {"file": name} if Media.type_by_ending(bare) == medium.type else {"file": name, "type": medium.type}


def is_file(value: Any) -> bool:
    """Whether a value of a suite names the file of a medium."""
    return isinstance(value, Mapping) and value.keys() in ({"file"}, {"file", "type"})


def _type(text: str) -> str | None:
    """The media type of an imported part that a source states by its name, or by the ending of files."""
    return text if "/" in text else Media.type_by_ending(f".{text}")


def _base64(text: str) -> bytes:
    """Decode the Base64 content of an imported medium.

    Raises:
        LeftOutError: It is no Base64.
    """
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise LeftOutError(f"found {excerpt(text, _LONGEST)}, expected Base64") from None


def content_parts(content: Any) -> Iterator[str | MediumPart]:
    """Yield texts and media of an imported message's content, in order; other parts are left out."""
    for part in content if isinstance(content, list) else [content]:
        medium = medium_part(part)
        if medium is not None:
            yield medium
        elif text := part if isinstance(part, str) else _text_of(part):
            yield text


def has_media(prompt: Any) -> bool:
    """Whether an imported prompt, messages or their JSON text, shows media."""
    messages = prompt
    if isinstance(prompt, str):
        with suppress(ValueError, RecursionError):
            messages = json.loads(prompt)
    contents = [as_mapping(message).get("content") for message in messages] if isinstance(messages, list) else []
    return any(isinstance(part, MediumPart) for content in contents for part in content_parts(content))


def _text_of(part: Any) -> str:
    """The text of a part of an imported message; empty if it has none."""
    fields = as_mapping(part)
    is_text = first_text(fields, "modality", "type") in ("text", "input_text", "output_text")
    return first_text(fields, "text", *(("value", "content") if is_text else ()))
