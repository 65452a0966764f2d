"""Suites beside other plugins of pytest: whatever reports or repeats an item, its last attempt counts."""

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

pytest.importorskip("pytest_retry")
pytest.importorskip("pytest_rerunfailures")

WAYS = pytest.mark.parametrize("workers", [0, 2])

CITY = """\
import pytest

import pytest_llmeval as ev

city = ev.suite(
    "city",
    cases=[{"id": "peru", "input": "Peru", "expected": "Lima"}],
    evaluators=[ev.text(metrics=["exact_match"])],
    gates=["exact_match >= 1"],
)
runs = []
"""

SUBTESTS = {
    "around the score": """
@city.test
def test_city(case, subtests):
    with subtests.test("scored"):
        case.score("Lima")
""",
    "before and after it": """
@city.test
def test_city(case, subtests):
    with subtests.test("before"):
        pass
    case.score("Lima")
    with subtests.test("after"):
        pass
""",
    "in an async test": """
@city.test
async def test_city(case, subtests):
    case.score("Lima")
    with subtests.test("after"):
        pass
""",
    "around the whole test": """
@pytest.fixture(autouse=True)
def checked(subtests):
    with subtests.test("whole"):
        yield

@city.test
def test_city(case):
    case.score("Lima")
""",
}


@WAYS
@pytest.mark.parametrize("test", SUBTESTS.values(), ids=SUBTESTS)
def test_subtests_leave_the_score_to_the_test(project: "Project", test: str, workers: int) -> None:
    project.write("test_city.py", CITY + test)
    ran = project.run(workers=workers)
    assert ran.code == 0, ran.text
    (suite,) = ran.suites.values()
    assert [(case["outcome"], case["metrics"]["exact_match"]) for case in suite["cases"]] == [("passed", 1)]


def test_a_failed_subtest_fails_its_case(project: "Project") -> None:
    project.write(
        "test_city.py",
        CITY
        + """
@city.test
def test_city(case, subtests):
    case.score("Lima")
    with subtests.test("long enough"):
        assert len("Lima") > 9
""",
    )
    ran = project.run()
    assert ran.code == 1
    (suite,) = ran.suites.values()
    assert [case["outcome"] for case in suite["cases"]] == ["failed"]


def test_a_fixture_of_a_suite_file_may_use_subtests(project: "Project", workers: int) -> None:
    project.write(
        "conftest.py", SUBTESTS["around the whole test"].partition("@city")[0].replace("@", "import pytest\n@", 1)
    )
    project.suite("s.eval.yaml", [{"id": "a", "expected": "x", "prediction": "x"}], gates=["f1 >= 1"])
    ran = project.run(workers=workers)
    assert (ran.code, ran.outcomes("s")) == (0, {"a": "passed"}), ran.text


AGAIN = '''
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    """Run an item a second time if it fails, and report the last attempt alone."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(each.failed for each in reports):
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for each in reports:
        item.ihook.pytest_runtest_logreport(report=each)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
'''

REPEATERS = {
    "rerunfailures": (["--reruns=1"], [], ""),
    "retry": (["-ppytest_retry.retry_plugin", "--retries=1"], ["rerunfailures"], ""),
    "a conftest": ([], ["rerunfailures"], AGAIN),
}
"""How an item is repeated: arguments, plugins to leave out, and a conftest."""

ATTEMPTS = {
    "right, then wrong": ("Lima", "Rome", "failed", 0),
    "wrong, then right": ("Rome", "Lima", "passed", 1),
    "right, then none": ("Lima", None, "errored", None),
}
"""The answers of both attempts, the outcome of the case, and its score."""


@pytest.mark.parametrize("repeater", REPEATERS)
@pytest.mark.parametrize("attempts", ATTEMPTS)
def test_of_an_item_that_is_repeated_the_last_attempt_counts(
    project: "Project", repeater: str, attempts: str, workers: int
) -> None:
    first, last, outcome, score = ATTEMPTS[attempts]
    arguments, without, conftest = REPEATERS[repeater]
    project.write("conftest.py", conftest)
    project.write(
        "test_city.py",
        CITY.replace("gates=", 'thresholds={"exact_match": 1}, gates=')
        + f"""
@city.test
def test_city(case):
    runs.append(1)
    answer = {first!r} if len(runs) == 1 else {last!r}
    if answer is None:
        raise ConnectionError("no answer")
    case.score(answer)
    assert len(runs) > 1
""",
    )
    ran = project.run(*arguments, workers=workers, without=without)
    (suite,) = ran.suites.values()
    (case,) = suite["cases"]
    assert (case["outcome"], case["metrics"].get("exact_match")) == (outcome, score), ran.text
    (gate,) = suite["gates"]
    assert gate["outcome"] == ("passed" if outcome == "passed" else "failed")
    assert ran.code == (0 if outcome == "passed" else 1)
    if outcome == "passed":
        assert "1 case failed and ran again, and only the last result counts" in gate["reason"]


