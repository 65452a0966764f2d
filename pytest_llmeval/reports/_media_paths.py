"""The media of reported cases, and their files."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from pytest_llmeval.core import Media, MediaError, MediaForm, MediaRun
from pytest_llmeval.data import MediaFolder


def media_paths(values: Iterable[Any], root: Path) -> dict[str, str]:
    """The files of the media in values of reported cases, by digest; what lies outside the root has none.

    Args:
        values: They have the forms of media.
        root: Paths are relative to it.
    """
    paths: dict[str, str] = {}
    for form in (form for value in values for form in MediaForm.find_all(value)):
        if "sha256" not in form.data or form.data["sha256"] in paths:
            continue
        try:
            path = Media.of_form(form).path
        except MediaError:
            continue  # the report has its type, size and digest
        if path is not None and path.is_relative_to(root):
            paths[form.data["sha256"]] = path.relative_to(root).as_posix()
    return paths


def begin_media(paths: Mapping[str, str], root: Path) -> None:
    """Look up the contents of media at the paths that reports name, from now on.

    Args:
        paths: Digest to path.
        root: The folder to which the paths are relative.
    """
    MediaRun(partial(_MediaFiles, MediaFolder(root.resolve()), paths)).begin()


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
