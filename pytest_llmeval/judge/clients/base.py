"""The client contract, and the total usage of several attempts."""

__all__ = ("AsyncJudge", "Dialect", "OnRateLimit", "added", "count", "is_count", "plain_text")

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage
from pytest_llmeval.judge.questions.probabilities import TokenChoice

_MOST_TOKENS: Final = 1 << 53
"""What is more than that was not counted, and databases and JSON of other programs cannot keep it."""

OnRateLimit: TypeAlias = Callable[[float | None], None]
"""Called for every reply "too many requests", with the seconds to wait if the server asks for a delay."""


class AsyncJudge(Protocol):
    """A judge client that is awaited and must be closed."""

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply.

        Raises:
            JudgeError: There is none, after all retries.
        """

    async def aclose(self) -> None:
        """Give connections back; the client may be used again afterwards."""


def added(one: Usage, other: Usage) -> Usage:
    """Return the tokens of two attempts; a number that neither reports stays unknown.

    Example:
        >>> from pytest_llmeval.judge.contract import Usage
        >>> added(Usage(10, None), Usage(5, None))
        Usage(input_tokens=15, output_tokens=None)
    """

    def total(first: int | None, second: int | None) -> int | None:
        return None if first is None and second is None else (first or 0) + (second or 0)

    return Usage(
        total(one.input_tokens, other.input_tokens),
        total(one.output_tokens, other.output_tokens),
    )


def is_count(value: Any) -> bool:
    """Return whether something can be a number of tokens.

    Example:
        >>> is_count(5), is_count(-5), is_count(5.0), is_count(True)
        (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


def plain_text(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON can carry but no file or database can keep.

    Example:
        >>> plain_text("a" + chr(0xD800))
        'a\N{REPLACEMENT CHARACTER}'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Dialect(Protocol):
    """A provider's interface."""

    @property
    def provider(self) -> str:
        """Its name."""

    @property
    def base_url(self) -> str:
        """Its own address."""

    @property
    def key_variable(self) -> str:
        """The environment variable that usually holds its key."""

    def url(self, base: str) -> str:
        """Return the address to call."""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key and the interface's version."""

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:
        """Return what to send; `structured` asks for a reply that follows the request's schema."""

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports."""

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the reply in an answer; ``None`` if the answer has none."""

    def tokens(self, data: Mapping[str, Any]) -> Sequence[TokenChoice]:
        """Return the tokens of the reply with their alternatives; empty where the answer has none."""

    def refuses_form(self, text: str) -> bool:
        """Return whether a 400 or 422 complains about the form that `structured` asked for."""


def count(data: Any, name: str) -> int | None:
    """Return a number of tokens from untrusted data; ``None`` if it is not one."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if is_count(value) else None
