"""Media as parts of the messages of providers."""

from collections.abc import Callable, Iterator
from typing import Any

from pytest_llmeval.core import JudgeError, Media, MediaError, MediaForm
from pytest_llmeval.judges._protocol import JudgeRequest, Message
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.services import MEDIA_FORMS


def check_media(spec: JudgeSpec, request: JudgeRequest) -> None:
    """Refuse a judge request with media that the model may not see.

    Raises:
        JudgeError: The model must not get any, or a content is not here.
    """
    for message in request.messages:
        for labelled in message.media:
            if spec.media == "refuse":
                what = MediaForm(labelled.form).line
                raise JudgeError(f"the {labelled.label} is {what}, which {spec.model} does not see (media: refuse)")
            medium_of(labelled.form)


def medium_of(form: Any) -> Media:
    """Return the medium in a judge message by its JSON form; its content must be readable.

    Raises:
        JudgeError: It cannot.
    """
    try:
        medium = Media.of_form(MediaForm(form))
        if not medium.url and not medium.is_readable:
            _ = medium.data
    except MediaError as error:
        raise JudgeError(str(error)) from None
    return medium


def openai_content(message: Message) -> str | list[dict[str, Any]]:
    """Return the content of a message for OpenAI: its text, or a list of parts.

    Raises:
        JudgeError: The interface has no part for a medium.
    """
    return _content(message, MEDIA_FORMS["openai"])


def anthropic_content(message: Message) -> str | list[dict[str, Any]]:
    """Return the content of a message for Anthropic: its text, or a list of blocks.

    Raises:
        JudgeError: The interface has no block for a medium.
    """
    return _content(message, MEDIA_FORMS["anthropic"])


def anthropic_media(message: Message) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a message's media for Anthropic.

    Raises:
        JudgeError: The interface has no block for one.
    """
    return _label_media(message, MEDIA_FORMS["anthropic"])


def gemini_parts(message: Message) -> list[dict[str, Any]]:
    """Return the parts of a message for Gemini.

    Raises:
        JudgeError: The interface has no part for a medium.
    """
    text = [{"text": message.content}] if message.content or not message.media else []
    return [*text, *_label_media(message, MEDIA_FORMS["gemini"], lambda label: {"text": label})]


def _content(message: Message, part_of: Callable[[Media], dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the content of a judge message for OpenAI or Anthropic: its text, or a list of text and media."""
    if not message.media:
        return message.content
    text = [_text_part(message.content)] if message.content else []
    return [*text, *_label_media(message, part_of)]


def _text_part(text: str) -> dict[str, Any]:
    """Return a text as a part of a judge message for OpenAI or Anthropic."""
    return {"type": "text", "text": text}


def _label_media(
    message: Message,
    part_of: Callable[[Media], dict[str, Any]],
    text_part: Callable[[str], dict[str, Any]] = _text_part,
) -> Iterator[dict[str, Any]]:
    """Yield a provider's parts for the media of a judge message, each after its label."""
    for labelled in message.media:
        if labelled.label:
            yield text_part(f"{labelled.label}:")
        try:
            yield part_of(medium_of(labelled.form))
        except MediaError as error:
            raise JudgeError(str(error)) from None
