"""Results of other runners: what each table reads, and what it refuses."""

import asyncio
import copy
import json
import random
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from project import script
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter
from running import ENVIRONMENT, WITHOUT_UNUSED, run_python

from pytest_llmeval.core import LlmevalError, SuiteError
from pytest_llmeval.exchange._readers import _TableReader, read_results, results_of
from pytest_llmeval.exchange._result_formats import FORMATS, ResultFormat, Scores
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.suites import Registry

NAN = float("nan")

FOLDER = Path(__file__).parent / "results"


def content(path: Path) -> Any:
    """Return the data of a JSON file, or the text of another one."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if path.suffix == ".json" else text


FILES = {form: (path.name, content(path)) for form in FORMATS for path in (FOLDER / form).iterdir()}
"""Format to name and content of a small file."""

READ = {
    "promptfoo": [
        'shop | {"n": 0} | 1 | a | price | 1.0',
        'shop | {"n": 0} | 1 | a | score | 1',
        'shop | {"n": 0} | 1 | a | success | 1',
        'shop | {"n": 0} | 2 | a | price | 0.0',
        'shop | {"n": 0} | 2 | a | score | 0',
        'shop | {"n": 0} | 2 | a | success | 0',
        'shop | {"n": 1} | 1 | a |  | error: 429',
        'shop | {"n": 1} | 1 | b | price | 1.0',
        'shop | {"n": 1} | 1 | b | score | 1',
        'shop | {"n": 1} | 1 | b | success | 1',
        'shop | {"n": 2} | 1 | b | price | 1.0',
        'shop | {"n": 2} | 1 | b | score | error: 503',
        'shop | {"n": 2} | 1 | b | success | error: 503',
        'shop | {"n": 2} | 1 | b | rubric | error: 503',
    ],
    "pydantic-evals": [
        "shop | order-1 | 1 |  | Short | 0.25",
        "shop | order-1 | 1 |  | Contains | 1",
        "shop | order-1 | 1 |  | Judge | error: APIError: 503",
        "shop | order-1 | 2 |  | Short | 0.25",
        "shop | order-1 | 2 |  | Contains | 0",
        "shop | order-1 | 2 |  | Judge | error: APIError: 503",
        'shop | {"n": "Case 2"} | 1 |  | Short | 0.25',
        'shop | {"n": "Case 2"} | 1 |  | Contains | 1',
        'shop | {"n": "Case 2"} | 1 |  | Judge | error: APIError: 503',
        'shop | {"n": "Case 2"} | 2 |  | Short | 0.25',
        'shop | {"n": "Case 2"} | 2 |  | Contains | 0',
        'shop | {"n": "Case 2"} | 2 |  | Judge | error: APIError: 503',
        "shop | order-3 | 1 |  |  | error: RuntimeError: 429",
    ],
    "deepeval": [
        "results | order-1 | 1 |  | Exact | 1.0",
        "results | order-1 | 1 |  | Faith | error: 429 Too Many Requests",
        "results | What does order 1 cost? | 1 |  | Exact | 1.0",
        "results | What does order 1 cost? | 1 |  | Faith | error: 429 Too Many Requests",
    ],
    "inspect-ai": [
        "shop | order-1 | 1 | openai/gpt | includes | 1.0",
        "shop | order-1 | 1 | openai/gpt | multi.a | 20",
        "shop | order-1 | 1 | openai/gpt | multi.b | 1",
        "shop | order-1 | 2 | openai/gpt | includes | 0.0",
        "shop | order-1 | 2 | openai/gpt | multi.0 | 3",
        "shop | order-1 | 2 | openai/gpt | multi.1 | 1.0",
        "shop | What does it cost? | 1 | openai/gpt | includes | abstained: no ground truth",
        "shop | order-3 | 1 | openai/gpt |  | error: RuntimeError('429')",
        "shop | order-4 | 1 | openai/gpt |  | error: the result has no score",
    ],
    "openai-evals": [
        'eval_1 | {"question": "What does order 1 cost?"} | 1 | gpt-5.2 | Price | 1.0',
        'eval_1 | {"question": "What does order 2 cost?"} | 1 | gpt-5.2 | Price | 0.5',
        'eval_1 | {"question": "What does order 3 cost?"} | 1 | gpt-5.2 |  | error: 429',
    ],
    "braintrust": [
        'results | {"n": 1} | 1 |  | acc | 1',
        'results | {"n": 1} | 1 |  | half | abstained: the score is null',
        'results | {"n": 1} | 2 |  | half | 0.5',
        'results | {"n": 1} | 2 |  | acc | error: RuntimeError: 503',
        'results | {"n": 2} | 1 |  |  | error: ValueError: 429',
    ],
    "langsmith": [
        "results | example-1 | 1 |  | accuracy | 1",
        "results | example-2 | 1 |  | accuracy | error: 503",
        "results | example-3 | 1 |  |  | error: ValueError: 429",
    ],
    "ragas": [
        "results | order 1? | 1 |  | exact_match | 1.0",
        "results | order 1? | 1 |  | faithfulness | 0.5",
        "results | order 2? | 1 |  | exact_match | 0.0",
        "results | order 2? | 1 |  | faithfulness | error: the score is null",
    ],
    "claude-plugin-eval": [
        "greeter | greets | 1 | with | score | 1",
        "greeter | greets | 1 | with | passed | 1",
        "greeter | greets | 1 | with | warm | 1",
        "greeter | greets | 2 | with |  | error: timed out after 120s",
        "greeter | greets | 3 | with |  | error: rate limited by the API (429)",
        "greeter | greets | 1 | without | score | 0.5",
        "greeter | greets | 1 | without | passed | 0",
        "greeter | greets | 1 | without | warm | 0",
        "greeter | greets | 2 | without |  | error: matched",
    ],
    "skill-creator": [
        "pdf | 1 | 1 | with_skill | expectation_pass_rate | 0.75",
        "pdf | 1 | 2 | with_skill |  | error: the run was not graded: it has no expectation",
        "pdf | 1 | 1 | without_skill | expectation_pass_rate | 0.5",
    ],
    "scores": [
        "results | order-1 | 1 |  | price | 1",
        "results | order-1 | 1 |  | polite | 1",
        "results | order-2 | 1 |  | price | 0.5",
        "results | order-2 | 1 |  | polite | error: the score is null",
        "results | order-3 | 1 |  |  | error: 429",
    ],
    "vally": [
        "results | launch | 1 | skill | score | 1",
        "results | launch | 1 | skill | passed | 1",
        "results | launch | 1 | skill | file | 0.5",
        "results | launch | 2 | skill |  | error: status error",
        "results | launch | 1 | none | score | 1",
        "results | launch | 1 | none | passed | 1",
        "results | launch | 1 | none | file | 0.5",
    ],
    "harbor": [
        "terminal-bench | fix-git | 1 | terminus | reward | 1.0",
        "terminal-bench | fix-git | 2 | terminus | reward | 0.0",
        "terminal-bench | fix-git | 3 | terminus |  | error: ApiRateLimitError: late",
    ],
    "junit": [
        "pytest | a.B.x | 1 |  | passed | error: it ran again, and the file does not say how this run ended",
        "pytest | a.B.x | 2 |  | passed | 0.0",
        "pytest | a.y | 1 |  | passed | error: fixture",
        "pytest | a.z | 1 |  | passed | skipped: later",
        "pytest | a.w | 1 |  | passed | 0.0",
        "pytest | a.w | 2 |  | passed | 1.0",
    ],
    "ctrf": [
        "jest | cart > a | 1 |  | passed | 0.0",
        "jest | cart > a | 2 |  | passed | 1.0",
        "jest | cart > b | 1 |  | passed | 0.0",
        "jest | cart > c | 1 |  | passed | skipped: skipped",
        "jest | cart > d | 1 |  | passed | error: other",
    ],
    "every-eval-ever": [
        "gsm8k | gsm8k_0 | 1 | org/m | score | 0.0",
        "gsm8k | gsm8k_1 | 1 | org/m | score | 1.0",
    ],
}
"""Suite, case, repeat, system, metric and outcome of each row of the files above."""


def written(folder: Path, name: str, data: Any) -> Path:
    """Write a file in the form that its name says."""
    path = folder / name
    text = data if isinstance(data, str) else json.dumps(data)
    if name.endswith(".jsonl") and isinstance(data, list):
        text = "".join(f"{json.dumps(each)}\n" for each in data)
    path.write_text(text, encoding="utf-8")
    return path


def brief(rows: list[ResultRow]) -> list[tuple[Any, ...]]:
    """Return what rows say, without what comes with it."""
    listed = []
    for row in rows:
        why = next((name for name in ("error", "abstained", "skipped") if getattr(row, name)), "")
        outcome = f"{why}: {getattr(row, why)}" if why else row.score
        listed.append((row.suite, row.case, row.repeat, row.system, row.metric, outcome))
    return listed


JUNK = (None, "PASS", "", [], {}, NAN, float("inf"), 10**400, ["x"], {"a": "x"}, "\x00")
"""What no score is."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return data with another value at a path."""
    data = target = copy.deepcopy(data)
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return data


