"""The pool of a suite: its last approved runs of equal data, which are the baseline of its gates together."""

__all__ = ("next_pool", "pool_of", "pooled_baseline")

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.baselines.comparable import fingerprint
from pytest_llmeval.baselines.files import pool_file, read_statistics, statistics_file
from pytest_llmeval.baselines.scores import SuiteScores
from pytest_llmeval.core.errors import Fault, SuiteError

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics


def next_pool(
    old: SuiteScores | None, new: SuiteScores, scores: Path, size: int
) -> tuple[tuple[str, ...], dict[Path, str]]:
    """Return the earlier runs that an approval leaves in the pool, and their files with their texts.

    Runs of other cases, data, evaluators or judges leave it, and so does one that cannot be read.

    Args:
        old: The approved scores so far.
        new: Those that are being approved.
        scores: The score file.
        size: How many runs are pooled, that which is being approved included.
    """
    if old is None or size == 1 or old.comparable != new.comparable:
        return (), {}
    texts = {}
    for digest in (*old.pool, old.cases.statistics):
        try:
            last = digest == old.cases.statistics
            texts[digest] = read_statistics(statistics_file(scores), old) if last else _text(scores, digest)
        except (OSError, UnicodeDecodeError, SuiteError):
            continue
    kept = [digest for digest in texts if digest != new.cases.statistics][1 - size :]
    return tuple(kept), {pool_file(scores, digest): texts[digest] for digest in kept}


def pooled_baseline(last: "CaseStatistics", approved: SuiteScores, scores: Path, size: int) -> "CaseStatistics":
    """Return the last approved run and those before it as one.

    Args:
        last: The last approved run.
        approved: Its scores.
        scores: The score file.
        size: How many runs are pooled, the last one included.

    Raises:
        OSError: A file of the pool cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: A file of the pool is not what was approved.
    """
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics, pooled

    earlier = pool_of(approved, size)
    texts = {pool_file(scores, digest).name: _text(scores, digest) for digest in earlier}
    return pooled([last, *(CaseStatistics.from_lines(StringIO(text), name) for name, text in texts.items())])


def pool_of(approved: SuiteScores, size: int) -> tuple[str, ...]:
    """Return the earlier runs that are pooled with the last one."""
    return approved.pool[-(size - 1) :] if size > 1 else ()


def _text(scores: Path, digest: str) -> str:
    path = pool_file(scores, digest)
    text = path.read_text(encoding="utf-8")
    if (found := fingerprint(text)) != digest:
        fault = f"found content with fingerprint {found}, expected {digest}: restore the file from version control"
        raise SuiteError([Fault(path.name, 0, 0, "", fault)])
    return text
