"""The command ``llmeval cache``: inspecting and maintaining stored verdicts."""

import json
import math
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli import OPTIONS, CommandResult, NumberArgument, say
from pytest_llmeval.core import JudgeError, LlmevalError, counted, printable
from pytest_llmeval.judges import Judgements, JudgeScoreFile, Mode, ReplyStore, StoredJudgement
from pytest_llmeval.workbench._console import open_noted, table_lines
from pytest_llmeval.workbench._suite_questions import SuiteQuestion, SuiteQuestions

if TYPE_CHECKING:
    from collections.abc import Iterator


_DAY_S = 86_400
_HEX = frozenset("0123456789abcdef")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions of ``llmeval cache``."""
    actions = parser.add_subparsers(dest="action", required=True)
    shared = ArgumentParser(add_help=False)
    OPTIONS.add_to(shared, "cache")

    def add(name: str, text: str) -> ArgumentParser:
        return actions.add_parser(name, help=text, description=text, parents=[shared])

    add("stats", "count verdicts, tokens and cost, by mode and model").set_defaults(run=_stats)
    prune = add("prune", "delete verdicts by age, by model, or both")
    prune.add_argument("--older-than", type=NumberArgument(least=0), metavar="DAYS", help="older than DAYS")
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
    """Add the arguments of ``llmeval cache import``."""
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--suite", type=Path, metavar="FILE", help="the suite of the scored cases")
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME", help="judge model that gave the scores (default: the suite's)"
    )
    parser.set_defaults(run=_import, refuse=parser.error)


@contextmanager
def _opened(options: Namespace, *, absent: bool = False) -> "Iterator[ReplyStore]":
    """Open the verdict cache of a command; create a missing one only with `absent`."""
    if not absent and not options.cache.exists():
        raise LlmevalError(f"no judge cache at {options.cache}: name it with --cache")
    with closing(options.cache.open()) as replies:
        yield replies


def _stats(options: Namespace) -> CommandResult:
    """Run ``llmeval cache stats``: count the stored verdicts by judge mode and model."""
    groups: dict[tuple[str, str], list[StoredJudgement]] = defaultdict(list)
    with _opened(options) as cache:
        for entry in cache.entries():
            groups[entry.components["mode"], entry.components["model"]].append(entry)
    sums = {name: _sums(entries) for name, entries in sorted(groups.items())}
    everything = _sums([entry for entries in groups.values() for entry in entries])
    rows = [(*map(printable, name), *_cells(sum_)) for name, sum_ in sums.items()]
    if len(rows) > 1:
        rows.append(("all", "", *_cells(everything)))
    names = ("mode", "model", "verdicts", "bytes", "input tokens", "output tokens", "USD")
    lines = table_lines(rows, "llrrrrr", names) if rows else []
    verdicts = [{"mode": mode, "model": model, **sum_} for (mode, model), sum_ in sums.items()]
    data = {**everything, "bytes": options.cache.size(), "by_model": verdicts}
    last = f"{options.cache}: {counted(everything['verdicts'], 'verdict')}, {data['bytes']} bytes"
    return CommandResult(0, data, [*lines, last])


def _sums(entries: list[StoredJudgement]) -> dict[str, Any]:
    """Count stored verdicts with their bytes, tokens and cost; ``None`` for what no reply reports."""
    tokens = [(entry.usage.input_tokens, entry.usage.output_tokens) for entry in entries]
    costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
    size = sum(len(entry.reply.encode("utf-8", "surrogatepass")) for entry in entries)
    spent = [[part for part in column if part is not None] for column in zip(*tokens, strict=True)]
    read, written = (sum(column) if column else None for column in spent or ([], []))
    cost = sum(costs) if costs else None
    return {
        "verdicts": len(entries),
        "bytes": size,
        "input_tokens": read,
        "output_tokens": written,
        "cost_usd": cost,
    }


def _cells(sums: Mapping[str, Any]) -> list[str]:
    """The table cells of ``llmeval cache stats``: counts and cost of stored verdicts, ``n/a`` if unknown."""
    *counts, cost = sums.values()
    return ["n/a" if count is None else str(count) for count in counts] + ["n/a" if cost is None else f"{cost:.6f}"]


def _prune(options: Namespace) -> CommandResult:
    """Run ``llmeval cache prune``: delete stored verdicts by age or by judge model."""
    if options.older_than is None and options.model is None:
        options.refuse("choose what to delete: --older-than DAYS, --model PROVIDER:NAME, or both")
    older = None if options.older_than is None else options.older_than * _DAY_S
    with _opened(options) as cache:
        deleted = cache.prune(older, options.model)
    return CommandResult(0, {"deleted": deleted}, [f"{options.cache}: {counted(deleted, 'verdict')} deleted"])


def _verify(options: Namespace) -> CommandResult:
    """Run ``llmeval cache verify``: report damaged entries of the verdict cache."""
    with _opened(options) as cache:
        faults = cache.verify()
        good = sum(1 for _ in cache.entries())
    lines = [
        *map(str, faults),
        f"{counted(len(faults), 'fault') if faults else 'no fault'}, {counted(good, 'verdict')}",
    ]
    data = {"verdicts": good, "damaged": [*map(str, faults)]}
    return CommandResult(1 if faults else 0, data, [f"{options.cache}: {line}" for line in lines])


def _export(options: Namespace) -> CommandResult:
    """Run ``llmeval cache export``: write the stored verdicts to a recordings file (JSONL)."""
    if options.file.is_dir():
        raise LlmevalError(f"{options.file}  found a directory, expected a file to write")
    if options.file.exists() and options.cache.exists() and options.file.samefile(options.cache.path):
        raise LlmevalError(f"found the cache {options.file} as output file, expected another file")
    with _opened(options) as cache:
        entries = list(cache.entries())
    Judgements(options.file, entries).write()
    data = {"written": [str(options.file)], "verdicts": len(entries)}
    return CommandResult(0, data, [f"{options.file}: {counted(len(entries), 'verdict')}"])


def _import(options: Namespace) -> CommandResult:
    """Run ``llmeval cache import``: add verdicts of a recordings file, or scores made elsewhere, to the cache."""
    if not options.file.exists():
        raise LlmevalError(f"{options.file} does not exist: name a file with verdicts or scores")
    if options.file.suffix == ".jsonl":
        if options.suite is not None or options.model is not None:
            options.refuse("--suite and --model apply to a JSON file of scores, not to JSONL")
        data, line = _keep(options, list(Judgements.read(options.file).entries.values()))
        return CommandResult(0, data, [line])
    if options.suite is None:
        options.refuse("a file of scores does not contain the questions: name the suite of the cases with --suite")
    return _import_scores(options)


def _import_scores(options: Namespace) -> CommandResult:
    """Run ``llmeval cache import`` for a JSON file of scores, by case of a suite."""
    questions = _questions(options, options.suite)
    if len(questions.models) > 1:
        options.refuse(f"found a panel of judges, expected --model with one of them: {', '.join(questions.models)}")
    imported = import_scores(questions, JudgeScoreFile.open(options.file).scores, options.file.name)
    data, *lines = _keep(options, imported.entries)
    if imported.ruled:
        lines.append(f"{counted(len(imported.ruled), 'score')} not needed: a rule decides the case")
    if imported.without:
        lines.append(f"{counted(len(imported.without), 'case')} without a score: {', '.join(imported.without)}")
    say((f"{options.file}: {fault}" for fault in imported.faults), error=True)
    return CommandResult(1 if imported.faults else 0, data | {"without": imported.without}, lines)


def _questions(options: Namespace, path: Path) -> "SuiteQuestions":
    """The judge questions of a suite; a cache that does not exist is not created for them."""
    if not options.cache.exists():
        return suite_questions(path, options.model)
    with _opened(options) as cache:
        return suite_questions(path, options.model, cache.get)


def _keep(options: Namespace, entries: list[StoredJudgement]) -> tuple[dict[str, Any], str]:
    """Add verdicts to the cache without replacing stored ones, and return counts and a line."""
    with _opened(options, absent=True) as cache:
        new = [entry for entry in entries if cache.get(entry.key) is None]
        cache.put(new)
    old = len(entries) - len(new)
    line = f"{options.cache}: {counted(len(new), 'verdict')} added" + (f", {old} there already" if old else "")
    return {"added": len(new), "present": old}, line


def _explain(options: Namespace) -> CommandResult:
    """Run ``llmeval cache explain``: show the stored verdicts of a suite, a recordings file or a key."""
    path = Path(options.what)
    if path.suffix == ".jsonl" and path.is_file():
        return _show(sorted(Judgements.read(path).entries.values(), key=lambda entry: (entry.case, entry.key)))
    if path.is_file():
        return _explain_suite(options, path)
    if not options.what or not set(options.what) <= _HEX:
        raise LlmevalError(f"{options.what} does not exist: name a suite, a recordings file, or the beginning of a key")
    with _opened(options) as cache:
        entries = [entry for entry in cache.entries() if entry.key.startswith(options.what)]
    if not entries:
        raise LlmevalError(f"no key in {options.cache} begins with {options.what}")
    return _show(sorted(entries, key=lambda entry: entry.key))


def _show(entries: Sequence[StoredJudgement]) -> CommandResult:
    """The components of the keys of stored verdicts, as tables and as data."""
    from tabulate import tabulate

    lines: list[str] = []
    for entry in entries:
        parts = dict(entry.components)
        texts = {f"text {name}": digest for name, digest in parts.pop("texts").items()}
        parameters = {f"parameter {name}": value for name, value in parts.pop("parameters").items()}
        rows = [(printable(name), printable(str(value))) for name, value in {**parts, **parameters, **texts}.items()]
        lines.append(f"{entry.key}, score {entry.score:g}, case {entry.case}")
        lines += [*tabulate([("", *row) for row in rows], tablefmt="plain", disable_numparse=True).split("\n"), ""]
    known = [
        {"key": judgement.key, "case": judgement.case, "score": judgement.score, "components": judgement.components}
        for judgement in entries
    ]
    return CommandResult(0, {"verdicts": known}, lines)


def _explain_suite(options: Namespace, path: Path) -> CommandResult:
    """The judge questions of a suite with the store that has each verdict, if any."""
    from tabulate import tabulate

    questions = _questions(options, path)
    cached: set[str] = set()
    if options.cache.exists():
        with _opened(options) as cache:
            cached = {question.key for question in questions.questions if cache.get(question.key) is not None}
    rows, missing, known = [], [], []
    panel = len(questions.models) > 1
    for question in questions.questions:
        recorded = questions.recordings.get(question.key) is not None
        stores = [name for name, has in (("recorded", recorded), ("cached", question.key in cached)) if has]
        juror = (question.model,) if panel else ()
        known.append(
            {
                "case": question.case,
                "system": question.system,
                "evaluator": question.evaluator,
                "judge": question.model,
                "repeat": question.repeat,
                "key": question.key,
                "stored": stores,
            }
        )
        row = (
            _place(question.case, question.system),
            question.evaluator,
            *juror,
            question.mode.name,
            str(question.repeat),
            question.key,
        )
        rows.append((*map(printable, row), ", ".join(stores) or "to be asked"))
        if not recorded:
            why = questions.recordings.nearest(question.case, question.components)
            missing.append(f"{_place(question.case, question.system)}: {why}")
    names = ("case", "evaluator", *(("judge",) if panel else ()), "mode", "repeat", "key", "stored")
    lines = tabulate(rows, names, disable_numparse=True).split("\n") if rows else []
    lines += missing if questions.recordings.entries else []
    unknown = {_place(*place): why for place, why in questions.unknown.items()}
    lines += [f"{place}: {why}" for place, why in unknown.items()]
    for (*place, label), most in questions.later.items():
        more = f"up to {counted(most, 'question')} more of {label!r}"
        lines.append(f"{_place(*place)}: {more}, once the replies to these are stored")
    if not rows and not questions.unknown:
        lines.append(f"{path}: no question for a judge")
    return CommandResult(0, {"questions": known, "unknown": unknown}, lines)


def _place(case: str, system: str) -> str:
    """The name of a case in ``llmeval cache explain``, with its system if the suite has several."""
    return f"{case}[{system}]" if system else case


def suite_questions(
    path: Path, model: str | None = None, stored: Callable[[str], StoredJudgement | None] = lambda _: None
) -> SuiteQuestions:
    """Read a suite file and list the questions that its evaluators put to a judge.

    Args:
        path: The suite file; its evaluators are shipped with this package or with an installed one.
        model: ``PROVIDER:NAME``; overrides the suite.
        stored: Returns the verdict that is stored under a key besides the recorded ones.

    Raises:
        SuiteError: The suite, or its recorded judgements, have faults.
        LlmevalError: The model is none.
    """
    return SuiteQuestions.of_suite(open_noted(path), model, stored)


@dataclass
class Imported:
    """Judgements made from imported scores, with the scores that could not be used.

    Attributes:
        entries: Judgements of the questions that have a score.
        ruled: Ids of scores that are not needed, because a rule decides the case.
        faults: Scores that could not be used, and why.
        without: Ids of cases with a question and without a score.
    """

    entries: list[StoredJudgement] = field(default_factory=list)
    ruled: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def import_scores(known: SuiteQuestions, scores: Mapping[str, float], source: str) -> Imported:
    """Turn scores into judgements of a suite's questions, as if its judge had given them for the present answers.

    A score belongs to the case whose id, or label ``question_id``, it is given for; files of `batch_judge` name the
    conversation as well. The reply is made up, so that the
    mode reads it as just this score.

    Args:
        known: The questions of the suite.
        scores: Id to score, from 0 to 1, as a share of the mode's scale.
        source: Where they come from; becomes the reasoning of the reply, where the mode has one.
    """
    imported = Imported()
    questions: dict[str, list[SuiteQuestion]] = defaultdict(list)
    for question in known.questions:
        if question.repeat == 0 and not question.is_shared:
            questions[question.case].append(question)
    cases: dict[str, list[str]] = defaultdict(list)
    for case in known.suite.cases:
        for name in {case.id, case.labels.get("question_id", case.id)}:
            cases[name].append(case.id)
    later = {case: f"{label!r} asks what depends on replies that are not stored" for case, _, label in known.later}
    unknown = later | {case: why for (case, _), why in known.unknown.items()}
    used = set()
    for name, share in sorted(scores.items()):
        ids = next((cases[candidate] for candidate in JudgeScoreFile.case_ids(name) if candidate in cases), [])
        if len(ids) != 1:
            imported.faults.append(_unmatched(name, ids))
            continue
        (case_id,) = ids
        if case_id in used:
            imported.faults.append(f"{name}: found a second score of case {case_id}, expected one")
            continue
        used.add(case_id)
        if case_id in unknown:
            imported.faults.append(f"{name}: {unknown[case_id]}")
        elif not questions[case_id]:
            imported.ruled.append(name)
        elif len(questions[case_id]) > 1:
            number = len(questions[case_id])
            imported.faults.append(f"{name}: found {number} questions about the case, expected exactly one")
        else:
            _add(imported, questions[case_id][0], share, f"imported from {source}")
    imported.without = sorted(case_id for case_id in questions if questions[case_id] and case_id not in used)
    return imported


def _unmatched(name: str, ids: list[str]) -> str:
    """The message about an imported score whose id fits no case of the suite, or several."""
    if ids:
        return f"{name}: found {len(ids)} cases of this question_id, expected one"
    return f"{name}: no case has this id or label question_id"


def _add(imported: Imported, question: SuiteQuestion, share: float, reasoning: str) -> None:
    """Add an imported score to the judgements, as the verdict on a judge question."""
    mode = question.mode
    low, high = mode.scale
    score = low + share * (high - low)
    reply = _reply(mode, score, reasoning)
    if reply is None:
        imported.faults.append(
            f"{question.case}: found the score {share:g}, which is not a complete verdict of mode {mode.name!r}"
        )
        return
    imported.entries.append(StoredJudgement(question.key, question.case, question.components, reply, score))


def _reply(mode: Mode, score: float, reasoning: str) -> str | None:
    """Return the reply of a judge that its mode reads as an imported score; ``None`` if no reply gives the score."""
    whole = int(score) if score.is_integer() else score
    for reply in (json.dumps({"reasoning": reasoning, "score": whole}), "yes", "no"):
        try:
            if math.isclose(mode.read(reply).score, score, abs_tol=1e-9):
                return reply
        except JudgeError:
            continue
    return None
