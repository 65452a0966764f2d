"""Write what documents suite files: docs/suite.schema.json, and the table of keys in docs/suite-files.md.

Run it after adding a key or an option.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from pytest_llmeval.suite.keys import KEYS
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.schema import SCHEMA_URL, suite_schema

DOCS = Path(__file__).parents[1] / "docs"
PUBLISHED = DOCS / "suite.schema.json"
PAGE = DOCS / "suite-files.md"


def text() -> str:
    """Return the file."""
    schema = suite_schema(default_registry())
    named = {"$schema": schema.pop("$schema"), "$id": SCHEMA_URL, **schema}
    return json.dumps(named, indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """Return the page with the table of keys, and with the message that lists them; new keys follow the rows there."""
    before, start, after = PAGE.read_text(encoding="utf-8").partition("## Top level\n\n")
    table, end, rest = after.partition("\n\n")
    rows = [name for name in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) if name in KEYS]
    keys = [(name, KEYS[name]) for name in dict.fromkeys([*rows, *KEYS])]
    written = [f"| `{name}` | {key.meaning} | {key.otherwise} |".replace("|  |", "| |") for name, key in keys]
    listed = re.sub(rf"expected one of {next(iter(KEYS))}, [\w, ]*\w", f"expected one of {', '.join(KEYS)}", rest)
    return "".join([before, start, "\n".join(["| key | value | default |", "|---|---|---|", *written]), end, listed])


if __name__ == "__main__":
    sys.stdout.write(f"{PUBLISHED.write_text(text(), encoding='utf-8')} characters\n")
    PAGE.write_text(page(), encoding="utf-8")
