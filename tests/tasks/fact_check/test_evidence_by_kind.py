from typing import Any

import pytest

from pytest_llmeval import EvidenceMatcher
from pytest_llmeval.tasks.fact_check._mentions import canonical_address, find_addresses, find_quantities


def why(cited: Any, gold: Any, matcher: EvidenceMatcher | None = None) -> str | None:
    found = (matcher or EvidenceMatcher()).match([cited], [gold]).pairs
    return found[0].why if found else None


SAME = [
    "https://www.example.org/a",
    "http://example.org/a",
    "HTTPS://Example.ORG/a/",
    "https://example.org:443/a",
    "http://example.org:80/a#part",
    "https://example.org./a?utm_source=x&fbclid=1",
    "https://example.org/b/../a",
    "https://reader@example.org/a",
    "www.example.org/a",
    "example.org/a",
]


@pytest.mark.parametrize("spelling", SAME)
def test_an_address_is_the_same_in_all_its_spellings(spelling: str) -> None:
    assert canonical_address(spelling) == "example.org/a"
    assert why(spelling, {"content": "A page", "url": SAME[0]}) == "address"


@pytest.mark.parametrize(
    ("cited", "gold"),
    [
        ("https://www.reuters.com/world/china", "https://www.bbc.com/news/business"),
        ("reuters.com/world/china", "bbc.com/news/business"),
        ("www.a.com", "www.b.com"),
        ("https://a.example", "https://b.example"),
        ("https://a.example/1", "https://a.example/2"),
        ("https://a.example/1", "https://a.example/12"),
        ("https://a.example/A", "https://a.example/a"),
        ("https://a.example", "https://a.example/1"),
        ("https://news.a.example/1", "https://a.example/1"),
        ("https://a.example/1", "https://a.example.evil.test/1"),
        ("https://a.example@evil.test/1", "https://a.example/1"),
        ("https://a.example:8080/1", "https://a.example/1"),
        ("https://a.example/?id=1", "https://a.example/?id=2"),
        ("https://a.example/watch?v=1", "https://a.example/watch?v=1&t=2"),
        ("https://a.example/#/one", "https://a.example/#/two"),
        ("https://a.example/%41", "https://a.example/%42"),
        ("https://a.example/中国", "https://a.example/美国"),
        ("https://例子.cn/", "https://例如.cn/"),
        ("https://a.example/p_(x)", "https://a.example/p_(y)"),
    ],
)
@pytest.mark.parametrize("content", ["", "港口"])
def test_another_address_does_not_match(cited: str, gold: str, content: str) -> None:
    assert why({"content": "Register" if content else "", "url": cited}, {"content": content, "url": gold}) is None


@pytest.mark.parametrize(
    ("cited", "gold"),
    [
        ("https://例子.cn/页面", "https://xn--fsqu00a.cn/%E9%A1%B5%E9%9D%A2"),
        ("https://a.example/?b=2&a=1", "https://a.example?a=1&b=2"),
        ("https://a.example/%7Ex", "https://a.example/~x"),
        ("https://a.example/#!/one/", "https://a.example/#!/one"),
        ("Booking.com", "the Booking.com report"),
    ],
)
def test_equal_addresses_match_however_they_are_written(cited: str, gold: str) -> None:
    assert why(cited, gold) == "address"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("见https://a.example/x。后文", ["https://a.example/x"]),
        ("（https://a.example/x）", ["https://a.example/x"]),
        ("“https://a.example/x”、《https://a.example/y》；", ["https://a.example/x", "https://a.example/y"]),
        ("https://a.example/x,数据", ["https://a.example/x"]),
        ("[Page](https://a.example/p_(q)), <https://a.example/x>.", ["https://a.example/p_(q)", "https://a.example/x"]),
        ("https://a.example/x,https://b.example/y", ["https://a.example/x", "https://b.example/y"]),
        ("**https://a.example/x**!", ["https://a.example/x"]),
        ("https://a.example/1,57191.html.", ["https://a.example/1,57191.html"]),
        ("at www.a.example/x, b.example/y and c.com", ["www.a.example/x", "b.example/y", "c.com"]),
        ("write to me@b.com or a.b.com@c.com; it rose.Then 4.5/x, e.g./i.e.", []),
        ("https:// http://) www.", []),
    ],
)
def test_addresses_in_prose_end_where_the_sentence_goes_on(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in find_addresses(text)] == expected


