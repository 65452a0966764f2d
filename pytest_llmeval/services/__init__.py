"""Access to the outside world: an event loop, HTTP, other processes, secrets."""

__all__ = ()
