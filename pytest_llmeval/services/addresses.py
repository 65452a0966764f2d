"""Addresses of services: validation, display, and reasons for failed connections."""

__all__ = ("address_fault", "address_of", "proxy_for", "redacted_url", "why_no_answer")

import hashlib
import os
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pytest_llmeval.core.errors import format_error

_LONGEST_SHOWN: Final = 100


def address_of(url: str, *keys: str) -> str:
    """Return a name for a service and its keys that contains no secret.

    Args:
        url: Where.
        keys: The names of the environment variables that hold the keys.
    """
    return " ".join((hashlib.sha256(url.encode(errors="surrogatepass")).hexdigest()[:16], *keys))


def address_fault(url: str, expected: str, secrets: str) -> str | None:
    """Return what is wrong with an address of HTTP; the message holds no part that may be secret.

    Args:
        url: The address.
        expected: What to write instead, for the message.
        secrets: Where user names and passwords belong, for the message.
    """
    public = re.split("[?#]", url, maxsplit=1)[0]
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, None
    if "@" in (parts.netloc if usable and parts is not None else public):
        return f"found a user name or password in the address, expected {expected}, and {secrets}"
    if not usable or not url.isprintable() or " " in url:
        return f"found {public[:_LONGEST_SHOWN]!r}, expected {expected}"
    return None


def redacted_url(url: str) -> str:
    """Return an address without user, password, query and fragment.

    Example:
        >>> redacted_url("http://me:secret@host:81/v1?key=1")
        'http://host:81/v1'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def why_no_answer(error: Exception) -> str:
    """Say on one line what kept a client of aiohttp from an answer, without the address, which may hold secrets."""
    import aiohttp

    text = format_error(error)
    indirect = (aiohttp.ClientProxyConnectionError, aiohttp.ClientSSLError)  # their text names the proxy, or the fault
    if isinstance(error, aiohttp.ClientResponseError):
        text = f"{type(error).__name__}: {error.message}"
    elif isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, indirect):
        number = error.os_error.errno or 0
        # Unresolved names have numbers below 0 and their own message.
        text = f"no connection ({os.strerror(number) if number > 0 else error.os_error.strerror or error.os_error})"
    return " ".join(text.split())


def proxy_for(url: str) -> str | None:
    """Return the address of the proxy; ``None`` where there is none.

    A session of aiohttp that trusts the environment would find it, too, but would also send passwords of a netrc file.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "//" not in proxy else proxy  # HOST:PORT alone is usual, too
