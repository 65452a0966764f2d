"""Images, sounds and documents in the files of other tools."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from pictures import PDF, WAV, in_memory, png
from project import export, run_import, span, write_source

from pytest_llmeval import Media
from pytest_llmeval.cli import main
from pytest_llmeval.exchange.traces import TracesSource
from pytest_llmeval.suites import load_suite

PNG = b64encode(png()).decode()
DATA = f"data:image/png;base64,{PNG}"
ADDRESS = "https://example.org/a.jpg"
MODEL = "openai:gpt-4.1-mini"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def message(*parts: Any) -> str:
    return json.dumps([{"role": "user", "content": list(parts)}])


def openai(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def promptfoo(capsys: pytest.CaptureFixture[str], variables: dict[str, Any], *prompts: str) -> Any:
    config = {
        "prompts": list(prompts),
        "providers": [MODEL],
        "tests": [{"vars": variables, "assert": [{"type": "contains", "value": "red"}]}],
    }
    write_source(Path(), "suite.yaml", config)
    return run_import(capsys, "promptfoo", "suite.yaml")


def content(result: Any, value: dict[str, str]) -> bytes:
    """Return the content of a file that a suite names."""
    return bytes((result.folder / value["file"]).read_bytes())


PARTS: dict[str, tuple[Any, str, bytes | str]] = {
    "openai": (openai("data:image/png;base64,{{x}}"), PNG, png()),
    "openai, whole": (openai("{{ x }}"), DATA, png()),
    "openai, address": (openai("{{x}}"), ADDRESS, ADDRESS),
    "openai responses": ({"type": "input_image", "image_url": "{{x}}"}, DATA, png()),
    "openai sound": (
        {"type": "input_audio", "input_audio": {"data": "{{x}}", "format": "wav"}},
        b64encode(WAV).decode(),
        WAV,
    ),
    "openai file": (
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,{{x}}"}},
        b64encode(PDF).decode(),
        PDF,
    ),
    "anthropic": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "{{x}}"}},
        PNG,
        png(),
    ),
    "anthropic address": ({"type": "document", "source": {"type": "url", "url": "{{x}}"}}, f"{ADDRESS}.pdf", "pdf"),
    "gemini": ({"inline_data": {"mime_type": "image/png", "data": "{{x}}"}}, PNG, png()),
    "bedrock": ({"image": {"format": "png", "source": {"bytes": "{{x}}"}}}, PNG, png()),
    "adaline": ({"modality": "image", "value": {"type": "url", "url": "{{x}}"}}, ADDRESS, ADDRESS),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_prompt_is_a_placeholder_and_its_variable_a_medium(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    part, value, expected = PARTS[name]
    result = promptfoo(capsys, {"x": value, "q": "What?"}, message({"type": "text", "text": "{{q}}"}, part))
    assert (result.folder / "suite/prompt-1.txt").read_text() == "{{ input.q }}\n{{ input.x }}"
    (case,) = result.suite()["cases"]
    assert case["input"]["q"] == "What?"
    if isinstance(expected, bytes):
        assert content(result, case["input"]["x"]) == expected
        assert case["input"]["x"]["file"].startswith("suite/media/")
    else:
        assert case["input"]["x"] == {"file": value}
    assert "0 near, 0 not imported" in result.out


def test_a_medium_in_the_prompt_itself_is_a_variable_of_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    result = promptfoo(capsys, {"q": "What?"}, message({"type": "text", "text": "{{q}}"}, openai(DATA)))
    assert (result.folder / "suite/prompt-1.txt").read_text() == "{{ input.q }}\n{{ input.medium_1 }}"
    (case,) = result.suite()["cases"]
    assert content(result, case["input"]["medium_1"]) == png()


def test_variables_that_name_files_are_these_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.png").write_bytes(png())
    (folder / "b.pdf").write_bytes(PDF)
    variables = {"x": "file://a.png", "doc": "file://b.pdf"}
    result = promptfoo(capsys, variables, message({"type": "text", "text": "{{doc}}"}, openai("{{x}}")))
    (case,) = result.suite()["cases"]
    assert content(result, case["input"]["x"]) == png()
    assert content(result, case["input"]["doc"]) == PDF
    assert "1 near, 0 not imported" in result.out


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        (openai("{{x}}"), "http://example.org/a.png", "expected one that begins with https: or data:"),
        (openai("{{x}}"), "data:image/png;base64,???", "expected Base64"),
        (openai("{{x}}"), f"data:image/jpeg;base64,{PNG}", "found image/png, expected image/jpeg"),
        (openai("{{x}}"), "../../../etc/passwd", "is neither in the folder of the source nor in the present one"),
        (openai("https://example.org/{{x}}"), "a.png", "expected one variable or an address"),
        ({"type": "file", "file": {"file_id": "file-7"}}, "", "expected one variable or an address"),
    ],
)
def test_what_cannot_be_had_is_said(part: Any, value: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = promptfoo(capsys, {"x": value}, message(part), "{{x}}")
    assert why in result.report + result.err


@pytest.mark.parametrize("more", [{}, {"q": "What?"}])
def test_a_variable_that_would_name_a_file_is_told(more: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    result = promptfoo(capsys, {"file": "a text", **more}, "{{file}}")
    assert ("would name a file here: give it another name" in result.report) is not bool(more)
    if more:
        (case,) = result.suite()["cases"]
        assert case["input"] == {"file": "a text", "q": "What?"}


@pytest.mark.parametrize(("part", "shows"), [(openai(ADDRESS), True), ({"type": "text", "text": "?"}, False)])
def test_the_media_of_a_rubric_prompt_are_named_where_it_is_left_out(
    part: dict[str, Any], shows: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = {"type": "llm-rubric", "value": "It is red.", "rubricPrompt": message(part)}
    config = {"prompts": ["{{q}}"], "providers": [MODEL], "tests": [{"vars": {"q": "What?"}, "assert": [check]}]}
    write_source(folder, "suite.yaml", config)
    result = run_import(capsys, "promptfoo", "suite.yaml")
    assert ("the rubricPrompt is left out, with its media" in result.report) is shows
    assert "the rubricPrompt is left out" in result.report


def test_an_object_of_records_that_would_name_a_file_is_its_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"input": {"file": "a.png"}, "expected": "x"}, {"input": {"pages": [{"file": "b"}]}, "expected": "y"}]
    (folder / "suite.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = run_import(capsys, "braintrust", "suite.jsonl")
    assert [case["input"] for case in result.suite()["cases"]] == ["a.png", {"pages": ["b"]}]
    assert "would name a file here: its text is the value" in result.report


def test_parts_of_messages_in_a_log_of_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound = {"type": "audio", "audio": f"data:audio/wav;base64,{b64encode(WAV).decode()}", "format": "wav"}
    parts = [{"type": "text", "text": "Which?"}, {"type": "image", "image": "attachment://abc"}, sound]
    drawn = {
        "role": "assistant",
        "content": [{"type": "reasoning", "reasoning": "..."}, {"type": "image", "image": DATA}],
    }
    samples = [
        {
            "id": "a",
            "epoch": 1,
            "input": [{"role": "user", "content": parts}],
            "target": "red",
            "attachments": {"abc": DATA},
            "output": {"choices": [{"message": drawn}]},
        },
        {
            "id": "b",
            "epoch": 1,
            "input": [{"role": "user", "content": [{"type": "image", "image": "<base64-data-removed>"}]}],
        },
    ]
    (folder / "log.json").write_text(json.dumps({"status": "success", "eval": {"task": "t"}, "samples": samples}))
    result = run_import(capsys, "inspect-ai", "log.json")
    (case,) = result.suite("log")["cases"]
    ((turn),) = case["input"]
    text, image, heard = turn["content"]
    assert (text, content(result, image), content(result, heard)) == ("Which?", png(), WAV)
    assert content(result, case["prediction"]) == png()
    assert "a part image has no content in the file" in result.report


def test_images_in_a_dataset_of_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.png").write_bytes(png())
    parts = [{"type": "text", "text": "Which?"}, {"type": "image", "image": "a.png"}]
    (folder / "data.json").write_text(json.dumps([{"input": [{"role": "user", "content": parts}], "target": "red"}]))
    result = run_import(capsys, "inspect-ai", "data.json")
    (case,) = result.suite("data")["cases"]
    assert content(result, case["input"][0]["content"][1]) == png()


def test_images_of_deepeval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.png").write_bytes(png())
    image = {"url": "a.png", "local": True, "filename": None, "mimeType": None, "dataBase64": None}
    inside = {"dataBase64": PNG, "mimeType": "image/png", "url": None}
    goldens = [
        {"input": ["Make it blue:", image], "expected_output": [inside]},
        {
            "input": "Make [DEEPEVAL:IMAGE:7] blue.",
            "actual_output": "[DEEPEVAL:IMAGE:8]",
            "imagesMapping": {"7": inside, "8": {"url": ADDRESS, "local": False}},
        },
        {"input": "Make [DEEPEVAL:IMAGE:9] blue."},
    ]
    (folder / "goldens.json").write_text(json.dumps(goldens))
    result = run_import(capsys, "deepeval", "goldens.json")
    first, second, third = result.suite("goldens")["cases"]
    assert content(result, first["input"][1]) == png()
    assert content(result, second["input"][1]) == png()
    assert (second["input"][0], second["input"][2]) == ("Make", "blue.")
    assert second["prediction"] == {"file": ADDRESS}
    assert third["input"] == "Make [DEEPEVAL:IMAGE:9] blue."
    assert "the image 9 is not in the file: save its images, too" in result.report


def test_an_expected_image_is_compared_by_its_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rows.jsonl").write_text(json.dumps({"input": "Draw.", "expected": DATA}) + "\n")
    result = run_import(capsys, "braintrust", "rows.jsonl")
    (case,) = result.suite("rows")["cases"]
    assert content(result, case["expected"]) == png()
    assert case["checks"] == ["same_bytes"]


def test_image_parts_of_graders_of_openai(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [
        {"type": "input_text", "text": "Is {{ sample.output_text }} on it?"},
        {"type": "input_image", "image_url": "{{ item.picture }}"},
    ]
    grader = {
        "type": "score_model",
        "name": "seen",
        "model": "gpt-4.1",
        "input": [{"role": "user", "content": parts}],
        "pass_threshold": 0.5,
        "range": [0, 1],
    }
    items = [{"item": {"picture": each}} for each in (DATA, ADDRESS, "http://example.org/a.png")]
    write_source(folder, "eval.json", {"testing_criteria": [grader], "data_source": {"source": {"content": items}}})
    result = run_import(capsys, "openai-evals", "eval.json")
    first, second, third = result.suite("eval")["cases"]
    assert content(result, first["input"]["picture"]) == png()
    assert second["input"]["picture"] == {"file": ADDRESS}
    assert third["input"]["picture"] == "http://example.org/a.png"
    assert "{{ input.picture }}" in (result.folder / "eval/grader.md").read_text()


BLOB = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": PNG}
FORM = Media(data=png()).form
TRACED: dict[str, tuple[dict[str, Any], Any]] = {
    "otel": (
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(
                [
                    {
                        "role": "user",
                        "parts": [
                            {"type": "text", "content": "Which?"},
                            BLOB,
                            {"type": "uri", "modality": "image", "mime_type": "image/jpeg", "uri": ADDRESS},
                            {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": PNG},
                        ],
                    }
                ]
            ),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [BLOB]}]),
        },
        [
            "Which?",
            FORM,
            {"media": "image/jpeg", "url": ADDRESS},
            "[audio: found image/png, expected audio/wav, as `type` says]",
        ],
    ),
    "openinference": (
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": "Which?",
            "llm.input_messages.0.message.contents.1.message_content.type": "image",
            "llm.input_messages.0.message.contents.1.message_content.image.image.url": DATA,
        },
        ["Which?", FORM],
    ),
    "pydantic-ai": (
        {
            "gen_ai.operation.name": "chat",
            "pydantic_ai.all_messages": json.dumps(
                [
                    {
                        "role": "user",
                        "parts": [
                            {
                                "part_kind": "user-prompt",
                                "content": ["Which?", {"kind": "binary", "data": PNG, "media_type": "image/png"}],
                            }
                        ],
                    }
                ]
            ),
        },
        ["Which?", FORM],
    ),
}


@pytest.mark.usefixtures(in_memory.__name__)
@pytest.mark.parametrize("convention", TRACED)
def test_parts_of_traces_are_media(convention: str, folder: Path) -> None:
    attributes, expected = TRACED[convention]
    (folder / "t.json").write_text(json.dumps(export(span("1a", "chat", "", 1, 2, attributes))))
    (case,) = TracesSource("t.json").load(folder, [])
    assert case.input == expected
    if convention == "otel":
        assert case.prediction["answer"] == FORM


@pytest.mark.usefixtures(in_memory.__name__)
def test_media_of_a_trace_are_files_beside_the_suite_that_gets_it(folder: Path) -> None:
    (folder / "t.json").write_text(json.dumps(export(span("1a", "chat", "", 1, 2, TRACED["otel"][0]))))
    (folder / "s.eval.yaml").write_text("checks: [not_empty]\ncases:\n  - {id: x, input: y, prediction: z}\n")
    assert main(["cases", "add", "s.eval.yaml", "--from=t.json", "--trace=", "--id=seen"]) == 0
    assert f"file: traces/{FORM['sha256'][:16]}.png" in (folder / "s.eval.yaml").read_text()
    seen = load_suite(Path("s.eval.yaml")).cases[-1]
    assert seen.input[:3] == ["Which?", FORM, {"media": "image/jpeg", "url": ADDRESS}]
    assert seen.prediction["answer"] == FORM
