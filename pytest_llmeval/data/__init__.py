"""Readers of user files."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.data._model_text import ModelText, UnfinishedThoughtsError
    from pytest_llmeval.data.files._json import JsonText, repeated_key
    from pytest_llmeval.data.files._media_folder import MediaFolder
    from pytest_llmeval.data.files._places import (
        FaultLog,
        FilePattern,
        OwnFiles,
        display_path,
        render_path,
        repository_top,
    )
    from pytest_llmeval.data.files._validation import (
        DeclaredType,
        describe,
    )
    from pytest_llmeval.data.files._writing import (
        OutputFile,
        OutputFolder,
        csv_lines,
    )
    from pytest_llmeval.data.files._yaml import plain_value
    from pytest_llmeval.data.files.documents import (
        Document,
        InputFile,
        collector_paused,
        parse_csv,
    )
    from pytest_llmeval.data.formats import SOURCES
    from pytest_llmeval.data.formats._base import (
        CaseFile,
        CaseId,
        DataPath,
        FileSource,
        RecordedAnswers,
        RowShare,
        SharedRows,
        Source,
        json_text,
        kind,
    )
    from pytest_llmeval.data.formats._frames import CaseData, rows_of
    from pytest_llmeval.data.labels import Taxonomy

_HOMES = {
    "_model_text": (
        "ModelText",
        "UnfinishedThoughtsError",
    ),
    "files.documents": (
        "Document",
        "InputFile",
        "collector_paused",
        "parse_csv",
    ),
    "files._json": (
        "JsonText",
        "repeated_key",
    ),
    "files._media_folder": ("MediaFolder",),
    "files._places": (
        "FaultLog",
        "FilePattern",
        "OwnFiles",
        "display_path",
        "render_path",
        "repository_top",
    ),
    "files._validation": (
        "DeclaredType",
        "describe",
    ),
    "files._writing": (
        "OutputFile",
        "OutputFolder",
        "csv_lines",
    ),
    "files._yaml": ("plain_value",),
    "formats": ("SOURCES",),
    "formats._base": (
        "CaseFile",
        "CaseId",
        "DataPath",
        "FileSource",
        "RecordedAnswers",
        "RowShare",
        "SharedRows",
        "Source",
        "json_text",
        "kind",
    ),
    "formats._frames": (
        "CaseData",
        "rows_of",
    ),
    "labels": ("Taxonomy",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
