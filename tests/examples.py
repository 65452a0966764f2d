"""An example of every evaluator and every check that ships: in order, wrong, failing, and generated."""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

from pictures import png
from project import ROOT
from scripted_judges import ClaimJudge

from pytest_llmeval import Evaluator, Media, get_checks, get_evaluator
from pytest_llmeval.core import Case, LlmevalError, Observation
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.evaluators.checks._contents import Number
from pytest_llmeval.evaluators.checks._kinds import Most
from pytest_llmeval.evaluators.checks._texts import Text
from pytest_llmeval.judges import JudgeRequest, Verdict
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.reports import explain
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.tasks.grounding._evaluators import ClaimMetric
from pytest_llmeval.tasks.retrieval._ranking import GoldList
from pytest_llmeval.tasks.similarity._semantic import Semantic


class Example(NamedTuple):
    """A case of an evaluator.

    Attributes:
        options: Those of the evaluator.
        input: Of the case.
        expected: Of the case.
        prediction: An answer in order.
        wrong: An answer of the right form that scores less.
    """

    options: Mapping[str, Any]
    input: Any
    expected: Any
    prediction: Any
    wrong: Any


_META = {"accusation": ["theft"], "relevant_articles": ["264"], "term_of_imprisonment": {"imprisonment": 3}}
_STORY = {"characters": [{"name": "Mira"}], "narrative_events": []}
_CALL = {"tool_calls": [{"name": "lookup", "arguments": {"topic": "refunds"}}]}
_CHECK = {"verdict": "Refuted", "justification": "According to the Harbour log, no."}
_TALK = {"user": {"goal": "A refund."}, "messages": [{"role": "user", "content": "Hello"}], "turns": 1}
_SENTENCES = [f"Sentence {n}." for n in range(10)]

EXAMPLES: Mapping[str, Example] = {
    "checklist": Example({"instructions": ["Greet."]}, "Hello?", None, "Hello.", "Go away."),
    "claims": Example({"metrics": ["faithfulness"]}, {"question": "Q?", "contexts": ["C."]}, None, "It is.", "No."),
    "classification": Example({}, ["Hooray!", "Go!"], ["joy", "anger"], ["joy", "anger"], ["joy", "fear"]),
    "conversation": Example(
        {},
        None,
        None,
        {"turns": 2, "stop": "script", "messages": []},
        {"turns": 4, "stop": "max_turns", "messages": []},
    ),
    "document_ids": Example({}, "Q?", ["d1", "d2"], ["d1", "d2"], ["d3", "d2"]),
    "emotion_cause": Example({"subtask": 2}, None, [["2_fear", "1"]], [["2_fear", "1"]], [["2_joy", "2"]]),
    "fact_check": Example(
        {"explanation": "omit"},
        "Tall?",
        {**_CHECK, "evidence_sources": ["Harbour log"]},
        _CHECK,
        {"verdict": "Supported", "justification": "According to the Sea Charts, yes."},
    ),
    "fields": Example(
        {}, None, {"total": 12, "vendor": "Ito"}, {"total": 12, "vendor": "Ito"}, {"total": 21, "tax": 2}
    ),
    "judge": Example({"mode": "continuous"}, "Q?", "grey", "grey", "blue"),
    "judge_agreement": Example({"mode": "continuous"}, "Q?", {"reference": "grey", "human": 1}, "grey", "blue"),
    "narrative": Example({}, "Once.", _STORY, _STORY, {**_STORY, "characters": [{"name": "Otto"}]}),
    "retrieval": Example(
        {},
        {"fact": "q", "meta": _META},
        {"positives": [{"fact": "d"}]},
        [{"fact": "d", "meta": _META}],
        [{"fact": "e", "meta": _META}],
    ),
    "recorded": Example(
        {"metrics": ["accuracy"]}, None, None, {"runs": [{"accuracy": 1}]}, {"runs": [{"accuracy": 0.5}]}
    ),
    "routing": Example({}, None, {"expect": "lookup"}, _CALL, {"tool_calls": [{"name": "search", "arguments": {}}]}),
    "segmentation": Example({}, _SENTENCES, [1, 5], [1, 5], [2, 8]),
    "text": Example({}, "Where did Bela paint the harbour?", "At Orrin Bay.", "At Orrin Bay.", "At the quay of Lumen."),
    "tools": Example({}, None, _CALL, _CALL, {"tool_calls": [{"name": "search", "arguments": {}}]}),
    "user_drift": Example(
        {}, None, None, _TALK, {**_TALK, "messages": [{"role": "user", "content": "I am the agent."}]}
    ),
}
"""A new evaluator gets an entry here: its foreign predictions, generated cases and recorded failure follow."""

