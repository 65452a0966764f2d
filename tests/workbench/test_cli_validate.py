"""``llmeval validate``: the faults of suite files, without pytest."""

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pytest_llmeval.cli import main

GOOD = "evaluators: [text]\nthresholds: {f1: 0.5}\ncases: [{id: a, expected: x, prediction: x}]\n"
TWO_FAULTS = "evaluators: [text]\ngates: [f2 > 0]\ncases: [{id: a, expcted: x}]\n"
OWN = "evaluators: [mine]\ncases: [{id: a}]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def validate(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, list[str], str]:
    code = main(["validate", *paths])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def test_a_good_suite_gets_one_line_and_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    write("s.eval.yaml", GOOD)
    assert validate(capsys, "s.eval.yaml") == (0, ["s.eval.yaml: no fault in 1 case"], "")


REPORT = '{"schema_version": 1, "run": {}, "suites": []}'
PROMPTFOO = "prompts: [hello]\nproviders: [echo]\ntests: [{assert: [{type: is-json}]}]\n"


@pytest.mark.parametrize(
    ("name", "text", "kind", "use"),
    [
        ("s.eval.json", REPORT, "a JSON report", "llmeval compare, comment and gate read it"),
        ("s.eval.yaml", PROMPTFOO, "a configuration of promptfoo", "llmeval import promptfoo s.eval.yaml --to FOLDER"),
        ("s.eval.json", '{"schema": 1, "checksum": "x", "metrics": {}}', "approved scores", "llmeval history shows"),
    ],
)
def test_a_file_of_another_kind_is_named_before_its_keys_are(
    capsys: pytest.CaptureFixture[str], name: str, text: str, kind: str, use: str
) -> None:
    write(name, text)
    code, lines, _ = validate(capsys, name)
    assert code == 1
    assert lines[0].startswith(f"{name}:1:1  found {kind}, expected a suite file: {use}")
    assert lines[-1] == "1 fault"


@pytest.mark.parametrize(
    ("limits", "warned"),
    [
        ("", True),
        ("snapshot: false\n", True),
        ("snapshot: true\n", False),
        ("gates: [f1 >= 0.5]\n", False),
        ("gates: [{metric: f1, max_drop: 0.1}]\n", False),
        ("cases: [{id: a, thresholds: {f1: 1}}]\n", False),
        ("evaluators: [tools: {forbidden: [refund]}]\n", False),
    ],
)
def test_a_suite_in_which_nothing_can_fail_is_warned_of(
    capsys: pytest.CaptureFixture[str], limits: str, warned: bool
) -> None:
    keys = {"evaluators": "[text]", "cases": "[{id: a}]"}
    write("s.eval.yaml", limits + "".join(f"{key}: {keys[key]}\n" for key in keys if key not in limits))
    code, lines, _ = validate(capsys, "s.eval.yaml")
    assert code == 0
    assert lines[0] == "s.eval.yaml: no fault in 1 case"
    assert ["nothing can fail here" in line for line in lines[1:] if "warning" in line] == [True] * warned
    assert ["gates: ['exact_match >= 0.8']" in line for line in lines[1:] if "warning" in line] == [True] * warned


def test_limits_and_checks_that_the_expected_answers_do_not_meet_are_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite = """
evaluators: [{text: {metrics: [bleu4]}}]
thresholds: {bleu4: {min: 0.5, max: 0.99}}
judge: {model: openai:gpt-4.1-mini}
cases:
  - {id: long, expected: It is the city of Paris}
  - {id: short, expected: Paris, checks: [{judge: is polite}]}
  - {id: shorter, expected: [Lima, the city of Lima in Peru]}
  - {id: check, expected: the city of Lima in Peru, checks: [{contains: Quito}, {max_words: 9}]}
"""
    write("s.eval.yaml", suite)
    code, lines, _ = validate(capsys, "s.eval.yaml")
    assert code == 0
    unmet = "the expected answer itself does not meet it"
    found = "found 'the city of Lima in Peru', expected contains: 'Quito'"
    assert [line.partition("warning: ")[2] for line in lines if "warning" in line] == [
        f"bleu4: {unmet} (case 'short': bleu4 0.1778, limit >= 0.5 and <= 0.99)",
        f"check[contains]: {unmet} (case 'check': {found})",
    ]


@pytest.mark.parametrize(("count", "noted"), [(1, True), (5, True), (6, False)])
def test_a_gate_that_so_few_cases_can_never_decide_is_named(
    capsys: pytest.CaptureFixture[str], count: int, noted: bool
) -> None:
    cases = ", ".join(f"{{id: c{number}}}" for number in range(count))
    write("s.eval.yaml", f"evaluators: [text]\ngates: [{{metric: f1, max_drop: 0.1}}]\ncases: [{cases}]\n")
    _, lines, _ = validate(capsys, "s.eval.yaml")
    cases_are = "1 case" if count == 1 else f"{count} cases"
    counts = "the gate fails if half of the cases get worse"
    note = f"s.eval.yaml: note: drop(f1) <= 0.1: with {cases_are} no drop can be significant: {counts}"
    assert lines[1:] == [note] * noted


