"""Traces of OpenTelemetry: what comes from an application, and what a collector gets."""

__all__ = ()
