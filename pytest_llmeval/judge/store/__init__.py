"""The working cache: a database that the processes of a machine share."""

__all__ = ()
