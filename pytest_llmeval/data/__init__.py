"""Reading what users write: files, formats of cases, label sets."""

__all__ = ()
