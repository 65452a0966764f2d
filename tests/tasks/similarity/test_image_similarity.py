"""Images compared by their pixels: numbers of published libraries, and what is refused."""

import io
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from pictures import PDF, SVG, in_memory, png_of

from pytest_llmeval import Case, EvaluatorError, Media, Observation, get_evaluator
from pytest_llmeval.core import MissingExtraError
from pytest_llmeval.tasks.similarity._pixels import difference_line, hash_similarity, structural_similarity

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.usefixtures(in_memory.__name__)


def pixels(seed: int, width: int = 48, height: int = 36) -> Any:
    """Return a picture of six rectangles on white."""
    draw = np.random.RandomState(seed)
    picture = np.full((height, width, 3), 255, np.uint8)
    for _ in range(6):
        left, top = draw.randint(0, width - 8), draw.randint(0, height - 8)
        picture[top : top + draw.randint(4, 20), left : left + draw.randint(4, 20)] = draw.randint(0, 256, 3)
    return picture


def image(seed: int, width: int = 48, height: int = 36, kind: str = "PNG") -> Media:
    stream = io.BytesIO()
    Image.fromarray(pixels(seed, width, height)).save(stream, kind)
    return Media(data=stream.getvalue())


def measured(answer: Any, expected: Any, **options: Any) -> Observation:
    return get_evaluator("image_similarity", **options).measure(Case("a", None, form(expected), form(answer)))


def form(value: Any) -> Any:
    if isinstance(value, list):
        return [form(item) for item in value]
    return Media.form_of(value) if isinstance(value, Media) else value


def scores(found: Observation) -> Mapping[str, Any]:
    return {name: found.counts.get(name) for name in ("ssim", "phash")}


@pytest.mark.parametrize(
    ("first", "second", "ssim", "phash"),
    [(1, 1, 1.0, 1.0), (1, 2, 0.123277, 0.53125), (3, 4, 0.161955, 0.46875), (5, 6, 0.246919, 0.53125)],
)
def test_numbers_are_those_of_scikit_image_and_imagehash(first: int, second: int, ssim: float, phash: float) -> None:
    """Of scikit-image 0.26: Gaussian windows, sigma 1.5, no sample covariance, channels; of ImageHash 4.3: phash."""
    one, other = (pixels(seed).astype(float) for seed in (first, second))
    assert structural_similarity(one, other) == pytest.approx(ssim, abs=1e-6)
    assert hash_similarity(one, other) == phash
    assert scores(measured(image(first), image(second))) == {"ssim": pytest.approx(ssim, abs=2e-6), "phash": phash}


def test_the_most_similar_expected_image_counts() -> None:
    found = measured(image(1), [image(2), image(1, 60), image(1)])
    assert scores(found) == {"ssim": 1, "phash": 1}
    assert found.details == {}


def test_a_failing_case_says_where_pictures_differ() -> None:
    paper = np.full((20, 30, 3), 255, float)
    marked = paper.copy()
    marked[5:8, 10:20, 0] = 0
    assert difference_line(paper, marked) == "5 % of the pixels differ, between (10, 5) and (19, 7)"
    found = measured(image(1), image(2))
    (line,) = get_evaluator("image_similarity").explain(Case("a"), found)
    assert line == found.details["difference"]


def test_other_sizes_fail_with_both_of_them_unless_only_the_hash_counts() -> None:
    found = measured(image(1, 96, 72), image(1))
    assert found.counts["ssim"] == 0
    assert found.malformed is not None
    assert found.malformed.startswith("found image/png, 96 x 72, ")
    assert found.malformed.endswith("expected 48 x 36 pixels as the expected image")
    resized = Media(data=png_bytes(Image.fromarray(pixels(1)).resize((96, 72))))
    hashed = measured(resized, image(1), metrics=["phash"])
    assert (hashed.malformed, hashed.counts) == (None, {"phash": 0.96875, "phash.n": 1})


def png_bytes(picture: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def test_transparent_and_grey_images_are_compared_as_they_look_on_white() -> None:
    clear = Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    white = Image.new("L", (20, 20), 255)
    assert scores(measured(Media(data=png_bytes(clear)), Media(data=png_bytes(white)))) == {"ssim": 1, "phash": 1}


def test_jpeg_is_near_its_original() -> None:
    found = measured(image(1, kind="JPEG"), image(1))
    assert 0.8 < found.counts["ssim"] < 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("a chart", "found text 'a chart', expected an image"),
        (None, "found null, expected an image"),
        (Media(data=PDF), "found application/pdf, "),
        (Media(data=SVG), "which Pillow cannot decode"),
        (Media(data=png_of(30, 20)), "which Pillow cannot decode"),
        (Media(data=png_of(9000, 9000)), "expected at most 16 million pixels"),
    ],
)
def test_an_answer_that_is_no_readable_image_fails_and_scores_nothing(answer: Any, message: str) -> None:
    found = measured(answer, image(1))
    assert scores(found) == {"ssim": 0, "phash": 0}
    assert found.malformed is not None
    assert message in found.malformed


@pytest.mark.parametrize(
    ("answer", "expected", "message"),
    [
        (image(1), "a chart", "found text 'a chart', expected an image or a list of images"),
        (image(1), [], "expected an image or a list of images"),
        (image(1), Media(data=png_of(30, 20)), "which Pillow cannot decode"),
        (image(1), Media(url="https://example.org/a.png"), "which is not fetched"),
        (image(1, 10, 10), image(1, 10, 10), "expected at least 11 x 11 pixels for ssim"),
    ],
)
def test_what_cannot_be_compared_is_an_error_of_the_case(answer: Any, expected: Any, message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        measured(answer, expected)


def test_a_case_without_expected_image_is_undefined() -> None:
    assert measured(image(1), None).undefined == dict.fromkeys(("ssim", "phash"), "no expected image")


def test_unknown_metrics_are_refused() -> None:
    with pytest.raises(EvaluatorError, match="'psnr'"):
        get_evaluator("image_similarity", metrics=["psnr"])


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    one = image(1)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"pytest-llmeval-suite\[images\]"):
        measured(one, one)
