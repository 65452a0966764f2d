"""The working cache, a database shared by the processes of a machine."""

__all__ = ()
