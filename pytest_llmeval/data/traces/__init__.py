"""Traces of applications, read by the conventions of OpenTelemetry and OpenInference."""

__all__ = ()
