"""Conversations turn by turn; repeats, systems and runs side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_selenium_python import Axe
from pages import Browser, case, page_run, report, suite

ASKED = ["Hello", "Where is my order?", "I want a refund.", "Thanks.", "Bye."]
REPEATS = {"times": 3, "passed": 2, "status": "flaky", "spread": {}}


def call(name: str, result: Any = "ok", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result}


def talk(third: str, tool: str = "quote", turns: int = 5) -> dict[str, Any]:
    messages: list[Mapping[str, Any]] = [{"role": "system", "content": "You work for a shop."}]
    for place, text in enumerate(ASKED[:turns]):
        messages.append({"role": "user", "content": text})
        reply = {"role": "assistant", "content": third if place == 2 else f"reply {place + 1}"}
        messages.append(reply | ({"tool_calls": [call(tool, {"ok": True}, order=1042)]} if place == 2 else {}))
    return {"answer": "last", "messages": messages}


GOOD, BAD = talk("Shall I refund 49 euros?"), talk("I refunded 49 euros.", "refund")
LINES = {"text": ["turn 3: extra words: refunded", "5 words"], "checks": ["turn 3: found 'refunded'"]}
SCRIPT = [{"role": "user", "content": text} for text in ASKED]
TALK = case("talk", "failed", 0.5, input=SCRIPT, prediction=BAD, lines=LINES, details={"repeats": REPEATS})


def opened(browser: Browser, folder: Path, suites: Sequence[dict[str, Any]], view: str = "case=0/talk") -> Browser:
    (folder / "page.html").write_text(page_run("", report(*suites)).page().html, encoding="utf-8")
    browser.open(folder / "page.html", f"view=cases&{view}")
    return browser


def test_the_turn_that_is_wrong_is_open_and_marked_and_findings_lead_to_it(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, [suite([TALK])])
    assert browser.texts(".turn > summary > b") == [f"turn {number}" for number in range(1, 6)]
    assert browser.run("return [...document.querySelectorAll('.turn')].map((each) => each.open)") == [
        place == 2 for place in range(5)
    ]
    assert browser.texts(".turn.wrong .finding li") == ["text extra words: refunded", "checks found 'refunded'"]
    assert browser.texts(".turn .role")[:3] == ["system", "user", "assistant"]
    assert browser.texts(".to-turn") == ["turn 3", "turn 3"]
    browser.run("document.querySelector('.turn.wrong').open = false; document.querySelector('.to-turn').click()")
    assert browser.run("return document.querySelector('.turn.wrong').open")
    assert browser.run("return document.activeElement.parentElement.dataset.turn") == "3"
    assert browser.complaints() == []


def test_calls_of_tools_are_folded_to_a_line_with_arguments_and_open_to_their_results(
    browser: Browser, tmp_path: Path
) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}
    messages = [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": None, "tool_calls": [asked, {**call("stop"), "status": "error"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found it"},
        {"role": "tool", "tool_call_id": "other", "content": "of another call"},
        {"role": "assistant", "content": "There."},
    ]
    opened(browser, tmp_path, [suite([case("talk", prediction={"messages": messages})])])
    assert browser.texts(".call summary")[0] == "1 find(id=7)"
    assert browser.run("return [...document.querySelectorAll('.call details')].map((each) => each.open)") == [
        False,
        True,
    ]
    assert "found it" in browser.texts(".call")[0]
    assert browser.texts(".turns > li > .role") == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("in_messages", [True, False], ids=["in messages", "alone"])
def test_equal_calls_are_one_line_and_the_wrong_one_is_marked(
    browser: Browser, tmp_path: Path, *, in_messages: bool
) -> None:
    calls = [*[call("find", q="order")] * 51, call("pay", sum=3, to={"name": "Ann", "ids": [1, 2]}), call("stop")]
    messages = [{"role": "user", "content": "Pay"}, {"role": "assistant", "tool_calls": calls}]
    prediction = {"messages": messages} if in_messages else {"tool_calls": calls}
    reason = 'tools: found pay("sum": 3, "to": {"name": "Ann", "ids": [1, 2]}) without an earlier approve'
    failing = case("talk", "failed", 0.5, prediction=prediction, reason=reason)
    opened(browser, tmp_path, [suite([failing])])
    lines = browser.texts(".timeline .call summary")
    assert [line.split("(")[0] for line in lines] == ["1-51 find", "52 ✗ pay", "53 stop"]
    assert lines[0].endswith("x 51")
    assert browser.texts(".call.bad code.tool") == ["pay"]
    assert browser.complaints() == []


def test_repeats_stand_side_by_side_and_the_first_turn_that_differs_is_marked(browser: Browser, tmp_path: Path) -> None:
    answers = [{"prediction": BAD, "times": 1, "passed": 0}, {"prediction": GOOD, "times": 2, "passed": 2}]
    opened(browser, tmp_path, [suite([TALK | {"answers": answers}])])
    assert browser.texts(".aligned .heads h3") == ["✗ 1 repeat: failed", "✓ 2 repeats: passed"]
    assert browser.texts(".step.first b") == ["turn 3"]
    assert browser.run("return [...document.querySelectorAll('.step')].map((each) => each.open)") == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert browser.texts(".step.first pre.diff") == ["Shall I refundedrefund 49 euros.?"]
    assert browser.texts(".step.first summary ins") == ["only here"]


def test_a_repeat_that_ended_early_says_so(browser: Browser, tmp_path: Path) -> None:
    answers = [{"prediction": BAD, "times": 1}, {"prediction": talk("I refunded 49 euros.", "refund", 4), "times": 1}]
    opened(browser, tmp_path, [suite([TALK | {"answers": answers}])])
    assert browser.texts(".step.first b") == ["turn 5"]
    assert browser.texts(".step.first .empty") == ["ended before this turn"]
    assert browser.texts(".aligned .heads h3") == ["1 repeat", "1 repeat"]


def test_systems_and_runs_are_aligned_turn_by_turn(browser: Browser, tmp_path: Path) -> None:
    systems = [
        suite([case("talk", f1=score, prediction=value)], f"s[{name}]", path="s.eval.yaml", variant=name)
        for name, score, value in (("small", 0.25, BAD), ("large", 0.75, GOOD))
    ]
    opened(browser, tmp_path, systems)
    assert browser.texts(".aligned .heads h3") == ["✓ small f1 0.2500", "✓ large f1 0.7500"]
    assert browser.texts(".step.first b") == ["turn 3"]
    runs = [page_run("now", report(suite([TALK])), pairs=[1])]
    runs += [page_run("base", report(suite([case("talk", prediction=GOOD)])), is_baseline=True)]
    (tmp_path / "compared.html").write_text(runs[0].page(*runs[1:]).html, encoding="utf-8")
    browser.open(tmp_path / "compared.html", "view=cases&case=0/talk")
    assert browser.texts(".aligned .heads h3") == ["before", "now"]
    assert browser.texts(".step.first b") == ["turn 3"]
    browser.open(tmp_path / "compared.html")
    assert browser.texts(".broke > p")[1:3] == ["turn 3", "I want a refund."]
    assert browser.texts(".broke .answer") == ["Shall I refundrefunded 49 euros?."]


def test_on_a_narrow_screen_columns_stand_below_each_other_with_their_names(browser: Browser, tmp_path: Path) -> None:
    answers = [{"prediction": BAD, "times": 1, "passed": 0}, {"prediction": GOOD, "times": 2, "passed": 2}]
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened(browser, tmp_path, [suite([TALK | {"answers": answers}])])
        assert browser.run(
            "const {scrollWidth, clientWidth} = document.documentElement; return scrollWidth <= clientWidth"
        )
        boxes = browser.run(
            "return [...document.querySelectorAll('.step.first .aligned-row > div')]"
            ".map((each) => each.getBoundingClientRect().toJSON())"
        )
        assert boxes[1]["top"] >= boxes[0]["bottom"]
        assert [each.text for each in browser.driver.find_elements("css selector", ".step.first .which")] == [
            "1 repeat: failed",
            "2 repeats: passed",
        ]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.release)])
def test_every_fold_is_reached_by_the_keyboard_and_assistive_software_finds_no_obstacle(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    answers = [{"prediction": BAD, "times": 1, "passed": 0}, {"prediction": GOOD, "times": 2, "passed": 2}]
    opened(browser, tmp_path, [suite([TALK | {"answers": answers}])])
    folds = browser.run(
        "return [...document.querySelectorAll('summary')].filter((each) => each.checkVisibility()).length"
    )
    reached: set[int] = set()
    browser.run("document.body.focus()")
    for _ in range(80):
        if len(reached - {-1}) == folds:
            break
        browser.press("TAB")
        reached.add(
            browser.run(
                "const all = [...document.querySelectorAll('summary')], here = document.activeElement;"
                "return getComputedStyle(here).outlineStyle === 'none' ? -1 : all.indexOf(here)"
            )
        )
    assert len(reached - {-1}) == folds
    axe = Axe(browser.driver)
    axe.inject()
    found = axe.run(options={"resultTypes": ["violations"]})["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious] == []


def test_expected_and_actual_calls_stand_in_aligned_steps_and_findings_lead_to_the_wrong_ones(
    browser: Browser, tmp_path: Path
) -> None:
    wanted = [{"name": "find", "arguments": {"order": number}} for number in range(9)]
    made = [call("find", order=number) for number in range(9)]
    made[4]["arguments"] = {"order": 99}
    made.insert(7, call("delete", id=1))
    lines = {"tools": ['extra call: delete("id": 1)', "find: order: found 99, expected 4"]}
    answers = {
        "expected": {"answer": "Done.", "tool_calls": wanted},
        "prediction": {"answer": "Done.", "tool_calls": made},
    }
    opened(browser, tmp_path, [suite([case("talk", "failed", 0.5, lines=lines, **answers)])])
    assert browser.texts(".case pre.text")[:2] == ["Done.", "Done."]
    assert browser.texts(".trajectory > .equal > summary") == ["4 equal"]
    wrong = browser.texts(".trajectory .wrong")
    assert all(each in wrong[0] for each in ("5 find(order=4)", "5 find(order=99)"))
    assert all(each in wrong[1] for each in ("not expected", "8 delete(id=1)"))
    assert browser.texts(".trajectory .wrong summary ins") == ["order=99"]
    assert browser.texts(".to-turn") == ["step 8", "step 5"]
    browser.run("document.querySelector('.to-turn').click()")
    assert "delete" in browser.run("return document.activeElement.textContent")
