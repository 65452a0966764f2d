"""The plan of a run: what its cases would call, from what is stored."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from builders import entry, question
from msgspec import structs
from pictures import PDF, in_memory, png
from project import load_text
from scripted_judges import ClaimJudge

from pytest_llmeval import Case, Metric, Observation, Sums, score
from pytest_llmeval.core import FloatArray, JudgeError, Parts
from pytest_llmeval.judges import (
    Budget,
    CachePlace,
    JudgedEvaluator,
    Judgements,
    JudgeMode,
    JudgeOptions,
    JudgeReply,
    JudgeRequest,
    Question,
    StoredJudgement,
    Usage,
    Verdict,
)
from pytest_llmeval.judges._panel import Juror, JurorQuestion
from pytest_llmeval.judges.replies._sqlite import SqliteReplies
from pytest_llmeval.run import CaseRunner, LoadedCase
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.targets import Recordings
from pytest_llmeval.tasks.grounding._evaluators import ClaimMetric
from pytest_llmeval.workbench.plan import RunPlan
from pytest_llmeval.workbench.plan._making import plan_cases

JUDGE = {"model": "openai:m", "price": {"input": 1.0, "output": 10.0}}
YES_NO = [{"judge": {"mode": "default_binary"}}]


def case(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "input": f"Say {name}!", "expected": name, **more}


def answered(*names: str) -> list[dict[str, Any]]:
    return [case(name, prediction=name) for name in names]


class Planned:
    """A folder with a suite, and its plans."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / ".llmeval" / "cache.sqlite3"

    def suite(self, cases: Sequence[dict[str, Any]], **top: Any) -> LoadedSuite:
        return load_text(json.dumps({"evaluators": YES_NO, "judge": JUDGE, **top, "cases": cases}), self.folder)

    def plan(
        self, suite: LoadedSuite, recordings: Recordings | None = None, *, has_target: bool = False, **options: Any
    ) -> RunPlan:
        runner = CaseRunner(JudgeOptions(cache=CachePlace(self.cache), **options), recordings)
        ways = [(suite.for_variant(name), name) for name in suite.systems] or [(suite, "")]
        cases = [
            (LoadedCase(way, each, SuiteKey(str(way.path), "s.eval.yaml", variant=name)), has_target)
            for way, name in ways
            for each in way.cases
        ]
        plan = plan_cases(runner, cases)
        runner.close(whole_run=True)
        return plan

    def store(self, *entries: StoredJudgement) -> None:
        with SqliteReplies(self.cache) as cache:
            cache.put(entries)

    def lines(self, plan: RunPlan, width: int = 80) -> str:
        return "\n".join(line.text for line in plan.lines(width))


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    return Planned(tmp_path)


def past(*tokens: tuple[int, int], mode: str = "default_binary", model: str = "openai:m") -> list[StoredJudgement]:
    """Return stored calls of a mode, which took these tokens."""
    found = [entry(f"{mode} {number}", model=model) for number in range(len(tokens))]
    return [
        structs.replace(each, usage=Usage(*used), components={**each.components, "mode": mode})
        for each, used in zip(found, tokens, strict=True)
    ]


def test_a_question_that_cases_share_is_one_call_and_each_repeat_is_one_more(planned: Planned) -> None:
    cases = [*answered("a", "b"), case("a", prediction="a") | {"id": "a again"}]
    plan = planned.plan(planned.suite(cases, repeats=2, evaluators=[*YES_NO, {**YES_NO[0], "as": "twice"}]))
    assert (plan.judge.calls, plan.judge.likely, plan.judge.more) == (4, 0, 0)
    assert "judge: 4 calls, 0 stored" in planned.lines(plan)


def test_each_juror_of_a_panel_is_a_call_with_its_own_tokens_and_price(planned: Planned) -> None:
    jurors = [JUDGE, {**JUDGE, "model": "openai:n"}, {"model": "openai:free", "price": {"input": 0, "output": 0}}]
    content = {"evaluators": YES_NO, "judges": jurors, "cases": answered("a", "b")}
    suite = load_text(json.dumps(content), planned.folder)
    planned.store(*past((100, 0)), *past((300, 0), model="openai:n"))
    plan = planned.plan(suite)
    assert (plan.judge.calls, plan.judge.stored) == (6, 0)
    assert plan.judge.tokens.median == 2 * (100 + 300 + 200)
    assert plan.judge.usd.median == pytest.approx(2 * 400e-6)


