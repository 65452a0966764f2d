"""Speed of the evaluator `text` against rouge-score and NLTK called once per pair; the results are the same to the bit.

Run as ``python benchmarks/text_metrics.py``. Processor time of one core; caches start empty in each scenario.
"""

__all__ = ("main",)

import random
import time
from collections.abc import Callable, Sequence

from nltk import word_tokenize
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from pytest_llmeval.core import Case
from pytest_llmeval.evaluators._text import TextEvaluator
from pytest_llmeval.evaluators.measures import _tokens as tokens

Pair = tuple[str, str]
Scores = dict[str, float]

SHORT, LONG = 2000, 200
"""Number of pairs of a few words, and of 400 words."""
ROUGE = ("rouge1", "rouge2", "rougeL")
BLEU = {"bleu1": (1, 0, 0, 0), "bleu2": (0.5, 0.5, 0, 0), "bleu4": (0.25, 0.25, 0.25, 0.25)}
COMMON = "the a to and of in is was it that for on with she he they her by from as before about".split()  # noqa: SIM905  # short
ENDINGS = ("", "", "s", "ed", "ing", "er", "ation", "ly", "ness", "able", "'s")
MARKS = (",", ",", ".", ";", "!", "?", " -", "...", ")")


def vocabulary(rng: random.Random, size: int) -> list[str]:
    """Return made-up words with English endings, so that the stemmer has work to do."""
    stems = [
        "".join(rng.choice("bcdfghlmnprstvw") + rng.choice("aeiou") for _ in range(rng.randint(1, 3))) + "nt"
        for _ in range(size // 4)
    ]
    return [rng.choice(stems) + rng.choice(ENDINGS) for _ in range(size)]


def sentence(rng: random.Random, words: Sequence[str], length: int) -> list[str]:
    """Return a text of some words, a third of them function words, rare ones rare, one in ten with a mark."""
    out = []
    for _ in range(length):
        word = rng.choice(COMMON) if rng.random() < 0.35 else words[int(len(words) * rng.random() ** 3)]
        if rng.random() < 0.1:
            word = f'"{word}"' if rng.random() < 0.2 else word + rng.choice(MARKS)
        out.append(word)
    out[0] = out[0].capitalize()
    return out


def pairs(rng: random.Random, count: int, shortest: int, longest: int, known: int = 4_000) -> list[Pair]:
    """Return predictions and references that share about half of their words, from a vocabulary of `known` words."""
    words = vocabulary(rng, known)
    out = []
    for _ in range(count):
        reference = sentence(rng, words, rng.randint(shortest, longest))
        kept = [word for word in reference if rng.random() < 0.6]
        prediction = sentence(rng, words, max(1, len(reference) // 2)) + kept
        out.append((" ".join(prediction) + ".", " ".join(reference) + rng.choice(("", "."))))
    return out


def reference_rouge(pair: Pair) -> Scores:
    prediction, reference = pair
    scores = RougeScorer(list(ROUGE), use_stemmer=True).score(reference, prediction)
    return {name: score.fmeasure for name, score in scores.items()}


def reference_all(pair: Pair) -> Scores:
    prediction, reference = pair
    scores = reference_rouge(pair)
    for name, weights in BLEU.items():
        scores[name] = sentence_bleu(
            [word_tokenize(reference.lower(), preserve_line=True)],
            word_tokenize(prediction.lower(), preserve_line=True),
            weights=weights,
            smoothing_function=SmoothingFunction().method1,
        )
    return scores


def ours(evaluator: TextEvaluator) -> Callable[[Pair], Scores]:
    return lambda pair: dict(evaluator.measure(Case(id="", expected=pair[1], prediction=pair[0])).counts)


def timed(function: Callable[[Pair], Scores], work: Sequence[Pair], rounds: int) -> tuple[float, list[Scores]]:
    """Return the fastest of some rounds, each from empty caches, and the results."""
    seconds = []
    for _ in range(rounds):
        forget()
        start = time.process_time()
        results = [function(pair) for pair in work]
        seconds.append(time.process_time() - start)
    return min(seconds), results


def forget() -> None:
    """Empty the caches."""
    tokens.porter_stem.cache_clear()
    tokens.rouge_table.cache_clear()
    tokens.separate_east_asian.cache_clear()
    for function in (tokens._tokenize_first, tokens._tokenize_inner, tokens._tokenize_last, tokens._tokenize_only):  # noqa: SLF001  # caches
        function.cache_clear()


def main() -> None:
    """Print one line per scenario: both times and their ratio."""
    rng = random.Random(20240611)
    short, long = pairs(rng, SHORT, 1, 12), pairs(rng, LONG, 400, 400)
    unseen, long_unseen = pairs(rng, SHORT, 1, 12, 200_000), pairs(rng, LONG // 2, 400, 400, 1_000_000)
    everything, rouge = TextEvaluator(), TextEvaluator(metrics=ROUGE)
    scenarios = (
        (f"8 metrics, {SHORT} short pairs", short, reference_all, ours(everything), 3),
        (f"8 metrics, {LONG} pairs of 400 words", long, reference_all, ours(everything), 1),
        (f"ROUGE, {LONG} pairs of 400 words", long, reference_rouge, ours(rouge), 1),
        ("8 metrics, short, unseen words", unseen, reference_all, ours(everything), 3),
        ("8 metrics, 400 unseen words", long_unseen, reference_all, ours(everything), 1),
    )
    for warm_up in (reference_all, ours(everything)):
        warm_up(short[0])
    print(f"{'scenario':<34}{'reference s':>13}{'here s':>10}{'ratio':>8}")
    for name, work, reference, function, rounds in scenarios:
        here_seconds, here = timed(function, work, rounds)
        reference_seconds, expected = timed(reference, work, rounds)
        for got, wanted in zip(here, expected, strict=True):
            assert {key: got[key] for key in wanted} == wanted
        print(f"{name:<34}{reference_seconds:>13.3f}{here_seconds:>10.3f}{reference_seconds / here_seconds:>7.0f}x")


if __name__ == "__main__":
    main()
