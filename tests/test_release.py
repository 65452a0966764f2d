"""A release, done as far as it can be without a package index: version, bytes, metadata, licences, what it brings."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.version import Version
from project import ROOT
from servers import PATIENCE

from pytest_llmeval._version import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUFFIXES = {".css", ".csv", ".jinja", ".js", ".json", ".md", ".py", ".pyi", ".txt", ".typed", ".yaml", ".yml"}
PERMISSIVE = r"0BSD|Apache|BSD|CC0|CNRI|ISC|MIT|MPL-2\.0|PSF|Python-2\.0|Unlicense|Zlib"


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the commands of the page under "Build and check" have run, without those that download."""
    folder = tmp_path_factory.mktemp("released")
    checkout, tools = folder / "checkout", folder / "tools"
    tools.mkdir()
    archive = folder / "first"
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", archive, ROOT],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    with tarfile.open(next(archive.iterdir())) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    next((folder / "unpacked").iterdir()).rename(checkout)
    python = sys.executable
    tool(tools, "pip", f'echo "$@" >> {folder}/pip.txt')
    tool(
        tools,
        "python",
        f'[ "$1 $2" = "-m build" ] && shift 2 && exec {python} -m build --no-isolation "$@"; exec {python} "$@"',
    )
    tool(tools, "twine", f'exec {python} -m twine "$@"')
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PIP_", "PYTEST_"))},
        **{f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("EMAIL", "NAME")},
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }
    page = (ROOT / ".github" / "RELEASING.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    script = f"set -eu\ngit init -q\ngit add --all\ngit commit -qm Release --date 2026-01-01T00:00:00Z\n{commands}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "pip.txt").read_text(encoding="utf-8") == "install build twine\n"
    return checkout


