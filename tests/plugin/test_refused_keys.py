"""A key that is refused: no call more than those under way, and one message."""

from typing import TYPE_CHECKING

import pytest
from servers import SearchAnswer, serving, status

if TYPE_CHECKING:
    from conftest import Project
    from scripted_judges import Judged

WORDS = [f"w{number:02}" for number in range(24)]


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_judge_is_not_asked_again_by_any_worker_and_the_message_stands_once(
    judged: "Judged", code: int, workers: int
) -> None:
    judged.server.script(status(code, "this key is wrong"))
    judged.suite("s.eval.yaml", WORDS)
    judged.suite("t.eval.yaml", [f"t{word}" for word in WORDS])
    ran = judged.project.run("--llmeval-concurrency=2", workers=workers)
    assert ran.counts == {"failed": 48}
    assert len(judged.server.calls) <= 2
    assert ran.section("FAILURES").count("this key is wrong") == 1
    assert "the same in 47 more (-vv shows each)" in ran.text
    assert set(ran.outcomes("s").values()) == {"errored"}


def test_a_refused_target_is_not_asked_again_and_with_vv_every_case_says_why(
    project: "Project", monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(lambda *_: SearchAnswer("no such key", 403)) as server:
        http = {"url": server.url, "request": {"q": {"$input": True}}, "concurrency": 2}
        project.asking("s.eval.yaml", {"http": http}, *WORDS)
        ran = project.run("-vv", workers=workers)
        assert ran.counts == {"failed": 24}
        assert len(server.requests) <= 2 * max(1, workers)
        assert ran.section("FAILURES").count("no such key") == 24
        assert "more (-v" not in ran.text


def test_errors_of_their_own_are_shown_each(project: "Project") -> None:
    project.write(
        "app.py", "def answer(word):\n    raise ValueError(f'no answer to {word}' if word < 'c' else 'down')\n"
    )
    project.asking("s.eval.yaml", "app:answer", "a", "b", "c", "d", "e")
    ran = project.run(workers=0)
    failures = ran.section("FAILURES")
    assert [failures.count(each) for each in ("no answer to a", "no answer to b")] == [1, 1]
    assert failures.count("ValueError: down") == 1
    assert "the same in 2 more (-v shows each): d, e" in failures