@pytest.mark.usefixtures(in_memory.__name__)
def test_a_plan_says_how_many_files_it_does_not_count(planned: Planned) -> None:
    (planned.folder / "a.pdf").write_bytes(PDF)
    (planned.folder / "a.png").write_bytes(png())
    files = [{"file": "a.pdf"}, {"file": "a.png"}, {"file": "https://example.org/a.png"}]
    cases = [{"id": "a", "input": files, "expected": "yes", "prediction": "yes"}]
    content = {"evaluators": YES_NO, "judge": JUDGE, "cases": cases}
    suite = load_text(json.dumps(content), planned.folder, root=planned.folder)
    assert "2 files (sounds, documents, addresses) without a rule for tokens" in planned.lines(planned.plan(suite), 200)


def test_planning_makes_no_file(planned: Planned) -> None:
    planned.plan(planned.suite(answered("a")))
    assert [each.name for each in planned.folder.iterdir()] == ["s.eval.yaml"]


def test_tokens_are_those_of_the_median_call_of_the_same_mode_and_model(planned: Planned) -> None:
    suite = planned.suite(answered("a", "b"))
    planned.store(*past((100, 0), (200, 10), (300, 20)), *past((9, 9), mode="continuous"))
    planned.store(*past((1, 1), (1, 1), (1, 1), (1, 1), model="openai:other"))
    plan = planned.plan(suite, concurrency=1)
    assert (plan.judge.tokens.median, plan.judge.tokens.high) == (2 * 210, pytest.approx(2 * 309))
    assert plan.judge.usd.median == pytest.approx(2 * 300e-6)
    assert plan.judge.seconds == 2 * 0.25
    assert "about 420 tokens (95th percentile 618); about 0.0006 USD" in planned.lines(plan)


def test_a_model_without_stored_calls_is_estimated_by_those_of_others(planned: Planned) -> None:
    planned.store(*past((30, 4), model="openai:other"))
    assert planned.plan(planned.suite(answered("a"))).judge.tokens.median == 34


def test_what_no_stored_call_tells_is_unknown_and_never_0(planned: Planned) -> None:
    planned.store(*past((30, 4), mode="continuous"))
    plan = planned.plan(planned.suite(answered("a")))
    assert (plan.judge.tokens.median, plan.judge.usd.median, plan.judge.seconds) == (None, None, None)
    text = planned.lines(plan)
    assert "judge: 1 call, 0 stored; tokens unknown; cost unknown" in text
    assert "no stored call of mode 'default_binary' tells its tokens" in text


def test_the_cost_of_a_model_without_a_price_is_unknown_though_its_tokens_are_not(planned: Planned) -> None:
    planned.store(*past((30, 4)))
    plan = planned.plan(planned.suite(answered("a"), judge={"model": "openai:m"}))
    assert (plan.judge.tokens.median, plan.judge.usd.median) == (34, None)
    assert "the price of openai:m is unknown" in planned.lines(plan)
    assert not planned.plan(planned.suite(answered("a")), budget=Budget(usd=0.00007)).exceeds_budget
    assert planned.plan(planned.suite(answered("a")), budget=Budget(usd=0.00006)).exceeds_budget


@pytest.mark.parametrize(
    ("mode", "calls", "stored", "noted"),
    [("auto", 1, 1, ""), ("record", 1, 1, ""), ("refresh", 2, 0, ""), ("replay", 0, 1, "1 verdict"), ("off", 0, 0, "")],
)
def test_what_a_run_reads_needs_no_call(planned: Planned, mode: JudgeMode, calls: int, stored: int, noted: str) -> None:
    suite = planned.suite(answered("a", "b"))
    written = planned.folder / "__llmeval__" / "s.judgements.jsonl"
    Judgements(written, [_judgement_of(suite, "a")]).write()
    plan = planned.plan(suite, mode=mode)
    assert (plan.judge.calls, plan.judge.stored) == (calls, stored)
    assert [each.partition(" not recorded")[0] for each in plan.notes if "verdict " in each] == [noted] * bool(noted)


def _judgement_of(suite: LoadedSuite, name: str) -> StoredJudgement:
    """Return the judgement that answers the question about a case."""
    from pytest_llmeval.workbench._cache import suite_questions

    (found,) = (each for each in suite_questions(suite.path).questions if each.case == name)
    return StoredJudgement(found.key, name, found.components, "yes", 1.0, Usage(30, 4), 0.5, 0.001)