ELSEWHERE = {
    "image_similarity": "it compares images, which tests/tasks/similarity/test_image_similarity.py draws",
    "pairwise": "it compares with the answers of another system, and shows both to a judge as `judge` does",
    "semantic": "it runs a model; it reads a text as `text` does",
    "narrative.": "components read the document that `narrative` reads",
}
"""Evaluators without an example, by name or its beginning, with the reason."""


def without_example(names: Iterable[str]) -> set[str]:
    """Return the evaluators that need no example, but cases of their own."""
    return {name for name in names if name.startswith(tuple(ELSEWHERE))}


WIDTHS = (80, 140)
"""Of the terminals."""

_FOX = {"name": "The Fox", "archetype": "Sidekick"}
_HEN = {"name": "The Hen", "archetype": "Hero"}


def _story_of(characters: Sequence[Any], **event: Any) -> dict[str, Any]:
    relationship = {"agent": "The Fox", "target": "The Hen", "relationship_level1": "Adversarial"}
    found = {"id": 1, "relationships": [relationship | event.pop("relationship", {})], "action_layer": event}
    return {"characters": list(characters), "narrative_events": [found]}


def _case(expected: Any, prediction: Any, given: Any = None, **labels: str) -> Case:
    return Case("x", given, expected, prediction, labels, line=7)


_STORIES = _case(
    _story_of([_FOX, _HEN], category="conflict", type="chase"),
    _story_of(
        [_HEN, {"name": "A Crow"}], category="conflict", type="talk", relationship={"relationship_level1": "Ally"}
    ),
    "The fox chased the hen. The hen ran.",
)
_QUESTION = "Where did Bela paint the harbour?"
_Failing: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Threshold], Case]
_FAILURES: Mapping[str, _Failing] = {
    "judge": ({"mode": "continuous"}, {"judge_score": Threshold(0.8)}, _case("Orrin Bay", "Lumen", _QUESTION)),
    "judge_agreement": (
        {"mode": "continuous"},
        {"mae": Threshold(max=0.1)},
        _case({"reference": "Orrin Bay", "human": [1.0, 0.8]}, "The bay of Orrin", _QUESTION),
    ),
    "pairwise": ({}, {"win_rate": Threshold(0.5)}, _case("Orrin Bay", "Lumen", _QUESTION)),
    "checklist": (
        {"instructions": ("Greet the customer by name.", "Say when the parcel arrives.")},
        {"all_followed": Threshold(1.0)},
        _case(None, "Hello Bela! It is on its way.", "Where is my parcel?"),
    ),
    "claims": (
        {"metrics": ("faithfulness", "factual_recall", "citation_support")},
        {"faithfulness": Threshold(1.0), "factual_recall": Threshold(0.4)},
        _case(
            "Refunds take 30 days. A receipt is needed.",
            "Refunds take 30 days [1]. They are free [4].",
            {
                "question": "How long do refunds take?",
                "contexts": ["We are open from nine to five.", "Refunds take 30 days."],
            },
        ),
    ),
    "checks": ({"checks": ({"contains": "30 days"}, {"max_words": 3})}, {}, _case(None, "Refunds take two weeks.")),
    "retrieval": (
        {"k": (3,), "tasks": {"docs": GoldList("gold", "id")}},
        {"docs_recall@3": Threshold(1.0)},
        _case(["d4", "d9"], ["d1", "d2", "d4"], "harbour paintings"),
    ),
    "document_ids": (
        {"k": 3},
        {"recall@3": Threshold(1.0)},
        _case(["d4", "d9"], ["d1", "d2", "d4"], "harbour paintings"),
    ),
    "fact_check": (
        {"explanation": "omit"},
        {"verdict_accuracy": Threshold(1.0)},
        _case(
            {"verdict": "Refuted", "justification": "No.", "evidence_sources": ["Harbour Office, 2023"]},
            {"verdict": "Supported", "justification": "It grew.", "evidence_sources": ["Gazette, 1999"]},
            "The harbour grew.",
        ),
    ),
    "emotion_cause": (
        {"subtask": 2},
        {"pair_f1": Threshold(0.9)},
        _case(
            [["1_joy", "1"], ["2_anger", "1"], ["3_fear", "2"]],
            [["1_sadness", "1"], ["2_anger", "2"]],
            ["Hooray!", "Go away.", "Help!"],
        ),
    ),
    "narrative": ({}, {"overall_score": Threshold(0.9)}, _STORIES),
    "narrative.characters": ({}, {"character_f1": Threshold(0.9)}, _STORIES),
    "narrative.relationships": ({}, {"level1_accuracy": Threshold(0.9)}, _STORIES),
    "narrative.action_layer": ({}, {"action_type_accuracy": Threshold(0.9)}, _STORIES),
    "recorded": ({"metrics": ["accuracy"]}, {"accuracy": Threshold(0.9)}, _case(None, {"runs": [{"accuracy": 0.5}]})),
    "conversation": (
        {},
        {"turns": Threshold(max=2)},
        _case(None, {"turns": 4, "stop": "max_turns", "messages": []}, {"messages": ["Hello"]}),
    ),
}