def scores_of(rows: Iterable[Any]) -> Counter[Any]:
    """Return the scores of rows."""
    return Counter(row.score for row in rows if isinstance(row, ResultRow) and row.score is not None)


def outcome(folder: Path, name: str, data: Any) -> list[Any]:
    """Return the rows of a file, or its faults as texts."""
    try:
        return list(read_results(written(folder, name, data), name))
    except SuiteError as error:
        return [str(each) for each in error.faults]


OTHER = {True: False, False: True, "passed": "failed", "failed": "passed", "C": "P", "I": "P"}


@cache
def score_places(form: str) -> list[tuple[Any, ...]]:
    """Return the paths in the file of a format whose value is a score."""
    data = FILES[form][1]
    before = scores_of(results_of(data))
    found = []
    for path in places(data):
        value = data
        for step in path:
            value = value[step]
        if isinstance(value, int | float) or value in ("passed", "failed", "C", "I"):
            other = OTHER[value] if isinstance(value, bool | str) else 0.123
            try:
                after = scores_of(results_of(changed(data, path, other)))
            except SuiteError:
                continue
            if after.total() == before.total() and after != before:
                found.append(path)
    return found


def check_spoiled(folder: Path, seed: int, times: int) -> Counter[str]:
    """Spoil files; no score may come of it, and each fault must say what it found, where."""
    rng, counts = random.Random(seed), Counter[str]()
    for _ in range(times):
        form, (name, data) = rng.choice(list(FILES.items()))
        if isinstance(data, str):
            at = rng.randrange(len(data))
            bad = data[:at] + rng.choice(["", "\0", "<", '"', ",", "x"]) + data[at + rng.choice([0, 1, len(data)]) :]
            kind = "text"
        else:
            path = rng.choice(score_places(form) if rng.random() < 0.5 else list(places(data)))
            bad, kind = (
                changed(data, path, rng.choice(JUNK)),
                "score" if path in score_places(form) else "other",
            )
        found = outcome(folder, name, bad)
        faults = [each for each in found if isinstance(each, str)]
        assert found, (form, bad)
        assert all(
            each.startswith(name) and re.search("found|is missing|cannot be read|has no result|  [.]{3} and ", each)
            for each in faults
        ), (
            form,
            faults,
        )
        assert kind != "score" or faults or scores_of(found) < scores_of(results_of(data)), (form, bad)
        assert all(0 <= each <= 20 for each in scores_of(found)), (form, bad)
        counts[f"{kind} {'faults' if faults else 'rows'}"] += 1
    return counts


