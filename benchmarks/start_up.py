"""Start-up and cost per case of whole pytest runs against pytest alone, in turn; processor time and wall time.

Bare is pytest with pytest-xdist and syrupy, which the distribution needs. Bytecode is kept, as in an installed package.
The row ``peer`` needs pytest-evals, best in an environment of its own, without this package.
Run: ``python benchmarks/start_up.py [ROUNDS] [ROW ...]``; without rows, all of them.
"""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sides import pytest_command, ratio_line, run_s

BARE = """\
import pytest

@pytest.mark.parametrize("number", range({}))
def test_nothing(number):
    pass
"""
EVALS = """\
import pytest

@pytest.mark.eval(name="exact")
@pytest.mark.parametrize("number", range({}))
def test_case(number, eval_bag):
    eval_bag.expected, eval_bag.prediction = "yes", "yes"
    assert eval_bag.expected == eval_bag.prediction

@pytest.mark.eval_analysis(name="exact")
def test_analysis(eval_results):
    assert sum(each.result["expected"] == each.result["prediction"] for each in eval_results) > 0
"""
SUITE = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "gates": ["exact_match >= 0.5"]}


@dataclass(frozen=True)
class Row:
    """A comparison.

    Attributes:
        what: Is compared.
        cases: How many.
        write: Writes the project of our side.
        goal: Of the ratio.
        options: Of our side.
        against: Options of the other side, with the same project; ``None``: bare pytest.
        plugins: Of our side, instead of this one.
    """

    what: str
    cases: int
    write: Callable[[Path, int], None]
    goal: float
    options: tuple[str, ...] = ("--llmeval",)
    against: tuple[str, ...] | None = None
    plugins: tuple[str, ...] = ()


def rows_of(cases: int) -> list[dict[str, str]]:
    """Return cases with their predictions."""
    return [{"id": f"case-{number}", "input": "?", "expected": "yes", "prediction": "yes"} for number in range(cases)]


def bare(folder: Path, cases: int) -> None:
    """Write a Python test."""
    (folder / "test_bare.py").write_text(BARE.format(cases))


def inline(folder: Path, cases: int) -> None:
    """Write a YAML file with all cases."""
    settings = [f"{key}: {json.dumps(value)}\n" for key, value in SUITE.items()]
    listed = [f"  - {json.dumps(row)}\n" for row in rows_of(cases)]
    (folder / "cases.eval.yaml").write_text("".join([*settings, "cases:\n", *listed]))


def jsonl(folder: Path, cases: int) -> None:
    """Write a suite file and its cases as JSON lines."""
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(cases)))
    source = {"format": "jsonl", "path": "cases.jsonl"}
    (folder / "cases.eval.json").write_text(json.dumps({**SUITE, "source": source}))


def evals(folder: Path, cases: int) -> None:
    """Write a test for pytest-evals."""
    (folder / "test_evals.py").write_text(EVALS.format(cases))


ROWS = {
    "off": Row("plugin installed, not used", 1, bare, 1.04, options=()),
    "one": Row("--llmeval, one case", 1, jsonl, 1.6),
    "items": Row("items, 2,000", 2_000, jsonl, 1.1),
    "inline": Row("inline cases in YAML, 5,000", 5_000, inline, 1.25),
    "jsonl": Row("JSONL items, 10,000", 10_000, jsonl, 1.15),
    "peer": Row(
        "pytest-evals, 2,000",
        2_000,
        evals,
        1.0,
        ("--run-eval",),
        plugins=("pytest_harvest.plugin", "pytest_evals.plugin"),
    ),
    "workers": Row("-n 2 against one process, 2,000", 2_000, jsonl, 1.1, ("--llmeval", "-n2"), ("--llmeval",)),
}


def measured(row: Row, folder: Path, rounds: int) -> list[str]:
    """Return the lines of a comparison."""
    for side, write in (("ours", row.write), ("other", bare if row.against is None else row.write)):
        (folder / side).mkdir()
        (folder / side / "pytest.ini").write_text("[pytest]\n")
        write(folder / side, row.cases)
    ours = pytest_command(folder / "ours", *row.options, ours=not row.plugins, plugins=row.plugins)
    other = pytest_command(folder / "other", *(row.against or ()), ours=row.against is not None)
    for command in (ours, other):
        run_s(command)  # writes bytecode
    taken = [(run_s(ours), run_s(other)) for _ in range(rounds)]
    return [
        ratio_line(f"{row.what} ({kind}; goal {row.goal})", [(one[place], two[place]) for one, two in taken])
        for place, kind in enumerate(("processor", "wall"))
    ]


def main(rounds: int = 5, *names: str) -> None:
    chosen = {name: ROWS[name] for name in names or ROWS}
    if not names and importlib.util.find_spec("pytest_evals") is None:
        del chosen["peer"]
    print(f"{rounds} rounds after one to warm up: seconds, ratio to the other side (smallest to largest)")
    for row in chosen.values():
        with tempfile.TemporaryDirectory() as folder:
            print(*measured(row, Path(folder), rounds), sep="\n", flush=True)


if __name__ == "__main__":
    main(*(int(each) if each.isdigit() else each for each in sys.argv[1:]))  # type: ignore[arg-type]  # rounds first
