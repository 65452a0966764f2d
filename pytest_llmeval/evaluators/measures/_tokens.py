"""Tokenizers of the text metrics."""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from pytest_llmeval.core import grouped, unknown_name

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
    """The suffix rules of Porter's stemmer by the last two letters of their suffixes, in order.

    Args:
        rules: Replacements, each with its suffixes.
    """
    return grouped((suffix[-2:], (suffix, replacement)) for replacement, suffixes in rules for suffix in suffixes)


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
    """The Porter stem of a word of at least three lower-case ASCII letters or digits."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    # Looking at the ending first spares most words most of the calls.
    if word[-1] == "s":
        word = _without_plural(word)
    if word[-1:] in ("d", "g"):
        word = _without_participle(word)
    if word[-1:] == "y" and len(word) > 2 and _word_shape(word)[-2] == "c":  # noqa: PLR2004 (more than one letter before)
        word = word[:-1] + "i"
    if word[-2:] in _STEP_2 or word[-2:] == "gi":
        word = _step_2(word)
    if word[-2:] in _STEP_3:
        word = _replace_suffix(word, _STEP_3, 1)
    if word[-2:] in _STEP_4:
        word = _replace_suffix(word, _STEP_4, 2)
    return _without_e(word) if word[-1:] == "e" or word[-2:] == "ll" else word


def _word_shape(word: str) -> str:
    """The consonants and vowels of a word as ``c`` and ``v``, for Porter's stemmer."""
    shape = word.translate(_KINDS)
    if "y" not in shape:
        return shape
    out: list[str] = []
    for kind in shape:  # y is a vowel behind a consonant
        out.append(("v" if out and out[-1] == "c" else "c") if kind == "y" else kind)
    return "".join(out)


def _without_plural(word: str) -> str:
    """A word without the ending of a plural: step 1a of Porter's stemmer."""
    if word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-1] if len(word) == len("ties") else word[:-2]
    return word[:-2] if word.endswith("sses") else word[:-1]


