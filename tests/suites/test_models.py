"""Models with prompts as systems: placeholders, messages, the matrix of models and prompts."""

from pathlib import Path

import pytest
from project import load_text, write

from pytest_llmeval.core import PredictionError, SuiteError
from pytest_llmeval.judges import Message
from pytest_llmeval.suites._systems import Prompt, prompt_fault

HEAD = "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, input: {question: Why?}, expected: because}]\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "value", "filled"),
    [
        ("Q: {{ input.question }}!", {"question": "Why?"}, "Q: Why?!"),
        ("{{input}}", "Why?", "Why?"),
        ("{{ input.turns.1.text }}", {"turns": [{"text": "no"}, {"text": "yes"}]}, "yes"),
        ("{{ input.n }} {{ input.list }}", {"n": 3, "list": ["a", "é"]}, '3 ["a", "é"]'),
        ("{{ input.question }}", {"question": "{{ input.answer }}", "answer": "42"}, "{{ input.answer }}"),
        (r"{{ input.question }}", {"question": r"\1 \g<0>"}, r"\1 \g<0>"),
    ],
)
def test_placeholders_take_text_of_the_input_and_nothing_in_it_is_a_placeholder(
    text: str, value: object, filled: str
) -> None:
    assert Prompt("p.md", text).filled(value).text == filled


def test_an_input_that_lacks_what_a_prompt_names_has_no_prediction() -> None:
    with pytest.raises(PredictionError, match=r"the input has no 'question', which p\.md names"):
        Prompt("p.md", "{{ input.question }}").filled({"query": "Why?"})


def test_what_looks_like_a_placeholder_and_is_none_is_a_fault_of_the_prompt() -> None:
    assert prompt_fault("fine {{ input.a }} { }") is None
    found = prompt_fault("one\n{{ expected }}")
    assert found == (2, "found '{{ expected }}', expected a placeholder such as '{{ input.question }}'")
    assert prompt_fault("{% for each in input %}") is not None
    line, fault = prompt_fault('Claim: "{claim}"\nReply:\n{{\n  "verdict": "Supported"' + 90 * " " + "}}") or (0, "")
    assert line == 3
    assert "and '{claim}', as in an f-string of Python, expected '{{ input }}' for '{claim}'" in fault
    assert len(fault) < 220


def test_messages_have_instructions_and_prompt_or_the_input_itself(tmp_path: Path) -> None:
    write("p.md", "Q: {{ input.question }}")
    write("s.md", "Be brief.")
    systems = "{one: {model: 'openai:m', prompt: p.md, system_prompt: s.md}, bare: {model: 'openai:m'}}"
    suite = load_text(f"{HEAD}systems: {systems}\n", tmp_path)
    one, bare = suite.for_variant("one").model, suite.for_variant("bare").model
    assert one is not None
    assert bare is not None
    assert one.messages({"question": "Why?"}) == [Message("system", "Be brief."), Message("user", "Q: Why?")]
    assert bare.messages("Why?") == [Message("user", "Why?")]
    assert bare.messages([{"role": "user", "content": "Hi"}]) == [Message("user", "Hi")]


def test_a_recording_belongs_to_a_model_and_its_prompts(tmp_path: Path) -> None:
    write("p.md", "Q: {{ input.question }}")
    write("q.md", "Question: {{ input.question }}")
    listed = ["prompt: p.md", "prompt: q.md", "prompt: p.md, temperature: 1", "prompt: p.md, retries: 2"]
    systems = ", ".join(f"s{number}: {{model: 'openai:m', {each}}}" for number, each in enumerate(listed))
    suite = load_text(f"{HEAD}systems: {{{systems}}}\n", tmp_path)
    ways = [suite.for_variant(name).cases[0].way for name in suite.systems]
    assert len({*ways[:3]}) == 3
    assert ways[3] == ways[0]


def test_a_matrix_is_every_model_with_every_prompt(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    for name in ("short", "long"):
        write(f"prompts/{name}.md", f"{name}: {{{{ input.question }}}}")
    matrix = "{models: ['openai:a', {model: 'openai:b', temperature: 0}], prompts: [prompts/*.md], temperature: 1}"
    suite = load_text(f"{HEAD}systems: {{matrix: {matrix}, app: {{python: 'm:f'}}}}\n", tmp_path)
    assert list(suite.systems) == ["openai:a/long", "openai:a/short", "openai:b/long", "openai:b/short", "app"]
    models = [suite.for_variant(name).model for name in suite.systems]
    assert [each and (each.spec.temperature, each.prompt and each.prompt.text[:5]) for each in models] == [
        (1, "long:"),
        (1, "short"),
        (0, "long:"),
        (0, "short"),
        None,
    ]


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ("{one: {model: gpt}}", "found 'gpt', expected PROVIDER:NAME (did you mean 'openai:gpt'?)"),
        ("{one: {model: 'fixture:x'}}", "found 'fixture:x', which judges, expected a model that answers"),
        (
            "{matrix: {models: ['openai:a'], prompts: ['*.txt']}}",
            "no file matches '*.txt'",
        ),
        ("{one: {model: 'openai:m', prompt: wrong.md}}", "found '{{ gold }}', expected a placeholder such as"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused(systems: str, message: str, tmp_path: Path) -> None:
    write("wrong.md", "{{ gold }}")
    with pytest.raises(SuiteError) as caught:
        load_text(f"{HEAD}systems: {systems}\n", tmp_path)
    assert any(fault.message.startswith(message) for fault in caught.value.faults)
