"""The command ``llmeval doctor``."""

import asyncio
import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pytest_llmeval._version import __version__
from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import (
    MISSING,
    JudgeError,
    LlmevalError,
    PredictionError,
    SuiteError,
    counted,
    listed,
    seconds,
)
from pytest_llmeval.data import OwnFiles, display_path
from pytest_llmeval.judges import (
    CachePlace,
    JudgeConnection,
    JudgedEvaluator,
    Judgements,
    JudgeRequest,
    JudgeSpec,
    Message,
)
from pytest_llmeval.plugin import CollectedSession
from pytest_llmeval.services import ServiceAddress
from pytest_llmeval.suites import LoadedSuite, load_suite
from pytest_llmeval.targets import PythonTarget
from pytest_llmeval.workbench._console import named_files, notes, suite_files
from pytest_llmeval.workbench._project import SOURCE, Project, run_pytest


class Finding(NamedTuple):
    """One line of ``llmeval doctor``.

    Attributes:
        state: Of what was looked at; ``not tried`` for what was left alone.
        text: What was found.
        fix: Commands, or what else to do.
    """

    state: Literal["ok", "warning", "failing", "not tried"]
    text: str
    fix: Sequence[str] = ()


class PlannedRun(NamedTuple):
    """The result of ``llmeval doctor`` planning a run with pytest.

    Attributes:
        works: Whether there is a plan.
        cost: Lines on calls, money and time.
        judge_calls: Path of a suite to calls of its judges, at least; ``None`` if there is no plan.
        target_faults: Why targets in Python cannot be loaded.
        error: Why there is none.
        command: The command by which to see everything.
    """

    works: bool
    cost: Sequence[str] = ()
    judge_calls: Mapping[str, int] | None = None
    target_faults: Sequence[str] = ()
    error: str = ""
    command: str = ""


_OURS: Final = "pytest-llmeval-suite"
_FOREIGN: Final = "pytest-llmeval"

_INTERFERING: Final = {
    "pytest-snapshot": "it defines --snapshot-update, as syrupy does, so pytest does not start",
    "snapshottest": "it defines --snapshot-update, as syrupy does, so pytest does not start",
}
"""Distributions with which pytest does not start."""

_CONNECT_SECONDS: Final = 3.0
_RERUNS: Final = "pytest-rerunfailures"


def environment_findings() -> Iterator[Finding]:
    """Yield whether Python, this package and its dependencies have the versions that they need."""
    yield Finding("ok", f"{_OURS} {__version__}, Python {platform.python_version()}")
    foreign = _version(_FOREIGN)
    if foreign is not None:
        text = f"the distribution {_FOREIGN} {foreign} is also installed; both provide the package pytest_llmeval"
        fix = f"pip uninstall -y {_FOREIGN} && pip install --force-reinstall --no-deps {SOURCE}"
        yield Finding("failing", text, [fix])
    yield from _dependencies()


