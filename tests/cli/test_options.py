"""The table of options: pytest, its configuration, the commands and the documentation have what it declares."""

import os
import re
from argparse import ArgumentParser
from pathlib import Path
from typing import get_args

import pytest
from project import ROOT, script
from running import WITHOUT_UNUSED, Finished, run_python

from pytest_llmeval.cli import OPTIONS, main
from pytest_llmeval.cli._options import Option
from pytest_llmeval.judges import JudgeMode

PAGE = script("options_page")
COMMANDS = dict(PAGE.parsers())
HAVING = {name: PAGE.commands_of(option) for name, option in OPTIONS.items()}
OWN = {
    ("power", "--report"),  # a report that is read
    ("init", "--judge"),  # a model
    ("retrieval build-set", "--report"),  # the report of the set
}
"""Options of commands that have a name of the table and another meaning."""

REQUIRED = {
    "cache stats": (),
    "cache prune": ("--older-than", "1"),
    "cache verify": (),
    "cache export": ("v.jsonl",),
    "cache import": ("v.jsonl",),
    "cache explain": ("s.eval.yaml",),
    "judge migrate": ("s.eval.yaml", "--to", "openai:m"),
    "judge replies": ("results.jsonl",),
    "judge requests": (),
    "gate": ("results.jsonl",),
    "merge": ("shards",),
    "modes": (),
    "mutate": ("s.eval.yaml",),
    "score": ("s.eval.yaml",),
}
"""Arguments without which a command cannot be called."""

BAD = {
    "report": ("out.docx", "found suffix '.docx', expected one of .csv"),
    "mutate-seed": ("x", "found 'x', expected a whole number"),
    "concurrency": ("0", "found '0', expected a whole number of at least 1"),
    "budget": ("calls", "found 'calls', expected calls=NUMBER, tokens=NUMBER or usd=AMOUNT"),
    "media-limit": ("20", "found '20', expected MB of one file and of all, such as 20,500"),
    "cache": (
        "directry:verdicts",
        "unknown store directry, did you mean directory?",
    ),
    "judge": ("replya", "replya"),
    "annotations": ("none", "none"),
    "judge-model": ("gpt-5", "found 'gpt-5', expected PROVIDER:NAME"),
    "judge-base-url": ("host", "found 'host', expected an address"),
    "refresh": ("2", "found '2', expected a number between 0 and 1"),
    "shard": ("0/2", "found 0/2, expected I/N"),
    "stop": ("now", "now"),
    "family": ("repository", "repository"),
    "texts": ("some", "some"),
    "otel": ("spans", "spans"),
    "predictions-mode": ("reply", "reply"),
}
"""A value that an option refuses, and what the message says of it."""


def pytest_run(folder: Path, *arguments: str) -> Finished:
    return run_python(["-m", "pytest", "-p", "no:cacheprovider", *WITHOUT_UNUSED, *arguments], os.environ, folder)


@pytest.fixture(scope="module")
def help_of_pytest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return pytest_run(tmp_path_factory.mktemp("help"), "-p", "no:syrupy", "--help").out


@pytest.mark.parametrize("option", OPTIONS.values(), ids=list(OPTIONS))
def test_pytest_has_what_the_table_declares_for_it(option: Option, help_of_pytest: str) -> None:
    for name in option.pytest_names:
        assert re.search(rf"^  .*{name}\b(?!-)", help_of_pytest, re.MULTILINE), name
    in_ini = re.search(rf"^  {option.pytest_attribute} \(\w+\):", help_of_pytest, re.MULTILINE)
    assert bool(in_ini) == (option.setting is not None)
    if option.pytest_names:
        assert "".join(option.help.split()) in "".join(help_of_pytest.split())


def test_every_option_is_somewhere() -> None:
    nowhere = [name for name, option in OPTIONS.items() if not (option.pytest_names or option.setting or HAVING[name])]
    assert nowhere == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_options_of_the_table_under_all_their_names(command: str) -> None:
    shown = COMMANDS[command].format_help()
    names = {name: option for option in OPTIONS.values() for name in option.command_names}
    for action in COMMANDS[command]._actions:
        for each in set(action.option_strings) & names.keys():
            if (command, each) not in OWN:
                assert set(action.option_strings) == set(names[each].command_names)
                assert all(name in shown for name in action.option_strings)


def test_own_meanings_of_names_are_those_of_commands() -> None:
    assert {(command, name) for command, name in OWN if name not in COMMANDS[command]._option_string_actions} == set()


def test_pytests_own_names_stay_pytests() -> None:
    assert {name for option in OPTIONS.values() for name in option.pytest_names} >= {
        "--llmeval",
        "--llmeval-report",
        "--llmeval-budget",
    }
    assert not {"--report", "--budget", "--judge", "-v", "--rootdir"} & {
        name for option in OPTIONS.values() for name in option.pytest_names
    }


def test_the_page_of_options_is_that_of_the_table() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert page == PAGE.text(), "run python .ci/options_page.py"


def test_judge_modes_are_those_of_judges() -> None:
    assert OPTIONS["judge"].choices == get_args(JudgeMode)


def test_every_value_that_is_read_has_a_bad_one_here() -> None:
    reads = {name for name, option in OPTIONS.items() if option.choices or option.read not in (None, Path)}
    assert reads <= BAD.keys()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "spelling", "name"),
    [(command, spelling, name) for name in BAD for command in HAVING[name] for spelling in OPTIONS[name].command_names],
)
def test_a_bad_value_of_a_command_is_named_as_it_was_typed(
    command: str, spelling: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value, message = BAD[name]
    message = f"found {value!r}, expected one of" if OPTIONS[name].choices else message
    assert main([*command.split(), *REQUIRED[command], f"{spelling}={value}"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"{spelling}: {message}")


@pytest.mark.parametrize("name", [name for name in BAD if OPTIONS[name].pytest_names])
def test_a_bad_value_of_pytest_is_named_as_it_was_typed(name: str, tmp_path: Path) -> None:
    value, message = BAD[name]
    option = OPTIONS[name]
    done = pytest_run(tmp_path, "--llmeval", f"{option.pytest_names[0]}={value}")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert f"{option.pytest_names[0]}: " in done.err
    assert message in done.err
    if option.setting is not None:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{option.pytest_attribute} = {value}\n", encoding="utf-8")
        done = pytest_run(tmp_path, "--llmeval")
        assert done.code == pytest.ExitCode.USAGE_ERROR
        assert f"{option.pytest_attribute}: " in done.err
        assert message in done.err
        assert "--llmeval-" not in done.err


@pytest.mark.parametrize("spelling", OPTIONS["report"].command_names)
def test_values_are_read_under_each_name(spelling: str) -> None:
    parser = ArgumentParser()
    OPTIONS.add_to(parser, "report", "budget", "concurrency", OPTIONS["cache"]._replace(default=Path("x.sqlite3")))
    prefix = spelling.removesuffix("report")
    options = parser.parse_args([spelling, "a.json", f"{prefix}report=b.md", f"{prefix}concurrency", "3"])
    assert options.report == [Path("a.json"), Path("b.md")]
    assert (options.concurrency, options.budget, options.cache) == (3, None, Path("x.sqlite3"))
    assert parser.parse_args([]).report == ()
