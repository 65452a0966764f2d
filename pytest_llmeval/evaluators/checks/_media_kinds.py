"""Checks of images, sounds and documents."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import ClassVar, Final

from pytest_llmeval.core import Case, MediaForm, Parts
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators.checks._check import (
    CheckError,
    CheckKind,
    CheckOutcome,
    CheckTest,
    Subject,
    UnreadableError,
)


@dataclass(frozen=True)
class ImageSize:
    """The options of the check ``image_size``, in pixels.

    Attributes:
        width: What it must be.
        height: As above.
        min_width: Least.
        min_height: As above.
        max_width: Most.
        max_height: As above.

    Raises:
        ValueError: They say nothing.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    width: int | None = None
    height: int | None = None
    min_width: int | None = None
    min_height: int | None = None
    max_width: int | None = None
    max_height: int | None = None

    def __post_init__(self) -> None:
        options = {option.name: getattr(self, option.name) for option in fields(self)}
        if all(value is None for value in options.values()):
            raise ValueError(f"found an empty mapping, expected at least one of {', '.join(options)}")
        for name, value in options.items():
            if value is not None and value < 1:
                raise ValueError(f"found {name} {value}, expected a whole number of at least 1")

    def is_met(self, width: int, height: int) -> bool:
        """Whether an image of a size is as it must be."""
        sides = (
            (width, self.width, self.min_width, self.max_width),
            (height, self.height, self.min_height, self.max_height),
        )
        return all(
            (exact is None or side == exact) and (least or side) <= side <= (most or side)
            for side, exact, least, most in sides
        )


def _medium(subject: Subject) -> MediaForm:
    """The form of the image, sound or document that a check reads in an answer.

    Raises:
        UnreadableError: It is none.
    """
    if not MediaForm.matches(subject.value):
        raise UnreadableError(f"{AnswerValue(subject.value).kind}, which is no image, sound or document")
    return MediaForm(subject.value)


def _media_type(patterns: str | tuple[str, ...]) -> CheckTest:
    """Prepare the check ``media_type``: the medium in an answer has one of some types."""
    accepted = (patterns,) if isinstance(patterns, str) else patterns
    if not accepted or not all("/" in pattern for pattern in accepted):
        raise ValueError(f"found {patterns!r}, expected media types such as image/png or image/*")

    def test(subject: Subject) -> CheckOutcome:
        kind = _medium(subject).data["media"]
        return CheckOutcome(any(fnmatchcase(kind, pattern) for pattern in accepted), kind)

    return test


def _image_size(size: ImageSize) -> CheckTest:
    """Prepare the check ``image_size``: the image in an answer has a size in pixels."""

    def test(subject: Subject) -> CheckOutcome:
        form = _medium(subject)
        if "width" not in form.data:
            raise UnreadableError(f"{form.line}, whose size in pixels is not known")
        width, height = form.data["width"], form.data["height"]
        return CheckOutcome(size.is_met(width, height), f"{width} x {height}")

    return test


def _same_bytes(_argument: None) -> CheckTest:
    """Prepare the check ``same_bytes``: the medium in an answer is one of the expected ones, byte for byte."""

    def test(subject: Subject) -> CheckOutcome:
        form, accepted = _medium(subject), _expected_media(subject.case)
        if "url" in form.data:
            raise UnreadableError(f"{form.line}, whose content is not fetched")
        return CheckOutcome(form.data["sha256"] in {other.data.get("sha256") for other in accepted}, form.line)

    return test


def _expected_media(case: Case) -> Sequence[MediaForm]:
    """The media that a case accepts as its answer.

    Raises:
        CheckError: None are expected.
    """
    accepted = list(MediaForm.find_all(Parts.expectation("answer", None, case.expected)))
    if not accepted:
        raise CheckError(f"found {AnswerValue(case.expected).kind} as expected, expected an image, sound or document")
    return accepted


MEDIA_KINDS: Final = (
    CheckKind("image_size", "the answer is an image of this size in pixels", ImageSize, _image_size),
    CheckKind(
        "media_type",
        "the answer is an image, sound or document of this media type, or of one of these; image/* is any image",
        str | tuple[str, ...],
        _media_type,
    ),
    CheckKind("same_bytes", "the answer has the content of the expected image, sound or document", None, _same_bytes),
)
"""The kinds, in alphabetical order."""
