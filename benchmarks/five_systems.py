"""10,000 samples of each of the five tasks: a plain script, `score()`, ``llmeval score`` and pytest; processor seconds.

Run as ``python benchmarks/five_systems.py [SAMPLES] [TASK ...]``. Each side is a process of its own that reads the same
files, start-up included. The plain scripts apply formulas of the original evaluation scripts, or simpler ones (see
README.md), without intervals, reasons, error handling and reports. The goals: `score()` at most 2 times the plain
script, ``llmeval score`` 4, pytest 10.
"""

__all__ = ("main",)

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sides import pytest_command, run_s

SAMPLES = 10_000
GOALS = {"score()": 2, "llmeval score": 4, "pytest": 10}
EMOTIONS = ("neutral", "anger", "disgust", "fear", "joy", "sadness", "surprise")
VERDICTS = ("Supported", "Refuted", "Not Enough Evidence")
NAMES = [f"{first} {last}" for first in ("Harbour", "Federal", "River") for last in ("Bureau", "Bank", "Institute")]
WORDS = [
    "the",
    "register",
    "of",
    "old",
    "ships",
    "names",
    "a",
    "harbour",
    "where",
    "two",
    "lights",
    "burn",
    "and",
    "tides",
    "turn",
    "before",
    "dawn",
    "each",
    "autumn",
]
Row = dict[str, Any]


def emotion_rows(rng: random.Random) -> Row:
    def pair() -> list[str]:
        utterance = rng.randint(1, 9)
        return [f"{utterance}_{rng.choice(EMOTIONS[1:])}", str(rng.randint(1, utterance))]

    gold = [pair() for _ in range(rng.randint(2, 8))]
    return {
        "input": "A talk.",
        "expected": gold,
        "prediction": [rng.choice(gold) if rng.random() < 0.6 else pair() for _ in gold],
    }


def fact_rows(rng: random.Random) -> Row:
    cited = rng.sample(NAMES, 3)
    text = (
        f"According to {cited[0]}, it is {rng.randint(2, 99)}.5%. {cited[1]} reported {' '.join(rng.sample(WORDS, 8))}."
    )
    sources = [
        {"content": f"{name} report", "url": f"https://{name.split()[0].lower()}.example/{rng.randint(1, 9)}"}
        for name in cited
    ]
    gold, answer = rng.choices(VERDICTS, k=2)
    expected = {"verdict": gold, "evidence_sources": sources}
    return {
        "input": " ".join(rng.sample(WORDS, 9)),
        "expected": expected,
        "prediction": {"verdict": answer, "justification": text},
    }


def retrieval_rows(rng: random.Random) -> Row:
    def document(number: int) -> Row:
        return {
            "fact": f"Case {number}: " + "goods were taken at night from a site. " * 3,
            "accusation": ["theft"] if number % 3 else ["theft", "fraud"],
            "relevant_articles": [str(number % 7)],
            "imprisonment": {"imprisonment": number % 60},
        }

    found = [document(number) for number in rng.sample(range(20_000), 20)]
    number = rng.randrange(20_000)
    query = {
        "fact": f"Query {number}",
        "meta": {**document(number), "term_of_imprisonment": {"imprisonment": number % 60}},
    }
    positives = [
        *({"fact": each["fact"]} for each in rng.sample(found, 5)),
        *({"fact": f"Missed {n}"} for n in range(5)),
    ]
    return {"input": query, "expected": {"positives": positives}, "prediction": found}


def qa_rows(rng: random.Random) -> Row:
    answer = rng.sample(WORDS, 6)
    return {
        "input": "Where?",
        "expected": " ".join(answer),
        "prediction": " ".join(rng.sample(answer, 4) + rng.sample(WORDS, 3)),
    }


def narrative_rows(rng: random.Random) -> Row:
    names = rng.sample("ABCDEFGHIJ", 5)

    def event(number: int) -> Row:
        agent, target = rng.sample(names, 2)
        bond = {
            "relationship_level1": "Romance",
            "relationship_level2": "lover",
            "sentiment": rng.choice(("positive", "negative")),
        }
        action = {"category": "physical", "type": rng.choice(("attack", "flee")), "status": "success"}
        return {
            "id": str(number),
            "relationships": [{"agent": agent, "target": target, **bond}],
            "action_layer": action,
        }

    def story() -> Row:
        people = [{"name": name, "archetype": rng.choice(("Hero", "Villain"))} for name in rng.sample(names, 4)]
        return {"characters": people, "narrative_events": [event(number) for number in range(5)]}

    return {"input": "A tale.", "expected": story(), "prediction": story()}


