import re

import pytest

from pytest_llmeval import EvidenceMatcher
from pytest_llmeval.tasks.fact_check._mentions import Citation, find_citations

BODIES = ["University", "Institute", "Bureau", "Department", "Bank", "Agency", "Organization", "Commission", "Board"]
PUBLISHERS = [*BODIES, *["Post", "Times", "Journal", "News", "Guard", "Press", "Report", "Survey", "Index"]]


def texts(text: str) -> list[str]:
    return [citation.text for citation in find_citations(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Nothing is cited here", []),
        ("See https://a.example/x?y=1, and (http://b.example/z).", ["http://b.example/z", "https://a.example/x?y=1"]),
        ("[https://a.example/x] http:// https://", ["https://a.example/x"]),
        ("网址 https://例子.cn/页面，后文", ["https://例子.cn/页面，后文"]),
        ("According to the harbour office, it rose.", ["the harbour office"]),
        ("It rose, according to Vale Watch; others differ.", ["Vale Watch"]),
        ("According to Dr. Ames it rose.", []),
        ("According to ABC.", ["ABC"]),
        ("According to the ABC.", ["ABC", "the ABC"]),
        ("Based on a port survey and old data it rose.", ["a port survey and old data"]),
        ("Based on hearsay, not data", []),
        ("Based on data", []),
        ("The Vale Times said so.", ["The Vale Times"]),
        ("In May The Vale Times\n said so.", ["In May The Vale Times"]),
        ("The St. Ives Gazette Press confirmed it", ["The St. Ives Gazette Press"]),
        ("Times said so.", []),
        ("ATimes said so.", []),
        ("ABTimes said so.", ["ABTimes"]),
        ("ABank's and ABBank's", ["ABBank"]),
        ("the AReport, the ABReport", ["ABReport"]),
        ("Based on xdata, based on data", ["xdata"]),
        ("Vale Gazette said so.", []),
        ("The Vale Times sang.", []),
        ("The Vale Bank's index fell.", ["The Vale Bank"]),
        ("The Vale Times's index fell.", []),
        ("as the Harbour Index shows", ["Harbour Index"]),
        ("as a Harbour Index shows", []),
        ("ABC data and DEF report and GHI stated it", ["ABC", "DEF", "GHI"]),
        ("US data show", []),
        ("4.25% or 45 % or 4.5.6% or 7%%", ["4.25%", "5.6%", "7%"]),
        ("1,234 of 12,345,678 but not 1,23 or 1234,567 or 10", ["1,234", "12,345,678"]),
        ("1,234,5678 and x1,234 and 1,234x", ["1,234"]),
        ("增长了5.5%。", ["5.5%"]),
    ],
)
def test_citations_are_found_as_defined(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_a_citation_knows_its_kind() -> None:
    found = find_citations("According to the port, 5% (https://a.example).")
    assert found == [
        Citation("5%", "number"),
        Citation("https://a.example", "url"),
        Citation("the port", "name"),
    ]


@pytest.mark.parametrize("publisher", PUBLISHERS)
def test_every_publisher_may_say_something(publisher: str) -> None:
    assert texts(f"An Old {publisher} reported it") == [f"An Old {publisher}"]


@pytest.mark.parametrize("body", BODIES)
def test_every_body_may_own_something(body: str) -> None:
    assert texts(f"An Old {body}'s plan") == [f"An Old {body}"]


@pytest.mark.parametrize("verb", ["reported", "stated", "found", "showed", "indicated", "confirmed", "says", "said"])
def test_every_verb_makes_a_publisher(verb: str) -> None:
    assert texts(f"An Old Post {verb} it") == ["An Old Post"]


HOSTILE = [
    "(",
    "[",
    "http://",
    "https://a",
    "According to ",
    "According to the ",
    "According to the A",
    "Based on x ",
    "based on based on x",
    "The A",
    "the The A Report",
    "A",
    "A ",
    "Bank ",
    "A Bank said ",
    "Aa Bank",
    "ABBank's",
    "Bank's ",
    "'s",
    "1",
    "1.",
    "1,234",
    ",123",
    "12%",
    "AB ",
    "AB data ",
    "AB  \t",
    "according to the AB ",
    "1,234x,",
    "]https://",
    "A  ",
    " ",
    "\n",
    "新",
    "A&.",
    "data",
    "Based on data,",
]


class Counting:
    """Wraps a pattern and counts the characters that its searches may look at."""

    looked = 0

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern

    def finditer(self, text: str, start: int = 0, end: int | None = None) -> "object":
        Counting.looked += (len(text) if end is None else end) - start
        return self.pattern.finditer(text, start, len(text) if end is None else end)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        end = len(text) if end is None else end
        found = self.pattern.search(text, start, end)
        Counting.looked += (found.end() if found else end) - start
        return found

    def match(self, text: str, start: int) -> re.Match[str] | None:
        found = self.pattern.match(text, start)
        blanks = re.compile(r"\s*").match(text, start)
        Counting.looked += max(each.end() - start for each in (found, blanks) if each)
        return found

    def split(self, text: str) -> list[str]:
        Counting.looked += len(text)
        return self.pattern.split(text)


@pytest.mark.parametrize("piece", HOSTILE)
def test_every_character_is_looked_at_a_bounded_number_of_times(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_llmeval.tasks.fact_check import _mentions as mentions

    for name, value in list(vars(mentions).items()):
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(mentions, name, Counting(value))
    text = (piece * 20_000)[:20_000]
    Counting.looked = 0
    find_citations(text)
    assert Counting.looked <= 25 * len(text)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_is_read_to_its_end(piece: str) -> None:
    """A pattern that tries every place anew would need hours for one of these."""
    assert len(texts((piece * 30_000)[:30_000] + ". According to the end.")) <= 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("美联储（Federal Reserve）数据显示，通胀上升。", ["美联储"]),
        ("世界卫生组织(WHO)表示，疫情缓解。", ["世界卫生组织"]),
        ("央视新闻：昨日开幕。", ["央视新闻"]),
        ("消息来源：人民网、新华社。", ["人民网", "新华社"]),
        ("结论：这是错误的。注意：人民网没有报道。", []),
        ("U.S. Bureau of Labor Statistics data show that jobs rose.", ["U.S. Bureau of Labor Statistics"]),
        ("New data show that jobs rose.", []),
    ],
)
def test_names_with_a_gloss_before_a_colon_and_behind_source_are_citations(text: str, names: list[str]) -> None:
    assert sorted(EvidenceMatcher().extract(text)) == sorted(names)
