"""Write the formats of results into benchmarks/results.md: run it after a change of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path

from pytest_llmeval.exchange import ResultFormat, Scores
from pytest_llmeval.exchange._result_formats import FORMATS

PUBLISHED = Path(__file__).parents[1] / "benchmarks/results.md"
_BEGIN, _END = "<!-- begin: written by .ci/results_page.py -->\n", "<!-- end -->"
_TOP = """Paths have dots; `*` is each item of a list or object; the first path that is present counts. A metric is
named by its key, or by the path behind *by*.

- **Ids** that the tool made of a position, such as `test_case_3` or `Case 4`, are ignored: the content identifies the
  case. A file with neither is refused.
- **Repeats** are results of the same case and system, in the order of the file.
- **Errors** have no score, even if the tool writes 0. A score that is null or not finite is an error, unless the list
  has another rule.
- **Wrong types**, such as a text in place of a number, are faults with line and path, and the file is refused.

Reports of `--llmeval-report=report.json` are the format `llmeval`, with one value per case over all repeats.
"""


def text() -> str:
    """Return the page, with the formats between their markers."""
    parts = [_TOP]
    for name, table in FORMATS.items():
        rows = "".join(f"- {field}: {where}\n" for field, where in _rows(table) if where)
        parts.append(f"\n## {name}\n\n{table.written_by}. Tested with {table.read}.\n\n{rows}")
    before, start, remaining = PUBLISHED.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{start}\n{''.join(parts)}\n{_END}{remaining.partition(_END)[2]}"


def _rows(table: ResultFormat) -> Iterator[tuple[str, str]]:
    names = _paths(table.case)
    made = f", except `{table.position}`" if table.position else ""
    content = f"the content of {_paths(table.content)}" if table.content else ""
    yield "case", "; else ".join(each for each in (f"{names}{made}" if names else "", content) if each)
    yield "repeat", _paths(table.repeat) + (", counted from 0" if table.first == 0 else "")
    first, *others = [*table.system, ""]
    more = ", ".join(_paths(each) for each in others if each)
    yield "system", _paths(first) + (f", and where they differ {more}" if more else "")
    yield "metrics", ", ".join(dict.fromkeys(_score(each) for each in table.scores))
    yield "words", ", ".join(f"`{word}`: {value}" for word, value in table.codes.items() if isinstance(word, str))
    yield "null", str(table.codes.get(None, ""))
    yield "not finite", str(table.codes.get(inf, ""))


def _score(scores: Scores) -> str:
    path = ".".join(each for each in (scores.at, scores.value) if each and each != "none")
    name, _, fixed = scores.metric.partition("=")
    if fixed and not name:
        return f"`{fixed.strip()}`" + (f" from `{path}`" if path != fixed.strip() else "")
    without = f", without `{scores.without}`" if scores.without else ""
    return f"`{path}`" + (f" by {_paths(name.strip(' |'))}" if name != "@" else "") + without


def _paths(spec: str) -> str:
    paths = [each.strip() for each in spec.split("|")] if spec else []
    return " or ".join({"@1": "its key"}.get(each, f"`{each}`") for each in paths)


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
