"""The folder that keeps contents of media that have no file of their own."""

from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from pytest_llmeval.data.files._places import WORKING_FOLDER, make_working_folder
from pytest_llmeval.data.files._writing import write_bytes


class MediaFolder(Struct, frozen=True):
    """The folder ``.llmeval/media``: a file for each content, named after its digest.

    Attributes:
        root: Of the run.
    """

    root: Path

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.root / WORKING_FOLDER / "media"

    def keep(self, digest: str, data: bytes) -> Path | None:
        """Return the file of a content, which is written if it is not there; ``None`` if it cannot be written."""
        path = self.folder / digest
        with suppress(OSError):
            if not path.is_file():
                make_working_folder(self.folder.parent)
                self.folder.mkdir(exist_ok=True)
                write_bytes(path, data)
            return path
        return None

    def find(self, digest: str) -> Path | None:
        """Return the file of a content that was kept; ``None`` if it is not there."""
        path = self.folder / digest
        return path if path.is_file() else None
