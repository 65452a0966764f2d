"""Looking at a total again and again while it grows: evidence that is right whenever one looks.

A gate on a mean is a question about a total: of what the scores of all cases have beyond the limit, added up. Cases
come in a random order, so those that have run are drawn without replacement from a list that is fixed, and what the
next one adds on average follows from what the total would have to be. Whoever bets at these odds that the total is
above 0, and never more than there is, has a capital that is a supermartingale if it is not: the probability that it
ever reaches x is 1 / x at most, however often one looks (Ville 1939; Waudby-Smith and Ramdas 2020, "Confidence
sequences for sampling without replacement", and 2023, "Estimating means of bounded random variables by betting").
Nothing is assumed of the scores but their bounds, and nothing of the cases: they need neither be many, nor
independent, nor alike.

The bets are shares of what could be lost at most, from all of it to very little. The capital is the mean of what
becomes of each share, so that no variance has to be known beforehand.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.core.observation import FloatArray

_SHARES = 12
_SMALLEST_SHARE = 0.02
_ROUNDING = 1e-9
_MOST = 600.0
"""What `exp` can take."""


class CaseUnits(NamedTuple):
    """What was ordered at random: cases, or clusters of cases.

    Attributes:
        numbers: Number of the unit of every case in the order in which they run, ascending from 0. Cases that always
            run come first, and have -1: they are no sample of anything.
    """

    numbers: "npt.NDArray[np.intp]"


def evidence_above(
    sums: "FloatArray",
    sizes: "FloatArray",
    reach: float,
    known: float = 0.0,
    *,
    finite: bool = True,
    inclusive: bool = False,
) -> "FloatArray":
    """Return the evidence that a total is above 0, after each of the units that have been seen.

    Args:
        sums: What these units add to the total, in their order.
        sizes: Number of cases of every unit, those to come included, in their order.
        reach: How far below 0 a single case may be, 0 or more.
        known: What is in the total besides the units: of cases that always run.
        finite: Whether the total is that of the units listed; otherwise that of as many units that are drawn where
            these were drawn, so that chance in the choice of the cases counts too.
        inclusive: Whether the evidence may be for a total of 0, too.

    Returns:
        The largest evidence up to each unit, from 1 on; infinite once the rest cannot make the total anything else.
        Where the total is not above 0, one random order in x ever reaches x.
    """
    import numpy as np

    seen, units = len(sums), len(sizes)
    if not seen:
        return np.ones(0)
    totals = known + np.cumsum(sums)
    # What a unit would add on average, were the total 0.
    fair = -(totals - sums) / (units - np.arange(seen)) if finite else np.full(seen, -known / units)
    worst = reach * np.maximum.accumulate(sizes[::-1])[::-1][:seen]
    room = fair + worst
    shares = np.geomspace(1.0, _SMALLEST_SHARE, _SHARES)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        # Without room, a total of 0 is possible only if all other units are as bad as can be.
        gains = np.where(room > _ROUNDING, (sums + worst) / np.where(room > _ROUNDING, room, 1.0), 1.0)
        capital = np.cumsum(np.log1p(shares * (np.maximum(gains, 0.0) - 1)), axis=1)
    found: FloatArray = np.exp(np.minimum(_MOST, np.logaddexp.reduce(capital, axis=0) - np.log(_SHARES)))
    if finite:
        to_come = sizes.sum() - np.cumsum(sizes[:seen])
        found = np.where(totals - reach * to_come > _ROUNDING * (-1 if inclusive else 1), np.inf, found)
    return np.maximum(np.maximum.accumulate(found), 1.0)


def first_reached(
    excess: "FloatArray",
    members: "npt.NDArray[np.bool_]",
    units: CaseUnits,
    reach: float,
    needed: float,
    *,
    finite: bool = True,
    inclusive: bool = False,
) -> tuple[int | None, float]:
    """Return when the evidence that a total is above 0 has first reached a number, and the evidence by now.

    Args:
        excess: What each case that has run adds to the total, in the order of the cases; whole units.
        members: Which of all cases the total is of.
        units: Of all cases.
        reach: How far below 0 a case may be.
        needed: The number.
        finite: See `evidence_above`.
        inclusive: See `evidence_above`.

    Returns:
        The number of cases, or ``None``; and the evidence, at least 1.
    """
    import numpy as np

    seen = len(excess)
    always = members & (units.numbers < 0)
    drawn = np.flatnonzero(members & (units.numbers >= 0))
    names, place, sizes = np.unique(units.numbers[drawn], return_inverse=True, return_counts=True)
    ran = drawn < seen
    count = int(place[ran].max()) + 1 if ran.any() else 0
    sums = np.zeros(count)
    np.add.at(sums, place[ran], excess[drawn[ran]])
    known = float(excess[always[:seen]].sum())
    if not drawn.size:  # all of them are known as soon as they have run
        certain = bool(members.any()) and known > _ROUNDING * (-1 if inclusive else 1)
        return (int(always.sum()), math.inf) if certain and finite else (None, 1.0)
    found = evidence_above(
        sums, sizes.astype(float), max(reach, 0.0), known, finite=finite, inclusive=finite and inclusive
    )
    reached = np.flatnonzero(found >= needed)
    at = None
    if reached.size:
        last = names[reached[0]]
        at = int(np.flatnonzero(units.numbers == last)[-1]) + 1
    return at, float(found[-1]) if count else 1.0
