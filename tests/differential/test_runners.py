"""Results that other runners write, judged by ``llmeval gate``: each tool runs itself, where it is installed.

The environment variable `TOOLS` names a folder with a virtual environment of each tool in Python, by its name, and with
what ``npm install --prefix promptfoo promptfoo@latest node@22`` makes.
"""

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.exchange._readers import read_results

WRITE = Path(__file__).parents[1] / "exchange" / "written" / "write.py"
"""The script that has tools write their files."""

DEEPEVAL = """\
from pathlib import Path
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

answers = [(f"{n}", f"{n * 2 + n // 3}", f"{n * 2}") for n in range(4)]
cases = [LLMTestCase(name=f"n{n}", input=n, actual_output=given, expected_output=right) for n, given, right in answers]
result = evaluate(
    cases, [ExactMatchMetric()],
    async_config=AsyncConfig(run_async=False), display_config=DisplayConfig(show_indicator=False, print_results=False))
Path("results.json").write_text(result.model_dump_json())
"""
INSPECT = """\
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes

outputs = [ModelOutput.from_content("mockllm/model", each) for each in "0247"]
for each in outputs:
    each.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # otherwise it downloads a tokenizer
model = get_model("mockllm/model", custom_outputs=outputs)
samples = [Sample(id=f"double-{n}", input=f"{n}", target=f"{n * 2}") for n in range(4)]
task = Task(dataset=samples, scorer=includes())
eval(task, model=model, log_dir="logs", log_format="json", max_samples=1, display="none")
"""
PROMPTFOO = {
    "description": "doubles",
    "prompts": ["{{answer}}"],
    "providers": ["echo"],
    "tests": [
        {
            "description": f"double-{n}",
            "vars": {"answer": f"{n * 2 + n // 3}"},
            "assert": [{"type": "equals", "value": f"{n * 2}", "metric": "right"}],
        }
        for n in range(4)
    ],
}
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))},
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}


def tool(name: str, place: str) -> str:
    found = Path(os.environ.get("TOOLS", "."), name, place).absolute()
    if "TOOLS" not in os.environ or not found.exists():
        pytest.skip(f"set TOOLS to a folder with {name}/{place}")
    return str(found)


def run(*command: str) -> None:
    environment = {
        **ENVIRONMENT,
        "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}",
    }  # its own Node.js
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 100), done.stdout + done.stderr  # promptfoo: a case failed


def by_deepeval() -> str:
    run(tool("deepeval", "bin/python"), "-c", DEEPEVAL)
    return "results.json"


def by_inspect() -> str:
    run(tool("inspect-ai", "bin/python"), "-c", INSPECT)
    return str(next(Path("logs").glob("*.json")))


def by_promptfoo() -> str:
    Path("promptfooconfig.json").write_text(json.dumps(PROMPTFOO), encoding="utf-8")
    command = tool("promptfoo", "node_modules/.bin/promptfoo")
    run(command, "eval", "-c", "promptfooconfig.json", "-o", "results.json", "--no-cache")
    return "results.json"


@pytest.mark.parametrize(
    ("runner", "metric"), [(by_deepeval, "Exact Match"), (by_inspect, "includes"), (by_promptfoo, "right")]
)
def test_the_file_that_a_runner_writes_is_judged(
    runner: object, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert callable(runner)
    results = runner()

    def gate(*gates: str) -> Sequence[object]:
        code = main(["gate", results, "--gates", *gates])
        return code, capsys.readouterr().out

    code, said = gate(f"{metric} >= 0.7")
    assert code == 0, said
    assert f"{metric} is 0.7500" in str(said)
    assert gate(f"{metric} >= 0.8")[0] == 1


@pytest.mark.parametrize(
    ("name", "pattern", "means"),
    [
        ("braintrust", "*.json", {"accuracy": 2 / 3, "broken": 0.5}),
        ("deepeval", "deepeval.json", {"Exact": 0.75, "Broken": 0.5}),
        ("harbor", "*.json", {"reward": 2 / 3}),
        ("inspect-ai", "*.eval", {"includes": 2 / 3, "half": 0.5}),
        ("langsmith", "*.json", {"accuracy": 2 / 3, "broken": 0.5}),
        ("langsmith", "*.csv", {"accuracy": 2 / 3, "broken": 0.5}),
        ("ragas", "*.csv", {"exact_match": 0.75, "broken": 0.5}),
    ],
)
def test_what_raises_errors_in_a_runner_is_no_score(
    name: str, pattern: str, means: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tool(name, "bin/python"), str(WRITE), name.removesuffix("-ai"), ".")
    scores = defaultdict(list)
    for row in read_results(next(tmp_path.glob(pattern)), name):
        if row.score is not None:
            scores[row.metric].append(row.score)
    assert {metric: sum(each) / len(each) for metric, each in scores.items()} == pytest.approx(means)
