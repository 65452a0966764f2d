"""The shop of the page "RAG in ten minutes" behind HTTP, with a judge that is out of order at times."""

import os
import re
from pathlib import Path

import yaml
from project import ROOT
from running import WITHOUT_UNUSED, run_python
from shop.world import messy_judge, service

PAGE = (ROOT / "docs" / "rag-in-ten-minutes.md").read_text(encoding="utf-8")
ENVIRONMENT = {
    key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "GITHUB_", "CI", "COVERAGE_"))
}


def written(name: str) -> str:
    """Return the first file of a name that the page shows."""
    match = re.search(rf"`{re.escape(name)}`[^\n]*:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = run_python(["-m", *arguments], ENVIRONMENT, folder)
    return done.code, done.out + done.err


def test_a_service_is_evaluated_as_its_function_is_and_a_refused_connection_is_named(tmp_path: Path) -> None:
    namespace: dict[str, object] = {}
    application = written("my_app.py").replace("from passages import PASSAGES\n", written("passages.py"))
    exec(application, namespace)
    (tmp_path / "questions.csv").write_text(written("questions.csv"), encoding="utf-8")
    suite = yaml.safe_load(written("tests/evals/questions.eval.yaml").replace("on:", '"on":'))
    suite["source"]["path"] = "questions.csv"
    file = tmp_path / "questions.eval.yaml"
    evaluate = ("pytest", *WITHOUT_UNUSED, "--llmeval", file.name, "--llmeval-judge=record")
    with messy_judge() as judge, service(namespace["answer"]) as address:
        suite["judge"]["base_url"] = judge.base_url
        suite["target"] = {"http": {"url": address, "request": {"question": {"$input": True}}}}
        file.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
        _, plan = run(tmp_path, *evaluate, "--llmeval-plan")
        code, text = run(tmp_path, *evaluate)
        assert (code, "6 cases, 4 gates passed" in text) == (0, True), text
        # The calls lie within the plan, also those for replies that could not be read.
        ((least, most),) = re.findall(r"judge: about (\d+) to (\d+) calls", plan)
        (again,) = re.findall(r"(\d+) further calls at most", plan)
        (requested,) = re.findall(r"(\d+) requested in this run", text)
        assert int(least) <= int(requested) <= int(most) + int(again)
        # Refused calls and replies without a verdict were asked again, and cost no case.
        assert len(judge.calls) > 30
        assert "30 judgements recorded" in text
    code, text = run(tmp_path, "pytest_llmeval", "doctor", file.name)
    assert (code, "refuses connections" in text) == (1, True), text
