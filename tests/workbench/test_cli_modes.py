"""``llmeval modes``: shares, groups, agreement, saturation and the page; and draws that keep shares unbiased."""

import json
import math
import random
from pathlib import Path
from typing import Any, get_args

import pytest
from pages import answered, suites_of
from servers import LlmServer, reply

from pytest_llmeval.cli import main
from pytest_llmeval.core import Case, LlmevalError, ShownPrints
from pytest_llmeval.numbers import wilson_interval
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench.modes import mode_agreements, mode_shares, saturation
from pytest_llmeval.workbench.reviews._items import read_answers, review_of
from pytest_llmeval.workbench.reviews.draws import content_groups
from pytest_llmeval.workbench.reviews.modes import (
    Draw,
    ModeBook,
    ModeCreated,
    ModeLine,
    ModeNote,
    ModeProposed,
    mode_line,
    read_modes,
)


def note(number: int, *modes: str, by: str = "ana", **more: Any) -> ModeNote:
    at = f"2026-11-26T10:{number // 60:02}:{number % 60:02}.{0 if by == 'ana' else 1:03}Z"
    return ModeNote(by, at, "q", f"a{number}", "r", modes, cases=(f"c{number}",), **more)


def test_shares_are_weighted_and_an_even_draw_has_wilsons_interval() -> None:
    even = [note(number, *(["late"] if number < 3 else [])) for number in range(20)]
    (share,) = mode_shares(even, ["late"])
    assert (share.value, share.answers) == (pytest.approx(0.15), 3)
    assert (share.low, share.high) == pytest.approx(wilson_interval(3, 20, 0.95))
    (none,) = mode_shares(even, ["rude"])
    assert (none.value, none.low, none.high) == (0, *wilson_interval(0, 20, 0.95))
    drawn = [note(1, "late", probability=0.5), note(2, probability=0.125), note(2, "late", by="ben", probability=0.125)]
    (share,) = mode_shares(drawn, ["late"])
    assert share.value == pytest.approx((2 + 8 / 2) / (2 + 8))  # the two differ about the second
    assert 0 < share.low < share.value < share.high < 1


def test_saturation_counts_notes_since_a_new_mode_and_what_uneven_draws_are_worth() -> None:
    notes = [note(number, *(["late"] if number in (1, 30) else [])) for number in range(77)]
    found = saturation(notes)
    assert (found.quiet, found.answers) == (75, 77)
    assert found.seen(0.05) == pytest.approx(1 - 0.95**77)
    uneven = [note(number, probability=0.2 if number < 10 else 0.1) for number in range(20)]
    assert saturation(uneven).answers == pytest.approx((10 * 5 + 10 * 10) / 10)


def test_agreement_is_about_answers_that_both_noted() -> None:
    ana = [note(number, *(["late"] if number in (1, 2) else [])) for number in range(6)]
    ben = [note(number, *(["late"] if number in (2, 9) else []), by="ben") for number in (1, 2, 3, 4, 9)]
    (found,) = mode_agreements([*ana, *ben], ["late", "rude"])
    assert (found.people, found.both, found.differing, found.answers) == (("ana", "ben"), 1, 1, 4)
    assert found.alpha == pytest.approx(1 - 7 * 2 / (2 * 3 * 5))


LINES: list[ModeLine] = [
    ModeCreated("ana", "2026-11-26T09:00:00.000Z", "late", "More than an hour"),
    note(0, "late", note="Two <hours>", run="2026-11-01", labels=("topic=parcel",)),
    note(1, run="2026-11-01", labels=("topic=refund",)),
    note(2, "late", "rude", note="No hello", run="2026-11-08", labels=("topic=parcel",), systems=("new",)),
    note(2, "rude", by="ben", run="2026-11-08", labels=("topic=parcel",), systems=("new",)),
    ModeProposed("judge m", "2026-11-26T09:00:00.000Z", "off topic", "Says too much", (ShownPrints("q", "a1", "r"),)),
]


