"""Prompts of promptfoo as prompt files of systems."""

__all__ = ("ImportedPrompt", "PromptReader")

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.data.files.documents import parse_csv
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.yaml import load_yaml
from pytest_llmeval.exchange.contract import LeftOutError, SourceLedger, SourcePath
from pytest_llmeval.exchange.promptfoo.files import CODE_SUFFIXES, ConfigFiles
from pytest_llmeval.exchange.templates import TemplateError, names_in, rewritten

_DELIMITER = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)
_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://")
_TEXT_SUFFIXES: Final = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml", ".csv")
_LONGEST_LABEL = 40
_INSTEAD = "write the prompt as text with plain {{ input.NAME }}, or a target that builds it"
_LONGEST_CELL = 1 << 20


@dataclass
class ImportedPrompt:
    """A prompt whose placeholders are those of a suite.

    Attributes:
        label: By which the source names it, or the stem of its file.
        user: Text of the user's message.
        system: Text of the instructions.
        names: Variables that it needs.
    """

    label: str
    user: str
    system: str = ""
    names: Sequence[str] = ()


@dataclass
class PromptReader:
    """Reads the prompts of one configuration.

    Attributes:
        files: Beside the configuration.
        found: Those that are imported.
    """

    files: ConfigFiles
    found: list[ImportedPrompt] = field(default_factory=list)

    def read(self, value: Any, path: SourcePath, ledger: SourceLedger) -> None:
        """Read ``prompts``: one, a list, or a mapping of files to labels."""
        if isinstance(value, Mapping):
            for name, label in value.items():
                self._read(name, str(label), (*path, name), ledger)
            return
        for number, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
            place = path if number is None else (*path, number)
            if isinstance(each, str):
                self._read(each, "", place, ledger)
            elif isinstance(each, Mapping):
                self._described(each, place, ledger)
            else:
                ledger.lost(place, "prompt", "found no text and no mapping")

    def _described(self, entry: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        key = next((key for key in ("raw", "content", "id") if isinstance(entry.get(key), str)), None)
        if key is None:
            ledger.lost(path, "prompt", "it has neither text nor file")
            return
        self._read(entry[key], str(entry.get("label", "")), (*path, key), ledger)
        for name in entry:
            if name == "label" or (name == "id" and key != "id"):
                ledger.same((*path, name), f"prompt {name}", "the name of the prompt in those of the systems")
            elif name != key:
                ledger.lost((*path, name), f"prompt {name}", "settings belong to the systems here, beside their models")

    def _read(self, text: str, label: str, path: SourcePath, ledger: SourceLedger) -> None:
        """Read one prompt, or the prompts of one file."""
        kind = "prompt"
        try:
            if self._names_file(text):
                kind = f"prompt {text}"
                prompts = self._of_files(text, label)
            else:
                prompts = [_prompt(_inert(text), label)]
        except (LeftOutError, TemplateError) as error:
            why = (
                f"it needs {error}, which is never executed; {_INSTEAD}" if isinstance(error, TemplateError) else error
            )
            ledger.lost(path, kind, str(why))
            return
        self.found += prompts
        several = f", {len(prompts)} prompts" if len(prompts) > 1 else ""
        ledger.same(path, kind, f"prompt files of the systems, with {{{{ input.NAME }}}} for {{{{NAME}}}}{several}")

    def _names_file(self, text: str) -> bool:
        if text.startswith("file://"):
            return True
        name = text.partition(":")[0] if Path(text.partition(":")[0]).suffix in CODE_SUFFIXES else text
        suffix = Path(name).suffix
        return "\n" not in name and " " not in name and suffix in (*_TEXT_SUFFIXES, *CODE_SUFFIXES)

    def _of_files(self, reference: str, label: str) -> list[ImportedPrompt]:
        found = []
        for path in self.files.paths(reference):
            name = label or path.stem
            texts = self._texts(path)
            for number, text in enumerate(texts, 1):
                found.append(_prompt(text, name if len(texts) == 1 else f"{name}-{number}"))
        if not found:
            raise LeftOutError("its file has no prompt")
        return found

    def _texts(self, path: Path) -> list[str]:
        """Return the prompts in a file."""
        text = self.files.text(path)
        suffix = path.suffix.lower()
        if suffix in (".txt", ""):
            return [each.strip() for each in _DELIMITER.split(text) if each.strip()]
        if suffix == ".jsonl":
            return [each for each in text.splitlines() if each.strip()]
        if suffix == ".csv":
            log = FaultLog(self.files.name(path))
            rows = parse_csv(text, ",", _LONGEST_CELL, log)
            if log.found:
                raise LeftOutError(str(log.listed()[0]))
            return [row.get("prompt") or next(iter(row.values()), "") for _, row in rows]
        return [text]


def _inert(text: str) -> str:
    """Return the text of a prompt that is neither a command nor an address.

    Raises:
        LeftOutError: It is one.
    """
    if text.startswith("exec:"):
        raise LeftOutError("it is a command, which is never executed")
    if _REMOTE.match(text):
        raise LeftOutError(f"it is fetched from {text.partition(':')[0]}; save it as a file, and import again")
    return text


def _prompt(text: str, label: str) -> ImportedPrompt:
    """Return a prompt: a text, or messages of which the last is the user's and one before may be the system's.

    Raises:
        TemplateError: It has code.
        LeftOutError: Its messages are others.
    """
    rewritten(text, str)  # code anywhere makes it one that cannot be imported
    messages = _messages(text)
    if messages is None:
        parts = {"user": text}
    else:
        roles = [each.get("role") for each in messages]
        if roles not in (["user"], ["system", "user"], ["developer", "user"]):
            raise LeftOutError(
                f"its messages are {', '.join(map(str, roles))}; a prompt here is one system and one user message"
            )
        contents = [_content(each.get("content")) for each in messages]
        parts = {"user": contents[-1], **({"system": contents[0]} if contents[1:] else {})}
    names = dict.fromkeys(name for part in parts.values() for name in names_in(part))
    if env := next((name for name in names if name.split(".")[0] in ("env", "_conversation")), None):
        raise LeftOutError(f"it needs {env}; {_INSTEAD}")
    written = {key: rewritten(part, lambda name: f"{{{{ input.{name} }}}}") for key, part in parts.items()}
    if not written["user"].strip():
        raise LeftOutError("it is blank")
    return ImportedPrompt(label, written["user"], written.get("system", ""), list(names))


def _content(content: Any) -> str:
    """Return the text of a message.

    Raises:
        LeftOutError: It has parts that are no text.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in content
    ):
        return "\n".join(each["text"] for each in content)
    raise LeftOutError("a message has parts that are no text, such as images")


def _messages(text: str) -> list[Mapping[str, Any]] | None:
    """Return the messages that a prompt is in JSON or YAML; ``None`` for plain text.

    Raises:
        LeftOutError: It looks like messages and is none.
    """
    stripped = text.strip()
    if not (stripped.startswith(("[", "{")) and not stripped.startswith("{{")) and not stripped.startswith("- role:"):
        return None
    if stripped.startswith(("[", "{")):
        try:
            data = json.loads(stripped)
        except ValueError:
            if '"role"' in stripped:
                raise LeftOutError(f"its messages are no JSON before they are filled; {_INSTEAD}") from None
            return None
    else:
        log = FaultLog("prompt")
        data, _ = load_yaml(text, log)
        if log.found:
            raise LeftOutError(f"its messages are no YAML before they are filled; {_INSTEAD}")
    if isinstance(data, Mapping) and isinstance(data.get("messages"), list):
        data = data["messages"]
    if isinstance(data, list) and data and all(isinstance(each, Mapping) and "role" in each for each in data):
        return data
    return None
