"""Where the tests find the project, and the recorded numbers of official scorers beside it."""

__all__ = ("CONFORMANCE", "IMPORTERS", "ROOT", "SHARED")

import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CONFORMANCE = SHARED / "conformance"
IMPORTERS = SHARED / "data" / "importers"
"""Files of other tools, as their projects published them."""


def script(name: str) -> Any:
    """Return a script of the project's own as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
