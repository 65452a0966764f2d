"""A search to compare with: the cases that share most words with the query, Chinese characters being words."""

__all__ = ("search",)

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("corpus.jsonl")


def search(query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the ten cases of the corpus that share most words with a query."""
    asked = words(query["fact"])
    ranked = sorted(corpus(), key=lambda case: -len(asked & words(case["fact"])))
    return ranked[:10]


@cache
def corpus() -> list[dict[str, Any]]:
    """Read the corpus."""
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def words(text: str) -> set[str]:
    """Return the words of a text."""
    return set(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()))
