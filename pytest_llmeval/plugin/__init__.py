"""The pytest plugin: options, hooks, collection, items, fixtures. The only package that imports pytest."""

__all__ = ()
