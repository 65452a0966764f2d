"""Write the tables of benchmarks/imports.md: what importers declare, and what was tried against the tools."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from constructs import UNTRIED, kind_of
from counterparts import COUNTERPARTS, Written
from replay import IMPORTED, Imported, kept

from pytest_llmeval.exchange._ledger import Fate
from pytest_llmeval.exchange.promptfoo._assertions import KINDS, TYPES

PAGE: Final = Path(__file__).parents[2] / "benchmarks/imports.md"
_BEGIN, _END = "<!-- begin: written by tests/differential/import_page.py -->", "<!-- end -->"


def written(page: str) -> str:
    """Return the page with its tables written anew."""
    before, _, remaining = page.partition(_BEGIN)
    _, _, after = remaining.partition(_END)
    return "\n".join((before + _BEGIN, "", *_tables(), "", _END)) + after


def _tables() -> Iterator[str]:
    tools = {tool: kept(tool) for tool in sorted(IMPORTED)}
    yield "| tool | version | equal | different as reported | other differences |"
    yield "|---|---|---|---|---|"
    for tool, (data, _) in tools.items():
        counts = [data["tried"].get(fate, 0) for fate in ("equal", "documented", "different")]
        yield f"| {tool} | {data['version']} | {' | '.join(f'{each:,}' for each in counts)} |"
    alike: dict[str, list[str]] = {}
    for kind, imports in _kinds(*tools["promptfoo"]):
        alike.setdefault(_fate(imports), []).append(f"`{kind}`")
    yield from ("", "Assertions of promptfoo:", "")
    for fate, kinds in sorted(alike.items()):
        yield f"- {fate}: {', '.join(kinds)}"
    yield from ("", "Metrics that are written anew:", "")
    deciding: dict[str, dict[str, list[str]]] = {}
    for tool, known in sorted(COUNTERPARTS.items()):
        yield f"- {tool}:"
        yield from (f"  - `{name}`: `{each.written}`" for name, each in known.items())
        for name, each in known.items():
            for made in each.differences:
                text = f"{made.text[0].upper()}{made.text[1:]} ({made.direction.value})"
                deciding.setdefault(text, {}).setdefault(tool, []).append(f"`{name}`")
    yield from ("", "What decides differently, and for which metrics:", "")
    for text, metrics in deciding.items():
        yield f"- {text}: {'; '.join(_joined(metrics))}"


def _joined(metrics: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each tool with the names of its metrics, or as a whole if there are no others."""
    for tool, names in metrics.items():
        whole = len(names) == len(COUNTERPARTS[tool])
        yield f"all of {tool}" if whole else f"{tool} {', '.join(names)}"


def _kinds(data: Any, imports: Sequence[Imported | Written]) -> Iterator[tuple[str, list[Imported | Written]]]:
    """Yield the kind and the imports of each kind of assertion of promptfoo."""
    left_out = [*UNTRIED["promptfoo"], *({"type": kind} for kind in sorted(TYPES - KINDS.keys()))]
    constructs = [*(construct for construct, *_ in data["rows"]), *left_out]
    by_kind: dict[str, list[Imported | Written]] = {}
    for construct, each in zip(constructs, [*imports, *IMPORTED["promptfoo"](left_out)], strict=True):
        by_kind.setdefault(kind_of(construct).removeprefix("not-"), []).append(each)
    yield from sorted(by_kind.items())


def _fate(imports: Sequence[Imported | Written]) -> str:
    """Return the group of constructs of one kind."""
    known = {each.fate for each in imports}
    return " or ".join(fate.value for fate in (Fate.SAME, Fate.NEAR) if fate in known) or "not imported"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
