"""What the package needs of the world outside: an event loop, HTTP, other processes, secrets."""

__all__ = ()
