"""How numbers are written for people, everywhere. Files carry the shortest text that reads back as the same number."""

__all__ = ("counted", "interval", "limit", "number", "seconds")

NOT_AVAILABLE = "n/a"


def number(value: float | None) -> str:
    """Write a score with four decimals; an absent one as ``n/a``.

    >>> number(2 / 3), number(None), number(-0.00001), number(1234.5)
    ('0.6667', 'n/a', '0.0000', '1234.5')
    """
    if value is None:
        return NOT_AVAILABLE
    text = f"{value:.4f}" if abs(value) < 1000 else f"{value:.1f}"  # noqa: PLR2004 (beyond this, decimals are noise)
    return text.removeprefix("-") if not text.strip("-0.") else text


def interval(low: float | None, high: float | None) -> str:
    """Write an interval.

    >>> interval(0.5, 0.75), interval(None, None)
    ('0.5000..0.7500', 'n/a')
    """
    return NOT_AVAILABLE if low is None or high is None else f"{number(low)}..{number(high)}"


def limit(value: float) -> str:
    """Write a limit as the user would have typed it.

    >>> limit(0.7), limit(1.0), limit(20)
    ('0.7', '1', '20')
    """
    return f"{value:.12g}"


def counted(count: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "case"), counted(3, "case")
    ('1 case', '3 cases')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds(value: float) -> str:
    """Write a duration.

    >>> seconds(0.004), seconds(12.34)
    ('4 ms', '12.3 s')
    """
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
