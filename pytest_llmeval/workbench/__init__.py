"""The workbench beside the kernel: commands with which people make suites, compare runs and try what suites notice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry

COMMANDS = {
    "comment": "write a report as Markdown for a pull request",
    "compare": "compare two JSON reports",
    "decide": "apply changed thresholds and gates to a report",
    "doctor": "say what would keep a run from working, and what it would cost",
    "history": "print the last runs and approvals of a suite, or draw them",
    "init": "write a first suite, a CI workflow and settings for a project",
    "mutate": "change answers, and list what a suite does not notice",
    "power": "plan how many cases find a drop",
    "review": "have people label the answers of a report",
}
"""Name of each command, which is that of its module, to its line in the list of commands."""


def register(registry: "Registry") -> None:
    """Add the commands."""
    for name, text in COMMANDS.items():
        registry.register_command(name, f"{__name__}.{name}:add_arguments", help=text)
