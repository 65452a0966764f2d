"""From a run to a review, and back: labels of people correct the scores of the next run."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.evaluators import HumanLabel

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """
import json, re
import pytest

@pytest.fixture(scope="session")
def judge_client():
    def judge(request):
        number = int(re.search(r"answer (\\d+)", str(request))[1])
        return json.dumps({"reasoning": "x", "score": 37 * number % 100 / 100})
    return judge
"""


def answers(project: "Project") -> list[dict[str, Any]]:
    """Return the items of the page."""
    html = (project.path / "report.review.html").read_text(encoding="utf-8")
    data = re.search(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert data
    items: list[dict[str, Any]] = json.loads(data[1])["items"]
    return items


def labelled(items: list[dict[str, Any]], annotator: str, path: Path) -> dict[str, float]:
    """Write that a person finds every answer perfect, and return the weights by case."""
    labels = [HumanLabel(annotator=annotator, scale="1-5", label=5, **each["line"]) for each in items]
    path.write_text("".join(map(HumanLabel.line, labels)), encoding="utf-8")
    return {each["line"]["cases"][0]: 1 / each["line"]["probability"] for each in items}


def test_labels_of_picked_answers_correct_the_next_run(
    project: "Project", workers: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.path)
    project.write("conftest.py", CONFTEST)
    # Long passages are cut in reports; what the judge saw is not.
    cases = [
        {"id": f"c{number}", "input": f"Question {number}?", "expected": "right",
         "prediction": {"text": f"answer {number}", "sources": ["long " * 1000]}}
        for number in range(40)
    ]  # fmt: skip
    options: dict[str, Any] = {"judge": "openai:M", "parts": {"answer": "text", "contexts": "sources"}}
    gates = ["judge_score >= 0.5"]
    project.suite("qa.eval.json", cases, evaluators=[{"judge": {"mode": "continuous"}}], gates=gates, **options)
    first = project.run("--llmeval-texts=all", workers=workers)
    assert main(["review", "report.json", "--pick", "15"]) == 0
    assert capsys.readouterr().out == "wrote report.review.html: 15 of 40 answers\n"
    items = answers(project)
    weights = labelled(items, "ana", project.path / "labels-ana.jsonl")
    assert labelled(items[:10], "ben", project.path / "labels-ben.jsonl").items() <= weights.items()

    human = ["labels-ana.jsonl", "labels-ben.jsonl"]
    evaluators = [
        {"judge": {"mode": "continuous", "corrected": True, "human": human}},
        {"judge_agreement": {"mode": "continuous", "human": "labels-ana.jsonl"}},
    ]
    project.suite("qa.eval.json", cases, evaluators=evaluators, **options)
    ran = project.run(workers=workers)
    metrics = ran.report["suites"][0]["metrics"]
    scores = {each["id"]: each["metrics"]["judge_score"] for each in first.report["suites"][0]["cases"]}
    excess = sum(weight * (1 - scores[name]) for name, weight in weights.items()) / sum(weights.values())
    found = metrics["corrected(judge_score)"]
    assert found["value"] == pytest.approx(1)  # whatever the judge says, people say the same
    assert found["low"] < found["value"] <= found["high"] == 1
    assert metrics["agreement"]["scored"] == 15
    assert metrics["bias"]["value"] == pytest.approx(-excess)


def test_labels_outside_the_project_are_not_read(project: "Project") -> None:
    project.path.with_name("labels.jsonl").write_text("secret\n", encoding="utf-8")
    evaluators = [{"judge": {"mode": "continuous", "corrected": True, "human": ["../labels.jsonl"]}}]
    project.suite("qa.eval.json", [{"id": "a", "input": "?", "prediction": "x"}], evaluators=evaluators)
    ran = project.run()
    assert "found '../labels.jsonl', which is outside the folder" in ran.text
    assert "secret" not in ran.text
