"""What tells one HTTP interface of models from another: data in, data out, no I/O."""

__all__ = ("Dialect", "count")

from collections.abc import Mapping
from typing import Any, Protocol

from pytest_llmeval.judge.clients.base import is_count
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage


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
        """Return the tokens that an answer says were used."""

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the reply in an answer; ``None`` if the answer has none."""

    def refuses_form(self, text: str) -> bool:
        """Return whether a 400 or 422 complains about the form that `structured` asked for."""


def count(data: Any, name: str) -> int | None:
    """Return a number of tokens out of untrusted data; ``None`` for what is none."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if is_count(value) else None
