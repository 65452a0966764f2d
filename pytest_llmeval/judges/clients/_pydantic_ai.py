"""Judges from pydantic-ai, an optional extra."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from pytest_llmeval.core import AnyError, JudgeError, Media, MissingExtraError
from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Message, Stopped, Usage
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.clients._base import (
    FILTERED,
    FORM_REFUSED,
    TOO_SLOW,
    CallError,
    FormRefusedError,
    Patience,
    failed_status,
    is_count,
)
from pytest_llmeval.judges.clients._media_parts import check_media, medium_of
from pytest_llmeval.judges.questions._replies import plain
from pytest_llmeval.services import Redactor

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

_STOPPED: dict[str, Stopped] = {"length": "length", "content_filter": "refusal"}


@dataclass
class PydanticAiJudge:
    """A judge client that asks a model through pydantic-ai.

    Attributes:
        spec: Its name is a model of pydantic-ai, such as ``google:MODEL``.
        patience: How often a call is tried.
    """

    spec: JudgeSpec
    patience: Patience
    _model: "Model | None" = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply.

        Raises:
            JudgeError: There is none.
            MissingExtraError: pydantic-ai, or what it needs for this provider, is not installed.
        """
        check_media(self.spec, request)
        model = self._connect_model()
        attempt = partial(self._attempt, model, request)
        structured = self.spec.structured == "auto" and bool(model.profile.get("supports_json_schema_output"))
        return await self.patience.complete(request, attempt, self.spec.name, structured=structured)

    async def aclose(self) -> None:
        """Close the connections of the model; the next call makes a new one."""
        model, self._model = self._model, None
        if isinstance(model, AbstractAsyncContextManager) and self._loop is asyncio.get_running_loop():
            async with model:  # at the end of its context, a model closes what its provider has opened
                pass

    def _connect_model(self) -> "Model":
        """Return the model of the running loop; its connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop is not loop:
            self._model, self._loop = self._make(), loop
        return self._model

    def _make(self) -> "Model":
        with MissingExtraError.unless_installed(f"the judge {self.spec.model}", "pydantic-ai"):
            from pydantic_ai.exceptions import UserError
            from pydantic_ai.models import infer_model
        try:
            return infer_model(self.spec.name)
        except ImportError as error:
            # The extra is installed, but not what pydantic-ai needs for this provider: it says how to install that.
            raise MissingExtraError(f"the judge {self.spec.model}", "pydantic-ai", remedy=str(error)) from error
        except (UserError, ValueError) as error:
            raise JudgeError(f"pydantic-ai: {Redactor().line(AnyError(error).text)}; check the judge's model") from None

    async def _attempt(self, model: "Model", request: JudgeRequest, *, structured: bool) -> JudgeReply:
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import AgentRunError, UserError

        try:
            async with asyncio.timeout(self.spec.timeout):
                response = await model_request(
                    model,
                    _messages(request),
                    model_settings=_settings(model, request),
                    model_request_parameters=_form(request) if structured else None,
                )
        except TimeoutError:
            raise CallError(f"took longer than {self.spec.timeout:g} s", TOO_SLOW, transient=True) from None
        except AgentRunError as error:
            raise _call_error_of(error, structured=structured) from None
        except UserError as error:
            raise CallError(Redactor().line(AnyError(error).text), "check the judge's model and parameters") from None
        return _reply(response)


def connect(spec: JudgeSpec, patience: Patience) -> PydanticAiJudge:
    """Return the client of a judge ``pydantic-ai:NAME``."""
    return PydanticAiJudge(spec, patience)


def _messages(request: JudgeRequest) -> "list[ModelMessage]":
    """Return the messages of a judge request as those of pydantic-ai."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    kinds = {"system": SystemPromptPart, "user": UserPromptPart}
    messages: list[ModelMessage] = []
    for answered, group in groupby(request.messages, lambda message: message.role == "assistant"):
        if answered:
            messages.append(ModelResponse(parts=[TextPart(message.content) for message in group]))
        else:
            messages.append(ModelRequest(parts=[kinds[message.role](content=_content(message)) for message in group]))
    return messages


def _content(message: Message) -> Any:
    """Return the content of a judge message for pydantic-ai: its text, or a list of texts and media."""
    if not message.media:
        return message.content
    contents: list[Any] = [message.content] if message.content else []
    for labelled in message.media:
        contents += [f"{labelled.label}:"] if labelled.label else []
        contents.append(_medium(medium_of(labelled.form)))
    return contents


def _medium(medium: Media) -> Any:
    """Return a medium of a judge message as content of pydantic-ai, by its address or its data."""
    from pydantic_ai.messages import AudioUrl, BinaryContent, DocumentUrl, ImageUrl, VideoUrl

    urls: dict[str, Any] = {"audio": AudioUrl, "document": DocumentUrl, "image": ImageUrl, "video": VideoUrl}
    if medium.url:
        return urls[medium.kind](url=medium.url, media_type=medium.type)
    return BinaryContent(data=medium.data, media_type=medium.type)


def _settings(model: "Model", request: JudgeRequest) -> "ModelSettings":
    """Return the model settings of pydantic-ai for a judge request."""
    # Attempts are counted and delayed here, not a second time by the provider's own library.
    single = {} if "max_retries" in model.unsupported_settings else {"max_retries": 0}
    return cast("ModelSettings", single | dict(request.parameters))


def _form(request: JudgeRequest) -> "ModelRequestParameters":
    """Return the pydantic-ai parameters that have a model follow the reply schema of a judge request."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    schema = OutputObjectDefinition(dict(request.reply_schema or {}), name="verdict", strict=True)
    return ModelRequestParameters(output_mode="native", output_object=schema)


def _call_error_of(error: Any, *, structured: bool) -> Exception:
    """Return the judge client's error for an exception of pydantic-ai."""
    from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, ModelHTTPError, ModelRequestRejectedError

    message = Redactor().line(AnyError(error).text)
    if isinstance(error, ModelHTTPError):
        if structured and error.status_code in FORM_REFUSED and "schema" in str(error).lower():
            return FormRefusedError()
        headers = error.headers or {}
        return failed_status(error.status_code, message, raw=str(error), headers=headers, key="the provider's key")
    if isinstance(error, ContentFilterError):
        return CallError(message, FILTERED)
    transient = isinstance(error, ModelAPIError) and not isinstance(error, ModelRequestRejectedError)
    return CallError(message, "try again later, or raise the judge's retries", transient=transient)


def _reply(response: "ModelResponse") -> JudgeReply:
    """Return a response of pydantic-ai as a judge reply; without text, it has the tool call or thoughts."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    stopped = _STOPPED.get(str(response.finish_reason), "stop")
    if not text.strip() and stopped == "stop":
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        thoughts = "".join(part.content for part in response.parts if isinstance(part, ThinkingPart))
        if calls:
            text, stopped = f"{calls[0].tool_name}({calls[0].args_as_json_str()})", "tool"
        elif thoughts:
            text, stopped = thoughts, "thoughts"
    used = response.usage
    counts = [number if is_count(number) else None for number in (used.input_tokens, used.output_tokens)]
    usage = Usage(*counts) if any(counts) else Usage()
    return JudgeReply(plain(text), usage, stopped)
