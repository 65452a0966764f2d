"""Write the tables of docs/import.md: what importers declare, and what was tried against the tools."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from constructs import UNTRIED, kind_of
from replay import IMPORTED, Imported, kept

from pytest_llmeval.exchange.contract import Fate
from pytest_llmeval.exchange.promptfoo.assertions import KINDS, TYPES

PAGE: Final = Path(__file__).parents[2] / "docs/import.md"
_BEGIN, _END = "<!-- begin: written by tests/differential/import_page.py -->", "<!-- end -->"


def written(page: str) -> str:
    """Return the page with its tables written anew."""
    before, _, remaining = page.partition(_BEGIN)
    _, _, after = remaining.partition(_END)
    return "\n".join((before + _BEGIN, "", *_tables(), "", _END)) + after


def _tables() -> Iterator[str]:
    tools = {tool: kept(tool) for tool in sorted(IMPORTED)}
    yield "| tool | version | pairs of construct and answer | equal | different, as the report says | otherwise |"
    yield "|---|---|---|---|---|---|"
    for tool, (data, _) in tools.items():
        counts = [data["tried"].get(fate, 0) for fate in ("equal", "documented", "different")]
        yield f"| {tool} | {data['version']} | {sum(counts):,} | {' | '.join(f'{each:,}' for each in counts)} |"
    yield from ("", "| tool | group | constructs |", "|---|---|---|")
    alike: dict[tuple[str, str], list[str]] = {}
    for tool, kind, imports in _kinds(tools):
        alike.setdefault((tool, _fate(imports)), []).append(f"`{kind}`")
    for (tool, fate), kinds in sorted(alike.items()):
        yield f"| {tool} | {fate} | {', '.join(kinds)} |"


def _kinds(tools: dict[str, tuple[Any, list[Imported]]]) -> Iterator[tuple[str, str, list[Imported]]]:
    """Yield the tool, the kind and the imports of each kind of construct."""
    for tool, (data, imports) in tools.items():
        untried = UNTRIED.get(tool, [])
        constructs = [*(construct for construct, *_ in data["rows"]), *untried]
        by_kind: dict[str, list[Imported]] = {}
        for construct, each in zip(constructs, [*imports, *IMPORTED[tool](untried)], strict=True):
            by_kind.setdefault(kind_of(construct).removeprefix("not-"), []).append(each)
        for kind, listed in sorted(by_kind.items()):
            yield tool, kind, listed
    left_out = [{"type": kind} for kind in sorted(TYPES - KINDS.keys())]
    for construct, each in zip(left_out, IMPORTED["promptfoo"](left_out), strict=True):
        yield "promptfoo", construct["type"], [each]


def _fate(imports: list[Imported]) -> str:
    """Return the group of constructs of one kind."""
    known = {each.fate for each in imports}
    return " or ".join(fate.value for fate in (Fate.SAME, Fate.NEAR) if fate in known) or "not imported"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
