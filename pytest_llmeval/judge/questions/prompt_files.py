"""Prompts of users as modes: a file with placeholders, and the form of the reply."""

__all__ = ("ROOTS", "PromptFile", "prompt_mode", "read_prompt")

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.files.text import read_text
from pytest_llmeval.judge.contract import Mode
from pytest_llmeval.judge.questions.forms import ReplyForm

_ANSWERED: Final = ("answer", "contexts", "messages", "prediction", "tool_calls")
ROOTS: Final = (*_ANSWERED, "expected", "input", "labels", "question", "reference")
"""What a placeholder may begin with."""

_WHOLE: Final = ("question", "reference")
_VERSION: Final = "1"
_LIKE_ONE = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?%\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)((?:\.[\w-]+)*)\s*\}\}")


@dataclass(frozen=True)
class PromptFile:
    """A prompt. Nothing that a case contains becomes a part of it.

    Attributes:
        name: Of the file, for messages.
        text: With the name of a text of the data in place of each placeholder.
        placeholders: Their names, such as ``input.question``, each once, in order.
        digest: Of the file as it stands.
    """

    name: str
    text: str
    placeholders: tuple[str, ...]
    digest: str


def read_prompt(path: Path) -> PromptFile:
    """Read a prompt.

    Raises:
        SuiteError: The file cannot be read, a placeholder is unknown, or none shows the judge any of the prediction.
    """
    text = read_text(path, str(path), "a prompt").replace("\r\n", "\n")
    faults: list[Fault] = []
    names: dict[str, None] = {}

    def named(match: re.Match[str]) -> str:
        if fault := _placeholder_fault(match[0]):
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            faults.append(Fault(str(path), line, column, "", fault))
            return ""
        name = match[0].strip("{} \t\n")
        names[name] = None
        return f"`{name}`"

    filled = _LIKE_ONE.sub(named, text)
    if not faults and not any(name.partition(".")[0] in _ANSWERED for name in names):
        wanted = f"expected one of {', '.join(_ANSWERED)}, such as '{{{{ answer }}}}'"
        faults.append(Fault(str(path), 1, 1, "", f"found no placeholder for what was answered, {wanted}"))
    if faults:
        raise SuiteError(faults)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return PromptFile(path.name, filled.strip(), tuple(names), digest)


def _placeholder_fault(written: str) -> str | None:
    match = _PLACEHOLDER.fullmatch(written)
    if not written.endswith(("}}", "%}")):
        return "found '{{' without '}}' after it, expected a placeholder such as '{{ input.question }}'"
    if match is None:
        return f"found {written!r}, expected a placeholder such as '{{{{ input.question }}}}'"
    root, steps = match.groups()
    if root not in ROOTS:
        known = ", ".join(sorted(ROOTS))
        return f"found the unknown placeholder {written!r}, expected one of {known}{suggest(root, ROOTS)}"
    if steps and root in _WHOLE:
        return f"found {written!r}, expected '{{{{ {root} }}}}', which is a text"
    return None


def prompt_mode(prompt: PromptFile, form: ReplyForm) -> Mode:
    """Return the mode that asks as a prompt says; its version is a digest of prompt and form."""
    return Mode(
        name="prompt",
        version=f"{_VERSION}-{hashlib.sha256(f'{prompt.digest} {form.digest}'.encode()).hexdigest()[:8]}",
        instructions={name: f"{prompt.text}\n\n{form.instructions(name)}" for name in ("en", "zh")},
        fields=prompt.placeholders,
        scale=form.scale,
        read=form.read,
        reply_schema=form.schema,
    )
