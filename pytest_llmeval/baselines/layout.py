"""The text of a score file: JSON with one line per metric, for readable diffs."""

__all__ = ("line_of", "parse", "render")

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from pytest_llmeval.baselines.bridges import decoded, encoded
from pytest_llmeval.baselines.comparable import fingerprint
from pytest_llmeval.baselines.scores import SCHEMA, Score, SuiteScores, TestScores
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.files.validation import check, describe

_INDENT = "  "
_CHECKSUM = "checksum"
_SCORE = {each.name for each in fields(Score)}


def render(scores: SuiteScores | TestScores) -> str:
    """Return the text of a file: keys sorted, numbers finite, the same bytes everywhere.

    Its checksum is that of everything else, so it does not depend on line ends and blanks.
    """
    return _text({**_data(scores), _CHECKSUM: _checksum(scores)})


def _checksum(scores: SuiteScores | TestScores) -> str:
    return fingerprint(_text(_data(scores)))


def _data(scores: SuiteScores | TestScores) -> dict[str, Any]:
    """Return what a file holds; what it has none of is left out, as in files of older versions."""
    data = asdict(scores)
    if isinstance(scores, SuiteScores):
        del data["bridges"]
        data["comparable"]["judges"] |= encoded(scores.bridges)
        if scores.anchor is None:
            del data["anchor"]
        if not scores.anchors:
            del data["anchors"]
        if not scores.pool:
            del data["pool"]
        if not scores.limits:
            del data["limits"]
        if not scores.cases.errored:
            del data["cases"]["errored"]
    return data


def _text(data: Mapping[str, Any]) -> str:
    return "".join(_block(data, "")) + "\n"


def line_of(score: Score) -> str:
    """Return the line of a metric, without its name."""
    return _line(asdict(score))


def _line(value: Any) -> str:
    if isinstance(value, Mapping) and value.keys() == _SCORE:
        # The value first, and the signature only where there is one: this is the line that people compare.
        return json.dumps({name: each for name, each in value.items() if each != ""}, allow_nan=False)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _block(value: Any, indent: str) -> Iterator[str]:
    """Yield the text of a value: a mapping of plain values on one line, an item of a list too."""
    deeper = indent + _INDENT
    if isinstance(value, Mapping) and any(isinstance(each, Mapping | tuple) for each in value.values()):
        yield "{\n"
        for number, key in enumerate(sorted(value)):
            yield f"{',' + chr(10) if number else ''}{deeper}{_line(key)}: "
            yield from _block(value[key], deeper)
        yield f"\n{indent}}}"
    elif isinstance(value, tuple) and value:
        items = f",\n{deeper}".join(_line(each) for each in value)
        yield f"[\n{deeper}{items}\n{indent}]"
    else:
        yield _line(value)


def parse(path: Path, shown: str, kind: type[SuiteScores] | type[TestScores]) -> Any:
    """Read a score file.

    Args:
        path: The file.
        shown: Its name in errors.
        kind: What it must hold.

    Raises:
        SuiteError: It cannot be read, or is not what an approval wrote; the faults have line and column.
    """
    document = load_json(path, shown)
    _check_version(document)
    data = {name: value for name, value in document.data.items() if name != _CHECKSUM}
    scores, faults = check(kind, data, document, ())
    if isinstance(scores, SuiteScores) and not faults:
        try:
            scores = _with_bridges(scores)
        except ValueError as error:
            faults = [document.fault(("comparable", "judges"), str(error))]
    faults = faults or list(_contradictions(document, scores)) or list(_edits(document, scores))
    if faults:
        raise SuiteError(faults)
    return scores


def _with_bridges(scores: SuiteScores) -> SuiteScores:
    judges, bridges = decoded(scores.comparable.judges)
    return replace(scores, comparable=replace(scores.comparable, judges=judges), bridges=bridges) if bridges else scores


def _check_version(document: Document) -> None:
    data = document.data
    if not isinstance(data, Mapping):
        raise SuiteError([document.fault((), f"found {describe(data)}, expected approved scores")])
    found = data.get("schema")
    if isinstance(found, int) and found > SCHEMA:
        newer = (
            f"found {found}, expected {SCHEMA}: the file is from a newer version of pytest-llmeval-suite: upgrade it"
        )
        raise SuiteError([document.fault(("schema",), newer)])
    if found != SCHEMA or isinstance(found, bool):
        raise SuiteError([document.fault(("schema",), f"found {describe(found)}, expected {SCHEMA}")])


def _contradictions(document: Document, scores: SuiteScores | TestScores) -> Iterator[Fault]:
    """Yield what a hand has changed: the last approval repeats every value, and counts are not negative."""
    if not scores.history:
        yield document.fault(("history",), "found no approval, expected at least one")
        return
    last = ("history", len(scores.history) - 1, "values")
    approved = scores.history[-1].values
    values = scores.values
    for name in sorted({*values, *approved}):
        if name not in approved:
            yield document.fault(last, f"found no value for {name!r}, expected {values[name]}")
        elif name not in values:
            yield document.fault((*last, name), f"found {approved[name]}, expected no value: {name!r} is not recorded")
        elif values[name] != approved[name]:
            yield document.fault(
                scores.places[name],
                f"found {values[name]}, expected {approved[name]}, which was approved last (see 'history')",
            )
    if isinstance(scores, SuiteScores):
        for name, score in scores.metrics.items():
            if min(score.scored, score.undefined, score.errored, score.missing) < 0:
                yield document.fault(("metrics", name), "found a negative count, expected at least 0")


def _edits(document: Document, scores: SuiteScores | TestScores) -> Iterator[Fault]:
    """Yield that something was changed, where nothing contradicts it."""
    found, expected = document.data.get(_CHECKSUM), _checksum(scores)
    if found != expected:
        told = f"found {describe(found)}, expected {expected!r}: the file was changed by hand or merged line by line"
        yield document.fault((_CHECKSUM,), told)
