import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import nltk.data
import pytest
from nltk.translate.meteor_score import meteor_score as nltk_meteor_score

from pytest_llmeval.core import Case, MissingDataError
from pytest_llmeval.evaluators._text import TextEvaluator
from pytest_llmeval.evaluators.measures import _overlap as overlap
from pytest_llmeval.evaluators.measures import _overlap as wordnet
from pytest_llmeval.evaluators.measures._overlap import meteor_score

SYNSETS = {
    "noun": ["car auto automobile", "kid child", "dog domestic_dog"],
    "verb": ["buy purchase"],
    "adj": ["happy glad"],
    "adv": ["quickly rapidly"],
}
NUMBERS = {"noun": ("n", "05"), "verb": ("v", "40"), "adj": ("a", "00"), "adv": ("r", "02")}


def write_wordnet(folder: Path) -> Path:
    """Write a database of a few synsets, in the form of wndb(5WN)."""
    folder.mkdir(parents=True)
    for part, synsets in SYNSETS.items():
        letter, file_number = NUMBERS[part]
        data, index = "  1 WordNet 3.0 Copyright, a test's own words\n", "  1 WordNet 3.0 Copyright, as above\n"
        for synset in synsets:
            lemmas = synset.split()
            offset = len(data)
            listed = " ".join(f"{lemma} 0" for lemma in lemmas)
            frames = " 00" if part == "verb" else ""
            data += f"{offset:08} {file_number} {letter} {len(lemmas):02x} {listed} 000{frames} | a test\n"
            index += "".join(f"{lemma} {letter} 1 0 1 0 {offset:08}\n" for lemma in sorted(lemmas))
        (folder / f"data.{part}").write_text(data, "utf-8")
        (folder / f"index.{part}").write_text(index, "utf-8")
        (folder / f"{part}.exc").write_text("children child\n" if part == "noun" else "", "utf-8")
    return folder


def close(folder: str | None) -> None:
    for part in "nvar":
        wordnet.open_wordnet(folder)._data_file(part).close()


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a WordNet that other tests have opened alone."""
    fresh = lru_cache(wordnet.open_wordnet.__wrapped__)
    for module in (wordnet, overlap):
        monkeypatch.setattr(module, "open_wordnet", fresh)


@pytest.fixture
def small_wordnet(fresh_cache: None, tmp_path: Path) -> Iterator[str]:
    del fresh_cache
    folder = str(write_wordnet(tmp_path / "dict"))
    yield folder
    close(folder)


@pytest.fixture
def no_wordnet(fresh_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del fresh_cache
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    monkeypatch.setattr(wordnet, "_DEBIAN", str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("prediction", "reference", "matches"),
    [
        ("She bought a car", "she bought a auto", 4),
        ("one child", "one kid", 2),
        ("one children", "one kid", 2),
        ("running", "run", 1),
        ("a dog", "a domestic_dog", 1),
        ("car", "glad", 0),
        # NLTK compares synonyms with the stem of the reference's word: "automobil", "children".
        ("car", "automobile", 0),
        ("one kid", "one children", 1),
    ],
)
def test_words_match_by_form_stem_and_synonym(
    small_wordnet: str, prediction: str, reference: str, matches: int
) -> None:
    left, right = prediction.split(), reference.split()
    share = matches / len(left)
    expected = share * (1 - 0.5 / matches**3) if matches else 0
    assert meteor_score(left, right, small_wordnet) == pytest.approx(expected)


def test_the_score_is_the_one_of_nltk(small_wordnet: str) -> None:
    left = ["a", "glad", "child", "did", "buy", "the", "auto", "rapidly"]
    right = ["the", "kids", "purchase", "a", "car", "quickly", "happy"]
    reader = wordnet.open_wordnet(small_wordnet)
    score = meteor_score(left, right, small_wordnet)
    assert score == nltk_meteor_score([right], left, wordnet=reader)
    assert score > 0


def test_wordnet_is_read_once_and_nltk_search_path_stays_as_it_was(small_wordnet: str) -> None:
    before = list(nltk.data.path)
    assert wordnet.open_wordnet(small_wordnet) is wordnet.open_wordnet(small_wordnet)
    assert nltk.data.path == before


@pytest.mark.usefixtures("no_wordnet")
@pytest.mark.parametrize("packed", [False, True])
def test_wordnet_is_found_in_nltk_data(tmp_path: Path, packed: bool) -> None:
    folder = write_wordnet(tmp_path / "nltk_data" / "corpora" / "wordnet")
    if packed:
        shutil.make_archive(str(folder), "zip", root_dir=folder.parent, base_dir="wordnet")
        shutil.rmtree(folder)
    assert meteor_score(["car"], ["auto"]) == 0.5
    close(None)


@pytest.mark.usefixtures("no_wordnet")
def test_wordnet_is_found_where_debian_installs_it(tmp_path: Path) -> None:
    write_wordnet(tmp_path / "nothing")
    assert meteor_score(["car"], ["auto"]) == 0.5
    close(None)


def test_the_evaluator_reads_the_folder_it_is_given(small_wordnet: str) -> None:
    evaluator = TextEvaluator(metrics=("meteor",), wordnet=small_wordnet)
    assert evaluator.evaluate("the car", ["a ship", "the auto"])["meteor"] == pytest.approx(0.9375)


@pytest.mark.usefixtures("no_wordnet")
def test_a_missing_wordnet_surfaces_with_both_ways_to_install_it() -> None:
    case = Case(id="c", expected="a car", prediction="a car")
    with pytest.raises(MissingDataError, match=r"python -m nltk\.downloader wordnet.*apt install wordnet-base"):
        TextEvaluator(metrics=("meteor",)).measure(case)


@pytest.mark.usefixtures("no_wordnet")
def test_without_meteor_no_wordnet_is_needed() -> None:
    assert TextEvaluator().evaluate("a car", "a car")["f1"] == 1


def test_a_folder_without_wordnet_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"the WordNet file data\.noun of METEOR is missing in"):
        meteor_score(["a"], ["a"], str(tmp_path))


def test_an_incomplete_wordnet_is_named(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "dict")
    (folder / "index.verb").unlink()
    with pytest.raises(MissingDataError, match=r"is incomplete \(.*index\.verb"):
        meteor_score(["a"], ["a"], str(folder))