def test_a_fixture_that_makes_calls_wait_for_each_other_is_named(project: "Project", workers: int) -> None:
    project.write("app.py", "def answer(word):\n    return word.upper()\n")
    project.write("conftest.py", "import pytest\n\n@pytest.fixture(autouse=True)\ndef guarded():\n    yield\n")
    project.asking("s.eval.yaml", "app:answer", "one", "two")
    ran = project.run(workers=workers)
    said = "s.eval.yaml: calls are made one after the other, due to the fixture 'guarded' of scope function"
    assert (ran.code, said in ran.text) == (0, True), ran.text
    project.write(
        "conftest.py", "import pytest\n\n@pytest.fixture(autouse=True, scope='session')\ndef guarded():\n    yield\n"
    )
    assert "one after the other" not in project.run(workers=workers).text


GUARDS = """
import pytest

def pytest_addoption(parser, pluginmanager):
    parser.getgroup("guards").addoption("--guarded", action="store_true", help="Guard all tests.")
    parser.addini("guarded_hosts", "Hosts.", type="args", default=["localhost"])

def pytest_configure(config):
    config.addinivalue_line("markers", "guarded(hosts): guard a test")

@pytest.fixture
def hosts():
    return []

@pytest.fixture(autouse=True)
def guard(request, hosts, monkeypatch):
    yield hosts
"""

TOGETHER = """
from threading import Barrier

both = Barrier(2)

def answer(word):
    both.wait(timeout=30)
    return word.upper()
"""

OWN = """
import pytest

@pytest.fixture
def llmeval_target(guard):
    return str.upper
"""

MARKED = """
import pytest

def pytest_collection_modifyitems(items):
    items[-1].add_marker(pytest.mark.guarded)
"""

CONCERNED = {
    "nothing": ("", (), {}, ""),
    "an option": ("", ("--guarded",), {}, "guard"),
    "a line of the configuration": ("[pytest]\nguarded_hosts = example.org\n", (), {}, "guard"),
    "a mark": ("", (), {"conftest.py": MARKED}, "guard"),
    "the target": ("", (), {"conftest.py": OWN}, "guard"),
    "a fixture of the project": (
        "",
        (),
        {"conftest.py": "import pytest\n\n@pytest.fixture(autouse=True)\ndef own(guard):\n    yield\n"},
        "guard",
    ),
}
"""What asks an installed plugin to act: configuration, arguments, files, and the fixture that is named."""


@pytest.mark.parametrize("asker", CONCERNED)
def test_calls_wait_for_a_fixture_of_an_installed_plugin_only_if_something_asks_it_to_act(
    project: "Project", monkeypatch: pytest.MonkeyPatch, asker: str, workers: int
) -> None:
    configuration, arguments, files, fixture = CONCERNED[asker]
    project.write("site/guards.py", GUARDS)
    project.write("site/guards-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: guards\nVersion: 1.0\n")
    project.write("site/guards-1.0.dist-info/entry_points.txt", "[pytest11]\nguards = guards\n")
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    for name, text in {"pytest.ini": configuration, **files}.items():
        project.write(name, text)
    project.write("app.py", TOGETHER if not (fixture or workers) else TOGETHER.replace("both.", "# "))
    project.asking("s.eval.yaml", "app:answer", "one", "two")
    ran = project.run(*arguments, workers=workers)
    named = re.findall("one after the other, due to the fixture '(.*)'", ran.text)
    assert (ran.code, named) == (0, [fixture] if fixture else []), ran.text


def test_calls_of_judges_wait_for_no_fixture(project: "Project", workers: int) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.fixture(autouse=True)
        def guarded():
            yield

        @pytest.fixture(scope="session")
        def judge_client():
            return lambda request: "yes"
        """,
    )
    project.write(
        "inner/conftest.py",
        """
        import pytest

        @pytest.fixture
        def judge_client(judge_client):
            return judge_client
        """,
    )
    cases = [{"id": name, "input": "q", "expected": "a", "prediction": name} for name in "ab"]
    project.suite("inner/s.eval.yaml", cases, evaluators=["judge"])
    ran = project.run(workers=workers)
    assert (ran.code, "one after the other" in ran.text) == (0, False), ran.text