@pytest.fixture(scope="module")
def wheel(released: Path) -> dict[str, bytes]:
    """The files of the wheel; those of its metadata by their name alone."""
    (path,) = (released / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {re.sub(r"^[^/]+\.dist-info/", "", name): archive.read(name) for name in archive.namelist()}


@pytest.mark.release
def test_the_numbers_of_the_version_agree(released: Path) -> None:
    assert str(Version(__version__)) == __version__
    names = sorted(path.name for path in (released / "dist").iterdir())
    assert names == [
        f"pytest_llmeval_suite-{__version__}-py3-none-any.whl",
        f"pytest_llmeval_suite-{__version__}.tar.gz",
    ]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    first_two = ".".join(__version__.split(".")[:2])
    assert f"| {first_two} | yes |" in (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")


def test_the_changelog_lists_versions_from_the_newest() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?", heading) for heading in headings]
    assert None not in found
    listed = [Version(version[1]) for version in found if version]
    assert listed[0] == Version(__version__)
    assert listed == sorted(set(listed), reverse=True)


@pytest.mark.parametrize(("tag", "fits"), [(f"v{__version__}", True), ("v99.0.0", False), (__version__[:-1], False)])
def test_a_tag_that_is_not_the_version_is_refused(tag: str, fits: bool) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    (command,) = (
        step["run"] for step in workflow["jobs"]["build"]["steps"] if step.get("name") == "The tag is the version"
    )
    environment = {**os.environ, "GITHUB_REF_NAME": tag}
    assert (subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, check=False).returncode == 0) == fits


@pytest.mark.release
def test_both_distributions_are_the_same_bytes_when_they_are_built_elsewhere(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = (released / "dist").glob("*.tar.gz")
    with tarfile.open(source) as packed:
        packed.extractall(tmp_path / "elsewhere", filter="data")
        times = {each.mtime for each in packed.getmembers()}
        owners = {(each.uid, each.gid, each.uname, each.gname) for each in packed.getmembers()}
    (checkout,) = (tmp_path / "elsewhere").iterdir()
    for each in checkout.rglob("*"):
        os.utime(each, (2_000_000_000, 2_000_000_000))
        each.chmod(each.stat().st_mode & 0o700)
    (epoch,) = times
    assert owners == {(0, 0, "", "")}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(epoch)))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", checkout]
    subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)
    for path in (released / "dist").iterdir():
        assert (tmp_path / "dist" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.release
def test_the_metadata_are_what_the_index_asks_for_and_shows(wheel: dict[str, bytes]) -> None:
    metadata = Metadata.from_email(wheel["METADATA"], validate=True)
    assert str(metadata.version) == __version__
    assert metadata.license_expression == "MIT"
    assert str(metadata.requires_python) == ">=3.11"
    assert metadata.description_content_type == "text/markdown"
    assert set(metadata.project_urls or ()) == {"Changelog", "Documentation", "Homepage", "Issues"}
    assert set(metadata.provides_extra or ()) == set(PROJECT["optional-dependencies"])
    assert not any("License ::" in each for each in metadata.classifiers or ())
    summary = message_from_bytes(wheel["METADATA"])["Summary"]
    assert summary == PROJECT["description"]
    assert len(summary) < 512


@pytest.mark.release
def test_entry_points_lead_somewhere(wheel: dict[str, bytes]) -> None:
    text = wheel["entry_points.txt"].decode()
    found = dict(re.findall(r"^(\w+) = ([\w.:]+)$", text, re.MULTILINE))
    assert found == {"llmeval_suite": "pytest_llmeval_suite", "llmeval": "pytest_llmeval.cli:main"}
    for place in found.values():
        module, _, name = place.partition(":")
        assert not name or callable(getattr(import_module(module), name))


@pytest.mark.release
def test_what_ships_is_ours_and_has_its_licence(wheel: dict[str, bytes]) -> None:
    assert wheel["licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    shipped = {name for name in wheel if "/" in name and not name.startswith("licenses/")}
    assert {Path(name).suffix or Path(name).name for name in shipped} <= SUFFIXES | {"py.typed"}
    foreign = re.compile(rb"(?i)copyright \(c\)|copyright \d{4}|all rights reserved|spdx-license")
    assert [name for name in sorted(shipped) if foreign.search(wheel[name])] == []


@pytest.mark.release
def test_the_sbom_lists_all_that_an_installation_brings_with_licences(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="installed for releases: what it needs makes jsonschema load slowly")
    path = tmp_path / "sbom.cdx.json"
    page = (ROOT / ".github" / "RELEASING.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^cyclonedx-py (environment .*)$", page, re.MULTILINE)
    arguments = line.replace("plain/bin/python", sys.executable).replace("sbom.cdx.json", str(path)).split()
    # its validation parses each address by a grammar for 20 s; a release does that
    command = [sys.executable, "-m", "cyclonedx_py", *arguments, "--no-validate"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=PATIENCE)
    listed = json.loads(path.read_text(encoding="utf-8"))
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", PROJECT["name"])
    components = {each["name"].lower().replace("_", "-"): each for each in listed["components"]}
    for each in PROJECT["dependencies"]:
        component = components[Requirement(each).name.lower()]
        assert component["purl"].endswith(f"@{component['version']}")
        assert component["licenses"]
        assert all(re.search(PERMISSIVE, json.dumps(licence)) for licence in component["licenses"]), component["name"]


def test_forms_of_issues_are_what_github_reads() -> None:
    forms = ROOT / ".github" / "ISSUE_TEMPLATE"
    for path in sorted(forms.glob("*.yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "config.yml":
            assert all({"name", "url", "about"} == each.keys() for each in form["contact_links"])
            continue
        assert {"name", "description", "body"} <= form.keys()
        ids = [each.get("id") for each in form["body"] if each["type"] != "markdown"]
        assert len(ids) == len(set(ids)) > 0
        for each in form["body"]:
            assert each["type"] in ("checkboxes", "dropdown", "input", "markdown", "textarea")
            assert ("value" if each["type"] == "markdown" else "label") in each["attributes"]
