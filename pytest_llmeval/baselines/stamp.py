"""The date and commit of an approval or a run."""

__all__ = ("Stamp", "day_of", "head_commit", "moment_of")

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple


class Stamp(NamedTuple):
    """When an approval happened.

    Attributes:
        day: ISO 8601, UTC; finer times would make equal files differ.
        commit: What was checked out; ``None`` outside a repository.
    """

    day: str
    commit: str | None


def day_of(moment: datetime) -> str:
    """Return the day that an approval is dated with: of the moment, or what the environment fixes for its builds.

    ``SOURCE_DATE_EPOCH`` is the convention of https://reproducible-builds.org/specs/source-date-epoch/.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return (datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else moment).date().isoformat()


def moment_of(text: str) -> datetime | None:
    """Return a time or day of ISO 8601 in UTC; ``None`` if the text is none."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def head_commit(root: Path) -> str | None:
    """Return the commit that is checked out; ``None`` outside a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 (git is found where the user's shell finds it)
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
