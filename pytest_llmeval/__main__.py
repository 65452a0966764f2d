"""``python -m pytest_llmeval`` is the command ``llmeval``."""

__all__ = ()

import sys

from pytest_llmeval.cli import main

if __name__ == "__main__":
    sys.exit(main())
