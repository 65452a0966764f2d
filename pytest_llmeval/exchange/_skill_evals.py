"""Evals of plugins and skills of coding agents.

Read are the forms that https://code.claude.com/docs/en/plugin-evals describes (schema 1.1, November 2026), and
``evals.json`` of the skill-creator in https://github.com/anthropics/skills, with lists of triggers.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import SuiteError, quotation
from pytest_llmeval.data import InputFile
from pytest_llmeval.evaluators import read_transcript
from pytest_llmeval.exchange._ledger import (
    CaseIds,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_list,
    as_mapping,
    as_text,
    first_text,
    fit_items,
    is_scalar,
    read_as,
    read_source,
)
from pytest_llmeval.exchange._patterns import glob_pattern, pattern_of_times, python_pattern
from pytest_llmeval.exchange._templates import check_fault

_DOCUMENTED: Final = "as its documentation says; not compared with verdicts of the tool"
_JUDGE: Final = "anthropic:claude-haiku-4-5"
_JUDGED: Final = "the judge says yes or no once, by its own instructions"
_COMMAND: Final = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config")
"""An agent that prints what it does as JSON, without any servers of tools: the prompt is on its stdin."""

_READ_ONLY: Final = (
    *("Read", "Glob", "Grep", "NotebookRead", "Skill", "AskUserQuestion", "Agent", "TodoWrite"),
    *("TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskStop"),
)
"""Tools that a case may use there without a grant on the command line."""

_DEFAULTS: Final = {"runs": 3, "max_turns": 10, "timeout_seconds": 300}
_FOR_PEOPLE: Final = (Fate.SAME, "for people; left out")
_CASE_KEYS: Final = {
    "description": _FOR_PEOPLE,
    "expected_outcome": _FOR_PEOPLE,
    "name": (Fate.SAME, "the id of the case"),
    "prompt": (Fate.SAME, "the input of the case"),
    "schema_version": (Fate.SAME, "the form of the file"),
    "plugins": (Fate.NEAR, "the plugin is the one around the case"),
}
_EXECUTION: Final = ("model", "max_turns", "timeout_seconds", "append_system_prompt")
_CREATED: Final = 'join(`"\\n"`, outcome.created)'
_TAG = re.compile(r"[A-Za-z0-9_-]+")


class _Part(NamedTuple):
    """A mapping in a file of a plugin eval: its ledger, its path there, its content."""

    ledger: SourceLedger
    path: SourcePath
    data: Mapping[str, Any]


@dataclass
class _Agent:
    """The coding agent's command in an imported suite: options and workspace that all its cases share.

    Attributes:
        folder: Where the suite is written.
        copy: Files and folders of the workspace.
        must_not_read: Files and folders that the agent must not show.
        tools: That it may use.
        options: Further options.
        environment: Variables.
    """

    folder: Path
    copy: dict[str, str] = field(default_factory=dict)
    must_not_read: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def place(self, path: Path) -> str:
        """Return a path from the folder of the suite."""
        return Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix()

    def add(self, source: Path, target: str, *, without: Iterable[Path] = ()) -> None:
        """Copy a folder, but nothing that holds one of some paths, or the suite."""
        hidden = [path.resolve() for path in (*without, self.folder)]
        for entry in sorted(source.iterdir()):
            if entry.name != ".git" and not any(path.is_relative_to(entry.resolve()) for path in hidden):
                self.copy[self.place(entry)] = f"{target}/{entry.name}"

    def target(self, timeout: float) -> dict[str, Any]:
        """Return the target of the suite."""
        allowed = ["--allowedTools", ",".join(self.tools)] if self.tools else []
        workspace = {
            "copy": self.copy,
            "environment": self.environment,
            "environment_from": ["ANTHROPIC_API_KEY"],
            "must_not_read": self.must_not_read,
        }
        parts = {key: value for key, value in workspace.items() if value}
        return {"command": [*_COMMAND, *self.options, *allowed], "workspace": parts, "timeout": timeout}


def import_plugin_evals(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import the evals of a coding agent's plugin, of a folder, or of one case as a suite.

    Raises:
        SuiteError: There is no case, or the manifest of the plugin cannot be read.
    """
    root = path.parent if path.is_file() else path
    plugin = next((parent for parent in (root.resolve(), *root.resolve().parents) if _manifest(parent)), None)
    manifest = _manifest(plugin) if plugin else None
    data = read_source(manifest, manifest.name).data if manifest else {}
    if plugin == root.resolve() and not _is_case(root):
        root = root / str(as_mapping(as_mapping(data).get("experimental")).get("evals", "evals"))
    suite = ImportedSuite(options.suite_name(first_text(as_mapping(data), "name") or root.resolve().name))
    agent = _Agent(options.folder)
    source = ImportedSource(display_path, suite)
    reader = _CaseReader(suite, agent, source.ledgers, CaseIds(), plugin if options.arms else None)
    for folder in _case_folders(root):
        reader.read(folder, _named(folder, path, display_path))
    if (root / "mocks").is_dir():
        mocks = SourceLedger(f"{_named(root, path, display_path)}/mocks", {}, lambda _: 0)
        mocks.lost((), "mocks", "servers of tools are neither started nor mocked; write a target that has them")
        source.ledgers.append(mocks)
    if not suite.cases:
        return source.refuse("no case has graders that can be imported: folders with prompt.md are missing")
    if plugin is not None:
        agent.options += ["--plugin-dir", "plugin"]
        agent.add(plugin, "plugin", without=[root])
    reader.finish()
    return source


