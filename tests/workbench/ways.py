"""Ways in which an answer can depend on something, each with a change of it: add a row to try another."""

import json
from collections.abc import Mapping
from io import BytesIO
from itertools import count
from typing import NamedTuple, TypeVar
from zipfile import ZipFile, ZipInfo

Text = TypeVar("Text", str, str | None)


class Way(NamedTuple):
    """One way of depending on something.

    Attributes:
        code: The module of the target, whose function ``answer`` returns what the dependency says.
        files: Other files; ``{own}`` in names and texts stands for the name of the way.
        change: Files to their later texts; ``None`` deletes one.
        followed: Whether cases are carried while nothing changes; if not, all run, with the reason.
        settings: Of pytest: such a way is a project of its own.
    """

    code: str
    files: Mapping[str, str]
    change: Mapping[str, str | None]
    followed: bool = True
    settings: str = ""


HERE = "from pathlib import Path\nHERE = Path(__file__).parent\nNAME = '_'.join(['{own}', 'kb'])\n"
KB = {"{own}_kb/a.txt": "one"}
TWO = {"{own}_kb/a.txt": "two"}
LONGER = {"{own}_kb/a.txt": "longer"}
TOOL = {"{own}_tool.py": "def use():\n    return 'one'\n"}
OTHER = {"{own}_tool.py": "def use():\n    return 'two'\n"}
PRINTS = {"{own}_tool.py": "print('one')\n"}
SAYS = {"{own}_tool.py": "print('two')\n"}


def answering(expression: str, before: str = HERE) -> str:
    """Return a module whose answer is the value of an expression."""
    return f"{before}def answer(value):\n    return str({expression})\n"


VARIABLES = {"WAY_OF_NOBODY": "two", "LC_NUMERIC": "C"}
"""What the environment has after each change."""


FIRST = "0_{own}.eval.json"


def made_first(code: str, before: str = "") -> dict[str, str]:
    """Return the files of a suite that runs before the one of the way, and what its target does with a text."""
    suite = {
        "target": {"python": "{own}_maker:answer"},
        "evaluators": [{"text": {"metrics": ["f1"]}}],
        "snapshot": True,
        "cases": [{"id": "first", "input": "x", "expected": "x"}],
    }
    target = f"def answer(value):\n    text = (HERE / NAME / 'a.txt').read_text()\n{code}    return 'x'\n"
    return {**KB, "{own}_maker.py": f"{before}{HERE}{target}", FIRST: json.dumps(suite)}


def set_first(code: str, kept: str, answer: str, module: str = "{own}_kept") -> Way:
    """Return a way of depending on state that another suite sets in a module, which the target reads."""
    before = made_first(f"    import {module} as kept\n    {code}\n")
    return Way(answering(answer, f"import {module} as kept\n"), {**before, "{own}_kept.py": kept}, TWO)


def found_in(folders: str, load: str) -> Way:
    """Return a way of importing a module from folders that the target puts on Python's path."""
    path = f"import sys, importlib\n{HERE}sys.path[:0] = [str(HERE / f'{{own}}_{{each}}') for each in {folders!r}]\n"
    return Way(
        answering(load, path),
        {"{own}_a/other.txt": "", "{own}_b/{own}_found.py": "X = 'one'\n"},
        {f"{{own}}_{folders[0]}/{{own}}_found.py": "X = 'two'\n"},
    )


ON_THE_PATH = f"import sys\n{HERE}sys.path.append(str(HERE / '{{own}}.zip'))\n"


def archive(module: str, text: str) -> str:
    """Return an archive with a module, as text: with a comment for which its check sum is ASCII."""
    for number in count():
        content, info = BytesIO(), ZipInfo(f"{module}.py")
        info.external_attr = 0o400 << 16
        with ZipFile(content, "w") as file:
            file.writestr(info, f"{text}# {number}\n")
        if content.getvalue().isascii():
            break
    return content.getvalue().decode()