@pytest.mark.parametrize("prose", ["见{}的数据", "见{}，数据", "see {}.", "({})", "{}"])
def test_an_address_in_prose_matches_the_address_of_a_source_with_content(prose: str) -> None:
    matcher = EvidenceMatcher()
    gold = [{"content": "官方页面", "url": "https://a.example/1.html"}]
    found = matcher.match(matcher.sources(prose.format("https://a.example/1.html")), gold)
    assert (found.precision, found.recall) == (1.0, 1.0)


@pytest.mark.parametrize(
    "text",
    ["https://|。][(@/b.com", "https://[", "https://a:99999", "https://", "N/A", "a b", ""],
)
def test_what_no_address_can_be_is_none(text: str) -> None:
    assert canonical_address(text) is None
    assert EvidenceMatcher().match([text], [text]).f1 == 1.0


def test_what_stands_for_no_address_is_none() -> None:
    assert why({"content": "Register", "url": "N/A"}, {"content": "港口", "url": "N/A"}) is None


def test_an_address_counts_once_however_often_it_is_cited() -> None:
    text = "See https://a.example/1, http://www.a.example/1/ and https://b.example/2 (Amazon.com)."
    listed = [{"content": "Page", "url": "https://b.example/2/"}]
    assert EvidenceMatcher().extract(text, listed) == ["Page", "https://a.example/1"]


def test_what_an_address_consists_of_is_no_name_and_no_number() -> None:
    assert EvidenceMatcher().extract("According to https://a.example/%E4%BD%A0_1,234_US data.") == [
        "https://a.example/%E4%BD%A0_1,234_US"
    ]


NUMBERS = ["5.2%", "5.2 %", "5.20%", "5.2％", "百分之5.2", "5.2 percent", "5.2 Per Cent", "+5.2%", "５．２％"]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("gold", ["5.2%", "GDP rose 5.2%, it says", "同比增长5.2％。", "2%-5.2%"])
def test_a_number_matches_the_same_number_in_the_same_unit(number: str, gold: str) -> None:
    assert why(number, gold) == why(gold, number) == "contains"


@pytest.mark.parametrize(
    "gold",
    [
        *(
            "15.2%",
            "5.21%",
            "5.2.1%",
            "-5.2%",
            "\u22125.2%",
            "5.2",
            "5.2 percentage points",
            "5.2个百分点",
            "5.2‰",
            "0.052",
        ),
        *("It rose 15.2%, not 25.2%", "5.2 million", "G5.2%", "5,2%", "https://a.example/5.2%", "增长15.2％"),
    ],
)
def test_a_number_does_not_match_another_number_or_unit(gold: str) -> None:
    assert why("5.2%", gold) is None
    assert why(gold, "5.2%") is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1,234 ships and 11,234", ["1234", "11234"]),
        ("1.2 million, 1.2bn, 120万, 1.2万亿元", ["1200000", "1200000000", "1200000", "1200000000000CNY"]),
        ("$5 million, US$ 5m, 5 dollars, 5美元", ["5000000USD", "5000000USD", "5USD", "5USD"]),
        ("€7, 7 EUR, £7, RMB 7, 7元", ["7EUR", "7EUR", "7GBP", "7CNY", "7CNY"]),
        ("31 metres, 31 m, 31米, 31 minutes", ["31m", "31m", "31m", "31"]),
        ("2023-01-17, COVID-19, G20, x7", ["2023", "1", "17", "19"]),
        ("0%, -0%, 00.50%", ["0%", "0%", "0.5%"]),
        ("1" * 50, ["1" * 50]),
        ("", []),
    ],
)
def test_numbers_are_whole_tokens_with_scale_and_unit(text: str, keys: list[str]) -> None:
    assert [each.key for each in find_quantities(text)] == keys


