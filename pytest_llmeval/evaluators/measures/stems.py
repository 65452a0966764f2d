"""Porter stems (1980) with NLTK's extensions: the same as NLTK's, several times as fast for words not met before.

The shape of a word says for each letter whether it is a vowel (v) or a consonant (c). The measure of a stem, on which
most rules depend, is how often ``vc`` occurs in its part of the shape.
"""

__all__ = ("stem",)

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

_Rules: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]

_IRREGULAR = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "innings": "inning",
    "outings": "outing",
    "cannings": "canning",
    **{word: word for word in ("sky", "news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")},
}
_KINDS = str.maketrans({**{chr(code): "c" for code in range(128)}, **dict.fromkeys("aeiou", "v"), "y": "y"})


def _by_ending(*rules: tuple[str, Iterable[str]]) -> _Rules:
    """Return rules by the last two letters of their suffixes, in order.

    Args:
        rules: Replacements, each with its suffixes.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for replacement, suffixes in rules:
        for suffix in suffixes:
            found.setdefault(suffix[-2:], []).append((suffix, replacement))
    return found


# Of two suffixes that end in the same letters the longer one stands first, as in the paper.
_STEP_2 = _by_ending(
    *(("ate", ["ational", "ation", "ator"]), ("tion", ["tional"]), ("ence", ["enci"]), ("ance", ["anci"])),
    *(("ble", ["bli", "biliti"]), ("al", ["alli", "alism", "aliti"]), ("ent", ["entli"]), ("e", ["eli"])),
    *(("ous", ["ousli", "ousness"]), ("ive", ["iveness", "iviti"]), ("ful", ["fulness", "fulli"])),
    ("ize", ["izer"]),
)
_STEP_3 = _by_ending(("ic", ["icate", "iciti", "ical"]), ("", ["ative", "ful", "ness"]), ("al", ["alize"]))
_STEP_4 = _by_ending(
    ("", ["al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"]),
    ("", ["ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"]),
)


def stem(word: str) -> str:
    """Return the stem of a word of at least three lower-case ASCII letters or digits."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    # Looking at the ending first spares most words most of the calls.
    if word[-1] == "s":
        word = _without_plural(word)
    if word[-1:] in ("d", "g"):
        word = _without_participle(word)
    if word[-1:] == "y" and len(word) > 2 and _shape(word)[-2] == "c":  # noqa: PLR2004 (more than one letter before)
        word = word[:-1] + "i"
    if word[-2:] in _STEP_2 or word[-2:] == "gi":
        word = _step_2(word)
    if word[-2:] in _STEP_3:
        word = _replaced(word, _STEP_3, 1)
    if word[-2:] in _STEP_4:
        word = _replaced(word, _STEP_4, 2)
    return _without_e(word) if word[-1:] == "e" or word[-2:] == "ll" else word


def _shape(word: str) -> str:
    shape = word.translate(_KINDS)
    if "y" not in shape:
        return shape
    out: list[str] = []
    for kind in shape:  # y is a vowel behind a consonant
        out.append(("v" if out and out[-1] == "c" else "c") if kind == "y" else kind)
    return "".join(out)


def _without_plural(word: str) -> str:
    if word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-1] if len(word) == len("ties") else word[:-2]
    return word[:-2] if word.endswith("sses") else word[:-1]


def _without_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("tied") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if "vc" in _shape(word[:-3]) else word
    if word.endswith("ed"):
        rest = word[:-2]
    elif word.endswith("ing"):
        rest = word[:-3]
    else:
        return word
    return _mended(rest) if "v" in _shape(rest) else word


def _mended(rest: str) -> str:
    """Return the infinitive of what is left of a participle, as far as rules tell it: hoping, hopping."""
    shape = _shape(rest)
    if rest[-2:] in ("at", "bl", "iz"):
        return rest + "e"
    if rest[-1] == rest[-2:-1] and shape[-1] == "c":
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if shape.count("vc") == 1 and _is_short(rest, shape) else rest


def _is_short(word: str, shape: str) -> bool:
    """Whether a word ends in consonant, vowel, consonant other than w, x and y, or is vowel and consonant."""
    return (shape[-3:] == "cvc" and word[-1] not in "wxy") or shape == "vc"


def _step_2(word: str) -> str:
    if word.endswith("alli") and "vc" in _shape(word[:-4]):
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if "vc" in _shape(word[:-3]) else word
    if word.endswith("ization"):
        return word[:-5] + "e" if "vc" in _shape(word[:-7]) else word
    return _replaced(word, _STEP_2, 1)


def _replaced(word: str, rules: _Rules, least: int) -> str:
    """Replace the suffix of the first rule that fits, if the measure of what is before it is large enough."""
    for suffix, replacement in rules.get(word[-2:], ()):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if _shape(rest).count("vc") < least or (suffix == "ion" and rest[-1] not in "st"):
                return word
            return rest + replacement
    return word


def _without_e(word: str) -> str:
    if word[-1:] == "e":
        shape = _shape(word[:-1])
        measure = shape.count("vc")
        if measure > 1 or (measure == 1 and not _is_short(word[:-1], shape)):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _shape(word[:-1]).count("vc") > 1 else word
