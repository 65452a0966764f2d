"""The working folder ``.llmeval``: what runs keep on this machine, git-ignored."""

__all__ = ("WORKING_FOLDER", "make_working_folder")

from contextlib import suppress
from pathlib import Path
from typing import Final

WORKING_FOLDER: Final = ".llmeval"


def make_working_folder(folder: Path) -> None:
    """Make a folder whose content git ignores.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as stream:
        stream.write("*\n")
