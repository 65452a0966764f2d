"""``llmeval doctor``: what it finds, that it changes nothing, and that keys are named and never shown."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from running import WITHOUT_UNUSED, run_python
from scripted_judges import KEY
from servers import LlmServer, reply, status

from pytest_llmeval.cli import main
from pytest_llmeval.judges._coordination import Coordination
from pytest_llmeval.workbench._doctor import PlannedRun

Doctor = Callable[..., tuple[int, str]]

ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("PYTEST_", "GITHUB_", "CI", "COVERAGE_")) and not key.endswith("_API_KEY")
}
ENVIRONMENT["PYTEST_ADDOPTS"] = " ".join(WITHOUT_UNUSED)  # plugins that nothing here needs take time to load
PLAIN: dict[str, Any] = {
    "suite": "s",
    "evaluators": [{"text": {"metrics": ["f1"]}}],
    "gates": ["f1 >= 0.5"],
    "cases": [{"id": "a", "input": "Capital of France?", "expected": "Paris", "prediction": "Paris"}],
}
JUDGED: dict[str, Any] = {
    **PLAIN,
    "evaluators": [{"judge": {"mode": "default_binary"}}],
    "gates": ["judge_score >= 0.5"],
    "judge": {"model": "openai:some-model"},
}


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs the command; returns its exit code and what it prints. It must leave no trace.

    Where the plan of the run is not what is tested, `plan` is none; else pytest starts, cold or from a warm process.
    """
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        plan: str = "none",
        before: Sequence[str] = (),
        quiet: bool = False,
    ) -> tuple[int, str]:
        files = traces(tmp_path)
        with monkeypatch.context() as patch:
            if plan == "none":
                patch.setattr("pytest_llmeval.workbench._doctor.plan_run", lambda _: PlannedRun(works=True))
            elif plan == "warm":
                patch.setattr("pytest_llmeval.workbench._project.subprocess", WarmProcesses)
            for name in {*os.environ} - {*ENVIRONMENT}:
                patch.delenv(name)
            for name, value in {**ENVIRONMENT, **(environment or {})}.items():
                patch.setenv(name, value)
            code = main([*before, "doctor", *([] if quiet else ["-v"]), *arguments])
        assert traces(tmp_path) == files
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out

    return run


