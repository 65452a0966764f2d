"""The command ``llmeval mcp``: the tools of a server as a file that is approved, compared and linted."""

import asyncio
import json
import os
from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.cli.console import CommandResult, amount, share, write_text
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import counted, unknown_name
from pytest_llmeval.services.secrets import has_secret
from pytest_llmeval.tasks.mcp.lint import KINDS, OVERLAP, lint
from pytest_llmeval.tasks.mcp.server import McpServer, approved_parts, as_text, drift, parts_by_name
from pytest_llmeval.tasks.routing.evaluator import ListedTool, read_catalogue

_FILE: Final = Path("tools.json")
_FILES: Final = (".json", ".yaml", ".yml")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
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
                type=share,
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
        action.add_argument("--timeout", type=amount, default=60.0, metavar="SECONDS", help="default: 60")
        what = (
            "COMMAND, URL, tools.json or a folder of skills" if name == "lint" else "COMMAND or URL, after all options"
        )
        action.add_argument("server", nargs=REMAINDER, metavar="SERVER", help=what)
        action.set_defaults(run=run, refuse=action.error, code_of_faults=2)


def _snapshot(options: Namespace) -> CommandResult:
    definitions = _definitions(options)
    secret = [str(each["name"]) for each in definitions["tools"] if has_secret(json.dumps(each, ensure_ascii=False))]
    if secret:
        raise LlmevalError(
            f"found what looks like a secret in the tool {secret[0]!r}, expected none: nothing is written"
        )
    write_text(options.file, [as_text(definitions)])
    data = {"written": [str(options.file)], "tools": [each["name"] for each in definitions["tools"]]}
    return CommandResult(0, data, [f"{options.file}: {counted(len(data['tools']), 'tool')}; commit it"])


def _check(options: Namespace) -> CommandResult:
    approved = approved_parts(options.file)
    now = parts_by_name(_definitions(options), options.file)
    lines = list(drift(approved, now, options.file))
    changed = [name for name in sorted(approved.keys() | now.keys()) if approved.get(name) != now.get(name)]
    unchanged = [f"{options.file}: {counted(len(approved), 'part')} as approved"]
    return CommandResult(1 if lines else 0, {"changed": changed, "diff": lines}, lines or unchanged)


def _lint(options: Namespace) -> CommandResult:
    for each in options.ignore:
        if each not in KINDS:
            options.refuse(unknown_name("kind", each, KINDS))
    only = Path(options.server[0]) if len(options.server) == 1 else None
    if only is not None and (only.suffix in _FILES or only.is_dir()):
        tools = list(read_catalogue(only).values())
    else:
        listed = _definitions(options)["tools"]
        tools = [ListedTool(each["name"], each.get("description", ""), each.get("inputSchema", {})) for each in listed]
    findings = [each for each in lint(tools, options.overlap) if each.kind not in options.ignore]
    summary = f"{counted(len(findings), 'finding')} in {counted(len(tools), 'tool')}"
    rows = [each._asdict() for each in findings]
    return CommandResult(1 if findings else 0, {"findings": rows}, [*findings, summary])


def _definitions(options: Namespace) -> dict[str, Any]:
    """Return instructions and tools of a server.

    Raises:
        LlmevalError: It does not answer, or the arguments are wrong.
    """
    words = options.server[1:] if options.server[:1] == ["--"] else options.server
    is_address = len(words) == 1 and words[0].startswith(("http://", "https://"))
    if not words:
        options.refuse("found no server, expected a command or an address")
    headers = dict(_header(each) for each in options.header_from_env)
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
    name, _, variable = text.partition("=")
    return name, _variable(variable)


def _variable(name: str) -> str:
    if not os.environ.get(name):
        raise LlmevalError(f"environment variable {name!r} is not set, expected the name of one that is")
    return os.environ[name]
