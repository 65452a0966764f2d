"""The rule for questions that cannot be answered: does an answer say so?"""

__all__ = ("is_unanswerable",)

_VALUES = frozenset({"", "n/a", "na", "none", "null", "unanswerable"})
_PHRASES = (
    "not mentioned",
    "not in the conversation",
    "cannot answer",
    "can't answer",
    "insufficient",
    "unknown",
    "no information",
    "not provided",
    "information not found",
    "not found",
    "not available",
    "no data",
)


def is_unanswerable(text: str) -> bool:
    """Return whether a text says that a question cannot be answered.

    That is so if the text, without regard to case and outer white space, is empty, is one of ``n/a``, ``na``,
    ``none``, ``null`` and ``unanswerable``, or contains one of twelve phrases such as ``not mentioned`` or ``no
    information``: the values and phrases of HiMGA's judge for LoCoMo, which are English only.

    Example:
        >>> is_unanswerable("It is not mentioned."), is_unanswerable("In Paris.")
        (True, False)
    """
    text = text.strip().lower()
    return text in _VALUES or any(phrase in text for phrase in _PHRASES)