def _manifest(folder: Path) -> Path | None:
    """The manifest of a coding agent's plugin in a folder; ``None`` if there is none."""
    names = (".claude-plugin/plugin.json", "plugin.json")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _is_case(folder: Path) -> bool:
    """Whether a folder holds one case of plugin evals."""
    return (folder / "prompt.md").is_file() or (folder / "case.yaml").is_file()


def _case_folders(folder: Path) -> Iterator[Path]:
    """Yield the case folders of plugin evals; those inside of a case belong to it."""
    if _is_case(folder):
        yield folder
    elif folder.is_dir() and folder.name not in ("mocks", "results"):
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield from _case_folders(path)


def _named(path: Path, root: Path, display_path: str) -> str:
    """The path of a plugin eval's case in messages: that of the source, and what follows it."""
    if path == root or not path.is_relative_to(root):
        return path.as_posix()
    return f"{display_path.rstrip('/')}/{path.relative_to(root).as_posix()}"


@dataclass
class _CaseReader:
    """A reader of the cases of plugin evals, which become cases of a suite.

    Attributes:
        suite: Gets the cases.
        agent: Gets what they want of the command.
        ledgers: Of all files.
        ids: Of the cases.
        ablated: The plugin that one of two arms does not have; ``None`` with one arm.
    """

    suite: ImportedSuite
    agent: _Agent
    ledgers: list[SourceLedger]
    ids: CaseIds
    ablated: Path | None = None
    _requests: dict[str, list[tuple[Any, SourceLedger, SourcePath]]] = field(default_factory=dict)
    _judged: bool = False

    def read(self, folder: Path, display_path: str) -> None:
        """Read a case, and leave it out if it cannot be run or graded here."""
        first = len(self.ledgers)
        try:
            case = self._case(folder, display_path)
        except LeftOutError as error:
            for ledger in self.ledgers[first:]:
                ledger.lose_all(f"the case is left out: {error}")
                ledger.lost((), "case", f"the case is left out: {error}")
        else:
            self.suite.cases.append(case)

    def _case(self, folder: Path, display_path: str) -> dict[str, Any]:
        parts, prompt, listed = [], "", list[_Part]()
        if (folder / "case.yaml").is_file():
            ledger = self._opened(lambda: read_source(folder / "case.yaml", f"{display_path}/case.yaml"))
            data = as_mapping(ledger.data)
            execution = as_mapping(data.get("execution"))
            parts = [_Part(ledger, (), data), _Part(ledger, ("execution",), execution)]
            prompt = str(execution.get("prompt", ""))
            self._context(as_mapping(data.get("context")), ledger)
            for number, grader in enumerate(as_list(data.get("graders"))):
                listed.append(_Part(ledger, ("graders", number), as_mapping(grader)))
        if (folder / "prompt.md").is_file():
            ledger, text = self._front_matter(folder / "prompt.md", f"{display_path}/prompt.md", "a prompt")
            ledger.same((), "prompt", "the input of the case")
            parts.append(_Part(ledger, (), ledger.data))
            prompt = text.strip("\n")
        if not prompt.strip():
            raise LeftOutError("it has no prompt")
        if (folder / "mocks").is_dir():
            raise LeftOutError("its tools are mocked; write a target with a world that answers for them")
        for path in sorted((folder / "graders").glob("*.md")):
            ledger, text = self._front_matter(path, f"{display_path}/graders/{path.name}", "a grader")
            body = "pattern" if ledger.data.get("type") == "regex" else "criteria"
            own = {body: text.strip("\n"), "name": path.stem} if text.strip() else {"name": path.stem}
            listed.append(_Part(ledger, (), {**own, **ledger.data}))
        checks = [check for part in listed if (check := self._check(part, folder)) is not None]
        if not checks:
            raise LeftOutError("none of its graders is imported")
        if (folder / "graders").is_dir():
            self.agent.must_not_read.append(self.agent.place(folder / "graders"))
        settings = self._settings(parts)
        case: dict[str, Any] = {"id": self.ids.next(settings.get("name", folder.resolve().name)), "input": prompt}
        if tags := [tag for tag in fit_items(str, settings.get("tags")) if _TAG.fullmatch(tag)]:
            case["tags"] = tags
        return {**case, "checks": checks}

    def _opened(self, read: Callable[[], SourceLedger]) -> SourceLedger:
        try:
            ledger = read()
        except SuiteError as error:
            fault = error.faults[0]
            ledger = SourceLedger(fault.file, {}, lambda _: fault.line)
            ledger.lost((), "file", fault.message)
        self.ledgers.append(ledger)
        return ledger

    def _front_matter(self, path: Path, display_path: str, expected: str) -> tuple[SourceLedger, str]:
        """Return the ledger of the YAML at the top of a file, and the text below it."""
        texts = [""]

        def read() -> SourceLedger:
            document, texts[0] = InputFile(path, display_path).read_front_matter(expected)
            return SourceLedger(display_path, document.data, lambda steps: document.locate(steps)[0] if steps else 1)

        return self._opened(read), texts[0]

    def _context(self, context: Mapping[str, Any], ledger: SourceLedger) -> None:
        for key, advice in (
            ("scaffold_script", "write instead: a folder of the workspace with what the script makes"),
            ("history_file", "write instead: messages"),
            ("add_dirs", "write instead: copy of the workspace"),
        ):
            if context.get(key):
                ledger.lost(("context", key), key, advice)
                raise LeftOutError(f"it needs {key}; {advice}")

    def _settings(self, parts: Iterable[_Part]) -> dict[str, Any]:
        """Return the settings of a case, the last of each, after noting them."""
        settings: dict[str, Any] = {}
        where: dict[str, tuple[SourceLedger, SourcePath]] = {}
        for ledger, path, data in parts:
            for key, value in data.items():
                place = (*path, key)
                if key in ("graders", "context", "execution") and not path and ledger.file.endswith("case.yaml"):
                    continue
                settings[key], where[key] = value, (ledger, place)
                self._note(key, value, ledger, place)
        for key in ("runs", *_EXECUTION):
            ledger, place = where.get(key, (self.ledgers[-1], ()))
            if (value := settings.get(key, _DEFAULTS.get(key))) is not None:
                self._requests.setdefault(key, []).append((value, ledger, place))
        return settings

    def _note(self, key: str, value: Any, ledger: SourceLedger, place: SourcePath) -> None:
        if key == "tags":
            bad = [tag for tag in as_list(value) if not _TAG.fullmatch(as_text(tag))]
            if bad or not isinstance(value, list):
                ledger.lost(place, key, f"found {bad[0] if bad else value!r}: tags are letters, digits, - and _")
            else:
                ledger.same(place, key, "tags of the case")
        elif key == "allowed_tools":
            self._allow(as_list(value), ledger, place)
        elif key == "env":
            self._variables(as_mapping(value), ledger, place)
        elif key in _CASE_KEYS:
            ledger.note(place, key, *_CASE_KEYS[key])
        elif key not in ("runs", *_EXECUTION):
            ledger.lost(place, key, "a case has no such setting")

    def _allow(self, tools: Iterable[Any], ledger: SourceLedger, place: SourcePath) -> None:
        ledger.near(place, "allowed_tools", "tools that only read; all cases share them")
        for number, tool in enumerate(tools):
            if tool not in _READ_ONLY:
                text = "it is granted on the command line there, in a sandbox; add it to --allowedTools if you trust it"
                ledger.lost((*place, number), f"allowed tool {tool}", text)
            elif tool not in self.agent.tools:
                self.agent.tools.append(tool)

    def _variables(self, variables: Mapping[str, Any], ledger: SourceLedger, place: SourcePath) -> None:
        for name, value in variables.items():
            text = value if isinstance(value, str) else str(value)
            if not is_scalar(value) or self.agent.environment.setdefault(str(name), text) != text:
                ledger.lost((*place, name), "env", "another case has another value, and they share the environment")
            else:
                ledger.near((*place, name), "env", "all cases share the environment")

    def _check(self, part: _Part, folder: Path) -> dict[str, Any] | None:
        """Return the check that a grader becomes, after noting it."""
        (ledger, path, data), kind = part, str(part.data.get("type", "grader"))
        if self.ablated is not None and data.get("arm", "both") != "both":
            ledger.lost(path, kind, f"it counts in one arm ({data['arm']}), and checks count in both")
            return None
        with ledger.losing(path, kind):
            check, note = _graded(kind, data, folder)
            self._judged = self._judged or "judge" in check
            ledger.near(path, kind, f"check {next(iter(check))}; {note or _DOCUMENTED}")
            return check
        return None

    def finish(self) -> None:
        """Write what all cases share into the suite."""
        chosen = {key: self._shared(key, values) for key, values in self._requests.items()}
        settings = self.suite.settings
        if chosen["runs"] != 1:
            settings["repeats"] = chosen["runs"]
        settings |= {"judge": {"model": _JUDGE}} if self._judged else {}
        self.agent.options += ["--max-turns", str(chosen["max_turns"])]
        for key, option in (("model", "--model"), ("append_system_prompt", "--append-system-prompt")):
            if key in chosen:
                self.agent.options += [option, str(chosen[key])]
        target = self.agent.target(chosen["timeout_seconds"])
        arms = self.ablated is not None and {"with": target, "without": self._without_plugin(target)}
        settings |= {"systems": arms, "reference": "without"} if arms else {"target": target}

    def _without_plugin(self, target: dict[str, Any]) -> dict[str, Any]:
        """Return the target of the arm that must not know the plugin."""
        command, workspace = list(target["command"]), dict(target["workspace"])
        del command[(at := command.index("--plugin-dir")) : at + 2]
        copied = {key: place for key, place in workspace.pop("copy").items() if not place.startswith("plugin/")}
        hidden = [*self.agent.must_not_read, *(self.agent.copy.keys() - copied.keys())]
        parts = {"must_not_read": sorted(hidden), **({"copy": copied} if copied else {})}
        return {**target, "command": command, "workspace": workspace | parts}

    def _shared(self, key: str, requests: list[tuple[Any, SourceLedger, SourcePath]]) -> Any:
        """Return the value of a setting for all cases, after noting it: the greatest number, or the first text."""
        numbers = [value for value, *_ in requests if type(value) in (int, float) and value > 0]
        chosen = max(numbers, default=_DEFAULTS[key]) if key in _DEFAULTS else requests[0][0]
        everywhere = len(requests) == len(self.suite.cases)
        for value, ledger, place in requests:
            if place and (value != chosen or not everywhere):
                ledger.note(place, key, Fate.NEAR, f"all cases share one: {chosen}")
            elif place:
                ledger.same(place, key, "a setting of the suite")
        return chosen


