"""The command ``llmeval mcp``.

Lint reports what keeps a model from choosing the right tool or skill, and what its context must not have.
"""

import asyncio
import json
import os
import re
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.cli import CommandResult, NumberArgument
from pytest_llmeval.core import LlmevalError, counted, excerpt, unknown_name
from pytest_llmeval.data import OutputFile
from pytest_llmeval.services import Secrets
from pytest_llmeval.tasks.agents import ListedTool, read_catalogue
from pytest_llmeval.tasks.mcp._server import McpServer, approved_parts, as_text, drift, parts_by_name

_FILE: Final = Path("tools.json")
_FILES: Final = (".json", ".yaml", ".yml")

KINDS: Final = ("description", "type", "overlap", "secret", "instruction", "invisible")
OVERLAP: Final = 0.7
"""Share of common words from which on two descriptions are too much alike."""

_FEWEST_WORDS: Final = 3
_DEEPEST: Final = 20
_WORDS: Final = re.compile(r"(?i)\b(?!(?:an?|and|are|as|by|for|from|in|is|it|of|on|or|that|the|this|to|with)\b)\w+")
"""Words that are no fillers."""

_SHAPES: Final = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_INSTRUCTIONS: Final = {
    "sets other instructions aside": r"\b(ignore|disregard|forget|override)\b.{0,30}\b(instructions?|prompts?|rules)\b",
    "hides something from the user": (
        r"\b(do not|don't|never|without) (tell|mention|inform|reveal|show)(ing)?\b.{0,30}\buser\b"
    ),
    "speaks of other tools": r"\b(before|after|instead of|rather than) (using |calling )?((any|all) )?other tools?\b",
    "asks to be preferred": r"\balways (call|use|prefer|choose|pick) this\b",
    "uses a tag of instructions": r"</? *(important|system|instructions?|assistant) *>",
    "speaks of the system prompt": r"\bsystem prompt\b",
    "names files with keys": r"~/\.ssh|\bid_rsa\b|(?<!\w)\.env\b|\.aws/credentials",
}
"""What texts for a model must not do, to how they do it; white space counts as one space."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions of ``llmeval mcp``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, run, text in (
        ("snapshot", _snapshot, "approve the tools of a server: write them to a file that is committed"),
        ("check", _check, "fail with a diff if a name, description or schema is not the approved one"),
        ("lint", _lint, "list what keeps a model from choosing the right tool"),
    ):
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == "lint":
            action.add_argument("--ignore", action="append", default=[], metavar="KIND", help=", ".join(KINDS))
            action.add_argument(
                "--overlap",
                type=NumberArgument(share=True),
                default=OVERLAP,
                help=f"common words from which on two descriptions are too much alike; default: {OVERLAP}",
            )
        else:
            action.add_argument("--file", type=Path, default=_FILE, metavar="FILE", help=f"default: {_FILE}")
        action.add_argument(
            "--url", default="", help="address of the server that COMMAND starts; {port} is a free port"
        )
        action.add_argument("--env", action="append", default=[], metavar="NAME", help="variable that COMMAND gets")
        action.add_argument(
            "--header-from-env", action="append", default=[], metavar="NAME=VARIABLE", help="header of HTTP"
        )
        action.add_argument(
            "--timeout", type=NumberArgument(least=0), default=60.0, metavar="SECONDS", help="default: 60"
        )
        what = (
            "COMMAND, URL, tools.json or a folder of skills" if name == "lint" else "COMMAND or URL, after all options"
        )
        action.add_argument("server", nargs=REMAINDER, metavar="SERVER", help=what)
        action.set_defaults(run=run, refuse=action.error, code_of_faults=2)


def _snapshot(options: Namespace) -> CommandResult:
    """Run ``llmeval mcp snapshot``: write an MCP server's tool definitions to a file, unless they show a secret."""
    definitions = _definitions(options)
    secrets = Secrets.of_variables()
    secret = [
        str(tool["name"]) for tool in definitions["tools"] if secrets.are_in(json.dumps(tool, ensure_ascii=False))
    ]
    if secret:
        raise LlmevalError(
            f"found what looks like a secret in the tool {secret[0]!r}, expected none: nothing is written"
        )
    OutputFile(options.file).save_text([as_text(definitions)])
    data = {"written": [str(options.file)], "tools": [tool["name"] for tool in definitions["tools"]]}
    return CommandResult(0, data, [f"{options.file}: {counted(len(data['tools']), 'tool')}; commit it"])


def _check(options: Namespace) -> CommandResult:
    """Run ``llmeval mcp check``: compare an MCP server's tool definitions with the approved file."""
    approved = approved_parts(options.file)
    now = parts_by_name(_definitions(options), options.file)
    lines = list(drift(approved, now, options.file))
    changed = [name for name in sorted(approved.keys() | now.keys()) if approved.get(name) != now.get(name)]
    unchanged = [f"{options.file}: {counted(len(approved), 'part')} as approved"]
    return CommandResult(1 if lines else 0, {"changed": changed, "diff": lines}, lines or unchanged)


def _lint(options: Namespace) -> CommandResult:
    """Run ``llmeval mcp lint``: report faults in the names, descriptions and schemas of tools."""
    for kind in options.ignore:
        if kind not in KINDS:
            options.refuse(unknown_name("kind", kind, KINDS))
    only = Path(options.server[0]) if len(options.server) == 1 else None
    if only is not None and (only.suffix in _FILES or only.is_dir()):
        tools = list(read_catalogue(only).values())
    else:
        listed = _definitions(options)["tools"]
        tools = [ListedTool(tool["name"], tool.get("description", ""), tool.get("inputSchema", {})) for tool in listed]
    findings = [finding for finding in lint(tools, options.overlap) if finding.kind not in options.ignore]
    summary = f"{counted(len(findings), 'finding')} in {counted(len(tools), 'tool')}"
    rows = [finding._asdict() for finding in findings]
    return CommandResult(1 if findings else 0, {"findings": rows}, [*findings, summary])


