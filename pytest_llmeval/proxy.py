"""The proxy that the environment names for an address."""

__all__ = ("proxy_for",)

from urllib.parse import urlsplit


def proxy_for(url: str) -> str | None:
    """Return the address of the proxy; ``None`` where there is none.

    A session of aiohttp that trusts the environment would find it, too, but would also send passwords of a netrc file.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "//" not in proxy else proxy  # HOST:PORT alone is usual, too
