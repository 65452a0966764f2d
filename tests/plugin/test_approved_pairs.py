"""Pairs of an answer and the approved one, which is kept beside the approved scores."""

import gzip
import json
import os
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python
from scripted_judges import shown_to
from servers import Call, Sent, reply

if TYPE_CHECKING:
    from conftest import Ran
    from scripted_judges import Judged

CASES = [{"id": word, "input": word, "expected": word} for word in ("one", "two", "three")]


def longer(call: Call) -> Sent:
    shown = shown_to(call)
    better = "first" if len(shown["first"]) > len(shown["second"]) else "second"
    return reply(json.dumps({"better": better}))(call)


@pytest.fixture
def approved(judged: "Judged") -> "Judged":
    judged.server.script(longer)
    say(judged, "value")
    suite(judged)
    return judged


def say(judged: "Judged", answer: str) -> None:
    judged.project.write("my_app.py", f"def answer(value):\n    return {answer}\n")


def suite(judged: "Judged", *evaluators: Any, **top: Any) -> None:
    listed = evaluators or ({"pairwise": {"against": "approved"}}, {"text": {"metrics": ["f1"]}})
    options = {"target": "my_app:answer", "judge": judged.judge(), "snapshot": True, **top}
    judged.project.suite("s.eval.yaml", CASES, evaluators=listed, **options)


def metrics(ran: "Ran") -> dict[str, float | None]:
    return {name: each["value"] for name, each in ran.suites["s"]["metrics"].items()}


def test_an_approval_keeps_the_answers_that_later_runs_are_compared_with(approved: "Judged") -> None:
    folder = approved.project.path / "__llmeval__"
    first = approved.project.run("--snapshot-update", workers=2)
    assert metrics(first)["win_rate"] is None
    assert "--snapshot-update" in first.suites["s"]["cases"][0]["details"]["pairwise"]["against"]["approved"]["missing"]
    kept = [json.loads(line) for line in (folder / "s.answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(each["case"], each["prediction"]) for each in kept] == [("one", "one"), ("three", "three"), ("two", "two")]
    scores = json.loads((folder / "s.scores.json").read_text(encoding="utf-8"))
    assert set(scores["metrics"]) == {"f1", "pass_rate"}

    say(approved, "value + '!' if value == 'two' else value")
    second = approved.project.run(workers=2)
    assert second.code == 0
    assert {name: metrics(second)[name] for name in ("wins", "ties", "losses")} == {"wins": 1, "ties": 2, "losses": 0}

    approved.project.run("--snapshot-update")
    third = approved.project.run()
    assert (third.code, metrics(third)["ties"]) == (0, 3)


def test_a_page_shows_the_approved_answer_of_a_case_whose_texts_it_has(approved: "Judged") -> None:
    approved.project.run("--snapshot-update")
    say(approved, "'wrong' if value == 'two' else value")
    suite(approved, thresholds={"f1": 0.5})
    for texts, kept in (("failing", [False, False, True]), ("all", [True] * 3), ("none", [False] * 3)):
        approved.project.run(f"--llmeval-texts={texts}", "--llmeval-report=page.html")
        found = page_pieces((approved.project.path / "page.html").read_text(encoding="utf-8"))
        before = {each["prediction"] for each in found["s1c0"] if each}
        assert sorted("prediction" in each for each in found["s1c0"]) == sorted(kept)
        (worst, *_) = found["s0w"]
        assert worst["before"].get("prediction") == ("two" if texts != "none" else None)
        assert before <= {"one", "two", "three"}


def page_pieces(html: str) -> dict[str, Any]:
    """Return the compressed parts of a page by name."""
    found = re.findall(r'<script type="text/plain" id="(\w+)">(.*?)</script>', html)
    return {name: json.loads(gzip.decompress(b64decode(text))) for name, text in found}


def test_damaged_answers_are_a_fault_of_the_suite_with_file_and_line(approved: "Judged") -> None:
    approved.project.run("--snapshot-update")
    path = approved.project.path / "__llmeval__" / "s.answers.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('{"case": "three"', '{"case'), encoding="utf-8")
    ran = approved.project.run("--snapshot-update")
    assert (ran.code, ran.suites) == (1, {})
    assert "__llmeval__/s.answers.jsonl:2:1  the approved answer cannot be read" in ran.text


def test_damaged_answers_of_a_variant_are_a_fault_as_well(approved: "Judged") -> None:
    suite(approved, target=None)
    approved.project.write(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(params=['v1', 'v2'])\ndef llmeval_target(request):\n"
        "    return lambda value: request.param\n",
    )
    approved.project.run("--snapshot-update")
    (path,) = (approved.project.path / "__llmeval__").glob("s.v2-*.answers.jsonl")
    path.write_text("[]\n", encoding="utf-8")
    ran = approved.project.run()
    assert (ran.code, ran.suites) == (1, {})
    assert f"__llmeval__/{path.name}:1:1  the approved answer cannot be read" in ran.text


def test_answers_are_approved_from_shards_and_forgotten_when_nothing_compares_with_them(approved: "Judged") -> None:
    folder, parts = approved.project.path, [f"--llmeval-report=part{part}.llmeval" for part in (1, 2)]
    for part, kept in enumerate(parts, 1):
        approved.project.run(f"--llmeval-shard={part}/2", kept)
    merge = ["-m", "pytest_llmeval", "merge", "part1.llmeval", "part2.llmeval", "--snapshot-update"]
    done = run_python(merge, os.environ, folder)
    path = folder / "__llmeval__" / "s.answers.jsonl"
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3, done
    suite(approved, {"text": {"metrics": ["f1"]}})
    ran = approved.project.run("--snapshot-update")
    assert not path.exists(), ran.text


def test_a_gate_against_a_baseline_of_pairs_with_the_baseline_is_a_fault(approved: "Judged") -> None:
    suite(approved, {"pairwise": {"against": "approved"}}, gates=[{"metric": "win_rate", "max_drop": 0.1}])
    assert "found 'win_rate' with a baseline, expected a limit such as a min" in approved.project.run().text