WAYS: Mapping[str, Way] = {
    "text": Way(answering("(HERE / NAME / 'a.txt').read_text()"), KB, TWO),
    "row": Way(answering("(HERE / value / 'a.txt').read_text()"), {"{own}_kb/a.txt": "one"}, TWO),
    "bytes": Way(answering("os.read(os.open(HERE / NAME / 'a.txt', os.O_RDONLY), 9)", f"import os\n{HERE}"), KB, TWO),
    "at_import": Way(
        f"{HERE}TEXT = (HERE / NAME / 'a.txt').read_text()\ndef answer(value):\n    return TEXT\n", KB, TWO
    ),
    "kept": Way(
        answering("read()", f"import functools\n{HERE}read = functools.cache((HERE / NAME / 'a.txt').read_text)\n"),
        KB,
        TWO,
    ),
    "listed": Way(answering("sorted(p.name for p in (HERE / NAME).glob('*.txt'))"), KB, {"{own}_kb/b.txt": ""}),
    "walked": Way(answering("[f for *_, f in os.walk(HERE / NAME)]", f"import os\n{HERE}"), KB, {"{own}_kb/b.txt": ""}),
    "appears": Way(answering("(HERE / NAME / 'b.txt').exists()"), KB, {"{own}_kb/b.txt": ""}),
    "opened_in_vain": Way(
        f"{HERE}def answer(value):\n    try:\n        return open(HERE / NAME / 'b.txt').read()\n"
        "    except OSError:\n        return 'none'\n",
        KB,
        {"{own}_kb/b.txt": "two"},
    ),
    "disappears": Way(
        answering("os.path.exists(HERE / NAME / 'a.txt')", f"import os\n{HERE}"), KB, {"{own}_kb/a.txt": None}
    ),
    "entries": Way(answering("[e.stat().st_size for e in os.scandir(HERE / NAME)]", f"import os\n{HERE}"), KB, LONGER),
    "kinds": Way(
        answering("[p.name for p in (HERE / NAME).glob('*/')]"), KB, {"{own}_kb/a.txt": None, "{own}_kb/a.txt/b": ""}
    ),
    "link": Way(
        answering("os.readlink(HERE / NAME / 'to')", f"import os\n{HERE}"),
        {**KB, "{own}_kb/b.txt": "one", "{own}_kb/to": "link to a.txt"},
        {"{own}_kb/to": "link to b.txt"},
    ),
    "line_ends": Way(
        answering("(HERE / NAME / 'a.txt').read_bytes()"), {"{own}_kb/a.txt": "one\n"}, {"{own}_kb/a.txt": "one\r\n"}
    ),
    "mapped": Way(
        f"import mmap\n{HERE}def answer(value):\n    with open(HERE / NAME / 'a.txt') as file:\n"
        "        return str(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:])\n",
        KB,
        TWO,
    ),
    "by_descriptor": Way(
        answering(
            "os.read(os.open('a.txt', 0, dir_fd=os.open(HERE / NAME, 0)), 9)",
            f"import os\n{HERE}",
        ),
        KB,
        TWO,
    ),
    "seen_by_descriptor": Way(
        answering("os.stat('a.txt', dir_fd=os.open(HERE / NAME, 0)).st_size", f"import os\n{HERE}"), KB, LONGER
    ),
    "listed_by_descriptor": Way(
        answering("sorted(os.listdir(os.open(HERE / NAME, 0)))", f"import os\n{HERE}"), KB, {"{own}_kb/b.txt": ""}
    ),
    "after_appending": Way(
        f"{HERE}def answer(value):\n    open(HERE / NAME / 'a.txt', 'a').close()\n"
        "    return (HERE / NAME / 'a.txt').read_text()\n",
        KB,
        TWO,
    ),
    "beside_temporary_files": Way(
        f"import tempfile\n{HERE}def answer(value):\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        Path(folder, 'a.txt').write_text('x')\n        return (HERE / NAME / 'a.txt').read_text()\n",
        KB,
        TWO,
    ),
    "write_ahead_log": Way(
        answering("sqlite3.connect(HERE / NAME / 'a.db').execute('pragma user_version')", f"import sqlite3\n{HERE}"),
        {"{own}_kb/a.db": "", "{own}_kb/a.db-wal": ""},
        {"{own}_kb/a.db-wal": "two"},
    ),
    "link_made_inside": Way(
        f"import tempfile\n{HERE}def answer(value):\n    with tempfile.TemporaryDirectory(dir=HERE) as folder:\n"
        "        Path(folder, 'to').symlink_to(HERE / NAME / 'a.txt')\n        return Path(folder, 'to').read_text()\n",
        KB,
        TWO,
    ),
    "linked_folder": Way(
        answering("((HERE / NAME / 'now').resolve() / 'a.txt').read_text()"),
        {"{own}_kb/v1/a.txt": "one", "{own}_kb/v2/a.txt": "two", "{own}_kb/now": "link to v1"},
        {"{own}_kb/now": "link to v2"},
    ),
    "copied_folder": Way(
        f"import shutil, tempfile\n{HERE}def answer(value):\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        copy = Path(shutil.copytree(HERE / NAME, Path(folder, 'copy')))\n"
        "        return str(sorted(path.name for path in copy.iterdir()))\n",
        KB,
        {"{own}_kb/b.txt": ""},
    ),
    "on_the_path": found_in("b", "importlib.import_module('{own}_' + 'found').X"),
    "shadowed": found_in("ab", "importlib.import_module('{own}_' + 'found').X"),
    "own_module_for_pythons": Way(
        answering("getattr(importlib.import_module('colorsys'), 'X', 'none')", "import importlib\n"),
        {},
        {"colorsys.py": "X = 'two'\n"},
    ),
    "locale": Way(answering("locale.setlocale(locale.LC_NUMERIC, '')", "import locale\n"), {}, {}),
    "outliving_thread": Way(
        f"import threading\n{HERE}SAID = []\n"
        "thread = threading.Thread(target=lambda: SAID.append((HERE / NAME / 'a.txt').read_text()))\n"
        "thread.start()\ndef answer(value):\n    thread.join()\n    return SAID[0]\n",
        KB,
        TWO,
    ),
    "key_value": Way(
        answering("dbm.open(str(HERE / NAME / 'kept'), 'r')['k']", f"import dbm\n{HERE}"),
        {"{own}_kb/kept.dir": "'k', (0, 3)\n", "{own}_kb/kept.dat": "one"},
        {"{own}_kb/kept.dat": "two"},
        followed=False,
    ),
    "attached": Way(
        f"import sqlite3\n{HERE}def answer(value):\n    database = sqlite3.connect(':memory:', uri=True)\n"
        "    path = HERE / NAME / 'a.db'\n    try:\n"
        "        database.execute(f\"attach 'file:{path}?mode=ro' as other\")\n"
        "        return str(database.execute('pragma other.user_version').fetchall())\n"
        "    except sqlite3.Error as error:\n        return str(error)\n",
        {"{own}_kb/a.db": ""},
        {"{own}_kb/a.db": None},
    ),
    "jinja_folder": Way(
        answering(
            "Environment(loader=FileSystemLoader(HERE / NAME)).get_template('a.txt').render()",
            f"from jinja2 import Environment, FileSystemLoader\n{HERE}",
        ),
        KB,
        TWO,
    ),
    "jinja_package": Way(
        answering(
            "Environment(loader=PackageLoader(NAME, '.')).get_template('a.txt').render()",
            f"from jinja2 import Environment, PackageLoader\n{HERE}",
        ),
        {**KB, "{own}_kb/__init__.py": ""},
        TWO,
    ),
    "variables_file": Way(
        f"import os\n{HERE}for line in open(HERE / '.env'):\n    os.environ.setdefault(*line.strip().split('='))\n"
        "def answer(value):\n    return os.environ['WAY_OF_DEPENDING']\n",
        {".env": "WAY_OF_DEPENDING=one\n"},
        {".env": "WAY_OF_DEPENDING=two\n"},
    ),
    "csv": Way(answering("list(csv.reader(open(HERE / NAME / 'a.txt')))", f"import csv\n{HERE}"), KB, TWO),
    "pandas": Way(answering("pd.read_csv(HERE / NAME / 'a.txt')", f"import pandas as pd\n{HERE}"), KB, TWO),
    "package_data": Way(
        answering("pkgutil.get_data(NAME, 'a.txt')", f"import pkgutil\n{HERE}"), {**KB, "{own}_kb/__init__.py": ""}, TWO
    ),
    "resource": Way(
        answering("resources.files(NAME).joinpath('a.txt').read_text()", f"from importlib import resources\n{HERE}"),
        {**KB, "{own}_kb/__init__.py": ""},
        TWO,
    ),
    "database": Way(
        answering("sqlite3.connect(HERE / NAME / 'a.db').execute('pragma user_version')", f"import sqlite3\n{HERE}"),
        {"{own}_kb/a.db": ""},
        {"{own}_kb/a.db": None},
    ),
    "line": Way(answering("linecache.getline(str(HERE / NAME / 'a.txt'), 1)", f"import linecache\n{HERE}"), KB, TWO),
    "settings_file": Way(
        f"import configparser\n{HERE}def answer(value):\n    parser = configparser.ConfigParser()\n"
        "    parser.read(HERE / NAME / 'a.ini')\n    return parser['a']['b']\n",
        {"{own}_kb/a.ini": "[a]\nb = one\n"},
        {"{own}_kb/a.ini": "[a]\nb = two\n"},
    ),
    "helper": Way("from {own}_tool import use\ndef answer(value):\n    return use()\n", TOOL, OTHER),
    "located": Way(answering("pydoc.locate('{own}_' + 'tool').use()", "import pydoc\n"), TOOL, OTHER),
    "loaded": Way(
        answering("load('{own}_' + 'tool').use()", "from importlib import import_module as load\n"), TOOL, OTHER
    ),
    "run_path": Way(
        answering("runpy.run_path(str(HERE / f'{own}_tool.py'))['use']()", f"import runpy\n{HERE}"), TOOL, OTHER
    ),
    "executed": Way(
        f"{HERE}def answer(value):\n    names = {{}}\n    exec((HERE / ('{{own}}_' + 'tool.py')).read_text(), names)\n"
        "    return names['use']()\n",
        TOOL,
        OTHER,
    ),
    "optional_module": Way(
        "def answer(value):\n    try:\n        return __import__('{own}_' + 'tool').use()\n"
        "    except ImportError:\n        return 'none'\n",
        {},
        OTHER,
    ),
    "found": Way(
        answering("find_spec('{own}_' + 'tool') is None", "from importlib.util import find_spec\n"), {}, OTHER
    ),
    "thread": Way(
        answering(
            "pool.submit((HERE / NAME / 'a.txt').read_text).result()",
            f"from concurrent.futures import ThreadPoolExecutor\n{HERE}pool = ThreadPoolExecutor(1)\n",
        ),
        KB,
        TWO,
    ),
    "async": Way(
        f"import asyncio\n{HERE}async def answer(value):\n"
        "    return await asyncio.to_thread((HERE / NAME / 'a.txt').read_text)\n",
        KB,
        TWO,
    ),
    "variable": Way(answering("os.environ.get('WAY_' + 'OF_NOBODY')", "import os\n"), {}, {}),
    "variable_bytes": Way(answering("os.environb.get(b'WAY_OF_NOBODY')", "import os\n"), {}, {}),
    "variables_themselves": Way(
        answering("os.environ._data.get(b'WAY_OF_NOBODY')", "import os\n"), {}, {}, followed=False
    ),
    "number_of_variables": Way(answering("len(os.environ)", "import os\n"), {}, {}, followed=False),
    "compiled": Way(
        answering("pl.read_csv(HERE / NAME / 'a.txt')", f"import polars as pl\n{HERE}"), KB, TWO, followed=False
    ),
    "compiled_later": Way(
        f"import pandas as pd\n{HERE}def answer(value):\n    try:\n"
        "        return str(pd.read_parquet(HERE / NAME / 'a.txt'))\n    except Exception as error:\n"
        "        return str(error)\n",
        KB,
        LONGER,
        followed=False,
    ),
    "made_by_another_suite": Way(
        answering("(HERE / '{own}_made.txt').read_text()"),
        made_first("    (HERE / '{own}_made.txt').write_text(text)\n"),
        TWO,
    ),
    "set_by_another_suite": Way(
        answering("os.environ.get('{own}_SET')", "import os\n"),
        made_first("    os.environ['{own}_SET'] = text\n", "import os\n"),
        TWO,
    ),
    "kept_for_another_suite": Way(
        answering("linecache.getline(str(HERE / NAME / 'a.txt'), 1)", f"import linecache\n{HERE}"),
        made_first("    linecache.getline(str(HERE / NAME / 'a.txt'), 1)\n", "import linecache\n"),
        TWO,
    ),
    "attribute_set_by_another_suite": set_first("kept.X = text", "X = 'none'\n", "kept.X"),
    "list_filled_by_another_suite": set_first("kept.X.append(text)", "X = []\n", "kept.X"),
    "variable_set_by_another_suite": set_first(
        "kept.put(text)", "X = 'none'\ndef put(text):\n    global X\n    X = text\n", "kept.X"
    ),
    "object_set_by_another_suite": set_first(
        "kept.X.kept = text", "class Keeper:\n    kept = 'none'\nX = Keeper()\n", "kept.X.kept"
    ),
    "slot_set_by_another_suite": set_first(
        "kept.X.kept = text",
        "class Keeper:\n    __slots__ = ('kept',)\nX = Keeper()\nX.kept = 'none'\n",
        "kept.X.kept",
    ),
    "closure_filled_by_another_suite": set_first(
        "kept.put(text)",
        "def made():\n    said = []\n    return said.append, lambda: said\nput, get = made()\n",
        "kept.get()",
    ),
    "function_patched_by_another_suite": set_first(
        "kept.get = lambda: text", "def get():\n    return 'none'\n", "kept.get()"
    ),
    "method_patched_by_another_suite": set_first(
        "kept.Keeper.get = lambda self: text",
        "class Keeper:\n    def get(self):\n        return 'none'\n",
        "kept.Keeper().get()",
    ),
    "function_mocked_by_another_suite": set_first(
        "import unittest.mock; unittest.mock.patch('{own}_kept.get', return_value=text).start()",
        "def get():\n    return 'none'\n",
        "kept.get()",
    ),
    "library_patched_by_another_suite": set_first(
        "kept.rgb_to_yiq = lambda *_: text", "", "kept.rgb_to_yiq(1, 1, 1)", "colorsys"
    ),
    "module_planted_by_another_suite": Way(
        answering("__import__('{own}_planted').X"),
        made_first(
            "    sys.modules['{own}_planted'] = types.SimpleNamespace(X=text)\n",
            "import sys, types\n",
        ),
        TWO,
        followed=False,
    ),
    "module_renamed_by_another_suite": Way(
        answering("__import__('{own}_renamed').use()"),
        {
            **made_first("    sys.modules['{own}_renamed'] = {own}_tool\n", "import sys, {own}_tool\n"),
            **TOOL,
        },
        OTHER,
        followed=False,
    ),
    "archive_of_another_suite": Way(
        answering("__import__('in_archive').X", ON_THE_PATH),
        {
            **made_first("    __import__('in_archive')\n", ON_THE_PATH),
            "{own}.zip": archive("in_archive", "X = 'one'\n"),
        },
        {"{own}.zip": archive("in_archive", "X = 'two'\n")},
    ),
    "state_set_by_a_conftest": Way(
        answering("{own}_kept.X", "import {own}_kept\n"),
        {
            "{own}_kept.py": "X = ['none']\n",
            "{own}_beside/conftest.py": "import {own}_kept\n{own}_kept.X.append('one')\n",
            "{own}_beside/test_nothing.py": "def test_nothing():\n    pass\n",
        },
        {"{own}_beside/conftest.py": "import {own}_kept\n{own}_kept.X.append('two')\n"},
    ),
    **{
        f"suite_of_{name}": way._replace(change={FIRST: way.files[FIRST].replace(":answer", ":other")})
        for name, way in {
            "made_files": Way(
                answering("(HERE / '{own}_made.txt').exists()"),
                made_first("    (HERE / '{own}_made.txt').write_text(text)\n"),
                {},
            ),
            "set_variables": Way(
                answering("os.environ.get('{own}_SET')", "import os\n"),
                made_first("    os.environ['{own}_SET'] = text\n", "import os\n"),
                {},
            ),
            "set_state": set_first("kept.X = text", "X = 'none'\n", "kept.X"),
            "patched_library": set_first(
                "kept.rgb_to_yiq = lambda *_: text", "", "kept.rgb_to_yiq(1, 1, 1)", "colorsys"
            ),
        }.items()
    },
    "history": Way(answering("(HERE / '.git' / 'HEAD').read_text()"), {}, {}, followed=False),
    "certificates": Way(
        f"import ssl\n{HERE}def answer(value):\n    try:\n"
        "        return str(ssl.create_default_context(cafile=HERE / NAME / 'a.txt'))\n"
        "    except ssl.SSLError as error:\n        return str(error)\n",
        KB,
        TWO,
        followed=False,
    ),
    "system_call": Way(
        answering("posix.stat(HERE / NAME / 'a.txt').st_size", f"import posix\n{HERE}"), KB, LONGER, followed=False
    ),
    "foreign": Way(answering("ctypes.CDLL(None).abs(-1)", "import ctypes\n"), {}, {}, followed=False),
    "other_interpreter": Way(
        answering("importlib.import_module('_xx' + 'subinterpreters').create()", "import importlib\n"),
        PRINTS,
        SAYS,
        followed=False,
    ),
    "copied": Way(answering("os.waitpid(os.fork() or os._exit(3), 0)[1]", "import os\n"), PRINTS, SAYS, followed=False),
    "looked_up": Way(answering("socket.gethostbyname('localhost')", "import socket\n"), {}, {}, followed=False),
    "datagram": Way(
        "import socket\ndef answer(value):\n    with socket.socket(type=socket.SOCK_DGRAM) as sender:\n"
        "        return str(sender.sendmsg([b'x'], [], 0, ('127.0.0.1', 9)))\n",
        {},
        {},
        followed=False,
    ),
    "secret": Way(answering("os.environ.get('WAY_TOKEN')", "import os\n"), {}, {}, followed=False),
    "environment": Way(answering("len({**os.environ})", "import os\n"), {}, {}, followed=False),
    "asynchronous_program": Way(
        "import asyncio, sys\nasync def answer(value):\n"
        "    made = asyncio.create_subprocess_exec(sys.executable, '-m', '{own}_tool', stdout=-1)\n"
        "    return (await (await made).communicate())[0].decode()\n",
        PRINTS,
        SAYS,
        followed=False,
    ),
    "program": Way(
        answering("subprocess.getoutput(f'{sys.executable} -m {own}_tool')", "import subprocess, sys\n"),
        PRINTS,
        SAYS,
        followed=False,
    ),
    "system": Way(answering("os.system('exit 3')", "import os\n"), PRINTS, SAYS, followed=False),
    "host": Way(
        "import socket\ndef answer(value):\n    try:\n        socket.create_connection(('127.0.0.1', 1))\n"
        "    except OSError as error:\n        return str(error)\n",
        {},
        {},
        followed=False,
    ),
    "conftest_plugin": Way(
        "NAMES = ['one']\ndef answer(value):\n    return NAMES[-1]\n",
        {"conftest.py": "pytest_plugins = ['plug']\n", "plug.py": ""},
        {"plug.py": "import {own}\n{own}.NAMES.append('two')\n"},
    ),
    "named_plugin": Way(
        "NAMES = ['one']\ndef answer(value):\n    return NAMES[-1]\n",
        {"plug.py": ""},
        {"plug.py": "import {own}\n{own}.NAMES.append('two')\n"},
        followed=False,
        settings="addopts = -p plug\n",
    ),
}
"""Name of a way to it."""

ALONE = ("conftest_plugin", "named_plugin", "compiled_later")
"""Ways that concern a whole project, or all that use a library."""


def files_of(name: str) -> dict[str, str]:
    """Return the files of a way by name, its target and suite among them."""
    way, own = WAYS[name], f"way_{name}"
    suite = {
        "target": {"python": f"{own}:answer"},
        "evaluators": [{"text": {"metrics": ["f1"]}}],
        "snapshot": True,
        "cases": [{"id": f"c{number}", "input": f"{own}_kb", "expected": "x"} for number in range(2)],
    }
    return {**_named(own, {"{own}.py": way.code, **way.files}), f"{name}.eval.json": json.dumps(suite)}


def change_of(name: str) -> Mapping[str, str | None]:
    """Return the change of a way: files to their later texts."""
    return _named(f"way_{name}", WAYS[name].change)


def _named(own: str, files: Mapping[str, Text]) -> dict[str, Text]:
    return {file.replace("{own}", own): text and text.replace("{own}", own) for file, text in files.items()}