def f1(hits: float, predicted: float, gold: float) -> float:
    return 2 * hits / (predicted + gold) if predicted + gold else 1.0


def plain_emotion(rows: Sequence[Row]) -> float:
    matrix = [[0] * 7 for _ in range(7)]
    for row in rows:
        gold, predicted = (
            {(*left.split("_"), cause) for left, cause in row[side]} for side in ("expected", "prediction")
        )
        for pairs, other, right in ((predicted, gold, False), (gold, predicted, True)):
            for pair in pairs:
                number = EMOTIONS.index(pair[1])
                if pair not in other:
                    matrix[number if right else 0][0 if right else number] += 1
                elif not right:
                    matrix[number][number] += 1
    return sum(matrix[n][n] for n in range(1, 7)) / sum(sum(line[1:]) for line in matrix)


STOP = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "but",
        "in",
        "on",
        "at",
        "to",
        "for",
        "of",
        "with",
        "by",
        "from",
        "as",
        "is",
        "was",
        "are",
        "were",
        "according",
        "reported",
        "stated",
        "said",
        "based",
    ]
)
PATTERNS = [
    re.compile(each)
    for each in (
        r"https?://[^\s)\],]+",
        r"[Aa]ccording to ([^,.;]+)",
        r"\d+(?:\.\d+)?%",
        r"\d{1,3}(?:,\d{3})+",
        r"([A-Z][\w\s&.]*(?:Bureau|Bank|Institute|Agency)) (?:reported|stated|found|showed)",
        r"[Bb]ased on ([^,.;]+(?:data|report|survey))",
        r"([A-Z][\w\s&.]*(?:Bureau|Bank|Institute|Agency))'s",
        r"[Tt]he ([A-Z][\w\s]*(?:Report|Survey|Index))",
        r"([A-Z]{2,}) (?:data|report)",
    )
]


def matches(left: str, right: str) -> bool:
    left, right = left.lower(), right.lower()
    if left in right or right in left:
        return True
    one, other = ({*re.findall(r"\w+", text)} - STOP for text in (left, right))
    return bool(one and other) and len(one & other) / min(len(one), len(other)) >= 0.3


def plain_fact(rows: Sequence[Row]) -> float:
    total = 0.0
    for row in rows:
        cited = {each.strip() for pattern in PATTERNS for each in pattern.findall(row["prediction"]["justification"])}
        gold = {each["content"] or each["url"] for each in row["expected"]["evidence_sources"]}
        hits = sum(any(matches(each, other) for other in cited) for each in gold)
        total += 0.5 * (row["prediction"]["verdict"] == row["expected"]["verdict"]) + 0.5 * f1(
            hits, len(cited), len(gold)
        )
    return total / len(rows)


def plain_retrieval(rows: Sequence[Row]) -> float:
    from hashlib import sha256

    totals = dict.fromkeys(((task, k) for task in range(4) for k in (3, 5, 10)), 0.0)
    for row in rows:
        meta = row["input"]["meta"]
        positives = {sha256(each["fact"].encode()).hexdigest() for each in row["expected"]["positives"][:10]}
        own, months = sha256(row["input"]["fact"].encode()).hexdigest(), meta["imprisonment"]["imprisonment"]
        results = [(sha256(each["fact"].encode()).hexdigest(), each) for each in row["prediction"]]
        results = [each for each in results if each[0] != own]
        rules: list[Callable[..., bool]] = [
            lambda each, positives=positives: each[0] in positives,
            lambda each, meta=meta: {*each[1]["accusation"]} == {*meta["accusation"]},
            lambda each, meta=meta: {*each[1]["relevant_articles"]} == {*meta["relevant_articles"]},
            lambda each, months=months: abs(each[1]["imprisonment"]["imprisonment"] - months) <= max(6, 0.2 * months),
        ]
        for task, rule in enumerate(rules):
            for k in (3, 5, 10):
                hits = sum(rule(each) for each in results[:k])
                totals[task, k] += f1(hits, k, 10)
    return sum(totals.values()) / len(rows)


