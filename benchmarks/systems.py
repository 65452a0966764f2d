"""Systems side by side: processor time that the paired comparison of 10 systems, 8 metrics and 2,000 cases takes."""

import random
import time

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.scoring.comparison.systems import compare_systems

SYSTEMS, CASES = 10, 2_000
METRICS = ["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4"]


def main() -> None:
    """Print seconds."""
    draw = random.Random(0)
    evaluator = get_evaluator("text", metrics=METRICS)
    results = {}
    for system in range(SYSTEMS):
        share = 0.5 + system / 40
        answers = [
            Case(str(each), expected="the red gate", prediction="the red gate" if draw.random() < share else "a gate")
            for each in range(CASES)
        ]
        results[f"system {system}"] = score(evaluator, answers, confidence=None)
    started = time.process_time()
    compare_systems(results, "system 0", MetricIndex.of({evaluator.name: evaluator}))
    print(f"{SYSTEMS} systems x {len(METRICS)} metrics x {CASES} cases: {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
