"""The media of reported cases, and their files."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from pytest_llmeval.core import Media, MediaError, MediaForm, MediaRun
from pytest_llmeval.data import MediaFolder
from pytest_llmeval.reports._form import CaseReport, RunReport, SuiteReport


def values_of(case: CaseReport) -> Sequence[Any]:
    """The values of a reported case that may hold media: input, expected value and predictions."""
    return [case.input, case.expected, case.prediction, *(answer.value for answer in case.several)]


class ReportMedia(NamedTuple):
    """The files of the media in reported cases.

    Attributes:
        paths: Digest to path, relative to the root of the run.
    """

    paths: dict[str, str]

    @classmethod
    def of_suites(cls, suites: Iterable[SuiteReport], root: Path) -> "ReportMedia":
        """The media in the cases of suites, in files below the root; what lies outside has no path.

        Args:
            suites: Their cases have the forms of media.
            root: Paths are relative to it.
        """
        paths: dict[str, str] = {}
        values = (value for suite in suites for case in suite.cases for value in values_of(case))
        for form in (form for value in values for form in MediaForm.find_all(value)):
            if "sha256" not in form.data or form.data["sha256"] in paths:
                continue
            try:
                path = Media.of_form(form).path
            except MediaError:
                continue  # the report has its type, size and digest
            if path is not None and path.is_relative_to(root):
                paths[form.data["sha256"]] = path.relative_to(root).as_posix()
        return cls(paths)

    @classmethod
    def of_reports(cls, reports: Iterable[RunReport]) -> "ReportMedia":
        """The media of reports as they were read."""
        return cls({digest: path for report in reports for digest, path in report.media.items()})

    def begin(self, root: Path) -> None:
        """Look up the contents of media at the paths, from now on.

        Args:
            root: The folder to which the paths are relative.
        """
        MediaRun(partial(_MediaFiles, MediaFolder(root.resolve()), self.paths)).begin()


class _MediaFiles(Struct, frozen=True):
    """Contents of media at the paths that reports name, or else in the folder of contents.

    Attributes:
        folder: Of contents; paths are relative to its root.
        paths: Digest to path.
    """

    folder: MediaFolder
    paths: Mapping[str, str]

    def keep(self, digest: str, data: bytes) -> Path | None:
        """The file of a reported medium, which is written if it is not there; ``None`` if it cannot be written."""
        return self.folder.keep(digest, data)

    def find(self, digest: str) -> Path | None:
        """The file of a reported medium; ``None`` if it is not below the root."""
        path = (self.folder.root / self.paths.get(digest, "")).resolve()
        return path if path.is_relative_to(self.folder.root) and path.is_file() else self.folder.find(digest)
