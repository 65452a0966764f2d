"""Models with prompts as systems: their settings, and the prompts that are filled from inputs of cases."""

__all__ = ("MatrixSpec", "ModelSpec", "ModelSystem", "Prompt", "prompt_fault")

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, get_args

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.data.files.plain import STRICT
from pytest_llmeval.data.formats.fields import ABSENT, json_text, pick
from pytest_llmeval.judge.contract import Message, Role
from pytest_llmeval.judge.spec import JudgeSpec

_PLACEHOLDER = re.compile(r"\{\{\s*input((?:\.[\w-]+)*)\s*\}\}")
_LIKE_ONE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


@dataclass(frozen=True)
class ModelSpec(JudgeSpec):
    """A model as a system; its other settings are those of judges.

    Attributes:
        prompt: File of the user's message; without it, the input is the message.
        system_prompt: File of the instructions.
    """

    prompt: str | None = None
    system_prompt: str | None = None


@dataclass(frozen=True)
class MatrixSpec:
    """Every model with every prompt.

    Attributes:
        models: ``PROVIDER:NAME``, or the settings of a model.
        prompts: Files, or patterns of files.
        system_prompt: Of all.
        temperature: Of models that do not have their own.
        max_tokens: As above.
    """

    __pydantic_config__: ClassVar = STRICT

    models: tuple[str | dict[str, Any], ...]
    prompts: tuple[str, ...]
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    def systems(self, files: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each system, ``model/prompt``, and its entry.

        Args:
            files: Returns the files of a pattern.
        """
        shared = {"system_prompt": self.system_prompt, "temperature": self.temperature, "max_tokens": self.max_tokens}
        shared = {name: value for name, value in shared.items() if value is not None}
        for model in self.models:
            entry = {"model": model} if isinstance(model, str) else model
            for prompt in dict.fromkeys(each for pattern in self.prompts for each in files(pattern)):
                yield f"{entry.get('model')}/{Path(prompt).stem}", {**shared, **entry, "prompt": prompt}


@dataclass(frozen=True)
class Prompt:
    """A text with placeholders such as ``{{ input.question }}``. What a case contains is text, never a placeholder.

    Attributes:
        file: Where it stands, for messages.
        text: The text.
    """

    file: str
    text: str

    def filled(self, value: Any) -> str:
        """Return the prompt for an input.

        Raises:
            PredictionError: The input lacks something that the prompt names.
        """

        def text_of(match: re.Match[str]) -> str:
            found = value
            for step in match[1].split(".")[1:]:
                found = pick(found, step) if isinstance(found, Mapping) else pick({"": found}, f".{step}")
                if found is ABSENT:
                    raise PredictionError(f"the input has no {match[1][1:]!r}, which {self.file} names")
            return json_text(found)

        return _PLACEHOLDER.sub(text_of, self.text)


def prompt_fault(text: str) -> tuple[int, str] | None:
    """Return line and fault of the first thing in a prompt that looks like a placeholder and is none."""
    for match in _LIKE_ONE.finditer(text):
        if not _PLACEHOLDER.fullmatch(match[0]):
            line = text.count("\n", 0, match.start()) + 1
            return line, f"found {match[0]!r}, expected a placeholder such as '{{{{ input.question }}}}'"
    return None


@dataclass(frozen=True)
class ModelSystem:
    """A model with its prompts.

    Attributes:
        spec: Which model, and where.
        prompt: Of the user's message; ``None``: the input is the message.
        system_prompt: Of the instructions; ``None`` for none.
    """

    spec: ModelSpec
    prompt: Prompt | None = None
    system_prompt: Prompt | None = None

    @cached_property
    def way(self) -> str:
        """Everything that decides its answers besides the input, as text."""
        texts = [None if each is None else each.text for each in (self.prompt, self.system_prompt)]
        return json.dumps([self.spec.model, self.spec.base_url, self.spec.request_parameters(), *texts])

    def messages(self, value: Any) -> list[Message]:
        """Return the messages that ask for an input.

        Raises:
            PredictionError: The input lacks something that a prompt names.
        """
        found = [Message("system", self.system_prompt.filled(value))] if self.system_prompt is not None else []
        if self.prompt is not None:
            return [*found, Message("user", self.prompt.filled(value))]
        if isinstance(value, list) and all(map(_is_message, value)):
            return [*found, *(Message(each["role"], json_text(each["content"])) for each in value)]
        return [*found, Message("user", json_text(value))]


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("role") in get_args(Role) and "content" in value