def plain_qa(rows: Sequence[Row]) -> float:
    from collections import Counter

    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from rouge_score.rouge_scorer import RougeScorer

    scorer, smooth, total = (
        RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True),
        SmoothingFunction().method1,
        0.0,
    )
    for row in rows:
        gold, answer = row["expected"], row["prediction"]
        left, right = gold.lower().split(), answer.lower().split()
        total += f1((Counter(left) & Counter(right)).total(), len(right), len(left)) + (gold.lower() == answer.lower())
        total += sum(each.fmeasure for each in scorer.score(gold, answer).values())
        weights = [(1,), (0.5, 0.5), (0.25,) * 4]
        total += sum(sentence_bleu([left], right, weights=each, smoothing_function=smooth) for each in weights)
    return total / len(rows)


def plain_narrative(rows: Sequence[Row]) -> float:
    total = 0.0
    for row in rows:
        gold, answer = row["expected"], row["prediction"]
        names = [{each["name"]: each["archetype"] for each in side["characters"]} for side in (gold, answer)]
        common = names[0].keys() & names[1].keys()
        total += f1(len(common), len(names[1]), len(names[0])) + sum(names[0][n] == names[1][n] for n in common) / max(
            len(common), 1
        )
        events = {each["id"]: each for each in answer["narrative_events"]}
        pairs = [(each, events[each["id"]]) for each in gold["narrative_events"] if each["id"] in events]
        for left, right in pairs:
            ends = [{(b["agent"], b["target"]): b for b in side["relationships"]} for side in (left, right)]
            shared = ends[0].keys() & ends[1].keys()
            total += f1(len(shared), len(ends[1]), len(ends[0])) / len(pairs)
            for field in ("relationship_level1", "relationship_level2", "sentiment"):
                total += sum(ends[0][each][field] == ends[1][each][field] for each in shared)
            total += sum(right["action_layer"][field] == value for field, value in left["action_layer"].items()) / 3
    return total / len(rows)


QA = {"metrics": ["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4"]}
TASKS: dict[str, tuple[Callable[[random.Random], Row], Callable[[Sequence[Row]], float], str, Row]] = {
    "emotion_cause": (emotion_rows, plain_emotion, "emotion_cause", {"subtask": 2}),
    "fact_check": (fact_rows, plain_fact, "fact_check", {"explanation": "omit"}),
    "retrieval": (retrieval_rows, plain_retrieval, "retrieval", {}),
    "memory_qa": (qa_rows, plain_qa, "text", QA),
    "narrative": (narrative_rows, plain_narrative, "narrative", {}),
}


def rows_of(folder: Path) -> Iterator[Row]:
    with (folder / "cases.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def side(kind: str, task: str, folder: Path) -> None:
    """Score one task as one side does."""
    _, plain, name, options = TASKS[task]
    if kind == "plain":
        print(plain(list(rows_of(folder))))
    else:
        from pytest_llmeval import Case, get_evaluator, score

        print(score(get_evaluator(name, **options), [Case(**row) for row in rows_of(folder)]).metrics)


def main(samples: int, tasks: Sequence[str]) -> None:
    """Print a row for each task."""
    print(f"| {samples} samples | plain script | " + " | ".join(GOALS) + " |\n|---|---|" + "---|" * len(GOALS))
    for task in tasks:
        make, _, name, options = TASKS[task]
        rng = random.Random(20240611)
        with tempfile.TemporaryDirectory() as given:
            folder = Path(given)
            rows = (json.dumps({"id": str(number), **make(rng)}) + "\n" for number in range(samples))
            (folder / "cases.jsonl").write_text("".join(rows), encoding="utf-8")
            (folder / "pytest.ini").write_text("[pytest]\n")
            suite = {
                "suite": task,
                "evaluators": [{name: options}],
                "source": {"format": "jsonl", "path": "cases.jsonl"},
            }
            file = folder / "s.eval.json"
            file.write_text(json.dumps(suite), encoding="utf-8")
            script = [sys.executable, __file__, "--side"]
            plain = run_s([*script, "plain", task, given])[0]
            commands = [
                [*script, "score", task, given],
                [sys.executable, "-m", "pytest_llmeval", "score", str(file)],
                pytest_command(folder, "--llmeval"),
            ]
            seconds = [run_s(each)[0] for each in commands]
        cells = [f"{plain:.1f} s", *(f"{each:.1f} s ({each / plain:.1f})" for each in seconds)]
        print(f"| {task} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        side(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main(int((sys.argv[1:] or [SAMPLES])[0]), sys.argv[2:] or list(TASKS))
