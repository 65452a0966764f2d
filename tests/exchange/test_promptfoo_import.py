"""``llmeval import promptfoo``: prompts, providers, tests and assertions of configurations."""

from pathlib import Path
from typing import Any

import pytest
from project import run_import, write_source

from pytest_llmeval.cli import main
from pytest_llmeval.exchange import ImportOptions
from pytest_llmeval.exchange._commands import import_source
from pytest_llmeval.exchange._ledger import Fate

PROMPT = "Capital of {{country}}?"
MODEL = "openai:gpt-4.1-mini"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(**more: Any) -> dict[str, Any]:
    test = {"vars": {"country": "Peru"}, "assert": [{"type": "contains", "value": "Lima"}]}
    return {"prompts": [PROMPT], "providers": [MODEL], "tests": [test], **more}


def imported(capsys: pytest.CaptureFixture[str], folder: Path, **more: Any) -> Any:
    """Return the suite that a configuration becomes."""
    write_source(folder, "suite.yaml", config(**more))
    return run_import(capsys, "promptfoo", "suite.yaml").suite()


def test_a_configuration_becomes_a_suite_with_a_system_and_a_prompt_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_source(folder, "suite.yaml", config(description="capitals"))
    result = run_import(capsys, "promptfoo", "suite.yaml")
    assert result.suite() == {
        "suite": "suite",
        "description": "capitals",
        "systems": {MODEL: {"model": MODEL, "prompt": "suite/prompt-1.txt"}},
        "cases": [{"id": "1", "input": {"country": "Peru"}, "checks": [{"contains": "Lima"}]}],
    }
    assert (result.folder / "suite/prompt-1.txt").read_text() == "Capital of {{ input.country }}?"
    assert result.code == 0
    assert "6 constructs: 6 same, 0 near, 0 not imported" in result.out


def test_every_model_gets_every_prompt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ask.txt").write_text("One: {{country}}\n---\nTwo: {{country}}\n")
    providers = [MODEL, {"id": "anthropic:messages:claude", "label": "c", "config": {"temperature": 0, "top_p": 0.5}}]
    systems = imported(capsys, folder, prompts=["file://ask.txt"], providers=providers)["systems"]
    assert list(systems) == [f"{MODEL}/ask-1", f"{MODEL}/ask-2", "c/ask-1", "c/ask-2"]
    assert systems["c/ask-2"] == {
        "model": "anthropic:claude",
        "temperature": 0,
        "parameters": {"top_p": 0.5},
        "prompt": "suite/prompt-2.txt",
    }


def test_messages_become_a_system_prompt_and_a_prompt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{country}}"}]'
    (entry,) = imported(capsys, folder, prompts=[messages])["systems"].values()
    assert Path("imported", entry["system_prompt"]).read_text() == "Be brief."
    assert Path("imported", entry["prompt"]).read_text() == "{{ input.country }}"


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        ("openai:chat:gpt-4o", {"model": "openai:gpt-4o"}),
        ("ollama:chat:llama3.3", {"model": "openai:llama3.3", "base_url": "http://localhost:11434/v1"}),
        ("bedrock:us.amazon.nova-lite-v1:0", {"model": "pydantic-ai:bedrock:us.amazon.nova-lite-v1:0"}),
        ({MODEL: {"config": {"max_tokens": 5}}}, {"model": MODEL, "max_tokens": 5}),
        ({"id": MODEL, "config": {"apiKey": "{{env.MY_KEY}}"}}, {"model": MODEL, "api_key_env": "MY_KEY"}),
    ],
)
def test_a_provider_becomes_a_model(
    folder: Path, capsys: pytest.CaptureFixture[str], provider: Any, settings: dict[str, Any]
) -> None:
    (entry,) = imported(capsys, folder, providers=[provider])["systems"].values()
    del entry["prompt"]
    assert entry == settings


def test_a_key_is_never_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "sk-" + "a1B2" * 10
    write_source(folder, "suite.yaml", config(providers=[{"id": MODEL, "config": {"apiKey": secret}}]))
    result = run_import(capsys, "promptfoo", "suite.yaml")
    assert secret not in result.out + result.report + (result.folder / "suite.eval.yaml").read_text()


