"""Hostile text in a page: it does nothing, and is shown as it was written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pages import Browser, case, page_run, report, suite

from pytest_llmeval.core import printable

HOSTILE = (
    "<script>window.harmed = true</script>",
    "</script><script>window.harmed = true</script>",
    "</ScRiPt ><img src=x onerror='window.harmed = true'>",
    "<img src=x onerror=window.harmed=true>",
    "<svg onload=window.harmed=true>",
    "<iframe srcdoc='<script>parent.harmed=true</script>'></iframe>",
    "<a href='javascript:window.harmed=true'>go</a>",
    "javascript:window.harmed=true",
    '"><script>window.harmed = true</script>',
    "' onmouseover='window.harmed=true",
    "<!-- <script>",
    "--><script>window.harmed=true</script>",
    "<![CDATA[<script>window.harmed=true</script>]]>",
    "&lt;b&gt; &amp;amp; &#60;script&#62; &nbsp;",
    "<style>* { display: none }</style>",
    "</style><script>window.harmed=true</script>",
    "<base href='https://example.org/'>",
    "<meta http-equiv=refresh content='0;url=https://example.org/'>",
    "<form action=https://example.org/><input name=q>",
    "<math><mtext></mtext><mglyph><style><!--</style><img src=x onerror=window.harmed=true>",
    "{{ 7 * 7 }} {% for each in () %} {# x #} ${7 * 7} #{7*7}",
    "__proto__",
    "constructor",
    "toString",
    "\u202egnp.exe\u202c",
    "\u2066\u2069\u200f\u200e",
    "\u05e9\u05dc\u05d5\u05dd, \u0645\u0631\u062d\u0628\u0627",
    "nul \x00 bell \x07 escape \x1b[31m delete \x7f",
    "zero\u200bwidth \ufeff soft\u00adhyphen \u2060",
    "line\u2028paragraph\u2029",
    "\U000e0041\U000e0042 tags",
    "half \ud800 pair",
    "e" + "\u0301" * 60,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family \u2764\ufe0f",
    "a\tb  c\n\nd",
    "\\u0041 \\x41 \\n",
    "%3Cscript%3E#?&=/",
    "'; rm -rf / #`id`$(id)",
    "東京" * 50,
    "long " * 3000,
)


def shown(text: str) -> str:
    """Return a text as the page writes it: with escapes for what people do not see."""
    joined = "\u200d", "\ufe0f"
    return "".join(
        each if each in joined or (each.isspace() and each not in "\u2028\u2029") else _escaped(each) for each in text
    )


def _escaped(character: str) -> str:
    if printable(character) == character:
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def talk(texts: Sequence[str]) -> dict[str, Any]:
    """Return a conversation with hostile texts in all of its places."""
    messages: list[dict[str, Any]] = []
    for text in texts:
        call = {"id": text, "name": text, "arguments": {text: text}, "result": text, "status": "error"}
        messages.append({"role": "user", "content": text})
        messages.append({"role": text, "content": text, "tool_calls": [call, {"function": text, "error": text}]})
        messages.append({"role": "tool", "tool_call_id": text, "content": text})
    return {"messages": messages, "stop": HOSTILE[1]}


def talked() -> dict[str, Any]:
    """Return repeats and findings about turns with hostile texts."""
    answers = [{"prediction": talk(each), "times": 1, "passed": 0} for each in (HOSTILE, HOSTILE[1:])]
    lines = {text: [f"turn {number}: {text}"] for number, text in enumerate(HOSTILE, 1)}
    return {"answers": answers, "lines": lines}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    everywhere = [
        case(
            text, "failed", 0.5, reason=text, labels={text: text, "label": text}, lines={text: [text]}, prediction=text
        )
        for text in HOSTILE
    ]
    turns: Any = [{"role": "user", "content": text} for text in HOSTILE]
    cases = [
        *everywhere,
        case("turns", "failed", 0.0, input=turns, expected={"x": HOSTILE[0]}, prediction={"x": HOSTILE[1]}),
        case("talk", "failed", 0.0, input=turns, prediction=talk(HOSTILE), **talked()),
    ]
    kept = [{"metric": text, "outcome": "failed", "kind": "fell_beyond", "reason": text} for text in HOSTILE[:8]]
    gates = [{"gate": text, "outcome": "failed", "value": 1, "limit": 1, "reason": text} for text in HOSTILE[:8]]
    broken = [case(HOSTILE[20], "failed", 0.0, input=text, prediction=text, reason=text) for text in HOSTILE[:5]]
    for number, each in enumerate(broken):
        each["id"] += str(number)
    suites = [
        suite(cases, gates=gates, snapshot=kept),
        suite(broken, "broken", path=HOSTILE[3]),
        suite(cases[:1], HOSTILE[1]),
        suite(cases[:1], "__proto__"),
    ]
    path = tmp_path_factory.mktemp("pages") / "hostile.html"
    html = page_run("", report(*suites, faults={HOSTILE[0]: [HOSTILE[1]]})).page().html
    path.write_text(html, encoding="utf-8", errors="backslashreplace")
    return path


@pytest.mark.parametrize(
    "view", ["", "view=numbers", "view=cases", "view=comparison", "view=cases&case=0/turns", "view=cases&case=0/talk"]
)
def test_hostile_text_does_nothing_in_any_view(browser: Browser, page: Path, view: str) -> None:
    browser.open(page, view)
    assert browser.run("return window.harmed") is None
    assert browser.run("return document.querySelectorAll('img, iframe, form:not(.filters), base, style').length") == 1
    assert browser.run("return getComputedStyle(document.querySelector('main')).display") != "none"
    assert browser.run("return document.scripts.length - document.querySelectorAll('script[type]').length") == 1
    assert browser.complaints() == []


def test_forty_hostile_texts_are_shown_as_written(browser: Browser, page: Path) -> None:
    assert len(HOSTILE) == 40
    browser.open(page, "view=cases&case=0/turns")
    written = browser.run("return [...document.querySelectorAll('.turns pre')].map((each) => each.textContent)")
    assert written == [shown(text) for text in HOSTILE]


def test_hostile_texts_of_transcripts_calls_and_findings_are_shown_as_written(browser: Browser, page: Path) -> None:
    browser.open(page, "view=cases&case=0/talk")
    assert browser.run("return document.querySelectorAll('.transcript .turn.wrong').length") == len(HOSTILE)
    written = browser.run(
        "return [...document.querySelectorAll('.transcript .turns > .user > pre')].map((each) => each.textContent)"
    )
    assert written == [shown(text) for text in HOSTILE]
    findings = browser.run("return [...document.querySelectorAll('.finding code')].map((each) => each.textContent)")
    assert findings == [shown(text) for text in HOSTILE]


def test_hostile_texts_of_what_broke_are_shown_as_written(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.run("return window.harmed") is None
    reasons = browser.run("return [...document.querySelectorAll('.broke .why')].map((each) => each.textContent)")
    assert set(HOSTILE[:5]) <= set(reasons)
    assert browser.run("return document.querySelectorAll('.broke img, .broke script, .gate img').length") == 0


def test_cases_with_hostile_ids_are_found_and_open(browser: Browser, page: Path) -> None:
    browser.open(page, "view=cases")
    for text in (HOSTILE[1], "__proto__", HOSTILE[24], HOSTILE[36]):
        browser.choose("q", text)
        browser.until("document.querySelectorAll('[data-case]').length")
        row = browser.run(
            "return [...document.querySelectorAll('[data-case]')].findIndex((e) => e.textContent === arguments[0])",
            shown(text),
        )
        assert row >= 0
        browser.run("document.querySelectorAll('[data-case]')[arguments[0]].click()", row)
        browser.until("document.querySelector('.case')")
        assert browser.texts(".case h2 bdi") == [shown(text)]
        browser.press("ESCAPE")
        browser.until("document.querySelector('[data-case]')")


def test_the_command_of_a_case_quotes_its_id_for_the_shell(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("location.hash = new URLSearchParams({view: 'cases', case: `0/${arguments[0]}`})", HOSTILE[37])
    browser.until("document.querySelector('.case')")
    assert browser.texts(".command code") == ["""pytest --llmeval 'capitals.eval.yaml::'\\''; rm -rf / #`id`$(id)'"""]
