"""Other tools: importers that make suites of their files, and what takes scores to them; one module per tool."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suites.registry import Registry


def register(registry: "Registry") -> None:
    """Add the commands, the sources, and what collects spans, reads results of agents and sends scores."""
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
    registry.extend("traced", f"{__name__}.traces.otel:answer_traced")
    registry.extend("read", f"{__name__}.agent_libraries:as_prediction")
    registry.extend("sent", f"{__name__}.traces.otel:send_scores")
