"""The table of options.

pytest imports this module at its start, so it imports nothing of ours that is heavy, and compiles no pattern.
"""

import math
import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pytest_llmeval.reports import ReportFormat

if TYPE_CHECKING:
    from pytest_llmeval.judges import Budget
    from pytest_llmeval.suites import Registry


_NAMED = 5


class SuitePatterns(tuple[str, ...]):
    """Patterns of the names of suite files; as the setting ``llmeval_files`` has them, or those that ship."""

    SHIPPED: "ClassVar[SuitePatterns]"
    """The patterns without a setting."""

    def match(self, name: str) -> bool:
        """Whether a file of this name is a suite file."""
        return any(fnmatch(name, pattern) for pattern in self)

    def hint(self, path: str) -> str:
        """The fault in the name of a file that looks like a suite but is none, and the right name.

        Args:
            path: The file, as it is shown.
        """
        name = Path(path).name
        remedy = ""
        if self == SuitePatterns.SHIPPED:
            stem, suffix = Path(name).stem, Path(name).suffix.lower()
            bare = re.sub(r"(?:(?<![\W_])[\W_]++|(?<=[a-z])(?=E))(?i:eval(?:uation)?s?)$", "", stem)
            remedy = f". Rename it to {bare or stem}.eval{suffix}"
        return (
            f"{path} looks like an eval suite, but is not collected: its name matches none of {', '.join(self)}{remedy}"
        )

    def none_below(self, place: object) -> str:
        """The message on a folder without suite files, with the command that writes one."""
        return f"no {' or '.join(self[:1])} below {place}; `llmeval init` writes one"


SuitePatterns.SHIPPED = SuitePatterns(
    f"*.{kind}.{language}" for kind in ("eval", "llmeval") for language in ("yaml", "yml", "json")
)


def left_alone(files: Sequence[str]) -> str:
    """The message on files with the name of a suite file that seem to belong to other tools."""
    count = "1 file looks like that" if len(files) == 1 else f"{len(files)} files look like those"
    which = "of another tool and was" if len(files) == 1 else "of other tools and were"
    names = ", ".join([*files[:_NAMED], *(["..."] if len(files) > _NAMED else [])])
    return f"{count} {which} left alone: {names} (the setting llmeval_files names the files of suites)"


class Setting(NamedTuple):
    """The form of an option in pytest's configuration.

    Attributes:
        help: One line for ``pytest --help``; default: that of the option.
        type: As `pytest.Parser.addini` names it.
        default: The value of a configuration without it.
    """

    help: str = ""
    type: str | None = None
    default: Any = None


class Option(NamedTuple):
    """An option of pytest or of commands.

    Attributes:
        name: Commands have it as ``--NAME`` and ``--llmeval-NAME``, pytest as ``--llmeval-NAME``.
        help: One line for ``--help``.
        action: The action of argparse.
        metavar: Stands for the value.
        choices: Possible values.
        const: The value of the option without a value; ``None`` if it needs one.
        default: The value without the option, or a text that `read` makes it of.
        read: From a text to the value; raises `ValueError` without the name of the option.
        setting: Its form in pytest's configuration, if any.
        spellings: Names other than those that follow from `name`.
        destination: Name of its value in pytest, where another plugin determines it.
        command_help: One line for the help of commands, if different.
    """

    name: str
    help: str
    action: str = "store"
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    const: str | None = None
    default: Any = None
    read: Callable[[str], Any] | None = None
    setting: Setting | None = None
    spellings: tuple[str, ...] | None = None
    destination: str = ""
    command_help: str = ""

    @property
    def command_names(self) -> tuple[str, ...]:
        """The names of the option in commands."""
        return (f"--{self.name}", f"--llmeval-{self.name}") if self.spellings is None else self.spellings

    @property
    def pytest_names(self) -> tuple[str, ...]:
        """The names of the option in pytest, which has options of its own and of other plugins."""
        return tuple(name for name in self.command_names if name.startswith(("--llmeval", "--snapshot-")))

    @property
    def attribute(self) -> str:
        """The name of its value in what a command reads."""
        return self.name.replace("-", "_")

    @property
    def pytest_attribute(self) -> str:
        """The name of its value in pytest, and in pytest's configuration."""
        return self.destination or (self.name if self.name == "llmeval" else f"llmeval_{self.attribute}")

    @property
    def absent(self) -> Any:
        """The value of the option if it is not given."""
        return self.default if self.read is None or not isinstance(self.default, str) else self.read(self.default)

    def value(self, text: str) -> Any:
        """The value of the option's text.

        Raises:
            ValueError: It has none.
        """
        if self.choices and text not in self.choices:
            raise ValueError(f"found {text!r}, expected one of {', '.join(self.choices)}")
        return text if self.read is None else self.read(text)

    def arguments(self) -> dict[str, Any]:
        """The keywords for the option that the parsers of pytest and of commands have in common."""
        keywords = {"action": self.action, "metavar": self.metavar, "choices": self.choices or None}
        if self.const is not None:
            keywords |= {"nargs": "?", "const": self.const}
        return {name: value for name, value in keywords.items() if value is not None}