_CheckNote: TypeAlias = tuple[dict[str, Any], str]
"""A check, and the difference; no difference is noted as documented."""


class _AgentGrader(Struct, tag_field="type", kw_only=True):
    """The base of the graders of plugin evals, each of which becomes a check."""

    name: str | None = None
    weight: Any = 1
    arm: str = "both"
    criteria: str = ""

    def check(self, _folder: Path) -> _CheckNote:
        """Return the check that the grader becomes, and the difference.

        Raises:
            LeftOutError: There is none.
        """
        raise NotImplementedError


class _Regex(_AgentGrader, tag="regex"):
    """A plugin eval's grader that looks for a pattern in a part of the agent's run."""

    pattern: str = ""
    flags: str = ""
    match: str = "contains"
    target: Any = "last_message"

    def check(self, _folder: Path) -> _CheckNote:
        flags = self.flags.replace("u", "")
        pattern, differs = python_pattern(self.pattern, unicode="u" in self.flags, flags=flags)
        on, note = _on(self.target, absent=self.match == "contains")
        if times := re.fullmatch(r"count:(\d{1,9})", self.match):
            pattern = pattern_of_times(pattern, int(times[1]))
        elif self.match not in ("contains", "not_contains"):
            raise LeftOutError(f"found match {self.match!r}, expected contains, not_contains or count:N")
        key = "not_regex" if self.match == "not_contains" else "regex"
        return {key: pattern, **on}, _joined(differs, note)