def test_questions_about_answers_that_a_target_has_yet_to_give_are_likely(planned: Planned) -> None:
    plan = planned.plan(planned.suite([case("a"), case("b", prediction="b")], target="app:answer", repeats=2))
    assert (plan.target.calls, plan.judge.calls, plan.judge.likely) == (2, 2, 2)
    text = planned.lines(plan)
    assert "judge: about 4 calls" in text
    assert "target: 2 calls" in text


def test_a_recorded_prediction_needs_no_target_and_says_what_others_take(planned: Planned) -> None:
    suite = planned.suite([case("a"), case("b")], systems={"m": {**JUDGE}}, evaluators=[{"text": {}}])
    way = suite.for_variant("m")
    told = way.cases[0].answered({"answer": "A", "usage": {"input_tokens": 200, "output_tokens": 20}})
    row = {**Recordings.row("s.eval.yaml", "m", told), "figures": {"latency_s": 2.0}}
    path = planned.folder / "predictions.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    plan = planned.plan(suite, Recordings.open(path, "auto"))
    assert (plan.target.calls, plan.target.stored) == (1, 1)
    assert (plan.target.tokens.median, plan.target.usd.median, plan.target.seconds) == (220, pytest.approx(4e-4), 2.0)
    again = planned.plan(suite, Recordings.open(path, "record"))
    assert (again.target.calls, again.target.stored, again.target.tokens.median) == (2, 0, 440)
    replayed = planned.plan(suite, Recordings.open(path, "replay"))
    assert replayed.target.calls == 0
    assert "1 case without a recorded prediction: no call, but errors" in replayed.notes


def test_calls_of_models_count_for_the_budget_as_in_a_run_and_those_of_other_targets_do_not(planned: Planned) -> None:
    systems = {"m": JUDGE, "app": {"python": "app:answer"}}
    suite = planned.suite([case("a"), case("b")], systems=systems, evaluators=[{"text": {}}])
    (use,) = planned.plan(suite, budget=Budget(calls=1)).budget
    assert (use.expected, use.exceeded) == (2, True)


def test_inputs_that_a_service_answers_together_are_one_call(planned: Planned) -> None:
    http = {"url": "http://localhost:9/", "request": {"queries": {"$each": {"$input": True}}}, "batch": 2}
    suite = planned.suite([case(name) for name in "abc"], target={"http": {**http, "response": "results"}})
    assert planned.plan(suite).target.calls == 2
    assert planned.plan(suite, has_target=True).target.calls == 3


@pytest.mark.parametrize(
    ("settings", "calls", "more", "shown"),
    [
        ({}, 2, 0, "target: 2 calls"),
        ({"max_turns": 1}, 1, 0, "target: 1 call,"),
        ({"stop": "target", "max_turns": 4}, 1, 3, "target: 1 to 4 calls"),
    ],
)
def test_a_conversation_takes_a_call_for_each_turn_of_its_script(
    planned: Planned, settings: dict[str, Any], calls: int, more: int, shown: str
) -> None:
    script = ["Hello!", {"role": "user", "content": "Known?"}, {"role": "assistant", "content": "Yes."}, "And now?"]
    talk = {"id": "a", "messages": script, "expected": "a"}
    suite = planned.suite([talk], target="app:answer", evaluators=[{"text": {}}], conversation=settings)
    plan = planned.plan(suite)
    assert (plan.target.calls, plan.target.more) == (calls, more)
    assert shown in planned.lines(plan)


def test_a_case_that_nothing_answers_is_named_and_costs_nothing(planned: Planned) -> None:
    plan = planned.plan(planned.suite([case("a")]))
    assert (plan.target.calls, plan.judge.expected) == (0, 0)
    assert plan.notes == ["1 case with neither a prediction nor a target: no call, but errors"]


def test_a_plan_fits_80_columns_and_an_unknown_fit_is_said(planned: Planned) -> None:
    systems = {"a-large-model": JUDGE, "b": {"python": "app:answer"}}
    suite = structs.replace(planned.suite([case("a")], systems=systems), name="questions-about-capitals")
    text = planned.lines(planned.plan(suite, budget=Budget(calls=500, tokens=10)))
    assert max(map(len, text.splitlines()[:5])) <= 80
    assert "budget: 2 planned, 500 calls allowed" not in text  # two models and two judges, of which one each is a call
    assert "budget: 3 planned, 500 calls allowed" in text
    assert "budget: 10 tokens allowed; whether the plan fits is unknown" in text


