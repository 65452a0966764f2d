"""Shard files of a small suite, made without pytest."""

__all__ = ("CASES", "forged", "origin", "packed", "ran", "write_suite")

import gzip
import json
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_llmeval.run.checkout import Checkout, print_suite, versions
from pytest_llmeval.run.execute import execute
from pytest_llmeval.run.job import CaseAnswer
from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord, SuitePart
from pytest_llmeval.run.shards.file import Origin, ShardOptions, SuiteVariant
from pytest_llmeval.run.shards.selection import Shard
from pytest_llmeval.suite.suite import SuiteKey

CASES = [
    {"id": word, "expected": "a", "prediction": "a" if word != "wrong" else "b"}
    for word in ["p", "q", "r", "s", "wrong"]
]
NAME = "s.eval.json"


def write_suite(folder: Path, **top: Any) -> Path:
    """Write a suite of five cases, of which one is wrong."""
    path = folder / NAME
    content = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "gates": ["exact_match >= 0.8"], **top}
    path.write_text(json.dumps({"cases": CASES, **content}), encoding="utf-8")
    return path


def origin(root: Path, shard: str = "", **more: Any) -> Origin:
    """Return what a run in a folder is made of."""
    suite = Checkout(root, {}).read(root / NAME)
    known: dict[str, Any] = {
        "shard": shard,
        "commit": None,
        "versions": versions(),
        "options": ShardOptions(),
        "require_gates": False,
        "collected": "sha256:0",
        "items": len(CASES),
        "imports": [],
        "suites": [print_suite(suite, root, [])],
        "variants": [SuiteVariant(SuiteKey(NAME, NAME))],
    }
    return Origin(**{**known, **more})


def ran(root: Path, shard: str = "", only: Collection[str] = (), **more: Any) -> RunRecord:
    """Return the record of a run of a shard, or of chosen cases; the others are deselected."""
    suite = Checkout(root, {}).read(root / NAME)
    index, _, count = (shard or "1/1").partition("/")
    part = Shard(int(index), int(count))
    items = {}
    deselected = set()
    for case in suite.cases:
        nodeid = f"{NAME}::{case.id}"
        if part.has(NAME, f"case {case.id}") and (not only or case.id in only):
            key = SuiteKey(str(suite.path), NAME)
            made = SuitePart.of(key, suite.total, [execute(suite, CaseAnswer(case))])
            items[Item(NAME, nodeid)] = ItemResult(made, "passed", 0.25)
        else:
            deselected.add(nodeid)
    return RunRecord(started=1e9, seconds=2.5, items=items, deselected=deselected, selected={str(suite.path)}, **more)


def forged(data: bytes, number: int, change: Callable[[Any], object]) -> bytes:
    """Change a line of a shard file, and make its end agree."""
    lines = gzip.decompress(data).splitlines(keepends=True)[:-1]
    content = json.loads(lines[number])
    change(content)
    lines[number] = json.dumps(content).encode() + b"\n"
    return packed(lines)


def packed(lines: Collection[bytes]) -> bytes:
    """Return the file of a shard that has these lines, and an end that agrees."""
    text = b"".join(lines)
    end = {"lines": len(lines), "sha256": sha256(text).hexdigest()}
    return gzip.compress(text + json.dumps(end).encode() + b"\n")