class _CallPattern(Struct):
    """The tool calls that a plugin eval's grader means, by the tool's name and a pattern of its input."""

    tool: str
    input_match: str | None = None

    def pattern(self) -> _CheckNote:
        """Return the part of a check, and the difference."""
        calls = {"name": re.sub(r"([*?\[])", r"[\1]", self.tool)}
        if self.input_match is None:
            return calls, ""
        calls["arguments"], differs = python_pattern(self.input_match)
        return calls, differs


class _ToolUsed(_AgentGrader, tag="tool_used"):
    """A plugin eval's grader that counts the calls of a tool."""

    tool: str
    input_match: str | None = None
    min: Any = None
    max: Any = None

    def check(self, _folder: Path) -> _CheckNote:
        calls, note = _CallPattern(self.tool, self.input_match).pattern()
        limits = {key: value for key, value in (("min", self.min), ("max", self.max)) if value is not None}
        return {"tool_call": {**calls, **limits}}, note


class _ToolOrder(_AgentGrader, tag="tool_order"):
    """A plugin eval's grader that requires one tool call before another."""

    before: str | _CallPattern
    after: str | _CallPattern

    def check(self, _folder: Path) -> _CheckNote:
        both = (_CallPattern(call) if isinstance(call, str) else call for call in (self.before, self.after))
        (first, of_first), (second, of_second) = (call.pattern() for call in both)
        return {"tool_call": {**first, "before": second}}, _joined(of_first, of_second)


