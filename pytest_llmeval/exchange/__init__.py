"""Other tools: importers that make suites of their files, and what takes scores to them; one module per tool."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


_RECORDS = ("*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv")
_IMPORTERS = {
    "promptfoo": (
        "promptfoo.config:import_promptfoo",
        ("promptfooconfig*.json", "promptfooconfig*.yaml", "promptfooconfig*.yml"),
    ),
    "openai-evals": ("openai_evals:import_openai", ("*.json", "*.yaml", "*.yml")),
    "pydantic-evals": ("pydantic_evals:import_pydantic", ("*.json", "*.yaml", "*.yml")),
    "deepeval": ("records:import_deepeval", ("*.csv", "*.json", "*.jsonl")),
    "inspect-ai": ("inspect_ai:import_inspect", ("*.eval", "*.csv", "*.json", "*.jsonl")),
    "plugin-evals": ("skill_evals:import_plugin_evals", ()),
    "skill-creator": ("skill_evals:import_skill_evals", ("evals.json",)),
    "ragas": ("records:import_ragas", _RECORDS),
    "braintrust": ("records:import_braintrust", _RECORDS),
    "langsmith": ("records:import_langsmith", _RECORDS),
    "table": ("records:import_table", _RECORDS),
}
"""Name of each import format to its function and the patterns of its files."""


def register(registry: "Registry") -> None:
    """Add commands, sources, formats, and the extensions for spans, agent results and sent scores."""
    registry.register_command(
        "cases", f"{__name__}.traces.cases:add_arguments", help="append traces of production to a suite as cases"
    )
    registry.register_command(
        "export", f"{__name__}.commands:add_export_arguments", help="take a report to another tool"
    )
    registry.register_command("gate", f"{__name__}.commands:add_gate", help="judge the results of any runner")
    registry.register_command(
        "import", f"{__name__}.commands:add_arguments", help="make suites of the files of other tools", group="start"
    )
    registry.register_source(f"{__name__}.result_suites:ResultsSource", "results")
    registry.register_source(f"{__name__}.traces:TracesSource", "traces")
    for name, (function, patterns) in _IMPORTERS.items():
        registry.register_importer(name, f"{__name__}.{function}", patterns)
    registry.register_results_formats(f"{__name__}.result_formats:FORMATS")
    registry.register_export("mlflow", f"{__name__}.report_files:add_mlflow", help="runs of an experiment")
    registry.extend("traced", f"{__name__}.traces.otel:answer_traced")
    registry.extend("read", f"{__name__}.agent_libraries:as_prediction")
    registry.extend("sent", f"{__name__}.traces.otel:send_scores")
