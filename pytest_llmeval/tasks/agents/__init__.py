"""Agents: the calls of tools that they make, the conversations that they lead, and the tools that they choose.

`tools` compares calls by `arguments` and `policies`, `conversation` has the evaluators of conversations and of their
simulated users, and the tasks of tau-bench, and `routing` measures whether a request reaches the right one of the tools
that `catalogue` reads.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry


def register(registry: "Registry") -> None:
    """Add the evaluators, the source of tasks of tau-bench, and that of requests to route."""
    registry.register(f"{__name__}.conversation:Conversation", name="conversation")
    registry.register(f"{__name__}.conversation:UserDrift", name="user_drift")
    registry.register(f"{__name__}.routing:Routing", name="routing")
    registry.register(f"{__name__}.tools:Tools", name="tools")
    registry.register_source(f"{__name__}.conversation:TauSource", name="tau")
    registry.register_source(f"{__name__}.routing:ToolsSource", name="tools")
