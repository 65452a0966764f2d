"""No silent hit: an answer that is wrong by construction scores worse than the right one, in all five tasks."""

import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from examples import GENERATORS
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Evaluator, Mutator, Neighbours, get_evaluator
from pytest_llmeval.core import Case
from pytest_llmeval.suites import Registry
from pytest_llmeval.workbench.mutation._mutants import is_wrong

MUTATORS = [each for each in Registry.installed().mutators if not each.equivalent]
TOLERANCE = 1e-9

FACTS = [
    ("Which loaf sells out first?", "The rye loaf of Bela Nagy sells out before 9 on Monday.", "single_hop"),
    ("Who lends the van?", "Her brother Anselm Berg lends the van, and Ida Moor drives it.", "multi_hop"),
    ("When did they open?", "They did open on 2024-03-18, not on 2024-03-11.", "temporal"),
    ("How cold was it?", "It was -5 degrees, which is less than 10 degrees below normal.", "open_domain"),
    ("她住在哪里？", "她住在北京路30号三层，可以步行上班。", "knowledge_update"),
    ("What did he pay?", "That was not mentioned.", "adversarial"),
]


def pairs(subtask: int) -> Callable[[random.Random], Any]:
    def gold(rng: random.Random) -> Any:
        count = rng.randint(2, 6)
        text = "one two three four five six seven eight"
        found = set()
        for _ in range(rng.randint(0, 4)):
            start = rng.randint(0, 4)
            cause = f"{rng.randint(1, count)}" + (f"_{start}_{start + rng.randint(1, 3)}" if subtask == 1 else "")
            found.add((f"{rng.randint(1, count)}_{rng.choice(('joy', 'anger', 'fear', 'surprise'))}", cause))
        talk = [{"utterance_ID": number + 1, "text": text} for number in range(count)]
        return {"conversation": talk, "emotion-cause_pairs": [list(each) for each in sorted(found)]}

    return gold


def ranked(rng: random.Random) -> Any:
    return {"positives": rng.sample("abcdef", rng.randint(1, 3))}


def found_results(rng: random.Random) -> Any:
    return [{"id": each} for each in rng.sample("abcdefgh", rng.randint(3, 8))]


SOURCES = (
    "Register of the harbour office",
    "Tide chart with seamarks",
    "Bird survey by wardens",
    "Minutes from the island council",
    "Ferry company: yearly report",
    "Diary kept at lighthouse",
)


def claim(rng: random.Random) -> Any:
    sources = [{"content": each} for each in rng.sample(SOURCES, 2)]
    verdict = rng.choice(("Supported", "Refuted", "Not Enough Evidence"))
    justification = f"According to the {sources[0]['content']}, it is so."
    return {"claim": "It is grey.", "verdict": verdict, "justification": justification, "evidence_sources": sources}


def itself(gold: Any, rng: random.Random) -> Any:
    del rng
    return gold


STORY = "One. Two! Three? " * 9
"""The text of stories, which what is said of spans needs; other tasks do not read it."""


TASKS: Final[dict[str, tuple[Evaluator, Callable[[random.Random], Any], Callable[[Any, random.Random], Any]]]] = {
    "narrative": (get_evaluator("narrative"), GENERATORS["narrative"].gold, itself),
    "emotion_cause, spans": (get_evaluator("emotion_cause"), pairs(1), itself),
    "emotion_cause, utterances": (get_evaluator("emotion_cause", subtask=2), pairs(2), itself),
    "retrieval": (
        get_evaluator("retrieval", k=[1, 3, 10], tasks={"gold": {"rule": "gold", "by": "id"}}),
        ranked,
        lambda _, rng: found_results(rng),
    ),
    "fact_check": (get_evaluator("fact_check", explanation="omit"), claim, itself),
}

SILENT: Final = {
    ("retrieval", "positive_doubled"): "precision counts a document as often as it is listed, as the original does",
}
"""Task and mutator to the reason why such an answer may score as high: documented limits of the evaluators."""


def mutants(case: Case, others: list[Case], evaluator: Evaluator) -> list[tuple[Mutator, Any]]:
    fitting = [each for each in MUTATORS if not each.evaluators or evaluator.name in each.evaluators]
    owned = any(each.evaluators for each in fitting)
    near = [each for each in fitting if not (owned and each.gives_way)]
    made = [
        (each, each.change(case, Neighbours(others, evaluators={evaluator.name: evaluator}, seed=case.id)))
        for each in near
    ]
    return [(each, new) for each, new in made if new is not None and is_wrong(case, new)]


