"""Construction of targets from their settings."""

__all__ = ("network_target",)

from pathlib import Path

from pytest_llmeval.services.retrying import RunCalls
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.spec import TargetSpec


def network_target(spec: TargetSpec, folder: Path, calls: RunCalls) -> BatchTarget:
    """Return the HTTP service or the command that a suite names; nothing is connected or started before the first call.

    Args:
        spec: Checked; it names one of them.
        folder: The suite file's, in which a command runs.
        calls: Of the run.
    """
    if spec.http is not None:
        from pytest_llmeval.targets.http import HttpTarget

        return HttpTarget(spec.http, calls=calls)
    from pytest_llmeval.targets.command import CommandTarget

    return CommandTarget(spec.command or (), folder, spec.timeout)