@pytest.mark.parametrize("form", FORMATS)
def test_each_table_reads_a_file_of_its_format(form: str, tmp_path: Path) -> None:
    name, data = FILES[form]
    rows = read_results(written(tmp_path, name, data), name)
    assert [" | ".join(map(str, each)) for each in brief(rows)] == READ[form]
    assert read_results(written(tmp_path, name, data), name, form) == rows
    if not isinstance(data, str):
        assert results_of(data) == rows


def test_spoiled_files_give_faults_or_errors_and_never_a_score(tmp_path: Path) -> None:
    counts = check_spoiled(tmp_path, 1, 300)
    assert min(counts[f"{kind} faults"] for kind in ("score", "other", "text")) > 0, counts


def test_the_page_of_formats_is_made_of_the_tables() -> None:
    page = script("results_page")
    assert page.PUBLISHED.read_text(encoding="utf-8") == page.text(), "run python .ci/results_page.py"


def promptfoo_with(**fields: Any) -> Any:
    """Return a file of promptfoo whose first result has other fields."""
    data = copy.deepcopy(FILES["promptfoo"][1])
    data["results"]["results"][0].update(fields)
    return data


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.json", promptfoo_with(score="PASS"), "results.results[0].score: found the text 'PASS', expected a number"),
        ("a.json", promptfoo_with(score=True), "results.results[0].score: found true, expected a number"),
        ("a.json", promptfoo_with(success=1), "success: found the number 1, expected true or false"),
        (
            "a.json",
            promptfoo_with(vars={}, prompt={}),
            "results.results[0]: the id of the case is missing: the format has it at testCase.descr",
        ),
        (
            "a.json",
            promptfoo_with(cost=-1),
            "results.results[0].cost: found the number -1, expected a number of at leas",
        ),
        ("a.json", promptfoo_with(provider=["a"]), "provider: found a list of 1, expected the name of a system"),
        ("a.json", changed(FILES["claude-plugin-eval"][1], ("schemaVersion",), 2), "found the number 2, expected 1"),
        (
            "a.json",
            changed(FILES["skill-creator"][1], ("runs", 1, "run_number"), 1),
            "runs[1].run_number: found repeat 1 of case '1' twice",
        ),
        ("a.json", {"stats": {"evals": {}}, "n_total_trials": 3}, "found totals of a job: pass its folder"),
        ("a.json", {"evaluation_results": [], "schema_version": "0.3.0"}, "found averages without cases"),
        ("a.json", {"cases": 1}, "found a mapping with 'cases', expected results of one of promptfoo, pydantic-evals"),
        ("a.json", [{"id": 1}], "found a list of 1 whose first is a mapping with 'id', expected results of one of"),
        ("a.json", [{"id": 1, "marks": {"f1": 0.5}}, {"id": 2}], "'marks' holds scores: rename it to 'scores'"),
        ("a.json", [{"id": 1, "meta": {}}], "whose first is a mapping with 'id', 'meta'"),
        ("a.json", [{"id": 1, "marks": {"f1": "good"}}], "whose first is a mapping with 'id', 'marks'"),
        ("a.xml", "<testsuites><testsuite>", "a.xml:1:24  found invalid XML"),
        ("a.xml", "<html/>", "found the element 'html', expected testsuites or testsuite"),
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><testsuites/>', "found a document type"),
        ("a.eval", "PK no zip", "cannot be read as a log"),
    ],
)
def test_a_fault_has_its_place_and_what_is_expected(name: str, data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as raised:
        read_results(written(tmp_path, name, data), name)
    assert message in str(raised.value)


def test_a_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps(each) for each in changed(FILES["vally"][1], (1, "gradeResult", "score"), "high")]
    path.write_text("\n".join(lines).replace('"status": "error"', '"status": "success"'), encoding="utf-8")
    with pytest.raises(SuiteError, match=r"^a.jsonl:2:1  gradeResult.score: found the text 'high'"):
        read_results(path, "a.jsonl")
    path = written(tmp_path, "a.json", promptfoo_with(score="PASS"))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1), encoding="utf-8")
    with pytest.raises(SuiteError, match=r"^a.json:\d\d:\d+  results.results\[0\].score"):
        read_results(path, "a.json")


