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
GATES = {DOCS / "thresholds-and-gates.md": "min", DOCS / "regressions.md": "max_drop"}
"""Page to a key by which the rules of its table are known."""
MARKERS = "<!-- keys of gates -->\n\n", "\n\n<!-- end of keys -->"


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


def gates_page(path: Path) -> str:
    """Return a page with the table of the keys of gates between its markers, without rows of an earlier page."""
    first, *_ = GATES.values()
    known = gate_rows(first) if GATES[path] != first else []
    rows = [row for row in gate_rows(GATES[path]) if row not in known]
    start, end = MARKERS
    before, _, after = path.read_text(encoding="utf-8").partition(start)
    table = "\n".join(["| key | value | default |", "|---|---|---|", *rows])
    return f"{before}{start}{table}{end}{after.partition(end)[2]}"


def gate_rows(tag: str) -> list[str]:
    """Return a row for each key of the rules that are known by a key."""
    rules = [rule for rule in RULES if tag in rule.tags]
    keys = {rule: rule.keys() for rule in rules}
    owned = {name: [rule for rule in rules if name in keys[rule]] for names in keys.values() for name in names}
    rows = []
    for name, owners in owned.items():
        key = keys[owners[0]][name]
        meaning = ". ".join(f"`{rule.rule}`: {rule.meaning}" for rule in owners) if name == "rule" else key.meaning
        some = "" if owners == rules else f" ({', '.join(f'`{rule.rule}`' for rule in owners)})"
        rows.append(f"| `{name}` | {meaning}{some} | {key.otherwise or default(owners[0], name)} |")
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
    for each in GATES:
        each.write_text(gates_page(each), encoding="utf-8")