class _FileExists(_AgentGrader, tag="file_exists"):
    """A plugin eval's grader that requires a file that the agent created, or its absence."""

    path: str
    exists: bool = True

    def check(self, _folder: Path) -> _CheckNote:
        return {"regex" if self.exists else "not_regex": f"(?m)^{glob_pattern(self.path)}$", "on": _CREATED}, ""


class _Llm(_AgentGrader, tag="llm"):
    """A plugin eval's grader by which a judge decides on criteria."""

    focus: Any = "last_message"

    def check(self, _folder: Path) -> _CheckNote:
        if self.focus == "trace":
            on, note = {"on": "prediction"}, "it sees the answer, calls and files in place of the messages"
        else:
            on, note = _on(self.focus, absent=False)
        return {"judge": self.criteria, **on}, _joined(_JUDGED, note)


class _BaselineGrader(_AgentGrader, tag="baseline"):
    """A plugin eval's grader by which a judge compares the answer with that of a reference transcript."""

    baseline_file: str = ""

    def check(self, folder: Path) -> _CheckNote:
        path = (folder / self.baseline_file).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise LeftOutError(f"{self.baseline_file!r}, the transcript, is missing in the folder of the case")
        answer = read_transcript(path.read_text(encoding="utf-8", errors="replace"))["answer"]
        text = f"{self.criteria.strip()}\nIn this, the answer is at least as good as the following one:\n{answer}"
        note = f"{_JUDGED}, and sees the last message of the reference in place of its transcript"
        return {"judge": text.strip()}, note


