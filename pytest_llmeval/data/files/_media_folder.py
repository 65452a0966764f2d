"""The folder that keeps contents of media that have no file of their own."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from pytest_llmeval.data.files._writing import OutputFile, OutputFolder


class MediaFolder(Struct, frozen=True):
    """The folder ``.llmeval/media``: a file for each content, named after its digest.

    Attributes:
        root: Of the run.
    """

    root: Path

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.root / OutputFolder.MEDIA

    def keep(self, digest: str, data: bytes) -> Path | None:
        """The file of a medium's content, which is written if it is not there; ``None`` if it cannot be written."""
        path = self.folder / digest
        with suppress(OSError):
            if not path.is_file():
                OutputFolder(self.folder.parent).make()
                self.folder.mkdir(exist_ok=True)
                OutputFile(path).write_bytes(data)
            return path
        return None

    def find(self, digest: str) -> Path | None:
        """The file of a medium's content that was kept; ``None`` if it is not there."""
        path = self.folder / digest
        return path if path.is_file() else None

    def at(self, address: str) -> tuple[bytes, str] | None:
        """The content that an address gave, and its type as the server said it; ``None`` if it was not asked."""
        with suppress(OSError, ValueError):
            digest, _, kind = self._note_of(address).read_text(encoding="ascii").partition(" ")
            data = (self.folder / digest).read_bytes()
            if sha256(data).hexdigest() == digest:
                return data, kind.strip()
        return None

    def note(self, address: str, data: bytes, kind: str) -> tuple[bytes, str]:
        """Keep the content that an address gave, unless another process was faster; return what is kept.

        Args:
            address: The address.
            data: Its content.
            kind: Media type as the server said it.
        """
        digest = sha256(data).hexdigest()
        if (known := self.at(address)) is None and self.keep(digest, data) is not None:
            with suppress(OSError):
                OutputFile(self._note_of(address)).write_bytes(f"{digest} {kind}\n".encode("ascii", "replace"))
        return known or (data, kind)

    def _note_of(self, address: str) -> Path:
        return self.folder / f"{sha256(address.encode()).hexdigest()}.address"
