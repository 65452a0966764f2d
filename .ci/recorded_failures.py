"""Write tests/reports/failures: what a failing case of each evaluator shows. Run it after adding or changing one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from examples import WIDTHS, recorded, written

if __name__ == "__main__":
    for width in WIDTHS:
        recorded(width).write_text(written(width), encoding="utf-8")
        sys.stdout.write(f"{recorded(width)}\n")
