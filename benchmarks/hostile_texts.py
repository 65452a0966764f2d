"""Every check and evaluator on texts that try to stall it: one piece, repeated to 25 kB and to 100 kB.

If scoring is at most n log n, the longer text takes up to 4.6 times as long. What is quick at 100 kB is not listed.

python benchmarks/hostile_texts.py
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tabulate import tabulate

from pytest_llmeval import Case, get_checks, get_evaluator
from pytest_llmeval.core import LlmevalError

PIECES = (
    *"a . 1 - “ ” \" ' 「 『 « ( ) [ ] { } < \\ é ｅ 你 万 @ #".split(),  # noqa: SIM905 (a list of these would take 24 lines)
    *(" ", "\n", "\u200d", "e\u0301", "👩\u200d"),
    *'?! ... 1, 1. 1e9 +1 a. a- a@b ab@c. {"a": {"a":[ ``` \\u0041 你。 http:// www.a. [1] DE89'.split(),  # noqa: SIM905
    *("a ", "A. ", "```json\n", "你 ", "I can't ", "I cannot help ", "+86 138", "1234 ", "4111 1111 ", "127.0.0.1 "),
    *("a:b ", "* ", "| a ", "the ", "not found ", "n/a "),
)
SMALL, LARGE = 25_000, 100_000
_QUICK_S = 0.1

CHECKS: tuple[Any, ...] = (
    *("is_json", "contains_json", "refusal", "quotes", "pii", "empty"),
    *({name: "zz"} for name in ("contains", "icontains", "starts_with", "equals")),
    *({name: 3} for name in ("number", "max_chars", "max_words", "max_sentences")),
    *({"contains_all": ["zz", "y"]}, {"one_of": ["zz"]}, {"regex": "(zz)+y"}, {"levenshtein": {"to": "zz", "max": 3}}),
    *({"json_subset": {"a": 1}}, {"json_schema": {"type": "object"}}, {"language": "en"}),
)


def scored() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield name and scoring of everything that reads texts; what cannot read one says so, which is quick as well."""
    for check in CHECKS:
        made = get_checks(check)
        name = check if isinstance(check, str) else next(iter(check))
        yield f"check {name}", lambda text, made=made: made.measure(_passages(text))
    plain = {
        "text": {"metrics": ["exact_match", "f1", "rouge1", "rouge2", "bleu4"]},
        "classification": {},
        "fields": {},
        "tools": {},
        "segmentation": {},
        "emotion_cause": {"subtask": 2},
        "retrieval": {},
        "fact_check": {"explanation": "omit"},
        "narrative": {},
    }
    for name, options in plain.items():
        evaluator = get_evaluator(name, **options)
        yield name, lambda text, evaluator=evaluator: evaluator.evaluate(text, text, text)
        yield f"{name}, against a short one", lambda text, evaluator=evaluator: evaluator.evaluate(text, "zz", "zz")
    both = get_evaluator("fact_check", explanation="omit")
    gold = {
        "claim": "c",
        "verdict": "Supported",
        "justification": "x",
        "evidence_sources": [{"content": "c", "url": ""}],
    }
    yield "fact_check, cited", lambda text: both.evaluate({"verdict": "Supported", "justification": text}, gold)


def _passages(text: str) -> Case:
    return Case("1", "q", "zz", {"answer": text, "contexts": [text[: len(text) // 2], "zz"]})


def seconds(score: Callable[[str], object], text: str) -> float:
    """Return how long scoring takes; what is wrong with the text is no matter here."""
    started = time.perf_counter()
    with suppress(LlmevalError, ValueError, TypeError, AttributeError):
        score(text)
    return time.perf_counter() - started


def main() -> None:
    """Print what is slow, the worst growth first."""
    rows = []
    for name, score in scored():
        seconds(score, "warm up")
        for piece in PIECES:
            large = seconds(score, (piece * LARGE)[:LARGE])
            if large > _QUICK_S:
                small = seconds(score, (piece * SMALL)[:SMALL])
                rows.append((name, repr(piece), small, large, large / small))
    rows.sort(key=lambda row: -row[-1])
    print(tabulate(rows, ("scored by", "repeated", "25 kB", "100 kB", "ratio"), floatfmt=".3f"))


if __name__ == "__main__":
    main()
