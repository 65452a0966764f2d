"""Each regular expression of the package takes a number of steps that grows as its text does, whatever the text."""

import ast
import importlib
import re
from collections.abc import Callable, Iterator, KeysView, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from project import ROOT
from regex_steps import Matcher, TooManyStepsError, attacks, steps

SHORT, LONG = 16, 32
FEW = 2
"""Texts that every run tries on each pattern, evenly drawn from those that hurt; a release tries all."""
STEEPEST = 2.6
"""Most times as many steps for a text of twice the length: linear is 2, quadratic 4."""

AT_START = {"match", "fullmatch"}
OF_USERS = "patterns of users' files: compared within a time limit, or only compiled"
OF_NAMES = "a name in place of a part of a literal pattern, without repeats"

ON_DEMAND: Mapping[str, str | Callable[[ModuleType], object]] = {
    "baselines._files:remembered": OF_NAMES,
    "core._errors:code_of": lambda module: module.FAULT_CODES,
    "data._model_text:_closing_tag": lambda module: module._closing_tag("think"),
    "evaluators._patterns:compile": OF_USERS,
    "evaluators.checks._contents:_pii_patterns": lambda module: module._pii_patterns(),
    "evaluators.checks._contents:_refusal_phrases": lambda module: module._refusal_phrases()[0],
    "evaluators.checks._contents:_matched_number": OF_NAMES,
    "evaluators.measures._tokens:_character": lambda module: module._character(),
    "evaluators.measures._tokens:_penn_rules": lambda module: [re.compile(text) for text, _ in module._CONTRACTIONS],
    "evaluators.measures._tokens:_mark": lambda module: module._mark(),
    "exchange._causes:_ways_of": lambda module: list(module._OPEN_STEPS),
    "exchange._readers:_has_case": "a pattern of a declared table: positions such as 'Case 4'",
    "exchange._readers:_score": "a pattern of a declared table: parts of names of metrics",
    "exchange.promptfoo._assertions:written": OF_USERS,
    "suites._registry:register_report_format": "a pattern of a plugin: the ends of the names of its report files",
    "judges.questions._replies:score_probabilities": OF_NAMES,
    "judges.questions._replies:verdict_pattern": lambda module: module._SAYS,
    "baselines._python_scores:_defines": OF_NAMES,
    "reports._files:of_path": OF_NAMES,
    "reports._tables:last": OF_NAMES,
    "services._secrets:_without": OF_NAMES,
    "tasks.fact_check._mentions:_chinese_words": lambda module: [
        pattern
        for pattern in module._chinese_words()
        if pattern is not module._chinese_words().body  # a whole name
    ],
    "tasks.fact_check._mentions:_english_words": lambda module: module._english_words(),
    "tasks.fact_check._mentions:_pattern": lambda module: module._pattern(),
    "tasks.mcp._commands:_in_text": lambda module: module._INSTRUCTIONS,
    "tasks.retrieval._ranking:_separator": lambda module: module._separator(";,", outside=True),
}
"""Functions that make patterns while they run: what gives the patterns, or why they need no look."""


class Found(ast.NodeVisitor):
    """The uses of `re` in a module.

    Attributes:
        written: Pattern and method of those that are written where they are used.
        makers: Names of the functions that use patterns of other texts.
    """

    def __init__(self) -> None:
        self.written: list[tuple[str, str]] = []
        self.makers: set[str] = set()
        self.functions: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=ast.Name(id="re" | "regex"), attr=method) if node.args and method != "escape":
                match node.args[0]:
                    case ast.Constant(value=str(pattern)):
                        self.written.append((pattern, method))
                    case _ if self.functions:
                        self.makers.add(self.functions[-1])
        self.generic_visit(node)


