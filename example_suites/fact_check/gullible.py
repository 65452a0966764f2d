"""A fact checker to compare with: it believes everything, and cites nothing."""

__all__ = ("check",)


def check(claim: str) -> dict[str, str]:
    """Call a claim supported."""
    return {"claim": claim, "verdict": "Supported", "justification": "It sounds right."}
