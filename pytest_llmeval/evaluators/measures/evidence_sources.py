"""Evidence as listed by people and models: texts, addresses, or both."""

__all__ = ("EvidenceSource", "as_sources", "listed")

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """A piece of evidence.

    Attributes:
        text: What it is known by: its content, or its address where it has no content.
        urls: The addresses of sources that have a content.
    """

    text: str
    urls: tuple[str, ...] = ()


def as_sources(entries: Iterable[Any]) -> list[EvidenceSource]:
    """Return listed evidence, each text once, sorted.

    Args:
        entries: Texts, sources, or objects with ``content`` and ``url``. Blank ones, and what is none of these, are
            left out.
    """
    urls: dict[str, list[str]] = {}
    for entry in entries:
        source = entry if isinstance(entry, EvidenceSource) else _source(entry)
        if source is not None:
            urls.setdefault(source.text, []).extend(source.urls)
    return [EvidenceSource(text, tuple(sorted(set(found)))) for text, found in sorted(urls.items())]


def listed(entries: Any) -> str:
    r"""Return listed evidence as text: one piece a line, with its addresses; nothing for what is no list.

    >>> listed([{"content": "Bird survey", "url": "https://birds.example"}, "Register of boats"])
    'Bird survey (https://birds.example)\nRegister of boats'
    """
    if not isinstance(entries, list | tuple):
        return ""
    sources = as_sources(entries)
    lines = ((each.text, ", ".join(url for url in each.urls if url != each.text)) for each in sources)
    return "\n".join(f"{' '.join(text.split())} ({urls})" if urls else " ".join(text.split()) for text, urls in lines)


def _source(entry: Any) -> EvidenceSource | None:
    if isinstance(entry, str):
        return EvidenceSource(entry) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    content, url = (_text(entry.get(key)) for key in ("content", "url"))
    if not content:
        return EvidenceSource(url, (url,)) if url else None
    return EvidenceSource(content, (url,) if url else ())


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""
