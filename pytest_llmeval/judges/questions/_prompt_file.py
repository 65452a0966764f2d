"""Prompts of users in files."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pytest_llmeval.core import Fault, SuiteError, unknown_name
from pytest_llmeval.data import InputFile
from pytest_llmeval.judges._protocol import Mode
from pytest_llmeval.judges.questions._forms import ReplyForm

_ANSWERED: Final = ("answer", "contexts", "messages", "prediction", "tool_calls")
ROOTS: Final = (*_ANSWERED, "expected", "input", "labels", "question", "reference")
"""The names that a placeholder may begin with."""

_WHOLE: Final = ("question", "reference")
_VERSION: Final = "1"
_PROMPT_VERSION: Final = "prompt"
_LIKE_ONE = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%(?:(?!\{%).)*?%\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)((?:\.[\w-]+)*)\s*\}\}")


@dataclass(frozen=True)
class PromptFile:
    """A user's judge prompt in a file. Nothing that a case contains becomes a part of it.

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

    @classmethod
    def read(cls, path: Path) -> "PromptFile":
        """Read a prompt.

        Raises:
            SuiteError: The file cannot be read, a placeholder is unknown, or none shows any of the prediction.
        """
        text = InputFile(path).read_text("a prompt").replace("\r\n", "\n")
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
            known = f"use one of {', '.join(_ANSWERED)}, such as '{{{{ answer }}}}'"
            faults.append(Fault(str(path), 1, 1, "", f"a placeholder for what was answered is missing: {known}"))
        if faults:
            raise SuiteError(faults)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(path.name, filled.strip(), tuple(names), digest)

    def in_mode(self, mode: Mode) -> Mode:
        """The mode whose instructions are this prompt; its replies are read as those of the mode."""
        return replace(
            mode,
            version=f"{_PROMPT_VERSION}-{self.digest[:8]}",
            instructions=dict.fromkeys(("en", "zh"), self.text),
            fields=self.placeholders,
        )

    def mode(self, form: ReplyForm) -> Mode:
        """Return the mode that asks as a prompt says; its version is a digest of prompt and form."""
        return Mode(
            name="prompt",
            version=f"{_VERSION}-{hashlib.sha256(f'{self.digest} {form.digest}'.encode()).hexdigest()[:8]}",
            instructions={name: f"{self.text}\n\n{form.instructions(name)}" for name in ("en", "zh")},
            fields=self.placeholders,
            scale=form.scale,
            read=form.read,
            reply_schema=form.schema,
        )


def _placeholder_fault(written: str) -> str | None:
    """The fault of a placeholder in a user's judge prompt, if any."""
    match = _PLACEHOLDER.fullmatch(written)
    if not written.endswith(("}}", "%}")):
        return "found '{{' without '}}' after it, expected a placeholder such as '{{ input.question }}'"
    if match is None:
        return f"found {written!r}, expected a placeholder such as '{{{{ input.question }}}}'"
    root, steps = match.groups()
    if root not in ROOTS:
        return unknown_name("placeholder", root, ROOTS)
    if steps and root in _WHOLE:
        return f"found {written!r}, expected '{{{{ {root} }}}}', which is a text"
    return None
