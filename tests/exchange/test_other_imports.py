"""``llmeval import`` of OpenAI, pydantic-evals, deepeval, inspect_ai, ragas, braintrust, LangSmith, and tables."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project import IMPORTERS, run_import, source_paths, write_source
from running import own_loop

from pytest_llmeval.cli import main
from pytest_llmeval.core import SuiteError
from pytest_llmeval.exchange import ImportOptions
from pytest_llmeval.exchange._commands import import_source
from pytest_llmeval.exchange._templates import Direction


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in records)


ITEM = {"item": {"question": "Capital of Peru?", "right": "Lima"}, "sample": {"output_text": "It is Lima."}}


def openai_suite(capsys: pytest.CaptureFixture[str], folder: Path, *graders: Any) -> Any:
    """Return the import of an eval with graders."""
    write_source(folder, "suite.json", {"name": "suite", "testing_criteria": list(graders)})
    write_source(folder, "items.jsonl", lines(ITEM))
    return run_import(capsys, "openai", "suite.json", "items.jsonl")


@pytest.mark.parametrize(
    ("operation", "check"), [("eq", "equals"), ("ne", "not_equals"), ("like", "contains"), ("ilike", "icontains")]
)
def test_string_checks_of_openai_are_checks(
    folder: Path, capsys: pytest.CaptureFixture[str], operation: str, check: str
) -> None:
    grader = {
        "type": "string_check",
        "name": "right",
        "input": "{{ sample.output_text }}",
        "reference": "{{item.right}}",
        "operation": operation,
    }
    (case,) = openai_suite(capsys, folder, grader).suite()["cases"]
    assert case == {
        "id": "1",
        "input": ITEM["item"],
        "prediction": "It is Lima.",
        "checks": [{check: "Lima", "name": "right"}],
    }


def test_similarity_of_openai_is_a_metric_with_a_threshold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grader = {
        "type": "text_similarity",
        "input": "{{ sample.output_text }}",
        "reference": "{{ item.right }}",
        "evaluation_metric": "rouge_l",
        "pass_threshold": 0.5,
    }
    suite = openai_suite(capsys, folder, grader).suite()
    assert suite["evaluators"] == [{"text": {"metrics": ["rougeL"]}}]
    assert suite["cases"][0]["expected"] == "Lima"
    assert suite["cases"][0]["thresholds"] == {"rougeL": 0.5}


def test_bleu_of_openai_has_effective_order_and_what_the_right_answer_does_not_meet_is_in_the_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bleu = {
        "type": "text_similarity",
        "input": "{{ sample.output_text }}",
        "reference": "{{ item.right }}",
        "evaluation_metric": "bleu",
        "pass_threshold": 0.9,
    }
    other = {
        "type": "string_check",
        "input": "{{ sample.output_text }}",
        "reference": "{{item.question}}",
        "operation": "like",
    }
    result = openai_suite(capsys, folder, bleu, other)
    assert result.suite()["evaluators"] == [{"text": {"metrics": ["bleu4"], "effective_order": True}}]
    section = result.report.partition("### Not met by the expected answers themselves")[2].partition("###")[0]
    assert section.count("- ") == 1
    assert "contains" in section


def test_model_graders_of_openai_are_judges_with_their_prompts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = {"role": "user", "content": "Is {{sample.output_text}} polite? {{item.question}}"}
    label = {
        "type": "label_model",
        "model": "gpt-4o",
        "input": [message],
        "labels": ["y", "n"],
        "passing_labels": ["y"],
    }
    score = {"type": "score_model", "model": "gpt-4o", "input": [message], "range": [1, 5], "pass_threshold": 4}
    result = openai_suite(capsys, folder, label, score)
    suite = result.suite()
    first, second = (each["judge"] for each in suite["evaluators"])
    assert first["reply"] == {"reason": "text", "score": {"choices": {"y": 1, "n": 0}}}
    assert second["reply"] == {"reason": "text", "score": {"min": 1, "max": 5}}
    assert suite["thresholds"] == {"judge_score": 1.0, "judge-2.judge_score": 0.75}
    assert suite["judge"] == {"model": "openai:gpt-4o"}
    assert (result.folder / first["prompt"]).read_text() == "Is {{ answer }} polite? {{ input.question }}\n"


@pytest.mark.parametrize(
    ("grader", "why"),
    [
        (
            {"type": "label_model", "model": "m", "input": ["{{sample.output_text}}"], "labels": ["y"]},
            "passing_labels is missing",
        ),
        (
            {"type": "score_model", "model": "m", "input": [{"content": 5}]},
            "input[0].content: found the number 5, expected text, a mapping or a list",
        ),
        (
            {"type": "score_model", "model": "m", "input": ["{{sample.output_text}}"], "range": ["1", 2]},
            "range[0]: found the text '1', expected a number",
        ),
        ({"type": "python", "source": 5}, "source: found the number 5, expected text"),
    ],
)
def test_a_grader_of_openai_that_does_not_fit_is_lost_with_the_place_in_it(
    folder: Path, grader: dict[str, Any], why: str
) -> None:
    path = write_source(folder, "x.json", {"testing_criteria": [grader], "items": [{"question": "?"}]})
    source = import_source("openai-evals", path, "x.json", ImportOptions())
    assert source is not None
    (text,) = [each.text for each in source.constructs if each.path == ("testing_criteria", 0)]
    assert text == why


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        (
            {"Contains": {"value": "a", "case_sensitive": "no"}},
            "case_sensitive: found the text 'no', expected true or false",
        ),
        ({"MaxDuration": {"seconds": True}}, "seconds: found true, expected a number or text"),
        ({"LLMJudge": {"evaluation_name": "n"}}, "rubric is missing"),
    ],
)
def test_an_evaluator_of_pydantic_evals_that_does_not_fit_is_lost_with_the_place_in_it(
    folder: Path, evaluator: dict[str, Any], why: str
) -> None:
    data = {"cases": [{"inputs": "?"}], "evaluators": [evaluator, {"MaxDuration": 2}]}
    source = import_source("pydantic-evals", write_source(folder, "x.yaml", data), "x.yaml", ImportOptions())
    assert source is not None
    assert source.suite is not None
    (text,) = [each.text for each in source.constructs if each.path == ("evaluators", 0)]
    assert text == why
    assert str(source.suite.settings["checks"]) == "[{'latency_s': 2}]"


def test_what_pydantic_evals_writes_of_absent_parts_is_no_construct(folder: Path) -> None:
    case = {"inputs": "?", "expected_output": None, "metadata": None, "evaluators": []}
    data = {"cases": [case], "evaluators": [{"MaxDuration": 2}], "report_evaluators": []}
    source = import_source("pydantic-evals", write_source(folder, "x.yaml", data), "x.yaml", ImportOptions())
    assert source is not None
    assert sorted(each.kind for each in source.constructs) == ["MaxDuration", "inputs"]


def test_tests_of_deepeval_say_what_to_export(folder: Path) -> None:
    path = folder / "test_deepeval.py"
    path.write_text("def app(q): return {'a': 1}.get(q)\n", encoding="utf-8")
    with pytest.raises(SuiteError, match=r"test_deepeval\.py  found a Python file.*dataset\.save_as"):
        import_source("deepeval", path, path.name, ImportOptions())


def test_a_sample_of_a_log_that_does_not_fit_is_lost_with_the_place_in_it(folder: Path) -> None:
    samples = [{"input": "x", "output": {"choices": [{"message": {"content": 5}}]}}, {"input": "y"}, {"id": 1}, "z"]
    log = {"eval": {"task": "t"}, "status": "success", "samples": samples}
    source = import_source("inspect-ai", write_source(folder, "x.json", log), "x.json", ImportOptions())
    assert source is not None
    assert {each.path[1]: each.text for each in source.constructs if each.kind == "sample"} == {
        0: "output.choices[0].message.content: found the number 5, expected text, a list or null",
        2: "input is missing",
        3: "found the text 'z', expected a mapping",
    }
    assert source.suite is not None
    assert [case["input"] for case in source.suite.cases] == ["y"]


def test_code_of_openai_graders_is_a_stub(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = {"type": "python", "source": "def grade(sample, item):\n    open('ran', 'w')"}
    multi = {"type": "multi", "graders": {"a": python}, "calculate_output": "a * 2"}
    result = openai_suite(capsys, folder, multi)
    assert "# def grade(sample, item):" in result.report
    assert "the formula" in result.report
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"x": {"id": "x.v0"}, "x.v0": {"class": "evals.elsuite.basic.match:Match"}}, "['x.v0']"),
        ({"fact": {"prompt": "{input}", "choice_strings": "AB"}}, "fact"),
    ],
)
def test_evals_of_the_registry_are_refused_with_the_way_through_results(
    folder: Path, capsys: pytest.CaptureFixture[str], data: dict[str, Any], key: str
) -> None:
    result = run_import(capsys, "openai-evals", write_source(folder, "x.yaml", data))
    assert result.code == 1
    assert f"{key}: the registry of the package evals is not imported" in result.err
    assert "llmeval gate FILE" in result.err


def test_samples_of_the_registry_are_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = write_source(folder, "s.jsonl", lines({"input": "Peru?", "ideal": "Lima"}))
    result = run_import(capsys, "openai-evals", samples)
    assert result.code == 1
    assert "llmeval import table FILE --input input --expected ideal" in result.err
    assert main(["import", "table", "s.jsonl", "--input", "input", "--expected", "ideal", "--to", "out"]) == 0


def test_datasets_of_pydantic_evals_with_all_forms_of_evaluators(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {
        "name": "capitals",
        "cases": [
            {
                "name": "peru",
                "inputs": "Peru",
                "expected_output": "Lima",
                "metadata": {"kind": "city"},
                "evaluators": [{"Contains": {"value": "lim", "case_sensitive": False}}, {"MaxDuration": 2}],
            },
            {"inputs": {"q": 1}, "evaluators": [{"name": "Equals", "arguments": ["Lima"]}, {"IsInstance": "str"}]},
        ],
        "evaluators": ["EqualsExpected", {"LLMJudge": "is polite"}, {"Mine": {"a": 1}}],
    }
    write_source(folder, "suite.yaml", data)
    result = run_import(capsys, "pydantic-evals", "suite.yaml")
    assert result.suite() == {
        "suite": "suite",
        "description": "capitals",
        "judge": {"model": "openai:gpt-5.2"},
        "checks": [{"judge": "is polite"}],
        "cases": [
            {
                "id": "peru",
                "input": "Peru",
                "expected": "Lima",
                "labels": {"kind": "city"},
                "checks": [{"equals": "Lima"}, {"icontains": "lim"}, {"latency_s": 2}],
            },
            {"id": "2", "input": {"q": 1}, "checks": [{"equals": "Lima"}]},
        ],
    }
    assert "2 not imported" in result.out


FACTS: list[tuple[Any, Any]] = [
    ({"Equals": "Lima"}, "Lima"),
    ({"Equals": "Lima"}, "Lima "),
    ({"Equals": {"value": {"a": [1]}}}, {"a": [1]}),
    ({"Equals": {"value": {"a": [1]}}}, {"a": [2]}),
    ({"Contains": "im"}, "Lima"),
    ({"Contains": "IM"}, "Lima"),
    ({"Contains": {"value": "IM", "case_sensitive": False}}, "Lima"),
    ({"Contains": {"value": {"a": 1}}}, {"a": 1, "b": 2}),
    ({"Contains": {"value": {"a": 1}}}, {"a": 2}),
    ({"Contains": {"value": 3}}, [1, 3]),
    ({"Contains": {"value": 3}}, [1]),
    ("EqualsExpected", "right"),
    ("EqualsExpected", "wrong"),
]
"""Evaluator and output."""


def test_imported_evaluators_give_the_verdicts_of_pydantic_evals(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pydantic_evals = pytest.importorskip("pydantic_evals")
    from pytest_llmeval import Case, get_checks, score

    cases = [
        {"name": str(n), "inputs": n, "expected_output": "right", "evaluators": [each]}
        for n, (each, _) in enumerate(FACTS)
    ]
    path = write_source(folder, "suite.yaml", {"name": "suite", "cases": cases})
    dataset = pydantic_evals.Dataset[int, Any, Any].from_file(path)
    with own_loop():
        report = dataset.evaluate_sync(lambda n: FACTS[n][1], progress=False)
    theirs = {case.name: all(each.value for each in case.assertions.values()) for case in report.cases}
    ours = {}
    for case in run_import(capsys, "pydantic-evals", path).suite()["cases"]:
        scored = score(get_checks(*case["checks"]), [Case(case["id"], prediction=FACTS[int(case["id"])][1])])
        ours[case["id"]] = scored.metrics["check_rate"].value == 1
    assert ours == theirs


TEXTS = ["5", "true", "hello", "Ö", "straße", "l", "", "1e5", "a b", "-", "IM"]
VALUES = [5, 1, 0, True, False, {"a": 1}, {"a": [1]}, {"a": {"b": True}}, [1], ["hello"], [True], {"ö": 1}, 0.5]
ANSWERS: list[Any] = [
    *TEXTS,
    *VALUES,
    *map(json.dumps, VALUES),
    *("O\u0308", "STRASSE", "stra\u017fe", "strasse", " 5", "hello world", "Lima", "null", "[1, 2]"),
    *({"hello": 1}, {"5": 1}, {"a": [1, 2]}, {"a": {"b": True, "c": 1}}, [[1]], [[1, 2]], [5], ["5"], [], {}, None),
]


def compared_values() -> Iterator[Any]:
    for text in filter(None, TEXTS):
        yield {"Equals": {"value": text}}
        yield from ({"Contains": {"value": text, "case_sensitive": each}} for each in (True, False))
        yield {"Contains": {"value": text, "as_strings": True}}
    for value in VALUES:
        yield from ({name: {"value": value}} for name in ("Equals", "Contains"))


def test_every_difference_from_pydantic_evals_is_in_the_report_with_its_direction(folder: Path) -> None:
    common = pytest.importorskip("pydantic_evals.evaluators")
    from pytest_llmeval import Case, get_checks, score

    specs = list(compared_values())
    cases = [{"name": str(n), "inputs": n, "evaluators": [each]} for n, each in enumerate(specs)]
    path = write_source(folder, "suite.yaml", {"name": "suite", "cases": cases})
    source = import_source("pydantic-evals", path, "suite.yaml", ImportOptions())
    assert source is not None
    assert source.suite is not None
    constructs = {each.path[1]: each for each in source.constructs if each.path[2:3] == ("evaluators",)}
    wrong, directions = [], set()
    for number, case in enumerate(source.suite.cases):
        ((name, arguments),) = specs[number].items()
        evaluator = getattr(common, name)(**arguments)
        answers = [Case(str(n), prediction=each) for n, each in enumerate(ANSWERS)]
        scored = score(get_checks(*case["checks"]), answers).cases
        for answer, ours in zip(ANSWERS, scored, strict=True):
            theirs = evaluator.evaluate(SimpleNamespace(output=answer))
            theirs = getattr(theirs, "value", theirs)
            if theirs is not (ours.metrics.get("check_rate") == 1):
                direction = Direction.STRICTER if theirs else Direction.LOOSER
                known = {each.direction for each in constructs[number].differences}
                directions.add(direction)
                if not known & {direction, Direction.EITHER}:
                    wrong.append((specs[number], answer, theirs))
    assert wrong == []
    assert directions == {Direction.STRICTER, Direction.LOOSER}


def test_goldens_of_deepeval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = {
        "input": "Weather?",
        "actual_output": "Rain",
        "expected_output": "Rain",
        "retrieval_context": ["a", "b"],
        "context": ["c"],
        "tools_called": [{"name": "search", "input_parameters": {"q": 1}}],
        "expected_tools": [{"name": "search"}],
        "additional_metadata": {"kind": "w", "deep": {"a": 1}},
    }
    write_source(folder, "suite.json", [golden])
    suite = run_import(capsys, "deepeval", "suite.json").suite()
    assert suite["evaluators"] == [
        {"tools": {"order": "any_order", "arguments": "partial"}},
        {"text": {"metrics": ["exact_match", "f1"]}},
    ]
    assert suite["cases"] == [
        {
            "id": "1",
            "input": "Weather?",
            "expected": {"tool_calls": [{"name": "search"}], "answer": "Rain"},
            "prediction": {
                "answer": "Rain",
                "contexts": ["a", "b"],
                "tool_calls": [{"name": "search", "arguments": {"q": 1}}],
            },
            "labels": {"kind": "w"},
        }
    ]


def test_conversations_of_deepeval_are_scripts_with_a_criterion(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = json.dumps([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]).replace(
        '"', '""'
    )
    write_source(folder, "suite.csv", f'scenario,turns,expected_outcome\ngreeting,"{turns}",A greeting\n')
    (case,) = run_import(capsys, "deepeval", "suite.csv").suite()["cases"]
    assert case == {"id": "1", "messages": ["Hello"], "checks": [{"judge": "A greeting"}]}


LOG = {
    "version": 2,
    "status": "success",
    "eval": {"task": "capitals", "scorers": [{"name": "includes"}, {"name": "model_graded_qa"}]},
    "plan": {"name": "plan"},
    "samples": [
        {
            "id": "peru",
            "epoch": 1,
            "input": "Peru?",
            "target": "Lima",
            "output": {"choices": [{"message": {"content": "It is Lima."}}], "usage": {"input_tokens": 3}},
            "scores": {"includes": {"value": "C"}, "model_graded_qa": {"value": "P"}},
            "events": [],
        }
    ],
}


@pytest.mark.parametrize("packed", [False, True])
def test_logs_of_inspect_are_recorded_answers_with_their_scores(
    folder: Path, capsys: pytest.CaptureFixture[str], packed: bool
) -> None:
    path = folder / ("suite.eval" if packed else "suite.json")
    if packed:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps({key: LOG[key] for key in LOG if key != "samples"}))
            archive.writestr("samples/peru_epoch_1.json", json.dumps(LOG["samples"][0]))  # type: ignore[index]  # a list
    else:
        path.write_text(json.dumps(LOG))
    (case,) = run_import(capsys, "inspect", path).suite()["cases"]
    assert case == {
        "id": "peru",
        "input": "Peru?",
        "expected": "Lima",
        "checks": [{"regex": "(?i)(?:Lima)", "name": "includes"}],
        "prediction": {"answer": "It is Lima.", "usage": {"input_tokens": 3}},
        "labels": {"score.includes": 1.0, "score.model_graded_qa": 0.5},
    }


def test_a_header_of_inspect_that_unpacks_to_millions_of_bytes_is_a_fault(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(folder / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": " " * (17 << 20)}))
    assert main(["import", "inspect-ai", str(folder / "bomb.eval")]) != 0
    assert "found a header of more than 16 MiB, expected a log of inspect_ai" in capsys.readouterr().err


def test_datasets_of_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.jsonl", lines({"input": "Peru?", "target": "B", "choices": ["Quito", "Lima"]}))
    (case,) = run_import(capsys, "inspect-ai", "suite.jsonl").suite()["cases"]
    assert case == {"id": "1", "input": {"input": "Peru?", "choices": ["Quito", "Lima"]}, "expected": "B"}


def test_datasets_of_ragas_with_lists_as_python_writes_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "user_input,retrieved_contexts,response,reference\nPeru?,\"['a', 'b']\",Lima,Lima\n"
    write_source(folder, "suite.csv", text)
    (case,) = run_import(capsys, "ragas", "suite.csv").suite()["cases"]
    assert case["prediction"] == {"answer": "Lima", "contexts": ["a", "b"]}
    assert case["expected"] == "Lima"


def test_datasets_of_braintrust(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.json", [{"input": {"q": "Peru?"}, "expected": {"city": "Lima"}, "metadata": {"n": 1}}])
    (case,) = run_import(capsys, "braintrust", "suite.json").suite()["cases"]
    assert case == {
        "id": "1",
        "input": {"q": "Peru?"},
        "checks": [{"json_equals": {"city": "Lima"}}],
        "labels": {"n": 1},
    }


def test_examples_of_langsmith(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = {"id": "e1", "inputs": {"q": "Peru?"}, "outputs": {"text": "Lima"}, "dataset_id": "d", "split": "test"}
    write_source(folder, "suite.jsonl", lines(example))
    result = run_import(capsys, "langsmith", "suite.jsonl")
    (case,) = result.suite()["cases"]
    assert case == {"id": "e1", "input": {"q": "Peru?"}, "expected": "Lima", "labels": {"split": "test"}}
    assert "1 not imported" in result.out


def test_tables_by_the_columns_that_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.csv", "q,a,kind,rest\nPeru?,Lima,city,x\n")
    result = run_import(capsys, "table", "suite.csv", "--input", "q", "--expected", "a", "--label", "kind")
    (case,) = result.suite()["cases"]
    assert case == {"id": "1", "input": "Peru?", "expected": "Lima", "labels": {"kind": "city"}}
    assert "4 constructs: 3 same, 0 near, 1 not imported" in result.out


def test_parquet_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.table({"q": ["Peru?"], "a": [["Lima", "lima"]]}), folder / "suite.parquet")
    (case,) = run_import(capsys, "table", "suite.parquet", "--input", "q", "--expected", "a").suite()["cases"]
    assert case == {"id": "1", "input": "Peru?", "expected": ["Lima", "lima"]}


@pytest.mark.parametrize(
    ("arguments", "content", "fault"),
    [
        (["table", "--input", "nope"], "q\n1\n", "suite.csv:2:1  unknown column 'nope', expected one of q"),
        (["ragas"], "q\n1\n", "the column of the input is missing among q"),
        (["deepeval"], "", "found an empty file"),
        (["deepeval"], "input,x\n1\n", "suite.csv:2:1  found 1 cells, expected 2"),
    ],
)
def test_faults_name_file_and_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], content: str, fault: str
) -> None:
    write_source(folder, "suite.csv", content)
    assert main(["import", arguments[0], "suite.csv", *arguments[1:]]) == 1
    assert fault in capsys.readouterr().err


def test_an_unknown_format_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "prompfoo", "x"])
    assert "did you mean promptfoo?" in capsys.readouterr().err


FOLDERS = {
    "braintrust": "braintrust",
    "deepeval": "deepeval",
    "inspect": "inspect-ai",
    "openai-evals": "openai-evals",
    "pydantic-evals": "pydantic-evals",
    "ragas": "ragas",
}


@pytest.mark.skipif(not IMPORTERS.is_dir(), reason="the files of other tools are not beside this repository")
def test_every_published_file_is_imported_or_refused_and_every_part_has_one_fate() -> None:
    for name, format_name in FOLDERS.items():
        for path in sorted((IMPORTERS / name).iterdir()):
            try:
                source = import_source(format_name, path, path.name, ImportOptions())
            except SuiteError:
                continue
            assert source is not None
            assert bool(source.suite) is not bool(source.refusal)
            for ledger in source.ledgers:
                found = [each.path for each in ledger.constructs()]
                assert len(found) == len(set(found))
                uncovered = [
                    steps
                    for steps in source_paths(ledger.data)
                    if not any(steps[:end] in found for end in range(len(steps) + 1))
                ]
                assert uncovered == []


def test_a_suite_is_validated_as_the_text_that_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_llmeval.exchange._pydantic_evals.check_fault", lambda _: None)
    data = {"cases": [{"inputs": "?", "evaluators": [{"Equals": {"value": None}}]}]}
    assert main(["import", "pydantic-evals", str(write_source(folder, "x.yaml", data))]) == 1
    assert "x.eval.yaml:" in (fault := capsys.readouterr().err)
    assert "found 'json_equals' without what to check" in fault
