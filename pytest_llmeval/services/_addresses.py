"""Addresses of services."""

import hashlib
import os
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from pytest_llmeval.core import format_error, quotation

_LONGEST_SHOWN: Final = 100


class ServiceAddress(Struct, frozen=True):
    """The HTTP address of a service, such as a judge's, which may hold secrets.

    Attributes:
        url: The address as the user wrote it.
    """

    url: str

    def note(self, *keys: str) -> str:
        """The name of the service and its keys in the notes of a run, which contains no secret.

        Args:
            keys: The names of the environment variables that hold the keys.
        """
        return " ".join((hashlib.sha256(self.url.encode(errors="surrogatepass")).hexdigest()[:16], *keys))

    def fault(self, expected: str, secrets: str) -> str | None:
        """The fault of the address; the message holds no part that may be secret.

        Args:
            expected: What to write instead, for the message.
            secrets: Where user names and passwords belong, for the message.
        """
        public = re.split("[?#]", self.url, maxsplit=1)[0]
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable, parts = False, None
        if "@" in (parts.netloc if usable and parts is not None else public):
            return f"found a user name or password in the address, expected {expected}, and {secrets}"
        if not usable or not self.url.isprintable() or " " in self.url:
            return f"found {quotation(public, _LONGEST_SHOWN)}, expected {expected}"
        return None

    @property
    def redacted(self) -> str:
        """The address without user, password, query and fragment.

        Example:
            >>> ServiceAddress("http://me:secret@host:81/v1?key=1").redacted
            'http://host:81/v1'
        """
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return "an address that cannot be read"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def proxy(self) -> str | None:
        """The address of the proxy for requests to the service; ``None`` where there is none.

        A session of aiohttp that trusts the environment would find it, too, but would also send passwords of a netrc
        file.
        """
        from urllib.request import getproxies, proxy_bypass

        parts = urlsplit(self.url)
        proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
        return f"http://{proxy}" if proxy and "//" not in proxy else proxy  # HOST:PORT alone is also usual


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
