"""The functions of the original evaluation package, under their names."""

__all__ = (
    "calculate_overlap_ratio",
    "calculate_precision_recall_f1",
    "calculate_set_metrics",
    "char_position_to_sentence_index",
    "handle_missing_ground_truth",
    "load_action_taxonomy",
    "load_ground_truth",
    "load_prediction",
    "load_relationship_taxonomy",
    "load_sentiment_taxonomy",
    "normalize_character_name",
    "text_to_sentence_indices",
)

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import load_json
from pytest_llmeval.evaluators.measures.spans import end_mark_spans, overlap_ratio, sentence_index
from pytest_llmeval.tasks.narrative.json_v3 import annotation_problems
from pytest_llmeval.tasks.narrative.labels.files import read_actions, read_relationships, read_sentiments
from pytest_llmeval.tasks.narrative.rules import (
    calculate_precision_recall_f1,
    calculate_set_metrics,
    handle_missing_ground_truth,
    name_key,
)


def load_ground_truth(json_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return a JSON v3 document.

    Raises:
        SuiteError: The file cannot be read, is no JSON or not in JSON v3; all faults are listed, with their places.
    """
    document = load_json(Path(json_path), str(json_path))
    if faults := annotation_problems(document):
        raise SuiteError(faults)
    data: dict[str, Any] = document.data
    return data


def load_prediction(json_path: str | os.PathLike[str]) -> Any:
    """Return what a model wrote; evaluators say what is wrong with its form.

    Raises:
        SuiteError: The file cannot be read or is no JSON, with the place.
    """
    return load_json(Path(json_path), str(json_path)).data


def normalize_character_name(name: str, aliases: Iterable[str] = ()) -> str:
    """Return the key by which a name is compared: that of the first of `aliases`, the main name, if it is among them.

    >>> normalize_character_name(" The  Miller", ["Mira", "the miller"])
    'mira'
    """
    keys = [name_key(each) for each in aliases]
    key = name_key(name)
    return keys[0] if key in keys else key


def load_relationship_taxonomy(csv_path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Return the labels of level 1 with those of level 2 below each.

    Raises:
        SuiteError: The file cannot be read or has faults.
    """
    return {each.label: [below.label for below in each.level2] for each in read_relationships(Path(csv_path))}


def load_sentiment_taxonomy(csv_path: str | os.PathLike[str]) -> list[str]:
    """Return the labels of sentiments; see `load_relationship_taxonomy`."""
    return [each.label for each in read_sentiments(Path(csv_path))]


def load_action_taxonomy(md_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return ``categories`` (each with its types, each with its contexts), ``status`` and ``function``."""
    found = read_actions(Path(md_path))
    return {
        "categories": {
            each.label: {kind.label: list(kind.contexts) for kind in each.types} for each in found.categories
        },
        "status": [each.label for each in found.statuses],
        "function": [each.label for each in found.functions],
    }


def text_to_sentence_indices(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence.

    >>> text_to_sentence_indices("One. Two!")
    [(0, 4), (4, 9)]
    """
    return end_mark_spans(text)


def char_position_to_sentence_index(char_pos: int, sentence_indices: Sequence[tuple[int, int]]) -> int:
    """Return the sentence of a position, counted from 0."""
    return sentence_index(char_pos, sentence_indices)


def calculate_overlap_ratio(span1: tuple[int, int], span2: tuple[int, int]) -> float:
    """Return intersection over union of two spans, in [0, 1]."""
    return overlap_ratio(span1, span2)