def _definitions(options: Namespace) -> dict[str, Any]:
    """Ask an MCP server for its instructions and tools.

    Raises:
        LlmevalError: It does not answer, or the arguments are wrong.
    """
    words = options.server[1:] if options.server[:1] == ["--"] else options.server
    is_address = len(words) == 1 and words[0].startswith(("http://", "https://"))
    if not words:
        options.refuse("a server is missing: name its command or address")
    headers = dict(_header(header) for header in options.header_from_env)
    server = McpServer(
        () if is_address else words,
        url=words[0] if is_address else options.url,
        environment={name: _variable(name) for name in options.env},
        headers=headers,
        folder=Path.cwd(),
        timeout=options.timeout,
    )
    return asyncio.run(server.definitions())


def _header(text: str) -> tuple[str, str]:
    """An HTTP header for an MCP server, with its value from the environment variable that the option names."""
    name, _, variable = text.partition("=")
    return name, _variable(variable)


def _variable(name: str) -> str:
    """The value of an environment variable for an MCP server; an unset one is an error of the command."""
    if not os.environ.get(name):
        raise LlmevalError(f"environment variable {name!r} is not set, expected the name of one that is")
    return os.environ[name]


class LintFinding(NamedTuple):
    """A fault that ``llmeval mcp lint`` found in a tool's name, description or schema.

    Attributes:
        tool: Name of the tool.
        field: Where: ``description``, or ``parameters.NAME`` with nested names.
        kind: One of `KINDS`.
        message: What is wrong, and what to do.
    """

    tool: str
    field: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.field}: {self.message} ({self.kind})"


def lint(tools: Iterable[ListedTool], overlap: float = OVERLAP) -> list[LintFinding]:
    """Find faults in names, descriptions and schemas of an MCP server's tools, sorted by tool.

    Args:
        tools: The list that a model is shown.
        overlap: Share of common words of two descriptions from which on they are reported, above 0.
    """
    listed = sorted(tools, key=lambda tool: tool.name)
    findings = [finding for tool in listed for finding in _of_tool(tool)]
    words = [frozenset(map(str.lower, _WORDS.findall(tool.description))) for tool in listed]
    for (tool, own), (other, others) in combinations(zip(listed, words, strict=True), 2):
        common = len(own & others) / len(own | others) if own | others else 0.0
        if common >= overlap:
            message = f"shares {common:.0%} of its words with {other.name!r}: say in both when to use which"
            findings.append(LintFinding(tool.name, "description", "overlap", message))
    return sorted(findings)


def _of_tool(tool: ListedTool) -> Iterator[LintFinding]:
    """Yield the lint findings of one tool: its name, description and parameter schema."""
    if len(_WORDS.findall(tool.description)) < _FEWEST_WORDS:
        subject = repr(tool.description) if tool.description.strip() else "none"
        message = f"found {subject}: say what the tool does, and when to use it"
        yield LintFinding(tool.name, "description", "description", message)
    for field, text in [("name", tool.name), ("description", tool.description), *_texts(tool.parameters, "parameters")]:
        yield from (LintFinding(tool.name, field, kind, message) for kind, message in _in_text(text))
    for field, kind, message in _in_schema(tool.parameters, "parameters"):
        yield LintFinding(tool.name, field, kind, message)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and message of text in a tool's definition that does not belong in a model's prompt."""
    if Secrets.of_variables().are_in(text):
        yield "secret", "looks like a secret: remove it, and replace it where it is valid"
    if match := _INVISIBLE.search(text):
        yield "invisible", f"has the invisible character U+{ord(match.group()):04X}: remove it"
    flat = " ".join(text.split())
    for why, pattern in _INSTRUCTIONS.items():
        if match := re.search(pattern, flat, re.IGNORECASE):
            yield "instruction", f"{why} ({excerpt(match.group(), 60)!r}): describe this tool only"


def _texts(value: Any, field: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield all texts of a tool's parameter schema with their places, for lint."""
    if isinstance(value, str):
        yield field, value
    elif depth < _DEEPEST:
        pairs: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            pairs = ((name, item) for name, item in value.items() if not isinstance(item, str) or name != "type")
        elif isinstance(value, Sequence):
            pairs = enumerate(value)
        for name, item in pairs:
            yield from _texts(item, f"{field}.{name}", depth + 1)


def _in_schema(schema: Mapping[str, Any], field: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield field, kind and message of a tool's parameters without a type or a description."""
    properties = schema.get("properties")
    for name, parameter in (properties if isinstance(properties, Mapping) and depth < _DEEPEST else {}).items():
        place = f"{field}.{name}"
        if not isinstance(parameter, Mapping):
            yield place, "type", "the schema is missing: add its type"
            continue
        if not any(key in parameter for key in _SHAPES):
            yield place, "type", "type is missing: add one, such as string"
        if not str(parameter.get("description") or "").strip() and "$ref" not in parameter:
            yield place, "description", "description is missing: say what the value means, its unit or its form"
        items = parameter.get("items")
        yield from _in_schema(parameter, place, depth + 1)
        yield from _in_schema(items if isinstance(items, Mapping) else {}, f"{place}[]", depth + 1)
