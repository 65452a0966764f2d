"""Files: text, YAML, JSON and CSV, each value with its place."""

__all__ = ()
