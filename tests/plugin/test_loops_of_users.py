"""Coroutines of users run in one event loop for each process: that of their fixtures, of their tests, or of the run."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CLIENT = """\
import asyncio


class Client:
    def __init__(self):
        self.loop = asyncio.get_running_loop()

    async def ask(self, question):
        await asyncio.sleep(0)
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("Timeout context manager should be used inside a task")
        return "Lima"
"""

ASYNCIO = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto")
FIXTURES = {
    "asyncio, session": (ASYNCIO, "session"),
    "asyncio, module": (ASYNCIO, "module"),
    "asyncio, function": (ASYNCIO, "function"),
    "anyio": (("-p", "anyio.pytest_plugin"), "module"),
}
"""Options, and scope of the fixture and of its loop."""
SELDOM = {"asyncio, module", "asyncio, function"}

TARGETS = {
    "a target": """
@pytest.fixture(scope=SCOPE)
def llmeval_target(client):
    return client.ask
""",
    "a plain target that returns an awaitable": """
@pytest.fixture(scope=SCOPE)
def llmeval_target(client):
    return lambda question: client.ask(question)
""",
    "a judge": """
@pytest.fixture(scope=SCOPE)
def judge_client(client):
    async def judge(request):
        assert await client.ask("") == "Lima"
        return '{"reasoning": "x", "score": 1}'
    return judge
""",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "fixture",
    [pytest.param(name, marks=[pytest.mark.release] * (name in SELDOM)) for name in FIXTURES],
)
def test_what_uses_an_async_fixture_runs_in_its_loop(
    project: "Project", fixture: str, target: str, workers: int
) -> None:
    options, scope = FIXTURES[fixture]
    backend = "anyio_backend" if fixture == "anyio" else ""
    project.write(
        "conftest.py",
        f"""
import pytest
{CLIENT}

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope={scope!r})
async def client({backend}):
    made = Client()
    yield made
    await made.ask("the end")
{TARGETS[target].replace("SCOPE", repr(scope))}
""",
    )
    names = [f"c{number}" for number in range(12)]
    asks = target != "a judge"
    cases = [{"id": name, "input": name, "expected": "Lima"} | ({} if asks else {"prediction": "x"}) for name in names]
    evaluators = {} if asks else {"evaluators": [{"judge": {"mode": "continuous"}}]}
    for suite in ("s", "t"):
        project.suite(f"{suite}.eval.yaml", cases, **evaluators)
    ran = project.run(*options, "-o", f"asyncio_default_fixture_loop_scope={scope}", workers=workers)
    assert ran.code == 0, ran.text
    for suite in ("s", "t"):
        assert ran.outcomes(suite) == dict.fromkeys(names, "passed")


APP = """\
import asyncio

homes = []


async def answer(question):
    homes.append(asyncio.get_running_loop())
    assert len(set(homes)) == 1, "attached to a different loop"
    return "Lima"
"""

CITY = """\
import pytest_llmeval as ev
from app import answer

city = ev.suite(
    "city",
    cases=[{{"id": "a", "input": "q", "expected": "Lima"}}, {{"id": "b", "input": "r", "expected": "Lima"}}],
    evaluators=[ev.text(metrics=["exact_match"])],
    gates=["exact_match >= 1"],
)


@city.test
{mark}
async def test_city(case):
    case.score(await answer(case.input))
"""

RUNNERS = {
    "no plugin": ("", ()),
    "asyncio": (
        "",
        (*ASYNCIO, "-o", "asyncio_default_test_loop_scope=session"),
    ),
}


@pytest.mark.parametrize("order", [("s.eval.yaml", "test_city.py"), ("test_city.py", "s.eval.yaml")], ids=" ".join)
@pytest.mark.parametrize("runner", RUNNERS)
def test_suite_files_and_async_tests_share_a_loop(project: "Project", runner: str, order: tuple[str, ...]) -> None:
    mark, options = RUNNERS[runner]
    project.write("app.py", APP)
    project.write("test_city.py", CITY.format(mark=mark))
    project.asking("s.eval.yaml", "app:answer", "one", "two")
    ran = project.run(*options, *order)
    assert ran.counts == {"passed": 5}, ran.text


def test_an_async_test_may_ask_the_judge_while_its_loop_waits(project: "Project") -> None:
    project.write("app.py", APP)
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def judge_client():
    async def judge(request):
        return '{"reasoning": "x", "score": 1}'
    return judge
""",
    )
    project.write(
        "test_city.py",
        CITY.format(mark="").replace("(case):", "(case, judge):") + "    assert judge('q', 'a', 'a').score == 1\n",
    )
    ran = project.run()
    assert ran.counts == {"passed": 3}, ran.text


APART = f"""
import pytest
{CLIENT}

@pytest.fixture(scope="session", loop_scope="session")
async def wide():
    return Client()

@pytest.fixture(scope="module", loop_scope="module")
async def narrow():
    return Client()

@pytest.fixture(scope="module")
def llmeval_target(wide, narrow):
    async def answer(question):
        await wide.ask(question)
        return await narrow.ask(question)
    return answer
"""


def test_fixtures_of_different_loops_are_named(project: "Project") -> None:
    text = APART.replace('@pytest.fixture(scope="session"', '@pytest_asyncio.fixture(scope="session"')
    text = text.replace('@pytest.fixture(scope="module", loop', '@pytest_asyncio.fixture(scope="module", loop')
    project.write("conftest.py", "import pytest_asyncio\n" + text)
    project.suite("s.eval.yaml", [{"id": "a", "input": "q", "expected": "Lima"}])
    ran = project.run("-p", "pytest_asyncio.plugin")
    assert ran.code == 1
    assert (
        "the fixtures 'wide' and 'narrow' live in different event loops, and coroutines of a suite run in that of "
        "'wide': give them one loop_scope"
    ) in ran.text


IN_THREADS = {
    "an event loop": "import asyncio\n\nasync def ask(q):\n    return q.upper()\n\n\n"
    "def answer(q):\n    return asyncio.get_event_loop().run_until_complete(ask(q))\n",
    "a connection": "import sqlite3\n\nbase = sqlite3.connect(':memory:')\n\n\n"
    "def answer(q):\n    return base.execute('select upper(?)', (q,)).fetchone()[0]\n",
    "signals": "import signal\n\n\n"
    "def answer(q):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    return q.upper()\n",
    "a cursor": "import sqlite3\n\ncursor = sqlite3.connect(':memory:').cursor()\n\n\n"
    "def answer(q):\n    return cursor.execute('select upper(?)', (q,)).fetchone()[0]\n",
}


@pytest.mark.parametrize("target", IN_THREADS)
def test_what_belongs_to_one_thread_names_the_key_that_keeps_calls_in_it(
    project: "Project", target: str, workers: int
) -> None:
    project.write("app.py", IN_THREADS[target])
    project.asking("s.eval.yaml", "app:answer", "one", "two")
    ran = project.run(workers=workers)
    assert ran.code == 1
    assert "plain functions are called in threads of their own: set `concurrency: 1` beside `python`" in ran.text
    project.asking("s.eval.yaml", {"python": "app:answer", "concurrency": 1}, "one", "two")
    if target != "an event loop":  # of which the main thread has none in newer versions of Python
        assert project.run().code == 0
