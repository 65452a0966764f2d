"""The folders that a suite and a machine keep files in: committed ones, and those that git ignores."""

__all__ = (
    "IN_MODULE",
    "OWN_FOLDER",
    "WORKING_FOLDER",
    "make_working_folder",
    "own_file",
    "refuse_links",
    "stem_of",
)

import errno
from contextlib import suppress
from pathlib import Path
from typing import Final

OWN_FOLDER: Final = "__llmeval__"

IN_MODULE: Final = "::"
"""Stands between a Python file and the name of a suite that it declares, in the paths of such suites."""

_SUITE_SUFFIXES = (".eval.yaml", ".eval.yml", ".eval.json")
_OTHER_SUFFIXES = (".yaml", ".yml", ".json")


def own_file(suite: Path, suffix: str) -> Path:
    """Return the path of a file that belongs to a suite, such as ``__llmeval__/capitals.judgements.jsonl``.

    Args:
        suite: The suite file.
        suffix: What the file is, such as ``judgements.jsonl``.

    Returns:
        A path in the suite's folder. It begins with the suite's stem, or with its full name where another suite file
        beside it has the same stem.
    """
    stem, rivals = _stem(suite.name)
    shared = any((suite.parent / name).is_file() for name in rivals if name != suite.name)
    return suite.parent / OWN_FOLDER / f"{suite.name if shared else stem}.{suffix}"


def stem_of(name: str) -> str:
    """Return what the names of the files begin with that belong to a suite or test module."""
    return _stem(name)[0]


def _stem(name: str) -> tuple[str, list[str]]:
    """Return the stem of a suite's name, and the names of suites that share it.

    ``capitals.json`` beside ``capitals.eval.yaml`` is its data, not a suite; beside ``capitals.yaml``, which only the
    user's own patterns make a suite, it may be one.
    """
    if IN_MODULE in name:
        return name.replace(f".py{IN_MODULE}", "."), []
    for suffix in _SUITE_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            stem = name.removesuffix(suffix)
            return stem, [stem + each for each in _SUITE_SUFFIXES]
    stem = Path(name).stem
    return stem, [stem + each for each in (*_SUITE_SUFFIXES, *_OTHER_SUFFIXES)]


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
