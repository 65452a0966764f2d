"""Servers of the Model Context Protocol: their tools approved and linted, and the servers themselves as worlds."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the command."""
    registry.register_command(
        "mcp",
        f"{__name__}.commands:add_arguments",
        help="approve, compare and lint the tools of an MCP server",
        group="tasks",
    )