def test_lists_among_the_variables_are_cases_for_each_combination(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = [{"description": "d", "vars": {"country": ["Peru", "Chile"], "tone": ["a", "b"], "fix": 1}}]
    cases = imported(capsys, folder, tests=tests)["cases"]
    assert [(case["id"], case["input"]["country"], case["input"]["tone"]) for case in cases] == [
        ("d", "Peru", "a"),
        ("d (2)", "Peru", "b"),
        ("d (3)", "Chile", "a"),
        ("d (4)", "Chile", "b"),
    ]


def test_variables_of_files_of_variables_and_missing_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "peru.txt").write_text("Peru")
    tests = [{"vars": {"country": "file://peru.txt", "again": "{{country2}}!", "country2": "Chile"}}]
    (case,) = imported(capsys, folder, tests=tests, prompts=["{{country}} {{absent}}"])["cases"]
    assert case["input"] == {"absent": "", "country": "Peru", "again": "Chile!", "country2": "Chile"}


def test_rows_of_a_table_are_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "country,__expected1,__expected2,__description\nPeru,icontains:lima,contains-any:a,first\nKenya,Nairobi,,\n"
    (folder / "tests.csv").write_text(table)
    cases = imported(capsys, folder, tests="file://tests.csv")["cases"]
    assert cases == [
        {"id": "first", "input": {"country": "Peru"}, "checks": [{"icontains": "lima"}, {"contains_any": ["a"]}]},
        {"id": "2", "input": {"country": "Kenya"}, "checks": [{"equals": "Nairobi"}]},
    ]


def test_many_cases_are_written_to_a_data_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [{"vars": {"country": str(number)}} for number in range(30)]
    suite = imported(capsys, folder, tests=tests)
    assert suite["source"] == {"format": "jsonl", "path": "suite.jsonl"}
    assert len(Path("imported/suite.jsonl").read_text().splitlines()) == 30


def test_scenarios_combine_their_variables_with_their_tests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = {
        "config": [{"vars": {"country": "Peru", "right": "Lima"}}, {"vars": {"country": "Kenya", "right": "Nairobi"}}],
        "tests": [{"assert": [{"type": "equals", "value": "{{right}}"}]}],
    }
    cases = imported(capsys, folder, tests=[], scenarios=[scenario])["cases"]
    assert [case["checks"] for case in cases] == [[{"equals": "Lima"}], [{"equals": "Nairobi"}]]


def test_shared_assertions_are_checks_of_the_suite_unless_they_name_variables(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {"assert": [{"type": "not-equals", "value": ""}, {"type": "contains", "value": "{{country}}"}]}
    suite = imported(capsys, folder, defaultTest=shared)
    assert suite["checks"] == [{"not_equals": ""}]
    assert suite["cases"][0]["checks"] == [{"contains": "Peru"}, {"contains": "Lima"}]


@pytest.mark.parametrize(
    ("assertion", "check"),
    [
        ({"type": "contains-all", "value": "a, b"}, {"contains_all": ["a", "b"]}),
        ({"type": "starts-with", "value": "a", "metric": "Tone"}, {"starts_with": "a", "name": "Tone"}),
        ({"type": "not-regex", "value": r"^\d+$"}, {"not_regex": r"(?a)^\d+\Z"}),
        ({"type": "equals", "value": {"a": 1}}, {"json_equals": {"a": 1}}),
        ({"type": "levenshtein", "value": "a"}, {"levenshtein": {"to": "a", "max": 5}}),
        ({"type": "word-count", "value": {"max": 9}}, {"max_words": 9}),
        ({"type": "latency", "threshold": 1500}, {"latency_s": 1.5}),
        ({"type": "cost", "threshold": 0.1, "weight": 2}, {"cost_usd": 0.1, "weight": 2}),
        ({"type": "llm-rubric", "value": "says {{country}}"}, {"judge": "says Peru"}),
        ({"type": "not-llm-rubric", "value": "is rude"}, {"not_judge": "is rude"}),
        ({"type": "g-eval", "value": ["a", "b"]}, {"all_of": [{"judge": "a"}, {"judge": "b"}]}),
        (
            {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "contains", "value": x} for x in "abc"]},
            {"at_least": {"n": 2, "of": [{"contains": x} for x in "abc"]}},
        ),
        (
            {"type": "is-json", "value": "type: object"},
            {"is_json": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}},
        ),
    ],
)
def test_an_assertion_becomes_a_check(
    folder: Path, capsys: pytest.CaptureFixture[str], assertion: dict[str, Any], check: dict[str, Any]
) -> None:
    (case,) = imported(capsys, folder, tests=[{"vars": {"country": "Peru"}, "assert": [assertion]}])["cases"]
    assert case["checks"] == [check]


