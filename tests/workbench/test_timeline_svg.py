"""The picture of a history: well-formed, without anything that acts, and the same every time."""

from datetime import UTC, datetime
from xml.etree import ElementTree

from builders import picture
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from pytest_llmeval.reports import Point, Timeline
from pytest_llmeval.workbench._history import history_svg

NAME = "{http://www.w3.org/2000/svg}"
TIME = datetime(2026, 1, 2, 10, tzinfo=UTC)


def drawn(*points: Point, metric: str = "f1", title: str = "s.eval.yaml") -> ElementTree.Element:
    timeline = Timeline(title, "", points)
    text = history_svg([timeline], {title: [metric]})
    assert text == history_svg([timeline], {title: [metric]})
    return ElementTree.fromstring(text)


def classes(image: ElementTree.Element) -> list[str]:
    """Return the classes of the shapes, without those of the legend, which are the last."""
    return [name for each in image.iter() if (name := each.get("class"))][:-8]


def point(value: float | None, **more: object) -> Point:
    return Point(TIME, "c" * 40, {"f1": value}, **more)  # type: ignore[arg-type]  # fields of a point


def test_a_run_an_approval_and_a_failed_gate_have_marks_of_their_own() -> None:
    image = drawn(point(0.5), point(0.6, approved=True), point(0.4, gates={"f1 >= 0.5": "failed"}))
    marks = [name for name in classes(image) if name in ("dot", "approved", "failed")]
    assert marks == ["dot", "approved", "dot", "failed"]
    titles = [each.text for each in image.iter(f"{NAME}title")]
    assert titles == [
        "2026-01-02 10:00 ccccccc; f1 0.5000",
        "2026-01-02 10:00 ccccccc; f1 0.6000; approved",
        "2026-01-02 10:00 ccccccc; f1 0.4000; failed: f1 >= 0.5",
    ]


def test_a_change_is_a_line_between_two_runs() -> None:
    image = drawn(point(0.5, basis={"judge": "a"}), point(0.5, basis={"judge": "b"}))
    (line,) = (each for each in image.iter(f"{NAME}line") if each.get("class") == "changed" and len(each))
    dots = [float(each.get("cx", "")) for each in image.iter(f"{NAME}circle") if each.get("class") == "dot"]
    assert dots[0] < float(line.get("x1", "")) < dots[1]
    assert line[0].text == "changed: judge"


def test_a_run_without_value_breaks_the_line() -> None:
    image = drawn(point(0.5), point(None), point(0.5), point(0.6))
    lines = [each.get("points", "").count(",") for each in image.iter(f"{NAME}polyline")]
    assert lines == [1, 2]


def test_only_runs_with_intervals_have_a_band() -> None:
    known = {"f1": (0.4, 0.6)}
    image = drawn(point(0.5, intervals=known), point(0.5), point(0.5, intervals=known), point(0.6, intervals=known))
    assert [each.get("points", "").count(",") for each in image.iter(f"{NAME}polygon")] == [2, 4]
    assert [each.get("points", "").count(",") for each in image.iter(f"{NAME}polyline")] == [4]


def test_the_first_and_the_last_day_stand_below() -> None:
    image = drawn(point(0.5), Point(datetime(2026, 3, 4, tzinfo=UTC), values={"f1": 1.0}))
    texts = [each.text for each in image.iter(f"{NAME}text")]
    assert [each for each in texts if each and each.startswith("2026")] == ["2026-01-02", "2026-03-04"]


def test_equal_values_are_drawn_in_the_middle() -> None:
    image = drawn(point(0.5), point(0.5))
    *dots, _ = (each.get("cy") for each in image.iter(f"{NAME}circle") if each.get("class") == "dot")
    assert dots == ["55.0", "55.0"]


def test_a_history_without_a_value_is_drawn_without_marks() -> None:
    assert "dot" not in classes(drawn(point(None)))


def test_dark_surroundings_have_colours_of_their_own() -> None:
    style = drawn(point(0.5))[0].text or ""
    assert "@media (prefers-color-scheme: dark)" in style


def test_the_documentation_shows_a_picture_as_it_is_drawn_today() -> None:
    shown = (ROOT / "docs" / "images" / "history.svg").read_text(encoding="utf-8")
    assert shown == picture(), "python tests/builders.py > docs/images/history.svg"


TEXTS = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        '" onload="alert(1)',
        "&lt;",
        "]]>",
        "</style>",
        "\u202e",
        "\x00",
        "\ud800",
        "x" * 999,
    ]
)


@given(TEXTS, st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), max_size=5), TEXTS)
def test_any_text_is_shown_and_does_nothing(metric: str, values: list[float | None], gate: str) -> None:
    gates = {gate: "failed"}
    image = drawn(*(Point(TIME, gate, {metric: each}, gates=gates) for each in values), metric=metric, title=gate)
    known = {"svg", "style", "text", "line", "polygon", "polyline", "g", "circle", "path", "title"}
    assert {each.tag.removeprefix(NAME) for each in image.iter()} <= known
    assert not [name for each in image.iter() for name in each.attrib if name.startswith("on") or "href" in name]