def test_names_that_several_contents_share_are_told_apart() -> None:
    data = changed(FILES["deepeval"][1], ("testCases", 1, "name"), "order-1")
    cases = {row.case for row in results_of(data)}
    assert cases == {"order-1 What does order 0 cost?", "order-1 What does order 1 cost?"}
    long = changed(data, ("testCases", 0, "input"), "word\n" * 40)
    assert re.fullmatch(r"order-1 (word ){11}word #[0-9a-f]{8}", results_of(long)[0].case)


def test_scores_of_own_scripts_stand_under_either_of_two_names() -> None:
    rows = [{"id": "a", "scores": {"f1": 0.5}}, {"id": "b", "scores": {"f1": 1, "polite": False}}]
    renamed = [{"metrics" if name == "scores" else name: value for name, value in row.items()} for row in rows]
    assert results_of(renamed) == results_of(rows) != []


def test_forms_of_other_versions_are_read() -> None:
    """The forms of files in public repositories: older versions of a tool, and fields that only some of them have."""
    trial = {"type": "trial-result", "itemId": "tdd::add", "stimulus": "add", "status": "success", "durationMs": 10}
    trials = [
        {**trial, "evalName": suite, "model": model, "gradeResult": {"passed": True, "score": 1.0, "details": []}}
        for suite, model in (("tdd", "small"), ("tdd", "large"), ("review", "small"))
    ]
    assert [(row.suite, row.case, row.system, row.repeat) for row in results_of(trials) if row.metric == "score"] == [
        ("tdd", "add", "small", 1),
        ("tdd", "add", "large", 1),
        ("review", "add", "small", 1),
    ]
    sample = {
        "schema_version": "0.2.1",
        "evaluation_id": "samples",
        "evaluation_name": "qa",
        "model_id": "m",
        "sample_id": "id7",
        "sample_hash": "ab",
        "input": {"raw": "Who?", "formatted": None, "reference": ["She."]},
        "output": {"raw": ["He."]},
        "evaluation": {"score": 0.0, "is_correct": False},
        "error": None,
        "performance": {"latency_ms": None, "generation_time_ms": 831.4},
    }
    (row,) = results_of([sample])
    assert (row.suite, row.case, row.system, row.score, row.latency) == ("qa", "id7", "m", 0.0, None)
    agent = {"name": "nop", "version": "2", "model_info": None}
    late = {"exception_type": "AgentTimeoutError", "exception_message": "20"}
    harbor = {"trial_name": "a__1", "task_name": "bench/a", "source": None, "agent_info": agent, "agent_result": None}
    rewards = {"verifier_result": {"rewards": {"reward": 0.0}}}
    rows = results_of([{**harbor, **rewards, "exception_info": late}, {**harbor, **rewards, "exception_info": None}])
    assert [(row.case, row.score, row.error) for row in rows] == [
        ("bench/a", None, "AgentTimeoutError: 20"),
        ("bench/a", 0.0, ""),
    ]


