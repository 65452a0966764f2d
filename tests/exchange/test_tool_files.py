"""Files that tools wrote, of which `written/write.py` says how, against the numbers that the tools printed."""

import random
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_llmeval.core import SuiteError
from pytest_llmeval.exchange._readers import read_results

FOLDER = Path(__file__).parent / "written"

PRINTED = {
    "braintrust-0.48.1.json": ("accuracy 66.67% of 3, broken 50.00% of 2", 2, 3, 1),
    "ctrf-jest-ctrf-json-reporter-0.0.11.json": ("passed 50.00% of 2", 1, 2, 1),
    "ctrf-pytest-json-ctrf-0.6.1-reruns.json": ("passed 25.00% of 4", 0, 0, 2),
    "ctrf-pytest-json-ctrf-0.6.1.json": ("passed 66.67% of 3", 1, 2, 1),
    "deepeval-4.3.1-test_run.json": ("Exact 75.00% of 4, Broken 50.00% of 3", 1, 0, 1),
    "deepeval-4.3.1.json": ("Exact 75.00% of 4, Broken 50.00% of 3", 1, 0, 1),
    "every-eval-ever-0.3.0.jsonl": ("includes:accuracy 66.67% of 3, half:mean 50.00% of 3", 0, 0, 1),
    "harbor-0.26.0.json": ("reward 66.67% of 3", 1, 0, 2),
    "inspect_ai-0.3.285.eval": ("includes 66.67% of 3, half 50.00% of 3", 0, 0, 1),
    "langsmith-0.15.1.csv": ("accuracy 66.67% of 3, broken 50.00% of 2", 2, 0, 1),
    "langsmith-0.15.1.json": ("accuracy 66.67% of 3, broken 50.00% of 2", 2, 0, 1),
    "promptfoo-0.121.20.json": ("price 100.00% of 2, score 75.00% of 2, success 50.00% of 2", 3, 0, 1),
    "ragas-0.4.3.csv": ("exact_match 75.00% of 4, broken 50.00% of 3", 1, 0, 1),
}
"""File to the means that its tool printed, and how many errors, abstentions with skipped cases, and repeats of a case
there are.

Most ran a check that fails, and one that raises an error. Printed otherwise: promptfoo and pytest-json-ctrf count the
latter as failed, and jest counts a test as passed that passed when it ran again.
"""


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".py"))
def test_a_file_says_what_its_tool_printed(name: str) -> None:
    rows = read_results(FOLDER / name, name)
    scores = defaultdict(list)
    for row in rows:
        if row.score is not None:
            scores[row.metric].append(row.score)
    means = ", ".join(f"{metric} {100 * sum(each) / len(each):.2f}% of {len(each)}" for metric, each in scores.items())
    errors = sum(bool(row.error) for row in rows)
    left_out = sum(bool(row.abstained or row.skipped) for row in rows)
    assert (means, errors, left_out, max(row.repeat for row in rows)) == PRINTED[name]


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_a_damaged_file_has_faults_or_other_results_and_never_an_error_of_our_own(name: str, tmp_path: Path) -> None:
    rng, content = random.Random(name), (FOLDER / name).read_bytes()
    for _ in range(30):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        end = rng.choice([len(damaged), rng.randrange(len(damaged))])
        (tmp_path / name).write_bytes(bytes(damaged[:end]))
        with suppress(SuiteError):
            read_results(tmp_path / name, name)