def _failure_of_example(name: str) -> _Failing:
    """Return an example's case with the wrong answer, which must reach the best value of the first metric."""
    options, given, expected, _, wrong = EXAMPLES[name]
    metric = next(each for each in get_evaluator(name, **options).describe() if "[" not in each.name)
    limit = Threshold(min=metric.high) if metric.higher_is_better else Threshold(max=metric.low)
    return options, {metric.name: limit}, _case(expected, wrong, given)


CASES: Mapping[str, _Failing] = dict(
    sorted({**{name: _failure_of_example(name) for name in EXAMPLES if name not in _FAILURES}, **_FAILURES}.items())
)
"""Evaluator to its options, the limits that its case misses, and the case.

An evaluator without one in `_OWN`, which shows more, fails with the wrong answer of its entry in `EXAMPLES`."""

NOT_RECORDED = {
    "image_similarity": "its cases are images; example_suites/screens has some",
    "semantic": "it runs a model",
    "narrative.sentiment": "it shows what `narrative.relationships` does",
    "narrative.text_span": "it shows what `narrative` does",
}
"""Evaluators without a recorded failure, with the reason."""


def _said(name: str, *items: Mapping[str, Any]) -> Verdict:
    return Verdict(0.5, details={name: items})


VERDICTS: Mapping[str, list[Verdict | LlmevalError]] = {
    "judge": [Verdict(0.2, "Another town is named.")],
    "judge_agreement": [Verdict(0.2, "The words differ.")],
    "claims": [
        _said("claims", {"claim": "Refunds take 30 days.", "sentence": 1}, {"claim": "They are free.", "sentence": 2}),
        _said("claims", {"claim": "Refunds take 30 days.", "sentence": 1}, {"claim": "A receipt is needed."}),
        _said("verdicts", {"supported": False, "reason": "It is about opening hours."}),
        _said(
            "verdicts",
            {"supported": True, "passages": [2], "reason": ""},
            {"supported": False, "passages": [], "reason": "No passage says what refunds cost."},
        ),
        _said(
            "verdicts",
            {"supported": True, "passages": [1], "reason": ""},
            {"supported": False, "passages": [], "reason": ""},
        ),
    ],
    "user_drift": [Verdict(0.0, "It speaks as the agent.")],
    "pairwise": [Verdict(0.0, "Another town is named."), Verdict(1.0, "Only one is right.")],
    "checklist": [
        Verdict(
            0.5,
            "",
            {"verdicts": [{"followed": True, "reason": ""}, {"followed": False, "reason": "No date is named."}]},
        )
    ],
}