def _report_path(text: str) -> Path:
    """Read the option ``report``: the path of a report, whose suffix or name chooses its format."""
    return _registry().report_path(text)


def _registry() -> "Registry":
    """The registry of everything that suites can name, installed plugins included.

    Raises:
        ValueError: An installed plugin cannot be loaded.
    """
    from pytest_llmeval.core import EvaluatorError
    from pytest_llmeval.suites import Registry

    try:
        return Registry.installed()
    except EvaluatorError as error:
        raise ValueError(str(error)) from None


def _cache_place(text: str) -> Any:
    """Read the option ``cache``: the place where verdicts of judges are stored."""
    from pytest_llmeval.judges import CachePlace

    try:
        return CachePlace.parse(text)
    except ValueError:
        _registry()  # plugins may bring the store
        return CachePlace.parse(text)


def _budget(text: str) -> Any:
    """Read the option ``budget``: limits on calls, tokens or cost of judges."""
    return parse_budget([text])


def _media_limits(text: str) -> Any:
    """Read the option ``media-limit``: megabytes of one image, sound or document, and of all in a run."""
    from pytest_llmeval.core import MediaLimits

    match = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})", text, re.ASCII)
    if match is None or not 0 < int(match[1]) <= int(match[2]):
        raise ValueError(f"found {text!r}, expected MB of one file and of all, such as 20,500")
    return MediaLimits(int(match[1]) * 10**6, int(match[2]) * 10**6)


def _judge_model(text: str) -> str:
    """Read the option ``judge-model``, whose provider a plugin may bring."""
    from pytest_llmeval.judges import JudgeSpec

    if JudgeSpec.model_fault(text):
        _registry()  # plugins may bring the provider
    return _faultless(text, JudgeSpec.model_fault)


def _judge_address(text: str) -> str:
    """Read the option ``judge-base-url``: the address of the judge's server."""
    from pytest_llmeval.judges import JudgeSpec

    return _faultless(text, JudgeSpec.url_fault)


def _faultless(text: str, fault_of: Callable[[str], str | None]) -> str:
    """The text of a command-line option, after a check that raises its fault as `ValueError`."""
    if fault := fault_of(text):
        raise ValueError(fault)
    return text


def _at_least_one(text: str) -> int:
    """Read a command-line option that is a whole number of at least 1, such as ``concurrency``."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def _whole_number(text: str) -> int:
    """Read a command-line option that is a whole number, such as ``mutate-seed``."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {text!r}, expected a whole number") from None


