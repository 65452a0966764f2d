"""Run other tools on constructs and answers, and keep their verdicts in ``rows``: run it after a change of constructs.

    python tests/differential/regenerate.py promptfoo FOLDER        # FOLDER has node_modules: npm install promptfoo
    python tests/differential/regenerate.py pydantic-evals PYTHON   # PYTHON has the tool: pip install pydantic-evals
    python tests/differential/regenerate.py inspect-ai PYTHON
    python tests/differential/regenerate.py openai-evals PYTHON
    python tests/differential/regenerate.py deepeval PYTHON         # and agentevals, autoevals, ragas (with rapidfuzz)

It exits with 1 if a verdict here differs and the import does not say so.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from constructs import (
    EDGES,
    answers_of,
    assertions,
    configurations,
    evaluators,
    graders,
    kind_of,
    promptfoo,
    scorers,
)
from counterparts import COUNTERPARTS, metrics
from replay import IMPORTED, compared, verdicts_of_configuration

HERE = Path(__file__).parent
_PAIRS = 1300
"""Assertions of promptfoo that are tried: with their answers, more than 50,000 pairs."""

_CONFIGURATIONS, _KEPT_CONFIGURATIONS, _KEPT_OF_A_KIND = 500, 25, 6
_QUIET = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "LOG_LEVEL": "error"}


def main(tool: str, place: Path) -> int:
    sources = {"pydantic-evals": evaluators, "inspect-ai": scorers, "openai-evals": graders}
    sources |= {each: partial(metrics, each) for each in COUNTERPARTS}
    listed = list(promptfoo(_PAIRS) if tool == "promptfoo" else sources[tool]())
    pairs = [(construct, answers_of(tool, EDGES, construct, own)) for construct, own in listed]
    with TemporaryDirectory() as name:
        folder = Path(name)
        if tool == "promptfoo":
            version, rows, configs = _of_promptfoo(place.resolve(), pairs, folder)
        else:
            version, rows, configs = *_of_python(tool, place, pairs, folder), []
    tried = Counter[str]()
    wrong = []
    for (construct, answers), row, imported in zip(
        pairs, rows, IMPORTED[tool]([construct for construct, _ in pairs]), strict=True
    ):
        for answer, fate in compared(imported, answers, row):
            tried[fate] += 1
            wrong += [(construct, answer)] if fate == "different" else []
    kept = [
        [construct, own, row] for (construct, own), row in zip(listed, rows, strict=True) if _is_kept(construct, listed)
    ]
    cases = Counter[str]()
    for config, files, verdicts in configs:
        ours, _ = verdicts_of_configuration(config, files)
        cases["cases"] += len(verdicts)
        cases["equal"] += sum(map(str.__eq__, ours, verdicts)) if len(ours) == len(verdicts) else 0
    data = {"tool": tool, "version": version, "tried": dict(sorted(tried.items()))}
    if configs:
        data["tried configurations"] = {"configurations": len(configs), **cases}
    lists = {"edges": EDGES, "rows": kept, "configurations": configs[:_KEPT_CONFIGURATIONS]}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    for key, values in lists.items():
        if values:
            inner = ",\n".join(json.dumps(each, ensure_ascii=True) for each in values)
            lines.append(f"{json.dumps(key)}: [\n{inner}\n]")
    target = HERE / "rows" / f"{tool}.json"
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{target} {data}\n")
    for construct, answer in wrong[:20]:
        sys.stdout.write(f"different: {json.dumps(construct)} {json.dumps(answer)}\n")
    return int(bool(wrong) or cases["equal"] < cases["cases"])


def _is_kept(construct: Any, listed: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether a construct is among a few of its kind, from the first to the last of them."""
    plain = 2 * len(list(assertions())) if "type" in construct else len(listed)
    same = [each for each, _ in listed[:plain] if kind_of(each) == kind_of(construct)]
    step = max(1, len(same) // _KEPT_OF_A_KIND)
    return construct in same[::step][:_KEPT_OF_A_KIND]


def _of_promptfoo(place: Path, pairs: Sequence[tuple[Any, Any]], folder: Path) -> tuple[str, list[str], list[Any]]:
    configs: list[Any] = []
    for number, (config, files) in enumerate(configurations(_CONFIGURATIONS)):
        base = folder / str(number)
        base.mkdir()
        for name, text in files.items():
            (base / name).write_text(text, encoding="utf-8")
        configs.append((config, files, base))
    work = {
        "pairs": [{"assert": construct, "answers": answers} for construct, answers in pairs],
        "configs": [{"config": config, "folder": str(base)} for config, _, base in configs],
    }
    source, target = folder / "in.json", folder / "out.json"
    source.write_text(json.dumps(work), encoding="utf-8")
    environment = {**os.environ, **_QUIET, "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
    command = ["node", str(HERE / "promptfoo.mjs"), str(place), str(source), str(target)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    found = json.loads(target.read_text(encoding="utf-8"))
    package = json.loads((place / "node_modules/promptfoo/package.json").read_text(encoding="utf-8"))
    kept = [[config, files, verdicts] for (config, files, _), verdicts in zip(configs, found["configs"], strict=True)]
    return package["version"], found["pairs"], kept


def _of_python(tool: str, place: Path, pairs: Sequence[tuple[Any, Any]], folder: Path) -> tuple[str, list[str]]:
    source, target = folder / "in.json", folder / "out.json"
    source.write_text(json.dumps(pairs), encoding="utf-8")
    subprocess.run([str(place), str(HERE / "python_tools.py"), tool, str(source), str(target)], check=True)
    found = json.loads(target.read_text(encoding="utf-8"))
    return found["version"], found["rows"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
