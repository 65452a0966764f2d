"""Evaluation sets drawn from a corpus of cases, and the command ``llmeval retrieval``."""

import heapq
import json
import math
import random
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import Fault, grouped
from pytest_llmeval.data import CaseId, InputFile, OutputFile
from pytest_llmeval.tasks.retrieval._ranking import Measured, Near, listed_values, split_values

TERM = Near("near", "term_of_imprisonment", number="imprisonment", flags=("death_penalty", "life_imprisonment"))
"""The comparison of terms, without tolerances."""

Charge: TypeAlias = tuple[frozenset[str], frozenset[str]]

_TEXT_FIELDS = ("fact", "text", "content", "sentence")
_ID_FIELDS = ("id", "doc_id", "docno", "_id")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One legal case of a corpus, from which an evaluation set is drawn.

    Attributes:
        line: Its line.
        id: ``None`` if absent.
        fact: Its text, without the blanks around it.
        accusation: The crimes of the accused.
        relevant_articles: The articles applied.
        term: ``term_of_imprisonment``: months under ``imprisonment``, and the flags ``death_penalty`` and
            ``life_imprisonment``.
    """

    line: int
    id: str | None
    fact: str
    accusation: tuple[str, ...]
    relevant_articles: tuple[str, ...]
    term: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the query: its id, or its line if the id cannot name a case."""
        return f"line-{self.line}" if self.id is None or CaseId(self.id).fault() else self.id

    @property
    def charge(self) -> Charge:
        """The values that a positive shares with its query, in any order."""
        return _parts(self.accusation), _parts(self.relevant_articles)

    def to_json(self) -> dict[str, Any]:
        """Return the case as a query or a positive of an evaluation set."""
        meta = {
            "accusation": list(self.accusation),
            "relevant_articles": list(self.relevant_articles),
            "term_of_imprisonment": dict(self.term),
        }
        known = {} if self.id is None else {"id": self.id}
        return {**known, "fact": self.fact, "meta": meta}


def _parts(values: Iterable[str]) -> frozenset[str]:
    """A corpus attribute's values split at separators, so that a list and a text of the same charges are equal."""
    return split_values(list(values)) or frozenset()


def read_judgement(line: int, row: Any) -> Judgement | str:
    """Read a row of a corpus: attributes under ``meta``, or next to the text.

    Returns:
        The case, or the reason why it cannot be used.
    """
    if isinstance(row, list):
        return "a list in place of an object: the corpus is JSONL"
    if not isinstance(row, dict):
        return "no object"
    meta = row["meta"] if isinstance(row.get("meta"), dict) else row
    fact = next((row[name] for name in _TEXT_FIELDS if isinstance(row.get(name), str) and row[name].strip()), None)
    accusation, articles = _values(meta.get("accusation")), _values(meta.get("relevant_articles"))
    term: Any = meta.get("term_of_imprisonment", meta.get("imprisonment"))
    if isinstance(term, int | float | str) and not isinstance(term, bool):
        term = {"imprisonment": term}
    has_term: Any = isinstance(term, dict) and term and not TERM.fault({TERM.field: term})
    needed = {"text": fact, "accusation": accusation, "article": articles, "term of imprisonment": has_term}
    lacking = next((name for name, value in needed.items() if not value), None)
    if lacking or not isinstance(fact, str):
        return f"no {lacking}"
    known = next((identifier for name in _ID_FIELDS if (identifier := CaseId.read(row.get(name))) is not None), None)
    return Judgement(line, known, fact.strip(), accusation, articles, _numeric(term))


def _values(value: Any) -> tuple[str, ...]:
    """The texts of a set-valued attribute (such as a case's articles) in a corpus row, without blank ones."""
    return tuple(text for text in listed_values(value) or () if text.strip())


def _numeric(term: Mapping[str, Any]) -> dict[str, Any]:
    """A prison term of a corpus row as a number and flags, since the original subtracts months and compares flags."""
    months, flags = TERM.read(dict(term))
    exact = int(months) if months is not None and months == int(months) else months
    known = dict(zip(("imprisonment", *TERM.flags), (exact, *flags), strict=True))
    return {key: known.get(key, value) for key, value in term.items()}


Corpus: TypeAlias = Callable[[], Iterable[tuple[int, Any]]]
"""Reads the corpus again: line numbers and rows, in the order of the file."""


