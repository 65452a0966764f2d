"""Means over evaluated stories, and their report as JSON or Markdown."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pytest_llmeval.core import number
from pytest_llmeval.data import OutputFile, csv_lines

if TYPE_CHECKING:
    import os

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@])")


Format: TypeAlias = Literal["json", "markdown", "md", "csv"]

_RESULT_KEYS = ("overall_score", "component_scores", "detailed_results", "summary", "taxonomy_validity")


def aggregate_results(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return means of scores and sums of counts over stories, each over those where the value exists.

    Args:
        results: What `Narrative.evaluate` returned for each story.

    Returns:
        ``overall_score``, ``component_scores``, ``detailed_results`` and ``summary`` as in the results, with the mean
        of every score and the sum of every count; ``taxonomy_validity``. ``None`` where no story has a value.
        ``n_scored`` has for each mean the number of its stories, ``gt_incomplete`` the gaps in the ground truth by
        part (stories that have any, and missing values), ``files`` the scores of each story, by its ``file`` or else
        its number; ``n_evaluations`` and ``n_malformed`` count stories. For metrics pooled over stories see
        `pytest_llmeval.score`.
    """
    columns = {key: [result[key] for result in results if key in result] for key in _RESULT_KEYS}
    rows = [_row(result, number) for number, result in enumerate(results, 1)]
    if any("malformed" in result for result in results):
        rows = [row | {"malformed": result.get("malformed", "")} for row, result in zip(rows, results, strict=True)]
    return {key: _combined(column, _mean_or_sum) for key, column in columns.items()} | {
        "n_scored": {key: _combined(column, _scored) for key, column in columns.items()},
        "gt_incomplete": _gaps(results),
        "n_evaluations": len(results),
        "n_malformed": sum("malformed" in result for result in results),
        "files": rows,
    }


