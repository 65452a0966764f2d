"""Laws of scoring fact checks, for generated claims and answers."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, JudgeError, Observation, Totals, Verdict
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.tasks.fact_check._evaluator import FactCheck
from pytest_llmeval.tasks.fact_check._mentions import canonical_address
from pytest_llmeval.tasks.fact_check._target import VERDICTS

texts = st.sampled_from(
    [
        "",
        "According to the Log, 5%.",
        "https://a.example/1 and 1,234",
        "ABC data",
        "潮汐站记录",
        "The Vale Times said so",
        "{}",
    ]
)
sources = st.one_of(
    texts, st.fixed_dictionaries({"content": texts, "url": st.sampled_from(["", "https://a.example/2"])})
)
claims = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "verdict": st.sampled_from(VERDICTS),
            "justification": texts,
            "evidence_sources": st.lists(sources, max_size=4),
        },
    ),
)
answers = st.one_of(
    texts,
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "verdict": st.one_of(st.sampled_from([*VERDICTS, "Mostly true"]), st.none()),
            "justification": texts,
            "evidence_sources": st.lists(sources, max_size=4),
        },
    ),
)
grades = st.one_of(
    st.none(),
    st.builds(JudgeError, st.just("no grade")),
    st.builds(Verdict, st.integers(0, 100), st.just(""), st.fixed_dictionaries(dict.fromkeys(FLAGS, st.booleans()))),
)
evaluators = st.builds(
    FactCheck, explanation=st.sampled_from(["judge", "omit"]), verdict_labels=st.sampled_from(["strict", "synonyms"])
)
judged_claims = st.lists(st.tuples(claims, answers, grades), min_size=1, max_size=6)


def measured(evaluator: FactCheck, claim: Any, answer: Any, grade: Verdict | JudgeError | None) -> Observation:
    verdicts = [grade] if grade is not None and evaluator.explanation == "judge" else []
    return evaluator.measure_judged(Case("c", "Claim", claim, answer), verdicts)


@given(evaluators, judged_claims, st.randoms(use_true_random=False))
def test_any_order_and_split_of_claims_gives_the_same_sums(
    evaluator: FactCheck, rows: list[Any], random: Random
) -> None:
    observations = [measured(evaluator, *row) for row in rows]
    whole = Totals.add_up(observations)
    random.shuffle(observations)
    cut = random.randint(0, len(observations))
    assert Totals.add_up(observations[:cut]) + Totals.add_up(observations[cut:]) == whole
    assert all(Observation.from_json(each.to_json()) == each and each.fault() is None for each in observations)


@given(evaluators, judged_claims)
def test_every_score_of_a_suite_lies_in_its_range(evaluator: FactCheck, rows: list[Any]) -> None:
    totals = Totals.add_up([measured(evaluator, *row) for row in rows])
    metrics = {metric.family: metric for metric in evaluator.describe()}
    for name, column in evaluator.summarize(totals.sums()).items():
        head, bracket, _ = name.partition("[")
        metric = metrics[head + bracket]
        if column[0] == column[0]:
            assert (metric.low or 0.0) <= column[0] <= (len(rows) if metric.high is None else metric.high), name


@given(claims, answers, st.one_of(grades))
def test_a_claim_says_for_each_score_whether_it_exists(claim: Any, answer: Any, grade: Any) -> None:
    evaluator = FactCheck()
    observation = measured(evaluator, claim, answer, grade)
    told = {name for name in {**observation.undefined, **observation.errored} if "[" not in name}
    scores = evaluator.scores(observation)
    single = {metric.name for metric in evaluator.describe() if "[" not in metric.name}
    assert {name for name in single if scores[name] is None} == told


@given(st.sampled_from(VERDICTS), st.lists(sources, max_size=4), st.integers(0, 100))
def test_ground_truth_as_answer_is_right_in_everything(verdict: str, evidence: list[Any], points: int) -> None:
    gold = {"verdict": verdict, "justification": "So it is", "evidence_sources": evidence}
    evaluator = FactCheck()
    scores = evaluator.scores(measured(evaluator, gold, gold, Verdict(points)))
    assert (scores["verdict_accuracy"], scores["evidence_f1"], scores["unparsed_rate"]) == (1.0, 1.0, 0.0)
    assert abs((scores["overall_score"] or 0.0) - (0.7 + 0.003 * points)) < 1e-12


@given(
    st.sampled_from(["", "http://", "https://", "https://www."]),
    st.lists(st.sampled_from(["a", "1", "b-c", "-d", "www", "xn--p1ai", "org", ""]), max_size=4),
    st.lists(st.sampled_from(["", "a", "b.c", ".", "..", "~d", "-e_", "1"]), max_size=4),
)
def test_a_plain_address_is_that_of_its_fragments(scheme: str, labels: list[str], path: list[str]) -> None:
    address = scheme + ".".join(labels) + "".join(f"/{part}" for part in path)
    assert canonical_address(address) == canonical_address(f"{address}#top")
