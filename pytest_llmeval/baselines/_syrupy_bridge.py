"""The bridge to syrupy: score files as snapshots of an extension.

syrupy counts, reports and decides when to write; what a metric's verdict is has been settled before. Score files lie in
a folder of their own, because syrupy deletes what it does not know in its own.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from syrupy.assertion import SnapshotAssertion
from syrupy.data import Snapshot, SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.location import PyTestLocation

from pytest_llmeval.baselines._files import PendingFile, ScoreFile, is_orphan
from pytest_llmeval.data import OwnFiles


class _SnapshotLine(str):
    """The line of a metric in a score file as syrupy compares it, with the snapshot's verdict."""

    __slots__ = ("holds",)

    holds: bool


class _Owner:
    """A whole suite in the place of the test that syrupy asks for; hashed by identity."""

    def __init__(self, scores: Path) -> None:
        self.path = scores.parent.parent / scores.name
        self.scores = scores
        self.name = scores.name
        self.nodeid = str(scores)
        self.stash: dict[Any, Any] = {}
        self.obj = type(self)  # it has the names that syrupy reads of a test function


class _Location(PyTestLocation):
    """A suite's score file in the place of syrupy's test location; every name in the file belongs to it."""

    def matches_snapshot_name(self, snapshot_name: str) -> bool:
        del snapshot_name
        return True

    def matches_snapshot_location(self, snapshot_location: str) -> bool:
        return snapshot_location == str(self.item.scores)  # type: ignore[attr-defined]  # the item is an _Owner


class ScoreExtension(AbstractSyrupyExtension):
    """Score files as a syrupy extension; `account` makes a subclass for each run, which holds the run's files.

    Attributes:
        files: Location to file.
        orphans: Whether files are looked for whose suites are gone.
        updating: Whether syrupy writes what differs.
    """

    snapshot_dirname = OwnFiles.FOLDER
    file_extension = ScoreFile.ENDING
    write_immediately = True
    files: ClassVar[Mapping[str, PendingFile]] = {}
    orphans: ClassVar[bool] = False
    updating: ClassVar[bool] = False

    def serialize(self, data: Any, **_: Any) -> Any:
        """The text of a score file's line, which is ready."""
        return data

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        """The snapshot verdict; to decide whether to write, whether two lines are equal."""
        return serialized_data == snapshot_data if self.updating else bool(serialized_data.holds)

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        """The metric, as the name of a snapshot."""
        del test_location
        return str(index)

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: Any) -> str:
        """The score file, as the location of a snapshot."""
        del index
        return str(test_location.item.scores)  # type: ignore[attr-defined]  # the item is an _Owner

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """The folder of our own beside a test file."""
        return str(OwnFiles(Path(test_location.filepath)).folder)

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        """Whether a file is that of a suite."""
        return isinstance(test_location, _Location) and test_location.matches_snapshot_location(snapshot_location)

    def discover_snapshots(
        self, *, test_location: PyTestLocation, ignore_extensions: list[str] | None = None
    ) -> SnapshotCollections:
        """The snapshots of the score files of this run as they were, and files whose suites are gone."""
        del ignore_extensions
        folder = Path(self.dirname(test_location=test_location))
        collections = SnapshotCollections()
        for location, file in self.files.items():
            # syrupy deletes files without snapshots, so one of which this run knows none must not be found.
            if file.before and file.path.parent == folder:
                collections.add(_snapshot_collection(location, list(file.before)))
        for scores in ScoreFile.in_folder(folder) if self.orphans else ():
            if str(scores.path) not in self.files and is_orphan(scores.path):
                stem = scores.path.name.removesuffix(f".{ScoreFile.ENDING}")
                collections.add(_snapshot_collection(str(scores.path), [stem]))
        return collections

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        """The content that a file of this run had before the run."""
        file = self.files.get(snapshot_location)
        return _snapshot_collection(snapshot_location, list(file.before) if file else [])

    def read_snapshot_data_from_location(self, *, snapshot_location: str, snapshot_name: str, session_id: str) -> Any:
        """The line that a metric's snapshot had before this run."""
        del session_id
        return self.files[snapshot_location].before.get(snapshot_name)

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection, **_: Any) -> None:
        """Write a score file as a whole: the scores of a suite are approved together."""
        cls.files[snapshot_collection.location].write()

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        """Delete a file whose suite is gone; from the files of this run, writing has removed what vanished."""
        del snapshot_names
        path = Path(snapshot_location)
        if snapshot_location not in self.files and is_orphan(path):
            ScoreFile(path, path.name).remove()


def _snapshot_collection(location: str, names: Sequence[str]) -> SnapshotCollection:
    """Syrupy's collection of the metrics in a score file, each as a snapshot without data."""
    collection = SnapshotCollection(location=location)
    for name in names:
        collection.add(Snapshot(name=name))
    return collection


def account(session: Any, files: Sequence[PendingFile], *, update: bool, new_only: bool, orphans: bool) -> None:
    """Let syrupy compare, count, report and write the score files of a run.

    Args:
        session: Of syrupy, in the process that writes.
        files: What was judged.
        update: Whether what differs is written.
        new_only: Whether what is not there yet is written.
        orphans: Whether to look for files whose suites are gone: only in a run that left nothing out.
    """
    members = {
        "files": {str(file.path): file for file in files},
        "orphans": orphans,
        "updating": update,
    }
    extension = type("ScoreExtension", (ScoreExtension,), members)
    for file in filter(lambda file: file.after, files):
        assertion = SnapshotAssertion(
            session=session,
            extension_class=extension,
            test_location=_Location(_Owner(file.path)),  # type: ignore[arg-type]  # it reads like an item
            update_snapshots=update,
            update_new_snapshots_only=new_only,
        )
        for name, text in file.after.items():
            line = _SnapshotLine(text)
            line.holds = name in file.holds
            _ = assertion(name=name) == line
            failed = assertion.executions[assertion.num_executions - 1].exception
            if failed is not None:
                file.fault = file.fault or f"{file.path}: not written: {failed}"
