"""The subcommand cache: what is shown, deleted, carried over, and the exit code."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import entry, question
from msgspec.structs import replace
from project import write
from servers import PATIENCE

from pytest_llmeval.cli import main
from pytest_llmeval.judges import Judgements, StoredJudgement, Usage
from pytest_llmeval.judges.replies._sqlite import SqliteReplies
from pytest_llmeval.workbench._cache import suite_questions

CACHE = Path(".llmeval", "cache.sqlite3")

SUITE = """\
evaluators: [judge]
judge: {model: "openai:gpt-5-mini", temperature: 0}
cases:
  - {id: paris, input: Capital of France?, expected: Paris, prediction: Paris, labels: {question_type: single_hop}}
  - id: lyon
    input: Third city?
    expected: Lyon
    prediction: Lyon
    labels: {question_type: multi_session, question_id: q2}
  - {id: nobody, input: Who?, expected: x, prediction: not mentioned, labels: {question_type: adversarial}}
"""

Run = Callable[..., tuple[int, str, str]]


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["cache", *arguments])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def keep(*entries: StoredJudgement, path: Path = CACHE) -> None:
    with SqliteReplies(path) as cache:
        cache.put(entries)


def kept(path: Path = CACHE) -> list[StoredJudgement]:
    with SqliteReplies(path) as cache:
        return sorted(cache.entries(), key=lambda each: each.case)


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize(
    "arguments",
    [["stats"], ["verify"], ["prune", "--model", "openai:a"], ["export", "x.jsonl"], ["explain", "abc"]],
)
def test_a_cache_that_does_not_exist_is_an_error_and_is_not_made(arguments: list[str], run: Run) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err == f"no judge cache at {CACHE}: name it with --cache\n"
    assert list(Path().iterdir()) == []


def test_stats_count_by_mode_and_model(run: Run) -> None:
    keep(
        entry("a"),
        entry("b"),
        replace(entry("c", model="openai:b"), cost_usd=None, usage=Usage(None, None)),
        entry("d", asked=question("d", name="lenient")),
    )
    code, out, _ = run("stats")
    assert code == 0
    assert [*cells(out)[2:6], cells(out)[-1][:3]] == [
        ["lenient", "openai:a", "1", "3", "30", "4", "0.001000"],
        ["strict", "openai:a", "2", "6", "60", "8", "0.002000"],
        ["strict", "openai:b", "1", "3", "n/a", "n/a", "n/a"],
        ["all", "4", "12", "90", "12", "0.003000"],
        [f"{CACHE}:", "4", "verdicts,"],
    ]


def test_json_has_what_is_stored_and_what_is_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    keep(entry(), replace(entry("b", case="bell\x07"), cost_usd=None, usage=Usage(None, None)))

    def result(line: str, code: int = 0) -> dict[str, Any]:
        assert main(["--json", "cache", *line.split()]) == code
        printed = json.loads(capsys.readouterr().out)
        assert (printed["exit_code"], printed["output"], printed["errors"]) == (code, [], [])
        found: dict[str, Any] = printed["result"]
        return found

    stats = result("stats")
    assert stats["bytes"] == CACHE.stat().st_size
    assert (stats["verdicts"], stats["input_tokens"], stats["cost_usd"]) == (2, 30, 0.001)
    assert [(each["model"], each["verdicts"], each["bytes"]) for each in stats["by_model"]] == [("openai:a", 2, 6)]
    (verdict,) = result(f"explain {entry('b').key}")["verdicts"]
    assert (verdict["case"], verdict["components"]) == ("bell\x07", entry("b").components)
    assert result("export x.jsonl") == {"written": ["x.jsonl"], "verdicts": 2}
    assert result("import x.jsonl") == {"added": 0, "present": 2}
    write("qa.eval.yaml", SUITE)
    questions = result("explain qa.eval.yaml")["questions"]
    assert [(each["case"], each["judge"], each["stored"]) for each in questions] == [
        ("paris", "openai:gpt-5-mini", []),
        ("lyon", "openai:gpt-5-mini", []),
    ]
    connection = sqlite3.connect(CACHE, isolation_level=None)
    connection.execute("UPDATE entries SET entry = x'00' WHERE key = ?", (entry().key,))
    connection.close()
    verified = result("verify", 1)
    assert (verified["verdicts"], len(verified["damaged"])) == (1, 1)
    assert result("prune --model openai:a") == {"deleted": 2}
    assert result("stats") == {**dict.fromkeys(("input_tokens", "output_tokens", "cost_usd")), "verdicts": 0} | {
        "bytes": CACHE.stat().st_size,
        "by_model": [],
    }


def test_another_cache_can_be_named(run: Run) -> None:
    keep(entry(), path=Path("other.sqlite3"))
    assert run("stats", "--cache", "other.sqlite3")[0] == 0
    assert not CACHE.exists()


def test_what_is_no_cache_is_an_error_without_a_traceback(run: Run) -> None:
    write("notes.txt", "no cache")
    code, _, err = run("stats", "--cache", "notes.txt")
    assert code == 1
    assert err.startswith("notes.txt is not a judge cache")


def test_prune_deletes_by_model(run: Run) -> None:
    keep(entry(), entry(model="openai:b", case="b"))
    assert run("prune", "--model", "openai:a")[:2] == (0, f"{CACHE}: 1 verdict deleted\n")
    assert [each.case for each in kept()] == ["b"]


def test_prune_deletes_by_age(run: Run) -> None:
    keep(entry())
    connection = sqlite3.connect(CACHE, isolation_level=None)
    connection.execute("UPDATE entries SET made = made - 5 * 86400")
    connection.close()
    keep(entry("new"))
    assert run("prune", "--older-than", "6")[1] == f"{CACHE}: 0 verdicts deleted\n"
    assert run("prune", "--older-than", "4.5")[1] == f"{CACHE}: 1 verdict deleted\n"


@pytest.mark.parametrize("arguments", [[], ["--older-than", "-1"], ["--older-than", "nan"], ["--older-than", "x"]])
def test_prune_wants_to_know_what_to_delete(arguments: list[str], run: Run) -> None:
    keep(entry())
    assert run("prune", *arguments)[0] == 2
    assert len(kept()) == 1


def test_verify_lists_what_is_damaged(run: Run) -> None:
    keep(entry(), entry("b"))
    assert run("verify")[:2] == (0, f"{CACHE}: no fault, 2 verdicts\n")
    connection = sqlite3.connect(CACHE, isolation_level=None)
    connection.execute("UPDATE entries SET entry = x'00' WHERE key = ?", (entry().key,))
    connection.close()
    code, out, _ = run("verify")
    assert code == 1
    assert out.splitlines() == [
        f"{CACHE}: entry {entry().key}: found a wrong checksum or an invalid judgement",
        f"{CACHE}: 1 fault, 1 verdict",
    ]


def test_what_is_exported_can_be_imported_elsewhere(run: Run) -> None:
    entries = [entry(reply="half \ud800"), entry("b", case="b")]
    keep(*entries)
    assert run("export", "x.jsonl")[:2] == (0, "x.jsonl: 2 verdicts\n")
    code, out, _ = run("import", "x.jsonl", "--cache", "new/cache.sqlite3")
    assert (code, out) == (0, "new/cache.sqlite3: 2 verdicts added\n")
    assert kept(Path("new/cache.sqlite3")) == kept()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", ".  found a directory, expected a file to write\n"),
        (CACHE, f"found the cache {CACHE} as output file, expected another file\n"),
    ],
)
def test_an_export_overwrites_neither_a_folder_nor_the_cache(name: Path | str, said: str, run: Run) -> None:
    keep(entry())
    assert run("export", str(name)) == (1, "", said)
    assert kept() == [entry()]


def test_what_is_imported_replaces_nothing(run: Run) -> None:
    keep(entry())
    Judgements(Path("x.jsonl"), [replace(entry(), reply="0.9"), entry("b", case="b")]).write()
    assert run("import", "x.jsonl")[1] == f"{CACHE}: 1 verdict added, 1 there already\n"
    assert [each.reply for each in kept()] == ["0.5", "0.5"]


def test_a_faulty_file_is_not_imported(run: Run) -> None:
    write("x.jsonl", "{}\n[]\n")
    code, _, err = run("import", "x.jsonl")
    assert code == 1
    lines = [line for line in err.splitlines() if not line.startswith("    | ")]
    assert [line[:13] for line in lines] == ["x.jsonl:1:1  ", "x.jsonl:2:1  "]
    assert not CACHE.exists()
    assert run("import", "absent.jsonl")[2] == "absent.jsonl does not exist: name a file with verdicts or scores\n"


def test_scores_become_verdicts_of_a_suite(run: Run) -> None:
    write("qa.eval.yaml", SUITE)
    write("scores.json", {"paris": 0.8, "q2": 1.0, "nobody": 1.0})
    code, out, err = run("import", "scores.json", "--suite", "qa.eval.yaml")
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{CACHE}: 2 verdicts added", "1 score not needed: a rule decides the case"]
    lyon, paris = kept()
    assert (lyon.case, lyon.reply, lyon.score) == ("lyon", "yes", 1.0)
    assert json.loads(paris.reply) == {"reasoning": "imported from scores.json", "score": 0.8}
    asked = {each.case: each for each in suite_questions(Path("qa.eval.yaml")).questions}
    for each in (lyon, paris):
        assert each.key == asked[each.case].key
        assert asked[each.case].mode.read(each.reply).score == each.score


def test_a_score_is_brought_to_the_scale_of_a_rubric(run: Run) -> None:
    rubric = "{criteria: Be kind., levels: [{score: 1, meaning: rude}, {score: 5, meaning: kind}], pass_mark: 5}"
    write("qa.eval.yaml", SUITE.replace("[judge]", f"[{{judge: {{mode: rubric, rubric: {rubric}}}}}]"))
    write("scores.json", {"paris": 1.0, "lyon": 0.5})
    code, _, err = run("import", "scores.json", "--suite", "qa.eval.yaml")
    assert code == 1
    assert err == "scores.json: lyon: found the score 0.5, which is not a complete verdict of mode 'rubric'\n"
    (paris,) = kept()
    assert paris.score == 5.0


def test_scores_that_cannot_be_used_are_told_and_the_others_kept(run: Run) -> None:
    write(
        "qa.eval.yaml",
        SUITE
        + """\
  - {id: rome, input: Where?, expected: x, labels: {question_type: single_hop}}
  - {id: one, input: Where?, expected: x, prediction: y, labels: {question_type: single_hop, question_id: twice}}
  - {id: two, input: Where?, expected: x, prediction: z, labels: {question_type: single_hop, question_id: twice}}