_GRADERS: Final[Mapping[str, type[_AgentGrader]]] = {
    "regex": _Regex,
    "tool_used": _ToolUsed,
    "tool_order": _ToolOrder,
    "file_exists": _FileExists,
    "llm": _Llm,
    "baseline": _BaselineGrader,
}


def _graded(kind: str, data: Mapping[str, Any], folder: Path) -> _CheckNote:
    """The check that a plugin eval's grader becomes, and the difference.

    Raises:
        LeftOutError: There is none.
    """
    if kind not in _GRADERS:
        raise LeftOutError("there is no such grader; expected one of " + ", ".join(_GRADERS))
    form = _GRADERS[kind]
    if unknown := [key for key in data if key not in ("type", *form.__struct_fields__)]:
        raise LeftOutError(f"it has the key {unknown[0]}, which is not known")
    grader = read_as(form, data)
    check, note = grader.check(folder)
    check["name"] = re.sub(r"[\[\]]", "", grader.name or kind)
    if grader.weight != 1:
        check["weight"] = grader.weight
    if fault := check_fault(check):
        raise LeftOutError(f"it cannot be a check here: {fault}")
    return check, note


def _joined(*notes: str) -> str:
    """The notes on an imported plugin eval's grader as one text, each once."""
    return "; ".join(dict.fromkeys(filter(None, notes)))


def _on(focus: Any, *, absent: bool) -> tuple[dict[str, str], str]:
    """The part of a prediction that the check of a plugin eval's grader reads, and the difference.

    Args:
        focus: What the grader looks at.
        absent: Whether a file that is not there is an empty text.

    Raises:
        LeftOutError: It is not known here.
    """
    match focus:
        case "last_message":
            return {}, ""
        case "files":
            return {"on": _CREATED}, ""
        case {"source": "file", "path": str(name)}:
            path = f"outcome.files.{json.dumps(name)}"
            return {"on": f"{path} || ''" if absent else path}, "a file that the agent left as it was is not there"
        case "trace":
            raise LeftOutError("the trace has another form here; write instead: check tool_call")
    raise LeftOutError(f"nothing is known of {focus!r} here; calls are in check tool_call, files in on: outcome.files")


