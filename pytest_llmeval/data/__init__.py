"""Reading user files: documents, case formats, label sets."""

__all__ = ()
