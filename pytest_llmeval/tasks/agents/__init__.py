"""Agents.

`tools` compares calls by `arguments` and `policies`, `conversation` has the evaluators of conversations and of their
simulated users, and the tasks of tau-bench, and `routing` measures whether a request reaches the right one of the tools
that `catalogue` reads. `workspace` runs a coding agent in a fresh folder for each case.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.tasks.agents._catalogue import ListedTool, RecordedResults, read_catalogue
    from pytest_llmeval.tasks.agents._workspace import FamilyProgram


def register(registry: "Registry") -> None:
    """Register evaluators of agents, sources of tau-bench and routing tasks, and targets in a workspace."""
    registry.register(f"{__name__}._conversation:Conversation", name="conversation")
    registry.register(f"{__name__}._conversation:UserDrift", name="user_drift")
    registry.register(f"{__name__}._routing:Routing", name="routing")
    registry.register(f"{__name__}._tools:Tools", name="tools")
    registry.register_source(f"{__name__}._conversation:TauSource", name="tau")
    registry.register_source(f"{__name__}._routing:ToolsSource", name="tools")
    registry.extend("placed", f"{__name__}._workspace:WorkspaceTarget")


_HOMES = {
    "_catalogue": (
        "ListedTool",
        "RecordedResults",
        "read_catalogue",
    ),
    "_workspace": ("FamilyProgram",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
