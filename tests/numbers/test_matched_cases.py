"""Which cases of two runs are compared: those that both have, and that have not been edited."""

import pytest

from pytest_llmeval.core import CaseRecord
from pytest_llmeval.numbers import CaseDigest, CaseStatistics, RunPairing
from pytest_llmeval.numbers._pairing import match


def kept(ids: str, edited: str = "", limited: str = "") -> CaseStatistics:
    """Return the statistics of cases with ids of one letter."""
    digests = {
        each: CaseDigest(f"{each} {'edited' if each in edited else 'as is'}", "f1" * (each in limited)) for each in ids
    }
    return CaseStatistics.from_records([CaseRecord(each) for each in ids], digests=digests)


def test_cases_are_unchanged_new_gone_or_edited() -> None:
    found = match(kept("abcdx", edited="c"), kept("abcde"))
    assert found[:5] == (("a", "b", "d"), ("x",), ("e",), ("c",), True)
    assert str(found) == "3 unchanged cases compared; 1 new (x); 1 gone (e); 1 edited (c)"


def test_of_many_cases_the_first_are_named() -> None:
    assert str(match(kept("abcdefgh"), kept("h"))) == "1 unchanged case compared; 7 new (a, b, c, d, e and 2 more)"


def test_without_digests_the_id_decides() -> None:
    old = CaseStatistics.from_records(kept("abc").records)
    found = match(kept("abd", edited="a"), old)
    assert (found.unchanged, found.edited, found.known) == (("a", "b"), (), False)


@pytest.mark.parametrize(("limited", "same"), [("a", False), ("c", True), ("x", True), ("", True)])
def test_only_thresholds_of_unchanged_cases_matter(limited: str, same: bool) -> None:
    assert match(kept("abcx", edited="c", limited=limited), kept("abc")).same_limits is same


def test_digests_come_back_from_the_file() -> None:
    statistics = kept("ab", edited="b", limited="b")
    assert CaseStatistics.from_lines(statistics.to_lines()) == statistics
    assert list(statistics.to_lines())[1] == '{"id": "b", "outcome": "passed", "data": "b edited", "limits": "f1"}'


def test_without_an_unchanged_case_there_are_no_pairs() -> None:
    pairing = RunPairing(kept("ab", edited="ab"), kept("ab"), {})
    assert (pairing.paired, pairing.common, pairing.only_current, pairing.only_baseline) == (False, 0, 2, 2)
    assert len(pairing.everything().current) == 2


def test_pairs_are_the_same_case_row_by_row() -> None:
    pairing = RunPairing(kept("abcx", edited="b"), kept("abc"), {})
    assert pairing.paired
    assert [len(rows) for rows in pairing.everything()] == [2, 2]
    assert pairing.table.matrix.shape[0] == 4


def positions(contents: str) -> CaseStatistics:
    """Return the statistics of rows that are named by their positions, with contents of one letter."""
    ids = [str(number) for number, _ in enumerate(contents, 1)]
    digests = {case: CaseDigest(content) for case, content in zip(ids, contents, strict=True)}
    records = [CaseRecord(case, {"row": content}) for case, content in zip(ids, contents, strict=True)]
    return CaseStatistics.from_records(records, digests=digests)


def test_a_row_that_is_inserted_moves_no_other_case() -> None:
    pairing = RunPairing(positions("zabcdefghijkl"), positions("abcdefghijkl"), {})
    assert str(pairing.matching) == "12 unchanged cases compared; 12 cases matched by content; 1 new (1)"
    rows = pairing.everything()
    contents = [[pairing.table.records[row].labels["row"] for row in part] for part in rows]
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == sorted("abcdefghijkl")


def test_of_equal_contents_as_many_are_matched_as_both_have() -> None:
    found = match(positions("zaaab"), positions("aab"))
    assert found.by_content == {"3": "1", "5": "3"}
    assert (found.new, found.gone, found.edited) == (("1", "4"), (), ())
    assert found.content_note == "2 cases matched by content, 1 of them in order among equal ones"


def test_a_case_that_is_edited_after_a_row_was_removed_is_gone_and_new() -> None:
    found = match(positions("bCde"), positions("abcde"))
    assert (found.new, found.gone, found.edited) == (("2",), ("1", "3"), ())


@pytest.mark.parametrize("moved", ["abc", "cab", "ba", "abcd", "dcba", "aabbc", ""])
def test_matching_is_the_same_from_both_sides(moved: str) -> None:
    forth, back = match(positions(moved), positions("abc")), match(positions("abc"), positions(moved))
    assert forth.by_content == {case: before for before, case in back.by_content.items()}
    assert len(forth.unchanged) == len(back.unchanged) == len(set(moved) & set("abc"))


def test_content_that_several_cases_have_identifies_none_with_an_id_of_its_own() -> None:
    old = CaseStatistics.from_records(map(CaseRecord, "abc"), digests=dict.fromkeys("abc", CaseDigest("same")))
    new = CaseStatistics.from_records([CaseRecord("x")], digests={"x": CaseDigest("same")})
    found = match(new, old)
    assert (found.new, found.gone, found.by_content) == (("x",), ("a", "b", "c"), {})