@pytest.mark.parametrize(
    ("cited", "gold", "reason"),
    [
        ("Reuters", "https://www.reuters.com/world/china", "host"),
        ("https://www.reuters.com/world/china", "Reuters", "host"),
        ("the Guardian", "https://www.theguardian.com/x", "host"),
        ("BBC", "https://news.bbc.co.uk/x", "host"),
        ("China", "https://www.reuters.com/world/china", None),
        ("World", "https://www.reuters.com/world/china", None),
        ({"content": "Reuters", "url": "https://www.reuters.com/1"}, "https://www.reuters.com/2", None),
        ("the harbour log", "THE HARBOUR LOG of May", "contains"),
        ("US", "business as usual", None),
        ("US", "data of the US", "contains"),
        ("old harbour log", "harbour survey of May", "words"),
        ("harbour one two three", "harbour four five six", None),
        ("growth of 5 boats", "growth of 5.2 boats", "words"),
        ("the of", "by from", None),
        ("新华社", "新浪财经报道", None),
        ("外交部", "教育部", None),
        ("人民日报", "宁波日报：汪顺夺冠", None),
        ("人民日报", "《人民日报》：汪顺夺冠", "contains"),
        ("国家统计局", "根据国家统计局的公报", "contains"),
        ("渡运公司的时刻表", "渡运公司时刻表：每天六班", "words"),
    ],
)
def test_texts_match_by_whole_words(cited: Any, gold: Any, reason: str | None) -> None:
    assert why(cited, gold) == reason


def test_numbers_with_their_unit_are_words_of_a_text() -> None:
    pair = EvidenceMatcher().explain("growth 5.2%, of GDP", "growth 5.2 percent in May")
    assert pair is not None
    assert pair.overlap == 2 / 3
    pair = EvidenceMatcher().explain("growth 5.2", "growth 5")
    assert pair is not None
    assert pair.overlap == 0.5