def _option(default: Any, metavar: str, description: str) -> Any:
    """A field of the options of ``llmeval retrieval build-set`` with its command-line help."""
    return field(default=default, metadata={"metavar": metavar, "help": description})


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Options for building an evaluation set.

    Attributes:
        queries: Number of queries.
        candidates: Number of cases drawn for them, since not each has enough positives.
        positives: Maximum number of positives of a query.
        min_positives: Minimum number of positives of a query.
        relative: Maximum difference of terms, as a share of the query's.
        absolute: Difference in months that is always allowed.
        seed: Of the draw.

    Raises:
        ValueError: A number is out of its range.
    """

    queries: int = _option(100, "N", "number of queries (default: 100)")
    candidates: int = _option(400, "N", "number of cases to draw as candidates (default: 4 per query)")
    positives: int = _option(10, "N", "maximum number of positives of a query (default: 10)")
    min_positives: int = _option(
        10, "N", "minimum number of positives; queries with fewer are dropped (default: --positives)"
    )
    relative: float = _option(0.2, "SHARE", "maximum difference of terms, as a share of the query's (default: 0.2)")
    absolute: float = _option(6.0, "MONTHS", "difference in months that is always allowed (default: 6)")
    seed: int = _option(0, "N", "random seed (default: 0)")

    def __post_init__(self) -> None:
        for name, least in (("queries", 1), ("min_positives", 1), ("relative", 0), ("absolute", 0)):
            if not least <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name}: found {value}, expected a number from {least}")
        for name, other in (("candidates", "queries"), ("positives", "min_positives")):
            if (value := getattr(self, name)) < (least := getattr(self, other)):
                raise ValueError(f"{name}: found {value}, expected at least {least}, as many as {other}")


@dataclass(slots=True)
class BuiltSet:
    """An evaluation set drawn from a corpus, with the counts for its report.

    Attributes:
        queries: In the order of the draw, each with its positives, the closest first.
        rows: Number of rows of the corpus.
        usable: Number of rows with all attributes.
        drawn: Number of candidates.
        dropped: Reason to the number of rows or candidates that were left out.
    """

    queries: list[tuple[Judgement, list[Judgement]]]
    rows: int
    usable: int
    drawn: int
    dropped: Mapping[str, int]

    def report(self, options: SetOptions) -> dict[str, Any]:
        """Return the sizes of the set, and the numbers dropped by reason, as JSON data."""
        sizes = Counter(len(positives) for _, positives in self.queries)
        return {
            "options": asdict(options),
            "rows": self.rows,
            "usable": self.usable,
            "drawn": self.drawn,
            "queries": len(self.queries),
            "positives_per_query": {str(size): sizes[size] for size in sorted(sizes)},
            "dropped": dict(self.dropped),
        }


@dataclass(slots=True)
class _Candidate:
    """A candidate query of an evaluation set, with the closest cases so far, their distances and lines."""

    query: Judgement
    term: Measured
    closest: dict[str, tuple[float, int, Judgement]] = field(default_factory=dict)
    farthest: float = math.inf

    def offer(self, other: Judgement, distance: float, most: int) -> None:
        """Take a case among the closest: of equal distances the first of the corpus, of equal texts the closest."""
        full = len(self.closest) == most
        if full and distance >= self.farthest:
            return
        known = self.closest.get(other.fact)
        if known is not None and known[0] <= distance:
            return
        if full and known is None:
            del self.closest[max(self.closest, key=lambda text: self.closest[text][:2])]
        self.closest[other.fact] = (distance, other.line, other)
        self.farthest = max(entry[0] for entry in self.closest.values())

    def positives(self) -> list[Judgement]:
        """Return the closest cases, the closest first."""
        return [judgement for *_, judgement in sorted(self.closest.values(), key=lambda entry: entry[:2])]


def build_set(corpus: Corpus, options: SetOptions) -> BuiltSet:
    """Draw an evaluation set's queries from a corpus and find their positives in it.

    A positive has the same accusations and the same articles as its query, and a term of imprisonment that is close:
    the same flags, and, unless one is set, months that differ by no more than the tolerance. It is never a case with
    the text of the query. The corpus is read twice; memory holds the candidates and their positives, not the corpus.

    Args:
        corpus: Reads the corpus.
        options: The sizes and tolerances.

    Returns:
        The set: the same for the same corpus, options and seed.
    """
    dropped: Counter[str] = Counter()
    counted = {"rows": 0, "usable": 0}
    drawn = _draw(_counted(corpus, counted, dropped), options)
    candidates = list(_distinct(drawn, dropped))
    by_charge = grouped((candidate.query.charge, candidate) for candidate in candidates)
    _find_positives(corpus, by_charge, options)
    queries: list[tuple[Judgement, list[Judgement]]] = []
    for candidate in candidates:
        if len(candidate.closest) < options.min_positives:
            dropped[f"candidate with fewer than {options.min_positives} positives"] += 1
        elif len(queries) == options.queries:
            dropped["candidate not needed"] += 1
        else:
            queries.append((candidate.query, candidate.positives()))
    return BuiltSet(queries, counted["rows"], counted["usable"], len(drawn), dict(sorted(dropped.items())))


def _counted(corpus: Corpus, counted: dict[str, int], dropped: Counter[str]) -> Iterator[Judgement]:
    """Yield the usable judgements of a corpus for an evaluation set, counting rows and dropped ones."""
    for line, row in corpus():
        counted["rows"] += 1
        read = read_judgement(line, row)
        if isinstance(read, str):
            dropped[f"row with {read}"] += 1
        else:
            counted["usable"] += 1
            yield read


def _draw(cases: Iterable[Judgement], options: SetOptions) -> list[Judgement]:
    """Draw candidate queries from a corpus without replacement, in random order, by the smallest random numbers."""
    rng = random.Random(options.seed)  # noqa: S311 (a sample that can be drawn again, no secret)
    numbered = ((rng.random(), case.line, case) for case in cases)
    return [judgement for *_, judgement in heapq.nsmallest(options.candidates, numbered, key=lambda entry: entry[:2])]


def _distinct(drawn: Iterable[Judgement], dropped: Counter[str]) -> Iterator[_Candidate]:
    """Yield candidate queries of an evaluation set, without those that repeat a text or id."""
    seen: dict[str, set[str]] = {"text": set(), "id": set()}
    for judgement in drawn:
        keys = {"text": judgement.fact, "id": judgement.name}
        if known := next((kind for kind, key in keys.items() if key in seen[kind]), None):
            dropped[f"candidate with the {known} of another"] += 1
            continue
        for kind, key in keys.items():
            seen[kind].add(key)
        yield _Candidate(judgement, TERM.read(judgement.term))


def _find_positives(corpus: Corpus, by_charge: Mapping[Charge, list[_Candidate]], options: SetOptions) -> None:
    """Offer each corpus row as a positive to the candidate queries of the same charge with a similar term."""
    rule = replace(TERM, relative=options.relative, absolute=options.absolute)
    for line, row in corpus():
        other = read_judgement(line, row)
        if isinstance(other, str):
            continue
        term = rule.read(other.term)
        for candidate in by_charge.get(other.charge, ()):
            distance = rule.distance(candidate.term, term)
            if distance is not None and other.fact != candidate.query.fact:
                candidate.offer(other, distance, options.positives)


def set_line(query: Judgement, positives: Iterable[Judgement]) -> dict[str, Any]:
    """A line of a drawn evaluation set, as the source ``case_retrieval`` reads it."""
    return {
        "query_id": query.name,
        "query": query.to_json(),
        "positives": [judgement.to_json() for judgement in positives],
    }


_BY_OTHERS: Mapping[str, Callable[[Namespace], int]] = {
    "candidates": lambda options: options.queries * 4,
    "min_positives": lambda options: options.positives,
}
"""Options whose default follows from other ones."""

_DESCRIPTION = (
    "Draw queries from a corpus of judgements (JSONL), and find the cases with the same accusations, the same articles "
    "and a similar term of imprisonment for each of them. Write the set, and a report of what was dropped and why."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action of ``llmeval retrieval``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build-set", help="draw an evaluation set from a corpus", description=_DESCRIPTION)
    build.add_argument(
        "corpus", type=Path, help="JSONL: fact, and accusation, relevant_articles and term_of_imprisonment"
    )
    build.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the evaluation set (JSONL)")
    build.add_argument("--report", type=Path, metavar="FILE", help="the report; default: OUTPUT with .report.json")
    for option in fields(SetOptions):
        flag = f"--{option.name.replace('_', '-')}"
        default = None if option.name in _BY_OTHERS else option.default
        build.add_argument(flag, type=type(option.default), default=default, **option.metadata)
    build.set_defaults(run=_build, refuse=build.error)


def _build(options: Namespace) -> int | CommandResult:
    """Run ``llmeval retrieval build-set``: draw an evaluation set from a corpus and write it with a report."""
    values = {option.name: getattr(options, option.name) for option in fields(SetOptions)}
    values |= {name: derive(options) for name, derive in _BY_OTHERS.items() if values[name] is None}
    try:
        how = SetOptions(**values)
    except ValueError as error:
        options.refuse(str(error))
    path = options.report or options.output.parent / f"{options.output.stem}.report.json"
    if len({file.resolve() for file in (options.corpus, options.output, path)}) < 3:  # noqa: PLR2004 (three files)
        options.refuse("found the same file twice, expected three different files for corpus, output and report")
    faults: list[Fault] = []

    def corpus() -> Iterator[tuple[int, Any]]:
        faults.clear()  # the second reading reports the same faults again
        return InputFile(options.corpus).read_jsonl(faults)

    built = build_set(corpus, how)
    if not built.rows:
        say(faults or ["the corpus has no row"], error=True)
        return 1
    report = built.report(how) | {"faulty_lines": [str(fault) for fault in faults]}
    OutputFile(options.output).save_text(
        json.dumps(set_line(*query), ensure_ascii=False) + "\n" for query in built.queries
    )
    OutputFile(path).save_text([json.dumps(report, ensure_ascii=False, indent=2) + "\n"])
    say(faults, error=True)
    data = {"written": [str(options.output), str(path)], "queries": len(built.queries), "report": report}
    return CommandResult(0 if built.queries else 1, data, _summary(built, options.output, path))


def _summary(built: BuiltSet, output: Path, report: Path) -> Iterator[str]:
    """Yield the terminal lines on a drawn evaluation set: queries, positives and dropped rows."""
    positives = sum(len(relevant) for _, relevant in built.queries)
    yield f"{output}: {len(built.queries)} queries with {positives} positives"
    yield f"{built.rows} rows, {built.usable} of them usable; {built.drawn} candidates drawn"
    yield from (f"dropped {number}: {reason}" for reason, number in built.dropped.items())
    yield f"report: {report}"
