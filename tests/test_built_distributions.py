"""The wheel and the source distribution: built from the checkout, installed, and used far away from it."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from project import ROOT
from running import WITHOUT_UNUSED
from servers import PATIENCE

pytestmark = pytest.mark.release
PACKAGE = "import pytest_llmeval; print(pytest_llmeval.__file__)"


def run(*command: str | Path, folder: Path) -> str:
    """Run a command without the settings of this run; return what it printed."""
    settings = ("PYTEST_", "GITHUB_", "CI", "PIP_", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, folder=folder)
    return folder


def installed(distribution: Path, folder: Path) -> Path:
    """Install a distribution into an environment that has the libraries of this one; return the environment."""
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "libraries.pth").write_text("\n".join(libraries), encoding="utf-8")
    alone = ("--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--no-compile")
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", *alone, distribution, folder=folder)
    assert Path(run(python, "-c", PACKAGE, folder=folder).strip()).is_relative_to(environment)
    return environment


def test_the_package_index_would_take_both_distributions(distributions: Path) -> None:
    built = sorted(distributions.iterdir())
    assert {path.suffix for path in built} == {".whl", ".gz"}
    run(sys.executable, "-m", "twine", "check", "--strict", *built, folder=distributions)


def test_addresses_in_the_readme_lead_somewhere_on_the_package_index(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        readme = archive.read(metadata).decode()
    host = {"!": "https://raw.githubusercontent.com/", "": "https://github.com/"}
    addresses = re.findall(r"(!?)\[[^\]]*\]\(([^)#]+)\)", readme)
    assert {kind for kind, _ in addresses} == {"!", ""}
    assert [address for kind, address in addresses if not address.startswith(host[kind])] == []
    files = [ROOT / address.split("/main/", 1)[1] for _, address in addresses if "/main/" in address]
    assert [path for path in files if not path.exists()] == []


def test_the_wheel_runs_the_example_suites_out_of_tree(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    environment, project = installed(wheel, tmp_path), tmp_path / "project"
    shutil.copytree(ROOT / "example_suites", project / "evals")
    command = ("-m", "pytest", *WITHOUT_UNUSED, "-q", "--llmeval")
    assert "snapshots passed" in run(environment / "bin" / "python", *command, folder=project)
    assert run(environment / "bin" / "llmeval", "--version", folder=tmp_path)


def test_the_source_distribution_installs_the_files_of_the_wheel(distributions: Path, tmp_path: Path) -> None:
    (wheel,), (source,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    (packages,) = installed(source, tmp_path).glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        built = {name: archive.read(name) for name in archive.namelist() if "dist-info" not in name}
    assert len(built) > 300
    assert {name: (packages / name).read_bytes() for name in built} == built


def test_every_dependency_but_rouge_score_has_a_wheel(tmp_path: Path) -> None:
    wheels = ("--only-binary", ":all:", "--no-binary", "rouge-score")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--quiet",
        "--ignore-installed",
        *wheels,
        ROOT,
        folder=tmp_path,
    )