""",
    )
    write("scores.json", {"paris": 0.8, "lyon": 0.4, "rome": 1, "absent": 0, "twice": 1})
    code, out, err = run("import", "scores.json", "--suite", "qa.eval.yaml")
    assert code == 1
    assert out.splitlines() == [f"{CACHE}: 1 verdict added", "2 cases without a score: one, two"]
    assert err.splitlines() == [
        "scores.json: absent: no case has this id or label question_id",
        "scores.json: lyon: found the score 0.4, which is not a complete verdict of mode 'default_binary'",
        "scores.json: rome: its prediction is made during a run",
        "scores.json: twice: found 2 cases of this question_id, expected one",
    ]


def test_scores_of_another_judge_are_kept_under_its_name(run: Run) -> None:
    write("qa.eval.yaml", SUITE)
    write("scores.json", {"paris": 0.8})
    run("import", "scores.json", "--suite", "qa.eval.yaml", "--model", "anthropic:m")
    assert [each.components["model"] for each in kept()] == ["anthropic:m"]
    code, _, err = run("import", "scores.json", "--suite", "qa.eval.yaml", "--model", "m")
    assert code == 1
    assert "expected PROVIDER:NAME" in err


def test_scores_are_of_one_repeat(run: Run) -> None:
    write("qa.eval.yaml", SUITE + "repeats: 2\n")
    write("scores.json", {"paris": 0.8})
    run("import", "scores.json", "--suite", "qa.eval.yaml")
    assert [each.components["repeat"] for each in kept()] == [0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["s.json"], "name the suite of the cases with --suite"),
        (["x.jsonl", "--suite", "qa.eval.yaml"], "apply to a JSON file of scores"),
    ],
)
def test_the_suite_belongs_to_scores(arguments: list[str], said: str, run: Run) -> None:
    write("s.json", {})
    write("x.jsonl", "")
    code, _, err = run("import", *arguments)
    assert code == 2
    assert said in err


@pytest.mark.parametrize("scores", [[1], {"paris": "high"}, {"paris": 1.5}, {"paris": True}])
def test_a_file_that_holds_no_scores_is_refused(scores: Any, run: Run) -> None:
    write("qa.eval.yaml", SUITE)
    code, _, err = run("import", write("s.json", scores), "--suite", "qa.eval.yaml")
    assert code == 1
    assert err.startswith("s.json:1:")


def test_explain_shows_what_a_key_is_made_of(run: Run) -> None:
    one = entry(parameters={"temperature": 0, "note": "a\x1b[31m"}, case="bell\x07")
    keep(one)
    code, out, _ = run("explain", one.key[:8])
    assert code == 0
    lines = cells(out)
    assert lines[0] == [f"{one.key},", "score", "0.5,", "case", "bell\\x07"]
    assert lines[1:] == [
        ["mode", "strict"],
        ["version", "1"],
        ["language", "en"],
        ["model", "openai:a"],
        ["repeat", "0"],
        ["instructions", one.components["instructions"]],
        ["parameter", "note", "a\\x1b[31m"],
        ["parameter", "temperature", "0"],
        ["text", "answer", one.components["texts"]["answer"]],
        ["text", "question", one.components["texts"]["question"]],
        [],
    ]


def test_explain_shows_recordings(run: Run) -> None:
    Judgements(Path("x.jsonl"), [entry(), entry("b", case="b")]).write()
    code, out, _ = run("explain", "x.jsonl")
    assert code == 0
    assert [line[0] for line in cells(out) if "case" in line] == [f"{entry('b').key},", f"{entry().key},"]


def test_explain_wants_something_that_exists(run: Run) -> None:
    assert run("explain", "nothing")[2].startswith(
        "nothing does not exist: name a suite, a recordings file, or the beginning"
    )
    keep(entry())
    assert run("explain", "abc")[2] == f"no key in {CACHE} begins with abc\n"


def test_explain_shows_what_of_a_suite_is_stored_and_why_not(run: Run) -> None:
    write("qa.eval.yaml", SUITE + "  - {id: rome, input: Where?, expected: x, labels: {question_type: single_hop}}\n")
    asked = {each.case: each for each in suite_questions(Path("qa.eval.yaml")).questions}
    paris, lyon = (
        StoredJudgement(asked[case].key, case, asked[case].components, "yes", 1.0, Usage(), 0.0, None)
        for case in ("paris", "lyon")
    )
    code, out, _ = run("explain", "qa.eval.yaml")
    assert code == 0
    assert not CACHE.exists()
    rows = [[*line[:5], " ".join(line[5:])] for line in cells(out)[2:4]]
    assert rows == [
        ["paris", "judge", "continuous", "0", paris.key, "to be asked"],
        ["lyon", "judge", "default_binary", "0", lyon.key, "to be asked"],
    ]
    keep(paris, lyon)
    Judgements(Path("__llmeval__/qa.judgements.jsonl"), [paris]).write()
    other = StoredJudgement(
        entry().key, "lyon", {**lyon.components, "model": "openai:x"}, "yes", 1.0, Usage(), 0.0, None
    )
    Judgements(Path("__llmeval__/qa.judgements.jsonl"), [paris, other]).write()
    _, out, _ = run("explain", "qa.eval.yaml")
    assert [" ".join(line[5:]) for line in cells(out)[2:4]] == ["recorded, cached", "cached"]
    assert out.splitlines()[4:] == [
        "lyon: the recorded verdict of this case differs in the model (openai:gpt-5-mini, recorded openai:x)",
        "rome: its prediction is made during a run",
    ]
    _, out, _ = run("explain", "qa.eval.yaml", "--model", "openai:x")
    assert paris.key not in out


def test_what_the_output_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    write("qa.eval.yaml", SUITE.replace("id: paris", "id: 巴黎"))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code = "import sys; from pytest_llmeval.cli import main; sys.exit(main(['cache', 'explain', 'qa.eval.yaml']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "\\u5df4\\u9ece" in done.stdout


def test_explain_says_that_a_suite_asks_nothing(run: Run) -> None:
    write("qa.eval.yaml", "evaluators: [text]\ncases: [{expected: a, prediction: a}]\n")
    assert run("explain", "qa.eval.yaml")[:2] == (0, "qa.eval.yaml: no question for a judge\n")


def test_explain_tells_the_faults_of_a_suite_and_of_its_recordings(run: Run) -> None:
    write("qa.eval.yaml", "evaluators: [judge]\n")
    assert run("explain", "qa.eval.yaml")[0] == 1
    write("qa.eval.yaml", SUITE)
    Path("__llmeval__").mkdir()
    write("__llmeval__/qa.judgements.jsonl", "<<<<<<< HEAD\n")
    code, _, err = run("explain", "qa.eval.yaml")
    assert code == 1
    assert "__llmeval__/qa.judgements.jsonl:1:1  found a merge conflict marker" in err


def test_scores_of_batch_judge_name_their_conversation_and_two_of_a_case_are_told(run: Run) -> None:
    write("qa.eval.yaml", SUITE)
    digest = "0123456789abcdef"
    write("scores.json", {f"conv/paris#{digest}": 0.8, f"conv/paris#{digest[::-1]}": 0.4})
    code, out, err = run("import", "scores.json", "--suite", "qa.eval.yaml")
    assert (code, out.splitlines()[0]) == (1, f"{CACHE}: 1 verdict added")
    assert err == f"scores.json: conv/paris#{digest[::-1]}: found a second score of case paris, expected one\n"
    assert [each.score for each in kept()] == [0.8]
