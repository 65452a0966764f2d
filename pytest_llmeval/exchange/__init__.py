"""Files of other tools: importers that make suites of them, one module per tool."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry


def register(registry: "Registry") -> None:
    """Add the command."""
    registry.register_command(
        "import", f"{__name__}.commands:add_arguments", help="make suites of the files of other tools"
    )
