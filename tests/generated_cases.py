"""Generated cases for every evaluator that ships: from a generator of its own, or from its example."""

__all__ = ("GENERATORS", "Generator", "answered")

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias, get_args

from claim_judge import ClaimJudge
from evaluator_examples import EXAMPLES

from pytest_llmeval import Evaluator, get_checks, get_evaluator
from pytest_llmeval.evaluators.judge.claims import ClaimMetric
from pytest_llmeval.evaluators.semantic import Semantic
from pytest_llmeval.judge.contract import JudgeRequest

LABELS = ("joy", "anger", "neutral")
WORDS = ("grey", "boats", "鳥", "!!", "")
CHECKS = (
    {"contains": ["grey", "boats"]},
    {"max_words": 2, "weight": 3, "name": "short"},
    {"any_of": ["is_json", {"not_contains": "!!"}]},
)

Maker: TypeAlias = Callable[[random.Random], Any]


@dataclass(frozen=True)
class Generator:
    """How cases of an evaluator are made.

    Attributes:
        build: Makes the evaluator; its ``name`` is that of the registry.
        gold: Makes ``expected``; it may also be ``None``.
        answer: Makes the prediction: good, bad, or not readable.
        input: Makes the input.
    """

    build: Callable[[], Evaluator]
    gold: Maker
    answer: Maker
    input: Maker = lambda _: None


def answered(request: JudgeRequest) -> str:
    """Judge, by chance: the same request always gets the same reply."""
    properties = (request.reply_schema or {}).get("properties", {})
    if "sentences" in properties or ("verdicts" in properties and '"instruction_' not in str(request)):
        return ClaimJudge().complete(request).text
    draw = sha256(str(request).encode()).digest()[0]
    if request.reply_schema is not None and "verdicts" in request.reply_schema["properties"]:
        numbers = range(1, str(request).count('"instruction_') + 1)
        return json.dumps({"verdicts": [{"instruction": n, "followed": bool(draw >> n & 1)} for n in numbers]})
    if request.reply_schema is None:
        return "yes" if draw % 2 else "no"
    if "role" in request.reply_schema["properties"]:
        return json.dumps({"reasoning": "", "role": ("kept", "slipped", "left")[draw % 3]})
    if "better" in request.reply_schema["properties"]:
        return json.dumps({"better": ("first", "second", "tie")[draw % 3]})
    graded = "fabrication" in request.reply_schema["properties"]
    return json.dumps({"reasoning": "", "score": 20 * (draw % 6) if graded else draw % 6 / 5})


class _Likeness(Semantic):
    """Evaluator `semantic` without models: texts are alike that have letters in common."""

    def _bert_f1(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        return {pair: self._alike(*pair) for pair in pairs}

    _sbert_similarity = _bert_f1

    @staticmethod
    def _alike(left: str, right: str) -> float:
        return len(set(left) & set(right)) / len(set(left) | set(right))


def _label(rng: random.Random) -> Any:
    return rng.choice((*LABELS, None, 3.5, ["joy"]))


def _labels(rng: random.Random) -> Any:
    return [rng.choice(LABELS) for _ in range(rng.randint(0, 3))] or rng.choice(LABELS)


def _text(rng: random.Random) -> Any:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4)))


def _labelled_text(rng: random.Random) -> Any:
    scores = [rng.randint(0, 5) / 5 for _ in range(rng.randint(1, 2))]
    return {"reference": "grey boats", "human": rng.choice((scores, scores[0]))} if rng.random() < 0.7 else None


def _corrected_text(rng: random.Random) -> Any:
    return _labelled_text(rng) or "grey boats"


def _boundaries(rng: random.Random) -> Any:
    return {"boundaries": sorted(rng.sample(range(1, 9), rng.randint(0, 3))), "n_sentences": rng.choice((2, 10))}


