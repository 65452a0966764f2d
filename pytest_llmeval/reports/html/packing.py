"""Compressed pieces of a page: JSON, gzip and base64, unpacked by the page when it needs them."""

__all__ = ("as_json", "chunked", "embedded_json", "pack")

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

_CHUNK = 256_000
"""Characters of JSON in a piece: small enough to be unpacked while a case opens."""


def as_json(value: Any) -> str:
    """Return a value as compact JSON; half of a surrogate pair, which UTF-8 cannot hold, is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def pack(text: str) -> str:
    """Compress a text; equal texts give equal results."""
    return b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")


def chunked(values: Iterable[Any], size: int = _CHUNK) -> Iterator[list[str]]:
    """Yield values as JSON, as many together as one piece of a page holds, and at least one.

    >>> list(chunked(["aaaa", "bbbb", "c"], 10))
    [['"aaaa"'], ['"bbbb"', '"c"']]
    """
    piece: list[str] = []
    length = 0
    for value in values:
        text = as_json(value)
        if piece and length + len(text) > size:
            yield piece
            piece, length = [], 0
        piece.append(text)
        length += len(text)
    if piece:
        yield piece


def embedded_json(value: Any) -> str:
    r"""Return JSON that can stand in a ``script`` element: no text in it can end the element or begin markup.

    >>> embedded_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    escapes = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}
    return as_json(value).translate(escapes)