def test_similarity_becomes_a_metric_with_a_threshold_of_the_case(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = [{"vars": {"country": "Peru"}, "assert": [{"type": "similar", "value": "Lima", "threshold": 0.9}]}]
    suite = imported(capsys, folder, tests=tests)
    assert suite["evaluators"] == [{"semantic": {"model": "openai:text-embedding-3-large"}}]
    assert suite["cases"][0] | {"id": ""} == {
        "id": "",
        "input": {"country": "Peru"},
        "expected": "Lima",
        "thresholds": {"embedding_similarity": 0.9},
    }


def test_a_second_right_answer_of_a_case_is_not_imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asserts = [{"type": "similar", "value": "Lima"}, {"type": "similar", "value": "Callao"}]
    write_source(folder, "suite.yaml", config(tests=[{"vars": {"country": "Peru"}, "assert": asserts}]))
    assert "a case has one right answer" in run_import(capsys, "promptfoo", "suite.yaml").report


def test_a_threshold_of_a_test_counts_its_checks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asserts = [{"type": "contains", "value": "b"}, {"type": "contains", "value": "c"}]
    test = {"vars": {"country": "Peru"}, "threshold": 0.6, "assert": asserts}
    shared = {"assert": [{"type": "contains", "value": "a"}]}
    suite = imported(capsys, folder, tests=[test], defaultTest=shared)
    assert "checks" not in suite
    entries = [{"contains": "a"}, {"contains": "b"}, {"contains": "c"}]
    assert suite["cases"][0]["checks"] == [{"at_least": {"n": 2, "of": entries}}]


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "javascript", "value": "output.length < 9"}, "neither executed nor translated"),
        ({"type": "python", "value": "file://check.py"}, "neither executed nor translated"),
        ({"type": "equals", "value": "a", "transform": "output.name"}, "its transform changes the answer"),
        ({"type": "contains", "value": "{{ country | upper }}"}, "the template code"),
        ({"type": "contains", "value": "{{env.HOME}}"}, "the environment variable"),
        ({"type": "is-sql"}, "register_check"),
        ({"type": "moderation"}, "moderation service"),
        ({"type": "trajectory:tool-used", "value": "search"}, "evaluator tools"),
        ({"type": "nonsense"}, "no such check"),
    ],
)
def test_an_assertion_that_is_not_imported_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str], assertion: dict[str, Any], reason: str
) -> None:
    write_source(folder, "suite.yaml", config(tests=[{"vars": {"country": "Peru"}, "assert": [assertion]}]))
    result = run_import(capsys, "promptfoo", "suite.yaml")
    assert "1 not imported" in result.out
    assert reason in result.report.replace("\\", "")
    assert "checks" not in result.suite()["cases"][0]


def test_code_gets_a_stub_that_has_it_as_a_comment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "return output\n  // ``` */\r\n+ __import__('os')"
    write_source(folder, "suite.yaml", config(tests=[{"vars": {}, "assert": [{"type": "javascript", "value": code}]}]))
    report = run_import(capsys, "promptfoo", "suite.yaml").report
    block = report[report.index("````python") :].split("````")[1].removeprefix("python")
    stub = "\n".join(line[2:] for line in block.splitlines())
    names: dict[str, Any] = {}
    exec(stub, names)  # the test is that it is Python, and does nothing
    assert "#   // ``` */" in stub
    with pytest.raises(NotImplementedError):
        names["javascript_line_1"]("answer")


def test_assertions_after_a_transform_are_not_imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.yaml", config(defaultTest={"options": {"transform": "output.trim()"}}))
    report = run_import(capsys, "promptfoo", "suite.yaml").report
    assert "\nWritten: suite.eval.yaml, 1 case.\n" in report
    assert "options.transform changes the answer by code" in report


def test_recorded_answers_are_predictions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [{"vars": {"country": "Peru"}, "providerOutput": "Lima", "assert": [{"type": "equals", "value": "Lima"}]}]
    suite = imported(capsys, folder, tests=tests)
    assert "systems" not in suite
    assert suite["cases"][0]["prediction"] == "Lima"


