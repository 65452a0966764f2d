"""Recorded judgements: the file, its faults, what is kept, and what a miss says."""

import json
from pathlib import Path
from typing import Any

import pytest
from builders import entry, question
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_llmeval.core import LlmevalError, SuiteError
from pytest_llmeval.data import OwnFiles
from pytest_llmeval.judges import Judgements, StoredJudgement, Usage
from pytest_llmeval.judges._recordings import merge_judgements, recorded_line

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
AMOUNTS = st.floats(0, 1e6, allow_nan=False)
ENTRIES = st.builds(
    StoredJudgement,
    key=st.text("0123456789abcdef", min_size=32, max_size=32),
    case=ANY_TEXT,
    components=st.fixed_dictionaries(
        {
            "mode": ANY_TEXT,
            "version": ANY_TEXT,
            "language": ANY_TEXT,
            "model": ANY_TEXT,
            "parameters": st.dictionaries(ANY_TEXT, st.none() | st.booleans() | st.integers() | ANY_TEXT, max_size=2),
            "repeat": st.integers(0, 9),
            "instructions": ANY_TEXT,
            "texts": st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
        }
    ),
    reply=ANY_TEXT,
    score=AMOUNTS,
    usage=st.builds(Usage, st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9)),
    seconds=AMOUNTS,
    cost_usd=st.none() | AMOUNTS,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "__llmeval__" / "capitals.judgements.jsonl"


def faults(path: Path, *lines: str) -> list[str]:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        Judgements.read(path, "f.jsonl")
    return str(caught.value).splitlines()


@given(ENTRIES)
def test_an_entry_survives_json(one: StoredJudgement) -> None:
    assert StoredJudgement.from_json(json.loads(recorded_line(one))) == one
    assert recorded_line(one).encode().count(b"\n") == 1


def test_what_is_written_reads_back_whatever_the_judge_said(path: Path) -> None:
    odd = entry(reply='half \ud800, line\u2028break, bidi \u202e, 東京 🎉, nul \0, quote "', case="odd")
    assert Judgements(path, [odd, entry("Rome")]).write()
    read = Judgements.read(path)
    assert read.get(odd.key) == odd
    assert read.get("0" * 32) is None
    text = path.read_text(encoding="utf-8")
    assert "\\ud800, line\\u2028break, bidi \\u202e, 東京 🎉, nul \\u0000" in text


def test_a_line_begins_with_what_people_read_and_ends_with_digests() -> None:
    names = list(json.loads(recorded_line(entry())))
    assert names[:5] == ["case", "mode", "model", "score", "reply"]
    assert names[-3:] == ["key", "instructions", "texts"]


def test_lines_are_sorted_by_case_mode_and_repeat_whatever_the_order(path: Path) -> None:
    entries = [
        entry(case="b"),
        entry("Rome", case="a", repeat=1),
        entry("Rome", case="a"),
        entry(case="a", asked=question(name="lenient")),
    ]
    assert Judgements(path, entries).write()
    before = path.read_bytes()
    rows = [json.loads(line) for line in before.splitlines()]
    assert [(row["case"], row["mode"], row["repeat"]) for row in rows] == [
        ("a", "lenient", 0),
        ("a", "strict", 0),
        ("a", "strict", 1),
        ("b", "strict", 0),
    ]
    assert not Judgements(path, reversed(entries)).write()
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_of_two_judgements_of_a_key_the_later_is_written(path: Path) -> None:
    later = replace(entry(), reply="1")
    assert Judgements(path, [entry(), later]).write()
    assert list(Judgements.read(path).entries.values()) == [later]


def test_nothing_to_record_makes_no_file_and_empties_an_existing_one(path: Path) -> None:
    assert not Judgements(path, []).write()
    assert not path.parent.exists()
    Judgements(path, [entry()]).write()
    assert Judgements(path, []).write()
    assert Judgements.read(path).entries == {}


def test_an_absent_file_is_empty(path: Path) -> None:
    assert Judgements.read(path).entries == {}


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LlmevalError, match=r"x\.jsonl: the judgements cannot be written"):
        Judgements(tmp_path / "file" / "x.jsonl", [entry()]).write()


def test_a_new_judgement_replaces_the_old_one_of_its_key() -> None:
    old, other = entry(), entry("Rome")
    new = replace(old, reply="1")
    assert merge_judgements([old, other], [new]) == [new, other]


def test_what_is_forgotten_are_old_judgements_of_the_cases_named() -> None:
    stale, kept, new = entry("Rome"), entry(case="other"), entry("Lyon")
    assert merge_judgements([stale, kept], [new], forget={"paris"}) == [kept, new]


