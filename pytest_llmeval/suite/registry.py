"""Which evaluators there are: the shipped ones, those of installed packages, those that a conftest registers."""

__all__ = ("Registry", "build", "default_registry", "get_evaluator", "register_tokenizer")

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.evaluator import Evaluator

ENTRY_POINTS = "pytest_llmeval.evaluators"

_SHIPPED = {
    "classification": "pytest_llmeval.evaluators.classification:Classification",
    "emotion_cause": "pytest_llmeval.tasks.emotion_cause.evaluator:EmotionCause",
    "fact_check": "pytest_llmeval.tasks.fact_check.evaluator:FactCheck",
    "judge": "pytest_llmeval.evaluators.judge.evaluator:Judge",
    "judge_agreement": "pytest_llmeval.evaluators.judge.agreement:JudgeAgreement",
    "narrative": "pytest_llmeval.tasks.narrative.composite:Narrative",
    "narrative.action_layer": "pytest_llmeval.tasks.narrative.action_layer:ActionLayer",
    "narrative.characters": "pytest_llmeval.tasks.narrative.characters:Characters",
    "narrative.relationships": "pytest_llmeval.tasks.narrative.relationships:Relationships",
    "narrative.sentiment": "pytest_llmeval.tasks.narrative.sentiment:Sentiment",
    "narrative.text_span": "pytest_llmeval.tasks.narrative.text_span:TextSpan",
    "retrieval": "pytest_llmeval.tasks.retrieval.evaluator:Retrieval",
    "segmentation": "pytest_llmeval.evaluators.segmentation:Segmentation",
    "semantic": "pytest_llmeval.evaluators.semantic.evaluator:Semantic",
    "text": "pytest_llmeval.evaluators.text:TextEvaluator",
}


class Registry:
    """Evaluator classes by name. Classes are imported when they are asked for."""

    def __init__(self, evaluators: Mapping[str, "str | type[Evaluator]"]) -> None:
        self._evaluators = dict(evaluators)

    def register(self, evaluator: type[Evaluator]) -> type[Evaluator]:
        """Add an evaluator under its ``name``; returns it, so that it can decorate a class.

        Raises:
            EvaluatorError: It is no subclass of `Evaluator`, has no name, lacks a method, or the name is taken.
        """
        candidate: Any = evaluator  # conftests are not type-checked
        if not (isinstance(candidate, type) and issubclass(candidate, Evaluator)):
            raise EvaluatorError(f"found {evaluator!r}, expected a subclass of pytest_llmeval.Evaluator")
        name = getattr(evaluator, "name", None)
        if not isinstance(name, str) or not name:
            raise EvaluatorError(
                f"{evaluator.__qualname__}: found name {name!r}, expected a class attribute name = 'text'"
            )
        if lacking := sorted(getattr(evaluator, "__abstractmethods__", ())):
            raise EvaluatorError(f"{evaluator.__qualname__}: found no {', '.join(lacking)}, expected a method for each")
        if name in self._evaluators and self.get(name) is not evaluator:
            raise EvaluatorError(
                f"the evaluator name {name!r} is taken by {self.get(name).__qualname__}: choose another"
            )
        self._evaluators[name] = evaluator
        return evaluator

    def get(self, name: str) -> type[Evaluator]:
        """Return the class registered under a name.

        Raises:
            EvaluatorError: There is none; the message suggests the nearest name.
        """
        found = self._evaluators.get(name)
        if found is None:
            from pytest_llmeval.core.wording import suggest

            known = ", ".join(self)
            raise EvaluatorError(f"found evaluator {name!r}, expected one of {known}{suggest(name, self)}")
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = getattr(import_module(module), attribute)
            self._evaluators[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._evaluators))

    def copy(self) -> "Registry":
        """Return a registry that can be added to without changing this one."""
        return Registry(self._evaluators)


@cache
def _installed() -> Registry:
    registry = Registry(_SHIPPED)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            registry.register(point.load())
        except Exception as error:
            raise EvaluatorError(
                f"entry point {point.name!r} of {ENTRY_POINTS} ({point.value}): {type(error).__name__}: {error}"
            ) from error
    return registry


def default_registry() -> Registry:
    """Return the shipped evaluators and those of the entry-point group ``pytest_llmeval.evaluators``."""
    return _installed().copy()


def build(evaluator: type[Evaluator], options: Mapping[str, Any]) -> Evaluator:
    """Make an evaluator from options.

    Raises:
        pydantic.ValidationError: An option is unknown, of the wrong type, or refused by the evaluator.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(evaluator).validate_python(dict(options))


def get_evaluator(name: str, **options: Any) -> Evaluator:
    """Return an evaluator by name.

    Args:
        name: Such as ``text`` or ``classification``.
        options: Its options, as in a suite file.

    Raises:
        EvaluatorError: There is no such evaluator, or an option is wrong.

    Example:
        >>> get_evaluator("text", metrics=["f1"]).evaluate("Paris, France", "Paris")["f1"]
        0.6666666666666666
    """
    from pydantic import ValidationError

    evaluator = default_registry().get(name)
    try:
        return build(evaluator, options)
    except ValidationError as error:
        from pytest_llmeval.data.files.validation import option_fault

        faults = "; ".join(option_fault(each, evaluator) for each in error.errors(include_url=False))
        raise EvaluatorError(f"evaluator {name!r}: {faults}") from None


def register_tokenizer(name: str, tokenizer: Callable[[str], list[str]]) -> None:
    """Make a tokenizer known under a name, for the option ``tokenizer`` of `text`.

    Args:
        name: What suite files say.
        tokenizer: Text to tokens; pure.
    """
    from pytest_llmeval.evaluators.measures import tokens

    tokens.register_tokenizer(name, tokenizer)