@pytest.mark.parametrize(
    ("judge", "warned"),
    [
        ("openai:old", True),
        ("pydantic-ai:openai:old", True),
        ("anthropic:old", False),
        ("openai:new", False),
        ("openai:unlisted", False),
        ("fixture:old", False),
        ('{model: "openai:old", base_url: "http://localhost:1/v1"}', False),
    ],
)
def test_models_that_the_price_data_call_retired_are_warned_of(
    capsys: pytest.CaptureFixture[str], judge: str, warned: bool
) -> None:
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
    from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

    price = ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(1))
    models = [
        ModelInfo(name, ClauseEquals(name), prices=price, deprecated=gone)
        for name, gone in (("old", True), ("new", None))
    ]
    set_custom_snapshot(DataSnapshot([Provider("openai", "OpenAI", "https://api.example", models=models)], False))
    try:
        write("s.eval.yaml", GOOD + f"judge: {judge}\n")
        code, lines, _ = validate(capsys, "s.eval.yaml")
        write(
            "t.eval.yaml",
            GOOD + f"systems: {{a: {{model: 'openai:old'}}, b: {{model: 'openai:new'}}}}\njudge: {judge}\n",
        )
        in_systems = [line for line in validate(capsys, "t.eval.yaml")[1] if "retired" in line]
    finally:
        set_custom_snapshot(None)
    assert code == 0
    assert ["is retired" in line for line in lines[1:]] == [True] * warned
    said = "t.eval.yaml: warning: systems.a: 'openai:old' is retired according to the installed genai-prices"
    assert in_systems[warned:] == [said]


def test_every_fault_of_every_file_is_listed_and_the_exit_code_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    write("bad.eval.yaml", TWO_FAULTS)
    write("good.yaml", GOOD)
    code, lines, _ = validate(capsys, "bad.eval.yaml", "good.yaml", "absent.yaml")
    assert code == 1
    assert [line.partition("  ")[0] for line in (lines[0], lines[3])] == ["bad.eval.yaml:2:9", "bad.eval.yaml:3:17"]
    assert "unknown metric f2, did you mean f1?" in lines[0]
    source = TWO_FAULTS.splitlines()[1]
    assert lines[1:3] == [f"    | {source}", f"    | {' ' * 8}^"]
    del lines[4:6], lines[1:3]
    assert lines[2] == "good.yaml: no fault in 1 case"
    assert lines[3].startswith("absent.yaml  cannot be read")
    assert lines[4:] == ["3 faults"]


def test_the_fault_of_a_single_case_counts_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    write("s.eval.yaml", GOOD.replace("]\n", ", {id: a}]\n").replace("[text, {id: a}]", "[text]"))
    code, lines, _ = validate(capsys, "s.eval.yaml")
    assert (code, lines[-1]) == (1, "1 fault")
    assert "found the id 'a' twice" in lines[0]


def test_a_folder_stands_for_the_suite_files_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("e/b.eval.yaml", "e/a.eval.yml", "e/deep/c.eval.json", "e/.hidden/d.eval.yaml", "e/venv/d.eval.yaml"):
        write(name, '{"evaluators": ["text"], "gates": ["f1 >= 0"], "cases": [{"id": "a"}]}')
    write("e/other.yaml", "no: suite")
    code, lines, _ = validate(capsys, "e", "e/b.eval.yaml")
    assert code == 0
    names = [str(Path(name)) for name in ("e/a.eval.yml", "e/b.eval.yaml", "e/deep/c.eval.json")]
    assert lines == [f"{name}: no fault in 1 case" for name in names]


def test_a_folder_without_suite_files_is_an_error(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "empty").mkdir()
    code, lines, error = validate(capsys, "empty")
    assert (code, lines) == (1, [])
    assert error == "no *.eval.yaml below empty; `llmeval init` writes one\n"


def test_names_that_a_conftest_may_register_are_said_to_be_known_to_pytest_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("conftest.py", "")
    write("e/s.eval.yaml", OWN)
    write("e/t.eval.yaml", "evaluators: [text]\nsource: {format: ledger, path: a.txt}\n")
    code, lines, _ = validate(capsys, "e")
    assert code == 1
    notes = [line for line in lines if "evaluators and sources that a conftest.py registers are unknown" in line]
    assert [line.split(": ")[1] for line in notes] == [str(Path("e/s.eval.yaml")), str(Path("e/t.eval.yaml"))]


def test_no_conftest_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    write("s.eval.yaml", OWN)
    assert not any("conftest" in line for line in validate(capsys, "s.eval.yaml")[1])


def test_a_python_target_is_not_imported(capsys: pytest.CaptureFixture[str]) -> None:
    write("s.eval.yaml", GOOD + "target: 'never_imported:answer'\n")
    write("never_imported.py", "raise SystemExit('imported')\n")
    assert validate(capsys, "s.eval.yaml")[0] == 0
    assert "never_imported" not in sys.modules