def result_of(provider: str, output: str) -> dict[str, Any]:
    asserts = [{"type": "contains", "value": "Lima"}, {"type": "javascript", "value": "true"}]
    return {
        "provider": {"id": provider},
        "prompt": {"raw": "Capital of Peru?", "label": PROMPT},
        "vars": {"country": "Peru"},
        "response": {"output": output, "tokenUsage": {"prompt": 3, "completion": 1}},
        "success": True,
        "testCase": {"vars": {"country": "Peru"}, "assert": asserts},
    }


def test_results_become_a_suite_of_recorded_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = {"results": {"version": 3, "results": [result_of("a", "Lima"), result_of("b", "Quito")]}}
    write_source(folder, "suite.json", results)
    result = run_import(capsys, "promptfoo", "suite.json")
    suite = result.suite()
    assert list(suite["systems"].values()) == [
        {"predictions": "suite/answers-1.jsonl"},
        {"predictions": "suite/answers-2.jsonl"},
    ]
    assert suite["cases"] == [{"id": "1", "input": {"country": "Peru"}, "checks": [{"contains": "Lima"}]}]
    assert '"answer": "Quito"' in (result.folder / "suite/answers-2.jsonl").read_text()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"providers": ["exec: touch ran"]}, "it is code or a service"),
        ({"providers": ["file://run.js"]}, "it is code or a service"),
        ({"providers": ["python:run.py"]}, "it is code or a service"),
        ({"prompts": ["exec: touch ran", "file://run.py", "file://run.js:f", PROMPT]}, "code, which is never executed"),
        ({"prompts": ["{% for x in range(3) %}{{ x }}{% endfor %}", PROMPT]}, "the template code"),
        ({"extensions": ["file://run.py:hook"]}, "they are code"),
        ({"tests": ["file://run.py", {"vars": {"country": "a"}}]}, "is code, which is never executed"),
        ({"tests": [{"path": "file://run.py:make"}, {"vars": {"country": "a"}}]}, "is code, which is never executed"),
        ({"tests": [{"vars": {"country": "a", "x": "file://run.py"}}]}, "is code, which is never executed"),
    ],
)
def test_nothing_of_a_source_is_executed(
    folder: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any], reason: str
) -> None:
    (folder / "run.py").write_text("open('ran', 'w')")
    (folder / "run.js").write_text("require('fs').writeFileSync('ran', '')")
    write_source(folder, "suite.yaml", config(**more))
    report = run_import(capsys, "promptfoo", "suite.yaml").report
    assert reason in report
    assert not (folder / "ran").exists()


def test_tags_of_yaml_are_faults_with_their_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "bad.yaml", "prompts: [a]\ntests: !!python/object/apply:os.system ['touch ran']\n")
    write_source(folder, "suite.yaml", config())
    result = run_import(capsys, "promptfoo", "bad.yaml", "suite.yaml")
    assert result.code == 1
    assert "bad.yaml:2:8" in result.err
    assert not (folder / "ran").exists()
    assert result.suite()["cases"], "other files are still imported"


def test_a_source_without_cases_is_refused_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.yaml", {"prompts": [PROMPT], "redteam": {"plugins": ["pii"]}, "targets": [MODEL]})
    result = run_import(capsys, "promptfoo", "suite.yaml")
    assert result.code == 1
    assert result.err.startswith("suite.yaml  no test")
    assert "0 same, 0 near, 3 not imported" in result.out


def test_a_second_import_refuses_to_overwrite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "suite.yaml", config())
    run_import(capsys, "promptfoo", "suite.yaml")
    before = Path("imported/suite.eval.yaml").read_text()
    Path("imported/suite.eval.yaml").write_text(before + "# mine\n")
    assert main(["import", "promptfoo", "suite.yaml", "--to", "imported"]) == 1
    assert "use --force to overwrite" in capsys.readouterr().err
    assert Path("imported/suite.eval.yaml").read_text().endswith("# mine\n")
    assert main(["import", "promptfoo", "suite.yaml", "--to", "imported", "--force"]) == 0
    assert Path("imported/suite.eval.yaml").read_text() == before


