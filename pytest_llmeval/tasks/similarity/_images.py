"""Evaluator ``image_similarity``: pictures compared with the expected ones by their pixels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from pytest_llmeval.core import (
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Media,
    MediaError,
    MediaForm,
    Metric,
    Observation,
    Reads,
    Sums,
    unknown_name,
)
from pytest_llmeval.evaluators import AnswerValue
from pytest_llmeval.tasks.similarity._pixels import (
    LEAST_SIDE,
    SIGMA,
    difference_line,
    hash_similarity,
    pixels_of,
    structural_similarity,
)

ImageMetric: TypeAlias = Literal["ssim", "phash"]
_METRICS: Final = get_args(ImageMetric)
_LOW: Final = {"ssim": -1.0, "phash": 0.0}
_HOW: Final = {"ssim": f"window:gaussian|sigma:{SIGMA}|channels:rgb", "phash": "bits:64|dct:32"}
_DECIMALS: Final = 6


@dataclass(frozen=True)
class ImageSimilarity(Evaluator):
    """SSIM and perceptual hash of an image against one or more expected images. Needs the extra ``images``.

    Of several expected images the most similar counts, for each metric by itself. The value of a suite is the mean over
    its cases. An answer that is no image scores 0 and fails its case; so does, with ``ssim``, one of another size.

    * ``ssim``: structural similarity (Wang et al. 2004), in [-1, 1], the mean over red, green and blue. It notices
      what moved or is missing.
    * ``phash``: the share of equal bits of two perceptual hashes of 64 bits, in [0, 1]. Sizes may differ, and a colour
      or a small text may change unnoticed.

    Transparent images are compared on white, and of several frames the first. Scores are rounded to 6 decimals.

    Attributes:
        metrics: Which metrics to compute.

    Raises:
        ValueError: A metric is unknown.
    """

    name = "image_similarity"
    reads = Reads("answer", objects=True)
    metrics: tuple[ImageMetric, ...] = _METRICS

    def __post_init__(self) -> None:
        for name in self.metrics:
            if name not in _METRICS:
                raise ValueError(unknown_name("metric", name, _METRICS))
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"found metrics {self.metrics!r}, expected one or more different names")

    def describe(self) -> Sequence[Metric]:
        """Return the chosen metrics."""
        return [
            Metric(name, low=_LOW[name], signature=f"{_HOW[name]}|v:{self.version}", averaged=True)
            for name in self.metrics
        ]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the fault of an expected value that is no image."""
        if case.expected is not None and (fault := _expected_fault(case.expected)):
            yield fault

    def measure(self, case: Case) -> Observation:
        """Compare one image.

        Raises:
            MissingExtraError: Pillow is not installed.
            EvaluatorError: An expected value is no image, or cannot be read or decoded.
        """
        if case.expected is None:
            return Observation({}, undefined=dict.fromkeys(self.metrics, "no expected image"))
        if fault := _expected_fault(case.expected):
            raise EvaluatorError(fault)
        if not _is_image(case.prediction):
            return self._malformed(f"found {_named(case.prediction)}, expected an image")
        image, accepted = _medium(case.prediction), [_medium(form.data) for form in MediaForm.find_all(case.expected)]
        try:
            pixels = pixels_of(image)
        except EvaluatorError as error:
            return self._malformed(str(error))
        others = [pixels_of(medium) for medium in accepted]
        alike = [other for other in others if other.shape == pixels.shape]
        counts: dict[str, float] = {f"{name}.n": 1 for name in self.metrics}
        if "phash" in self.metrics:
            counts["phash"] = max(_rounded(hash_similarity(pixels, other)) for other in others)
        if "ssim" not in self.metrics:
            return Observation(counts)
        if not alike:
            sizes = " or ".join(dict.fromkeys(f"{other.shape[1]} x {other.shape[0]}" for other in others))
            fault = f"found {MediaForm(image.form).line}, expected {sizes} pixels as the expected image"
            return Observation({**counts, "ssim": 0}, malformed=fault)
        if min(pixels.shape[:2]) < LEAST_SIDE:
            least = f"{LEAST_SIDE} x {LEAST_SIDE}"
            raise EvaluatorError(f"found {MediaForm(image.form).line}, expected at least {least} pixels for ssim")
        scores = [_rounded(structural_similarity(pixels, other)) for other in alike]
        counts["ssim"] = max(scores)
        where = difference_line(pixels, alike[scores.index(counts["ssim"])])
        return Observation(counts, {"difference": where} if where else {})

    def _malformed(self, fault: str) -> Observation:
        counts = {count: value for name in self.metrics for count, value in ((name, 0), (f"{name}.n", 1))}
        return Observation(counts, malformed=fault)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say where the image differs from the most similar expected one."""
        del case
        where = observation.details.get("difference")
        return [where] if where else []

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the mean of each metric over the cases that have one."""
        return {name: sums[name] / sums[f"{name}.n"] for name in self.metrics}


def _is_image(value: Any) -> bool:
    """Whether a case's value is a reference to an image file."""
    return MediaForm.matches(value) and value["media"].startswith("image/")


def _named(value: Any) -> str:
    """The media or other value of an image case, as messages name it."""
    return MediaForm(value).line if MediaForm.matches(value) else AnswerValue(value).kind


def _expected_fault(expected: Any) -> str:
    """The fault of an image case's ``expected`` value; empty if all of it are images."""
    values = expected if isinstance(expected, list) and expected else [expected]
    wrong = [value for value in values if not _is_image(value)]
    return f"found {_named(wrong[0])}, expected an image or a list of images" if wrong else ""


def _medium(form: Mapping[str, Any]) -> Media:
    """The image or other media of a case's value, whose content can be read.

    Raises:
        EvaluatorError: It is an address, or its content is not here.
    """
    try:
        medium = Media.of_form(MediaForm(form))
        if medium.url:
            raise EvaluatorError(f"found {MediaForm(form).line}, which is not fetched, expected an image in a file")
    except MediaError as error:
        raise EvaluatorError(str(error)) from None
    return medium


def _rounded(score: float) -> float:
    """An image similarity, rounded so that it is the same on all machines."""
    return round(score, _DECIMALS)