@pytest.mark.parametrize(
    ("cited", "gold", "reason"),
    [
        ("GDP grew 5.2% in 2023", "GDP grew 15.2% in 2023", None),
        ("GDP grew 5.2%, prices 0.2%", "GDP grew by 5.2 percent", "words"),
        ("GDP grew in 2023", "GDP grew 15.2% in 2022", "words"),
        ("国内生产总值增长5.2%", "国内生产总值增长15.2%", None),
        ("国内生产总值增长5.2%", "国内生产总值同比增长百分之5.2", "words"),
        ("1,234 boats in the harbour", "11,234 boats in the harbour", None),
        ("$5 million of aid", "$5 billion of aid", None),
    ],
)
def test_texts_whose_numbers_with_units_all_differ_do_not_match(cited: str, gold: str, reason: str | None) -> None:
    assert why(cited, gold) == reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reuters (2023) says so.", ["Reuters"]),
        ("However, Xinhua (2024) reported it, as the Xinhua said.", ["Xinhua"]),
        ("It fell, per the BBC, and as per NASA.", ["BBC", "NASA"]),
        ("Bank of England stated so (source: Nature).", ["Bank of England", "Nature"]),
        ("He said. The report found. 5 per cent per capita. Per day. Officials said.", ["5 per cent"]),
        ("根据国家统计局2023年的数据，上升。", ["国家统计局"]),
        ("据新华社报道，上升；另据《人民日报》消息。", ["人民日报", "新华社"]),
        ("国家统计局数据显示，上升。中国人民银行最新报告指出：下降。", ["中国人民银行", "国家统计局"]),
        ("外交部发言人毛宁17日在记者会上表示，属实。但教育部昨日宣布。", ["外交部发言人毛宁", "教育部"]),
        (
            "蚂蚁集团官网及多家媒体报道均指出，属实。新华社和央视报道。埃及外交部证实。",
            ["新华社", "蚂蚁集团官网", "埃及外交部"],
        ),
        ("财政部称属实。土耳其总统宣布，无锡市政府证实属实。", ["财政部", "土耳其总统", "无锡市政府"]),
        ("韩国媒体《OSEN》2020年报道，属实；马斯克表示：“不”。WHO总干事宣布，结束。", ["OSEN", "马斯克", "WHO总干事"]),
        ("2025年9月，世界银行、新华社均报道上升，依据《统计法》第三条。", ["新华社", "统计法"]),
        ("多家媒体报道，他本人也表示，该研究明确指出，因此可以说“好”，所有报道都这样。", []),
        ("又名称“好”，是《统计法》的别称，依据是有限的，没有证据表明，无法证实。", []),
        ("数据显示上升。据报道，据悉，据了解，他表示，专家指出，证据不足，根据规定。", []),
        ("增长5.2％，即百分之5.2，有1,234公里。", ["1,234公里", "5.2％"]),
    ],
)
def test_attributions_are_found_in_english_and_chinese(text: str, expected: list[str]) -> None:
    assert EvidenceMatcher().extract(text) == sorted(expected)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "www.",
            "a.",
            "a.com/",
            "https://a.b/(",
            "per the A",
            "A of the ",
            "A said ",
            "(2023) says ",
            "Aa ",
            "1,",
            "1.",
            "$",
        ),
        *(
            "根据",
            "据",
            "表示",
            "国家",
            "数据显示",
            "百分之",
            "5.2%",
            "https://a.cn/数",
            "《",
            "-",
            "million ",
            "5 million ",
        ),
    ],
)
def test_a_long_hostile_text_is_read_to_its_end(piece: str) -> None:
    """A pattern that tries every place anew would need minutes for one of these."""
    text = (piece * 30_000)[:30_000]
    matcher = EvidenceMatcher()
    assert matcher.extract(f"{text}. According to the end.")
    assert matcher.explain(text, f"{text}1") is not None or matcher.explain(text, text) is not None


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        (
            "According to the Federal Reserve Bank of St. Louis (FRED, 2024), it fell.",
            ["the Federal Reserve Bank of St. Louis"],
        ),
        ("The Conference Board also reported a fall.", ["Conference Board"]),
        ("Reuters later confirmed it.", ["Reuters"]),
        ("According to the U.S. Bureau of Labor Statistics, it fell.", ["the U.S. Bureau of Labor Statistics"]),
        ("According to Dr. Ames. Rates fell.", ["Dr. Ames"]),
        ("According to the Bank. St. Louis slept.", ["the Bank"]),
    ],
)
def test_names_go_on_behind_abbreviations_and_adverbs(text: str, cited: list[str]) -> None:
    assert EvidenceMatcher().extract(text) == cited


ANT = ["蚂蚁集团(688688)公司高管 – 新浪财经", "蚂蚁集团董事会调整：韩歆毅接任执行董事"]


@pytest.mark.parametrize(
    ("cited", "claim", "matched"),
    [
        ("蚂蚁集团财报", "", 2),
        ("蚂蚁集团财报", "倪行军目前是蚂蚁集团的董事。", 0),
        ("蚂蚁集团", "倪行军目前是蚂蚁集团的董事。", 0),
        ("新浪财经", "倪行军目前是蚂蚁集团的董事。", 1),
        (ANT[0], "倪行军目前是蚂蚁集团的董事。", 1),
    ],
)
def test_entities_of_the_claim_identify_no_source(cited: str, claim: str, matched: int) -> None:
    assert EvidenceMatcher().match([cited], ANT, claim).matched_gold == matched


@pytest.mark.parametrize(
    ("claim", "matches"),
    [
        ("The Harbour Bank has a new chair.", False),
        ("The harbour has a new bank.", True),
        ("According to the Harbour Bank, rates fell.", True),
    ],
)
def test_whom_a_claim_cites_is_still_a_source(claim: str, matches: bool) -> None:
    assert (EvidenceMatcher().explain("Harbour Bank", "Harbour Bank minutes", claim) is not None) == matches
    assert EvidenceMatcher(matching="original").explain("Harbour Bank", "Harbour Bank minutes", claim) is not None