def _without_participle(word: str) -> str:
    """A word without the ending of a participle: step 1b of Porter's stemmer."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("tied") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if "vc" in _word_shape(word[:-3]) else word
    if word.endswith("ed"):
        base = word[:-2]
    elif word.endswith("ing"):
        base = word[:-3]
    else:
        return word
    return _infinitive(base) if "v" in _word_shape(base) else word


def _infinitive(base: str) -> str:
    """The infinitive of what is left of a participle, as far as Porter's rules tell it: hoping, hopping."""
    shape = _word_shape(base)
    if base[-2:] in ("at", "bl", "iz"):
        return base + "e"
    if base[-1] == base[-2:-1] and shape[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if shape.count("vc") == 1 and _is_short(base, shape) else base


def _is_short(word: str, shape: str) -> bool:
    """Whether a word is short for Porter's stemmer: it ends as ``hop``, though not in w, x or y, or is like ``at``."""
    return (shape[-3:] == "cvc" and word[-1] not in "wxy") or shape == "vc"


def _step_2(word: str) -> str:
    """A word with a double suffix shortened, such as ``ization`` to ``ize``: step 2 of Porter's stemmer."""
    if word.endswith("alli") and "vc" in _word_shape(word[:-4]):
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if "vc" in _word_shape(word[:-3]) else word
    if word.endswith("ization"):
        return word[:-5] + "e" if "vc" in _word_shape(word[:-7]) else word
    return _replace_suffix(word, _STEP_2, 1)


def _replace_suffix(word: str, rules: _Rules, least: int) -> str:
    """A word with the suffix of the first of Porter's rules that fits replaced, if enough stands before it."""
    for suffix, replacement in rules.get(word[-2:], ()):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if _word_shape(base).count("vc") < least or (suffix == "ion" and base[-1] not in "st"):
                return word
            return base + replacement
    return word


def _without_e(word: str) -> str:
    """A word without a final e or double l: step 5 of Porter's stemmer."""
    if word[-1:] == "e":
        shape = _word_shape(word[:-1])
        measure = shape.count("vc")
        if measure > 1 or (measure == 1 and not _is_short(word[:-1], shape)):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _word_shape(word[:-1]).count("vc") > 1 else word


_CHARACTERS = (
    "["
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U000323af"  # Han, supplementary planes
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # Kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "]"
)
_MARKS = (
    r"\"'()\[\]{}<>:;\u00ab\u00bb\u00b7\u2010-\u2015\u2018-\u201f\u2039\u203a"
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301f\u3030\u303d\u30fb"
)
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
_ZERO_WIDTH_SPACE = 0x200B


@cache
def _character() -> re.Pattern[str]:
    """The pattern of one East Asian character; texts in other scripts need not wait until it is compiled."""
    return re.compile(_CHARACTERS)


@cache
def _mark() -> re.Pattern[str]:
    """The pattern of East Asian punctuation, except between two letters or digits (``12:30``)."""
    # The set comes first: a pattern that begins with it finds its places ten times as fast.
    return re.compile(rf"[{_MARKS}](?:(?<![^\W_].)|(?![^\W_]))")


def is_east_asian(character: str) -> bool:
    """Whether a tokenizer splits off a character: Han, Kana, Bopomofo or Hangul."""
    return not character.isascii() and type(_SEPARATED[ord(character[0])]) is str


class _SeparatedTable(dict[int, int | str]):
    """For `str.translate`, which takes a tenth of the time of a pattern: a space on either side of each character."""

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        value = self[code] = f" {character} " if _character().match(character) else code
        return value


_SEPARATED = _SeparatedTable()


@lru_cache(maxsize=256)
def separate_east_asian(text: str, *, keep_marks: bool) -> str:
    """Normalise a text (NFKC) and put spaces round every Han, Kana and Hangul character.

    In a text that has such characters, quotes, brackets, dashes and colons are set apart as well, because no
    spaces separate them from adjacent words.

    Args:
        text: Any text.
        keep_marks: Whether those marks stay, as words of their own, or become spaces.

    Returns:
        The text, ready for a tokenizer that splits at spaces.
    """
    text = unicodedata.normalize("NFKC", text)
    if text.isascii() or not _character().search(text):
        return text
    text = text.translate(_SEPARATED)
    return _mark().sub(r" \g<0> " if keep_marks else " ", text)


class _WordTable(dict[int, int | str | None]):
    """For `str.translate`: letters, digits and their marks stay, invisible characters go, the rest is a space."""

    def __missing__(self, code: int) -> int | str | None:
        value = self[code] = self._replacement(code)
        return value

    @staticmethod
    def _replacement(code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        if code in _VARIATION_SELECTORS or (category == "Cf" and code != _ZERO_WIDTH_SPACE):
            return None
        return code if chr(code).isalnum() or category.startswith("M") else " "


_WORD_TABLE = _WordTable()


def unicode_words(text: str) -> list[str]:
    """The runs of letters and digits of any script, with the combining marks that belong to them.

    Zero-width joiners, soft hyphens and variation selectors are dropped; a zero-width space separates.
    """
    return [word for word in text.translate(_WORD_TABLE).split() if any(map(str.isalnum, word))]


_CLOSERS = "]})>\"'»”’ \n\t\r"
"""What NLTK allows between the final period of a text and its end."""

_UNUSUAL_SPACE = re.compile(r"""[^\S \n\t\r]|[\n\t\r]["']|["'][\n\t\r]""")
"""White space that is more than a separator: NLTK's quote rules ask for a plain space, and some characters
separate words for `str.split` but are no ``\\s`` of NLTK's."""

_WORD = r"""(["(]?)([a-z0-9]+(?:-[a-z0-9]+)*?)"""
_CLITIC = r"n't|'(?:s|m|d|ll|re|ve)"
_SIMPLE_INNER = re.compile(rf"""{_WORD}({_CLITIC}|\.)?([,:;!?)"]*)""")
_SIMPLE_LAST = re.compile(rf"""{_WORD}({_CLITIC})?([,:;!?)"]*\.?[)"]*)""")
"""Shapes whose tokens are plain to see; they spare most words the full tokenizer."""

_CONTRACTED = frozenset({"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"})

_RULES = (
    ('^"', " `` "),
    ("[«“‘„]|`{1,2}", r" \g<0> "),
    (r"""([ ([{<])(?:"|'')""", r"\1 `` "),
    (r"(?i)(?<!\w)'(?!(?:re|ve|ll|[mtsdn])\b)(?=\w)", "' "),
    (r"""([^.])\.([])}>"'»”’ ]*+)\s*$""", r"\1 . \2 "),
    (r"([:,])(\D|$)", r" \1 \2"),
    (r"\.{2,}|[;@#$%&?!‒–—―]", r" \g<0> "),
    (r"([^'])' ", r"\1 ' "),
    (r"--|''|[][(){}<>*»”’]", r" \g<0> "),
    ('"', " '' "),
    (r"^|\s+|$", " "),
    (r"([^' ])('[smd]?) ", r"\1 \2 "),
    (r"([^' ])('(?:ll|re|ve)|n't) ", r"\1 \2 "),
)
"""What sets tokens apart: the rules of NLTK 3.10 in its order, those that cannot interact joined; `import nltk` takes
seconds, since it loads `scipy.stats`, and scikit-learn where that is installed.

They are for `regex`, as NLTK's are: to `re`, a combining mark is no part of a word, and U+001C is white space.
"""
_CONTRACTIONS = (
    (
        r"\b(can(?=not\b)|d(?='ye\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|more(?='n\b)|wan(?=na\s))('?\w+)",
        r" \1 \2 ",
    ),
    (r" ('t)(is|was)\b", r" \1 \2 "),
)
"""The last rules, which NLTK gives to `re`."""


def treebank_tokens(text: str) -> list[str]:
    """The tokens of ``nltk.word_tokenize(text, preserve_line=True)`` for a lower-cased text.

    NLTK's rules look at most one character beyond a word, with two exceptions: quotes at the start of the text,
    and the final period, which may be followed by closing quotes and brackets. So a text is a first chunk, inner
    chunks and a last part; each is tokenised between neutral neighbours and remembered.

    Args:
        text: A text in lower case.

    Returns:
        The tokens, in order.
    """
    body = text.rstrip(_CLOSERS)
    if not body or not (text.isprintable() or _UNUSUAL_SPACE.search(text) is None):
        return list(_tokenize_whole(text))
    chunks = body.split()
    last = chunks.pop() + text[len(body) :]
    if not chunks:
        return list(_tokenize_whole(text) if text[0].isspace() else _tokenize_only(last))
    first = _tokenize_first(chunks.pop(0)) if text[0] in "\"'" else ()
    tokens = list(first)
    for chunk in chunks:
        if _is_plain(chunk):
            tokens.append(chunk)  # half of the time of remembering it, where words are met for the first time
        else:
            tokens += _tokenize_inner(chunk)
    tokens += _tokenize_last(last)
    return tokens


@cache
def _penn_rules() -> tuple[Callable[[str], str], ...]:
    """The rules of NLTK's Treebank tokenizer as functions of a text, for BLEU."""
    import regex

    rules = [partial(regex.compile(pattern).sub, replacement) for pattern, replacement in _RULES]
    contractions = [partial(re.compile(pattern, re.IGNORECASE).sub, by) for pattern, by in _CONTRACTIONS]
    return (*rules, *contractions)


def _tokenize_whole(text: str) -> tuple[str, ...]:
    """The Treebank tokens of a text by all of NLTK's rules, for BLEU."""
    for separate in _penn_rules():
        text = separate(text)
    return tuple(text.split())


@lru_cache(maxsize=1 << 12)
def _tokenize_only(text: str) -> tuple[str, ...]:
    """The Treebank tokens of a text that is one chunk."""
    return _simple(_SIMPLE_LAST, text) or _tokenize_whole(text)


@lru_cache(maxsize=1 << 12)
def _tokenize_first(chunk: str) -> tuple[str, ...]:
    """The Treebank tokens of a text's first chunk, where quotation marks open."""
    return _simple(_SIMPLE_INNER, chunk) or _tokenize_whole(chunk + " x")[:-1]


@lru_cache(maxsize=1 << 15)
def _tokenize_inner(chunk: str) -> tuple[str, ...]:
    """The Treebank tokens of a chunk inside a text."""
    return _simple(_SIMPLE_INNER, chunk) or _tokenize_whole(f"x {chunk} x")[1:-1]


@lru_cache(maxsize=1 << 12)
def _tokenize_last(chunk: str) -> tuple[str, ...]:
    """The Treebank tokens of a text's last chunk, where the final period is split off."""
    return _simple(_SIMPLE_LAST, chunk) or _tokenize_whole("x " + chunk)[1:]


def _is_plain(chunk: str) -> bool:
    """Whether a chunk is one Treebank token: ASCII letters and digits, and no contraction."""
    return chunk.isalnum() and chunk.isascii() and chunk not in _CONTRACTED


def _simple(shape: re.Pattern[str], chunk: str) -> tuple[str, ...]:
    """The Treebank tokens of a word with its clitic and punctuation; nothing where a further rule may apply."""
    if _is_plain(chunk):
        return (chunk,)
    match = shape.fullmatch(chunk)
    if match is None:
        return ()
    opening, word, clitic, closing = match.groups()
    if not _CONTRACTED.isdisjoint(word.split("-")):
        return ()
    tokens = ["``" if opening == '"' else opening, word + "." if clitic == "." else word]
    tokens.append("" if clitic == "." else clitic or "")
    tokens += ["''" if mark == '"' else mark for mark in closing]
    return tuple(filter(None, tokens))


Split: TypeAlias = Callable[[str], Sequence[str]]

_SENTENCE_MARKS = str.maketrans(".,!?", "    ")
_STEMMED_ABOVE = 3
"""Characters up to which rouge-score leaves a word unstemmed."""

_LONGEST_CHUNK = 64
_MOST_CHUNKS = 1 << 16


class Tokenizer(Struct, frozen=True):
    """The word rules of a tokenizer, one for each text metric.

    Attributes:
        name: As in options and signatures.
        f1: Words of token F1.
        rouge: Words of ROUGE.
        bleu: Words of BLEU.
        meteor: Words of METEOR.
        stems: Whether the words of ROUGE are Porter stems.
    """

    name: str
    f1: Split
    rouge: Split
    bleu: Split
    meteor: Split
    stems: bool = False

    @classmethod
    def add(cls, name: str, function: Split) -> None:
        """Make a function available as the option ``tokenizer`` of text evaluators.

        Args:
            name: How options call it.
            function: Text to words; all metrics count the same words, unstemmed.

        Raises:
            ValueError: If another tokenizer has that name.
        """
        tokenizer = cls(name, function, function, function, function)
        if _TOKENIZERS.setdefault(name, tokenizer) != tokenizer:
            raise ValueError(f"tokenizer {name!r} exists already: choose another name")

    @staticmethod
    def named(name: str) -> "Tokenizer":
        """The tokenizer of text metrics with a name.

        The names are ``auto``, ``words``, ``characters``, ``whitespace`` and the registered ones.

        Raises:
            ValueError: If there is none of that name.
        """
        try:
            return _TOKENIZERS[name]
        except KeyError:
            raise ValueError(unknown_name("tokenizer", name, _TOKENIZERS)) from None


@lru_cache(maxsize=1 << 16)
def porter_stem(word: str) -> str:
    """The stem of a word that rouge-score uses: Porter's (1980, with NLTK's extensions) above 3 characters."""
    return stem(word) if len(word) > _STEMMED_ABOVE else word


def _f1_words(text: str) -> list[str]:
    """The words of a text for token F1: in lower case, without the marks of sentences."""
    return text.translate(_SENTENCE_MARKS).lower().split()


class _RougeStemmer:
    """The stemmer of rouge-score: ours, which remembers words."""

    stem = staticmethod(porter_stem)


class _RougeTable(dict[str, tuple[str, ...]]):
    """The tokens of rouge-score by chunk, a text between white space: no token of its reaches into the next one."""

    def __init__(self, tokenize: Callable[[str, _RougeStemmer], list[str]]) -> None:
        super().__init__()
        self._tokenize = tokenize
        self._stemmer = _RougeStemmer()

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        core = chunk.strip(string.punctuation)  # marks are no part of a token, and come with any word
        if core.isalnum() and core.isascii():  # of which the tokenizer leaves nothing but the stem
            tokens: tuple[str, ...] = (porter_stem(core),)
        else:
            tokens = tuple(self._tokenize(core, self._stemmer))
        if len(chunk) <= _LONGEST_CHUNK:
            if len(self) >= _MOST_CHUNKS:
                self.clear()
            self[chunk] = tokens
        return tokens


@cache
def rouge_table() -> _RougeTable:
    """The table of chunks for ROUGE, which tokenizes with rouge-score what it does not have."""
    from rouge_score.tokenize import tokenize

    return _RougeTable(tokenize)


def _rouge_words(text: str) -> list[str]:
    """The words of a text for ROUGE by rouge-score's own rule, stemmed."""
    return list(chain.from_iterable(map(rouge_table().__getitem__, text.lower().split())))


def _bleu_words(text: str) -> list[str]:
    """The words of a text for BLEU by NLTK's own rule."""
    return treebank_tokens(text.lower())


def _auto_f1(text: str) -> list[str]:
    """The words of a text for token F1 in any script, by the tokenizer ``auto``."""
    return _f1_words(text if text.isascii() else separate_east_asian(text, keep_marks=False))


def _auto_rouge(text: str) -> list[str]:
    """The words of a text for ROUGE in any script, by the tokenizer ``auto``."""
    if text.isascii():
        return _rouge_words(text)
    words = unicode_words(separate_east_asian(text, keep_marks=False).lower())
    return [porter_stem(word) if word.isascii() else word for word in words]


def _auto_bleu(text: str) -> list[str]:
    """The words of a text for BLEU in any script, by the tokenizer ``auto``."""
    return _bleu_words(text if text.isascii() else separate_east_asian(text, keep_marks=True))


def _auto_meteor(text: str) -> list[str]:
    """The words of a text for METEOR in any script, by the tokenizer ``auto``."""
    return (text if text.isascii() else separate_east_asian(text, keep_marks=True)).split()


def _character_tokens(text: str) -> list[str]:
    """The characters of a text as tokens of all text metrics, by the tokenizer ``characters``."""
    return list("".join(unicodedata.normalize("NFKC", text).lower().split()))


def _whitespace_tokens(text: str) -> list[str]:
    """The words of a text between white space, by the tokenizer ``whitespace``."""
    return text.lower().split()


_TOKENIZERS = {
    "auto": Tokenizer("auto", _auto_f1, _auto_rouge, _auto_bleu, _auto_meteor, stems=True),
    "words": Tokenizer("words", _f1_words, _rouge_words, _bleu_words, str.split, stems=True),
}
Tokenizer.add("characters", _character_tokens)
Tokenizer.add("whitespace", _whitespace_tokens)