def import_skill_evals(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import ``evals.json`` of the skill-creator, or queries that should trigger a skill, as a suite.

    Raises:
        SuiteError: The file cannot be read, or it is neither.
    """
    ledger = read_source(path, display_path)
    data = ledger.data
    start: SourcePath = () if isinstance(data, list) else ("evals",)
    listed = data if isinstance(data, list) else as_mapping(data).get("evals")
    if not isinstance(listed, list):
        raise ledger.fault((), "the list 'evals' is missing, expected evals.json of the skill-creator")
    skill = next((parent for parent in path.resolve().parents[:2] if (parent / "SKILL.md").is_file()), None)
    name = first_text(as_mapping(data), "skill_name") or (skill.name if skill else path.stem)
    suite = ImportedSuite(options.suite_name(name))
    agent = _Agent(options.folder, tools=[*_READ_ONLY[:3], "Skill"])
    if isinstance(data, Mapping):
        known = {"skill_name": (Fate.SAME, "the name of the suite and of the skill")}
        ledger.note_keys((key for key in data if key != "evals"), (), "", known, "a suite has no such setting")
    ids = CaseIds()
    for number, raw in enumerate(listed):
        if (case := _skill_case(as_mapping(raw), (*start, number), ledger, ids, name)) is not None:
            suite.cases.append(case)
            for at, file in enumerate(as_list(as_mapping(raw).get("files"))):
                _add_file(agent, skill or path.parent, file, ledger, (*start, number, "files", at))
    source = ImportedSource(display_path, suite, [ledger])
    if not suite.cases:
        return source.refuse("no eval has a prompt and expectations")
    if skill is not None:
        agent.add(skill, f".claude/skills/{name}", without=[path.parent] if path.parent.resolve() != skill else [path])
    if any("judge" in check for case in suite.cases for check in case["checks"]):
        suite.settings["judge"] = {"model": _JUDGE}
    suite.settings["target"] = agent.target(_DEFAULTS["timeout_seconds"])
    return source


def _add_file(agent: _Agent, folder: Path, file: Any, ledger: SourceLedger, path: SourcePath) -> None:
    """Add a file that a skill eval names to the agent's workspace, or note that the skill lacks it."""
    source = (folder / str(file)).resolve()
    if not isinstance(file, str) or not source.exists() or not source.is_relative_to(folder.resolve()):
        ledger.lost(path, "files", f"{quotation(str(file), 60)} is missing in the skill")
    else:
        agent.copy[agent.place(source)] = file
        ledger.near(path, "files", "files of the workspace; those of other evals are there, too")


def _skill_case(
    data: Mapping[str, Any], path: SourcePath, ledger: SourceLedger, ids: CaseIds, skill: str
) -> dict[str, Any] | None:
    """The case that a skill eval becomes, after noting it; ``None`` without a prompt, or anything to check."""
    prompt = data.get("prompt", data.get("query"))
    checks: list[dict[str, Any]] = []
    for key, value in data.items():
        place = (*path, key)
        if key in ("prompt", "query", "id", "name", "eval_name"):
            ledger.same(place, key, "the input of the case" if value is prompt else "the id of the case")
        elif key in ("expectations", "assertions"):
            for number, expectation in enumerate(as_list(value)):
                text = as_text(expectation) or first_text(
                    as_mapping(expectation), "text", "assertion", "description", "name"
                )
                if text.strip():
                    checks.append({"judge": text, "on": "prediction"})
                    ledger.near((*place, number), key, f"check judge; {_JUDGED}, and sees answer, calls and files")
                else:
                    ledger.lost((*place, number), key, "text is missing")
        elif key == "should_trigger" and isinstance(value, bool):
            pattern = rf'"skill":"(?:[\w-]+:)?{re.escape(skill)}"'
            checks.append({"tool_call" if value else "not_tool_call": {"name": "Skill", "arguments": pattern}})
            ledger.near(place, key, f"check tool_call: a call of Skill for {skill}, at any time; {_DOCUMENTED}")
        elif key == "expected_output":
            ledger.note(place, key, *_FOR_PEOPLE)
        elif key != "files":
            ledger.lost(place, key, "a case has no such setting")
    expected = first_text(data, "expected_output")
    if not checks and expected.strip():
        checks = [{"judge": f"The answer is as described: {expected}", "on": "prediction"}]
        ledger.near((*path, "expected_output"), "expected_output", f"check judge; {_JUDGED}; there is no other")
    if not as_text(prompt).strip() or not checks:
        ledger.lost(path, "eval", "prompt is missing" if checks else "expectations or expected_output is missing")
        return None
    title = next((data[key] for key in ("name", "eval_name", "id") if isinstance(data.get(key), str | int)), None)
    return {"id": ids.next(title), "input": prompt, "checks": checks}