NEAR = [
    ({"type": "icontains", "value": "Straße"}, "looser here, such as the answer"),
    ({"type": "not-icontains", "value": "boss"}, "stricter here, such as the answer"),
    ({"type": "contains", "value": "Öl"}, r'looser here, such as the answer "O\u0308l"'),
    ({"type": "levenshtein", "value": "a", "threshold": 1}, r'looser here, such as the answer "a\ud83d\ude00"'),
    ({"type": "not-equals", "value": {"a": 1}}, 'stricter here, such as the answer "no JSON"'),
    ({"type": "llm-rubric", "value": "polite"}, "stricter or looser here"),
]


@pytest.mark.parametrize(("assertion", "text"), NEAR)
def test_what_is_near_names_direction_and_an_answer_and_strict_refuses_what_is_looser(
    folder: Path, capsys: pytest.CaptureFixture[str], assertion: dict[str, Any], text: str
) -> None:
    path = write_source(folder, "suite.yaml", config(tests=[{"vars": {"country": "Peru"}, "assert": [assertion]}]))
    source = import_source("promptfoo", path, "suite.yaml", ImportOptions())
    assert source is not None
    (construct,) = (each for each in source.constructs if each.kind == assertion["type"])
    assert construct.fate is Fate.NEAR
    assert text in construct.summary
    assert main(["import", "promptfoo", "suite.yaml", "--strict", "--to", "imported"]) == ("looser" in text)
    assert f"  verdicts on some answers: 1 {text.partition(',')[0]}\n" in capsys.readouterr().out
    assert f"Verdicts on some answers: 1 {text.partition(',')[0]}." in Path("imported/IMPORT.md").read_text()


@pytest.mark.parametrize("kind", ["contains", "icontains", "equals", "starts-with", "contains-any"])
def test_checks_of_plain_texts_are_the_same(folder: Path, kind: str) -> None:
    path = write_source(
        folder, "suite.yaml", config(tests=[{"vars": {"country": "Peru"}, "assert": [{"type": kind, "value": "Lima"}]}])
    )
    assert main(["import", "promptfoo", str(path), "--strict"]) == 0


def test_strict_fails_if_anything_is_not_imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(folder, "good.yaml", config())
    write_source(folder, "less.yaml", config(sharing=True))
    assert main(["import", "promptfoo", "good.yaml", "--strict"]) == 0
    assert main(["import", "promptfoo", "less.yaml", "--strict"]) == 1
    assert main(["import", "promptfoo", "less.yaml"]) == 0
    assert "not imported: less.yaml:1  sharing: nothing is shared" in capsys.readouterr().out
    assert not Path("imported").exists()


def test_suites_of_one_import_have_different_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in ("a/one/promptfooconfig.yaml", "b/one/promptfooconfig.yaml", "b/one/promptfooconfig.fast.yaml"):
        write_source(folder, each, config())
    result = run_import(capsys, "promptfoo", folder)
    assert sorted(path.name for path in result.folder.glob("*.eval.yaml")) == [
        "one-2.eval.yaml",
        "one-fast.eval.yaml",
        "one.eval.yaml",
    ]


def test_texts_of_sources_are_texts_in_suites(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = ["no", "1e5", "0o17", "010", "2024-06-01", "~", "a: b", "- x", "two\nlines ", "\u2028", "é", "1_000"]
    tests = [{"vars": {"country": value}, "assert": [{"type": "equals", "value": value}]} for value in values]
    write_source(folder, "suite.yaml", config(tests=tests))
    run_import(capsys, "promptfoo", "suite.yaml")
    from pytest_llmeval.data import InputFile

    data = InputFile(Path("imported/suite.eval.yaml"), "suite").read_document().data
    assert [case["input"]["country"] for case in data["cases"]] == values


def test_files_elsewhere_on_the_machine_are_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = folder.resolve().parent / "elsewhere.txt"
    elsewhere.write_text("a secret of mine", encoding="utf-8")
    written = str(
        imported(capsys, folder, tests=[{"vars": {"a": f"file://{elsewhere}", "b": "file://../elsewhere.txt"}}])
    )
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert "a secret of mine" not in written + "".join(path.read_text(encoding="utf-8") for path in files)
    assert "neither in the folder of the configuration nor in the current one" in (
        written + capsys.readouterr().out + "".join(path.read_text(encoding="utf-8") for path in files)
    )
