"""Script, style and template of the page."""

import re
from pathlib import Path

import pytest

from pytest_llmeval.reports.html import _page as page

ASSETS = Path(page.__file__).parent / "assets"
SCRIPTS = sorted(ASSETS.glob("*.js"))
TEXT = r'"((?:[^"\\]|\\.)*)"'


def test_every_script_is_part_of_the_page_once() -> None:
    assert sorted(page._SCRIPTS) == [path.name for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_of_text(path: Path) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|srcdoc|DOMParser|on\w+=|javascript:"
    )
    assert re.findall(forbidden, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted(ASSETS.iterdir()), ids=lambda path: path.name)
def test_no_part_of_the_page_names_an_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace('"http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?:|//\w+\.\w|@import|url\(", text) == []
    assert text.count("\n") <= 400


def test_every_text_of_the_interface_is_there_in_chinese() -> None:
    script = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS if path.name != "words_zh.js")
    said = {*re.findall(rf"\bt\(\s*{TEXT}", script), *re.findall(r'"([^"\n]*\{n\}[^"\n]*)"', script)}
    for table in re.findall(r"const (?:ANSWERS|KINDS|MOVES|KEYS) = \{(.*?)\};", script, re.DOTALL):
        said |= {*re.findall(rf": {TEXT}", table)}
    said |= {*re.findall(TEXT, re.findall(r"const SENTENCES = \[(.*?)\];", script, re.DOTALL)[0])}
    said |= {
        "passed",
        "failed",
        "errored",
        "xfailed",
        "known failure",
        "not scored",
        "skipped",
        "not run",
        "not needed",
        "not evaluated",
        "flaky",
        "stable pass",
        "stable fail",
        "not significant",
        "undecided",
    }
    said |= {"data", "evaluator", "judge", "bridged judge"}
    known = {*re.findall(rf"^  {TEXT}: ", (ASSETS / "words_zh.js").read_text(encoding="utf-8"), re.MULTILINE)}
    assert said - known == set()
    assert known - said == set()
