"""The scripts that people use for eight tasks beside `score()` and ``llmeval score``; processor seconds.

Run as ``python benchmarks/originals.py [ROUNDS] [TASK ...]``. Each side is a process of its own that reads the same
files, start-up included; sides take turns, and the least of all rounds counts. Ranking is scored by pytrec_eval, and
questions by rouge-score and NLTK themselves (``pip install pytrec-eval-terrier``). The other scripts may not be part of
this repository, so their arithmetic is written down anew here, with their data structures: the script of SemEval-2024
Task 3, the matcher of the fact-check scripts, the legal retrieval script, the evaluation package of story annotations
and its boundary metric. The goals: `score()` with the original's options at most as long as the original, ``llmeval
score`` 1.5 times, and fact checks by default twice.
"""

__all__ = ("main",)

import json
import random
import re
import string
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from five_systems import EMOTIONS, VERDICTS, WORDS, plain_qa, qa_rows, retrieval_rows
from sides import run_s

ROUNDS = 3
SIDES = ("original", "score", "default", "command")
Row = dict[str, Any]


class Task(NamedTuple):
    """A task: its files, the original, and ours."""

    write: Callable[[Path, random.Random, int], None]
    original: Callable[[Path], object]
    samples: int
    suite: Mapping[str, Any]
    """The source, as in a suite file."""
    evaluator: str
    options: Mapping[str, Any]
    """Of the evaluator, for the numbers of the original."""
    defaults: Mapping[str, Any]
    """Options without which a suite asks a judge, or has another form."""