def test_what_is_known_to_exceed_a_budget_exceeds_it_whatever_the_rest_takes(planned: Planned) -> None:
    planned.store(*past((100, 50), (100, 50)))
    suite = planned.suite(answered("a", "b"), evaluators=[*YES_NO, {"judge": {"mode": "tone"}, "as": "tone"}])
    beyond, within = (planned.plan(suite, budget=Budget(tokens=limit)) for limit in (299, 300))
    assert (beyond.budget[0].expected, beyond.exceeds_budget, within.exceeds_budget) == (None, True, False)
    assert "budget: exceeded: at least 300 planned, 299 tokens allowed" in planned.lines(beyond)
    assert "budget: 300 tokens allowed; whether the plan fits is unknown" in planned.lines(within)


def test_a_pair_of_answers_that_do_not_exist_yet_is_asked_about_once_for_both_systems(planned: Planned) -> None:
    systems = {name: {"python": f"app:{name}"} for name in ("a", "b", "c")}
    suite = planned.suite([case("x"), case("y")], systems=systems, evaluators=[{"pairwise": {"against": "systems"}}])
    # Three pairs in two orders, about two cases.
    assert [planned.plan(suite).judge.likely, planned.plan(suite).target.calls] == [12, 6]


@dataclass(frozen=True)
class InRounds(JudgedEvaluator):
    """Asks a first question, and then as many as the answer has letters, but two at most."""

    name = "in_rounds"

    def describe(self) -> Sequence[Metric]:
        return [Metric("said")]

    def questions(self, case: Case) -> Sequence[Question]:
        if not isinstance(case.prediction, str):
            raise TypeError("expected a text")
        return [question(case.prediction)]

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        return [question(f"{case.prediction} {letter}") for letter in case.prediction[:2]] if len(verdicts) == 1 else []

    def most_follow_ups(self, case: Case) -> int:
        return min(2, len(case.prediction))

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        raise NotImplementedError

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        raise NotImplementedError


def test_questions_that_depend_on_replies_are_a_range_and_exact_once_these_are_stored(planned: Planned) -> None:
    suite = structs.replace(planned.suite(answered("abc")), evaluators={"in_rounds": InRounds()})
    first = planned.plan(suite)
    assert (first.judge.calls, first.judge.more) == (1, 2)
    assert "judge: 1 to 3 calls, 0 stored" in planned.lines(first)
    assert not planned.plan(suite, budget=Budget(calls=1)).exceeds_budget
    planned.store(_reply_to(suite, "abc"))
    second = planned.plan(suite)
    assert (second.judge.calls, second.judge.more, second.judge.stored) == (2, 0, 1)
    planned.store(_reply_to(suite, "abc a"))
    third = planned.plan(suite)
    assert (third.judge.calls, third.judge.more, third.judge.stored) == (1, 0, 2)


def _reply_to(suite: LoadedSuite, answer: str) -> StoredJudgement:
    judge = Juror("openai:m", suite.judge.request_parameters(), Judgements(suite.path))
    asked = JurorQuestion(judge, question(answer), answer)
    return StoredJudgement(asked.key, answer, asked.components(), "0.5", 0.5, Usage(30, 4))


def test_how_much_is_asked_about_answers_of_an_unknown_kind_is_unknown(planned: Planned) -> None:
    suite = planned.suite([case("a")], systems={"m": JUDGE})
    plan = planned.plan(structs.replace(suite, evaluators={"in_rounds": InRounds()}, parts=Parts()))
    assert (plan.judge.expected, plan.judge.more) == (1, 2)
    whole = structs.replace(suite, evaluators={"in_rounds": InRounds()}, on={"in_rounds": "no.such.field"})
    assert planned.plan(whole).judge.more is None
    assert "judge: number of calls unknown, at least 0, 0 stored" in planned.lines(planned.plan(whole))


