"""Write tests/reports/failures, what a failing case of each evaluator shows, and tests/plugin/screens, what runs show.

Run it after adding an evaluator or changing what is shown.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import screens
from examples import WIDTHS, recorded, written

if __name__ == "__main__":
    for width in WIDTHS:
        recorded(width).write_text(written(width), encoding="utf-8")
        sys.stdout.write(f"{recorded(width)}\n")
    sys.stdout.writelines(f"{path}\n" for path in screens.record())
