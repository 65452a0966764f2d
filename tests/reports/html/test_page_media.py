"""Files of media that a page links, and those that it only names."""

from pathlib import Path

import pytest
from pictures import PDF, SVG, png

from pytest_llmeval import Media
from pytest_llmeval.core import form_of
from pytest_llmeval.reports import PageMedia

HTML = b"<!doctype html><script>alert(1)</script>"
SCRIPTED = b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></html>"
LARGE = bytes(400_000)


@pytest.mark.parametrize(
    ("name", "data", "kind", "place"),
    [
        ("the scan.pdf", PDF, None, {"href": "the%20scan.pdf#page=1"}),
        ("large.png", png(2, 2) + LARGE, None, {"href": "large.png"}),
        ("drawn.svg", SVG, None, {"path": "drawn.svg"}),
        ("drawn.txt", SVG, "text/plain", {"href": "drawn.txt"}),
        ("page.html", HTML, None, {"path": "page.html"}),
        ("page.html", HTML, "text/plain", {"path": "page.html"}),
        ("page.xhtml", SCRIPTED, "application/xhtml+xml", {"path": "page.xhtml"}),
        ("feed.xml", SCRIPTED, "text/plain", {"path": "feed.xml"}),
        ("no ending", HTML, "text/plain", {"path": "no ending"}),
        ("javascript:alert(1).pdf", PDF, None, {"href": "javascript%3Aalert%281%29.pdf#page=1"}),
    ],
)
def test_a_page_links_no_file_of_which_a_browser_would_run_scripts(
    tmp_path: Path, name: str, data: bytes, kind: str | None, place: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(data)
    medium = Media.from_path(tmp_path / name, type=kind)
    assert PageMedia([form_of(medium)], tmp_path).places == {medium.sha256: place}


def test_an_ending_decides_where_a_picture_of_another_name_is_not_linked(tmp_path: Path) -> None:
    path = tmp_path / "picture.html"
    path.write_bytes(png(2, 2) + HTML + LARGE)
    medium = Media(data=path.read_bytes())
    assert medium.type == "image/png"
    held = Media.from_path(path, type="image/png")
    assert PageMedia([form_of(held)], tmp_path).places[held.sha256] == {"path": "picture.html"}