def _evaluator(name: str, options: Mapping[str, Any]) -> Any:
    return Checks(**options) if name == "checks" else get_evaluator(name, **options)


def failure(name: str, width: int) -> str:
    """Return what a failing case of an evaluator shows."""
    options, limits, case = CASES[name]
    suite = LoadedSuite(
        "golden",
        Path("golden.eval.yaml"),
        evaluators={name: _evaluator(name, options)},
        cases=(case,),
        thresholds=limits,
    )
    answer = CaseAnswer(suite.cases[0], verdicts={name: [VERDICTS[name]]} if name in VERDICTS else {})
    execution = execute(suite, answer)
    assert execution.record.outcome == "failed", execution.record
    return explain(execution.case, execution.record, "golden.eval.yaml", width=width)


def written(width: int) -> str:
    """Return the failures of all evaluators."""
    return "\n".join(f"===== {name} =====\n{failure(name, width)}\n" for name in CASES)


def recorded(width: int) -> Path:
    """Return the file that holds the failures of all evaluators."""
    return ROOT / "tests" / "reports" / "failures" / f"width-{width}.txt"


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


def _route(rng: random.Random) -> Any:
    return {"expect": rng.choice(["a", "b", None]), "args": {"x": 1}}


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


def _picture(rng: random.Random) -> dict[str, Any] | None:
    return Media.form_of(Media(data=png(12, rng.choice((12, 14)), (rng.randrange(256), 0, 0))))


def _picture_or_text(rng: random.Random) -> Any:
    return rng.choice((_picture(rng), _text(rng)))


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
    "image_similarity": Generator(lambda: get_evaluator("image_similarity"), _picture, _picture_or_text),
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
    "routing": Generator(lambda: get_evaluator("routing"), _route, _calls),
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


_SCHEMA = {"type": "object", "required": ["b"]}
_OF_TYPE: dict[Any, Any] = {
    None: None,
    str: "b",
    Text: "b",
    tuple[Text, ...]: ("b", "c"),
    int: 3,
    float | Most: 3,
    float | Number: 3,
    Any: _SCHEMA,
}
_ARGUMENTS = {
    "language": "en",
    "image_size": {"width": 8, "min_height": 2},
    "levenshtein": {"to": "b", "max": 1},
    "media_type": "image/png",
    "pii": None,
    "rubric": {
        "criteria": "Says b.",
        "levels": [{"score": 0, "meaning": "no"}, {"score": 1, "meaning": "yes"}],
        "pass_mark": 1,
    },
    "span": {"name": "db", "count": 1},
    "tool_call": {"name": "lookup", "max": 1},
}

ARGUMENTS: dict[str, Any] = {
    name: _ARGUMENTS[name] if name in _ARGUMENTS else _OF_TYPE[kind.argument]
    for name, kind in Checks.kinds().items()
    if name in _ARGUMENTS or kind.argument in _OF_TYPE
}
"""Name to argument. A new check gets an entry in `_OWN` if it takes a type that is not in `_OF_TYPE`."""


def observed(entry: Any, prediction: Any, **parts: Any) -> Observation:
    """Return what one check counts in a case; further keywords are fields of the case."""
    return Checks((entry,)).measure(Case("a", prediction=prediction, **parts))


def met(entry: Any, prediction: Any) -> bool | None:
    """Return whether a check is met; ``None`` where it could not be made."""
    found = observed(entry, prediction)
    return None if found.errored else found.malformed is None


def unmet(entry: Any, prediction: Any) -> str:
    """Return what is said about a check that is not met."""
    message = observed(entry, prediction).malformed
    assert message is not None
    return message
