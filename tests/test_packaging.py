"""What is distributed, and how it is tested."""

import re
import tomllib

from paths import ROOT


def test_the_source_distribution_holds_what_the_wheel_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = project["tool"]["hatch"]["build"]["targets"]
    parts = {*targets["wheel"]["only-include"], *targets["wheel"]["force-include"]}
    assert parts <= {each.removeprefix("/") for each in targets["sdist"]["include"]}
    modules = {
        entry.partition(":")[0] for group in project["project"]["entry-points"].values() for entry in group.values()
    }
    assert {f"{module}.py" for module in modules} <= parts
    assert all((ROOT / part).exists() for part in parts)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme, ci = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run"))
    (command,) = re.findall(r"^    (pip install .* && pytest -n .*)$", readme, re.MULTILINE)
    assert command in ci.splitlines()
