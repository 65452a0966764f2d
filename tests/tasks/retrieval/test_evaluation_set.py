"""Building evaluation sets for case retrieval: which queries, which positives, and what is told of the rest."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main

ARTICLES = {"theft": ["264"], "fraud": ["266"]}


pytestmark = pytest.mark.usefixtures("here")


def judgement(number: int, months: Any = 12, charge: str = "theft", **other: Any) -> dict[str, Any]:
    term = {"death_penalty": False, "life_imprisonment": False, "imprisonment": months}
    meta = {"accusation": [charge], "relevant_articles": ARTICLES[charge], "term_of_imprisonment": term}
    return {"id": f"c{number}", "fact": f"case {number}", "meta": meta, **other}


def write(rows: Sequence[Any], name: str = "corpus.jsonl") -> str:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def build(rows: Sequence[Any], *options: str, code: int = 0) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the ids of the positives by query, and the report."""
    assert main(["retrieval", "build-set", write(rows), "-o", "set.jsonl", *options]) == code
    lines = [json.loads(line) for line in Path("set.jsonl").read_text("utf-8").splitlines()]
    found = {line["query_id"]: [each["id"] for each in line["positives"]] for line in lines}
    return found, json.loads(Path("set.report.json").read_text("utf-8"))


def all_of(number: int) -> list[str]:
    return ["--queries", str(number), "--min-positives", "1"]


def test_positives_have_the_same_charge_and_a_close_term_the_closest_first() -> None:
    rows = [
        judgement(1, 60),
        judgement(2, 70),
        judgement(3, 61),
        judgement(4, 73),
        judgement(5, 60, "fraud"),
        judgement(6, 59),
        judgement(7, 60, meta={**judgement(7, 60)["meta"], "relevant_articles": ["264", "67"]}),
    ]
    found, _ = build(rows, *all_of(7))
    assert found["c1"] == ["c3", "c6", "c2"]
    assert set(found) == {"c1", "c2", "c3", "c4", "c6"}


def test_flags_must_be_the_same_and_then_months_do_not_matter() -> None:
    life = {"death_penalty": False, "life_imprisonment": True, "imprisonment": 0}
    lifers = [
        judgement(n, meta={**judgement(n)["meta"], "term_of_imprisonment": {**life, "imprisonment": n}})
        for n in (1, 90)
    ]
    found, _ = build([*lifers, judgement(3, 1)], *all_of(3))
    assert found == {"c1": ["c90"], "c90": ["c1"]}


def test_tolerances_can_be_chosen() -> None:
    rows = [judgement(1, 100), judgement(2, 110)]
    assert build(rows, *all_of(2), "--relative", "0", "--absolute", "9", code=1)[0] == {}
    assert build(rows, *all_of(2), "--relative", "0", "--absolute", "10")[0] == {"c1": ["c2"], "c2": ["c1"]}


def test_a_text_is_never_its_own_positive_and_counts_once() -> None:
    rows = [judgement(1), judgement(2, fact="case 1 "), judgement(3), judgement(4, fact="case 3")]
    found, report = build(rows, *all_of(4))
    assert len(found) == 2
    assert all(len(positives) == 1 for positives in found.values())
    assert report["dropped"] == {"candidate with the text of another": 2}


def test_of_equal_texts_the_closest_is_the_positive_wherever_it_stands() -> None:
    rows = [judgement(1, 60), judgement(2, 66, fact="a"), judgement(3, 65), judgement(4, 60, fact="a")]
    for order in (rows, rows[::-1]):
        found, _ = build(order, *all_of(4))
        assert found["c1"] == ["c4", "c3"]


def test_the_draw_depends_on_the_seed_alone() -> None:
    rows = [judgement(number) for number in range(200)]
    first, _ = build(rows, "--queries", "5", "--seed", "1")
    again, _ = build(rows, "--queries", "5", "--seed", "1")
    other, _ = build(rows, "--queries", "5", "--seed", "2")
    assert first == again
    assert list(first) != list(other)
    assert all(len(positives) == 10 for positives in first.values())


