"""Glob patterns find what pathlib finds, in a limited search that stays inside of the root."""

from pathlib import Path

import pytest

from pytest_llmeval.data import FilePattern
from pytest_llmeval.data.files import _places as places

FILES = ("a.json", "b.txt", "one/a.json", "one/two/c.json", "one/two/d[1].json", ".hidden/e.json", "one/.f.json")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with some files, beside a folder that does not belong to it."""
    for name in (*(f"root/{name}" for name in FILES), "outside/g.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.json", ["a.json"]),
        ("*", ["a.json", "b.txt"]),
        ("?.*", ["a.json", "b.txt"]),
        ("*/*.json", ["one/a.json"]),
        ("one/*/c.json", ["one/two/c.json"]),
        ("**/*.json", ["a.json", "one/a.json", "one/two/c.json", "one/two/d[1].json"]),
        ("**/a.json", ["a.json", "one/a.json"]),
        ("**/**/a.json", ["a.json", "one/a.json"]),
        ("one/**", ["one/a.json", "one/two/c.json", "one/two/d[1].json"]),
        ("one/two/../*.json", ["one/two/../a.json"]),
        ("one/two/d[[]1].json", ["one/two/d[1].json"]),
        (".hidden/*", [".hidden/e.json"]),
        ("one/.*", ["one/.f.json"]),
        ("nowhere/*.json", []),
        ("a.json/*", []),
        ("a.json", []),
    ],
)
def test_a_pattern_finds_files_and_no_hidden_ones(root: Path, pattern: str, names: list[str]) -> None:
    assert FilePattern(root, pattern).matches() == [root / name for name in names]
    assert FilePattern(Path("/"), str(root / pattern)).matches() == [root / name for name in names]


@pytest.mark.parametrize("pattern", ["../**/*.json", "one/../../outside/*", "../*/g.json", "/**/*.json", "../../**"])
def test_a_pattern_that_leads_out_of_the_root_is_refused_before_any_search(
    root: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_ENTRIES", 0)
    with FilePattern.within(root), pytest.raises(ValueError, match="which leads outside of"):
        FilePattern(root, pattern).matches()


def test_a_step_back_inside_of_the_root_is_allowed(root: Path) -> None:
    with FilePattern.within(root):
        assert FilePattern(root / "one", "../*.json").matches() == [root / "one" / ".." / "a.json"]


@pytest.mark.parametrize("pattern", ["*/../../outside/*.json", "**/../*.json"])
def test_a_step_back_behind_a_wildcard_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(ValueError, match=r"found '\.\.' behind a wildcard"):
        FilePattern(root, pattern).matches()


def test_links_lead_neither_outside_nor_in_circles(root: Path) -> None:
    (root / "one" / "away").symlink_to(root.parent / "outside")
    (root / "one" / "circle").symlink_to(root)
    (root / "one" / "near.json").symlink_to(root / "a.json")
    with FilePattern.within(root):
        found = [str(path.relative_to(root)) for path in FilePattern(root, "one/**/*.json").matches()]
        assert found == ["one/a.json", "one/near.json", "one/two/c.json", "one/two/d[1].json"]
        assert FilePattern(root, "one/*/g.json").matches() == []
        with pytest.raises(ValueError, match="which leads outside of"):
            FilePattern(root, "one/away/*.json").matches()
        (root / "one" / "far.json").symlink_to(root.parent / "outside" / "g.json")
        with pytest.raises(ValueError, match=r"found the link 'far\.json', which leads outside of"):
            FilePattern(root, "one/*.json").matches()


def test_a_search_stops_at_a_number_of_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_ENTRIES", 5)
    assert len(FilePattern(root, "*").matches()) == 2
    with pytest.raises(ValueError, match=r"found more than 5 files and folders in search of '\*\*/\*\.json'"):
        FilePattern(root, "**/*.json").matches()
