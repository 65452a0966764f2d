"""Secrets that arrive late: in warnings, in threads, in finalizers, in live logs, and out of the environment."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

OUTER, INNER = "outerouter-99887", "topsecretvalue-4711"

APP = f"""\
import logging
import os
import threading
import warnings

os.environ["SVC_API_KEY"] = "{INNER}"  # as load_dotenv() does at import


def answer(word):
    key, token = os.environ.get("SVC_API_KEY"), os.environ.get("OUTER_TOKEN", "")
    if word == "warn":
        warnings.warn(f"warned {{key}} {{token}}")
    if word == "thread":
        def work():
            raise RuntimeError(f"threaded {{key}} {{token}}")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    if word == "unraisable":
        class Dropped:
            def __del__(self):
                raise ValueError(f"dropped {{key}} {{token}}")

        Dropped()
    if word == "log":
        logging.getLogger("app").error("logged %s %s", key, token)
    if word == "pop":
        raise ValueError(f"popped {{os.environ.pop('SVC_API_KEY')}} {{os.environ.pop('OUTER_TOKEN')}}")
    if word == "after":
        raise ValueError("after {INNER} {OUTER}")
    return "x"
"""

WORDS = ("warn", "thread", "unraisable", "log", "pop", "after")


@pytest.fixture
def hiding(project: "Project", monkeypatch: pytest.MonkeyPatch) -> "Project":
    monkeypatch.setenv("OUTER_TOKEN", OUTER)
    project.write("app.py", APP)
    return project


@pytest.mark.parametrize("options", [(), ("-o", "log_cli=true", "--log-file=log.txt")], ids=["usual", "live logs"])
def test_no_file_and_no_line_has_a_secret(hiding: "Project", workers: int, options: tuple[str, ...]) -> None:
    hiding.asking("s.eval.json", "app:answer", *WORDS, thresholds={"exact_match": 1})
    ran = hiding.run("--llmeval-report=r.md", "--junitxml=j.xml", "-rA", *options, workers=workers)
    for word in ("warned", "threaded", "dropped", "logged", "popped", "after"):
        assert word in ran.text, word
    files = [path for path in hiding.path.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    written = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in files}
    del written["app.py"]
    leaks = [name for name, text in {**written, "terminal": ran.text}.items() if OUTER in text or INNER in text]
    assert leaks == []
