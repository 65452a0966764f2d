"""Which callables a suite file can name: those that a module of the project defines."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval import PredictionError
from pytest_llmeval.targets import PythonTarget

_OF_TESTS = ("app_of_tests", "beside_suite", "faulty_target", "installed_app", "library_of_tests", "same_name")


@pytest.fixture(autouse=True)
def _own_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Targets extend sys.path and import modules: give both back."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in list(sys.modules):
        if name.partition(".")[0] in _OF_TESTS:
            del sys.modules[name]


def write_module(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return name


def test_a_module_beside_the_suite_file_is_found(tmp_path: Path) -> None:
    write_module(tmp_path, "beside_suite", "class App:\n    @staticmethod\n    def answer(x): return x * 2\n")
    assert PythonTarget.load("beside_suite:App.answer", tmp_path).function(4) == 8


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "faulty_target:answer", "module 'faulty_target' has no callable 'answer'"),
        ("answer = 3", "faulty_target:answer", "module 'faulty_target' has no callable 'answer'"),
        ("answer = 3", "faulty_target:answer.real", "module 'faulty_target' has no callable 'answer.real'"),
        ("1 / 0", "faulty_target:a", "module 'faulty_target' cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(2)", "faulty_target:a", "module 'faulty_target' cannot be imported: SystemExit: 2"),
        ("", "no_such_module_here:a", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("def (", "faulty_target:a", "module 'faulty_target' cannot be imported: SyntaxError: "),
    ],
)
def test_a_target_that_cannot_be_had_is_told(tmp_path: Path, text: str, name: str, message: str) -> None:
    write_module(tmp_path, "faulty_target", text)
    with pytest.raises(PredictionError) as caught:
        PythonTarget.load(name, tmp_path)
    assert str(caught.value).startswith(f"target {name!r}: ")
    assert message in str(caught.value)


def test_two_modules_of_one_name_are_not_confused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_module(tmp_path / folder, "same_name", "def answer(x): return x")
    PythonTarget.load("same_name:answer", tmp_path / "a")
    with pytest.raises(PredictionError, match=r"was already imported from .*same_name\.py, not from .*: rename one of"):
        PythonTarget.load("same_name:answer", tmp_path / "b")


LIBRARY = """
import functools, os
def run(text): return os.system(text)
def plain(function):
    def call(*given): return function(*given)
    return call
def wrapped(function):
    return functools.wraps(function)(lambda *given: function(*given))
class Client:
    def __call__(self, x): return x
    def ask(self, x): return x
"""
APP = """
import functools, os, os as system_of_app, subprocess
from os import system
from subprocess import run, Popen
import library_of_tests
from library_of_tests import Client, plain, wrapped, run as run_of_library
from app_of_tests.impl import Agent, answer, answer_later, prompt
from app_of_tests import impl

@plain
def decorated(x): return x
@wrapped
def decorated_well(x): return x
@functools.lru_cache
def cached(x): return x
def prefixed(before, x): return before + x
class Model(Client): pass
class Holder:
    run = staticmethod(subprocess.run)
    execute = os.system
    client = Client()
with_prefix = functools.partial(prefixed, "the ")
shell = functools.partial(functools.partial(subprocess.run, shell=True), check=True)
cached_shell = functools.lru_cache(os.system)
decorated_shell = plain(os.system)
agent, client, model = Agent(), Client(), Model()
methods = functools.partial(client.ask)
later = lambda x: x
@functools.wraps(os.system)
def named_as_another(x): return x
"""
IMPL = """
class Agent:
    def __call__(self, x): return x
    def answer(self, x): return x
    @classmethod
    def make(cls, x): return x
    @staticmethod
    def echo(x): return x
