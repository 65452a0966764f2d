"""Verdicts of imported assertions are those of promptfoo: facts about its assertions, case by case."""

from typing import Any

import pytest
from project import run_import, write_source

from pytest_llmeval import Case, get_checks, score

FACTS: list[tuple[dict[str, Any], str, bool]] = [
    ({"type": "contains", "value": "Lima"}, "It is Lima.", True),
    ({"type": "contains", "value": "lima"}, "It is Lima.", False),
    ({"type": "contains", "value": 30}, "in 30 days", True),
    ({"type": "not-contains", "value": "Lima"}, "It is Quito.", True),
    ({"type": "not-contains", "value": "Lima"}, "It is Lima.", False),
    ({"type": "icontains", "value": "LIMA"}, "It is lima.", True),
    ({"type": "contains-all", "value": ["a", "b"]}, "b, a", True),
    ({"type": "contains-all", "value": ["a", "b"]}, "a", False),
    ({"type": "contains-all", "value": "a, b"}, "b and a", True),
    ({"type": "not-contains-all", "value": ["a", "b"]}, "a", True),
    ({"type": "contains-any", "value": ["x", "b"]}, "b", True),
    ({"type": "contains-any", "value": '"a, b",c'}, "a, b", True),
    ({"type": "contains-any", "value": '"a, b",c'}, "a b", False),
    ({"type": "not-contains-any", "value": ["x", "y"]}, "b", True),
    ({"type": "icontains-all", "value": ["A", "B"]}, "ab", True),
    ({"type": "icontains-any", "value": ["X", "B"]}, "ab", True),
    ({"type": "starts-with", "value": "It"}, "It is.", True),
    ({"type": "starts-with", "value": "it"}, "It is.", False),
    ({"type": "not-starts-with", "value": "Sure"}, "It is.", True),
    ({"type": "equals", "value": "Lima"}, "Lima", True),
    ({"type": "equals", "value": "Lima"}, "Lima\n", False),
    ({"type": "equals", "value": 4}, "4", True),
    ({"type": "not-equals", "value": ""}, "x", True),
    ({"type": "equals", "value": {"b": [1], "a": 2}}, '{"a": 2, "b": [1]}', True),
    ({"type": "equals", "value": {"a": 1}}, '{"a": 1, "b": 2}', False),
    ({"type": "equals", "value": {"a": 1}}, "not JSON", False),
    ({"type": "regex", "value": r"\bLi"}, "in Lima", True),
    ({"type": "regex", "value": r"^\d{2}$"}, "42", True),
    ({"type": "regex", "value": r"^\d{2}$"}, "42\n", False),
    ({"type": "regex", "value": r"^\d+$"}, "٤٢", False),
    ({"type": "regex", "value": r"a[$]\/b"}, "a$/b", True),
    ({"type": "regex", "value": r"(?<year>\d{4})-\k<year>"}, "2024-2024", True),
    ({"type": "regex", "value": "[^]x"}, "\nx", True),
    ({"type": "regex", "value": "[[]x"}, "[x", True),
    ({"type": "not-regex", "value": "b+"}, "aa", True),
    ({"type": "is-json"}, ' {"a": 1} ', True),
    ({"type": "is-json"}, "{'a': 1}", False),
    ({"type": "is-json"}, "42", True),
    ({"type": "is-json"}, '```json\n{"a": 1}\n```', False),
    ({"type": "is-json", "value": {"required": ["a"]}}, '{"a": 1}', True),
    ({"type": "is-json", "value": {"required": ["a"]}}, '{"b": 1}', False),
    ({"type": "is-json", "value": {"items": [{"type": "string"}]}}, "[1]", False),
    ({"type": "is-json", "value": {"items": {"pattern": r"^\d+$"}}}, '["42"]', True),
    ({"type": "is-json", "value": {"items": {"pattern": r"^\d+$"}}}, '["٤٢"]', False),
    ({"type": "is-json", "value": {"items": {"pattern": r"^\d+$"}}}, r'["42\n"]', False),
    ({"type": "is-json", "value": {"patternProperties": {"^a$": False}}}, r'{"a\n": 1}', True),
    ({"type": "is-json", "value": {"enum": [{"pattern": "^a$"}]}}, '{"pattern": "^a$"}', True),
    ({"type": "is-json", "value": "required: [a]"}, '{"a": 1}', True),
    ({"type": "not-is-json"}, "text", True),
    ({"type": "not-is-json", "value": {"required": ["a"]}}, '{"b": 1}', True),
    ({"type": "contains-json"}, 'Here: {"a": 1}.', True),
    ({"type": "contains-json"}, "nothing", False),
    ({"type": "contains-json", "value": {"required": ["a"]}}, 'x {"b": 1} {"a": 2}', True),
    ({"type": "levenshtein", "value": "Lima"}, "Lma", True),
    ({"type": "levenshtein", "value": "Lima"}, "Nairobi!", False),
    ({"type": "levenshtein", "value": "Lima", "threshold": 1}, "Lxmx", False),
    ({"type": "word-count", "value": 3}, " one  two\nthree ", True),
    ({"type": "word-count", "value": 3}, "one two", False),
    ({"type": "word-count", "value": {"min": 2, "max": 3}}, "one two", True),
    ({"type": "word-count", "value": {"min": 2}}, "one", False),
    ({"type": "not-word-count", "value": {"min": 2, "max": 3}}, "one", True),
    (
        {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "contains", "value": each} for each in "abc"]},
        "a b",
        True,
    ),
    (
        {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "contains", "value": each} for each in "abc"]},
        "a",
        False,
    ),
    ({"type": "assert-set", "assert": [{"type": "contains", "value": each} for each in "ab"]}, "a", False),
]
"""Assertion, answer, and whether promptfoo 0.118 lets it pass."""


def test_imported_assertions_give_the_verdicts_of_promptfoo(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tests = [{"vars": {}, "assert": [assertion], "providerOutput": answer} for assertion, answer, _ in FACTS]
    write_source(tmp_path, "suite.yaml", {"tests": tests})
    result = run_import(capsys, "promptfoo", "suite.yaml")
    from pytest_llmeval.data import InputFile

    cases = [case for _, case in InputFile(result.folder / "suite.jsonl", "suite").read_jsonl([])]
    verdicts = []
    for case in cases:
        scored = score(
            get_checks(*case.get("checks", ["not_imported"])), [Case(case["id"], prediction=case["prediction"])]
        )
        verdicts.append(scored.metrics["check_rate"].value == 1)
    wrong = [fact for fact, verdict in zip(FACTS, verdicts, strict=True) if fact[2] is not verdict]
    assert wrong == []
