"""METEOR, as NLTK computes it."""

__all__ = ("meteor_score",)

from collections.abc import Sequence

from pytest_llmeval.measures.wordnet import open_wordnet


def meteor_score(prediction: Sequence[str], reference: Sequence[str], wordnet: str | None = None) -> float:
    """Return METEOR of one answer: words are aligned by form, Porter stem, then WordNet synonym.

    F = PR / (0.9 P + 0.1 R), reduced by the share 0.5 (chunks / matches)³. In [0, 1); not symmetric. Definitions:
    Lavie and Agarwal 2007; NLTK's ``meteor_score``, which is called (it compares synonyms with stems, so that "car"
    is a synonym of "auto" but not of "automobile", whose stem is "automobil").

    Args:
        prediction: Words of the answer.
        reference: Words of the expected answer.
        wordnet: Folder of WordNet's database files; see `open_wordnet`.

    Raises:
        MissingDataError: If WordNet is not installed.
    """
    from nltk.translate.meteor_score import single_meteor_score

    return float(single_meteor_score(reference, prediction, wordnet=open_wordnet(wordnet)))
