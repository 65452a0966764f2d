"""Where the tests find the project, and the recorded numbers of official scorers beside it."""

__all__ = ("CONFORMANCE", "IMPORTERS", "ROOT", "SHARED")

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CONFORMANCE = SHARED / "conformance"
IMPORTERS = SHARED / "data" / "importers"
"""Files of other tools, as their projects published them."""