@pytest.fixture
def noted(here: Path) -> Path:
    path = here / "modes.jsonl"
    path.write_text("".join(map(mode_line, LINES)), encoding="utf-8")
    return path


TABLE = Path(__file__).with_name("modes_table.txt")
"""What the command prints for the notes below."""


@pytest.mark.usefixtures("noted")
def test_the_table_has_shares_by_run_examples_and_findings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modes"]) == 0
    text = capsys.readouterr().out
    assert [line.rstrip() for line in text.splitlines()] == TABLE.read_text(encoding="utf-8").splitlines()
    assert main(["modes", "--by", "topic", "-o", "modes.html"]) == 0
    page = (here / "modes.html").read_text(encoding="utf-8")
    assert "Two &lt;hours&gt;" in page
    assert "<h2>topic parcel</h2>" in page
    capsys.readouterr()
    assert main(["--json", "modes"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert [(each["mode"], each["value"], each["answers"]) for each in result["modes"]] == [
        ("late", pytest.approx(0.5), 2),
        ("rude", pytest.approx(1 / 3), 1),
    ]
    assert list(result["groups"]) == ["run 2026-11-01", "run 2026-11-08"]
    assert main(["modes", "--by", "system"]) == 0
    assert "system new" in capsys.readouterr().out
    (here / "empty.jsonl").write_text("\n", encoding="utf-8")
    assert main(["modes", "missing.jsonl"]) == 1


@pytest.mark.parametrize("draw", get_args(Draw)[1:])
def test_every_draw_is_of_the_size_asked_and_keeps_shares_unbiased(tmp_path: Path, draw: Draw) -> None:
    late = {number for number in range(40) if number % 7 == 1}
    suites = suites_of(
        tmp_path,
        *(
            answered(
                number,
                [0.2, 0.9] if number % 5 else [0.5],
                "failed" if number in late or number % 11 == 0 else "passed",
                texts={"answer": "Two hours late" if number in late else f"On time {number % 3} {number}"},
            )
            for number in range(40)
        ),
    )
    totals = []
    for seed in range(60):
        found = review_of(suites, pick=8, seed=seed, draw=draw)
        assert (len(found.items), found.draw) == (8, draw)
        assert all(each.probability >= 0.5 * 8 / 40 for each in found.items)
        totals.append(sum(1 / each.probability for each in found.items if each.answer.startswith("Two")))
    deviation = math.sqrt(sum((each - len(late)) ** 2 for each in totals) / len(totals) / len(totals))
    assert abs(sum(totals) / len(totals) - len(late)) < 4 * deviation


def test_failing_answers_are_preferred_and_without_any_the_draw_says_so(tmp_path: Path) -> None:
    suites = suites_of(tmp_path, *(answered(n, [1.0], "failed" if n < 4 else "passed") for n in range(40)))
    drawn = review_of(suites, pick=8, draw="failing").items
    assert [each.probability for each in drawn if each.failed] == [1.0] * 4
    with pytest.raises(LlmevalError, match="no answer failed"):
        review_of(suites_of(tmp_path, *(answered(n) for n in range(4))), pick=2, draw="failing")


def test_groups_of_contents_do_not_depend_on_the_order() -> None:
    texts = ["no refund", "refund no", "a rude reply", "退款窗口", "退款", ""]
    names = list("abcdef")
    groups = content_groups(texts, names, 3, seed=1)
    assert groups[0] == groups[1]
    assert len({*groups}) == 3
    order = random.Random(1).sample(range(6), 6)
    again = content_groups([texts[each] for each in order], [names[each] for each in order], 3, seed=1)
    assert again == [groups[each] for each in order]
    assert content_groups(["same"] * 3, names[:3], 3, seed=1) == [0, 0, 0]


SUITE = """
suite: desk
evaluators: [text]
target: {python: "app:answer"}
cases:
  - {id: one, input: Where is it?, labels: {topic: parcel}}
  - {id: two, input: Where is he?, prediction: At home}
"""


def test_traces_and_recordings_are_reviewed_without_expected_answers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Cancel order 9."}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "It is done."}]}],
    }
    attributes = [{"key": key, "value": {"stringValue": json.dumps(value)}} for key, value in messages.items()]
    attributes.append({"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}})
    span = {"traceId": "d4", "spanId": "1", "name": "chat", "attributes": attributes}
    span |= {"startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000002000000000"}
    traces = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    for name in ("traces.otlp.jsonl", "traces.json"):
        (here / name).write_text(json.dumps(traces), encoding="utf-8")
        (item,) = review_of(read_answers(here / name).suites).items
        assert (item.question, item.answer, item.reference, item.cases) == (
            "Cancel order 9.",
            "It is done.",
            "",
            ("d4",),
        )
        assert "Cancel order 9." in item.more["messages"]
    (here / "desk.eval.yaml").write_text(SUITE, encoding="utf-8")
    assert main(["review", "desk.eval.yaml", "--modes"]) == 0
    assert capsys.readouterr().out == "wrote desk.eval.review.html: 1 of 1 answer\n"
    assert '"modes": []' in (here / "desk.eval.review.html").read_text(encoding="utf-8").replace('":[', '": [')
    answer = Case("one", input="Where is it?", prediction="In Hamburg")
    Recordings.open(here / "recorded.jsonl", "record").update([Recordings.row("desk.eval.yaml", "", answer)])
    assert main(["review", "desk.eval.yaml", "--predictions", "recorded.jsonl"]) == 0
    assert capsys.readouterr().out == "wrote desk.eval.review.html: 2 of 2 answers\n"
    assert main(["review", "desk.eval.yaml", "--predictions", "missing.jsonl"]) == 1
    assert "missing.jsonl does not exist" in capsys.readouterr().err
    assert main(["review", "desk.eval.yaml", "--modes", "--scale", "1-5"]) == 1
    assert main(["review", "traces.json", "--predictions", "traces.json"]) == 1
    assert "expected a suite file" in capsys.readouterr().err
    assert read_modes([]).names == ModeBook().names == []


def test_a_judge_proposes_groups_of_notes_once_and_a_person_accepts(
    noted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = [{"name": "no greeting", "text": "It begins at once.", "notes": [2, 9]}, {"name": "late", "notes": [1]}]
    with LlmServer(reply(json.dumps({"groups": groups}))) as server:
        judge = ["--judge-model", "openai:m", "--judge-base-url", server.base_url]
        assert main(["modes", "--suggest", *judge]) == 0
        text = capsys.readouterr().out
        assert "1 proposal added to modes.jsonl" in text  # late is a mode already
        asked = json.dumps(server.calls[0].body)
        assert "1. Two" in asked
        assert "2. No hello" in asked
        noted.write_text("".join(map(mode_line, LINES)), encoding="utf-8")
        assert main(["modes", "--suggest", *judge]) == 0
        assert len(server.calls) == 1  # the reply was stored
        book = read_modes([noted])
        assert [(each.by, each.mode) for each in book.proposals][1:] == [("judge openai:m", "no greeting")]
        assert book.proposals[1].answers == (ShownPrints("q", "a2", "r"),)
        assert book.names == ModeBook(LINES).names
        server.script(reply('{"groups": [{"name": ""}]}'))
        noted.write_text("".join(map(mode_line, LINES[1:])), encoding="utf-8")
        assert main(["modes", "--suggest", "--judge-model", "openai:n", *judge[2:]]) == 1
        assert "no groups were proposed: found a group without a name" in capsys.readouterr().err
    assert main(["modes", "--suggest"]) == 1
    assert "--suggest needs a judge: pass --judge-model" in capsys.readouterr().err
