"""Arithmetic of two pictures: structural similarity, and a perceptual hash."""

import io
from typing import TYPE_CHECKING, Final, TypeAlias

from pytest_llmeval.core import EvaluatorError, Media, MediaForm, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Pixels: TypeAlias = npt.NDArray[np.float64]
    """Height x width x 3, from 0 to 255."""

_DECODED: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_MOST_PIXELS: Final = 16_000_000
"""The arithmetic takes some 60 bytes a pixel."""

_OF_PILLOW: Final = (OSError, SyntaxError, ValueError)
"""What it raises for damaged contents; `SyntaxError` is that of PNG."""

SIGMA: Final = 1.5
_REACH: Final = 5
"""Pixels on each side of the window, which ends at 3.5 sigma: 11 x 11 in all."""

LEAST_SIDE: Final = 2 * _REACH + 1

_K1, _K2, _RANGE = 0.01, 0.03, 255
_GREY_SIDE, _LOWEST = 32, 8


def pixels_of(medium: Media) -> "Pixels":
    """The pixels of a case's image on white paper; of several frames, the first.

    Raises:
        MissingExtraError: Pillow is not installed.
        EvaluatorError: It is no picture that Pillow decodes, damaged, or too large.
        MediaError: It is an address, or its content is not here.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("the evaluator 'image_similarity'", "images", error) from error
    import numpy as np

    line, data = MediaForm(medium.form).line, medium.data
    _check_area(medium.width or 0, medium.height or 0, line)
    try:
        with Image.open(io.BytesIO(data), formats=_DECODED) as picture:
            _check_area(*picture.size, line)
            drawn = picture.convert("RGBA")
    except (*_OF_PILLOW, Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise EvaluatorError(f"found {line}, which Pillow cannot decode") from None
    paper = Image.new("RGBA", drawn.size, "white")
    return np.asarray(Image.alpha_composite(paper, drawn).convert("RGB"), dtype=np.float64)


def _check_area(width: int, height: int, line: str) -> None:
    """Refuse a picture with more pixels than image similarity computes."""
    if width * height > _MOST_PIXELS:
        raise EvaluatorError(f"found {line}, expected at most {_MOST_PIXELS // 10**6} million pixels")


def structural_similarity(first: "Pixels", second: "Pixels") -> float:
    """SSIM (Wang et al. 2004) of two pictures of one size, from -1 to 1; 1 if they are equal.

    The window is a Gaussian with sigma 1.5, cut at 11 x 11 pixels. The value is the mean over red, green and blue, and
    over the windows that lie within the picture.
    """
    from scipy.ndimage import gaussian_filter

    def blurred(values: "Pixels") -> "Pixels":
        return gaussian_filter(values, SIGMA, truncate=3.5)  # type: ignore[no-any-return]  # scipy has no types

    def of_channel(left: "Pixels", right: "Pixels") -> float:
        left_mean, right_mean = blurred(left), blurred(right)
        variances = blurred(left * left) - left_mean**2 + blurred(right * right) - right_mean**2
        covariance = blurred(left * right) - left_mean * right_mean
        luminance, contrast = (_K1 * _RANGE) ** 2, (_K2 * _RANGE) ** 2
        similar = (2 * left_mean * right_mean + luminance) * (2 * covariance + contrast)
        similar /= (left_mean**2 + right_mean**2 + luminance) * (variances + contrast)
        return float(similar[_REACH:-_REACH, _REACH:-_REACH].mean())

    channels = [of_channel(first[:, :, channel], second[:, :, channel]) for channel in range(3)]
    return sum(channels) / len(channels)


def hash_similarity(first: "Pixels", second: "Pixels") -> float:
    """The share of equal bits of two pictures' perceptual hashes, from 0 to 1; sizes may differ."""
    return float((_perceptual_hash(first) == _perceptual_hash(second)).mean())


def _perceptual_hash(pixels: "Pixels") -> "npt.NDArray[np.bool_]":
    """The perceptual hash of a grey picture of 32 x 32 pixels: its lowest frequencies above their median."""
    import numpy as np
    from PIL import Image
    from scipy.fft import dct

    grey = (
        Image.fromarray(pixels.astype(np.uint8)).convert("L").resize((_GREY_SIDE, _GREY_SIDE), Image.Resampling.LANCZOS)
    )
    frequencies = dct(dct(np.asarray(grey, dtype=np.float64), axis=0), axis=1)[:_LOWEST, :_LOWEST]
    return np.asarray(frequencies > np.median(frequencies))


def difference_line(first: "Pixels", second: "Pixels") -> str:
    """The report's line on the place where two pictures of one size differ; empty if they do not.

    >>> import numpy as np
    >>> paper = np.zeros((4, 5, 3)); ink = paper.copy(); ink[1, 2:4] = 255
    >>> difference_line(paper, ink)
    '10 % of the pixels differ, between (2, 1) and (3, 1)'
    """
    import numpy as np

    differing = (first != second).any(axis=2)
    if not differing.any():
        return ""
    rows, columns = np.flatnonzero(differing.any(axis=1)), np.flatnonzero(differing.any(axis=0))
    share = max(1, round(100 * differing.mean()))
    return f"{share} % of the pixels differ, between ({columns[0]}, {rows[0]}) and ({columns[-1]}, {rows[-1]})"
