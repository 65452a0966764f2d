"""Write what documents suite files: docs/suite.schema.json, and the tables of keys of suites and gates in the pages.

Run it after adding a key or an option.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

from pytest_llmeval.gates import Gate
from pytest_llmeval.gates._rules import RULES
from pytest_llmeval.suites import KEYS, Registry
from pytest_llmeval.suites._schema import SCHEMA_URL, suite_schema

DOCS = Path(__file__).parents[1] / "docs"
PUBLISHED = DOCS / "suite.schema.json"
PAGE = DOCS / "suite-files.md"
GATES = re.compile(r"(<!-- keys of gates with (\w+) -->\n\n)(?:.*?\n\n)?(<!-- end of keys -->)", re.DOTALL)
"""A table of the keys of gates in a page, with a key by which its rules are known."""


def text() -> str:
    """Return the file."""
    schema = suite_schema(Registry.installed())
    named = {"$schema": schema.pop("$schema"), "$id": SCHEMA_URL, **schema}
    return json.dumps(named, indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """Return the page with the table of keys, and with the message that lists them; new keys follow the rows there."""
    before, start, after = PAGE.read_text(encoding="utf-8").partition("## All keys\n\n")
    table, end, rest = after.partition("\n\n")
    rows = [name for name in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) if name in KEYS]
    keys = [(name, KEYS[name]) for name in dict.fromkeys([*rows, *KEYS])]
    written = [f"| `{name}` | {key.meaning} | {key.otherwise} |".replace("|  |", "| |") for name, key in keys]
    listed = re.sub(rf"expected one of {next(iter(KEYS))}, [\w, ]*\w", f"expected one of {', '.join(KEYS)}", rest)
    return "".join([before, start, "\n".join(["| key | value | default |", "|---|---|---|", *written]), end, listed])


def gates_pages() -> dict[Path, str]:
    """Return the pages with tables of the keys of gates, as they are to be; rows are in the first table only."""
    tables = {}
    known = set[str]()
    for tag in dict.fromkeys(rule.tags[0] for rule in RULES):
        rows = gate_rows(tag)
        new = [row for row in rows if row not in known]
        known |= {*rows, *rows.values()}
        tables[tag] = "\n".join(["| key | value | default |", "|---|---|---|", *new])
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    written = {
        path: GATES.sub(lambda match: f"{match[1]}{tables[match[2]]}\n\n{match[3]}", page)
        for path, page in pages.items()
    }
    documented = {match[2] for page in pages.values() for match in GATES.finditer(page)}
    if lacking := [tag for tag in tables if tag not in documented]:
        raise SystemExit(
            f"no page has a table between <!-- keys of gates with {lacking[0]} --> and <!-- end of keys -->"
        )
    return {path: page for path, page in written.items() if GATES.search(page)}


def gate_rows(tag: str) -> dict[str, str]:
    """Return a row for each key of the rules that are known by a key, and the row that it has if all of them own it."""
    rules = [rule for rule in RULES if tag in rule.tags]
    keys = {rule: rule.keys() for rule in rules}
    owned = {name: [rule for rule in rules if name in keys[rule]] for names in keys.values() for name in names}
    rows = {}
    for name, owners in owned.items():
        key = keys[owners[0]][name]
        meaning = ". ".join(f"`{rule.rule}`: {rule.meaning}" for rule in owners) if name == "rule" else key.meaning
        some = "" if owners == rules else f" ({', '.join(f'`{rule.rule}`' for rule in owners)})"
        otherwise = key.otherwise or default(owners[0], name)
        rows[f"| `{name}` | {meaning}{some} | {otherwise} |"] = f"| `{name}` | {meaning} | {otherwise} |"
    return rows


def default(rule: type[Gate], name: str) -> str:
    """Return the value of a gate without a key."""
    if name == "rule":
        return f"`{rule.rule}`"
    if name == "metric" or name in rule.tags:
        return "required"
    value = next(each.default for each in fields(rule) if each.name == name)
    return f"`{str(value).lower()}`" if isinstance(value, bool | str) else str(value)


if __name__ == "__main__":
    sys.stdout.write(f"{PUBLISHED.write_text(text(), encoding='utf-8')} characters\n")
    PAGE.write_text(page(), encoding="utf-8")
    for path, content in gates_pages().items():
        path.write_text(content, encoding="utf-8")
