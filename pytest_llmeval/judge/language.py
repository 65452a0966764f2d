"""Which language to instruct a judge in."""

__all__ = ("instruction_language",)

import re

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_JAPANESE_OR_KOREAN = re.compile("[\u3041-\u309f\u30a1-\u30fa\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_WORD = re.compile(r"[^\W_]+")
_HAN_IN_A_WORD = 2


def instruction_language(text: str, label: str | None = None) -> str:
    """Return ``zh`` or ``en``.

    Args:
        text: The question, by whose script the language is told: Chinese if its Han characters, at about two a word,
            are as many words as the others, and none is Japanese or Korean.
        label: The language as a case names it, such as ``zh-CN``; goes before the text.
    """
    if label:
        return "zh" if label.lower().startswith("zh") else "en"
    han = len(_HAN.findall(text))
    if not han or _JAPANESE_OR_KOREAN.search(text):
        return "en"
    others = len(_WORD.findall(_HAN.sub(" ", text)))
    return "zh" if han >= _HAN_IN_A_WORD * others else "en"