def broken(**changes: Any) -> str:
    data = {**entry().to_json(), **changes}
    return json.dumps({name: value for name, value in data.items() if value != "ABSENT"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "{",
            "found invalid JSON at column 2 (Expecting property name enclosed in double quotes), expected a judgement",
        ),
        ("[1]", "found list, expected an object with case, mode,"),
        (broken(score="high"), "score: found 'high', expected a finite number"),
        (broken(score=float("nan")), "score: found nan, expected a finite number"),
        (broken(score=10**400), "score: found 1000"),
        (broken(score=True), "score: found True, expected a finite number"),
        (broken(key="../x"), "key: found '../x', expected 32 hexadecimal digits"),
        (broken(key="ABSENT"), "key is missing"),
        (broken(extra=1), "unknown key extra, "),
        (broken(input_tokens=-1), "input_tokens: found -1, expected a whole number of at least 0, or null"),
        (broken(cost_usd="free"), "cost_usd: found 'free', expected a number from 0, or null"),
        (broken(texts={"answer": 1}), "texts: found {'answer': 1}, expected an object of digests"),
        (broken(reply=None), "reply: found None, expected text"),
        ('{"case": 1, "case": 2}', "the key 'case' occurs twice"),
        ("[" * 100_000, "found too many levels of nesting, expected a judgement"),
        ("<<<<<<< HEAD", "found a merge conflict marker, expected a judgement: keep the lines of both sides"),
        ("=======", "found a merge conflict marker"),
        (">>>>>>> theirs", "found a merge conflict marker"),
    ],
)
def test_a_line_that_is_no_judgement_is_a_fault_with_its_place(path: Path, line: str, said: str) -> None:
    (found,) = faults(path, recorded_line(entry("Rome")).rstrip(), "", line)
    assert found.startswith(f"f.jsonl:3:1  {said}")


def test_all_faulty_lines_are_told(path: Path) -> None:
    assert len(faults(path, "{", "[]", broken(score=None, key=1))) == 3


def test_two_judgements_of_a_key_are_a_fault_but_the_same_line_twice_is_none(path: Path) -> None:
    line, other = recorded_line(entry()), recorded_line(replace(entry(), reply="1"))
    (found,) = faults(path, line + other)
    assert (
        found
        == "f.jsonl:2:1  key: found a judgement with the key of line 1, expected distinct keys: delete one of them"
    )
    path.write_text(line + line, encoding="utf-8")
    assert len(Judgements.read(path).entries) == 1


def test_a_file_with_windows_line_ends_reads(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(recorded_line(entry()).replace("\n", "\r\n").encode())
    assert Judgements.read(path).get(entry().key) == entry()


def test_a_miss_says_what_differs_from_the_most_similar_judgement_of_the_case() -> None:
    found = Judgements(
        Path("f"),
        [
            entry("Lyon", model="openai:b", repeat=1),
            entry("Rome", model="openai:b"),
            entry("Rome", case="other"),
            entry("Rome", asked=question("Rome", name="lenient")),
        ],
    )
    assert found.nearest("paris", entry().components) == (
        "the recorded verdict of this case differs in the answer, the model (openai:a, recorded openai:b)"
    )


def test_a_miss_of_a_case_without_judgements_names_another_of_the_mode() -> None:
    found = Judgements(Path("f"), [entry(case="b", model="openai:b")])
    assert found.nearest("new", entry().components) == (
        "no verdict is recorded for this case; the one of case 'b' differs in the model (openai:a, recorded openai:b)"
    )


def test_a_miss_of_a_case_with_judgements_of_other_modes_names_these_and_another_of_the_mode() -> None:
    lenient = entry(case="a", asked=question(name="lenient"))
    assert Judgements(Path("f"), [lenient]).nearest("a", entry().components) == "this case has verdicts of lenient"
    assert Judgements(Path("f"), [lenient, entry("Rome", case="b")]).nearest("a", entry().components) == (
        "this case has verdicts of lenient; the one of case 'b' differs in the answer"
    )


def test_a_miss_without_anything_like_it_says_so() -> None:
    found = Judgements(Path("f"), [entry(case="b", asked=question(name="lenient"))])
    assert found.nearest("new", entry().components) == "no verdict is recorded for this case"


@pytest.mark.parametrize(
    ("suite", "beside", "name"),
    [
        ("qa.eval.yaml", [], "qa.x.json"),
        ("qa.eval.yml", [], "qa.x.json"),
        ("qa.eval.json", [], "qa.x.json"),
        ("qa.v2.eval.json", [], "qa.v2.x.json"),
        ("qa.eval.yaml", ["qa.json", "qa.yaml", "qb.eval.json"], "qa.x.json"),
        ("qa.eval.yaml", ["qa.eval.json"], "qa.eval.yaml.x.json"),
        ("qa.yaml", [], "qa.x.json"),
        ("qa.yaml", ["qa.eval.yml"], "qa.yaml.x.json"),
        ("qa.yaml", ["qa.json"], "qa.yaml.x.json"),
        (".eval.yaml", [], ".eval.x.json"),
        ("suite", [], "suite.x.json"),
    ],
)
def test_a_suite_has_files_of_its_own_in_a_folder_beside_it(
    suite: str, beside: list[str], name: str, tmp_path: Path
) -> None:
    for each in (suite, *beside):
        (tmp_path / each).write_text("", encoding="utf-8")
    assert OwnFiles(tmp_path / suite).path("x.json") == tmp_path / "__llmeval__" / name
