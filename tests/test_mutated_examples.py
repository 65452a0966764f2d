"""The example suites are mutated themselves: what survives there is known, with the reason."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from project import ROOT

from pytest_llmeval.cli import main
from pytest_llmeval.workbench._console import suite_files

EXAMPLES: Final = ROOT / "example_suites"
FAIL_OVER: Final = 0.2

LIVE: Final = (
    "agent/conversations",
    "agent_user/tickets",
    "case_retrieval/live/search",
    "memory_qa/repeats",
    "memory_qa/systems",
    "memory_qa/target",
    "screens/regression",
    "screens/screens",
)
"""Suites without recorded answers, for lack of which the command says so: a run with --llmeval-mutate has them."""

_WORDS: Final = "f1 counts the words around an answer, which the limits of single cases allow for"
_TRACE: Final = "its messages are read for calls of tools alone; agent/conversations judges turns"
_UNKNOWN: Final = "nobody knows what is right in production: only what is never right is checked"

EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "agent/tools": {"roles_swapped": _TRACE, "turn_dropped": _TRACE, "turn_doubled": _TRACE},
    "case_retrieval/bm25": {"positive_doubled": "precision counts a document as often as it is listed"},
    "case_retrieval/systems": {
        "positive_doubled": "precision counts a document as often as it is listed",
        "first_positive_removed": "it compares two searches by hit rates; bm25 has gates on the other measures",
    },
    "fact_check/systems": dict.fromkeys(
        ("evidence_dropped", "evidence_invented", "other_evidence"),
        "it compares the verdicts of two systems; fact_check/fact_check has gates on evidence",
    ),
    "failing/shows_a_failing_gate": {"gate pass_rate >= 1": "cases of this suite have no limits, so they cannot fail"},
    "memory_qa/memory_qa": {"around": _WORDS},
    "memory_qa/memory_qa_zh": {"around": _WORDS, "date_form": "characters of dates are compared as they are written"},
    "rag/rag": {
        "case": "quotations and names have to be letter by letter",
        "white_space": "quotations have to be letter by letter",
    },
    "traces/traces": dict.fromkeys(
        (
            *("number", "other_answer", "question", "roles_swapped", "turn_doubled", "unsupported", "truncated"),
            *("date", "facts_swapped", "negation", "unit"),
        ),
        _UNKNOWN,
    ),
}
"""Suite to what it does not notice, or takes for wrong, with the reason why that is so."""


def named(finding: str) -> str:
    """Return what a finding is about: a mutator, a gate, or what stands before its colon."""
    return re.sub(r"^(gate [^:]+):.*", r"\1", finding) if finding.startswith("gate ") else finding.partition(":")[0]


def name_of(path: Path) -> str:
    return path.relative_to(EXAMPLES).as_posix().removesuffix(".eval.yaml")


SUITES: Final = {name_of(path): path for path in suite_files(EXAMPLES)}


SELDOM = {
    *("case_retrieval/bm25", "emotion_cause/systems", "fact_check/fact_check"),
    *("memory_qa/memory_qa_zh", "narrative/hasty", "narrative/systems"),
}
"""Suites whose mutants take seconds, and whose evaluators others have."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.release] * (name in SELDOM)) for name in SUITES if name not in LIVE],
)
def test_what_survives_in_an_example_is_explained(name: str, here: Path) -> None:
    assert main(["mutate", str(SUITES[name]), "--json", "m.json"]) == 0
    suites: list[Any] = json.loads((here / "m.json").read_text(encoding="utf-8"))["suites"]
    assert sum(each["mutants"] for each in suites) >= 10
    found = {named(finding): finding for each in suites for finding in each["findings"]}
    assert found.keys() == EXPLAINED.get(name, {}).keys(), found


@pytest.mark.parametrize("name", LIVE)
def test_an_example_without_answers_says_so(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del here
    assert main(["mutate", str(SUITES[name])]) == 1
    assert "no case has an answer that passes, so none can be broken" in capsys.readouterr().err
