"""The command ``llmeval retrieval``: drawing an evaluation set from a corpus."""

__all__ = ("add_arguments",)

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import Fault

if TYPE_CHECKING:
    from pytest_llmeval.tasks.retrieval.evaluation_set import BuiltSet

_DESCRIPTION = (
    "Draw queries from a corpus of judgements (JSONL), and find the cases with the same accusations, the same articles "
    "and a similar term of imprisonment for each of them. Write the set, and a report of what was dropped and why."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build-set", help="draw an evaluation set from a corpus", description=_DESCRIPTION)
    build.add_argument(
        "corpus", type=Path, help="JSONL: fact, and accusation, relevant_articles and term_of_imprisonment"
    )
    build.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the evaluation set (JSONL)")
    build.add_argument("--report", type=Path, metavar="FILE", help="the report; default: OUTPUT with .report.json")
    build.add_argument("--queries", type=int, default=100, metavar="N", help="number of queries (default: 100)")
    build.add_argument(
        "--candidates", type=int, metavar="N", help="number of cases to draw as candidates (default: 4 per query)"
    )
    build.add_argument(
        "--positives", type=int, default=10, metavar="N", help="maximum number of positives of a query (default: 10)"
    )
    build.add_argument(
        "--min-positives",
        type=int,
        metavar="N",
        help="minimum number of positives; queries with fewer are dropped (default: --positives)",
    )
    build.add_argument(
        "--relative",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="maximum difference of terms, as a share of the query's (default: 0.2)",
    )
    build.add_argument(
        "--absolute",
        type=float,
        default=6.0,
        metavar="MONTHS",
        help="difference in months that is always allowed (default: 6)",
    )
    build.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    build.set_defaults(run=_build, refuse=build.error)


def _build(options: Namespace) -> int:
    from pytest_llmeval.data.files.documents import read_jsonl
    from pytest_llmeval.tasks.retrieval.evaluation_set import SetOptions, build_set, set_line

    try:
        how = SetOptions(
            queries=options.queries,
            candidates=options.queries * 4 if options.candidates is None else options.candidates,
            positives=options.positives,
            min_positives=options.positives if options.min_positives is None else options.min_positives,
            relative=options.relative,
            absolute=options.absolute,
            seed=options.seed,
        )
    except ValueError as error:
        options.refuse(str(error))
    path = options.report or options.output.parent / f"{options.output.stem}.report.json"
    if len({each.resolve() for each in (options.corpus, options.output, path)}) < 3:  # noqa: PLR2004 (three files)
        options.refuse("found the same file twice, expected three different files for corpus, output and report")
    faults: list[Fault] = []

    def corpus() -> Iterator[tuple[int, Any]]:
        faults.clear()  # the second reading reports the same faults again
        return read_jsonl(options.corpus, str(options.corpus), faults)

    built = build_set(corpus, how)
    if not built.rows:
        say(faults or ["found no row, expected a corpus"], error=True)
        return 1
    report = built.report(how) | {"faulty_lines": [str(fault) for fault in faults]}
    write_text(options.output, (json.dumps(set_line(*each), ensure_ascii=False) + "\n" for each in built.queries))
    write_text(path, [json.dumps(report, ensure_ascii=False, indent=2) + "\n"])
    say(faults, error=True)
    say(_summary(built, options.output, path))
    return 0 if built.queries else 1


def _summary(built: "BuiltSet", output: Path, report: Path) -> Iterator[str]:
    positives = sum(len(each) for _, each in built.queries)
    yield f"{output}: {len(built.queries)} queries with {positives} positives"
    yield f"{built.rows} rows, {built.usable} of them usable; {built.drawn} candidates drawn"
    yield from _dropped(built.dropped)
    yield f"report: {report}"


def _dropped(dropped: Mapping[str, int]) -> Iterator[str]:
    for reason, number in dropped.items():
        yield f"dropped {number}: {reason}"
