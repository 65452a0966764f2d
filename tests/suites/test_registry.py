"""Which evaluators, sources and commands there are, and what is said of a wrong name or option."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import (
    Case,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    Metric,
    Mutator,
    Neighbours,
    Observation,
    Registry,
    Sums,
    get_evaluator,
    register_tokenizer,
)
from pytest_llmeval.core import FloatArray
from pytest_llmeval.data import CaseFile, FileSource
from pytest_llmeval.evaluators.measures import _tokens as tokens
from pytest_llmeval.suites import _registry as registry


@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"
    unit: str = "words"

    def describe(self) -> list[Metric]:
        return [Metric("length", high=None)]

    def measure(self, case: Case) -> Observation:
        return Observation({"size": len(case.prediction.split()), "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"length": sums["size"] / sums["n"]}


class Other(Length):
    """Another class of the same name."""


class Half(Evaluator):
    name = "half"


class Nameless(Length):
    name = ""


def test_a_registered_class_is_found_by_its_name() -> None:
    some = Registry({})
    assert some.register(Length) is Length
    assert some.get("length") is Length
    assert list(some) == ["length"]


def test_registering_twice_is_fine_and_another_class_of_that_name_is_not() -> None:
    some = Registry({})
    some.register(Length)
    some.register(Length)
    with pytest.raises(
        EvaluatorError,
        match=r"^the evaluator name 'length' is taken by Length of \S*test_registry\.py: choose another$",
    ):
        some.register(Other)


def test_a_shipped_name_cannot_be_taken() -> None:
    class Mine(Length):
        name = "text"

    with pytest.raises(
        EvaluatorError, match="the evaluator name 'text' is taken by TextEvaluator of pytest_llmeval: choose another"
    ):
        Registry.installed().register(Mine)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict, "found <class 'dict'>, expected a subclass of pytest_llmeval.Evaluator"),
        (Length(), "found Length(unit='words'), expected a subclass of pytest_llmeval.Evaluator"),
        (Nameless, "Nameless: found name '', expected a class attribute name = 'text'"),
        (Half, "Half: missing methods: describe, measure, summarize"),
    ],
)
def test_what_is_no_evaluator_is_refused_with_the_reason(wrong: Any, message: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        Registry({}).register(wrong)
    assert str(caught.value) == message


def test_an_evaluator_without_a_name_is_refused() -> None:
    class NoName(Evaluator):
        describe = Length.describe
        measure = Length.measure
        summarize = Length.summarize

    with pytest.raises(EvaluatorError, match="NoName: found name None, expected a class attribute"):
        Registry({}).register(NoName)


def test_an_unknown_name_is_told_with_what_there_is_and_what_was_meant() -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("txet")
    assert str(caught.value) == "unknown evaluator txet, did you mean text?"


def test_a_copy_can_be_added_to_without_changing_the_original() -> None:
    Registry.installed().register(Length)
    assert "length" not in Registry.installed()


@dataclass
class Point:
    """A fake entry point."""

    name: str
    found: Any
    value: str = "some_package:Thing"
    group: str = "pytest_llmeval.evaluators"

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Points(list[Point]):
    def select(self, group: str) -> list[Point]:
        return [each for each in self if each.group == group]


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Point]]:
    some: list[Point] = []
    monkeypatch.setattr(registry, "entry_points", lambda: Points(some))
    registry._installed_registry.cache_clear()
    yield some
    registry._installed_registry.cache_clear()


def test_evaluators_of_installed_packages_are_found(points: list[Point]) -> None:
    shipped = list(Registry.installed())
    registry._installed_registry.cache_clear()
    points.append(Point("length", Length))
    assert get_evaluator("length", unit="letters") == Length("letters")
    assert list(Registry.installed()) == sorted([*shipped, "length"])


def test_installed_packages_are_looked_for_once(points: list[Point]) -> None:
    points.append(Point("length", Length))
    Registry.installed()
    points.clear()
    assert "length" in Registry.installed()


def test_a_plugin_of_an_installed_package_registers_all_that_it_has(points: list[Point]) -> None:
    def register(registry: Registry) -> None:
        registry.register(Length)
        registry.register_source(Lines)
        registry.register_command("lines", print, help="count lines")

    points.append(Point("mine", register, group="pytest_llmeval.plugins"))
    found = Registry.installed()
    assert (found.get("length"), found.source("lines"), found.commands["lines"].help) == (Length, Lines, "count lines")


@pytest.mark.parametrize(
    ("group", "found", "reason"),
    [
        ("evaluators", ImportError("no torch"), "ImportError: no torch"),
        (
            "evaluators",
            dict,
            "found <class 'dict'>, expected a subclass of pytest_llmeval.Evaluator",
        ),
        ("plugins", ImportError("no torch"), "ImportError: no torch"),
        ("plugins", 3, "found 3, expected a function register(registry)"),
        ("plugins", lambda registry: registry.nothing, "AttributeError: 'Registry' object has no attribute 'nothing'"),
    ],
)
def test_an_installed_package_that_is_broken_is_named(points: list[Point], group: str, found: Any, reason: str) -> None:
    points.append(Point("mine", found, group=f"pytest_llmeval.{group}"))
    with pytest.raises(EvaluatorError) as caught:
        Registry.installed()
    message, _, line = str(caught.value).partition(" (tests/")
    assert message == f"entry point 'mine' of pytest_llmeval.{group} (some_package:Thing): {reason}"
    assert line.startswith("suites/test_registry.py:") or not line


def test_a_name_that_two_entry_points_add_names_both(points: list[Point], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.ReportFormat, "KNOWN", {})
    for name, write in (("first", print), ("second", id)):
        add = partial(lambda write, added: added.register_report_format(".rst", write), write)
        points.append(Point(name, add, group="pytest_llmeval.plugins"))
    message = (
        r"entry point 'second' of .*: the report format name '\.rst' is taken by entry point 'first' "
        r"\(tests/suites/test_registry\.py:\d+\): choose another \(tests/suites/test_registry\.py:\d+ in <lambda>\)$"
    )
    with pytest.raises(EvaluatorError, match=message):
        Registry.installed()


LAZY = "collections:OrderedDict"


def test_a_class_given_by_an_import_string_is_imported_when_it_is_asked_for() -> None:
    some = Registry()
    assert some.register("no_such_package:Thing", name="thing") == "no_such_package:Thing"
    some.register("pytest_llmeval.evaluators:TextEvaluator", name="text")
    some.register_source("pytest_llmeval.data.formats._rows:CsvSource", name="csv")
    assert (list(some), some.sources) == (["text", "thing"], ("csv",))
    assert (some.get("text").name, some.source("csv").format) == ("text", "csv")
    with pytest.raises(
        EvaluatorError, match=r"^evaluator 'thing' \(no_such_package:Thing\): ModuleNotFoundError: No mod"
    ):
        some.get("thing")


def test_an_evaluator_that_fails_on_import_names_the_users_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_on_import.py").write_text("import math\nWIDTH = math.sqrt(-1)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    own = Registry()
    own.register("breaks_on_import:Thing", name="thing")
    with pytest.raises(EvaluatorError, match=r"math domain error \(breaks_on_import\.py:2 in <module>\)$"):
        own.get("thing")


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        ("pytest_llmeval.evaluators:TextEvaluator", "", "expected 'package.module:Class' and its name"),
        ("pytest_llmeval.evaluators._text.TextEvaluator", "text", "expected 'package.module:Class' and its name"),
        ("pytest_llmeval.evaluators:TextEvaluator", "words", "registered as 'words', expected 'text', its name"),
        (LAZY, "dict", "found <class 'collections.OrderedDict'>, expected a subclass of pytest_llmeval.Evaluator"),
    ],
)
def test_an_import_string_that_leads_to_no_evaluator_is_refused(given: str, name: str, message: str) -> None:
    some = Registry()

    def use() -> None:
        some.register(given, name=name)
        some.get(name)

    with pytest.raises(EvaluatorError, match=message):
        use()


def test_an_import_string_and_its_class_are_the_same_evaluator() -> None:
    some = Registry.shipped()
    some.register("pytest_llmeval.evaluators:TextEvaluator", name="text")
    some.register(some.get("text"))
    some.register("pytest_llmeval.evaluators:TextEvaluator", name="text")
    with pytest.raises(
        EvaluatorError, match="the evaluator name 'text' is taken by TextEvaluator of pytest_llmeval: choose another"
    ):
        some.register("pytest_llmeval.evaluators:Classification", name="text")


@dataclass(frozen=True)
class Lines(FileSource):
    format = "lines"

    def read(self, file: CaseFile) -> None:
        for number, line in enumerate(file.path.read_text(encoding="utf-8").splitlines(), 1):
            file.add(Case(str(number), line, line=number))


@dataclass(frozen=True)
class NoReader(FileSource):
    format = "no_reader"


def test_a_registered_source_is_found_by_its_format() -> None:
    some = Registry()
    assert some.register_source(Lines) is Lines
    assert (some.sources, some.source("lines")) == (("lines",), Lines)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Length, "expected a subclass of pytest_llmeval.data.formats.Source"),
        (NoReader, "^NoReader: missing methods: read$"),
        (
            type("Csv", (Lines,), {"format": "csv"}),
            "^the source name 'csv' is taken by CsvSource of pytest_llmeval: choose another$",
        ),
    ],
)
def test_what_is_no_source_is_refused_with_the_reason(wrong: Any, message: str) -> None:
    with pytest.raises(LlmevalError, match=message):
        Registry.installed().register_source(wrong)


def test_a_command_name_that_is_taken_is_refused() -> None:
    some = Registry.shipped()
    with pytest.raises(LlmevalError, match=r"^the command name 'cache' is taken by pytest_llmeval: choose another$"):
        some.register_command("cache", print, help="count lines")


def test_every_name_that_ships_leads_to_what_it_names() -> None:
    some = Registry.shipped()
    assert {name: some.get(name).name for name in some} == {name: name for name in some}
    assert {name: some.source(name).format for name in some.sources} == {name: name for name in some.sources}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": ["f1"]},
            "unknown key metric, did you mean metrics?",
        ),
        ({"metrics": ["f2"]}, "metrics[0]: found the text 'f2' (did you mean 'f1'?), expected one of 'exact_match', "),
        ({"metrics": 3}, "metrics: found the number 3, expected a list"),
        ({"metrics": ["f1", 3]}, "metrics[1]: found the number 3, expected one of 'exact_match', "),
        ({"metrics": []}, "found metrics (), expected one or more different names"),
        ({"tokenizer": None}, "tokenizer: found nothing (null), expected text"),
        ({"tokenizer": "word"}, "did you mean words?"),
    ],
)
def test_a_wrong_option_is_told_as_in_a_suite_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("text", **options)
    assert str(caught.value).startswith("evaluator 'text': ")
    assert message in str(caught.value)


def test_several_wrong_options_are_told_at_once() -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("text", metrics=3, tokenizer=4)
    assert str(caught.value).count("found the number") == 2


def test_options_given_as_lists_are_kept_as_tuples() -> None:
    assert get_evaluator("text", metrics=["f1"]) == get_evaluator("text", metrics=("f1",))


def test_a_registered_tokenizer_can_be_named_in_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TOKENIZERS", dict(tokens._TOKENIZERS))
    register_tokenizer("commas", lambda text: text.split(","))
    evaluator = get_evaluator("text", metrics=["f1"], tokenizer="commas")
    assert evaluator.evaluate("a b,c", "c,d")["f1"] == 0.5
    with pytest.raises(ValueError, match="tokenizer 'commas' exists already: choose another name"):
        register_tokenizer("commas", str.split)


def _backwards(case: Case, near: Neighbours) -> Any:
    del near
    return case.prediction[::-1]


BACKWARDS = Mutator("backwards", "it is written backwards", _backwards)
MUTATORS = (BACKWARDS,)
NO_MUTATORS = (BACKWARDS, "backwards")


def test_mutators_are_registered_themselves_or_by_import_strings() -> None:
    some = Registry()
    assert some.register_mutator(BACKWARDS) is BACKWARDS
    some.register_mutator("test_registry:MUTATORS")
    assert some.mutators == (BACKWARDS,), "the same one twice is one"
    assert some.copy().mutators == (BACKWARDS,)
    copied = some.copy()
    copied.register_mutator(Mutator("other", "it is another one", _backwards))
    assert len(some.mutators) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("test_registry", "found 'test_registry', expected a Mutator or 'package.module:NAME'"),
        (_backwards, "expected a pytest_llmeval.Mutator"),
    ],
)
def test_what_is_no_mutator_is_not_registered(given: Any, said: str) -> None:
    with pytest.raises(LlmevalError, match=re.escape(said)):
        Registry().register_mutator(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("test_registry:ABSENT", "mutators 'test_registry:ABSENT': AttributeError"),
        ("test_registry:NO_MUTATORS", "mutators 'test_registry:NO_MUTATORS': found 'backwards', expected a"),
        (
            Mutator("backwards", "it is another one", _backwards),
            "test_registry.py: choose another",
        ),
    ],
)
def test_mutators_that_cannot_be_used_are_named(given: Any, said: str) -> None:
    some = Registry(mutators=[BACKWARDS])
    some.register_mutator(given)
    with pytest.raises(LlmevalError, match=re.escape(said)):
        _ = some.mutators


def test_the_mutators_that_ship_have_names_and_reasons() -> None:
    shipped = Registry.installed().mutators
    assert all(each.name.isidentifier() and each.why for each in shipped)
    assert [each.name for each in shipped if bool(each.advice) == each.equivalent] == []
