"""``llmeval review``: the page, what labels say, and serving."""

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pages import answered, labels_of, lines, suites_of

from pytest_llmeval.cli import main
from pytest_llmeval.evaluators import HumanLabel
from pytest_llmeval.workbench.reviews._items import Review, review_of


@pytest.fixture
def found(here: Path) -> Review:
    """Write a report, and return the review of all its answers."""
    cases = [answered(place, [place % 2], "passed" if place < 3 else "failed") for place in range(6)]
    return review_of(suites_of(here, *cases))


@pytest.mark.usefixtures("found")
def test_the_page_stands_beside_the_report_and_is_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "run.json", "--pick", "4", "--seed", "2"]) == 0
    assert capsys.readouterr().out == "wrote run.review.html: 4 of 6 answers\n"
    assert main(["--json", "review", "run.json", "--pick", "4", "--seed", "2", "-o", "other.html"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result == {"written": ["other.html"], "answers": 4, "total": 6}
    assert Path("run.review.html").read_bytes() == Path("other.html").read_bytes()


def test_labels_say_who_agrees_what_the_suite_takes_for_wrong_and_what_it_misses(
    found: Review, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ana = labels_of(found, "ana", lambda number: "yes" if number in (1, 3) else "no")
    ben = labels_of(found, "ben", lambda number: None if number == 5 else "yes" if number in (1, 2, 3) else "no")
    other = review_of(suites_of(here, answered(9, [0])), scale="yesno")
    lines(here / "a.jsonl", [*ana, *labels_of(other, "ana", lambda _: "no")])
    lines(here / "b.jsonl", ben)
    suites_of(here, *(answered(place, [place % 2], "passed" if place < 3 else "failed") for place in range(6)))
    assert main(["--json", "review", "run.json", "--labels", "a.jsonl", "b.jsonl"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["result"]["findings"]) == sorted(
        [
            "ana: 7 labels, mean 0.2857",
            "ben: 5 labels, 1 skipped, mean 0.6000",
            "1 label of answers that this run does not have",
            "ana and ben say the same of 4 of 5 answers, alpha 0.6400",
            "c3: failed, and right to all 2 people; an expected answer, if you agree:",
            '    expected: ["Right 3", "Answer 3"]',
            "c0: passed, and wrong to all 2 people",
            "c4: failed, and wrong to all 2 people; as a known failure: llmeval approve run.json --case c4",
            "c5: failed, and wrong to ana; as a known failure: llmeval approve run.json --case c5",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.json"], "missing.json  cannot be read"),
        (["run.json", "--suite", "other"], "run.json: no suite 'other' in the report"),
        (["run.json", "--evaluator", "juge"], "run.json: unknown judge 'juge', expected one of judge"),
        (["run.json", "--labels", "missing.jsonl"], "missing.jsonl  cannot be read"),
        (["run.json", "-o", "no/folder.html"], "cannot be written"),
    ],
)
@pytest.mark.usefixtures("found")
def test_what_cannot_be_reviewed_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_several_suites_need_a_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suites_of(here, answered(1))
    data = json.loads(Path("run.json").read_text(encoding="utf-8"))
    data["suites"].append({**data["suites"][0], "suite": "towns", "path": "towns.eval.yaml"})
    Path("run.json").write_text(json.dumps(data), encoding="utf-8")
    assert main(["review", "run.json"]) == 1
    named = "name it by --suite: capitals.eval.yaml, towns.eval.yaml"
    assert capsys.readouterr().err == f"run.json: found 2 suites, expected one: {named}\n"
    assert main(["review", "run.json", "--suite", "towns"]) == 0


def test_a_served_review_keeps_labels_until_it_is_stopped(found: Review, here: Path) -> None:
    command = [sys.executable, "-m", "pytest_llmeval", "review", "run.json", "--serve", "-o", "mine.jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=here, env={**os.environ}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "6 of 6 answers; labels go to mine.jsonl\n"
        address = urlsplit(process.stdout.readline().strip())
        assert process.stdout.readline() == "stop with Ctrl-C\n"
        connection = HTTPConnection(str(address.hostname), address.port or 0, timeout=60)
        body = json.dumps({"annotator": "ana", "labels": [{"item": 0, "label": "yes"}]})
        headers = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"}
        connection.request("POST", f"{address.path}labels", body, headers)
        assert connection.getresponse().read() == b"saved"
        connection.request("GET", address.path)
        page = connection.getresponse().read().decode()
        assert "connect-src 'self'" in page
        assert address.path.strip("/") not in page
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "stopped; mine.jsonl has 1 label\n"
        assert process.wait() == 0
    assert HumanLabel.read_all([(here / "mine.jsonl", "")]) == [found.label(0, "ana", "yes")]


def test_serving_does_not_start_on_a_file_with_faults(
    found: Review, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "labels.jsonl").write_text("mine\n", encoding="utf-8")
    assert found.items
    assert main(["review", "run.json", "--serve"]) == 1
    assert capsys.readouterr().err.startswith("labels.jsonl:1:1")


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_a_port_that_does_not_exist_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["review", "run.json", "--serve", f"--port={port}"])
    assert f"found {port!r}, expected a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.usefixtures("found")
def test_no_command_writes_over_what_it_reads(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (here / "run.json").read_bytes()
    suite = here / "s.eval.yaml"
    suite.write_text("checks: [contains: a]\ncases: [{id: a, prediction: a}]\n", encoding="utf-8")
    for line in (
        ["review", "run.json", "-o", "run.json"],
        ["comment", "run.json", "--output", "run.json"],
        ["comment", "run.json", "--baseline", "s.eval.yaml", "--output", "s.eval.yaml"],
        ["mutate", "s.eval.yaml", "--json", "s.eval.yaml"],
    ):
        assert main(line) == 1
        assert "found the file that is read, expected another one to write to" in capsys.readouterr().err
    assert (here / "run.json").read_bytes() == before
    assert suite.read_text(encoding="utf-8").startswith("checks")
    assert main(["mutate", "s.eval.yaml", "--budget", "garbage"]) == 2
    assert "--budget" in capsys.readouterr().err
