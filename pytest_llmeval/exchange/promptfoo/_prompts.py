"""Prompts of a promptfoo configuration, and the files that it names with ``file://``."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pytest_llmeval.core import SuiteError, excerpt
from pytest_llmeval.data import Document, FaultLog, FilePattern, InputFile, parse_csv
from pytest_llmeval.exchange._ledger import (
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_list,
    as_mapping,
    each_of,
    fit,
    read_source,
)
from pytest_llmeval.exchange._media import ImportedMedia, MediumPart, content_parts
from pytest_llmeval.exchange._templates import is_template, names_in, rewritten

CODE_SUFFIXES = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go", ".sh"})
_DATA_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
MEDIA_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".mp3", ".wav", ".mp4"})
_SCHEME = "file://"
_LARGEST = 32 << 20


@dataclass
class ConfigFiles:
    """A reader of the files that a promptfoo configuration names; none of them is executed.

    Attributes:
        folder: Of the configuration.
        display_path: The folder in messages; empty for the present one.
        media: Of the suite.
        ledgers: Of the data files that were read.
    """

    folder: Path
    display_path: str
    media: ImportedMedia
    ledgers: dict[Path, SourceLedger] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """Return the display path of a file."""
        inside = path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.as_posix()
        return (
            f"{self.display_path}/{inside}"
            if self.display_path not in ("", ".") and not Path(inside).is_absolute()
            else inside
        )

    def path(self, reference: str) -> Path:
        """Return the file of a reference.

        Raises:
            LeftOutError: It is code, or there is no such file.
        """
        name = self._inert(reference)
        path = self.folder / name
        try:
            if not path.is_file():
                raise LeftOutError(f"there is no file {name}")
        except (OSError, ValueError):
            raise LeftOutError(f"there is no file {name!r}") from None
        return self._confined(path, name)

    def paths(self, reference: str) -> list[Path]:
        """Return the files of a reference that may be a pattern.

        Raises:
            LeftOutError: As `path`; or no file matches.
        """
        name = self._inert(reference)
        if not set(name) & set("*?["):
            return [self.path(reference)]
        try:
            matches = FilePattern(self.folder, name).matches()
        except ValueError as error:
            raise LeftOutError(f"the pattern {name!r} cannot be read ({error})") from None
        if not matches:
            raise LeftOutError(f"no file matches {name}")
        return [self._confined(match, name) for match in matches if match.suffix.lower() not in CODE_SUFFIXES]

    def _confined(self, path: Path, name: str) -> Path:
        """Return a path; files elsewhere on the machine must not end up in the suite of an untrusted configuration."""
        real = path.resolve()
        if not any(real.is_relative_to(folder.resolve()) for folder in (self.folder, Path.cwd())):
            raise LeftOutError(
                f"{name} is neither in the folder of the configuration nor in the current one: copy it there"
            )
        return path

    def _inert(self, reference: str) -> str:
        """Return the name in a reference, which must be that of data."""
        name = reference.removeprefix(_SCHEME)
        stem, colon, function = name.rpartition(":")
        if colon and (Path(stem).suffix in CODE_SUFFIXES or function.isidentifier()):
            name = stem
        if Path(name).suffix.lower() in CODE_SUFFIXES:
            raise LeftOutError(f"{name} is code, which is never executed")
        return name

    def text(self, path: Path) -> str:
        """Return the text of a file.

        Raises:
            LeftOutError: It is not text.
        """
        if path.suffix.lower() in MEDIA_SUFFIXES:
            raise LeftOutError(f"{path.name} is no text, expected a text: images, sounds and documents are variables")
        try:
            return InputFile(path, self.name(path)).read_text("text", _LARGEST, "split it")
        except SuiteError as error:
            raise LeftOutError(f"{error.faults[0]}") from None

    def data(self, path: Path) -> SourceLedger:
        """Return the content of a YAML or JSON file.

        Raises:
            LeftOutError: It has faults.
        """
        if path not in self.ledgers:
            try:
                self.ledgers[path] = read_source(path, self.name(path))
            except SuiteError as error:
                raise LeftOutError(f"{error.faults[0]}") from None
        return self.ledgers[path]

    def value(self, reference: str) -> Any:
        """Return the data or the text of a file that a value names.

        Raises:
            LeftOutError: There is none, or it is code.
        """
        path = self.path(reference)
        if path.suffix.lower() not in _DATA_SUFFIXES:
            return self.text(path)
        ledger = self.data(path)
        ledger.same((), "file", "its content, in place of its name")
        return ledger.data


_DELIMITER = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)
_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://")
_TEXT_SUFFIXES: Final = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml", ".csv")
_LONGEST_LABEL = 40
_INSTEAD = "write the prompt as text with plain {{ input.NAME }}, or a target that builds it"
_LONGEST_CELL = 1 << 20


@dataclass
class ImportedPrompt:
    """A prompt of promptfoo whose placeholders are those of a suite.

    Attributes:
        label: Its name in the source, or the stem of its file.
        user: Text of the user's message.
        system: Text of the instructions.
        names: Its variables.
        media: The variables that are parts of its messages, and contents that stand in it under names of their own.
        source: The whole as the source has it.
    """

    label: str
    user: str
    system: str = ""
    names: Sequence[str] = ()
    media: Mapping[str, MediumPart] = field(default_factory=dict)
    source: str = ""


@dataclass
class PromptReader:
    """A reader of the prompts in one configuration of promptfoo.

    Attributes:
        files: Files of the configuration.
        prompts: The imported prompts.
    """

    files: ConfigFiles
    prompts: list[ImportedPrompt] = field(default_factory=list)

    def read(self, value: Any, path: SourcePath, ledger: SourceLedger) -> None:
        """Read ``prompts``: one, a list, or a mapping of files to labels."""
        if isinstance(value, Mapping):
            for name, label in value.items():
                self._read(name, str(label), (*path, name), ledger)
            return
        for entry, place in each_of(value, path):
            if isinstance(entry, str):
                self._read(entry, "", place, ledger)
            elif isinstance(entry, Mapping):
                self._described(entry, place, ledger)
            else:
                ledger.lost(place, "prompt", "neither a text nor a mapping")

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
        names_file = self._names_file(text)
        kind = f"prompt {text}" if names_file else "prompt"
        with ledger.losing(path, kind, f"; {_INSTEAD}"):
            prompts = self._of_files(text, label) if names_file else [_prompt(_inert(text), label)]
            self.prompts += prompts
            several = f", {len(prompts)} prompts" if len(prompts) > 1 else ""
            ledger.same(path, kind, f"prompt files of the systems, with {{{{ input.NAME }}}} for {{{{NAME}}}}{several}")

    def _names_file(self, text: str) -> bool:
        if text.startswith("file://"):
            return True
        name = text.partition(":")[0] if Path(text.partition(":")[0]).suffix in CODE_SUFFIXES else text
        suffix = Path(name).suffix
        return "\n" not in name and " " not in name and suffix in (*_TEXT_SUFFIXES, *CODE_SUFFIXES)

    def _of_files(self, reference: str, label: str) -> list[ImportedPrompt]:
        prompts = []
        for path in self.files.paths(reference):
            name = label or path.stem
            texts = self._texts(path)
            for number, text in enumerate(texts, 1):
                prompts.append(_prompt(text, name if len(texts) == 1 else f"{name}-{number}"))
        if not prompts:
            raise LeftOutError("its file has no prompt")
        return prompts

    def _texts(self, path: Path) -> list[str]:
        """Return the prompts in a file."""
        text = self.files.text(path)
        suffix = path.suffix.lower()
        if suffix in (".txt", ""):
            return [prompt.strip() for prompt in _DELIMITER.split(text) if prompt.strip()]
        if suffix == ".jsonl":
            return [line for line in text.splitlines() if line.strip()]
        if suffix == ".csv":
            log = FaultLog(self.files.name(path))
            rows = parse_csv(text, ",", _LONGEST_CELL, log)
            if log.count:
                raise LeftOutError(str(log.listed()[0]))
            return [row.get("prompt") or next(iter(row.values()), "") for _, row in rows]
        return [text]


def _inert(text: str) -> str:
    """The text of a promptfoo prompt that is neither a command nor an address.

    Raises:
        LeftOutError: It is one.
    """
    if text.startswith("exec:"):
        raise LeftOutError("it is a command, which is never executed")
    if _REMOTE.match(text):
        raise LeftOutError(f"it is fetched from {text.partition(':')[0]}; save it as a file, and import again")
    return text


def _prompt(text: str, label: str) -> ImportedPrompt:
    """Import a promptfoo prompt: a text, or messages, the last the user's and one before maybe the system's.

    Raises:
        TemplateError: It has code.
        LeftOutError: Its messages are others.
    """
    rewritten(text, str)  # code anywhere makes it one that cannot be imported
    messages = _messages(text)
    media: dict[str, MediumPart] = {}
    if messages is None:
        parts = {"user": text}
    else:
        roles = [message.role for message in messages]
        if roles not in (["user"], ["system", "user"], ["developer", "user"]):
            raise LeftOutError(
                f"its messages are {', '.join(map(str, roles))}; a prompt here is one system and one user message"
            )
        contents = [message.text(media) for message in messages]
        parts = {"user": contents[-1], **({"system": contents[0]} if contents[1:] else {})}
    names = dict.fromkeys(name for part in parts.values() for name in names_in(part))
    if env := next((name for name in names if name.split(".")[0] in ("env", "_conversation")), None):
        raise LeftOutError(f"it needs {env}; {_INSTEAD}")
    written = {key: rewritten(part, lambda name: f"{{{{ input.{name} }}}}") for key, part in parts.items()}
    if not written["user"].strip():
        raise LeftOutError("it is blank")
    return ImportedPrompt(label, written["user"], written.get("system", ""), list(names), media, text)


class _PromptMessage(Struct):
    """A message of a promptfoo prompt."""

    role: Any
    content: Any = None

    def text(self, media: dict[str, MediumPart]) -> str:
        """Return its text, with a name in place of each medium.

        Args:
            media: Gets the media by these names.

        Raises:
            LeftOutError: It has other parts, or a medium that more than one variable makes.
        """
        if isinstance(self.content, str):
            return self.content
        parts = list(content_parts(self.content))
        if not parts or len(parts) < len(as_list(self.content)):
            raise LeftOutError("a message has parts that are neither text nor image, sound or document")
        return "\n".join(part if isinstance(part, str) else f"{{{{ {_name_of(part, media)} }}}}" for part in parts)


_OWN_NAME: Final = "medium_{}"
_FILLED: Final = re.compile(r"(?:data:(?P<type>[\w.+/-]*);base64,)?\{\{\s*(?P<name>[A-Za-z_]\w*)\s*\}\}")


def _name_of(part: MediumPart, media: dict[str, MediumPart]) -> str:
    """The variable that a medium of a promptfoo prompt is, or a name for one that stands in the prompt.

    Raises:
        LeftOutError: It is made of more than one variable.
    """
    if match := _FILLED.fullmatch(part.address.strip()):
        kind = match["type"] or ("" if is_template(part.type) else part.type)
        media[match["name"]] = part._replace(address="", type=kind, encoded=part.encoded or match["type"] is not None)
        return match["name"]
    if not part.address or is_template(part.address):
        raise LeftOutError(f"its {part.sort} is {excerpt(part.address, 60)}, expected one variable or an address")
    name = _OWN_NAME.format(len(media) + 1)
    media[name] = part
    return name


def _messages(text: str) -> list[_PromptMessage] | None:
    """The messages that a promptfoo prompt is in JSON or YAML; ``None`` for plain text.

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
        data = Document.from_yaml(text, log).data
        if log.count:
            raise LeftOutError(f"its messages are no YAML before they are filled; {_INSTEAD}")
    return fit(list[_PromptMessage], as_mapping(data).get("messages", data)) or None
