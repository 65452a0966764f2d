"""The command ``llmeval cache``: inspecting and maintaining stored verdicts."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say
from pytest_llmeval.cli.options import add_options
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_llmeval.cli.cache_import import SuiteQuestions
    from pytest_llmeval.judge.replies import ReplyStore
    from pytest_llmeval.judge.stored_judgement import StoredJudgement

_DAY_S = 86_400
_HEX = frozenset("0123456789abcdef")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True)
    shared = ArgumentParser(add_help=False)
    add_options(shared, "cache")

    def add(name: str, text: str) -> ArgumentParser:
        return actions.add_parser(name, help=text, description=text, parents=[shared])

    add("stats", "count verdicts, tokens and cost, by mode and model").set_defaults(run=_stats)
    prune = add("prune", "delete verdicts by age, by model, or both")
    prune.add_argument("--older-than", type=_days, metavar="DAYS", help="older than DAYS")
    prune.add_argument("--model", metavar="PROVIDER:NAME", help="verdicts of this model")
    prune.set_defaults(run=_prune, refuse=prune.error)
    add("verify", "list damaged verdicts; the exit code is 1 if there are any").set_defaults(run=_verify)
    export = add("export", "write all verdicts as JSONL, in the format of recordings")
    export.add_argument("file", type=Path, metavar="FILE")
    export.set_defaults(run=_export)
    _add_import(add("import", "add verdicts from a JSONL file, or scores from a JSON file {question_id: score}"))
    explain = add("explain", "show what keys are made of, and which verdicts of a suite are stored")
    explain.add_argument("what", metavar="FILE_OR_KEY", help="a suite, a recordings file, or the beginning of a key")
    explain.add_argument("--model", metavar="PROVIDER:NAME", help="override the judge model of the suite")
    explain.set_defaults(run=_explain)


def _add_import(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--suite", type=Path, metavar="FILE", help="the suite of the scored cases")
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME", help="judge model that gave the scores (default: the suite's)"
    )
    parser.set_defaults(run=_import, refuse=parser.error)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise ArgumentTypeError(f"found {text!r}, expected a number of days of at least 0")
    return days


@contextmanager
def _opened(options: Namespace, *, absent: bool = False) -> "Iterator[ReplyStore]":
    """Open the cache; create a missing one only with `absent`."""
    if not absent and not options.cache.exists():
        raise LlmevalError(f"found no judge cache {options.cache}, expected one: name it with --cache")
    with closing(options.cache.open()) as replies:
        yield replies


def _stats(options: Namespace) -> int:
    from tabulate import tabulate

    groups: dict[tuple[str, str], list[StoredJudgement]] = defaultdict(list)
    with _opened(options) as cache:
        for entry in cache.entries():
            groups[entry.components["mode"], entry.components["model"]].append(entry)
    rows = [(*(printable(each) for each in name), *_sums(entries)) for name, entries in sorted(groups.items())]
    everything = [entry for entries in groups.values() for entry in entries]
    if len(rows) > 1:
        rows.append(("all", "", *_sums(everything)))
    names = ("mode", "model", "verdicts", "bytes", "input tokens", "output tokens", "USD")
    if rows:
        say(tabulate(rows, names, disable_numparse=True, colalign=("left", "left", *["right"] * 5)).split("\n"))
    say([f"{options.cache}: {counted(len(everything), 'verdict')}, {options.cache.size()} bytes"])
    return 0


def _sums(entries: "list[StoredJudgement]") -> tuple[str, ...]:
    tokens = [(entry.usage.input_tokens, entry.usage.output_tokens) for entry in entries]
    costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
    size = sum(len(entry.reply.encode("utf-8", "surrogatepass")) for entry in entries)
    spent = [[part for part in column if part is not None] for column in zip(*tokens, strict=True)]
    counts = [str(sum(column)) if column else "n/a" for column in spent]
    return str(len(entries)), str(size), *counts, f"{sum(costs):.6f}" if costs else "n/a"


def _prune(options: Namespace) -> int:
    if options.older_than is None and options.model is None:
        options.refuse("choose what to delete: --older-than DAYS, --model PROVIDER:NAME, or both")
    older = None if options.older_than is None else options.older_than * _DAY_S
    with _opened(options) as cache:
        deleted = cache.prune(older, options.model)
    say([f"{options.cache}: {counted(deleted, 'verdict')} deleted"])
    return 0


def _verify(options: Namespace) -> int:
    with _opened(options) as cache:
        faults = cache.verify()
        good = sum(1 for _ in cache.entries())
    say(f"{options.cache}: {fault}" for fault in faults)
    say([f"{options.cache}: {counted(len(faults), 'fault') if faults else 'no fault'}, {counted(good, 'verdict')}"])
    return 1 if faults else 0


def _export(options: Namespace) -> int:
    from pytest_llmeval.judge.recordings import write_judgements

    if options.file.is_dir():
        raise LlmevalError(f"{options.file}  found a directory, expected a file to write")
    if options.file.exists() and options.cache.exists() and options.file.samefile(options.cache.path):
        raise LlmevalError(f"found the cache {options.file} as output file, expected another file")
    with _opened(options) as cache:
        entries = list(cache.entries())
    write_judgements(options.file, entries)
    say([f"{options.file}: {counted(len(entries), 'verdict')}"])
    return 0


def _import(options: Namespace) -> int:
    from pytest_llmeval.judge.recordings import Judgements

    if not options.file.exists():
        raise LlmevalError(f"found no file {options.file}, expected one with verdicts or scores")
    if options.file.suffix == ".jsonl":
        if options.suite is not None or options.model is not None:
            options.refuse("--suite and --model apply to a JSON file of scores, not to JSONL")
        return _keep(options, list(Judgements.read(options.file).entries.values()))
    if options.suite is None:
        options.refuse("a file of scores does not contain the questions: name the suite of the cases with --suite")
    return _import_scores(options)


def _import_scores(options: Namespace) -> int:
    from pytest_llmeval.cli.cache_import import import_scores
    from pytest_llmeval.judge.recordings import ScoreFile

    questions = _questions(options, options.suite)
    if len(questions.models) > 1:
        options.refuse(f"found a panel of judges, expected --model with one of them: {', '.join(questions.models)}")
    found = import_scores(questions, ScoreFile.open(options.file).scores, options.file.name)
    _keep(options, found.entries)
    if found.ruled:
        say([f"{counted(len(found.ruled), 'score')} not needed: a rule decides the case"])
    if found.without:
        say([f"{counted(len(found.without), 'case')} without a score: {', '.join(found.without)}"])
    say((f"{options.file}: {fault}" for fault in found.faults), error=True)
    return 1 if found.faults else 0


def _questions(options: Namespace, path: Path) -> "SuiteQuestions":
    """Return the questions of a suite; a cache that does not exist is not made for them."""
    from pytest_llmeval.cli.cache_import import suite_questions

    if not options.cache.exists():
        return suite_questions(path, options.model)
    with _opened(options) as cache:
        return suite_questions(path, options.model, cache.get)


def _keep(options: Namespace, entries: "list[StoredJudgement]") -> int:
    """Add verdicts; existing ones are kept, since they may come from a real judge."""
    with _opened(options, absent=True) as cache:
        new = [entry for entry in entries if cache.get(entry.key) is None]
        cache.put(new)
    old = len(entries) - len(new)
    say([f"{options.cache}: {counted(len(new), 'verdict')} added" + (f", {old} there already" if old else "")])
    return 0


def _explain(options: Namespace) -> int:
    from pytest_llmeval.judge.recordings import Judgements

    path = Path(options.what)
    if path.suffix == ".jsonl" and path.is_file():
        return _show(sorted(Judgements.read(path).entries.values(), key=lambda entry: (entry.case, entry.key)))
    if path.is_file():
        return _explain_suite(options, path)
    if not options.what or not set(options.what) <= _HEX:
        raise LlmevalError(
            f"found no file {options.what}, expected a suite, a recordings file, or the beginning of a key"
        )
    with _opened(options) as cache:
        entries = [entry for entry in cache.entries() if entry.key.startswith(options.what)]
    if not entries:
        raise LlmevalError(f"found no key in {options.cache} that begins with {options.what}")
    return _show(sorted(entries, key=lambda entry: entry.key))


def _show(entries: "Iterable[StoredJudgement]") -> int:
    from tabulate import tabulate

    for entry in entries:
        parts = dict(entry.components)
        texts = {f"text {name}": digest for name, digest in parts.pop("texts").items()}
        given = {f"parameter {name}": value for name, value in parts.pop("parameters").items()}
        rows = [(printable(name), printable(str(value))) for name, value in {**parts, **given, **texts}.items()]
        say([f"{entry.key}, score {entry.score:g}, case {entry.case}"])
        say([*tabulate([("", *row) for row in rows], tablefmt="plain", disable_numparse=True).split("\n"), ""])
    return 0


def _explain_suite(options: Namespace, path: Path) -> int:
    from tabulate import tabulate

    found = _questions(options, path)
    cached: set[str] = set()
    if options.cache.exists():
        with _opened(options) as cache:
            cached = {each.question.key for each in found.questions if cache.get(each.question.key) is not None}
    rows, missing = [], []
    panel = len(found.models) > 1
    for each in found.questions:
        asked = each.question
        recorded = found.recordings.get(asked.key) is not None
        stores = [name for name, has in (("recorded", recorded), ("cached", asked.key in cached)) if has]
        juror = (asked.juror.model,) if panel else ()
        row = (
            _place(each.case.id, each.system),
            each.evaluator,
            *juror,
            asked.question.mode.name,
            str(asked.repeat),
            asked.key,
        )
        rows.append((*map(printable, row), ", ".join(stores) or "to be asked"))
        if not recorded:
            why = found.recordings.nearest(asked.case, asked.components())
            missing.append(f"{_place(each.case.id, each.system)}: {why}")
    if rows:
        names = ("case", "evaluator", *(("judge",) if panel else ()), "mode", "repeat", "key", "stored")
        say(tabulate(rows, names, disable_numparse=True).split("\n"))
    if found.recordings.entries:
        say(missing)
    say(f"{_place(*place)}: {why}" for place, why in found.unknown.items())
    for (*place, label), most in found.later.items():
        more = f"up to {counted(most, 'question')} more of {label!r}"
        say([f"{_place(*place)}: {more}, once the replies to these are stored"])
    if not rows and not found.unknown:
        say([f"{path}: no question for a judge"])
    return 0


def _place(case: str, system: str) -> str:
    return f"{case}[{system}]" if system else case
