"""Draws the expected pictures: ``python example_suites/screens/draw_pictures.py`` writes the folder `pictures`."""

import json
from pathlib import Path

from screen_drawing import draw

HERE = Path(__file__).parent

if __name__ == "__main__":
    for line in (HERE / "pictures.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        (HERE / case["expected"]["file"]).write_bytes(draw(case["input"]).data)