def patterns_in(value: object, *, texts: bool = False) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in data, and if asked for, those that are still texts."""
    match value:
        case re.Pattern(pattern=str()):
            yield value
        case Mapping():
            yield from (pattern for entry in value.values() for pattern in patterns_in(entry, texts=texts))
        case tuple() | list() | KeysView():
            yield from (pattern for entry in value for pattern in patterns_in(entry, texts=texts))
        case str() if texts:
            yield re.compile(value)


@cache
def found_in_package() -> tuple[dict[str, tuple[re.Pattern[str], bool]], set[str]]:
    """Return every pattern with whether it is searched for, and the functions that make patterns while they run."""
    patterns, makers = {}, set()
    for path in sorted((ROOT / "pytest_llmeval").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "import re" not in source or path.name == "__main__.py":
            continue
        place = module_name(path)
        found = Found()
        found.visit(ast.parse(source))
        module = importlib.import_module(f"pytest_llmeval.{place}" if place else "pytest_llmeval")
        makers |= {f"{place}:{maker}" for maker in found.makers}
        for name, value in vars(module).items():
            if re.search(rf"^{name}\b", source, re.MULTILINE):
                methods = set(re.findall(rf"\b{name}\.(\w+)\(", source))
                anywhere = not methods or not methods <= AT_START
                for number, pattern in enumerate(patterns_in(value)):
                    patterns[f"{place}:{name}{number or ''}"] = pattern, anywhere
        known = {pattern.pattern for pattern, _ in patterns.values()}
        for written, method in found.written:
            if written not in known:
                patterns[f"{place}:{method} {written}"] = re.compile(written), method not in AT_START
        for maker in sorted(found.makers):
            give = ON_DEMAND.get(f"{place}:{maker}", "")
            if callable(give):
                for number, pattern in enumerate(patterns_in(give(module), texts=True)):
                    patterns[f"{place}:{maker} {number}"] = pattern, True
    return patterns, makers


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "pytest_llmeval").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def chosen_attacks(pattern: re.Pattern[str], whole: bool) -> list[Callable[[int], str]]:
    every = list(attacks(pattern))
    return every if whole else every[:: max(1, len(every) // FEW)]


def worst(pattern: re.Pattern[str], anywhere: bool, *, whole: bool = True) -> tuple[float, str]:
    """Return the steepest growth of the steps of a pattern, and the beginning of the text with it."""
    steepest, text = 0.0, ""
    for make in chosen_attacks(pattern, whole):
        try:
            few = max(steps(pattern, make(SHORT), anywhere=anywhere), SHORT)
            growth = steps(pattern, make(LONG), anywhere=anywhere, most=STEEPEST * few + 1) / few
        except TooManyStepsError:
            growth = float("inf")
        if growth > steepest:
            steepest, text = growth, make(2)
    return steepest, text


few_or_all = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.release)])


@few_or_all
def test_patterns_take_steps_as_their_texts_grow(whole: bool) -> None:
    patterns, _ = found_in_package()
    assert len(patterns) > 300
    growths = {name: worst(*found, whole=whole) for name, found in patterns.items()}
    assert {name: text for name, (growth, text) in growths.items() if growth > STEEPEST} == {}


@pytest.mark.parametrize("pattern", [r"(a|aa)+$", r"\s+$", r"\A\s*```\w*\s*?\n(.*)\n\s*```\s*\Z", r"\beyJ[\w-]+\."])
def test_slow_patterns_are_found(pattern: str) -> None:
    assert worst(re.compile(pattern, re.DOTALL), anywhere=True)[0] > STEEPEST


@few_or_all
def test_the_matcher_finds_what_python_does(whole: bool) -> None:
    patterns, _ = found_in_package()
    for pattern, _ in patterns.values():
        for make in chosen_attacks(pattern, whole):
            text = make(3)
            found = pattern.match(text)
            assert Matcher(pattern, text).end_at(0) == (found.end() if found else None), (pattern.pattern, text)


def test_functions_that_make_patterns_are_known() -> None:
    _, makers = found_in_package()
    assert makers == set(ON_DEMAND)