def test_what_no_recorded_prediction_tells_of_a_target_is_said(planned: Planned) -> None:
    suite = planned.suite([case("a")], target="app:answer", evaluators=[{"text": {}}])
    why = "no recorded prediction of s.eval.yaml tells what its target takes: {} unknown"
    assert planned.plan(suite).notes == [why.format("tokens, cost, time")]
    row = Recordings.row("s.eval.yaml", "", suite.cases[0].answered({"answer": "A", "usage": {"cost_usd": 0.5}}))
    path = planned.folder / "predictions.jsonl"
    path.write_text(json.dumps({**row, "figures": {"latency_s": 2.0}}) + "\n", encoding="utf-8")
    assert planned.plan(suite, Recordings.open(path, "record")).notes == [why.format("tokens")]


def test_what_the_jurors_of_a_panel_may_be_asked_later_counts_for_each_of_them(planned: Planned) -> None:
    content = {"judges": [JUDGE, {**JUDGE, "model": "openai:n"}], "cases": answered("abc"), "evaluators": YES_NO}
    suite = load_text(json.dumps(content), planned.folder)
    plan = planned.plan(structs.replace(suite, evaluators={"in_rounds": InRounds()}))
    assert (plan.judge.calls, plan.judge.more) == (2, 4)


def test_an_opponent_that_nothing_answers_for_costs_no_call_and_leaves_the_other_pairs_exact(planned: Planned) -> None:
    for name, answers in (("a", {"x": "A", "y": "AA"}), ("b", {"x": "B", "y": "BB"}), ("c", {"x": "C"})):
        (planned.folder / f"{name}.json").write_text(json.dumps(answers), encoding="utf-8")
    systems = {name: {"predictions": f"{name}.json"} for name in ("a", "b", "c")}
    suite = planned.suite([case("x"), case("y")], systems=systems, evaluators=[{"pairwise": {"against": "systems"}}])
    plan = planned.plan(suite)
    # Three pairs about x and one about y, in two orders.
    assert (plan.judge.calls, plan.judge.likely, plan.target.calls) == (8, 0, 0)


def test_grades_by_steps_that_are_not_written_yet_are_exact(planned: Planned) -> None:
    criteria = [{"judge": {"criteria": "Short."}}]
    cases = [*answered("a", "b"), case("a", prediction="a") | {"id": "a again"}]
    plan = planned.plan(planned.suite(cases, evaluators=criteria, repeats=2))
    assert (plan.judge.calls, plan.judge.likely, plan.judge.more) == (5, 0, 0)
    asked = planned.plan(planned.suite([case("a"), case("b")], evaluators=criteria, target="app:answer"))
    assert (asked.judge.calls, asked.judge.likely, asked.judge.more) == (1, 2, 0)


APP = {"answer": "output.text", "contexts": "hits[].body"}
SENTENCES = ("Refunds take 30 days.", "They are free [1].", "No.", "Gifts are wrapped [2]. We ship.")


def _application(rng: random.Random) -> dict[str, Any]:
    hits = [{"body": each} for each in rng.sample(SENTENCES, rng.randint(0, 3))]
    text = " ".join(rng.sample(SENTENCES, rng.randint(0, 3)))
    return {"output": {"text": text}, **({"hits": hits} if rng.random() < 0.8 else {})}


def _mode_of(kind: str, texts: Mapping[str, str]) -> str:
    if kind == "relevance":
        return "claim_relevance" if any(name.startswith("claim_") for name in texts) else "passage_relevance"
    return {"claims": "claims", "support": "claim_support", "citations": "citation_support"}[kind]


