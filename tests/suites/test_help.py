"""Help and signatures of the functions of suites, as consoles, notebooks and editors show them."""

import inspect
import pydoc

import pytest

import pytest_llmeval as ev
from pytest_llmeval.suites import KEYS


def test_help_on_an_evaluator_has_its_signature_and_its_docstring() -> None:
    page = pydoc.plain(pydoc.render_doc(ev.text))
    assert "partial" not in page
    assert "text(*, metrics" in page
    assert "ROUGE" in page
    assert "metrics: " in page


def test_help_on_a_check_says_when_it_is_met() -> None:
    page = pydoc.plain(pydoc.render_doc(ev.contains))
    assert "contains(argument" in page
    assert "the text stands in the answer" in page


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (ev.max_words, ["argument", "name", "on", "turn", "weight"]),
        (ev.any_of, ["checks"]),
        (
            ev.judge,
            [
                "criterion",
                "mode",
                "language",
                "rubric",
                "corrected",
                "human",
                "prompt",
                "prompts",
                "unanswerable",
                "criteria",
                "steps",
                "reply",
                "score",
                "as_",
                "on",
                "turn",
                "name",
                "weight",
            ],
        ),
    ],
)
def test_signatures_have_the_real_parameters(function: object, parameters: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == parameters  # type: ignore[arg-type]


def test_the_signature_of_an_evaluator_has_its_options_and_their_defaults() -> None:
    parameters = inspect.signature(ev.narrative_characters).parameters
    assert {"match", "as_", "on", "turn"} <= set(parameters)
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())
    assert inspect.signature(ev.number).parameters["argument"].default is not inspect.Parameter.empty


def test_the_signature_of_suite_has_every_key() -> None:
    parameters = list(inspect.signature(ev.suite).parameters)
    assert parameters[:2] == ["name", "cases"]
    assert set(parameters[2:]) == {name for name, key in KEYS.items() if key.python is not None}
    assert "declared in Python" in (inspect.getdoc(ev.suite) or "")