def _version(name: str) -> str | None:
    """The version of an installed distribution; ``None`` if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _dependencies() -> Iterator[Finding]:
    """Yield the dependencies that are missing or older than their floors; those of extras only where installed."""
    from packaging.requirements import Requirement

    try:
        listed = metadata.requires(_OURS) or []
    except metadata.PackageNotFoundError:
        fix = f"pip install {SOURCE}"
        yield Finding(
            "warning", f"{_OURS} is not installed, only importable: pytest does not load it as a plugin", [fix]
        )
        return
    good = 0
    for dependency in map(Requirement, listed):
        needed = dependency.marker is None or dependency.marker.evaluate({"extra": ""})
        version = _version(dependency.name)
        if version is not None and dependency.specifier.contains(version, prereleases=True):
            good += needed
        elif version is not None or needed:
            requirement = f"{dependency.name}{dependency.specifier}"
            text = f"{requirement} is needed, found {version or 'none'}"
            upgrade = [f"pip install --upgrade '{requirement}'"]
            yield Finding("failing", text, upgrade) if needed else Finding("warning", f"{text}, for an extra", upgrade)
    yield Finding("ok", f"dependencies: {good} have at least their lowest versions")


def plugin_findings() -> Iterator[Finding]:
    """Yield plugins and settings of pytest that keep suites from running, or change what they mean."""
    for name, why in _INTERFERING.items():
        if (version := _version(name)) is not None:
            yield Finding("failing", f"the plugin {name} {version}: {why}", [f"pip uninstall -y {name}"])
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        fix = "unset PYTEST_DISABLE_PLUGIN_AUTOLOAD, or add -p pytest_llmeval_suite"
        yield Finding("failing", "PYTEST_DISABLE_PLUGIN_AUTOLOAD is set: pytest does not load this plugin", [fix])
    if _version(_RERUNS) is not None and "--reruns" in os.environ.get("PYTEST_ADDOPTS", ""):
        text = (
            f"{_RERUNS} by PYTEST_ADDOPTS: cases that failed are answered again, so scores are those of lucky answers"
        )
        yield Finding("warning", text, ["use 'repeats' of the suite"])
    others = sorted({point.dist.name for point in metadata.entry_points(group="pytest11") if point.dist is not None})
    others = [name for name in others if name not in (*_INTERFERING, _OURS)]
    yield Finding("ok", f"plugins of pytest: {', '.join(others) or 'no others'}")


_TIMEOUT_S = 30.0
_QUESTION = "Reply with the word ok."


class _Model(NamedTuple):
    """A model that a suite names, for the findings of ``llmeval doctor``.

    Attributes:
        role: What the suite uses it for.
        file: The suite.
        spec: Model, address and key.
        is_asked: Whether a run would call it; ``None`` if there is no plan.
        evaluator: That asks it itself, in place of the judge.
    """

    role: str
    file: Path
    spec: JudgeSpec
    is_asked: bool | None
    evaluator: JudgedEvaluator | None = None

    @property
    def name(self) -> str:
        where = f" at {self.spec.base_url}" if self.spec.base_url is not None else ""
        return f"{self.role} {self.spec.model}{where}"


def model_findings(suites: Sequence[LoadedSuite], plan: PlannedRun, *, ask: bool) -> Iterator[Finding]:
    """Yield whether the models of suites can be called; keys by their names, each model once."""
    seen: set[tuple[str | None, ...]] = set()
    for suite in suites:
        yield from _target_findings(suite)
        for model in _models(suite, plan):
            spec = model.spec
            place = spec.model, spec.address, spec.api_key_env
            if place not in seen:
                seen.add(place)
                yield from _model(model, ask=ask)
        if suite.judge.jurors[0].model is None and suite.asks_judge:
            text = f"{suite.path.name}: its evaluators ask a judge, and it names none"
            fix = "add judge: {model: 'openai:MODEL'} to the suite, or run with --llmeval-judge-model=openai:MODEL"
            yield Finding("warning", text, [fix])


def _models(suite: LoadedSuite, plan: PlannedRun) -> Iterator[_Model]:
    """Yield the models that a suite names: its judges, embeddings and systems, each with its role."""
    is_asked = None
    if plan.judge_calls is not None:
        parts = suite.path.parts
        named = {path: Path(path).parts for path in plan.judge_calls}
        is_asked = any(calls and parts[-len(named[path]) :] == named[path] for path, calls in plan.judge_calls.items())
    for spec in suite.judge.jurors:
        if spec.model is not None:
            yield _Model("judge", suite.path, spec, is_asked)
    for evaluator in suite.asking.values():
        if evaluator.own_model is not None:
            yield _Model("embeddings", suite.path, evaluator.own_model, is_asked, evaluator)
    for system in suite.systems.values():
        if system.model is not None:
            yield _Model("model", suite.path, system.model.spec, None)


def _target_findings(suite: LoadedSuite) -> Iterator[Finding]:
    """Yield why targets over HTTP and commands of a suite are unreachable; no request is sent, no program started."""
    targets = {f"[{name}]": system.target for name, system in suite.systems.items()} or {"": suite.target}
    for variant, target in targets.items():
        subject = f"target of {suite.path.name}{variant}"
        if target is not None and target.http is not None:
            http = target.http
            for variable in sorted({*http.headers_from_env.values()}):
                if not os.environ.get(variable, "").strip():
                    yield Finding("failing", f"{subject}: {variable} is not set", [f"export {variable}=..."])
            url = os.environ.get(http.url_from_env or "", "").strip() or http.url
            if fault := _unreachable(url):
                yield Finding("failing", f"{subject}: {fault}", ["start the target, or fix its address in the suite"])
        elif target is not None and target.command:
            program = target.command[0]
            if shutil.which(program) is None and shutil.which(str(suite.path.parent / program)) is None:
                yield Finding("failing", f"{subject}: {program!r} is missing", ["install it, or fix its name"])


def _unreachable(url: str) -> str | None:
    """The reason why a target's address accepts no connection; ``None`` if it does, or if a proxy connects."""
    try:
        parts = urlsplit(url)
        if parts.hostname is None or ServiceAddress(url).proxy is not None:
            return None
        port = parts.port or {"https": 443}.get(parts.scheme, 80)
        socket.create_connection((parts.hostname, port), timeout=_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return f"{parts.hostname}:{port} refuses connections"
    except socket.gaierror:
        return f"the host {parts.hostname} is unknown"
    except TimeoutError:
        return f"{parts.hostname}:{port} accepts no connection within {_CONNECT_SECONDS:g} s"
    except (OSError, ValueError):
        return None
    return None


_TARGET_FAULT: Final = "target cannot be loaded: "


def pytest_collection_finish(session: Any) -> None:
    """Load the targets in Python that a run would call; a hook of the pytest that plans the run.

    Only there do conftests and settings have shown Python where modules are.
    """
    faults: dict[str, None] = {}
    for loaded, is_fixture in CollectedSession(session).planned_cases():
        suite, target = loaded.suite, loaded.suite.target
        if is_fixture or target is None or loaded.case.prediction is not MISSING:
            continue
        for name, role in ((target.python, "target"), (target.world, "world")):
            try:
                _ = name and PythonTarget.load(name, suite.path.parent, role)
            except PredictionError as error:
                faults[f"{_TARGET_FAULT}{loaded.key.display_path}: {' '.join(str(error).split())}"] = None
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    for line in faults:
        reporter.write_line(line)


def _model(model: _Model, *, ask: bool) -> Iterator[Finding]:
    """Yield the findings of ``llmeval doctor`` about a model: its key, and with ``--ask`` one short call."""
    if model.spec.provider == "fixture":
        yield _fixture(model)
        return
    variable, stored = JudgeConnection(model.spec).key_variable, model.is_asked is False
    has_key = variable is None or bool(os.environ.get(variable, "").strip())
    if not has_key:
        text = f"{model.name}: {variable} is not set"
        more = "; all verdicts that a run needs are stored" if stored else ""
        yield Finding("warning" if stored else "failing", text + more, [f"export {variable}=..."])
        return
    key = (
        f"{variable} is set"
        if variable is not None
        else "needs no key"
        if model.spec.base_url
        else "its library finds the key"
    )
    if model.spec.base_url is not None and (fault := _unreachable(model.spec.base_url)):
        fix = ["start the service, or fix base_url in the suite"]
        yield Finding("warning" if stored else "failing", f"{model.name}: {fault}", fix)
        return
    yield Finding("ok", f"{model.name}: {key}")
    if ask:
        yield _answer(model)
    else:
        yield Finding("not tried", f"{model.name}: whether it answers; --ask makes one short call")


def _fixture(model: _Model) -> Finding:
    """The finding about a judge from a pytest fixture: whether a conftest above the suite defines it."""
    for folder in model.file.resolve().parents:
        conftest = folder / "conftest.py"
        if conftest.is_file() and "judge_client" in conftest.read_text(encoding="utf-8", errors="replace"):
            return Finding("ok", f"{model.name}: {conftest.name} in {folder.name} defines judge_client")
    text = f"{model.name}: no conftest.py above the suite defines the fixture judge_client"
    return Finding("failing", text, ["define it, or name a model: judge: {model: 'openai:MODEL'}"])


def _answer(model: _Model) -> Finding:
    """The finding about a model after one short call."""
    spec = replace(model.spec, retries=0, timeout=min(model.spec.timeout, _TIMEOUT_S))
    messages = (Message("user", _QUESTION),)

    async def call() -> None:
        client = JudgeConnection(spec).open(own=model.evaluator)
        try:
            await client.complete(JudgeRequest(messages, spec.name, spec.request_parameters()))
        finally:
            await client.aclose()

    begin = time.perf_counter()
    try:
        asyncio.run(call())
    except JudgeError as error:
        return Finding("failing", f"{model.name} does not answer: {error}", ["check model, base_url and key"])
    return Finding("ok", f"{model.name} answered in {seconds(time.perf_counter() - begin)}")


_PLAN_TIMEOUT_S = 300
_COSTS = ("judge: ", "target: ", "time: ", "budget: ")
_EXITS = {0, 1, 5}
"""Exit codes with which a plan was made: nothing wrong, a budget exceeded, no case selected."""


def plan_run(files: Sequence[Path]) -> PlannedRun:
    """Plan the run of some suites with pytest, for ``llmeval doctor``."""
    command = shlex.join(["pytest", "--llmeval", "--llmeval-plan", *map(str, files)])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "plan.json")
        arguments = ["--llmeval", "--llmeval-plan", f"--llmeval-report={report}", *map(str, files)]
        try:
            done = run_pytest(["-p", __name__, *arguments], {**os.environ, "COLUMNS": "120"}, _PLAN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return PlannedRun(works=False, error=f"it took longer than {_PLAN_TIMEOUT_S} s", command=command)
        data = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    lines = [line.strip() for line in done.stdout.splitlines()]
    calls = None if data is None else _judge_calls(data)
    if done.returncode not in _EXITS or data is None:
        return PlannedRun(works=False, judge_calls=calls, error=_error(done.stdout, done.stderr), command=command)
    cost = [line for line in lines if line.startswith(_COSTS)]
    faults = [line.removeprefix(_TARGET_FAULT) for line in lines if line.startswith(_TARGET_FAULT)]
    return PlannedRun(works=True, cost=cost, judge_calls=calls, target_faults=faults, command=command)


def _judge_calls(data: Mapping[str, Any]) -> dict[str, int]:
    """The judge calls in a run plan's JSON by suite path; calls that may follow count as one."""
    calls: dict[str, int] = {}
    for suite in data["plan"]:
        judge = suite["judge"]
        calls[suite["path"]] = calls.get(suite["path"], 0) + judge["calls"] + judge["likely"] + (judge["more"] != 0)
    return calls


def _error(out: str, err: str) -> str:
    """The line of pytest's output that best explains why it stopped."""
    lines = [line.strip() for line in (*err.splitlines(), *out.splitlines()) if line.strip()]
    lines = [line for line in lines if not line.startswith("ERROR: usage:")]
    errors = [line for line in lines if line.startswith(("ERROR:", "E ")) or "Error: " in line or ": error: " in line]
    return next(iter(errors), lines[-1] if lines else "it printed nothing").removeprefix("E ").lstrip()


def stored_findings(suites: Sequence[Path]) -> Iterator[Finding]:
    """Yield whether the cache and the recordings of suites can be read."""
    yield _cache(CachePlace().path)
    for suite in suites:
        recordings = OwnFiles(suite).path("judgements.jsonl")
        if recordings.exists():
            yield _recordings(recordings)


def _cache(path: Path) -> Finding:
    """The finding of ``llmeval doctor`` about the verdict cache: whether it can be read and written."""
    if not path.exists():
        folder = path.parent if path.parent.exists() else Path()
        if os.access(folder, os.W_OK):
            return Finding("ok", f"{path}: no verdicts yet")
        text = f"{folder.resolve()} is not writable: verdicts cannot be kept"
        return Finding("warning", text, ["run with --llmeval-cache=PATH"])
    # SQLite may write even to look: a copy is looked at.
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, path.name)
        try:
            for suffix in ("", "-wal"):
                if (each := path.with_name(path.name + suffix)).exists():
                    shutil.copyfile(each, copy.with_name(copy.name + suffix))
            with closing(CachePlace(copy).open()) as cache:
                faults, good = cache.verify(), sum(1 for _ in cache.entries())
        except (LlmevalError, OSError) as error:
            text = str(error).replace(str(copy), str(path)).split("\n")[0]
            return Finding("failing", f"{path} cannot be read: {text}", [f"rm {path}"])
    if faults:
        text = f"{path}: {counted(len(faults), 'damaged verdict')}, which will be asked for again"
        return Finding("warning", text, ["llmeval cache verify"])
    return Finding("ok", f"{path}: {counted(good, 'stored verdict')}")


