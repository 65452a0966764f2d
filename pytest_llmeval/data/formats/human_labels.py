"""Files of labels: what people say of answers, one JSON object a line, as the review page exports them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, ValidationError, convert, to_builtins

from pytest_llmeval.core.case import ShownPrints
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.data.files.documents import read_jsonl
from pytest_llmeval.data.files.places import FaultLog

LabelScale: TypeAlias = Literal["yesno", "1-5"]
"""The scales of labels: yes or no, or a grade from 1 (worst) to 5."""

SCALES: Final[Mapping[LabelScale, Sequence[str | int]]] = {"yesno": ("no", "yes"), "1-5": (1, 2, 3, 4, 5)}
"""Scale to its labels, the worst first."""


class HumanLabel(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The label that one person gives one answer.

    Attributes:
        question: Fingerprint of the question, as of `answer_print`.
        answer: Fingerprint of the answer.
        annotator: Who says so.
        scale: What could be said.
        label: What is said; ``None`` where the person could not tell.
        note: The comment of the person.
        cases: Ids of the cases that had this question and answer.
        reference: Fingerprint of the right answer that was shown; that of the empty text where there was none.
        probability: With which the answer was chosen to be labelled; 1 where all were.
        review: Which choice of answers it belongs to.
        again: The review that chose the case, if its answer has changed since, and this is the label of the new one.
        others: Fingerprints of the other answers that these cases had then: systems answer differently.
    """

    question: str
    answer: str
    annotator: str
    scale: LabelScale
    label: str | int | None
    note: str = ""
    cases: tuple[str, ...] = ()
    reference: str = ""
    probability: float = 1.0
    review: str = ""
    again: str = ""
    others: tuple[str, ...] = ()

    @property
    def choice(self) -> str:
        """The review whose random choice of cases it belongs to."""
        return self.again or self.review

    @property
    def share(self) -> float | None:
        """The label as a number from 0 (worst) to 1; ``None`` where the person could not tell."""
        return None if self.label is None else share_of(self.scale, self.label)

    @property
    def prints(self) -> ShownPrints:
        """The fingerprints of what was shown."""
        return ShownPrints(self.question, self.answer, self.reference)

    @property
    def subject(self) -> tuple[str, ShownPrints, str]:
        """The key by which a later label of the same person replaces this one."""
        return self.review, self.prints, self.annotator


def share_of(scale: LabelScale, label: str | int) -> float:
    """Return a label as a number from 0 (worst) to 1.

    >>> share_of("yesno", "yes"), share_of("1-5", 4)
    (1.0, 0.75)
    """
    labels = SCALES[scale]
    return labels.index(label) / (len(labels) - 1)


def label_line(label: HumanLabel) -> str:
    """Return the line of a file; equal labels give equal lines."""
    return f"{json.dumps(to_builtins(label), ensure_ascii=False)}\n"


def read_labels(paths: Iterable[tuple[Path, str]]) -> list[HumanLabel]:
    """Read files of labels; where a person labelled an answer of a review twice, the last line counts.

    Args:
        paths: The files, each with its name in errors.

    Raises:
        SuiteError: Some cannot be read, or a line is no label; all faults are listed.
    """
    labels: dict[Any, HumanLabel] = {}
    faults: list[Fault] = []
    for path, display_path in paths:
        log = FaultLog(display_path)
        for line, row in read_jsonl(path, display_path, faults):
            try:
                label = _label(row)
            except ValueError as error:
                log.add(line, 1, "", str(error))
            else:
                labels.pop(label.subject, None)
                labels[label.subject] = label
        faults += log.listed()
    if faults:
        raise SuiteError(faults)
    return list(labels.values())


def _label(row: Any) -> HumanLabel:
    """Return the label of a line.

    Raises:
        ValueError: It is none.
    """
    try:
        label = convert(row, HumanLabel)
    except ValidationError as error:
        raise ValueError(f"found no label ({error}), expected a line that the review page exports") from None
    known = SCALES[label.scale]
    if label.label is not None and (label.label not in known or isinstance(label.label, bool)):
        raise ValueError(f"label: found {label.label!r}, expected one of {', '.join(map(str, known))}, or null")
    if not 0 < label.probability <= 1:
        raise ValueError(f"probability: found {label.probability!r}, expected a number above 0, at most 1")
    if not label.annotator:
        raise ValueError("annotator: found an empty text, expected a name")
    return label