def test_the_folder_of_a_job_is_read_as_a_whole(tmp_path: Path) -> None:
    for each in FILES["harbor"][1]:
        (tmp_path / each["trial_name"]).mkdir()
        written(tmp_path / each["trial_name"], "result.json", each)
    assert read_results(tmp_path, "job") == results_of(FILES["harbor"][1])
    assert [row.case for row in read_results(tmp_path / "fix-git__1", "trial")] == ["fix-git"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match="a folder without files of results"):
        read_results(tmp_path / "empty", "job")


def test_a_log_in_zstandard_is_read_and_a_damaged_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = FILES["inspect-ai"][1]
    path = zstandard_log(tmp_path / "log.eval", data)
    assert read_results(path, "log.eval") == results_of(data)
    packed = path.read_bytes()
    path.write_bytes(packed.replace(packed[80:90], b"0123456789", 1))
    with pytest.raises(SuiteError, match="cannot be read as a log"):
        read_results(path, "log.eval")
    if sys.version_info < (3, 14):
        path.write_bytes(packed)
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(SuiteError, match=r"pip install 'pytest-llmeval-suite\[inspect\]'"):
            read_results(path, "log.eval")


def zstandard_log(path: Path, data: Any) -> Path:
    """Write a log as inspect_ai does: members of a zip file, compressed with Zstandard."""
    files = {"header.json": {key: value for key, value in data.items() if key != "samples"}}
    files |= {f"samples/{number}_epoch_1.json": each for number, each in enumerate(data["samples"])}
    with zipfile.ZipFile(path, "w") as archive:
        for name, each in files.items():
            archive.writestr(name, zstandard.ZstdCompressor().compress(json.dumps(each).encode()))
    packed = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):  # method; CRC, sizes 6 bytes on, of each kind of header
        at = -1
        for each in files.values():
            at, text = packed.index(mark, at + 1), json.dumps(each).encode()
            packed[at + offset : at + offset + 2] = (93).to_bytes(2, "little")
            packed[at + offset + 6 : at + offset + 10] = zlib.crc32(text).to_bytes(4, "little")
            packed[at + offset + 14 : at + offset + 18] = len(text).to_bytes(4, "little")
    path.write_bytes(packed)
    return path


