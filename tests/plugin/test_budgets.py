"""``--llmeval-budget``: what a run may spend on judges, over all its processes."""

from typing import TYPE_CHECKING

import pytest
from servers import reply

if TYPE_CHECKING:
    from scripted_judges import Judged

WORDS = [f"w{number}" for number in range(10)]
PRICE = {"input": 100.0, "output": 1000.0}


@pytest.mark.parametrize(
    ("budget", "shown", "most"),
    [
        ("calls=4", "4 calls", 4),
        ("tokens=1300", "1300 tokens", 4),  # a call takes 300, and is expected to take a few more
        ("calls=9,usd=0.35", "9 calls, 0.35 USD", 4),  # a call costs 0.075
    ],
)
def test_a_spent_budget_ends_the_run_as_incomplete(
    judged: "Judged", workers: int, budget: str, shown: str, most: int
) -> None:
    judged.server.script(reply("yes", tokens=(250, 50)))
    gates = ["judge_score >= 1", {"metric": "judge_score", "min": 0.5, "partial": True}]
    judged.suite("s.eval.yaml", WORDS, judge=judged.judge(price=PRICE, max_tokens=50), gates=gates)
    ran = judged.project.run(f"--llmeval-budget={budget}", "--llmeval-concurrency=3", workers=workers)
    calls = len(judged.server.calls)
    assert 0 < calls <= most
    assert budget != "calls=4" or calls == 4
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert f"the budget of {shown} is spent" in ran.text
    suite = ran.suites["s"]
    passed = suite["counts"]["passed"]
    # What was asked in advance may be about a case whose turn never came, with workers about no other.
    assert (0 if workers else 1) <= passed <= calls
    assert suite["counts"]["errored"] == suite["counts"]["failed"] == 0
    assert suite["gates"][0]["outcome"] == "not_judged"
    assert passed == 0 or suite["gates"][1]["outcome"] == "passed"
    assert f"{passed} of 10 cases ran" in suite["gates"][0]["reason"]
    again = judged.project.run(workers=workers)
    assert (again.code, len(judged.server.calls)) == (0, 10)


def test_stored_verdicts_cost_nothing_and_a_budget_that_suffices_is_not_mentioned(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", WORDS)
    first = judged.project.run("--llmeval-budget=calls=10")
    assert (first.code, len(judged.server.calls)) == (0, 10)
    judged.project.ini("llmeval_budget = calls=0")
    again = judged.project.run()
    assert (again.code, len(judged.server.calls)) == (0, 10)
    assert "the budget of" not in first.text + again.text


def test_a_suite_in_bulk_keeps_what_it_had_when_the_budget_was_spent(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", WORDS, mode="bulk", gates=["judge_score >= 1"])
    judged.suite("later.eval.yaml", ["later"])
    ran = judged.project.run("s.eval.yaml", "later.eval.yaml", "--llmeval-budget=calls=4", "--llmeval-concurrency=1")
    assert (ran.code, judged.asked()) == (2, dict.fromkeys(WORDS[:4], 1))
    counts = ran.suites["s"]["counts"]
    assert (counts["passed"], counts["not_run"]) == (4, 6)
    assert ran.gates("s") == {"judge_score >= 1": "not_judged"}


def test_money_without_a_price_is_a_fault_before_the_first_call(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", WORDS)
    judged.suite("free.eval.yaml", ["a"], judge=judged.judge(price={"input": 0, "output": 0}))
    ran = judged.project.run("--llmeval-budget=usd=1", "--llmeval-judge=record")
    assert ran.code != 0
    assert (
        "s.eval.yaml  judge: found the judge 'openai:m' without a known price, but --llmeval-budget limits USD: "
        "expected 'price: {input: USD, output: USD}'" in ran.text
    )
    assert judged.asked() == {"a": 1}
    replayed = judged.project.run("free.eval.yaml", "--llmeval-budget=usd=1", "--llmeval-judge=replay")
    assert replayed.code == 0


def test_the_fixture_judge_skips_a_test_for_which_no_budget_is_left(judged: "Judged") -> None:
    judged.project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.parametrize("word", ["a", "b", "c"])
        def test_it(judge, word):
            assert judge("Say it!", word, reference="it", mode="default_binary").score == 1
        """,
    )
    line = ["--llmeval-judge-model=openai:m", f"--llmeval-judge-base-url={judged.server.base_url}"]
    ran = judged.project.run(*line, "--llmeval-budget=calls=1", "-rs")
    assert (ran.code, ran.counts, judged.asked()) == (2, {"passed": 1, "skipped": 1}, {"a": 1})
    assert "the budget of 1 call is spent" in ran.text