def _pairs(rng: random.Random) -> Any:
    def pair() -> Sequence[str]:
        return [f"{rng.randint(1, 2)}_{rng.choice(LABELS)}", f"{rng.randint(1, 2)}_grey boats sail"]

    return {
        "conversation": [
            {"utterance_ID": number, "text": "grey boats sail", "speaker": "A", "emotion": rng.choice(LABELS)}
            for number in (1, 2)
        ],
        "emotion-cause_pairs": [pair() for _ in range(rng.randint(0, 2))],
    }


def _hits(rng: random.Random) -> Any:
    return [{"id": each} for each in rng.sample("abcdef", rng.randint(0, 4))]


def _positives(rng: random.Random) -> Any:
    return {"positives": rng.sample("abcdef", rng.randint(0, 3))}


def _claim(rng: random.Random) -> Any:
    claim = {
        "claim": "It is grey.",
        "verdict": rng.choice(("Supported", "Refuted", "Not Enough Evidence", None)),
        "evidence_sources": rng.choice((None, [], ["Annals of Ice"], ["Annals of Ice", "Sea Charts"])),
        "justification": rng.choice((None, "By the Annals of Ice.", "By the Sea Charts.")),
    }
    return {name: each for name, each in claim.items() if each is not None}


_PEOPLE = ("Fox", "Owl", "Hare")
_ACTION = {
    "category": ("physical", "mental"),
    "type": ("attack", "flee"),
    "context": ("duel", "escape"),
    "status": ("success", "failure"),
    "function": ("trigger", "climax"),
}


def _story(rng: random.Random) -> Any:
    people = rng.sample(_PEOPLE, rng.randint(0, 3))
    return {
        "characters": [
            {"name": name, **({"archetype": rng.choice(("hero", "villain"))} if rng.random() < 0.7 else {})}
            for name in people
        ],
        "narrative_events": [_event(rng, number) for number in range(rng.randint(0, 3))],
    }


def _event(rng: random.Random, number: int) -> Any:
    start = rng.randint(0, 30)
    relationships = [
        {
            "agent": agent,
            "target": target,
            "relationship_level1": rng.choice(("Romance", "Adversarial", "odd", "")),
            "relationship_level2": rng.choice(("lover", "enemy", "")),
            "sentiment": rng.choice(("positive", "hostile", "odd", "")),
        }
        for agent, target in (rng.sample(_PEOPLE, 2) for _ in range(rng.randint(0, 1)))
    ]
    return {
        "id": f"e{number}",
        "time_order": number,
        "text_span": rng.choice(({"start": start, "end": start + rng.randint(1, 12)}, None)),
        "relationships": relationships,
        "action_layer": {field: rng.choice((*values, "")) for field, values in _ACTION.items()},
    }


def _story_text(_: random.Random) -> Any:
    return "One. Two! Three? 四。五！ Six... Seven"


def _narrative(name: str) -> Generator:
    return Generator(lambda: get_evaluator(name), _story, _story, _story_text)


def _record(rng: random.Random) -> Any:
    record = {
        "total": rng.choice((1, 2.5, "2.5", None)),
        "items": [{"sku": each, "n": rng.randint(1, 2)} for each in rng.sample("abc", rng.randint(0, 3))],
        "to": {"city": rng.choice(WORDS)},
    }
    return {name: each for name, each in record.items() if rng.random() < 0.8}


def _written_record(rng: random.Random) -> Any:
    return rng.choice((_record(rng), json.dumps(_record(rng)), "not JSON"))


def _calls(rng: random.Random) -> Any:
    return [{"name": rng.choice("ab"), "arguments": {"x": rng.randint(1, 2)}} for _ in range(rng.randint(0, 3))]


def _instructions(rng: random.Random) -> Any:
    return {"instructions": list(WORDS[: rng.randint(0, 3)])}


def _transcript(rng: random.Random) -> Any:
    stop = rng.choice(("script", "target", "max_turns"))
    return rng.choice(({"turns": rng.randint(1, 4), "stop": stop}, "grey"))


def _conversation(rng: random.Random) -> Any:
    wants = {"user": {"goal": "A refund."}} if rng.random() < 0.8 else {}
    said = [{"role": "user", "content": each} for each in rng.sample(WORDS, 2)]
    ends = rng.choice([{"stop": "max_turns"}, {"stop": "user", "stop_reason": rng.choice(("goal_reached", "gave_up"))}])
    return {"turns": rng.randint(1, 5), "messages": said, **ends, **wants}


