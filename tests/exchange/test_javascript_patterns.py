"""Regular expressions of JavaScript in Python: tried on texts, against node if it is installed."""

import json
import random
import shutil
import subprocess
import sys
from itertools import pairwise

import pytest

from pytest_llmeval.evaluators import TimedPattern
from pytest_llmeval.exchange._ledger import LeftOutError
from pytest_llmeval.exchange._patterns import RefusedPatternError, python_pattern

FACTS = [
    (r"\p{L}", {"p{L}": True, "é": False}),
    (r"\A\Z\z\h", {"AZzh": True, "": False}),
    ("a{,3}", {"a{,3}": True, "aaa": False}),
    (".", {"\n": False, "\u2028": False, "\x85": True, "a": True}),
    (r"\s", {"\ufeff": True, "\x1c": False, "\x85": False, "\u3000": True}),
    (r"^[\S]$", {"\x1c": True, " ": False}),
    (r"^\d+$", {"42": True, "42\n": False, "٤٢": False}),
    (r"(a)?\1b", {"b": True, "aab": True}),
    (r"\2(a)", {"\x02a": True}),
    (r"\u{3}", {"uuu": True, "\x03": False}),
    (r"\cA\x41\0", {"\x01A\x00": True}),
    (r"[\cA\b\-a-c]", {"\x08": True, "-": True, "b": True, "d": False}),
    (r"(?<y>a)\k<y>", {"aa": True, "ab": False}),
    (r"\k<y>", {"k<y>": True}),
    ("[]|x", {"x": True, "]": False}),
    ("[[a&&b]", {"[": True, "&": True, "c": False}),
    ("(?=a)*b", {"b": True}),
    (r"\ud83d\ude00", {"😀": True}),
    (r"\S+@\S+", {"a@😀": True, "@": False}),
]
"""Pattern, text, and whether JavaScript matches it."""

REFUSED = (
    "(?i)a",
    "(?P<n>a)",
    "(?>a)",
    "a++",
    "a{2,1}",
    "(",
    ")",
    "*",
    "[b-a]",
    "(?<a>x)(?<a>y)",
    "(?<=a)*",
    "\\",
    "[a",
)
NEAR = (".{3}", "a.c", "[^a][^b]", "[😀]", "😀+", r"(?:(a)|b)*\1", r"\ud83d", r"\B")


@pytest.mark.parametrize(
    ("pattern", "flags", "texts"),
    [
        (r"^b$", "m", {"a\nb\u2028c": True, "ab": False}),
        (r"^b$", "", {"a\nb": False}),
        ("a.c", "s", {"a\nc": True}),
        ("[^x]Ä", "gi", {"yä": True, "Xä": False}),
        (r"\w+B", "i", {"ab": True, "äb": False}),
    ],
)
def test_flags_mean_what_they_mean_in_javascript(pattern: str, flags: str, texts: dict[str, bool]) -> None:
    text, _ = python_pattern(pattern, flags=flags)
    assert {each: bool(TimedPattern.compile(text).search(each)) for each in texts} == texts


def test_a_flag_that_is_not_known_is_refused() -> None:
    with pytest.raises(LeftOutError, match="flag y"):
        python_pattern("a", flags="iy")


@pytest.mark.parametrize(("pattern", "texts"), FACTS)
def test_a_pattern_means_what_it_means_in_javascript(pattern: str, texts: dict[str, bool]) -> None:
    text, _ = python_pattern(pattern)
    assert {each: bool(TimedPattern.compile(text).search(each)) for each in texts} == texts


@pytest.mark.parametrize("pattern", [r"\bok\b.*\d+$", r"(a)?\1b", r"^\S+@\S+$", r"[^a]*x[^a]+", r"(?=.*\d)[a-z]+"])
def test_a_pattern_of_the_common_subset_is_the_same(pattern: str) -> None:
    assert python_pattern(pattern)[1] == ""


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_javascript_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(LeftOutError, match="JavaScript refuses the pattern"):
        python_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(" * 5000 + ")" * 5000, "nested too deeply"), (f"a{{{'9' * 5000}}}", "number that is too long")],
)
def test_a_pattern_that_is_too_large_is_left_out_and_not_refused(pattern: str, why: str) -> None:
    with pytest.raises(LeftOutError, match=why) as raised:
        python_pattern(pattern)
    assert not isinstance(raised.value, RefusedPatternError)


@pytest.mark.parametrize("pattern", NEAR)
def test_a_pattern_that_counts_halves_of_emoji_or_repeats_groups_says_so(pattern: str) -> None:
    assert python_pattern(pattern)[1]


@pytest.mark.parametrize("pattern", [r"\-", "{", r"\1", r"(?=a)*", r"\p{L", r"\u{110000}", r"\07", r"[\w-a]"])
def test_the_flag_u_is_strict(pattern: str) -> None:
    with pytest.raises(LeftOutError):
        python_pattern(pattern, unicode=True)


PLAIN = "a b c 1 . ^ $ - / # { } ] {,3} 😀 é \u2028 (a) (?:b|c) (.) (.*) (a|) [ab] [^a] [] [^] [[] [a-c&&b] [😀] [^b]*"
LOOKS = "(?=a) (?!a) (?<=a) (?<!b) (?i)a (?>a) (?<n>a)"
ESCAPES = r"\d \D \w \W \s \S \b \B \p{L} \A \Z \h \u00e9 \x41 \cA \c \0 \12 \8 \1 \2 \k<n> \ud83d\ude00 \u{3} \/ \- \v"
ATOMS = [each for line in (PLAIN, LOOKS, ESCAPES, r"[\w-] [\s-z] [\cA\b] \S+") for each in line.split(" ")]
QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{,3}", "++", "{0}"]
SCRIPT = """const [patterns, texts] = JSON.parse(require('fs').readFileSync(0));
console.log(JSON.stringify(['', 'u'].map(flags => patterns.map(each => {
  try { const tested = new RegExp(each, flags); return texts.map(text => tested.test(text)); } catch { return null; }
}))));"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_translated_patterns_match_what_node_matches() -> None:
    source = random.Random(47)
    groups = [
        "".join(source.choice(ATOMS) + source.choice(QUANTIFIERS) for _ in range(size)) for size in (1, 2, 3) * 250
    ]
    pairs = enumerate(pairwise(groups))
    patterns = [f"{each}|({other})+" if number % 5 == 0 else each for number, (each, other) in pairs]
    texts = [
        "",
        "\x08",
        *(
            "".join(source.choice("aab1cé😀\n -A/{}p\u2028\x85\ufeff") for _ in range(size))
            for size in range(1, 6)
            for _ in range(12)
        ),
    ]
    command = ["node", "-e", SCRIPT]
    found = subprocess.run(
        command, input=json.dumps([patterns, texts]), capture_output=True, text=True, check=True
    ).stdout
    same = 0
    for unicode, verdicts in zip((False, True), json.loads(found), strict=True):
        for pattern, expected in zip(patterns, verdicts, strict=True):
            try:
                text, differs = python_pattern(pattern, unicode=unicode)
            except LeftOutError:
                assert expected is None, pattern
                continue
            assert expected is not None, pattern
            if not differs:
                same += 1
                assert [bool(TimedPattern.compile(text).search(each)) for each in texts] == expected, (pattern, text)
    assert same > len(patterns) / 5, sys.version
