"""The subcommand mutate with judges: what it would cost comes first, and verdicts of mutants stay apart."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_judges import KEY, shown_to
from servers import Call, LlmServer, Sent, reply, status

from pytest_llmeval.cli import main

FACTS = {
    "refund": "Refunds take 30 days after the return.",
    "shipping": "Shipping is free above 50 euros.",
    "hours": "The shop is open from 9 until 18 daily.",
}


def is_right(call: Call) -> bool:
    """Return whether an answer is what is expected, however it is written."""
    shown = shown_to(call)
    said, wanted = (" ".join(shown[name].lower().split()).strip(".") for name in ("answer", "reference"))
    return said == wanted


def strict(call: Call) -> Sent:
    return reply("yes" if is_right(call) else "no")(call)


@pytest.fixture
def server(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    del here
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer(strict) as made:
        yield made


@pytest.fixture
def mutate(server: LlmServer, here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    content = {
        "suite": "s",
        "evaluators": [{"judge": {"mode": "default_binary"}}],
        "judge": {"model": "openai:model", "base_url": server.base_url, "retries": 0},
        "gates": ["judge_score >= 0.8"],
        "cases": [
            {"id": name, "input": f"{name}?", "expected": said, "prediction": said} for name, said in FACTS.items()
        ],
    }
    (here / "s.eval.json").write_text(json.dumps(content), encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["mutate", "s.eval.json", *arguments])
        told = capsys.readouterr()
        return code, told.out + told.err

    return run


def of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))["suites"][0]


def test_nobody_is_asked_without_consent(mutate: Callable[..., tuple[int, str]], server: LlmServer) -> None:
    code, told = mutate("--judges")
    assert (code, len(server.calls)) == (1, 0)
    assert "0 calls of targets" in told or "calls" in told.splitlines()[0]
    assert "--judges cannot ask for consent without a terminal: pass --yes" in told


def test_a_terminal_is_asked(
    mutate: Callable[..., tuple[int, str]], server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def answer(question: str) -> str:
        asked.append(question)
        return "n" if len(asked) == 1 else "yes"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    code, told = mutate("--judges")
    assert (code, len(server.calls)) == (1, 0)
    assert "no judge was asked" in told
    assert mutate("--judges")[0] == 0
    assert asked[0] == asked[1] == f"Ask judges: {len(server.calls)} calls? [y/N] "


def test_verdicts_of_mutants_decide_and_stay_apart(
    mutate: Callable[..., tuple[int, str]], server: LlmServer, here: Path
) -> None:
    code, told = mutate("--judges", "--yes", "--json", "m.json")
    assert code == 0, told
    found = of(here / "m.json")
    assert (found["undecided"], found["rate"]) == (0, 0.0)
    assert {each["name"]: each["survived"] for each in found["rewrites"]}["case"] == 0
    (gate,) = found["gates"]
    assert gate["unjudged"] == ""
    assert gate["share"] == pytest.approx(1 / 3)
    written = {each.name for each in here.rglob("*") if each.is_file()}
    assert written == {"m.json", "mutants.sqlite3", ".gitignore", "s.eval.json"}
    before = len(server.calls)
    again = mutate("--judges", "--json", "again.json")
    assert (again[0], len(server.calls)) == (0, before), "all verdicts are stored, so nobody need agree"
    assert of(here / "again.json") == found


def test_the_plan_names_the_calls_that_follow(mutate: Callable[..., tuple[int, str]], server: LlmServer) -> None:
    _, told = mutate("--judges", "--yes")
    (row,) = [line for line in told.splitlines() if line.startswith("s ") and "judge" in line]
    assert str(len(server.calls)) in row.split()


def test_judges_are_left_out_unless_they_are_wanted(
    mutate: Callable[..., tuple[int, str]], server: LlmServer, here: Path
) -> None:
    code, told = mutate("--json", "m.json")
    assert (code, len(server.calls)) == (0, 0)
    found = of(here / "m.json")
    assert (found["rate"], found["undecided"]) == (None, found["mutants"])
    assert [each["unjudged"] for each in found["gates"]] == ["its metric needs a judge"]
    assert "only a judge could notice them" in told
    assert "so nothing is known of what the suite would notice" in told


def test_a_judge_who_fails_has_noticed_nothing(
    mutate: Callable[..., tuple[int, str]], server: LlmServer, here: Path
) -> None:
    server.script(lambda call: reply("yes")(call) if is_right(call) else status(500)(call))
    code, told = mutate("--judges", "--yes", "--json", "m.json")
    assert code == 0
    found = of(here / "m.json")
    assert (found["rate"], found["undecided"]) == (None, found["mutants"])
    assert f"{found['mutants']} mutants without a verdict, because asking failed, count neither way" in told


def test_a_spent_budget_ends_it_and_keeps_the_verdicts(
    mutate: Callable[..., tuple[int, str]], server: LlmServer
) -> None:
    code, told = mutate("--judges", "--yes", "--budget", "calls=5", "--concurrency", "1")
    assert (code, len(server.calls)) == (1, 5)
    assert "the budget of 5 calls is spent; finished verdicts are stored" in told
    needed = len(server.calls)
    assert mutate("--judges", "--yes")[0] == 0
    assert len(server.calls) > needed


def test_a_fixture_is_no_judge_here(mutate: Callable[..., tuple[int, str]], here: Path) -> None:
    path = here / "s.eval.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "judge": "fixture:mine"}), encoding="utf-8")
    code, told = mutate("--judges", "--yes")
    assert (code, "expected a model: a fixture judges in pytest only" in told) == (1, True)


def test_a_suite_without_judges_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {"checks": [{"min_chars": 1}], "cases": [{"id": "a", "input": "x", "expected": "y", "prediction": "y"}]}
    (here / "s.eval.json").write_text(json.dumps(content), encoding="utf-8")
    assert main(["mutate", "s.eval.json", "--judges"]) == 0
    assert "no evaluator of this suite asks a judge" in capsys.readouterr().err


def test_results_in_a_part_and_their_reference_end_no_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {"answer": "after thirty days", "sources": ["d1"]}
    content = {
        "suite": "s",
        "evaluators": [
            {"text": {"metrics": ["f1"]}},
            {"retrieval": {"k": [1], "tasks": {"gold": {"rule": "gold", "by": "id"}}}, "on": "sources"},
        ],
        "thresholds": {"f1": 0.9},
        "cases": [{"id": each, "input": each, "expected": expected, "prediction": expected} for each in "ab"],
    }
    path = here / "s.eval.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert main(["mutate", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("s: 10 mutants, 0% survive\n")
    assert "Error" not in printed.out + printed.err