def _recordings(path: Path) -> Finding:
    """The finding of ``llmeval doctor`` about a file of recorded verdicts: whether it can be read."""
    try:
        judgements = Judgements.read(path)
    except SuiteError as error:
        return Finding("failing", str(error.faults[0]), [f"git checkout -- {path}, or delete the line"])
    return Finding("ok", f"{path}: {counted(len(judgements.entries), 'recorded verdict')}")


_WORKFLOWS = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", "*.gitlab-ci.yml")
_REPLAYS = "--llmeval-judge=replay"


def ci_findings(suites: Sequence[LoadedSuite]) -> Iterator[Finding]:
    """Yield whether the workflows of the project that run suites have what their judges need: a key, or recordings."""
    files = dict.fromkeys(file for pattern in _WORKFLOWS for file in sorted(Path().glob(pattern)))
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        if "--llmeval" not in text:
            continue
        judged = [suite for suite in suites if suite.asks_judge]
        if _REPLAYS in text:
            yield from (_replayed(file, suite) for suite in judged)
            continue
        judges = (spec for suite in judged for spec in suite.judge.jurors if spec.provider not in (None, "fixture"))
        for variable in filter(None, dict.fromkeys(JudgeConnection(spec).key_variable for spec in judges)):
            if variable in text:
                yield Finding("ok", f"{file} names {variable}, the key of a judge")
            elif "gitlab" not in file.name:  # where each job gets all variables of the project
                fix = f"pass it from the secrets, or add {_REPLAYS}: see the page Judges in CI"
                yield Finding("warning", f"{file}: the run gets neither {variable} nor recorded verdicts", [fix])


