"""Contents at addresses whose hosts users name."""

from collections.abc import Collection
from time import monotonic
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from pytest_llmeval._version import __version__
from pytest_llmeval.core import MediaError, MediaLimits, parse_digits, quotation
from pytest_llmeval.services import ServiceAddress

_MOST_REDIRECTS: Final = 3
_SECONDS: Final = 30.0
_PIECE: Final = 1 << 16
_LONGEST: Final = 80
_PORTS: Final = {"http": 80, "https": 443}
_OWN_MACHINE: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = 200


class FetchedContent(Struct, frozen=True):
    """The content that a suite fetched from a medium's address, with its media type.

    Attributes:
        data: The content.
        type: Media type as the server says it; empty if it does not.
    """

    data: bytes
    type: str


def is_fetched(address: str, hosts: Collection[str]) -> bool:
    """Whether a suite fetches a medium's address: it is at one of the hosts under ``fetch``.

    >>> is_fetched("https://Example.org/a.png", ["example.org"]), is_fetched("https://example.org:81/", ["example.org"])
    (True, False)
    """
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and _host_of(parts) in {host.lower() for host in hosts}
    except ValueError:
        return False


def _host_of(parts: SplitResult) -> str:
    """The host of a medium's address, as a suite names it under ``fetch``, with its port if that is unusual."""
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host
    return name if parts.port in (None, _PORTS.get(parts.scheme)) else f"{name}:{parts.port}"


def fetch_content(address: str, hosts: Collection[str], limits: MediaLimits) -> FetchedContent:
    """Fetch the content at a medium's address for a suite; redirects are followed to the same hosts only.

    Args:
        address: It begins with ``https:``; on this machine, also with ``http:``.
        hosts: Those that may be asked.
        limits: Of its size.

    Raises:
        MediaError: It cannot be had, or is larger.
    """
    import http.client

    deadline = monotonic() + _SECONDS
    where = ""
    for _ in range(_MOST_REDIRECTS + 1):
        _check(address, hosts)
        try:
            with _open_reply(address, deadline - monotonic()) as response:
                if response.status not in _REDIRECTS or not response.headers["Location"]:
                    return _content(response, where, limits, deadline)
                address = urljoin(address, response.headers["Location"])
                where = f"{ServiceAddress(address).redacted}: "
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = quotation(str(getattr(error, "reason", error)) or type(error).__name__, _LONGEST)
            raise MediaError(f"{where}it gave no content ({reason})") from None
    raise MediaError(f"it redirects more than {_MOST_REDIRECTS} times, to {ServiceAddress(address).redacted}")


def _check(address: str, hosts: Collection[str]) -> None:
    """Refuse the address of a medium that a suite may not fetch.

    Raises:
        MediaError: It may not.
    """
    expected = "an address such as https://example.org/a.png"
    if fault := ServiceAddress(address).fault(expected, "no secrets in it"):
        raise MediaError(fault)
    parts = urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in _OWN_MACHINE:
        raise MediaError(f"found {ServiceAddress(address).redacted}, expected one that begins with https:")
    if not is_fetched(address, hosts):
        raise MediaError(f"found the host {_host_of(parts)!r}, expected one of `fetch`: {', '.join(sorted(hosts))}")


def _open_reply(address: str, seconds: float) -> Any:
    """Open the reply of a medium's address, of any status; nothing but the address is sent."""
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """Leaves redirects to the caller."""

        def redirect_request(self, *_: Any) -> None:
            """Return no further request."""

    headers = {"User-Agent": f"pytest-llmeval/{__version__}", "Accept-Encoding": "identity"}
    request = Request(address, headers=headers)  # noqa: S310 (its scheme has been checked)
    try:
        return build_opener(Stay).open(request, timeout=max(seconds, 0.1))
    except HTTPError as error:
        return error


def _content(response: Any, where: str, limits: MediaLimits, deadline: float) -> FetchedContent:
    """Read the content of a medium that a suite fetches, within limits of size and time.

    Raises:
        MediaError: It has none, is cut, is too large, or takes too long.
    """
    if response.status != _OK:
        raise MediaError(f"{where}found the status {response.status}, expected 200")
    body = bytearray()
    while piece := response.read1(_PIECE):
        body += piece
        if len(body) > limits.file:
            raise MediaError(
                f"{where}found more than {limits.file_text}, expected at most that: raise --llmeval-media-limit"
            )
        if monotonic() > deadline:
            raise MediaError(f"{where}it takes longer than {_SECONDS:g} s")
    length = parse_digits(response.headers["Content-Length"] or "")
    if length is not None and len(body) < length:
        raise MediaError(f"{where}found {len(body)} of {length} bytes, expected all of them")
    kind = response.headers.get_content_type() if response.headers["Content-Type"] else ""
    return FetchedContent(bytes(body), kind)
