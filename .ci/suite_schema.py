"""Write docs/suite.schema.json, the JSON Schema of suite files with what ships: run it after adding an option."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.schema import SCHEMA_URL, suite_schema

PUBLISHED = Path(__file__).parents[1] / "docs/suite.schema.json"


def text() -> str:
    """Return the file."""
    schema = suite_schema(default_registry())
    named = {"$schema": schema.pop("$schema"), "$id": SCHEMA_URL, **schema}
    return json.dumps(named, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(f"{PUBLISHED.write_text(text(), encoding='utf-8')} characters\n")
