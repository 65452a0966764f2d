"""An assistant to compare with: it never knows."""

__all__ = ("answer",)


def answer(case_input: object) -> str:
    """Refuse to answer."""
    del case_input
    return "Not mentioned in the conversation."
