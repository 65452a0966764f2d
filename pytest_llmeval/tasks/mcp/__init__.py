"""Servers of the Model Context Protocol."""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.tasks.mcp._server import McpServer


def register(registry: "Registry") -> None:
    """Register the command ``llmeval mcp``."""
    registry.register_command(
        "mcp",
        f"{__name__}._commands:add_arguments",
        help="approve, compare and lint the tools of an MCP server",
        group="tasks",
    )


_HOMES = {
    "_server": ("McpServer",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