@dataclass
class Short(Evaluator[int, str, None]):
    def evaluate(self, ctx: EvaluatorContext[int, str, None]) -> float:
        if ctx.inputs == 2:
            raise RuntimeError("503")
        return 1 / len(ctx.output)


def test_a_report_of_pydantic_evals_says_what_the_tool_prints(tmp_path: Path) -> None:
    def answer(number: int) -> str:
        if number == 3:
            raise RuntimeError("429")
        return f"{number} euros" if number != 1 else "unsure"

    cases: list[Case[int, str, None]] = [Case(name=f"order-{number}", inputs=number) for number in range(5)]
    dataset = Dataset[int, str, None](name="shop", cases=cases, evaluators=[Contains("euros"), Short()])
    report = asyncio.run(dataset.evaluate(answer, progress=False, repeat=2))
    rows = results_of(report)
    path = tmp_path / "report.json"
    path.write_bytes(EvaluationReportAdapter.dump_json(report))
    assert read_results(path, "report.json") == rows
    scores = {name: [each.score for each in rows if each.metric == name] for name in ("Contains", "Short", "")}
    averages = report.averages()
    assert averages is not None
    assert sum(map(float, scores["Contains"])) / 8 == averages.assertions
    measured = [each for each in scores["Short"] if each is not None]
    assert sum(measured) / len(measured) == pytest.approx(averages.scores["Short"])
    assert [(each.case, each.repeat, each.metric, each.error) for each in rows if each.error] == [
        ("order-2", 1, "Short", "RuntimeError: 503"),
        ("order-2", 2, "Short", "RuntimeError: 503"),
        ("order-3", 1, "", "RuntimeError: 429"),
        ("order-3", 2, "", "RuntimeError: 429"),
    ]


def test_a_file_of_pytest_says_what_pytest_prints(tmp_path: Path) -> None:
    """A run that pytest-rerunfailures repeats looks in the file as if it had passed."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\nruns = []\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1\n"
        "def test_flaky():\n    runs.append(1)\n    assert len(runs) > 1\n"
        "@pytest.mark.skip(reason='later')\ndef test_skipped(): pass\n"
        "def test_broken(absent): pass\n",
        encoding="utf-8",
    )
    options = [*WITHOUT_UNUSED, "-q", "-pno:llmeval_suite", "-pno:cacheprovider", "--reruns=1", "--junitxml=out.xml"]
    ran = run_python(["-m", "pytest", *options], ENVIRONMENT, tmp_path)
    assert "1 failed, 2 passed, 1 skipped, 1 error, 3 rerun" in ran.out
    rows = read_results(tmp_path / "out.xml", "out.xml")
    assert Counter((row.score, bool(row.error), bool(row.skipped)) for row in rows) == {
        (0.0, False, False): 1,
        (1.0, False, False): 2,
        (None, False, True): 1,
        (None, True, False): 4,  # the error, and what ran again
    }
    assert [(row.repeat, row.score) for row in rows if row.case == "test_it.test_flaky"] == [(1, None), (2, 1.0)]


BARE = [
    {"id": "a", "scores": {"f1": 0.5, "exact match": 1}},
    {"id": "b.0 c", "scores": {"exact match": 0, "f1": -0.0}},
    {"scores": {"f1": 1e-3}, "id": "case 10"},
]
"""Results that have but an id and numbers."""

ODD: dict[str, Any] = {
    "no other": {},
    "an id again": {"id": "a", "scores": {"f1": 1}},
    "an id that ends like a number": {"id": "7.0", "scores": {"f1": 1}},
    "an id with colons": {"id": "a::b", "scores": {"f1": 1}},
    "an id with spaces": {"id": " z", "scores": {"f1": 1}},
    "an id of another script": {"id": "e\u0301", "scores": {"f1": 1}},
    "a number as an id": {"id": 7, "scores": {"f1": 1}},
    "no id": {"scores": {"f1": 1}},
    "true": {"id": "z", "scores": {"f1": True}},
    "no number": {"id": "z", "scores": {"f1": NAN}},
    "a text": {"id": "z", "scores": {"f1": "high"}},
    "a large number": {"id": "z", "scores": {"f1": 10**400}},
    "a metric with a line break": {"id": "z", "scores": {"f\n1": 1}},
    "no scores": {"id": "z", "scores": {}},
    "a list of scores": {"id": "z", "scores": [1]},
    "metrics": {"id": "z", "metrics": {"f1": 1}},
    "both": {"id": "z", "metrics": {"f1": 1}, "scores": {"f1": 1}},
    "an error": {"id": "z", "scores": {"f1": 1}, "error": "429"},
    "a system": {"id": "z", "scores": {"f1": 1}, "model": "gpt"},
    "a question": {"id": "z", "scores": {"f1": 1}, "question": "why?"},
    "a cost": {"id": "z", "scores": {"f1": 1}, "cost": 0.5},
    "a column that nobody reads": {"id": "z", "scores": {"f1": 1}, "note": "x"},
    "no object": [1],
}


@pytest.mark.parametrize("odd", ODD)
def test_bare_results_are_read_as_any(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([*BARE, *([ODD[odd]] if ODD[odd] else [])]))

    def read() -> list[Any]:
        try:
            rows = read_results(file, "rows.json", "scores")
        except SuiteError as error:
            return [str(fault) for fault in error.faults]
        return [*rows, *rows.notes]

    known = read()
    with monkeypatch.context() as patch:
        patch.setattr(_TableReader, "_bare_rows", lambda _: [])
        assert known == read()
    if odd in ("no other", "a column that nobody reads", "metrics"):
        with monkeypatch.context() as patch:
            patch.setattr(_TableReader, "_result", lambda *_: pytest.fail("a bare result was read as any"))
            read()


def broken(_: Any) -> Any:
    """Fail, as a plugin's function with a bug does."""
    raise KeyError("points")