def scored(evaluator: Evaluator, case: Case) -> dict[str, float | None] | None:
    """Return the scores of a case; ``None`` if its answer cannot be read, so that it fails."""
    observation = evaluator.measure(case)
    return None if observation.malformed is not None else dict(evaluator.scores(observation))


def fallen(evaluator: Evaluator, before: dict[str, float | None], after: dict[str, float | None] | None) -> list[str]:
    """Return the metrics that fall; a score that is gone is no fall."""
    if after is None:
        return ["malformed"]
    lower = {
        each.family if "[" in each.name else each.name for each in evaluator.describe() if not each.higher_is_better
    }
    found = []
    for name, then in before.items():
        now = after.get(name)
        sign = -1 if name.partition("[")[0] in lower else 1
        if then is not None and now is not None and sign * (then - now) > TOLERANCE:
            found.append(name)
    return found


@pytest.mark.parametrize("task", TASKS)
@given(seed=st.integers(0, 10**6))
def test_a_wrong_answer_scores_worse(task: str, seed: int) -> None:
    evaluator, gold, answer = TASKS[task]
    rng = random.Random(seed)
    cases = []
    for number in range(3):
        expected = gold(rng)
        cases.append(Case(f"{seed}-{number}", STORY, expected, answer(expected, rng)))
    case, *others = cases
    before = scored(evaluator, case)
    assert before is not None
    others = [each for each in others if each.expected != case.expected]
    for mutator, prediction in mutants(case, others, evaluator):
        if (task, mutator.name) in SILENT:
            continue
        after = scored(evaluator, case.answered(prediction))
        assert fallen(evaluator, before, after), (mutator.name, case, prediction)


def test_every_mutator_of_a_task_is_held_against_it() -> None:
    for task, (evaluator, gold, answer) in TASKS.items():
        own = {each.name for each in MUTATORS if evaluator.name in each.evaluators}
        if "utterances" in task:
            own.discard("span_moved")
        seen = set()
        for seed in range(60):
            rng = random.Random(seed)
            cases = []
            for number in range(3):
                expected = gold(rng)
                cases.append(Case(f"{seed}-{number}", None, expected, answer(expected, rng)))
            seen |= {mutator.name for mutator, _ in mutants(cases[0], cases[1:], evaluator)}
        assert own - seen == set(), task


@pytest.mark.parametrize(("task", "name"), SILENT)
def test_a_documented_limit_is_one(task: str, name: str) -> None:
    """If the evaluator notices it one day, the list and the documentation are wrong."""
    assert (task, name) == ("retrieval", "positive_doubled")
    evaluator = TASKS[task][0]
    case = Case("c", None, {"positives": ["a"]}, [{"id": "a"}, {"id": "x"}, {"id": "y"}])
    ((_, prediction),) = [each for each in mutants(case, [], evaluator) if each[0].name == name]
    before = scored(evaluator, case)
    assert before is not None
    assert fallen(evaluator, before, scored(evaluator, case.answered(prediction))) == []


MEMORY: Final = [
    Case(f"m{at}", asked, said, said, labels={"question_type": kind}) for at, (asked, said, kind) in enumerate(FACTS)
]
BLIND: Final = {
    "facts_swapped": {"f1", "rouge1", "bleu1"},  # they count words in any order
    "sign": {"rouge1", "rouge2", "rougeL"},  # ROUGE drops everything but letters and digits
}
"""Mutator to metrics of `text` by which its answers score as high: documented limits."""


@pytest.mark.parametrize("metric", ["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu4"])
def test_a_wrong_answer_from_memory_scores_worse(metric: str) -> None:
    evaluator = get_evaluator("text", metrics=[metric])
    seen = set()
    for case in MEMORY:
        before = scored(evaluator, case)
        assert before is not None
        for mutator, prediction in mutants(case, [each for each in MEMORY if each is not case], evaluator):
            noticed = bool(fallen(evaluator, before, scored(evaluator, case.answered(prediction))))
            assert noticed == (metric not in BLIND.get(mutator.name, ())), (mutator.name, case.id, prediction)
            seen.add(mutator.name)
    assert seen >= {
        "forgotten",
        "made_up",
        "number",
        "date",
        "name",
        "sign",
        "negation",
        "facts_swapped",
        "unsupported",
    }
