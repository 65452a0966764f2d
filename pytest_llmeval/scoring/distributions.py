"""Normal and Student's distribution for single numbers.

Every run with an interval needs them, and loading `scipy.special` for that takes longer than all else that a small run
does.
"""

__all__ = ("normal_cdf", "normal_quantile", "student_cdf", "student_quantile")

import math
from functools import lru_cache

_ROUNDING = 1e-16
_TINY = 1e-300


def normal_cdf(z: float) -> float:
    """Return the probability of at most `z`, precise in both tails."""
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return what a share `p` lies below; infinite at 0 and 1."""
    from statistics import NormalDist

    if p in (0, 1):
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def student_cdf(freedom: float, t: float) -> float:
    """Return the probability of at most `t`, precise in both tails."""
    if t > 0:
        return 1 - student_cdf(freedom, -t)
    return _beta_share(freedom / 2, freedom / (freedom + t * t)) / 2 if math.isfinite(t) else 0.0


@lru_cache(maxsize=1024)
def student_quantile(freedom: float, p: float) -> float:
    """Return what a share `p`, between 0 and 1, lies below."""
    if p > 1 / 2:
        return -student_quantile(freedom, 1 - p)
    low = high = normal_quantile(p)
    while student_cdf(freedom, low) > p:
        low *= 2
    while low < (middle := (low + high) / 2) < high:
        if student_cdf(freedom, middle) > p:
            high = middle
        else:
            low = middle
    return high


def _beta_share(a: float, x: float) -> float:
    """Return the regularised incomplete beta function for `b` = 1/2 (DLMF 8.17.22, by Lentz's method)."""
    b = 0.5
    if x in (0, 1):
        return x
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - scale * _fraction(b, a, 1 - x) / b
    return scale * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction; about the root of `a` steps make it exact."""
    c = 1.0
    total = d = 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            total *= c * d
        if abs(c * d - 1) < _ROUNDING * 4:
            break
    return total