def _question(_: random.Random) -> Any:
    return "What is grey?"


def _passages(rng: random.Random) -> Any:
    said = [" ".join(rng.choices(WORDS, k=2)) for _ in range(rng.randint(0, 3))]
    return {"question": "What is grey?", "contexts": said}


def _of_example(name: str) -> Generator:
    """Return a generator that chooses between the answers of an evaluator's example, and one that cannot be read."""
    example = EXAMPLES[name]
    answers = (example.prediction, example.wrong, None)
    return Generator(
        lambda: get_evaluator(name, **example.options),
        lambda _: example.expected,
        lambda rng: rng.choice(answers),
        lambda _: example.input,
    )


_OWN: Mapping[str, Generator] = {
    "classification, positive": Generator(lambda: get_evaluator("classification", positive="joy"), _labels, _label),
    "classification, ignore": Generator(lambda: get_evaluator("classification", ignore=("neutral",)), _labels, _labels),
    "text": Generator(lambda: get_evaluator("text", metrics=["exact_match", "f1", "rougeL", "bleu1"]), _text, _text),
    "semantic": Generator(_Likeness, _text, _text),
    "judge": Generator(lambda: get_evaluator("judge", mode="continuous"), _text, _text, _question),
    "judge, binary": Generator(lambda: get_evaluator("judge", mode="default_binary"), _text, _text, _question),
    "judge, corrected": Generator(
        lambda: get_evaluator("judge", mode="continuous", corrected=True), _corrected_text, _text, _question
    ),
    "claims": Generator(lambda: get_evaluator("claims", metrics=get_args(ClaimMetric)), _text, _text, _passages),
    "checklist": Generator(
        lambda: get_evaluator("checklist", instructions=["Greet.", "Be short."]), _instructions, _text, _question
    ),
    "judge_agreement": Generator(
        lambda: get_evaluator("judge_agreement", mode="continuous"), _labelled_text, _text, _question
    ),
    "pairwise": Generator(lambda: get_evaluator("pairwise"), _text, _text, _question),
    "segmentation": Generator(lambda: get_evaluator("segmentation"), _boundaries, _boundaries),
    "emotion_cause": Generator(lambda: get_evaluator("emotion_cause"), _pairs, _pairs),
    "retrieval, skip": Generator(
        lambda: get_evaluator("retrieval", k=[1, 3], unfilled_ranks="skip"), _positives, _hits
    ),
    "retrieval": Generator(lambda: get_evaluator("retrieval", k=[1, 3]), _positives, _hits),
    "fact_check": Generator(lambda: get_evaluator("fact_check"), _claim, _claim),
    "fields": Generator(lambda: get_evaluator("fields", items={"list": {"key": "sku"}}), _record, _written_record),
    "conversation": Generator(lambda: get_evaluator("conversation"), _text, _transcript),
    "conversation, with a user": Generator(
        lambda: get_evaluator("conversation", reasons=["goal_reached", "gave_up"]), _text, _conversation
    ),
    "checks": Generator(lambda: get_checks(*CHECKS), _text, _text),
    "checks, judged": Generator(lambda: get_checks(*CHECKS, {"judge": "Is grey."}), _text, _text, _question),
    "tools": Generator(lambda: get_evaluator("tools"), _calls, _calls),
    **{
        name: _narrative(name)
        for name in (
            "narrative",
            "narrative.action_layer",
            "narrative.characters",
            "narrative.relationships",
            "narrative.sentiment",
            "narrative.text_span",
        )
    },
}
_NAMED = {name.partition(",")[0] for name in _OWN}

GENERATORS: Mapping[str, Generator] = {**_OWN, **{name: _of_example(name) for name in EXAMPLES if name not in _NAMED}}
"""Name of a test, which begins with that of its evaluator, to generator.

An evaluator without one in `_OWN`, which makes richer cases, is generated from its entry in `EXAMPLES`."""
