"""Time per story of the evaluator `narrative`, for 250, 500 and 1,000 stories of 20 events. The limit is 5 ms a story.

Run: ``python benchmarks/narrative.py``. Processor time of one core; each story has a text, characters and a noisy
prediction of its own. Measuring, the metrics of each story and the pooled ones are included.
"""

__all__ = ("main",)

import random
import time
from typing import Any

from pytest_llmeval import Case, score
from pytest_llmeval.tasks.narrative._composite import Narrative

SIZES = (250, 500, 1000)
EVENTS, SENTENCES, CHARACTERS = 20, 150, 10
LIMIT_MS = 5.0
LEVELS = {"Romance": "lover", "Adversarial": "enemy", "Hierarchy": "ruler_subject", "Social & Alliance": "friend"}
SENTIMENTS = ("romantic", "positive", "neutral", "negative", "fearful", "hostile")
CATEGORIES = ("physical", "communicative", "transaction", "mental", "existential")
TYPES = ("attack", "flee", "inform", "deceive", "give", "realize")
Story = dict[str, Any]


def text_of(rng: random.Random) -> str:
    return "".join(
        "某日天色将晚他们走过长桥遇见故人" * rng.randint(1, 3) + rng.choice("。！？") for _ in range(SENTENCES)
    )


def event_of(rng: random.Random, number: int, names: list[str], length: int) -> Story:
    start = number * length // EVENTS
    ends = [rng.sample(names, 2) for _ in range(rng.randint(0, 3))]
    return {
        "id": f"{rng.getrandbits(64):x}",
        "time_order": number,
        "text_span": {"start": start, "end": start + rng.randint(10, length // EVENTS)},
        "relationships": [
            {
                "agent": agent,
                "target": target,
                "relationship_level1": (level := rng.choice(list(LEVELS))),
                "relationship_level2": LEVELS[level],
                "sentiment": rng.choice(SENTIMENTS),
            }
            for agent, target in ends
        ],
        "action_layer": {"category": rng.choice(CATEGORIES), "type": rng.choice(TYPES), "status": "success"},
    }


def gold_of(rng: random.Random) -> Story:
    text = text_of(rng)
    names = [f"{rng.choice('王李张刘陈')}{number}" for number in range(CHARACTERS)]
    return {
        "source_info": {"text_content": text},
        "characters": [{"name": name, "alias": f"阿{name};老{name}", "archetype": "Hero"} for name in names],
        "narrative_events": [event_of(rng, number, names, len(text)) for number in range(EVENTS)],
    }


def noisy(rng: random.Random, gold: Story, keep_ids: bool) -> Story:
    """Return the story with one in four values changed, names by aliases among them."""
    events = []
    for event in gold["narrative_events"]:
        span = {side: offset + rng.choice((0, 0, 0, 30)) for side, offset in event["text_span"].items()}
        relationships = [
            each | {"sentiment": rng.choice(SENTIMENTS), "agent": rng.choice(("", "", "", "阿")) + each["agent"]}
            for each in event["relationships"]
            if rng.random() < 0.75
        ]
        action = {field: value if rng.random() < 0.75 else "odd" for field, value in event["action_layer"].items()}
        known = {"id": event["id"], "time_order": event["time_order"]} if keep_ids else {"id": f"{rng.getrandbits(64)}"}
        events.append(known | {"text_span": span, "relationships": relationships, "action_layer": action})
    characters = [each | {"name": rng.choice(("", "", "", "老")) + each["name"]} for each in gold["characters"]]
    return {"characters": characters, "narrative_events": events}


def cases_of(count: int, keep_ids: bool) -> list[Case]:
    rng = random.Random(7)
    golds = [gold_of(rng) for _ in range(count)]
    return [
        Case(f"{number}", expected=gold, prediction=noisy(rng, gold, keep_ids)) for number, gold in enumerate(golds)
    ]


def main() -> None:
    scenarios = {
        "events aligned by id": (Narrative(), True),
        "aligned by span, fuzzy names": (Narrative(align=("id", "time_order", "span"), fuzzy=0.9), False),
    }
    print(f"{'scenario':<32}{'stories':>8}{'ms per story':>14}{'overall':>9}")
    for name, (evaluator, keep_ids) in scenarios.items():
        score(evaluator, cases_of(2, keep_ids), confidence=None)  # libraries and taxonomies are loaded here
        for size in SIZES:
            cases = cases_of(size, keep_ids)
            started = time.process_time()
            result = score(evaluator, cases, confidence=None)
            spent = 1000 * (time.process_time() - started) / size
            print(f"{name:<32}{size:>8}{spent:>14.2f}{result.metrics['overall_score'].value:>9.4f}")
            assert spent <= LIMIT_MS, f"{spent:.2f} ms a story, expected at most {LIMIT_MS}"


if __name__ == "__main__":
    main()
