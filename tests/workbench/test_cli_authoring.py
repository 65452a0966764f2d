"""What authors of suites look up: the commands ``schema`` and ``evaluators``."""

import json
from dataclasses import dataclass, field

import pytest

from pytest_llmeval import Metric, get_evaluator
from pytest_llmeval.cli import main
from pytest_llmeval.suites import Registry
from pytest_llmeval.suites._schema import suite_schema


def test_schema_prints_the_schema_of_suite_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == suite_schema(Registry.installed())


def test_evaluators_lists_every_evaluator_with_its_metrics_and_every_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluators"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    heads = [line for line in lines if line and not line.startswith((" ", "("))]
    assert heads[:3] == ["text", "judge", "claims"]
    assert sorted(heads[:-2]) == sorted(Registry.installed())
    assert heads[-2:] == ["checks", "sources"]
    checks = " ".join(lines[lines.index("checks") + 1 : lines.index("sources") - 1]).replace(",", "").split()
    assert set(checks) == set(Registry.installed().checks)
    assert lines[lines.index("text") + 1] == "  exact_match, f1, rouge1, rouge2, rougeL, bleu1, bleu2, bleu4, meteor"
    assert lines[lines.index("claims") + 1].startswith("  faithfulness, hallucination_rate (-), context_recall")
    assert "near_misses (-), " in out
    assert set(" ".join(lines[lines.index("sources") + 1 : -2]).replace(",", "").split()) == set(
        Registry.installed().sources
    )


def test_evaluators_name_lists_direction_and_signature_of_each_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluators", "narrative"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        name for name in Registry.installed() if name.startswith("narrative")
    ]
    rows = [line.split() for line in lines]
    assert ["window_diff", "lower", "window:half-mean-segment|segeval:compatible|v:1"] in rows
    place = next(number for number, row in enumerate(rows) if row[0] == "overall_score")
    signature = get_evaluator("narrative").describe()[0].signature
    assert "".join([rows[place][2], *(row[0] for row in rows[place + 1 :])]).startswith(signature)


@pytest.mark.parametrize("name", [None, *Registry.installed()])
def test_evaluators_fits_eighty_columns(name: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluators", *filter(None, [name])]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_an_unknown_evaluator_is_an_error_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluators", "txt"]) == 1
    known = "unknown evaluator txt, did you mean text?"
    assert capsys.readouterr().err.startswith(known)


def test_an_evaluator_whose_metrics_cannot_be_listed_hides_no_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Choosy(get_evaluator("text").__class__):  # type: ignore[misc]
        name = "choosy"
        limit: int = field(kw_only=True)

    @dataclass(frozen=True)
    class Broken(get_evaluator("text").__class__):  # type: ignore[misc]
        name = "broken"

        def describe(self) -> list[Metric]:
            raise RuntimeError("no metrics")

    registry = Registry.installed()
    registry.register(Choosy)
    registry.register(Broken)
    registry.register("no_such_package:Thing", name="absent")
    monkeypatch.setattr(Registry, "installed", lambda: registry)
    assert main(["evaluators"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("choosy") + 1] == "  its metrics depend on options: limit is missing"
    assert lines[lines.index("broken") + 1] == "  cannot be listed: RuntimeError: no metrics"
    assert lines[lines.index("absent") + 1].startswith("  evaluator 'absent' (no_such_package:Thing): ")
    assert "text" in lines