def _replayed(workflow: Path, suite: LoadedSuite) -> Finding:
    """The finding of ``llmeval doctor`` about a workflow that replays verdicts: whether they are committed."""
    path = display_path(suite.path, Path.cwd())
    recordings = display_path(OwnFiles(suite.path).path("judgements.jsonl"), Path.cwd())
    if not Path(recordings).exists():
        record = f"pytest --llmeval {shlex.quote(path)} {_REPLAYS.replace('replay', 'record')}"
        return Finding("warning", f"{workflow} replays verdicts, and {recordings} does not exist", [record])
    if Project(Path()).is_uncommitted(recordings):
        text = f"{workflow} replays verdicts, and {recordings} has changes that are not committed"
        return Finding("warning", text, [f"git add {shlex.quote(recordings)} && git commit"])
    return Finding("ok", f"{workflow} replays the verdicts of {recordings}")


_MOST_LISTED = 3


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval doctor``."""
    parser.description = (
        "Say what would keep a run from working: versions, plugins, suites, targets, keys (their names only), stored "
        "verdicts; with -v, also what is well, and what a run would cost. Nothing is written, and no model is called, "
        "except with --ask. pytest collects the suites to plan the run, which imports conftest.py files and the "
        "modules of Python targets. The exit code is 1 if anything fails."
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="suites or folders")
    parser.add_argument("--ask", action="store_true", help="make one short call of each model")
    parser.add_argument("-v", "--verbose", action="store_true", help="also list what is well")
    parser.set_defaults(run=_doctor)


def _doctor(options: Namespace) -> CommandResult:
    """Run ``llmeval doctor``: print findings about the environment, suites and models, with their fixes."""
    findings: list[Finding] = []
    for finding in _findings(options.paths, ask=options.ask):
        if finding.state != "ok" or options.verbose:
            say([f"{finding.state:<9} {finding.text}", *(f"          fix: {step}" for step in finding.fix)])
        findings.append(finding)
    failing, warnings = (sum(finding.state == state for finding in findings) for state in ("failing", "warning"))
    summary = f"{failing} failing, {counted(warnings, 'warning')}" if failing or warnings else "all is well"
    listed = options.verbose or any(finding.state != "ok" for finding in findings)
    lines = ["", summary] if listed else [summary]
    return CommandResult(1 if failing else 0, {"findings": [finding._asdict() for finding in findings]}, lines)


def _declares_suites(file: Path) -> bool:
    """Whether a test file names this package; what its suites are is known only once it is imported."""
    return "pytest_llmeval" in file.read_text(encoding="utf-8", errors="replace")


def _findings(paths: Sequence[Path], *, ask: bool) -> Iterator[Finding]:
    """Yield the findings of ``llmeval doctor`` about environment, plugins, suites, models, stores and CI."""
    yield from environment_findings()
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            yield Finding("failing", f"{path}: it does not exist", ["name a suite file or a folder with suites"])
        files += suite_files(path) if path.is_dir() else [path] if path.is_file() else []
    files = list(dict.fromkeys(files))
    if not files:
        where = " or ".join(map(str, paths))
        yield from plugin_findings()
        if any(_declares_suites(file) for path in paths for file in named_files(path, ("test_*.py", "*_test.py"))):
            yield Finding("ok", f"{where} has suites in Python, which pytest checks: pytest --llmeval")
        else:
            yield Finding("warning", f"{where} has no suite", ["llmeval init"])
        yield from stored_findings([])
        return
    plan = plan_run(files)
    yield from plugin_findings()
    suites: list[LoadedSuite] = []
    loaded = [_suite(file, suites, plan) for file in files]
    yield from loaded
    sound = all(finding.state == "ok" for finding in loaded)
    if sound and not plan.works:
        yield Finding("failing", f"pytest cannot plan a run: {plan.error}", [plan.command])
    for fault in plan.target_faults:
        yield Finding("failing", fault, ["fix the name in the suite, or what keeps its module from being imported"])
    yield from model_findings(suites, plan, ask=ask)
    yield from stored_findings(files)
    yield from ci_findings(suites)
    if sound:
        yield from (Finding("ok", f"a run would take: {line}") for line in plan.cost)


def _suite(file: Path, suites: list[LoadedSuite], plan: PlannedRun) -> Finding:
    """The finding whether a suite file loads; a loaded suite is added to `suites`."""
    try:
        suite = load_suite(file)
    except SuiteError as error:
        if plan.works and any(notes(file, error.faults)):
            return Finding("ok", f"{file}: loads with what conftest.py registers")
        return _faulty(file, error.faults)
    suites.append(suite)
    if suite.all_faults:
        return _faulty(file, suite.all_faults)
    return Finding("ok", f"{file}: {counted(len(suite.cases), 'case')}")


def _faulty(file: Path, faults: Sequence[object]) -> Finding:
    """The finding of ``llmeval doctor`` about a suite file with faults."""
    named = listed(map(str, faults), _MOST_LISTED, "; and {} more", "; ")
    return Finding("failing", named, [f"llmeval validate {shlex.quote(str(file))}"])
