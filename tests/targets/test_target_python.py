"""Where predictions come from: targets, within a time limit, and recordings."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import MISSING, Case, PredictionError, SuiteError
from pytest_llmeval.data.files import documents as reading
from pytest_llmeval.services import Background, ThisThread, caught
from pytest_llmeval.targets import PythonTarget, RecordingMode, Recordings
from pytest_llmeval.targets._recordings import NotRecorded, input_digest, recording_mode

Predict = Callable[..., Any]


@pytest.fixture(params=["in a thread of its own", "in the thread that waits"])
def predictor(request: pytest.FixtureRequest) -> Iterator[Predict]:
    """Call targets in one event loop; plain ones in either thread."""
    background = Background()

    def predict(target: Callable[[Any], Any], value: Any, timeout: float | None = None) -> Any:
        here = ThisThread()
        run = here.call if "waits" in request.param else None
        answer, error = here.run(background, caught(PythonTarget(target).ask(value, timeout, run)))
        if error is not None:
            raise error
        return answer

    yield predict
    background.close()


async def echo(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("target", [lambda value: [value], lambda value: echo([value]), echo])
def test_plain_and_async_targets_answer_with_and_without_time_limit(
    predictor: Predict, target: Callable[[Any], Any], timeout: float | None
) -> None:
    assert predictor(target, "q", timeout) in (["q"], "q")


def test_async_targets_share_one_event_loop(predictor: Predict) -> None:
    async def loop_of(_: Any) -> int:
        return id(asyncio.get_running_loop())

    assert predictor(loop_of, None) == predictor(loop_of, None, 30.0)


def test_a_target_that_hangs_is_left_behind(predictor: Predict) -> None:
    forever = threading.Event()
    try:
        with pytest.raises(PredictionError, match=r"^the target took longer than 0\.01 s$"):
            predictor(lambda _: forever.wait(), "q", 0.01)
        assert predictor(lambda value: value, "next", 30.0) == "next"
    finally:
        forever.set()


def test_an_async_target_that_hangs_is_cancelled(predictor: Predict) -> None:
    seen: list[str] = []

    async def hang(_: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(PredictionError, match=r"^the target took longer than 0\.01 s$"):
        predictor(hang, "q", 0.01)
    assert seen == ["cancelled"]
    assert predictor(echo, "next", 30.0) == "next"


def fail(error: BaseException) -> Callable[[Any], Any]:
    def target(_: Any) -> Any:
        raise error

    return target


def fail_async(error: BaseException) -> Callable[[Any], Any]:
    async def target(_: Any) -> Any:
        raise error

    return target


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("kind", [fail, fail_async])
@pytest.mark.parametrize("error", [ValueError("mine"), TimeoutError("my own time limit")])
def test_what_a_target_raises_reaches_the_caller(
    predictor: Predict, kind: Callable[[BaseException], Callable[[Any], Any]], error: Exception, timeout: float | None
) -> None:
    with pytest.raises(type(error)) as raised:
        predictor(kind(error), "q", timeout)
    assert raised.value is error


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("kind", [fail, fail_async])
def test_sys_exit_is_an_error_of_this_case_and_of_no_later_one(
    predictor: Predict, kind: Callable[[BaseException], Callable[[Any], Any]], timeout: float | None
) -> None:
    with pytest.raises(PredictionError, match=r"^the target called sys\.exit\(3\)$"):
        predictor(kind(SystemExit(3)), "q", timeout)
    assert predictor(echo, "next", timeout) == "next"


@pytest.mark.parametrize(
    ("mode", "replays", "asks"),
    [("auto", True, True), ("replay", True, False), ("record", False, True), ("refresh", False, True)],
)
def test_modes_say_whether_they_replay_and_whether_they_ask(mode: RecordingMode, *, replays: bool, asks: bool) -> None:
    assert recording_mode(mode) == (replays, asks)


CASES = [Case("paris", input={"q": "capital?"}), Case("rome", input="capital?")]
ROWS = [Recordings.row("s", "", CASES[0].answered("Paris")), Recordings.row("s", "", CASES[1].answered(["Rome", None]))]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "answers" / "predictions.jsonl"
    Recordings.open(path, "auto").update(ROWS)
    return path


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_what_was_recorded_is_replayed(file: Path, mode: RecordingMode) -> None:
    recordings = Recordings.open(file, mode)
    assert recordings.get("s", "", CASES[0]) == "Paris"
    assert recordings.get("s", "", CASES[1]) == ["Rome", None]


@pytest.mark.parametrize("mode", ["record", "refresh"])
def test_the_recording_modes_ask_for_every_case(file: Path, mode: RecordingMode) -> None:
    assert Recordings.open(file, mode).get("s", "", CASES[0]) is MISSING


CHANGED = Case("paris", input="another question")
NEW = Case("oslo", input="capital?")


@pytest.mark.parametrize(
    ("suite", "variant", "case"), [("s", "", CHANGED), ("s", "", NEW), ("other", "", CASES[0]), ("s", "gpt", CASES[0])]
)
def test_what_is_not_recorded_is_asked_for_in_mode_auto(file: Path, suite: str, variant: str, case: Case) -> None:
    assert Recordings.open(file, "auto").get(suite, variant, case) is MISSING


@pytest.mark.parametrize(
    ("case", "why"), [(CHANGED, "case 'paris' was recorded for another input"), (NEW, "case 'oslo' is not recorded")]
)
def test_mode_replay_says_what_it_lacks_and_why(file: Path, case: Case, why: str) -> None:
    with pytest.raises(PredictionError) as caught:
        Recordings.open(file, "replay").get("s", "", case)
    assert str(caught.value) == (
        f"{why} in predictions.jsonl; run once with --llmeval-predictions-mode=auto to call the target"
    )


def test_mode_replay_needs_the_file_and_the_others_do_not(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="does not exist; create it with --llmeval-predictions-mode=record"):
        Recordings.open(tmp_path / "absent.jsonl", "replay")
    assert Recordings.open(tmp_path / "absent.jsonl", "auto").get("s", "", NEW) is MISSING


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"suite": "s", "variant": "", "case": "x", "input": "0"}',
        '{"suite": [], "variant": "", "case": "x", "input": "0", "prediction": 1}',
        '{"suite": "s", "variant": "", "case": 3, "input": "0", "prediction": 1}',
        '{"suite": "s", "variant": "", "case": "x", "input": null, "prediction": 1}',
    ],
)
def test_a_line_that_is_no_recording_is_told_with_its_place(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    with pytest.raises(SuiteError) as caught:
        Recordings.open(file, "auto")
    assert str(caught.value) == f"{file}:3:1  expected an object with suite, variant, case, input and prediction"


def test_a_corrupt_line_is_told_with_its_place(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + '{"suite": "s", "vari', encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        Recordings.open(file, "auto")
    assert str(caught.value).startswith(f"{file}:3:")


def test_the_file_is_sorted_one_line_per_case_with_its_own_characters(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    made = [Recordings.row("s", variant, Case(name, "q").answered("東京")) for name in "ba" for variant in ("y", "")]
    Recordings.open(path, "record").update(made)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [(row["variant"], row["case"]) for row in map(json.loads, lines)] == [
        ("", "a"),
        ("", "b"),
        ("y", "a"),
        ("y", "b"),
    ]
    assert (
        lines[0]
        == f'{{"case": "a", "input": "{input_digest("q")}", "prediction": "東京", "suite": "s", "variant": ""}}'
    )
    assert b"\r" not in path.read_bytes()


@pytest.mark.parametrize("mode", ["auto", "record", "refresh"])
def test_writing_the_same_again_changes_no_byte_in_any_order(file: Path, mode: RecordingMode) -> None:
    before = file.read_bytes()
    Recordings.open(file, mode).update(reversed(ROWS))
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == ["predictions.jsonl"]


def test_mode_replay_writes_nothing(file: Path) -> None:
    before = file.read_bytes()
    Recordings.open(file, "replay").update([Recordings.row("s", "", NEW.answered("Oslo"))])
    assert file.read_bytes() == before


def recorded(file: Path) -> list[str]:
    return [f"{row['suite']}/{row['case']}" for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("auto", ["other/x", "s/oslo", "s/paris", "s/rome"]),
        ("record", ["other/x", "s/oslo", "s/paris", "s/rome"]),
        ("refresh", ["other/x", "s/oslo"]),
    ],
)
def test_only_mode_refresh_forgets_and_only_in_suites_that_ran(
    file: Path, mode: RecordingMode, kept: list[str]
) -> None:
    Recordings.open(file, "auto").update([Recordings.row("other", "", Case("x", "q").answered("kept"))])
    Recordings.open(file, mode).update([Recordings.row("s", "", NEW.answered("Oslo"))], {("s", "")})
    assert recorded(file) == kept


def test_refresh_forgets_nothing_of_a_suite_that_did_not_run_to_its_end(file: Path) -> None:
    Recordings.open(file, "refresh").update([Recordings.row("s", "", NEW.answered("Oslo"))])
    assert recorded(file) == ["s/oslo", "s/paris", "s/rome"]


UNREADABLE = {
    "half of a surrogate pair": {"text": ["half \ud83d"]},
    "nested deeply": json.loads("[" * 120 + "]" * 120),
    "a line without measure": "x" * reading.InputFile.MAX_LINE_BYTES,
    "no number of JSON": float("inf"),
}


@pytest.mark.parametrize("prediction", UNREADABLE.values(), ids=UNREADABLE)
def test_a_prediction_that_no_run_could_read_again_costs_no_other_and_is_asked_for_again(
    file: Path, prediction: Any
) -> None:
    rows = [
        Recordings.row("s", "", NEW.answered(prediction)),
        Recordings.row("s", "", Case("rome", "q").answered("Rome")),
    ]
    assert Recordings.open(file, "auto").update(rows) == NotRecorded([NEW.id], [])
    assert Recordings.open(file, "auto").get("s", "", NEW) is MISSING
    assert recorded(file) == ["s/paris", "s/rome"]


def test_a_file_of_which_nothing_is_left_is_removed_for_an_empty_one_could_not_be_read(file: Path) -> None:
    assert Recordings.open(file, "refresh").update([], {("s", "")}) == NotRecorded([], [])
    assert not file.exists()
    assert Recordings.open(file, "auto").get("s", "", NEW) is MISSING


def test_the_fingerprint_of_an_input_ignores_the_order_of_keys_only() -> None:
    assert input_digest({"a": 1, "b": 2}) == input_digest({"b": 2, "a": 1})
    assert input_digest([1, 2]) != input_digest([2, 1])
    assert input_digest("1") != input_digest(1)
