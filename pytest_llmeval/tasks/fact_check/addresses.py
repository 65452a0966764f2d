"""Addresses of web pages: finding them in texts, and telling whether two are the same."""

__all__ = ("canonical_address", "find_addresses", "is_address", "readings", "site_name")

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from pytest_llmeval.data.labels import load_taxonomy

_CLOSING = (
    r"\s<>\[\]{}\"`|\\^\u00b7\u2018-\u201f\u2026\u2013\u2014"
    r"\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_BODY = rf"(?:(?![,;](?:[^\x00-\x7f]|https?://|www\.))[^{_CLOSING}])"
_WITH_SCHEME = re.compile(rf"(?:https?://|(?<![\w@./-])www\.(?=\w)){_BODY}++", re.IGNORECASE)
_BARE = re.compile(rf"(?<![\w@.:/-])[a-z\d-]++(?:\.[a-z\d-]++)++(?::\d++)?(?:/{_BODY}*+)?", re.IGNORECASE)
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_HOST_END = re.compile(r"[:/]")
_TRAILING = ".,;:!?'*"
_READ_ON = re.compile(r"[,;]|[^\x00-\x7f]")
_ROUTES = ("/", "!")


def find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each address in a text, in order, without the punctuation behind it.

    An address begins with ``http://``, ``https://`` or ``www.``, or is a host such as ``example.org`` with a path or a
    well-known ending. It ends at white space, quotes, square brackets and Chinese punctuation; a round bracket belongs
    to it if it was opened in it.
    """
    found = [match.span() for match in _WITH_SCHEME.finditer(text)]
    found += [match.span() for match in _BARE.finditer(text) if _is_host(text, match)]
    end = 0
    for first, last in sorted(found):
        if first < end:
            continue
        end = last
        stop = first + len(_trimmed(text[first:last]))
        if canonical_address(text[first:stop]) is not None:
            yield first, stop


def _is_host(text: str, match: re.Match[str]) -> bool:
    host, _, path = match[0].partition("/")
    ending = host.partition(":")[0].rpartition(".")[2]
    if text[match.end() : match.end() + 1] == "@":
        return False
    return ending in _data()["endings"] or ("/" in match[0] and bool(path) and ending.isalpha() and len(ending) > 1)


def _trimmed(address: str) -> str:
    """Return an address without punctuation at its end, and without a closing bracket that it does not open."""
    depth = 0
    for place, char in enumerate(address):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            address = address[:place]
            break
    return address.rstrip(_TRAILING)


def is_address(text: str) -> bool:
    """Return whether a text is an address and nothing else."""
    text = text.strip()
    return next(find_addresses(text), None) == (0, len(text)) or (
        _SCHEME.match(text) is not None and not re.search(r"\s", text) and canonical_address(text) is not None
    )


def readings(address: str) -> Iterator[str]:
    """Yield an address as it stands in a text, and as far as it goes without what may be the text that follows.

    Commas, semicolons and letters beyond ASCII may belong to an address or to the sentence round it.
    """
    yield address
    scheme = _SCHEME.match(address)
    doubtful = _READ_ON.search(address, scheme.end() if scheme else 0)
    if doubtful:
        yield _trimmed(address[: doubtful.start()])


@lru_cache(maxsize=4096)
def canonical_address(text: str) -> str | None:
    """Return host, path and query of an address, the same for all its spellings; ``None`` for what is none.

    Scheme, ``www.``, default port, user, fragment, a slash at the end, the order of parameters and those that only
    track readers do not matter; a host in any script equals its form in ASCII. A fragment that a page routes by
    (``#/`` or ``#!``) belongs to the address.

    >>> canonical_address("HTTPS://www.Example.org:443/news/?b=2&a=1&utm_source=x#top")
    'example.org/news?a=1&b=2'
    """
    from yarl import URL

    text = text.strip()
    try:
        url = URL(text if _SCHEME.match(text) else f"https://{text}")
        port = url.explicit_port
        host = (url.raw_host or "").lower().rstrip(".").removeprefix("www.")
    except (ValueError, IndexError):  # the latter comes from yarl for brackets that hold no address
        return None
    if not host or not ("." in host or _SCHEME.match(text)):
        return None
    usual = {"http": 80, "https": 443}[url.scheme]
    query = sorted(part for part in url.raw_query_string.split("&") if part and not _tracks(part.partition("=")[0]))
    route = url.raw_fragment if url.raw_fragment.startswith(_ROUTES) else ""
    return "".join(
        (
            host,
            "" if port in (None, usual) else f":{port}",
            url.raw_path.rstrip("/"),
            f"?{'&'.join(query)}" if query else "",
            f"#{route.rstrip('/')}" if route else "",
        )
    )


def site_name(canonical: str) -> str:
    """Return the name of the site of a canonical address, without what it ends in.

    >>> site_name("news.bbc.co.uk/world")
    'bbc'
    """
    labels = _HOST_END.split(canonical, maxsplit=1)[0].split(".")
    labels = labels[:-1] or labels
    if len(labels) > 1 and labels[-1] in _data()["second_level"]:
        labels.pop()
    return labels[-1]


def _tracks(name: str) -> bool:
    name = name.lower()
    return name in _data()["tracking"] or name.startswith(_prefixes())


@cache
def _data() -> Mapping[str, frozenset[str]]:
    data: Mapping[str, Any] = load_taxonomy("citations")["addresses"]
    return {key: frozenset(values) for key, values in data.items()}


@cache
def _prefixes() -> tuple[str, ...]:
    return tuple(sorted(name.removesuffix("*") for name in _data()["tracking"] if name.endswith("*")))