@pytest.mark.parametrize("seed", range(12))
def test_calls_and_tokens_of_a_run_lie_within_its_plan(planned: Planned, seed: int) -> None:
    rng = random.Random(seed)
    metrics = rng.sample(get_args(ClaimMetric), rng.randint(1, 4))
    cases: list[dict[str, Any]] = [
        {"id": str(n), "input": f"Question {n}?", **({"expected": rng.choice(SENTENCES)} if rng.random() < 0.7 else {})}
        for n in range(rng.randint(1, 5))
    ]
    answers = [_application(rng) for _ in cases]
    for each, answer in zip(cases, answers, strict=True):
        if rng.random() < 0.3:  # answered before the run
            each["prediction"] = answer
    evaluators = [{"claims": {"metrics": metrics}}]
    suite = planned.suite(cases, evaluators=evaluators, target="app:answer", parts=APP)
    judge, sizes = ClaimJudge(), defaultdict[str, list[tuple[int, int]]](list)
    unread: set[str] = set()

    def measured(request: JudgeRequest) -> JudgeReply:
        texts = [each.content for each in request.messages]
        if seed % 3 == 0 and texts[-1] not in unread:  # every reply is bad at first
            unread.add(texts[-1])
            return JudgeReply("I would rather not say.", Usage(1, 1))
        return replied(*texts)

    @cache  # a run asks each question once, and stores the reply
    def replied(instructions: str, prompt: str) -> JudgeReply:
        reply = judge.reply(instructions, prompt)
        usage = (len(instructions) + len(prompt), len(reply))
        sizes[_mode_of(judge.asked[-1], judge.shown[-1])].append(usage)
        return JudgeReply(reply, Usage(*usage))

    plan = planned.plan(suite, mode="refresh")
    before = plan.judge
    (again,) = (int(count) for each in plan.notes for count in re.findall("^(\\d+) further calls? at most", each))
    answered_cases = [case.answered(answer) for case, answer in zip(suite.cases, answers, strict=True)]
    score(suite.evaluators, answered_cases, judge=measured, parts=Parts(**APP))
    assert before.more is not None
    assert before.calls <= len(judge.asked) <= before.expected + before.more
    assert len(unread) <= again == before.expected + before.more
    for mode, usages in sizes.items():
        planned.store(*past(*usages, mode=mode))
    after = planned.plan(suite, mode="refresh").judge
    assert after.tokens.high is None or sum(map(sum, chain(*sizes.values()))) <= after.tokens.high


JUDGED: list[dict[str, Any]] = [
    {"judge": {"mode": "default_binary"}},
    {"judge": {"mode": "tone"}, "as": "tone"},
    {"judge": {"criteria": "Is it short?"}, "as": "short"},
    {"checklist": {"instructions": ["Greet.", "Be short."]}},
    {"pairwise": {"against": "reference"}},
    {"claims": {"metrics": ["faithfulness", "factual_f1", "answer_relevancy"]}},
]
REPLIES = ("yes", "no", "0.5", "I would rather not say.", "{}", '{"steps": ["Count the words."]}', '{"score": 3}')


@pytest.mark.parametrize("seed", range(12))
def test_a_judged_suite_takes_no_more_calls_than_its_plan_says_whatever_the_judge_replies(
    planned: Planned, seed: int
) -> None:
    rng = random.Random(seed)
    evaluators = rng.sample(JUDGED, rng.randint(1, 3))
    answers = [_application(rng) for _ in range(rng.randint(1, 5))]
    cases = [
        {"id": str(n), "input": f"Question {n}?", "expected": rng.choice(SENTENCES)}
        | ({"prediction": answer} if rng.random() < 0.3 else {})
        for n, answer in enumerate(answers)
    ]
    suite = planned.suite(cases, evaluators=evaluators, target="app:answer", parts=APP)
    plan = planned.plan(suite, mode="refresh")
    asked: list[str] = []

    def reply(request: JudgeRequest) -> JudgeReply:
        asked.append("".join(each.content for each in request.messages))
        return JudgeReply(rng.choice(REPLIES), Usage(1, 1))

    score(
        suite.evaluators,
        [each.answered(answer) for each, answer in zip(suite.cases, answers, strict=True)],
        judge=reply,
        parts=Parts(**APP),
    )
    again = sum(int(count) for each in plan.notes for count in re.findall(r"^(\d+) further calls? at most", each))
    assert plan.judge.more is not None
    assert len({*asked}) <= plan.judge.expected + plan.judge.more
    assert len(asked) - len({*asked}) <= again


def test_passages_where_the_suite_says_they_are_count_for_answers_to_come(planned: Planned) -> None:
    faithful = [{"claims": {"metrics": ["faithfulness"]}}]
    suite = planned.suite([case("a"), case("b")], evaluators=faithful, target="app:answer", parts=APP)
    plan = planned.plan(suite)
    assert (plan.judge.likely, plan.judge.more) == (2, 2)
    assert "judge: about 2 to 4 calls, 0 stored; tokens unknown" in planned.lines(plan)
    planned.store(*past((100, 0), mode="claims"))
    first_round = planned.plan(suite)
    assert (first_round.judge.tokens.median, first_round.judge.tokens.high) == (200, None)
    assert "tokens unknown, about 200 or more" in planned.lines(first_round)
    planned.store(*past((1000, 0), mode="claim_support"))
    assert "; about 200 to 2200 tokens; " in planned.lines(planned.plan(suite))
