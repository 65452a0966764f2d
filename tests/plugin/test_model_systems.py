"""Suites with models as systems: asked with their prompts, recorded, priced, and limited by the budget."""

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import KEY
from servers import PATIENCE, Call, LlmServer, Sent, reply

if TYPE_CHECKING:
    from conftest import Project

ANSWERS = {"Peru?": "Lima", "Japan?": "Tokyo"}


def answered(call: Call) -> Sent:
    """Answer as two models do, of which the small one knows one capital."""
    known = ANSWERS if call.body["model"] == "large" else {"Peru?": "Lima"}
    return reply(known.get(call.prompt.removeprefix("Capital of "), "no idea"))(call)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer(answered) as server:
        yield server


@pytest.fixture
def asked(project: "Project", server: LlmServer) -> "Project":
    project.write("prompts/plain.md", "Capital of {{ input.land }}")
    project.write("brief.txt", "Answer with one word.")
    price = {"input": 1, "output": 10}
    shared: dict[str, Any] = {"prompt": "prompts/plain.md", "base_url": server.base_url, "price": price}
    systems = {
        "large": {"model": "openai:large", "system_prompt": "brief.txt", "temperature": 0, **shared},
        "small": {"model": "openai:small", **shared},
    }
    cases = [
        {"id": land, "input": {"land": f"{land}?"}, "expected": capital}
        for land, capital in (("Peru", "Lima"), ("Japan", "Tokyo"))
    ]
    project.suite("s.eval.yaml", cases, systems=systems, gates=["target_cost_usd <= 1"])
    return project


def test_fixtures_of_this_process_do_not_make_calls_of_models_wait(asked: "Project", server: LlmServer) -> None:
    asked.write("conftest.py", "import pytest\n\n@pytest.fixture(autouse=True)\ndef guarded():\n    yield\n")
    both = threading.Barrier(2)

    def meeting(call: Call) -> Sent:
        both.wait(PATIENCE / 10)
        return answered(call)

    server.script(meeting)
    ran = asked.run()
    assert (ran.code, "one after the other" in ran.text) == (0, False), ran.text


def test_models_answer_with_their_prompts_and_their_cost_is_known(
    asked: "Project", server: LlmServer, workers: int
) -> None:
    ran = asked.run(workers=workers)
    assert ran.suites["s[large]"]["metrics"]["exact_match"]["value"] == 1
    assert ran.suites["s[small]"]["metrics"]["exact_match"]["value"] == 0.5
    assert ran.suites["s[large]"]["usage"]["target_cost_usd"] == pytest.approx(2 * (10 + 5 * 10) / 1e6)
    assert ran.gates("s[small]") == {"target_cost_usd <= 1": "passed"}
    large = [call.body for call in server.calls if call.body["model"] == "large"]
    assert len(server.calls) == 4
    assert large[0]["messages"][0] == {"role": "system", "content": "Answer with one word."}
    assert large[0]["temperature"] == 0


def test_answers_are_recorded_until_a_prompt_changes(asked: "Project", server: LlmServer) -> None:
    file = "--llmeval-predictions=recorded.jsonl"
    asked.run(file)
    assert asked.run(file).suites["s[large]"]["metrics"]["exact_match"]["value"] == 1
    assert len(server.calls) == 4
    asked.write("brief.txt", "Answer with two words.")
    asked.run(file)
    assert [call.body["model"] for call in server.calls[4:]] == ["large", "large"]


def test_a_model_without_a_key_costs_its_cases_only(asked: "Project") -> None:
    path = asked.path / "s.eval.yaml"
    text = path.read_text(encoding="utf-8").replace('"openai:small"', '"openai:small", "api_key_env": "NO_SUCH_KEY"')
    path.write_text(text, encoding="utf-8")
    ran = asked.run()
    assert set(ran.outcomes("s[small]").values()) == {"errored"}
    assert "NO_SUCH_KEY" in ran.text
    assert set(ran.outcomes("s[large]").values()) == {"passed"}


def test_a_budget_stops_models_and_the_next_run_goes_on(asked: "Project", server: LlmServer) -> None:
    file = "--llmeval-predictions=recorded.jsonl"
    ran = asked.run(file, "--llmeval-budget=calls=3", "--llmeval-concurrency=1")
    assert (ran.code, len(server.calls)) == (pytest.ExitCode.INTERRUPTED, 3)
    assert "the budget of 3 calls is spent" in ran.text
    outcomes = [*ran.outcomes("s[large]").values(), *ran.outcomes("s[small]").values()]
    assert sorted(outcomes) == ["not_run", "passed", "passed", "passed"]
    assert "not_judged" in {*ran.gates("s[large]").values(), *ran.gates("s[small]").values()}
    again = asked.run(file)
    assert len(server.calls) == 4
    assert again.gates("s[large]") == {"target_cost_usd <= 1": "passed"}


def test_a_limit_of_money_needs_the_price_of_a_model(asked: "Project", server: LlmServer) -> None:
    path = asked.path / "s.eval.yaml"
    suite = json.loads(path.read_text(encoding="utf-8"))
    for system in suite["systems"].values():
        del system["price"]
    del suite["gates"]
    path.write_text(json.dumps(suite), encoding="utf-8")
    ran = asked.run("--llmeval-budget=usd=1")
    assert (ran.code, server.calls) == (1, [])
    assert "found the model 'openai:large' without a known price, but --llmeval-budget limits USD" in ran.text


def test_a_task_reads_the_answers_of_models(project: "Project", server: LlmServer) -> None:
    server.script(reply('[{"verdict": "Refuted", "justification": "According to the Harbour log, no."}]'))
    project.write("check.txt", "Check: {{ input }}")
    shared: dict[str, Any] = {"prompt": "check.txt", "base_url": server.base_url}
    systems = {name: {"model": f"openai:{name}", **shared} for name in ("large", "small")}
    gold = {"verdict": "Refuted", "evidence_sources": [{"content": "Harbour log"}]}
    cases = [{"id": "a", "input": "Tall?", "expected": gold}]
    evaluators = [{"fact_check": {"explanation": "omit"}}]
    project.suite("s.eval.yaml", cases, systems=systems, evaluators=evaluators)
    ran = project.run()
    for name in systems:
        metrics = ran.suites[f"s[{name}]"]["metrics"]
        found = [metrics[each]["value"] for each in ("verdict_accuracy", "evidence_f1", "unparsed_rate")]
        assert found == [1, 1, 0], name
    server.script(reply("I would rather not say."))
    ran = project.run()
    assert ran.suites["s[large]"]["metrics"]["unparsed_rate"]["value"] == 1
    assert set(ran.outcomes("s[large]").values()) == {"failed"}
