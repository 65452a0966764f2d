"""Judgements that a run used: gathered from its tests, recorded beside the files that asked."""

from pathlib import Path

from builders import entry
from msgspec.structs import replace

from pytest_llmeval.judges import Judgements, StoredJudgement
from pytest_llmeval.judges._recordings import Written
from pytest_llmeval.plugin._payload import encode_judgements
from pytest_llmeval.run._run_record import UsedJudgements


def used(asking: Path, *entries: StoredJudgement) -> UsedJudgements:
    found = UsedJudgements()
    found.take(encode_judgements((asking, each) for each in entries))
    return found


def test_what_two_files_asked_lies_beside_each_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    one, two = tmp_path / "one.eval.yaml", tmp_path / "test_two.py"
    for count in (1, 0):
        run = used(two, entry(case="b"))
        run.take(encode_judgements([(one, entry(case="a"))]))
        assert list(run.write({})) == [Written(Judgements.path_of(one), count), Written(Judgements.path_of(two), count)]
    assert [each.case for each in Judgements.read(Judgements.path_of(two)).entries.values()] == ["b"]


def test_only_what_was_asked_anew_forgets_what_its_scored_cases_did_not_use(tmp_path: Path) -> None:
    suite = tmp_path / "s.eval.yaml"
    old, new = entry(case="old"), replace(entry(case="new"), key="0" * 32)
    for renewed, kept in (({}, ["new", "old"]), ({suite: ["old"]}, ["new", "old"]), ({suite: ["new"]}, ["new"])):
        list(used(suite, old).write({}))
        list(used(suite, new).write(renewed))
        assert sorted(each.case for each in Judgements.read(Judgements.path_of(suite)).entries.values()) == kept


def test_of_cases_that_share_a_verdict_the_first_by_name_stands_for_it(tmp_path: Path) -> None:
    suite = tmp_path / "s.eval.yaml"
    for order in (["b", "a"], ["a", "b"]):
        list(used(suite, *(entry(case=name) for name in order)).write({suite: ()}))
        assert [each.case for each in Judgements.read(Judgements.path_of(suite)).entries.values()] == ["a"]


def test_recordings_that_cannot_be_read_are_told_and_left_as_they_are(tmp_path: Path) -> None:
    path = Judgements.path_of(tmp_path / "s.eval.yaml")
    path.parent.mkdir()
    path.write_text("{broken\n")
    [written] = used(tmp_path / "s.eval.yaml", entry()).write({})
    assert (written.path, written.judgements) == (path, 0)
    assert written.fault.startswith(f"{path}:1:1  found invalid JSON at column 2")
    assert path.read_text() == "{broken\n"