prompt = "Answer {}"
def answer(x): return x
async def answer_later(x): return x
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    write_module(tmp_path, "library_of_tests", LIBRARY)
    (tmp_path / "app_of_tests").mkdir()
    write_module(tmp_path / "app_of_tests", "__init__", APP)
    write_module(tmp_path / "app_of_tests", "impl", IMPL)
    write_module(tmp_path / "app_of_tests", "beside", "from app_of_tests.impl import answer")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "app_of_tests:answer",
        "app_of_tests.impl:answer",
        "app_of_tests:answer_later",
        "app_of_tests:later",
        "app_of_tests:decorated",
        "app_of_tests:decorated_well",
        "app_of_tests:cached",
        "app_of_tests:with_prefix",
        "app_of_tests:Agent",
        "app_of_tests:Agent.make",
        "app_of_tests:Agent.echo",
        "app_of_tests:agent",
        "app_of_tests:agent.answer",
        "app_of_tests:model",
        "app_of_tests:model.ask",
        "app_of_tests:named_as_another",
    ],
)
def test_a_target_is_what_a_module_defines_or_its_package_exports(app: Path, name: str) -> None:
    assert callable(PythonTarget.load(name, app).function)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("app_of_tests:os.system", "'os' is a module, expected a callable that 'app_of_tests' defines"),
        ("app_of_tests:system_of_app.system", "'system_of_app' is a module"),
        ("app_of_tests:library_of_tests.run", "'library_of_tests' is a module"),
        ("app_of_tests:impl.answer", "'impl' is a module"),
        ("app_of_tests:impl", "'impl' is a module"),
        (
            "app_of_tests:system",
            r"'system' is defined elsewhere \(\w+\), expected a callable that 'app_",
        ),
        ("app_of_tests:run", r"'run' is defined elsewhere \(subprocess\)"),
        ("app_of_tests:Popen", "defined elsewhere"),
        ("app_of_tests:run_of_library", r"defined elsewhere \(library_of_tests\)"),
        ("app_of_tests:plain", "defined elsewhere"),
        ("app_of_tests:shell", "defined elsewhere"),
        ("app_of_tests:cached_shell", "defined elsewhere"),
        ("app_of_tests:decorated_shell", "defined elsewhere"),
        ("app_of_tests:Holder.run", "defined elsewhere"),
        ("app_of_tests:Holder.execute", "defined elsewhere"),
        ("app_of_tests:Holder.client", "defined elsewhere"),
        ("app_of_tests:Holder.client.ask", "defined elsewhere"),
        ("app_of_tests:client", "defined elsewhere"),
        ("app_of_tests:client.ask", "defined elsewhere"),
        ("app_of_tests:methods", "defined elsewhere"),
        ("app_of_tests:prompt.format", "defined elsewhere"),
        ("app_of_tests:answer.__globals__.get", "defined elsewhere"),
        ("app_of_tests:answer.__class__", "defined elsewhere"),
        ("app_of_tests:__builtins__.get", "defined elsewhere"),
        ("app_of_tests.beside:answer", r"defined elsewhere \(app_of_tests\.impl\)"),
    ],
)
def test_what_a_module_only_imports_is_no_target(app: Path, name: str, message: str) -> None:
    with pytest.raises(PredictionError, match=message):
        PythonTarget.load(name, app)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:system", "'os' belongs to Python itself, expected a module of your project"),
        ("importlib.util:os.system", "'importlib.util' belongs to Python itself"),
        ("builtins:exec", "belongs to Python itself"),
        ("pytest_llmeval.reports._files:os.system", "'pytest_llmeval.reports._files' belongs to this plugin"),
        ("pytest_llmeval:score", "belongs to this plugin"),
        ("_pytest.pathlib:rm_rf", "'_pytest.pathlib' belongs to an installed package"),
        ("yaml:unsafe_load", "'yaml' belongs to an installed package"),
        ("nltk:download", "'nltk' belongs to an installed package"),
    ],
)
def test_python_this_plugin_and_installed_packages_have_no_targets(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(PredictionError, match=message):
        PythonTarget.load(name, tmp_path)


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        (None, False),
        ('{"url": "https://example.org/app.git", "vcs_info": {"vcs": "git"}}', False),
        ('{"url": "file:///home/me/app", "dir_info": {}}', True),
    ],
)
def test_a_package_installed_from_a_folder_of_this_machine_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, *, is_own: bool
) -> None:
    place = tmp_path / "site-packages"
    about = place / "installed_app-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-app\nVersion: 1.0\n", encoding="utf-8")
    (about / "top_level.txt").write_text("installed_app\n", encoding="utf-8")
    if origin is not None:
        (about / "direct_url.json").write_text(origin, encoding="utf-8")
    write_module(place, "installed_app", "def answer(x): return x")
    monkeypatch.syspath_prepend(place)
    if is_own:
        assert PythonTarget.load("installed_app:answer", tmp_path).function(1) == 1
    else:
        with pytest.raises(PredictionError, match="belongs to an installed package"):
            PythonTarget.load("installed_app:answer", tmp_path)


@pytest.mark.parametrize(("layers", "known"), [(8, True), (9, False)])
def test_eight_layers_of_foreign_decorators_are_looked_through(app: Path, layers: int, known: bool) -> None:
    stacked = "plain(" * layers + "lambda x: x" + ")" * layers
    write_module(app, "stack_of_tests", f"from library_of_tests import plain\nstacked = {stacked}\n")
    if known:
        assert PythonTarget.load("stack_of_tests:stacked", app).function("a") == "a"
    else:
        with pytest.raises(PredictionError):
            PythonTarget.load("stack_of_tests:stacked", app)
