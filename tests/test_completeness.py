"""What ships is tested, typed and documented: run this after adding something; a failure says what to add where."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from examples import ARGUMENTS, CASES, EXAMPLES, GENERATORS, NOT_RECORDED, VERDICTS, without_example
from project import ROOT, script

import pytest_llmeval
from pytest_llmeval.data.formats._base import CELL_CHECKS
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.gates import RULES
from pytest_llmeval.reports import ReportFormat
from pytest_llmeval.suites import Registry, suite_schema

UNJUDGED = {"fact_check"}
"""Evaluators whose failing case is not put to their judge."""

DEVELOPMENT = {"benchmark", "docs", "test"}
"""Extras that users do not install."""


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def metric_options(schema: Any) -> Iterator[list[str]]:
    """Yield the values of each option ``metrics`` in a JSON Schema."""
    if isinstance(schema, dict) and "metrics" in schema.get("properties", {}):
        yield re.findall(r'"([^"]+)"', json.dumps(schema["properties"]["metrics"].get("items", {}).get("enum", [])))
    children = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for child in children:
        yield from metric_options(child)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_evaluator_has_an_example() -> None:
    lacking = set(Registry.installed()) - without_example(Registry.installed()) - EXAMPLES.keys()
    assert not lacking, f"add an entry for {listed(lacking)} to EXAMPLES in tests/examples.py"


def test_every_evaluator_without_an_example_has_generated_cases() -> None:
    lacking = without_example(Registry.installed()) - {each.build().name for each in GENERATORS.values()}
    assert not lacking, f"add a generator for {listed(lacking)} to _OWN in tests/examples.py"


def test_every_evaluator_without_an_example_has_a_recorded_failure() -> None:
    lacking = without_example(Registry.installed()) - CASES.keys() - NOT_RECORDED.keys()
    assert not lacking, (
        f"add a case for {listed(lacking)} to _FAILURES in tests/examples.py, or a reason to NOT_RECORDED there"
    )


def test_every_judged_evaluator_has_verdicts_on_its_failing_case() -> None:
    registry = Registry.installed()
    judged = {name for name in CASES.keys() & set(registry) if registry.get(name).asks}
    lacking = judged - VERDICTS.keys() - UNJUDGED
    assert not lacking, f"add the verdicts on {listed(lacking)} to VERDICTS in tests/examples.py"


def test_every_evaluator_that_reads_a_part_is_in_its_row() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \|(.*)\|$", page("predictions.md"), re.MULTILINE))
    registry = Registry.installed()
    for name in registry:
        part = registry.get(name).reads.part
        assert part == "prediction" or f"`{name}`" in rows[part], (
            f"add {name} to the row {part} of the table of parts in docs/predictions.md"
        )


def test_every_evaluator_is_described() -> None:
    """Each is in the table of docs/evaluators.md, which links to a section or page that names it."""
    rows = dict(re.findall(r"^\| \[`(.+?)`\]\((.+?)\) \|", page("evaluators.md"), re.MULTILINE))
    for name in Registry.installed():
        row = name if name in rows else name.partition(".")[0]
        assert row in rows, f"add a row for {name} to the table of docs/evaluators.md"
        target = rows[row].partition("#")[0] or "evaluators.md"
        assert re.search(rf"`{re.escape(name)}`|\b{re.escape(name)}:", page(target)), (
            f"describe {name} in docs/{target}"
        )


def test_every_metric_that_a_suite_can_choose_is_described() -> None:
    """The averages and labels of classification are described as a form of their metric."""
    metrics = {name for option in metric_options(suite_schema(Registry.installed())) for name in option}
    assert "rougeL" in metrics
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    plain = {name: re.sub(r"_(micro|macro|weighted)$", "", name.replace("[label]", "[x]")) for name in metrics}
    lacking = {name for name in metrics if not re.search(rf"`({re.escape(name)}|{re.escape(plain[name])})`", pages)}
    assert not lacking, f"describe {listed(lacking)} in docs/evaluators.md"


def test_every_check_has_an_argument() -> None:
    lacking = Checks.kinds().keys() - ARGUMENTS.keys()
    assert not lacking, f"add an argument of {listed(lacking)} to _ARGUMENTS in tests/examples.py"


def test_every_check_can_be_a_column_of_a_csv_file() -> None:
    shipped = set(Registry.installed().checks)
    assert not shipped - set(CELL_CHECKS), (
        f"add {listed(shipped - set(CELL_CHECKS))} to CELL_CHECKS in pytest_llmeval/data/formats/_base.py"
    )
    assert not set(CELL_CHECKS) - shipped, (
        f"take {listed(set(CELL_CHECKS) - shipped)}, which is no check, "
        "out of CELL_CHECKS in pytest_llmeval/data/formats/_base.py"
    )


def test_every_check_is_described() -> None:
    text = page("evaluators.md")
    lacking = {name for name in Checks.kinds() if f"`{name}`" not in text}
    assert not lacking, f"add a row for {listed(lacking)} to the table of docs/evaluators.md"


def test_every_source_is_described() -> None:
    text = page("sources.md")
    lacking = {name for name in Registry.installed().sources if not re.search(rf"`{name}`|\b{name}:", text)}
    assert not lacking, f"describe the source {listed(lacking)} in docs/sources.md"


def test_every_format_of_another_tool_is_described() -> None:
    text = page("import.md")
    lacking = {name for name in Registry.installed().importers if f"`{name}`" not in text}
    assert not lacking, f"describe the format {listed(lacking)} in docs/import.md"


def test_every_export_is_described() -> None:
    text = page("reports.md")
    lacking = {name for name in Registry.installed().exports if f"`llmeval export {name} " not in text}
    assert not lacking, f"add a row for llmeval export {listed(lacking)} to the first table of docs/reports.md"


def test_every_format_of_reports_is_described() -> None:
    module = script("options_page")
    assert module.REPORTS.read_text(encoding="utf-8") == module.reports_page(), "run python .ci/options_page.py"
    sections = {
        re.sub(r"\W+", "-", title.lower()) for title in re.findall(r"^##+ (.+)$", page("reports.md"), re.MULTILINE)
    }
    lacking = {form.section for form in ReportFormat.KNOWN.values()} - sections - {""}
    assert not lacking, f"add the section {listed(lacking)} to docs/reports.md"


def test_every_extra_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = page("install.md")
    lacking = {name for name in project["optional-dependencies"].keys() - DEVELOPMENT if f"\n| `{name}` |" not in text}
    assert not lacking, f"add a row for the extra {listed(lacking)} to docs/install.md"


def test_the_keys_of_a_suite_file_are_described_as_they_are_declared() -> None:
    module = script("suite_schema")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run python .ci/suite_schema.py"


def test_the_keys_of_gates_are_described_as_rules_declare_them() -> None:
    module = script("suite_schema")
    for path, content in module.gates_pages().items():
        assert path.read_text(encoding="utf-8") == content, "run python .ci/suite_schema.py"


def test_the_schema_of_reports_describes_every_key_as_the_form_does() -> None:
    module = script("report_schema")
    assert module.PUBLISHED.read_text(encoding="utf-8") == module.text(), "run python .ci/report_schema.py"
    keys = {
        f"{form}.{key}": part["description"]
        for form, declared in json.loads(module.text())["$defs"].items()
        for key, part in declared["properties"].items()
    }
    lacking = {key for key, description in keys.items() if not description}
    assert not lacking, f"describe {listed(lacking)} in the docstring of its class"


def test_every_rule_of_gates_is_described() -> None:
    text = page("thresholds-and-gates.md") + page("regressions.md")
    lacking = {tag for rule in RULES for tag in rule.tags if f"`{tag}`" not in text}
    assert not lacking, f"describe gates with {listed(lacking)} in docs/thresholds-and-gates.md"


def test_every_public_name_is_described() -> None:
    text = page("python-api.md") + page("api.md")
    lacking = {name for name in pytest_llmeval.__all__ if name not in text}
    assert not lacking, f"describe {listed(lacking)} in docs/python-api.md or docs/api.md"


def test_the_published_schema_is_that_of_what_ships() -> None:
    module = script("suite_schema")
    assert module.PUBLISHED.read_text(encoding="utf-8") == module.text(), "run python .ci/suite_schema.py"
    for template in (ROOT / "pytest_llmeval" / "workbench" / "templates").glob("*.txt"):
        (first, *_) = template.read_text(encoding="utf-8").splitlines()
        assert first == f"# yaml-language-server: $schema={module.SCHEMA_URL}"
    assert module.SCHEMA_URL.endswith(f"/main/{module.PUBLISHED.relative_to(ROOT).as_posix()}")


def test_the_types_are_those_of_the_schema() -> None:
    module = script("entries_stub")
    made = "".join(module.stub().split()).replace(",)", ")").replace('"', "'")
    there = "".join(module.STUB.read_text(encoding="utf-8").split()).replace(",)", ")").replace('"', "'")
    assert made.replace(",]", "]") == there.replace(",]", "]"), "run python .ci/entries_stub.py"
