"""The working folder ``.llmeval``: what runs keep on this machine, git-ignored."""

__all__ = ("WORKING_FOLDER", "make_working_folder", "refuse_links")

import errno
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_llmeval.data.files.beside import OWN_FOLDER

WORKING_FOLDER: Final = ".llmeval"


def refuse_links(path: Path) -> None:
    """Refuse a path through a folder of ours, or one inside it, that lies in a repository as a link to elsewhere.

    Raises:
        OSError: There is such a link.
    """
    folders = list(path.parents)
    ours = (place for place, each in enumerate(folders) if each.name in (OWN_FOLDER, WORKING_FOLDER))
    for folder in folders[: next(ours, -1) + 1]:
        if folder.is_symlink():
            raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link, expected a folder", str(path))


def make_working_folder(folder: Path) -> None:
    """Make a folder whose content git ignores.

    Raises:
        OSError: It cannot be made, or is a symbolic link.
    """
    refuse_links(folder / ".gitignore")
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as stream:
        stream.write("*\n")
