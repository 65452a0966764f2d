"""Write docs/options.md and the table of docs/reports.md: run it after adding an option or a format of reports."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pytest_llmeval.cli import OPTIONS
from pytest_llmeval.cli._options import Option
from pytest_llmeval.reports import ReportFormat
from pytest_llmeval.suites import Registry

PUBLISHED = Path(__file__).parents[1] / "docs/options.md"
REPORTS = PUBLISHED.with_name("reports.md")
_BEFORE, _AFTER = "| name | content |\n|---|---|\n", "\n\n- "
_TOP = """# Options

Options of `pytest --llmeval`, and those that commands share with it. Commands understand both names. The command line
takes precedence over pytest's configuration. Options of one command only are in its `--help`.

| option | also | meaning |
|---|---|---|
"""


@cache
def parsers() -> tuple[tuple[str, ArgumentParser], ...]:
    """Return every command, and every action of a command, with its parser."""
    found: list[tuple[str, ArgumentParser]] = []
    for name, command in Registry.installed().commands.items():
        parser = ArgumentParser(prog=f"llmeval {name}")
        command.configure(parser)
        found += _below(name, parser)
    return tuple(found)


def _below(name: str, parser: ArgumentParser) -> Iterator[tuple[str, ArgumentParser]]:
    yield name, parser
    for action in parser._actions:  # noqa: SLF001  # argparse has no other way to its subcommands
        if isinstance(action, _SubParsersAction):
            for below, each in action.choices.items():
                yield from _below(f"{name} {below}", each)


def commands_of(option: Option) -> list[str]:
    """Return the commands that have an option of the table."""
    names = set(option.command_names)
    return [
        name
        for name, parser in parsers()
        if any(names and names <= set(each.option_strings) for each in parser._actions)  # noqa: SLF001  # as above
    ]


def _cells(option: Option) -> Iterator[str]:
    value = option.metavar or ("MODE" if option.choices else "")
    end = "" if not value else f"[={value}]" if option.const is not None else f"={value}"
    yield ", ".join(f"`{name}{end}`" for name in option.pytest_names)
    name = next((each for each in option.command_names if each.startswith("--")), "")
    commands = ", ".join(f"`{each}`" for each in commands_of(option))
    also = [f"`{option.pytest_attribute}` in the configuration"] if option.setting is not None else []
    yield "; ".join([*also, *([f"`{name}` of {commands}"] if commands else [])])
    unexplained = [each for each in option.choices if each not in option.help]
    yield (f"{' or '.join(f'`{each}`' for each in option.choices)}: " if unexplained else "") + option.help


def text() -> str:
    """Return the page."""
    rows = [[cell.replace("|", r"\|").replace("*", r"\*") for cell in _cells(option)] for option in OPTIONS.values()]
    return _TOP + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def reports_page() -> str:
    """Return the page of reports with the table of formats."""
    before, start, after = REPORTS.read_text(encoding="utf-8").partition(_BEFORE)
    _, end, rest = after.partition(_AFTER)
    rows = []
    for name, form in sorted(ReportFormat.KNOWN.items()):
        content = f"[{form.meaning}](#{form.section})" if form.section else form.meaning
        rows.append(f"| `{f'report{name}' if name.startswith('.') else name}` | {content} |")
    return "".join([before, start, "\n".join(rows), end, rest])


if __name__ == "__main__":
    sys.stdout.write(f"{PUBLISHED.write_text(text(), encoding='utf-8')} characters\n")
    REPORTS.write_text(reports_page(), encoding="utf-8")
