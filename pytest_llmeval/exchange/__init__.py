"""Exchange of files with other tools."""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.exchange._ledger import ImportedSource, ImportedSuite, ImportOptions
    from pytest_llmeval.exchange._result_formats import ResultFormat, Scores
    from pytest_llmeval.exchange.gating import GateVerdict, gate
    from pytest_llmeval.extend import Registry


_RECORDS = ("*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv")
_IMPORTERS = {
    "promptfoo": (
        "promptfoo._config:import_promptfoo",
        ("promptfooconfig*.json", "promptfooconfig*.yaml", "promptfooconfig*.yml"),
    ),
    "openai-evals": ("_openai_evals:import_openai", ("*.json", "*.yaml", "*.yml")),
    "pydantic-evals": ("_pydantic_evals:import_pydantic", ("*.json", "*.yaml", "*.yml")),
    "deepeval": ("_records:import_deepeval", ("*.csv", "*.json", "*.jsonl")),
    "inspect-ai": ("_inspect_ai:import_inspect", ("*.eval", "*.csv", "*.json", "*.jsonl")),
    "plugin-evals": ("_skill_evals:import_plugin_evals", ()),
    "skill-creator": ("_skill_evals:import_skill_evals", ("evals.json",)),
    "ragas": ("_records:import_ragas", _RECORDS),
    "braintrust": ("_records:import_braintrust", _RECORDS),
    "langsmith": ("_records:import_langsmith", _RECORDS),
    "table": ("_records:import_table", _RECORDS),
}
"""Name of each import format to its function and the patterns of its files."""


def register(registry: "Registry") -> None:
    """Add commands, sources, formats, and the extensions for spans, agent results and sent scores."""
    registry.register_command(
        "cases", f"{__name__}.traces._cases:add_arguments", help="append traces of production to a suite as test cases"
    )
    registry.register_command(
        "export", f"{__name__}._commands:add_export_arguments", help="take a report to another tool"
    )
    registry.register_command(
        "gate", f"{__name__}._commands:add_gate", help="compare the results of any runner with a baseline or limits"
    )
    registry.register_command(
        "import",
        f"{__name__}._commands:add_arguments",
        help="convert datasets and assertions of other tools",
        group="start",
    )
    registry.register_source(f"{__name__}._result_suites:ResultsSource", "results")
    registry.register_source(f"{__name__}.traces:TracesSource", "traces")
    for name, (function, patterns) in _IMPORTERS.items():
        registry.register_importer(name, f"{__name__}.{function}", patterns)
    registry.register_results_formats(f"{__name__}._result_formats:FORMATS")
    registry.register_export("mlflow", f"{__name__}._mlflow:add_mlflow", help="runs of an experiment")
    registry.extend("traced", f"{__name__}.traces._otel:answer_traced")
    registry.extend("read", f"{__name__}._agent_libraries:as_prediction")
    registry.extend("sent", f"{__name__}.traces._otel:send_scores")


_HOMES = {
    "_ledger": (
        "ImportOptions",
        "ImportedSource",
        "ImportedSuite",
    ),
    "gating": (
        "GateVerdict",
        "gate",
    ),
    "_result_formats": (
        "ResultFormat",
        "Scores",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
