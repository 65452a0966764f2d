"""Means over evaluated stories, and their report as JSON or Markdown."""

__all__ = ("aggregate_results", "generate_report")

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.wording import number
from pytest_llmeval.data.files.writing import write_text

if TYPE_CHECKING:
    import os

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@])")


def aggregate_results(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return means over stories, each over those where the value exists.

    Args:
        results: What `Narrative.evaluate` returned for each story.

    Returns:
        ``overall_score``, ``component_scores``, ``detailed_results`` and ``summary`` as in the results, with the mean
        of every number (counts included); ``taxonomy_validity``; and ``n_evaluations``. ``None`` where no story
        has a value. ``files`` has the scores of each story whose result has a ``file``. For metrics
        pooled over stories see `pytest_llmeval.score`.
    """
    kept = ("overall_score", "component_scores", "detailed_results", "summary", "taxonomy_validity")
    means = {key: _mean([result[key] for result in results if key in result]) for key in kept}
    rows = [_row(result) for result in results if "file" in result]
    counts = {"gt_incomplete": _gaps(results), "n_evaluations": len(results)}
    return means | counts | ({"files": rows} if rows else {})


def _row(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of one story on one level."""
    events = (result.get("summary") or {}).get("event_accuracy")
    scores = {"file": result["file"], "overall_score": result.get("overall_score")}
    return scores | dict(result.get("component_scores") or {}) | {"event_accuracy": events}


def _gaps(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return for each part how many stories lack ground truth of an event or relationship, and how many values."""
    gaps: dict[str, dict[str, int]] = {}
    for result in results:
        for part, found in (result.get("detailed_results") or {}).items():
            if "gt_gaps" in found:
                counts = gaps.setdefault(part, {"stories": 0, "values": 0})
                counts["stories"] += found["gt_incomplete"]
                counts["values"] += len(found["gt_gaps"])
    return gaps


def _mean(values: Sequence[Any]) -> Any:
    """Return the mean of numbers, or of mappings key by key; what is neither is left out."""
    mappings = [value for value in values if isinstance(value, Mapping)]
    if not mappings:
        present = [value for value in values if _is_number(value)]
        return math.fsum(present) / len(present) if present else None
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    columns = {key: [mapping[key] for mapping in mappings if key in mapping] for key in keys}
    return {key: _mean(column) for key, column in columns.items() if all(map(_is_averaged, column))}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_averaged(value: Any) -> bool:
    return value is None or _is_number(value) or isinstance(value, Mapping)


def generate_report(results: Mapping[str, Any], output_path: "str | os.PathLike[str] | None" = None) -> str:
    """Write what `Narrative.evaluate` or `aggregate_results` returned.

    Args:
        results: The results.
        output_path: A file whose name ends in ``.json``, ``.md`` or, for the scores of each story, ``.csv``; its
            folder is made. ``None``: nothing is written.

    Returns:
        The report: JSON if the path says so, else Markdown.

    Raises:
        ValueError: The path has another suffix.
        OSError: The file cannot be written.
    """
    suffix = ".md" if output_path is None else PurePath(output_path).suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(f"found the path {str(output_path)!r}, expected a path that ends in .json, .md or .csv")
    report = _WRITERS[suffix](results)
    if output_path is not None:
        Path(output_path).parent.mkdir(parents=True, exist_ok=True)
        write_text(Path(output_path), [report])
    return report


def _json(results: Mapping[str, Any]) -> str:
    return json.dumps(results, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _markdown(results: Mapping[str, Any]) -> str:
    lines = ["# Narrative evaluation", "", f"Overall score: **{number(results.get('overall_score'))}**", ""]
    lines += _table("component", "score", results.get("component_scores") or {})
    lines += ["## Summary", "", *_table("", "", _flat(results, ("summary", "taxonomy_validity", "n_evaluations")))]
    for component, found in (results.get("detailed_results") or {}).items():
        lines += [f"## {_text(component)}", "", *_table("", "", found)]
    if invalid := results.get("invalid_labels"):
        lines += ["## Labels outside the taxonomies", "", *_items(invalid), ""]
    return "\n".join(lines).rstrip() + "\n"


def _flat(results: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in keys:
        value = results.get(key)
        found |= value if isinstance(value, Mapping) else {key: value} if key in results else {}
    return found


def _table(left: str, right: str, values: Mapping[str, Any]) -> list[str]:
    rows = [f"| {_text(key)} | {_cell(value)} |" for key, value in values.items()]
    return [f"| {left} | {right} |", "|---|---|", *rows, ""]


def _cell(value: Any) -> str:
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
            return ", ".join(f"{_text(key)}: {_cell(each)}" for key, each in value.items()) or "-"
        case _:
            return "; ".join(map(_cell, value)) or "-"


def _items(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"- {_cell(entry)}" for entry in entries]


def _text(value: Any) -> str:
    """Write text so that Markdown shows it and does nothing else: no markup, no HTML, no line break."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def _csv(results: Mapping[str, Any]) -> str:
    """Return a row for each story: those of `aggregate_results`, or the one of `Narrative.evaluate`."""
    rows = results.get("files") or [_row({"file": ""} | dict(results))]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


_WRITERS = {".csv": _csv, ".json": _json, ".md": _markdown}