def _row(result: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The scores of one story as a flat row of the narrative report."""
    events = (result.get("summary") or {}).get("event_accuracy")
    scores = {"file": result.get("file", f"#{number}"), "overall_score": result.get("overall_score")}
    return scores | dict(result.get("component_scores") or {}) | {"event_accuracy": events}


def _gaps(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The number of stories that lack gold values, and of the values that they lack, for each part."""
    gaps: dict[str, dict[str, int]] = {}
    for result in results:
        for part, details in (result.get("detailed_results") or {}).items():
            if "gt_gaps" in details:
                counts = gaps.setdefault(part, {"stories": 0, "values": 0})
                counts["stories"] += bool(details["gt_gaps"])
                counts["values"] += len(details["gt_gaps"])
    return gaps


def _combined(values: Sequence[Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
    """Combine the results of several stories: numbers, or tables key by key; other values are left out."""
    mappings = [value for value in values if isinstance(value, Mapping)]
    if not mappings:
        return combine([value for value in values if _is_number(value)])
    keys = dict.fromkeys(key for mapping in mappings for key in mapping if key != "gt_incomplete_reason")
    columns = {key: [mapping[key] for mapping in mappings if key in mapping] for key in keys}
    combined = {key: _combined(column, combine) for key, column in columns.items() if all(map(_is_combined, column))}
    return {key: value for key, value in combined.items() if value is not _COUNT}


_COUNT: Final = object()
"""Placeholder for counts among the numbers of stories that have a score."""


def _mean_or_sum(values: Sequence[int | float]) -> int | float | None:
    """The sum of the stories' counts (whole numbers), or the mean of their scores."""
    if not values:
        return None
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values) / len(values)


def _scored(values: Sequence[int | float]) -> Any:
    """The number of stories with a value, or the mark of a count if the values are whole numbers."""
    return _COUNT if values and all(isinstance(value, int) for value in values) else len(values)


def _is_number(value: Any) -> bool:
    """Whether a value of a story's results is a number that can be averaged."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_combined(value: Any) -> bool:
    """Whether a value of a story's results is combined over stories: a number, a table of values or an absent score."""
    return value is None or _is_number(value) or isinstance(value, Mapping)


def generate_report(
    results: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    output_path: "str | os.PathLike[str] | None" = None,
    format: Format | None = None,  # noqa: A002 (the name that callers of the original use)
) -> str:
    """Write what `Narrative.evaluate` or `aggregate_results` returned.

    Args:
        results: The results; a list of those of several stories is aggregated.
        output_path: A file whose name ends in ``.json``, ``.md`` or, for the scores of each story, ``.csv``; its
            folder is made. ``None``: nothing is written.
        format: ``json``, ``markdown`` (or ``md``) or ``csv``; then any path will do.

    Returns:
        The report: in the format, or else in that of the path; Markdown without both.

    Raises:
        ValueError: The format is unknown, or the path has another suffix and there is no format.
        OSError: The file cannot be written.
    """
    if format is not None and format not in _SUFFIXES:
        raise ValueError(f"found the format {format!r}, expected json, markdown or csv")
    suffix = ".md" if output_path is None else PurePath(output_path).suffix.lower()
    suffix = suffix if format is None else _SUFFIXES[format]
    if suffix not in _WRITERS:
        raise ValueError(f"found the path {str(output_path)!r}, expected a path that ends in .json, .md or .csv")
    report = _WRITERS[suffix](_plain(results if isinstance(results, Mapping) else aggregate_results(results)))
    if output_path is not None:
        Path(output_path).parent.mkdir(parents=True, exist_ok=True)
        OutputFile(Path(output_path)).write_text([report])
    return report


def _plain(results: Mapping[str, Any]) -> dict[str, Any]:
    """Narrative results with ``None`` for the NaN that the original class has in place of an absent overall score."""
    rows = {"files": [_absent(row) for row in results["files"]]} if "files" in results else {}
    return _absent(results) | rows


def _absent(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Story scores with ``None`` in place of NaN, which JSON does not have."""
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in scores.items()}


def _json(results: Mapping[str, Any]) -> str:
    """The narrative report as JSON text."""
    return json.dumps(results, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _markdown(results: Mapping[str, Any]) -> str:
    """The narrative report as Markdown: overall score, components, gaps and invalid labels."""
    lines = ["# Narrative evaluation", ""]
    if results.get("n_evaluations") == 0:
        return "\n".join([*lines, "No story was evaluated.", ""])
    scored = results.get("n_scored", {})
    stories = f" ({scored['overall_score']} of {results['n_evaluations']} stories)" if scored else ""
    lines += [f"Overall score: **{number(results.get('overall_score'))}**{stories}", ""]
    if scored:
        lines += ["Scores are means over the stories that have them, counts are sums over all stories.", ""]
    if "malformed" in results:
        lines += [f"The prediction is malformed: {_text(results['malformed'])}", ""]
    lines += _table("component", "score", results.get("component_scores") or {}, scored.get("component_scores"))
    lines += ["## Summary", "", *_summary(results, scored)]
    if files := results.get("files"):
        header = list(dict.fromkeys(key for row in files for key in row))
        lines += ["## Stories", "", *_rows(header, [[row.get(key) for key in header] for row in files])]
    gaps = results.get("gt_incomplete") or _gaps([results])
    if rows := [(part, gap["stories"], gap["values"]) for part, gap in gaps.items() if gap["values"]]:
        lines += ["## Gaps in the ground truth (not judged)", "", *_rows(("part", "stories", "values missing"), rows)]
    for component, scores in (results.get("detailed_results") or {}).items():
        counts = (scored.get("detailed_results") or {}).get(component)
        lines += [f"## {_text(component)}", "", *_table("", "", scores, counts)]
    if invalid := results.get("invalid_labels"):
        lines += ["## Labels outside the taxonomies", "", *(f"- {_cell(label)}" for label in invalid), ""]
    if notes := results.get("notes"):
        lines += ["## Notes", "", *(f"- {_text(note)}" for note in notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _summary(results: Mapping[str, Any], scored: Mapping[str, Any]) -> list[str]:
    """The table of counts and label validity in the Markdown report of stories."""
    keys = ("summary", "taxonomy_validity")
    values = _flat(results, (*keys, "n_evaluations", "n_malformed"))
    return _table("", "", values, _flat(scored, keys) if scored else None)


def _flat(results: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The values under some keys of a narrative report in one table, with nested tables merged."""
    values: dict[str, Any] = {}
    for key in keys:
        value = results.get(key)
        values |= value if isinstance(value, Mapping) else {key: value} if key in results else {}
    return values


def _table(left: str, right: str, values: Mapping[str, Any], scored: Mapping[str, Any] | None = None) -> list[str]:
    """A Markdown table of the narrative report; `scored` has the number of stories behind each mean."""
    if scored is None:
        return _rows((left, right), values.items())
    return _rows((left, right, "stories"), [(key, value, _stories(scored.get(key))) for key, value in values.items()])


def _stories(scored: Any) -> Any:
    """The number of stories behind a value of the narrative report; empty for a count."""
    return scored if isinstance(scored, int) else ""


def _rows(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a Markdown table in the narrative report."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return [f"| {' | '.join(map(_text, header))} |", "|" + "---|" * len(header), *lines, ""]


def _cell(value: Any) -> str:
    """A value of the narrative report as a cell of a Markdown table."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case float() | None:
            return number(value)
        case str():
            return _text(value)
        case Mapping():
            return ", ".join(f"{_text(key)}: {_cell(item)}" for key, item in value.items()) or "-"
        case _:
            return "; ".join(map(_cell, value)) or "-"


def _text(value: Any) -> str:
    """Text of the narrative report escaped for Markdown: no markup, no HTML, no line break."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def _csv(results: Mapping[str, Any]) -> str:
    """The narrative report as CSV, with a row for each story."""
    rows = results["files"] if "files" in results else [_row({"file": ""} | dict(results), 1)]
    header = list(dict.fromkeys(key for row in rows for key in row)) or ["file", "overall_score"]
    return "".join(csv_lines([header, *([row.get(name) for name in header] for row in rows)]))


_SUFFIXES: Final = {"csv": ".csv", "json": ".json", "markdown": ".md", "md": ".md"}
_WRITERS = {".csv": _csv, ".json": _json, ".md": _markdown}