class WarmProcesses:
    """The part of `subprocess` that plans a run, without a cold start."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def run(command: Sequence[str], *, env: Mapping[str, str], **_: Any) -> Any:
        environment = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
        assert env["PYTHONDONTWRITEBYTECODE"]
        code = f"import runpy, sys; sys.dont_write_bytecode = True; sys.argv = {['pytest', *command[3:]]!r}; "
        done = run_python(["-c", f"{code}runpy.run_module('pytest', run_name='__main__')"], environment, Path.cwd())
        return subprocess.CompletedProcess(command, done.code, done.out, done.err)


def traces(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def write(folder: Path, suite: Mapping[str, Any], name: str = "s.eval.json") -> None:
    (folder / name).write_text(json.dumps(suite), encoding="utf-8")


def test_a_sound_project_is_well_and_the_cost_of_a_run_is_named(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    code, text = doctor(plan="cold")
    assert code == 0, text
    assert "ok        s.eval.json: 1 case\n" in text
    assert "ok        .llmeval/cache.sqlite3: no verdicts yet\n" in text
    assert "ok        a run would take: judge: 0 calls, 0 stored\n" in text
    assert text.endswith("\nall is well\n")
    assert {line.split("  ")[0] for line in text.splitlines()[:-2]} == {"ok"}
    assert doctor(quiet=True) == (0, "all is well\n")


def test_outside_a_project_the_installation_is_looked_at(doctor: Doctor) -> None:
    code, text = doctor()
    assert code == 0
    assert text.startswith("ok        pytest-llmeval-suite ")
    assert "warning   . has no suite\n          fix: llmeval init\n" in text
    assert text.endswith("\n0 failing, 1 warning\n")


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_of_suites_in_python_lacks_none(doctor: Doctor, tmp_path: Path, named: bool) -> None:
    (tmp_path / "test_support.py").write_text(f"import {'pytest_llmeval as ev' if named else 'os'}\n", encoding="utf-8")
    _, text = doctor()
    assert ("ok        . has suites in Python, which pytest checks: pytest --llmeval\n" in text) == named
    assert ("has no suite" in text) != named


def test_a_faulty_suite_fails_with_its_place(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, PLAIN | {"gates": ["f2 >= 0.5"]})
    code, text = doctor("s.eval.json")
    assert code == 1
    assert "failing   s.eval.json:1:" in text
    assert "          fix: llmeval validate s.eval.json\n" in text
    assert "a run would take" not in text


def test_a_path_that_does_not_exist_fails(doctor: Doctor) -> None:
    code, text = doctor("gone.eval.yaml")
    assert code == 1
    assert "failing   gone.eval.yaml: it does not exist\n" in text
    findings = json.loads(doctor("gone.eval.yaml", before=["--json"])[1])["result"]["findings"]
    assert ("failing", "gone.eval.yaml: it does not exist") in [(each["state"], each["text"]) for each in findings]


@pytest.mark.parametrize("key", ["  ", KEY])
def test_keys_are_named_and_never_shown(doctor: Doctor, tmp_path: Path, key: str) -> None:
    write(tmp_path, JUDGED)
    code, text = doctor(environment={"OPENAI_API_KEY": key})
    assert KEY not in text
    if key.strip():
        assert code == 0, text
        assert "ok        judge openai:some-model: OPENAI_API_KEY is set\n" in text
        assert "not tried judge openai:some-model: whether it answers; --ask makes one short call\n" in text
    else:
        assert code == 1
        assert "failing   judge openai:some-model: OPENAI_API_KEY is not set\n" in text
        assert "          fix: export OPENAI_API_KEY=...\n" in text


def test_a_model_is_asked_once_and_only_on_request(doctor: Doctor, tmp_path: Path) -> None:
    with LlmServer(reply("ok")) as server:
        write(tmp_path, JUDGED | {"judge": {"model": "openai:m", "base_url": server.base_url}})
        write(tmp_path, JUDGED | {"judge": {"model": "openai:m", "base_url": server.base_url}}, "t.eval.json")
        code, text = doctor()
        assert (code, len(server.calls)) == (0, 0)
        code, text = doctor("--ask")
        assert (code, len(server.calls)) == (0, 1), text
        assert f"ok        judge openai:m at {server.base_url}: needs no key\n" in text
        assert f"ok        judge openai:m at {server.base_url} answered in " in text


def test_a_model_that_refuses_the_key_fails_without_showing_it(doctor: Doctor, tmp_path: Path) -> None:
    with LlmServer(status(401)) as server:
        judge = {"model": "openai:m", "base_url": server.base_url, "api_key_env": "MY_KEY"}
        write(tmp_path, JUDGED | {"judge": judge})
        code, text = doctor("--ask", environment={"MY_KEY": KEY})
        assert (code, len(server.calls)) == (1, 1)
    assert "does not answer: " in text
    assert "401" in text
    assert KEY not in text


def test_a_judge_of_a_fixture_needs_the_fixture(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, JUDGED | {"judge": {"model": "fixture:words"}})
    code, text = doctor()
    assert code == 1
    assert "failing   judge fixture:words: no conftest.py above the suite defines the fixture judge_client\n" in text
    fixture = "import pytest\n@pytest.fixture\ndef judge_client():\n    return lambda request: 'yes'\n"
    (tmp_path / "conftest.py").write_text(fixture, encoding="utf-8")
    assert doctor()[0] == 0


def test_a_missing_key_is_a_warning_where_all_verdicts_are_stored(doctor: Doctor, tmp_path: Path) -> None:
    with LlmServer(reply("yes")) as server:
        judge = {"model": "openai:m", "base_url": server.base_url, "api_key_env": "MY_KEY"}
        write(tmp_path, JUDGED | {"judge": judge})
        command = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "--llmeval-judge=record", "-p", "no:cacheprovider"]
        done = run_python(command, {**ENVIRONMENT, "MY_KEY": KEY}, tmp_path)
        assert done.code == 0, done.out
    code, text = doctor(plan="warm")
    assert code == 0, text
    assert ": MY_KEY is not set; all verdicts that a run needs are stored\n" in text
    assert "ok        __llmeval__/s.judgements.jsonl: 1 recorded verdict\n" in text
    recordings = tmp_path / "__llmeval__" / "s.judgements.jsonl"
    recordings.write_text("{\n", encoding="utf-8")
    code, text = doctor()
    assert code == 1
    assert "failing   __llmeval__/s.judgements.jsonl:1" in text


def test_a_cache_is_read_without_being_written(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    path = tmp_path / ".llmeval" / "cache.sqlite3"
    path.parent.mkdir()
    with Coordination(tmp_path / "other.sqlite3") as shared:  # as a killed process leaves it, with its log
        shared.put_answer("run", "key", "answer")
        shutil.copy(tmp_path / "other.sqlite3", path)
        shutil.copy(tmp_path / "other.sqlite3-wal", f"{path}-wal")
    code, text = doctor()
    assert code == 0, text
    assert "ok        .llmeval/cache.sqlite3: 0 stored verdicts\n" in text
    path.write_bytes(b"junk")
    code, text = doctor()
    assert code == 1
    assert "failing   .llmeval/cache.sqlite3 cannot be read: .llmeval/cache.sqlite3 is not a judge cache" in text
    assert "          fix: rm .llmeval/cache.sqlite3\n" in text


def test_what_keeps_pytest_from_starting_is_named(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    (tmp_path / "conftest.py").write_text("import nothing_here\n", encoding="utf-8")
    code, text = doctor(plan="warm")
    assert code == 1
    assert "failing   pytest cannot plan a run: ModuleNotFoundError: No module named 'nothing_here'\n" in text
    assert "          fix: pytest --llmeval --llmeval-plan s.eval.json\n" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pytest-llmeval", "the distribution pytest-llmeval 1.0 is also installed"),
        ("pytest-snapshot", "the plugin pytest-snapshot 1.0: it defines --snapshot-update"),
    ],
)
def test_distributions_that_interfere_are_named_with_the_way_out(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    info = tmp_path / "site" / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    code, text = doctor()
    assert code == 1
    assert f"failing   {said}" in text
    assert f"fix: pip uninstall -y {name}" in text


def test_a_dependency_that_is_too_old_fails_with_the_command_that_mends_it(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "jmespath-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jmespath\nVersion: 0.1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    code, text = doctor()
    assert code == 1
    assert "failing   jmespath>=1.0.1 is needed, found 0.1\n" in text
    assert "          fix: pip install --upgrade 'jmespath>=1.0.1'\n" in text


def test_without_autoloading_pytest_does_not_know_the_plugin(doctor: Doctor, tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    code, text = doctor(environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, plan="warm")
    assert code == 1
    assert "failing   PYTEST_DISABLE_PLUGIN_AUTOLOAD is set: pytest does not load this plugin\n" in text
    assert "unrecognized arguments: --llmeval" in text


def test_an_address_of_a_target_that_refuses_connections_is_failing(doctor: Doctor, tmp_path: Path) -> None:
    with LlmServer(reply("Paris")) as server:
        address = server.base_url
        case = {"id": "a", "input": "Capital of France?", "expected": "Paris"}
        http = {"url": f"{address}/answer", "url_from_env": "ANSWER_URL", "request": {"question": {"$input": True}}}
        write(tmp_path, {**PLAIN, "cases": [case], "target": {"http": http}})
        code, text = doctor()
        assert (code, "refuses connections" in text) == (0, False), text
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # bound, not listening
            port = closed.getsockname()[1]
            code, text = doctor(environment={"ANSWER_URL": f"http://127.0.0.1:{port}/answer"})
        assert server.calls == []
    assert code != 0
    assert f"failing   target of s.eval.json: 127.0.0.1:{port} refuses connections" in text


def test_targets_that_cannot_be_loaded_or_started_are_failing(doctor: Doctor, tmp_path: Path) -> None:
    case = {"id": "a", "input": "Capital of France?", "expected": "Paris"}
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'Paris'\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text("import sys\nsys.path.append('lib')\n", encoding="utf-8")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "far.py").write_text("def answer(question):\n    return 'Paris'\n", encoding="utf-8")
    targets = {
        "right": "bot:answer",
        "by_conftest": "far:answer",
        "misspelt": "bot:answr",
        "gone": "bots:answer",
        "world": {"python": "bot:answer", "world": "bot:town"},
        "program": {"command": ["no-such-program"]},
        "python": {"command": ["python3", "bot.py"]},
    }
    for name, target in targets.items():
        write(tmp_path, {**PLAIN, "suite": name, "cases": [case], "target": target}, f"{name}.eval.json")
    recorded = {**PLAIN, "suite": "recorded", "target": "bots:answer"}
    write(tmp_path, recorded, "recorded.eval.json")  # its prediction needs no target
    systems = {"one": {"python": "bot:answer"}, "two": {"python": "bot:answers"}}
    write(tmp_path, {**PLAIN, "suite": "systems", "cases": [case], "systems": systems}, "systems.eval.json")
    code, text = doctor(plan="warm")
    assert code == 1
    missing = (
        "ModuleNotFoundError: No module named 'bots' (did you mean 'bot'?); searched ., lib: add bots.py there, or its "
        "folder to 'pythonpath' in pytest's settings"
    )
    failing = [line.removeprefix("failing   ") for line in text.splitlines() if line.startswith("failing")]
    assert failing == [
        f"gone.eval.json: target 'bots:answer': module 'bots' cannot be imported: {missing}",
        "misspelt.eval.json: target 'bot:answr': module 'bot' has no callable 'answr' (did you mean 'answer'?)",
        "systems.eval.json: target 'bot:answers': module 'bot' has no callable 'answers' (did you mean 'answer'?)",
        "world.eval.json: world 'bot:town': module 'bot' has no callable 'town'",
        "target of program.eval.json: 'no-such-program' is missing",
    ]


def test_addresses_of_judges_and_systems_that_refuse_connections_are_failing(doctor: Doctor, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        write(tmp_path, JUDGED | {"judge": {"model": "openai:m", "base_url": f"http://{address}/v1"}})
        http = {"http": {"url": f"http://{address}/answer", "request": {"question": {"$input": True}}}}
        case = {"id": "a", "input": "Capital of France?", "expected": "Paris"}
        unknown = {"http": {**http["http"], "url": "http://no-such-host.invalid/answer"}}
        systems = {"app": http, "other": unknown}
        write(tmp_path, {**PLAIN, "suite": "t", "cases": [case], "systems": systems}, "t.eval.json")
        code, text = doctor(environment={name: "" for name in os.environ if name.lower().endswith("_proxy")})
    assert code == 1
    assert f"failing   judge openai:m at http://{address}/v1: {address} refuses connections\n" in text
    assert f"failing   target of t.eval.json[app]: {address} refuses connections\n" in text
    assert "failing   target of t.eval.json[other]: the host no-such-host.invalid is unknown\n" in text


def test_workflows_without_key_and_verdicts_that_are_not_committed_are_warned_of(
    doctor: Doctor, tmp_path: Path
) -> None:
    write(tmp_path, JUDGED)
    workflow = tmp_path / ".github" / "workflows" / "evals.yml"
    workflow.parent.mkdir(parents=True)
    recordings = "__llmeval__/s.judgements.jsonl"
    key = {"OPENAI_API_KEY": KEY}
    workflow.write_text("run: pytest --llmeval", encoding="utf-8")
    place = ".github/workflows/evals.yml"
    assert (
        f"warning   {place}: the run gets neither OPENAI_API_KEY nor recorded verdicts\n" in doctor(environment=key)[1]
    )
    workflow.write_text("run: pytest --llmeval\nenv: {OPENAI_API_KEY: x}", encoding="utf-8")
    assert f"ok        {place} names OPENAI_API_KEY, the key of a judge\n" in doctor(environment=key)[1]
    workflow.write_text("run: pytest --llmeval --llmeval-judge=replay", encoding="utf-8")
    text = doctor(environment=key)[1]
    assert f"warning   {place} replays verdicts, and {recordings} does not exist\n" in text
    assert ": pytest --llmeval s.eval.json --llmeval-judge=record\n" in text
    (tmp_path / recordings).parent.mkdir()
    (tmp_path / recordings).touch()
    assert f"ok        {place} replays the verdicts of {recordings}\n" in doctor(environment=key)[1]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert f"{recordings} has changes that are not committed\n" in doctor(environment=key)[1]