def test_rows_and_candidates_that_are_dropped_are_counted_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    bare = judgement(6)
    rows = [
        judgement(1),
        judgement(2),
        judgement(3, 99),
        judgement(1, fact="another"),
        {**bare, "fact": " "},
        {**bare, "meta": {**bare["meta"], "accusation": []}},
        {**bare, "meta": {**bare["meta"], "relevant_articles": None}},
        {**bare, "meta": {**bare["meta"], "term_of_imprisonment": {"imprisonment": "long"}}},
        [],
        7,
        "{",
    ]
    found, report = build(rows, *all_of(4), "--candidates", "4")
    assert len(found) == 2
    assert report["dropped"] == {
        "candidate with fewer than 1 positives": 1,
        "candidate with the id of another": 1,
        "row with a list in place of an object: the corpus is JSONL": 1,
        "row with no accusation": 1,
        "row with no article": 1,
        "row with no object": 1,
        "row with no term of imprisonment": 1,
        "row with no text": 1,
    }
    assert (report["rows"], report["usable"], report["drawn"]) == (10, 4, 4)
    assert len(report["faulty_lines"]) == 1
    assert report["faulty_lines"][0].startswith("corpus.jsonl:11:2")
    told = capsys.readouterr()
    assert "dropped 1: row with no article" in told.out
    assert "corpus.jsonl:11:2" in told.err
    command = ["retrieval", "build-set", "corpus.jsonl", "-o", "set.jsonl", *all_of(4), "--candidates", "4"]
    assert main(["--json", *command]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result == {"written": ["set.jsonl", "set.report.json"], "queries": 2, "report": report}


def test_attributes_may_stand_beside_the_text() -> None:
    rows = [
        {
            "doc_id": n,
            "text": f"case {n}",
            "accusation": "theft",
            "relevant_articles": [264],
            "imprisonment": {"imprisonment": n},
        }
        for n in (1, 2)
    ]
    assert build(rows, *all_of(2))[0] == {"1": ["2"], "2": ["1"]}


def test_what_is_built_can_be_evaluated() -> None:
    from pytest_llmeval import get_evaluator, score
    from pytest_llmeval.tasks.retrieval._source import CaseRetrievalSource

    build([judgement(number, number) for number in range(30)], "--queries", "4", "--min-positives", "5")
    cases = CaseRetrievalSource("set.jsonl").load(Path.cwd(), [])
    evaluator = get_evaluator("retrieval")
    assert [fault for case in cases for fault in evaluator.check(case)] == []
    answered = [
        case.answered(
            [
                {**each, **each["meta"], "imprisonment": each["meta"]["term_of_imprisonment"]}
                for each in case.expected["positives"]
            ]
        )
        for case in cases
    ]
    metrics = score(evaluator, answered, confidence=None).metrics
    assert {
        metrics[f"{task}_micro_precision@10"].value for task in ("gold", "accusation", "article", "imprisonment")
    } == {1}


def original_matches(query: Any, document: Any) -> tuple[bool, bool, bool]:
    """Restate the check of the original program: sets of lists, flags as they are, months subtracted."""
    asked, term = query["term_of_imprisonment"], document["term_of_imprisonment"]
    flags = [(each.get("death_penalty", False), each.get("life_imprisonment", False)) for each in (asked, term)]
    months, others = asked.get("imprisonment", 0), term.get("imprisonment", 0)
    near = flags[0] == flags[1] and (any(flags[0]) or abs(months - others) <= max(6, months * 0.2))
    names = ("accusation", "relevant_articles")
    accusation, article = (set(query[name]) == set(document[name]) for name in names)
    return accusation, article, near


def test_sets_are_read_by_the_rule_of_the_original_program() -> None:
    forms: list[dict[str, Any]] = [
        {"accusation": "[theft]，fraud", "relevant_articles": 264, "imprisonment": "12"},
        {"accusation": ["fraud", "theft"], "relevant_articles": "264", "imprisonment": 13},
        {"accusation": "theft;fraud", "relevant_articles": ["264"], "imprisonment": {"imprisonment": "14"}},
        {
            "accusation": "theft、fraud",
            "relevant_articles": [264],
            "imprisonment": {"imprisonment": 9.0, "death_penalty": None},
        },
    ]
    lifers: list[dict[str, Any]] = [
        {"accusation": ["theft"], "relevant_articles": ["264"], "imprisonment": term}
        for term in ({"life_imprisonment": 1, "imprisonment": None}, {"life_imprisonment": True, "imprisonment": 0})
    ]
    found, _ = build(
        [{"id": f"c{n}", "fact": f"case {n}", **each} for n, each in enumerate([*forms, *lifers])], *all_of(6)
    )
    assert {name: len(positives) for name, positives in found.items()} == {
        **dict.fromkeys(("c0", "c1", "c2", "c3"), 3),
        **dict.fromkeys(("c4", "c5"), 1),
    }
    for line in Path("set.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        for positive in row["positives"]:
            assert original_matches(row["query"]["meta"], positive["meta"]) == (True, True, True)


def test_memory_holds_candidates_and_not_the_corpus() -> None:
    from pytest_llmeval.tasks.retrieval._evaluation_set import SetOptions, build_set

    alive = most = 0

    class Row(dict[str, Any]):
        def __init__(self, number: int) -> None:
            nonlocal alive, most
            super().__init__(judgement(number))
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    built = build_set(
        lambda: ((n, Row(n)) for n in range(3000)), SetOptions(queries=3, candidates=6, positives=2, min_positives=2)
    )
    assert len(built.queries) == 3
    assert most < 20


ONE_FILE = "found the same file twice, expected three different files for corpus, output and report"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--queries", "0"], "queries: found 0, expected a number from 1"),
        (["--queries", "5", "--candidates", "4"], "candidates: found 4, expected at least 5, as many as queries"),
        (["--min-positives", "11"], "positives: found 10, expected at least 11, as many as min_positives"),
        (["--relative", "-1"], "relative: found -1.0, expected a number from 0"),
        (["--absolute", "nan"], "absolute: found nan, expected a number from 0"),
        (["--relative", "inf"], "relative: found inf, expected a number from 0"),
        (["--report", "corpus.jsonl"], ONE_FILE),
        (["--report", "./set.jsonl"], ONE_FILE),
        (["-o", "./corpus.jsonl"], ONE_FILE),
    ],
)
def test_options_out_of_range_are_refused(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build([judgement(1)], *options)
    assert capsys.readouterr().err.endswith(f"error: {told}\n")
    assert [json.loads(line)["id"] for line in Path("corpus.jsonl").read_text("utf-8").splitlines()] == ["c1"]


def test_a_corpus_that_cannot_be_read_or_a_set_that_cannot_be_written_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["retrieval", "build-set", "nowhere.jsonl", "-o", "set.jsonl"]) == 1
    assert "nowhere.jsonl  cannot be read" in capsys.readouterr().err
    assert not Path("set.jsonl").exists()
    name = write([judgement(1), judgement(2)])
    assert main(["retrieval", "build-set", name, "-o", "no/set.jsonl", *all_of(2)]) == 1
    assert "no/set.jsonl  cannot be written" in capsys.readouterr().err
    assert main(["retrieval", "build-set", name, "-o", ".", *all_of(2)]) == 1
    assert ".  cannot be written" in capsys.readouterr().err