def _share(text: str) -> float:
    """Read a command-line option that is a share between 0 and 1, such as ``refresh``."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"found {text!r}, expected a number between 0 and 1")
    return share


class _Value(Action):
    """An option of a command of ``llmeval`` that is read at once; a fault names it as the user typed it."""

    def __init__(self, *, option: Option, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.option = option

    def __call__(
        self, _parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        from pytest_llmeval.core import OptionError

        try:
            value = self.option.value(values)
        except ValueError as error:
            raise OptionError(f"{option_string}: {error}") from None
        repeats = self.option.action == "append"
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), value] if repeats else value)


class OptionTable(dict[str, Option]):
    """Options by name."""

    def add_to(self, parser: ArgumentParser, *options: str | Option) -> None:
        """Add options to the parser of a command, each under both of its names.

        Args:
            parser: Of the command.
            options: Names in the table; or an option of it with what differs in this command.
        """
        for name_or_option in options:
            option = self[name_or_option] if isinstance(name_or_option, str) else name_or_option
            keywords = option.arguments()
            if option.choices:
                keywords |= {"choices": None, "metavar": f"{{{','.join(option.choices)}}}"}
            if option.read is not None or option.choices:
                keywords |= {"action": _Value, "option": option}
            text = option.command_help or option.help
            parser.add_argument(
                *option.command_names, dest=option.attribute, default=option.absent, help=text, **keywords
            )


_SUFFIXES = ", ".join(sorted(name for name in ReportFormat.KNOWN if name.startswith(".")))
_NAMES = "; ".join(f"{name} is {form.meaning}" for name, form in ReportFormat.KNOWN.items() if not name.startswith("."))
_REPORT = f"write a report; its name chooses the format: {_SUFFIXES}. {_NAMES}"


OPTIONS = OptionTable(
    (option.name, option)
    for option in (
        Option(
            "llmeval",
            "collect eval suites, datasets of test cases with assertions (*.eval.yaml, *.llmeval.yaml; .yml and .json)",
            "store_true",
            setting=Setting("collect eval suites, as with --llmeval", "bool", default=False),
            spellings=("--llmeval",),
        ),
        Option(
            "report",
            f"{_REPORT}. {ReportFormat.SHARD_SUFFIX} keeps the results of a "
            "shard for 'llmeval merge'. {suite} in a path writes a file for each suite. agent prints at most 40 lines "
            "and nothing else. Repeatable",
            "append",
            metavar="PATH",
            default=(),
            read=_report_path,
            command_help=f"{_REPORT}; can be repeated",
        ),
        Option(
            "shard",
            "run the I-th of N shards of the cases; auto or auto/N: as the variables of Slurm, GitLab CI or "
            "Kubernetes say; 'llmeval merge' judges all shards together",
            metavar="I/N",
        ),
        Option(
            "plan",
            "call and run nothing; print the calls, tokens, cost and time that are missing, beside the budget",
            "store_true",
            default=False,
        ),
        Option(
            "affected",
            "run the cases that a change can affect; the others have the results approved at REF (default: the merge "
            "base with the main branch), or of a file RUN.llmeval",
            metavar="REF",
            const="",
            command_help="commit, or file RUN.llmeval, to compare with; default: the merge base with the main branch",
        ),
        Option(
            "refresh",
            "with --llmeval-affected: also run this share of the other cases, between 0 and 1, drawn anew every day",
            metavar="SHARE",
            default=0.0,
            read=_share,
        ),
        Option(
            "stop",
            "decided: run the cases of each suite in random order, until its gates are decided; never: run all cases, "
            "ignoring `stop` in suites",
            choices=("decided", "never"),
        ),
        Option(
            "texts",
            "test cases whose input, expected and prediction are written to reports (default: failing)",
            choices=("none", "failing", "all"),
            default="failing",
        ),
        Option(
            "otel",
            "send the scores to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names: as events of OpenTelemetry, or "
            "as annotations of OpenInference (needs the extra otel)",
            choices=("events", "annotations"),
            const="events",
        ),
        Option(
            "annotations",
            "in a job of GitHub, annotate the lines of up to ten failures (default: on)",
            choices=("on", "off"),
            default="on",
        ),
        Option(
            "predictions",
            "JSONL file to record predictions in and replay them from",
            metavar="PATH",
            read=Path,
        ),
        Option(
            "predictions-mode",
            "auto: replay recorded predictions, and call the target for other cases. replay: never call it. record: "
            "call it for every case. refresh: as record, and drop all other recordings of the suites that ran",
            choices=("auto", "replay", "record", "refresh"),
            default="auto",
        ),
        Option(
            "require-gates",
            "fail if a gate is not evaluated, also where -k, -m or a path selects a part of the cases (for CI)",
            "store_true",
            default=False,
            command_help="fail if a gate is not evaluated",
        ),
        Option(
            "family",
            "correct for multiple comparisons over the regression gates (max_drop) of each suite, or of all suites of "
            "the project (default: suite). An equally good run fails no more often than with one gate",
            choices=("suite", "project"),
            setting=Setting(),
        ),
        Option(
            "mutate",
            "break the answers of the run on purpose, and report what suites miss; no target "
            "and no judge is asked about them",
            "store_true",
            default=False,
            command_help="break the answers of shards that ran with --llmeval-mutate, and report what suites miss",
        ),
        Option(
            "mutate-seed",
            "seed of --llmeval-mutate (default: 0)",
            command_help="seed of --mutate (default: 0)",
            metavar="N",
            default=0,
            read=_whole_number,
        ),
        Option(
            "judge",
            "auto: use stored verdicts, and call the judge for others. replay: use recordings only. record: as auto, "
            "and record the verdicts. refresh: ignore stored verdicts and ask again. off: use no judge. defer: use "
            "stored verdicts, and write requests for the others in the form of the provider's batch interface",
            choices=("auto", "replay", "record", "refresh", "off", "defer"),
            default="auto",
            setting=Setting(),
        ),
        Option(
            "judge-model",
            "override the model of the suites' LLM judges",
            metavar="PROVIDER:NAME",
            read=_judge_model,
            setting=Setting(),
        ),
        Option(
            "judge-base-url",
            "override the address of the judge",
            metavar="URL",
            read=_judge_address,
            setting=Setting(),
        ),
        Option(
            "concurrency",
            "maximum concurrent calls of judges and targets in all workers (default: 16)",
            metavar="N",
            default=16,
            read=_at_least_one,
            setting=Setting(),
            command_help="calls at a time (default: 16)",
        ),
        Option(
            "budget",
            "spending limit for judges, such as calls=500,tokens=200000,usd=2.50",
            metavar="LIMITS",
            read=_budget,
            setting=Setting(),
        ),
        Option(
            "media-limit",
            "largest image, sound or document, and all of a run, in MB (default: 20,500)",
            metavar="FILE,RUN",
            default="20,500",
            read=_media_limits,
            setting=Setting(),
        ),
        Option(
            "cache",
            "cache of verdicts, a file or directory:PATH (default: .llmeval/cache.sqlite3 in rootdir)",
            metavar="PATH",
            default=".llmeval/cache.sqlite3",
            read=_cache_place,
            setting=Setting(),
            command_help="cache of verdicts, a file or directory:PATH; default: .llmeval/cache.sqlite3",
        ),
        Option(
            "snapshot-anchor",
            "with --snapshot-update: measure slow regressions (drift) from this run on, and forget those so far",
            "store_true",
            default=False,
            spellings=("--snapshot-anchor", "--llmeval-new-anchor"),
        ),
        Option(
            "snapshot-update",
            "approve the scores of this run as the baseline",
            "store_true",
            default=False,
            command_help="approve the scores of the run as the baseline",
            spellings=("--snapshot-update",),
            destination="update_snapshots",
        ),
        Option(
            "files",
            "name patterns of suite files",
            setting=Setting("name patterns of suite files", "args", list(SuitePatterns.SHIPPED)),
            spellings=(),
        ),
        Option(
            "snapshots",
            "score snapshots for suites without 'snapshot'",
            setting=Setting("score snapshots for suites without 'snapshot'", "bool", default=False),
            spellings=(),
        ),
        Option(
            "rootdir",
            "pytest's rootdir; default: the nearest folder, from here upwards, that has the suite files",
            read=Path,
            spellings=("--rootdir",),
        ),
        Option("verbose", "show more, as with pytest", "count", default=0, spellings=("-v", "--verbose")),
    )
)
"""Every option by its name; a new one is an entry here, and its use."""


def parse_budget(texts: Iterable[str]) -> "Budget":
    """Read a budget: ``calls=500``, ``tokens=200000`` or ``usd=2.50``, several separated by commas.

    Raises:
        ValueError: A part is something else, or a unit is limited twice.
    """
    from pytest_llmeval.judges import Budget

    limits: dict[str, float] = {}
    for text in (part.strip() for argument in texts for part in argument.split(",")):
        match = re.match(r"(?P<unit>calls|tokens|usd)=(?P<amount>\d+(?:\.\d+)?)$", text, re.ASCII)
        if match is None or not math.isfinite(amount := float(match["amount"])):
            raise ValueError(f"found {text!r}, expected calls=NUMBER, tokens=NUMBER or usd=AMOUNT")
        if match["unit"] in limits:
            raise ValueError(f"found {match['unit']} twice, expected only one limit in this unit")
        if match["unit"] != "usd" and not amount.is_integer():
            raise ValueError(f"found {text!r}, expected a whole number of {match['unit']}")
        limits[match["unit"]] = amount
    calls, tokens = limits.get("calls"), limits.get("tokens")
    return Budget(
        calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        usd=limits.get("usd"),
    )