def write_lines(path: Path, rows: Iterator[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_lines(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def f1(hits: float, predicted: float, gold: float) -> float:
    return 2 * hits / (predicted + gold) if predicted + gold else 0.0


# --- SemEval-2024 Task 3 ---


def write_conversations(folder: Path, rng: random.Random, samples: int, spans: bool) -> None:
    """Write conversations of about ten utterances and seven pairs; of the predicted pairs half are right."""
    gold, answers = [], []
    for number in range(samples):
        texts = [" ".join([*rng.choices(WORDS, k=rng.randint(5, 15)), "!"]) for _ in range(rng.randint(4, 16))]
        pairs = [_random_pair(rng, texts) for _ in range(rng.randint(2, 12))]
        predicted = [rng.choice(pairs) if rng.random() < 0.6 else _random_pair(rng, texts) for _ in pairs]
        talk = [
            {"utterance_ID": place, "speaker": "Ada", "text": text, "emotion": "joy"}
            for place, text in enumerate(texts, 1)
        ]
        conversation = {"conversation_ID": number, "conversation": talk}
        gold.append({**conversation, "emotion-cause_pairs": [_gold_pair(pair, texts, spans) for pair in pairs]})
        answer = [[left, f"{cause}_{start}_{end}" if spans else str(cause)] for left, cause, start, end in predicted]
        answers.append({**conversation, "emotion-cause_pairs": answer})
    for name, data in (("gold.json", gold), ("answers.json", answers)):
        (folder / name).write_text(json.dumps(data), encoding="utf-8")


def _random_pair(rng: random.Random, texts: Sequence[str]) -> tuple[str, int, int, int]:
    cause = rng.randint(1, len(texts))
    words = len(texts[cause - 1].split()) - 1
    start = rng.randrange(words)
    left = f"{rng.randint(1, len(texts))}_{rng.choice(EMOTIONS[1:])}"
    return left, cause, start, rng.randint(start + 1, words)


def _gold_pair(pair: tuple[str, int, int, int], texts: Sequence[str], spans: bool) -> list[str]:
    left, cause, start, end = pair
    quoted = " ".join(texts[cause - 1].split()[start:end])
    return [left, f"{cause}_{quoted} ," if spans else str(cause)]


def by_id(data: Sequence[Row]) -> dict[int, Row]:
    return {row["conversation_ID"]: row for row in data}


def score_emotion_pairs(folder: Path) -> object:
    import numpy as np

    gold, answers = (by_id(read_json(folder / name)) for name in ("gold.json", "answers.json"))
    sides: tuple[list[list[int]], list[list[int]]] = ([], [])
    for number, conversation in gold.items():
        for pairs, source in zip(sides, (conversation, answers[number]), strict=True):
            for left, cause in source["emotion-cause_pairs"]:
                utterance, emotion = left.split("_")
                pair = [number, int(utterance), int(cause), EMOTIONS.index(emotion)]
                if pair not in pairs:
                    pairs.append(pair)
    true, predicted = sides
    matrix = np.zeros([7, 7])
    for pair in predicted:
        matrix[pair[3] if pair in true else 0][pair[3]] += 1
    for pair in true:
        if pair not in predicted:
            matrix[pair[3]][0] += 1
    return weighted(matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1), matrix.sum(axis=1)[1:])


def weighted(right: Any, predicted: Any, gold: Any, weight: Any) -> float:
    precision, recall = right / (predicted + 1e-8), right / (gold + 1e-8)
    score = 2 * precision * recall / (precision + recall + 1e-8)
    return float((score[1:] * weight / weight.sum()).sum())


def trimmed(span: str) -> str:
    while True:
        span = span.strip()
        if span[0] in string.punctuation:
            span = span[1:]
        elif span[-1] in string.punctuation:
            span = span[:-1]
        else:
            return span


def located(span: str, utterance: str) -> list[int]:
    words, tokens = span.split(), utterance.split()
    for start in range(len(tokens)):
        if tokens[start : start + len(words)] == words:
            return [start, start + len(words)]
    return [0, 0]


def span_pairs(number: int, texts: Sequence[str], pairs: Sequence[Sequence[str]], quoted: bool) -> list[list[int]]:
    unique: list[list[int]] = []
    for left, right in pairs:
        utterance, emotion = left.split("_")
        cause, *span = right.split("_")
        if not quoted and any(mark.isalpha() for mark in right):
            raise SystemExit("positions are expected")
        ends = located(trimmed(span[0]), texts[int(cause) - 1]) if quoted else [int(span[0]), int(span[1])]
        pair = [number, int(utterance), int(cause), *ends, EMOTIONS.index(emotion)]
        if pair not in unique:
            unique.append(pair)
    return unique


def grouped(pairs: Sequence[list[int]]) -> dict[str, list[list[int]]]:
    groups: dict[str, list[list[int]]] = defaultdict(list)
    for pair in pairs:
        groups["dia{}_emoutt{}_causeutt{}".format(*pair[:3])].append(pair[3:])
    return groups


def score_emotion_spans(folder: Path) -> object:
    import numpy as np

    gold, answers = (by_id(read_json(folder / name)) for name in ("gold.json", "answers.json"))
    true: list[list[int]] = []
    predicted: list[list[int]] = []
    for number, conversation in gold.items():
        texts = [utterance["text"] for utterance in conversation["conversation"]]
        true += span_pairs(number, texts, conversation["emotion-cause_pairs"], quoted=True)
        predicted += span_pairs(number, texts, answers[number]["emotion-cause_pairs"], quoted=False)
    spans = grouped(true)
    strict, matrix = deepcopy(dict(spans)), np.zeros([7, 7])
    for pair in predicted:
        options = strict.get("dia{}_emoutt{}_causeutt{}".format(*pair[:3]), [])
        matrix[pair[5] if pair[3:] in options else 0][pair[5]] += 1
        if pair[3:] in options:
            options.remove(pair[3:])
    for options in strict.values():
        for span in options:
            matrix[span[2]][0] += 1
    counts = matrix.sum(axis=1)
    strict_f1 = weighted(matrix.diagonal(), matrix.sum(axis=0), counts, counts[1:])
    return strict_f1, proportional_f1(spans, grouped(predicted))


def proportional_f1(spans: Mapping[str, list[list[int]]], predicted: Mapping[str, list[list[int]]]) -> float:
    import numpy as np

    table, left_over = np.zeros([7, 4]), deepcopy(dict(spans))
    for key, options in predicted.items():
        for start, end, emotion in options:
            table[emotion][2] += end - start
            best = (0.0, 0, [0, 0, 0])
            for low, high, other in spans.get(key, ()):
                if other == emotion and low < end and start < high:
                    common = min(end, high) - max(start, low)
                    best = max(best, (common / (high - low), common, [low, high, other]), key=lambda each: each[:2])
            if best[1]:
                table[emotion][:2] += (best[1], best[2][1] - best[2][0])
                if best[2] in left_over[key]:
                    left_over[key].remove(best[2])
    for remaining, column in ((left_over, 1), (spans, 3)):
        for options in remaining.values():
            for start, end, emotion in options:
                table[emotion][column] += end - start if column == 1 else 1
    return weighted(table[:, 0], table[:, 2], table[:, 1], table[1:, 3])


# --- fact checks ---

ENDINGS = "University|Institute|Bureau|Department|Bank|Agency|Organization|Commission"
PUBLISHERS = f"{ENDINGS}|Post|Times|Journal|News|Guard|Press|Report|Survey|Index|Board"
CITATIONS = (
    r"[Aa]ccording to ([^,\.;]+)",
    rf"([A-Z][a-zA-Z\s&\.]+(?:{PUBLISHERS}))\s+(?:reported|stated|found|showed|indicated|confirmed|says|said)",
    r"[Bb]ased on ([^,\.;]+(?:data|report|survey|study|analysis))",
    rf"([A-Z][a-zA-Z\s&]+(?:{ENDINGS}|Board))'s",
    r"[Tt]he ([A-Z][a-zA-Z\s&]+(?:Report|Survey|Index|Study))",
    r"[Aa]ccording to (?:the )?([A-Z]{2,})",
    r"([A-Z]{2,})\s+(?:data|report|survey|found|stated)",
)
THRESHOLD: Final = 0.2


PLACES = ("Harbour", "Federal", "River", "National", "Northern", "Lake", "Union", "Summit")
BODIES = ("Bureau", "Bank", "Institute", "Agency", "University", "Commission")
SUBJECTS = ("prices of ships", "exports of timber", "rents in the old town", "catches of herring", "tolls on bridges")


def write_claims(folder: Path, rng: random.Random, samples: int) -> None:
    """Write claims with two to four sources, and justifications of five sentences that cite about as many."""
    claims, answers = [], []
    for number in range(samples):
        names = [f"{rng.choice(PLACES)} {rng.choice(BODIES)}" for _ in range(5)]
        sources = [_source(rng, name) for name in names[: rng.randint(2, 4)]]
        gold, verdict = rng.choices(VERDICTS, k=2)
        claim = f"{rng.choice(SUBJECTS).capitalize()} rose by {rng.randint(2, 99)}% in {rng.randint(1990, 2024)}"
        claims.append({"id": number, "claim": claim, "justification": "", "verdict": gold, "evidence_sources": sources})
        answers.append({"id": number, "verdict": verdict, "justification": _justification(rng, names[1:], sources)})
    (folder / "claims.json").write_text(json.dumps(claims), encoding="utf-8")
    write_lines(folder / "answers.jsonl", iter(answers))


def _source(rng: random.Random, name: str) -> Row:
    content = f"{name}: {rng.choice(SUBJECTS)}, {' '.join(rng.choices(WORDS, k=14))}, {rng.randint(1, 99)}.4%"
    host = name.replace(" ", "-").lower()
    return {"content": content, "url": f"https://{host}.example/{rng.randint(1, 999)}", "credibility": "High"}


def _justification(rng: random.Random, names: Sequence[str], sources: Sequence[Row]) -> str:
    first, second, third, *_ = names
    return (
        f"According to the {first}, {rng.choice(SUBJECTS)} fell by {rng.randint(2, 99)}.4% since March. "
        f"The {second} reported that {' '.join(rng.choices(WORDS, k=12))}. "
        f"Its release ({rng.choice(sources)['url']}) says that {' '.join(rng.choices(WORDS, k=10))}. "
        f"{third}'s figures, based on a survey of {rng.randint(1, 9)},{rng.randint(100, 999)} people, agree. "
        f"This confirms that {' '.join(rng.choices(WORDS, k=8))}."
    )


def cited_sources(text: str) -> set[str]:
    cited = set(re.findall(r"https?://[^\s\)\],]+", text))
    for pattern in CITATIONS:
        for name in re.findall(pattern, text):
            if len(name.strip()) > 2:
                cited.add(name.strip())
    cited.update(re.findall(r"\d+(?:\.\d+)?%", text))
    cited.update(re.findall(r"\b\d{1,3}(?:,\d{3})+\b", text))
    return cited


def alike(one: str, other: str) -> bool:
    left, right = one.lower(), other.lower()
    if left in right or right in left:
        return True
    if "http" in one or "http" in other:
        hosts = [re.findall(r"https?://([^/]+)", text) for text in (one, other)]
        if all(hosts) and hosts[0][0] == hosts[1][0]:
            return True
    stop = {
        *("the", "a", "an", "and", "or", "but", "in", "on", "at", "to", "for", "of", "with", "by", "from", "as"),
        *("is", "was", "are", "were", "according", "reported", "stated", "said", "based"),
    }
    words = [set(re.findall(r"\w+", text)) - stop for text in (left, right)]
    return all(words) and len(words[0] & words[1]) / min(map(len, words)) >= THRESHOLD


def score_claims(folder: Path) -> object:
    claims, answers = read_json(folder / "claims.json"), read_lines(folder / "answers.jsonl")
    verdicts: dict[str, list[bool]] = defaultdict(list)
    evidence: dict[str, list[float]] = defaultdict(list)
    for claim, answer in zip(claims, answers, strict=True):
        gold = {source["content"] or source["url"] for source in claim["evidence_sources"]}
        cited = cited_sources(answer["justification"])
        hits = sum(any(alike(one, other) for other in cited) for one in gold)
        verdicts[claim["verdict"]].append(answer["verdict"] == claim["verdict"])
        evidence[claim["verdict"]].append(f1(hits, len(cited), len(gold)))
    accuracy = sum(map(sum, verdicts.values())) / len(claims)
    return accuracy, sum(map(sum, evidence.values())) / len(claims)


# --- ranking ---


def write_ranking(folder: Path, rng: random.Random, samples: int) -> None:
    """Write 100 results of each query, best first, and ten judgements, of which half are found."""
    qrels, run = [], []
    for number in range(samples):
        chosen = rng.sample(range(20_000), 105)
        for place, document in enumerate(chosen[:100], 1):
            run.append(f"q{number} Q0 d{document} {place} {100 - place}.5 bm25\n")
        relevant = [*rng.sample(chosen[:100], 5), *chosen[100:]]
        qrels += [f"q{number} 0 d{document} {rng.randint(1, 2)}\n" for document in relevant]
    (folder / "qrels.txt").write_text("".join(qrels), encoding="utf-8")
    (folder / "run.txt").write_text("".join(run), encoding="utf-8")


def score_ranking(folder: Path) -> object:
    import pytrec_eval

    with (folder / "qrels.txt").open() as qrels, (folder / "run.txt").open() as run:
        judged, ranked = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
    measures = {f"{name}.3,5,10" for name in ("ndcg_cut", "map_cut", "P", "recall", "success")} | {"recip_rank"}
    values = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(ranked)
    return {name: sum(row[name] for row in values.values()) / len(values) for name in next(iter(values.values()))}


# --- attributes of legal cases ---


def write_legal(folder: Path, rng: random.Random, samples: int) -> None:
    rows = [retrieval_rows(rng) for _ in range(samples)]
    queries = (
        {"query_id": f"q{number}", "query": row["input"], "positives": row["expected"]["positives"]}
        for number, row in enumerate(rows)
    )
    write_lines(folder / "queries.jsonl", queries)
    results = ({"query_id": f"q{number}", "results": row["prediction"]} for number, row in enumerate(rows))
    write_lines(folder / "results.jsonl", results)


def digest(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()


def score_legal(folder: Path) -> object:
    results = {row["query_id"]: row["results"] for row in read_lines(folder / "results.jsonl")}
    queries = read_lines(folder / "queries.jsonl")
    totals: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in queries:
        meta, own = row["query"]["meta"], digest(row["query"]["fact"])
        positives = {digest(positive["fact"]) for positive in row["positives"][:10]}
        found = [document for document in results[row["query_id"]] if digest(document["fact"]) != own]
        months = meta["term_of_imprisonment"]["imprisonment"]
        for k in (3, 5, 10):
            hits: Counter[str] = Counter()
            for document in found[:k]:
                hits["gold"] += digest(document["fact"]) in positives
                hits["accusation"] += set(document["accusation"]) == set(meta["accusation"])
                hits["article"] += set(document["relevant_articles"]) == set(meta["relevant_articles"])
                term = document["imprisonment"]["imprisonment"]
                hits["imprisonment"] += abs(term - months) <= max(6, 0.2 * months)
            for task, count in hits.items():
                for value in (count / k, min(count / 10, 1), float(count > 0), f1(count, k, 10)):
                    totals[task, k].append(value)
    return {task: sum(values) for task, values in totals.items()}


# --- questions ---


def write_questions(folder: Path, rng: random.Random, samples: int) -> None:
    write_lines(folder / "cases.jsonl", ({"id": str(number), **qa_rows(rng)} for number in range(samples)))


def score_questions(folder: Path) -> object:
    return plain_qa(read_lines(folder / "cases.jsonl"))


# --- story annotations ---


def write_stories(folder: Path, rng: random.Random, samples: int) -> None:
    write_lines(folder / "cases.jsonl", ({"id": str(number), **_story_row(rng)} for number in range(samples)))


def _story_row(rng: random.Random) -> Row:
    sentences = [" ".join(rng.choices(WORDS, k=8)) + "." for _ in range(20)]
    text = " ".join(sentences)
    people = rng.sample(["Ada", "Bram", "Cleo", "Dirk", "Edda", "Fay", "Gil"], 5)

    def story() -> Row:
        characters = [
            {"name": name, "alias": f"old {name}; the {name}", "archetype": rng.choice(("Hero", "Villain"))}
            for name in rng.sample(people, 4)
        ]
        cuts = sorted(rng.sample(range(1, len(text)), 4))
        spans = zip([0, *cuts], [*cuts, len(text)], strict=True)
        events = [_event(rng, people, number, span) for number, span in enumerate(spans)]
        return {"source_info": {"text_content": text}, "characters": characters, "narrative_events": events}

    return {"input": text, "expected": story(), "prediction": story()}


def _event(rng: random.Random, people: Sequence[str], number: int, span: tuple[int, int]) -> Row:
    agent, target = rng.sample(people, 2)
    return {
        "id": f"e{number}",
        "time_order": number + 1,
        "text_span": {"start": span[0], "end": span[1]},
        "relationships": [
            {
                "agent": agent,
                "target": target,
                "relationship_level1": "Romance",
                "relationship_level2": rng.choice(("lover", "spouse")),
                "sentiment": rng.choice(("positive", "negative")),
            }
        ],
        "action_layer": {
            "category": "physical",
            "type": rng.choice(("attack", "flee")),
            "context": "",
            "status": "success",
            "function": "setup",
        },
    }


def aligned(gold: Sequence[Row], answer: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Events of the answer with those of the ground truth, by id, then by time order."""
    ids = {event["id"]: event for event in gold if event.get("id")}
    times = {event["time_order"]: event for event in gold if event.get("time_order") is not None}
    used: set[Any] = set()
    pairs = []
    for event in answer:
        name, time = event.get("id"), event.get("time_order")
        if name and name in ids and ("id", name) not in used:
            used.add(("id", name))
            pairs.append((event, ids[name]))
        elif time is not None and time in times and ("time", time) not in used:
            used.add(("time", time))
            pairs.append((event, times[time]))
    return pairs


def names_of(character: Row) -> list[str]:
    aliases = [alias.strip() for alias in character.get("alias", "").split(";") if alias.strip()]
    return [character["name"].strip(), *aliases]


def score_characters(gold: Row, answer: Row) -> float:
    known = {name.lower(): names_of(person)[0] for person in gold["characters"] for name in names_of(person)}
    matched: dict[str, str] = {}
    extra = []
    for person in answer["characters"]:
        for name in names_of(person):
            if name.lower() in known and known[name.lower()] not in matched:
                matched[known[name.lower()]] = person.get("archetype", "").strip()
                break
        else:
            extra.append(person["name"])
    return f1(len(matched), len(matched) + len(extra), len(gold["characters"]))


def ends_of(relationships: Sequence[Row]) -> dict[tuple[str, str], Row]:
    ends = {}
    for bond in relationships:
        agent, target = bond.get("agent", "").strip(), bond.get("target", "").strip()
        if agent and target:
            ends[agent.lower(), target.lower()] = bond
    return ends


def score_relationships(gold: Row, answer: Row) -> float:
    hits = predicted = there = 0
    levels: Counter[str] = Counter()
    for event, true in aligned(gold["narrative_events"], answer["narrative_events"]):
        left, right = ends_of(true["relationships"]), ends_of(event["relationships"])
        for key, bond in right.items():
            if key in left:
                hits += 1
                for level in ("relationship_level1", "relationship_level2"):
                    levels[level] += bond.get(level, "").strip() == left[key].get(level, "").strip()
        predicted += len(event["relationships"])
        there += len(true["relationships"])
    return f1(hits, predicted, there)


def score_sentiments(gold: Row, answer: Row) -> float:
    right = total = 0
    for event, true in aligned(gold["narrative_events"], answer["narrative_events"]):
        ends = ends_of(true["relationships"])
        for key, bond in ends_of(event["relationships"]).items():
            if key in ends and bond.get("sentiment", "").strip() and ends[key].get("sentiment", "").strip():
                total += 1
                right += bond["sentiment"].strip() == ends[key]["sentiment"].strip()
    return f1(right, total, total)


FIELDS = ("category", "type", "context", "status", "function")


def score_actions(gold: Row, answer: Row) -> float:
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    complete = judged = 0
    for event, true in aligned(gold["narrative_events"], answer["narrative_events"]):
        results = {}
        for field in FIELDS:
            expected, found = (side["action_layer"].get(field, "").strip() for side in (true, event))
            if expected:
                results[field] = found == expected
        total.update(results.keys())
        right.update(field for field, same in results.items() if same)
        judged += 1
        complete += all(results.values())
    shares = [right[field] / total[field] for field in FIELDS if right[field]]
    return (complete / max(judged, 1) + (sum(shares) / len(shares) if shares else 0.0)) / 2


def sentences_of(text: str) -> list[tuple[int, int]]:
    ends = [mark.end() for mark in re.finditer(r"[。！？.!\?]+", text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return list(zip([0, *ends], ends, strict=False))


def sentence_at(position: int, sentences: Sequence[tuple[int, int]]) -> int:
    for number, (start, end) in enumerate(sentences):
        if start <= position < end:
            return number
    return len(sentences) - 1


def score_spans(gold: Row, answer: Row, text: str) -> float:
    sides = [[event["text_span"] for event in side["narrative_events"]] for side in (gold, answer)]
    sentences = sentences_of(text)
    cuts = []
    for spans in sides:
        last = [sentence_at(span["end"], sentences) for span in spans]
        first = [sentence_at(span["start"], sentences) for span in spans]
        cuts.append(sorted({end - 1 for start, end in zip(first, last, strict=True) if end > start or end > 0}))
    used: set[int] = set()
    overlaps = []
    for span in sides[0]:
        best, chosen = 0.0, -1
        for number, other in enumerate(sides[1]):
            if number not in used:
                common = max(0, min(span["end"], other["end"]) - max(span["start"], other["start"]))
                union = max(span["end"], other["end"]) - min(span["start"], other["start"])
                if union and common / union > best:
                    best, chosen = common / union, number
        used.add(chosen)
        overlaps.append(best)
    return (boundary_score(cuts[0], cuts[1]) + sum(overlaps) / len(overlaps)) / 2


def score_stories(folder: Path) -> object:
    overall = []
    for row in read_lines(folder / "cases.jsonl"):
        gold, answer = row["expected"], row["prediction"]
        parts = {
            "characters": score_characters(gold, answer),
            "relationships": score_relationships(gold, answer),
            "sentiment": score_sentiments(gold, answer),
            "action_layer": score_actions(gold, answer),
            "text_span": score_spans(gold, answer, row["input"]),
        }
        overall.append(sum(parts.values()) / len(parts))
    return sum(overall) / len(overall)


# --- boundaries ---


def write_boundaries(folder: Path, rng: random.Random, samples: int) -> None:
    rows = (
        {
            "id": str(number),
            "input": "A text.",
            "expected": {"boundaries": sorted(rng.sample(range(99), 12)), "n_sentences": 100},
            "prediction": sorted(rng.sample(range(99), 12)),
        }
        for number in range(samples)
    )
    write_lines(folder / "cases.jsonl", rows)


def boundary_score(gold: Sequence[int], answer: Sequence[int], tolerance: int = 2) -> float:
    exact = set(gold) & set(answer)
    used, taken, near = set(exact), set(exact), []
    for true in gold:
        if true in used:
            continue
        for place in answer:
            if place not in taken and abs(true - place) < tolerance:
                near.append(abs(true - place))
                used.add(true)
                taken.add(place)
                break
    edits = len([place for place in answer if place not in taken]) + len([true for true in gold if true not in used])
    total = edits + len(near) + len(exact)
    return 1 - (edits + sum(0.5 * distance / tolerance for distance in near)) / total if total else 1.0


def score_boundaries(folder: Path) -> object:
    rows = read_lines(folder / "cases.jsonl")
    return sum(boundary_score(row["expected"]["boundaries"], row["prediction"]) for row in rows) / len(rows)


QA = {"metrics": ["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4"]}
MATCHER = {"evidence_matching": "original", "evidence_form": "original", "evidence_threshold": THRESHOLD}
JSONL = {"format": "jsonl", "path": "cases.jsonl"}
OFFICIAL = {"format": "ecac", "gold": "gold.json", "predictions": "answers.json"}
TASKS: Mapping[str, Task] = {
    "emotion-cause spans": Task(
        lambda folder, rng, samples: write_conversations(folder, rng, samples, spans=True),
        score_emotion_spans,
        1374,
        {**OFFICIAL, "subtask": 1},
        "emotion_cause",
        {"subtask": 1},
        {"subtask": 1},
    ),
    "emotion-cause pairs": Task(
        lambda folder, rng, samples: write_conversations(folder, rng, samples, spans=False),
        score_emotion_pairs,
        1374,
        {**OFFICIAL, "subtask": 2},
        "emotion_cause",
        {"subtask": 2},
        {"subtask": 2},
    ),
    "fact checks": Task(
        write_claims,
        score_claims,
        10_000,
        {"format": "fact_check", "path": "claims.json", "predictions": "answers.jsonl"},
        "fact_check",
        {"explanation": "omit", "tokenizer": "words", **MATCHER},
        {"explanation": "omit"},
    ),
    "ranking": Task(
        write_ranking,
        score_ranking,
        10_000,
        {"format": "trec", "qrels": "qrels.txt", "predictions": "run.txt"},
        "retrieval",
        {"k": [3, 5, 10], "max_positives": None, "tasks": {"gold": {"rule": "gold", "by": "id"}}},
        {"k": [3, 5, 10], "max_positives": None, "tasks": {"gold": {"rule": "gold", "by": "id"}}},
    ),
    "legal cases": Task(
        write_legal,
        score_legal,
        10_000,
        {"format": "case_retrieval", "path": "queries.jsonl", "predictions": "results.jsonl"},
        "retrieval",
        {},
        {},
    ),
    "questions": Task(write_questions, score_questions, 10_000, JSONL, "text", {**QA, "tokenizer": "words"}, QA),
    "stories": Task(write_stories, score_stories, 10_000, JSONL, "narrative", {}, {}),
    "boundaries": Task(write_boundaries, score_boundaries, 10_000, JSONL, "segmentation", {}, {}),
}


def cases_of(folder: Path, task: Task) -> Iterator[Any]:
    """Cases, made of the files as in a script of one's own; TREC files are read by the source."""
    from pytest_llmeval import Case
    from pytest_llmeval.tasks.retrieval._source import TrecSource

    if task.suite["format"] == "trec":
        yield from TrecSource(qrels="qrels.txt", predictions="run.txt").load(folder, [])
    elif task.suite["format"] == "ecac":
        answers = by_id(read_json(folder / "answers.json"))
        for number, conversation in by_id(read_json(folder / "gold.json")).items():
            yield Case(str(number), expected=conversation, prediction=answers[number])
    elif task.suite["format"] == "fact_check":
        for claim, answer in zip(read_json(folder / "claims.json"), read_lines(folder / "answers.jsonl"), strict=True):
            yield Case(str(claim["id"]), claim["claim"], claim, answer)
    elif task.suite["format"] == "case_retrieval":
        results = {row["query_id"]: row["results"] for row in read_lines(folder / "results.jsonl")}
        for row in read_lines(folder / "queries.jsonl"):
            yield Case(row["query_id"], row["query"], {"positives": row["positives"]}, results[row["query_id"]])
    else:
        yield from (Case(**row) for row in read_lines(folder / "cases.jsonl"))


def score_here(folder: Path, task: Task, options: Mapping[str, Any], confidence: float | None) -> None:
    """Print the metrics of `score()`."""
    from pytest_llmeval import get_evaluator, score

    result = score(get_evaluator(task.evaluator, **options), cases_of(folder, task), confidence=confidence)
    print({name: value.value for name, value in result.metrics.items()}, result.cases[0].reason)


def run_side(side: str, name: str, folder: Path) -> None:
    """Do what one side does, in a process of its own."""
    task = TASKS[name]
    if side == "original":
        print(task.original(folder))
    elif side == "score":
        score_here(folder, task, task.options, None)
    elif side == "default":
        score_here(folder, task, task.defaults, 0.95)


def command_of(side: str, name: str, folder: Path) -> list[str]:
    if side == "command":
        return [sys.executable, "-m", "pytest_llmeval", "score", str(folder / "s.eval.json")]
    return [sys.executable, __file__, "--side", side, name, str(folder)]


def measure(name: str, folder: Path, rounds: int, samples: int | None = None) -> dict[str, float]:
    """The least processor seconds of each side of a task."""
    task = TASKS[name]
    task.write(folder, random.Random(20240611), samples or task.samples)
    suite = {"suite": "task", "evaluators": [{task.evaluator: dict(task.defaults)}], "source": dict(task.suite)}
    (folder / "s.eval.json").write_text(json.dumps(suite), encoding="utf-8")
    seconds: dict[str, float] = {}
    for _ in range(rounds):
        for side in SIDES:
            took = run_s(command_of(side, name, folder))[0]
            seconds[side] = min(took, seconds.get(side, took))
    return seconds


def main(rounds: int, names: Sequence[str], samples: int | None = None) -> None:
    """Print a row for each task."""
    print("| | original | `score()`, original's options | `score()` | `llmeval score` |\n|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            seconds = measure(name, Path(folder), rounds, samples)
        first = seconds["original"]
        cells = (f"{seconds[side]:.2f} s ({seconds[side] / first:.2f})" for side in SIDES[1:])
        print(f"| {name}, {samples or TASKS[name].samples:,} | {first:.2f} s | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        run_side(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS, sys.argv[2:] or list(TASKS))