@pytest.mark.parametrize("function", ["prepare", "adapt"])
def test_a_format_whose_function_fails_names_itself_and_the_file(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes, scores = {"tallies": ("tallies.*",)}, (Scores("", "=points", "points"),)
    table = ResultFormat("tally", "tally", shapes, scores, case="name", **{function: broken})
    registry = Registry.shipped()
    registry.register_results_formats({"tally": table})
    monkeypatch.setattr(Registry, "installed", lambda: registry)
    path = tmp_path / "t.json"
    path.write_text('{"tallies": [{"name": "a", "points": 1}]}')
    with pytest.raises(SuiteError) as caught:
        read_results(path, "t.json")
    (fault,) = caught.value.faults
    assert (fault.file, fault.path) == ("t.json", "tallies[0]" if function == "adapt" else "")
    assert fault.message.startswith(f"{function} of the results format 'tally' failed: KeyError: 'points'")


def test_what_is_no_table_of_a_format_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry.shipped()
    registry.register_results_formats({"tally": 3})
    monkeypatch.setattr(Registry, "installed", lambda: registry)
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(LlmevalError, match="found the number 3 as results format 'tally', expected a ResultFormat"):
        read_results(tmp_path / "t.json", "t.json")
    with pytest.raises(LlmevalError, match=r"found \[3\] as results formats, expected a mapping of names"):
        Registry.shipped().register_results_formats([3])  # type: ignore[arg-type]


TALLY = ResultFormat("tally", "tally 1", {"tallies": ("tallies.*",)}, (Scores("", "=points", "points"),), case="name")


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (TALLY._replace(scores=Scores("p.*")), "scores"),
        (TALLY._replace(scores=(Scores("p.*", kind="bool"),)), r"scores\[0\]\.kind: Input should be 'number'"),  # type: ignore[arg-type]
        (TALLY._replace(scores=()), "scores is empty, expected where a result has its scores"),
        (TALLY._replace(shapes={"tallies": "tallies.*"}), "shapes.tallies: "),
        (TALLY._replace(case=("name",)), "case: "),
        (TALLY._replace(case=""), "case and content are empty, expected what identifies a case"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(
    table: ResultFormat, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry.shipped()
    registry.register_results_formats({"tally": table})
    monkeypatch.setattr(Registry, "installed", lambda: registry)
    (tmp_path / "t.json").write_text('{"tallies": [{"name": "a", "points": 1}]}')
    with pytest.raises(LlmevalError, match=f"^results format 'tally': {fault}"):
        read_results(tmp_path / "t.json", "t.json")
