"""One suite in several shells: pytest, workers, `run`, `arun` and ``llmeval score`` give the same records."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from running import run_python

from pytest_llmeval.run import ShardFile

if TYPE_CHECKING:
    from conftest import Project

SUITE = """\
import pytest_llmeval as ev


async def answer(question):
    if question == "q3":
        raise ValueError("no answer")
    return {"answer": "Paris" if question != "q2" else "Rome", "usage": {"input_tokens": 7, "output_tokens": 2}}


CASES = [
    {"id": f"c{n}", "input": f"q{n}", "expected": "Paris", "labels": {"half": str(n % 2)},
     "tags": ["skip"] if n == 4 else ["xfail"] if n == 2 else []}
    for n in range(8)
]
capitals = ev.suite("capitals", cases=CASES, target=answer, evaluators=[ev.text(metrics=["f1", "exact_match"])],
                    checks=[ev.max_words(3)], thresholds={"f1": 0.5}, gates=["f1 >= 0.5", "pass_rate >= 0.1"])
"""

SCRIPT = """\
import asyncio
import json
import sys

import msgspec
import pytest
from test_capitals import capitals
from pytest_llmeval.cli import main

if sys.argv[1:] == ["arun"]:
    result = asyncio.run(capitals.arun(progress=False))
else:
    result = capitals.run(progress=False, record="recorded.jsonl")
    main(["score", "test_capitals.py::capitals", "--predictions=recorded.jsonl", "--report=score.json"])
print(json.dumps({
    "records": json.loads(msgspec.json.encode(result.records)),
    "gates": [[each.gate, each.outcome, each.value, each.reason] for each in result.gates],
}))
"""


def _untimed(records: Any) -> str:
    """Return records as JSON, without what is measured in seconds or recorded, and with the labels of the suite."""
    labels = {f"c{n}": {"half": str(n % 2)} for n in range(8)}
    rows = [{"labels": labels[each["id"]], **each} for each in records]
    left_out = ("s", "target_s", "recordings")
    untimed = [{name: each for name, each in row.items() if name not in left_out} for row in rows]
    return json.dumps(untimed, sort_keys=True)


def _kept(path: Path) -> Any:
    """Return the records of a file of kept results, as a run's end settles them."""
    (records,) = ShardFile.read(path, path.parent).run.case_records().values()
    return json.loads(msgspec.json.encode([records[name] for name in sorted(records)]))


@pytest.mark.release
def test_records_are_the_same_in_every_shell(project: "Project") -> None:
    project.write("test_capitals.py", SUITE)
    kept = {}
    for workers in (0, 2):
        ran = project.run("--llmeval-texts=all", f"--llmeval-report=w{workers}.llmeval", workers=workers)
        kept[workers] = _untimed(_kept(project.path / f"w{workers}.llmeval"))
    scripted = {}
    for shell in ("run", "arun"):
        done = run_python(["-c", SCRIPT, shell], {**os.environ, "PYTHONPATH": str(project.path)}, project.path)
        assert done.code == 0, done.err
        scripted[shell] = json.loads(done.out.splitlines()[-1])
        scripted[shell]["records"] = _untimed(scripted[shell]["records"])
    assert kept[0] == kept[2]
    assert scripted["run"] == scripted["arun"]
    assert scripted["run"]["records"] == kept[0]
    (suite,) = ran.report["suites"]
    gates = [[each[name] for name in ("gate", "outcome", "value", "reason")] for each in suite["gates"]]
    assert gates == scripted["run"]["gates"]
    # No target is called by `llmeval score`: what it raised is not known, that there is no answer is.
    (scored,) = json.loads((project.path / "score.json").read_text(encoding="utf-8"))["suites"]
    called, replayed = _settled(suite), _settled(scored)
    for each, reason in ((called, "ValueError: no answer"), (replayed, "case 'c3' is not recorded in recorded.jsonl")):
        without = each["cases"]["c3"]
        assert reason in without.pop("reason")
        assert reason in without.pop("details")["errors"]["prediction"]
    assert replayed == called


def _settled(suite: dict[str, Any]) -> dict[str, Any]:
    """Return a suite of a report without times, without money, and without the texts that are optional."""
    left_out = ("duration_s", "target_latency_s", "input", "expected", "prediction")
    cases = {row["id"]: {name: each for name, each in row.items() if name not in left_out} for row in suite["cases"]}
    return {**suite, "cases": cases, "usage": None, "money": None}
