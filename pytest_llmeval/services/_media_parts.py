"""Media in the forms of providers."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from pytest_llmeval.core import Media, MediaError, MediaForm

_OPENAI_SOUNDS: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_ANTHROPIC_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_TEXTS: Final = frozenset({"application/json", "application/xml"})


def openai_part(medium: Media) -> dict[str, Any]:
    """A part of an OpenAI chat message for a medium in a request: an image, a sound or a file.

    See https://platform.openai.com/docs/api-reference/chat/create.

    Raises:
        MediaError: The interface has no part for it.
    """
    if medium.kind == "image":
        return {"type": "image_url", "image_url": {"url": medium.url or data_address(medium)}}
    if not medium.url:
        if medium.type in _OPENAI_SOUNDS:
            sound = {"data": encoded(medium), "format": _OPENAI_SOUNDS[medium.type]}
            return {"type": "input_audio", "input_audio": sound}
        if is_text(medium):
            return {"type": "text", "text": medium.data.decode("utf-8", "replace")}
        if medium.kind == "document":
            name = f"{medium.sha256[:12]}.{medium.type.rpartition('/')[2]}"
            return {"type": "file", "file": {"filename": name, "file_data": data_address(medium)}}
    raise MediaError(f"found {MediaForm(medium.form).line}, expected an image, WAV, MP3 or a document for openai")


def anthropic_part(medium: Media) -> dict[str, Any]:
    """A block of an Anthropic message for a medium in a request: an image or a document.

    See https://docs.anthropic.com/en/api/messages.

    Raises:
        MediaError: The interface has no block for it.
    """
    kind = "image" if medium.kind == "image" else "document"
    if medium.url and medium.type in ("application/pdf", *_ANTHROPIC_IMAGES):
        return {"type": kind, "source": {"type": "url", "url": medium.url}}
    if medium.type in ("application/pdf", *_ANTHROPIC_IMAGES):
        source = {"type": "base64", "media_type": medium.type, "data": encoded(medium)}
        return {"type": kind, "source": source}
    if is_text(medium) and not medium.url:
        text = medium.data.decode("utf-8", "replace")
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    raise MediaError(f"found {MediaForm(medium.form).line}, expected PNG, JPEG, GIF, WebP, PDF or a text for anthropic")


def gemini_part(medium: Media) -> dict[str, Any]:
    """A part of a Gemini request for a medium: a text, a content or an address.

    See https://ai.google.dev/api/caching#Part.

    Raises:
        MediaError: The interface has no part for it.
    """
    if is_text(medium) and not medium.url:
        return {"text": medium.data.decode("utf-8", "replace")}
    if medium.kind == "document" and medium.type != "application/pdf":
        raise MediaError(
            f"found {MediaForm(medium.form).line}, expected an image, a sound, a video, PDF or a text for gemini"
        )
    if medium.url:
        return {"fileData": {"mimeType": medium.type, "fileUri": medium.url}}
    return {"inlineData": {"mimeType": medium.type, "data": encoded(medium)}}


def is_text(medium: Media) -> bool:
    """Whether a medium in a request to a provider is a text document."""
    return medium.type.startswith("text/") or medium.type in _TEXTS


def encoded(medium: Media) -> str:
    """The content of an image, sound or document in Base64, for a request to a provider."""
    return b64encode(medium.data).decode("ascii")


def data_address(medium: Media) -> str:
    """The content of an image, sound or document as a ``data:`` address, for a request to a provider."""
    return f"data:{medium.type};base64,{encoded(medium)}"


def data_address_of(medium: Media) -> str:
    """The address of an image, sound or document: its own, or one that holds its content.

    Raises:
        MediaError: The content cannot be read.
    """
    return medium.url or data_address(medium)


MEDIA_FORMS: Final[Mapping[str, Callable[[Media], Any]]] = {
    "openai": openai_part,
    "anthropic": anthropic_part,
    "gemini": gemini_part,
    "address": data_address_of,
    "base64": encoded,
}
"""The ways to write a medium in a request, by name."""
