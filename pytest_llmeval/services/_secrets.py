"""Secrets, and foreign text without them."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from msgspec import Struct

from pytest_llmeval.core import Fault, excerpt, printable, quotation, width_of

MASK: Final = "***"
SHORTEST_PART: Final = 8
"""A shorter part of a secret reveals nothing, and may be an ordinary word."""

_LONGEST_ADDRESS: Final = 100
_SHORTEST_SECRET: Final = 3
_SHORTEST_VALUE: Final = 6
_TELLING = re.compile(r"(?:KEYS?|PASSPHRASE|PASSWORDS?|PASSWD|SECRETS?|TOKEN)(?![A-Z])")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAMES: Final = frozenset(
    {
        *("accesstoken", "apikey", "apisecret", "authorization", "authtoken", "bearer", "bearertoken", "clientsecret"),
        *("cookie", "credentials", "password", "proxyauthorization", "secret", "secretkey", "token"),
        *("xapikey", "xauthtoken"),
    }
)


def environment_secrets(environment: Mapping[str, str]) -> list[str]:
    """The values of secret variables, such as ``OPENAI_API_KEY``, ``DB_PASSWORD`` or ``SEARCH_TOKEN``.

    A value has 6 characters and more; a plain word, such as ``ollama`` for a server without keys, has 8. Values of this
    process that were remembered stay secret when their variables are gone.
    """
    of_process = environment is os.environ
    # Iterating over `os.environ` decodes every name: a fifth of the time of a case whose findings are redacted.
    names = frozenset(getattr(environment, "_data", environment) if of_process else environment)
    values = (environment.get(name, "").strip() for name in _telling_names(names))
    present = [value for value in values if _is_secret(value)]
    return [*present, *sorted(_remembered.difference(present))] if of_process else present


_remembered: set[str] = set()


@lru_cache(maxsize=8)
def _telling_names(names: frozenset[str] | frozenset[bytes]) -> list[str]:
    """The names of environment variables that say that these hold secrets, in order."""
    return sorted(filter(_tells, map(os.fsdecode, names)))


@cache
def _tells(name: str) -> bool:
    """Whether the name of an environment variable says that it holds a secret, such as ``DB_PASSWORD``."""
    return _TELLING.search(name.upper()) is not None


def _is_secret(value: str) -> bool:
    """Whether the value of a variable named as a secret is long enough to be one; plain words need more letters."""
    return len(value) >= (SHORTEST_PART if value.isalpha() else _SHORTEST_VALUE)


def spelt(secrets: Iterable[str]) -> frozenset[str]:
    """Secrets as they appear in text, JSON, URLs and headers, to find them in foreign text.

    As they are, escaped, in hexadecimal digits and in Base64; and so for their words, such as the token of
    ``Bearer ...``.
    """
    return _spell_secrets(frozenset(secrets))


@lru_cache(maxsize=64)
def _spell_secrets(secrets: frozenset[str]) -> frozenset[str]:
    """The forms in which secrets and their words may appear in foreign text; cached."""
    parts: set[str] = set()
    for secret in map(str.strip, secrets):
        if len(secret) >= _SHORTEST_SECRET:
            parts |= {secret, *(word for word in secret.split() if len(word) >= SHORTEST_PART)}
    return frozenset(form for part in parts for form in _escaped_forms(part))


def _escaped_forms(part: str) -> set[str]:
    """The forms of a secret in JSON, Python, URLs, hexadecimal digits and Base64, to find it in foreign text."""
    escaped = {json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
    nested = {json.dumps(form)[1:-1] for form in escaped}
    in_urls = {quote(part), quote(part, safe=""), quote_plus(part)}
    lower = {re.sub("%..", lambda match: match.group().lower(), url) for url in in_urls}
    return {
        part,
        repr(part)[1:-1],
        *escaped,
        *(form.replace("/", r"\/") for form in escaped),
        *nested,
        *in_urls,
        *lower,
        *_encode_secret(part),
    }


def _encode_secret(part: str) -> Iterator[str]:
    """Yield a secret in hexadecimal digits, and as it stands in the Base64 of longer text, such as ``user:password``.

    Three bytes make four characters, so it depends on what precedes it; characters that it shares with that or with
    what follows are left out.
    """
    content = part.encode("utf-8", "surrogatepass")
    forms = [content.hex(), content.hex().upper()]
    for before in range(3):
        first, last = -(-8 * before // 6), 8 * (before + len(content)) // 6
        text = base64.b64encode(bytes(before) + content).decode()[first:last]
        forms += [text, text.translate(_URL_SAFE)]
    yield from (form for form in forms if len(form) >= SHORTEST_PART)


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _without(text: str, secrets: Iterable[str]) -> str:
    """Foreign text with ``***`` in place of secrets, the longest first: one may begin as another does."""
    lower = text.lower()
    for secret in _longest_first(frozenset(secrets)):
        if len(secret) >= SHORTEST_PART:
            if secret[:SHORTEST_PART].lower() in lower or secret[:SHORTEST_PART] in text:
                text = _without_long(text, secret)
                lower = text.lower()
        elif secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


_CUT = ("...", "\u2026", " ...", " \u2026")


def _without_long(text: str, secret: str) -> str:
    """Foreign text with ``***`` in place of a secret of eight characters or more, in any case or cut off."""
    lower, sought = text.lower(), secret.lower()
    if len(lower) != len(text) or len(sought) != len(secret):  # a few letters become two in lower case
        lower, sought = text, secret
    begin, place, pieces = sought[:SHORTEST_PART], 0, []
    while (start := lower.find(begin, place)) >= 0:
        end = start + _common(lower[start : start + len(sought)], sought)
        if end - start == len(sought) or lower.startswith(_CUT, end):
            pieces += [text[place:start], MASK]
            place = end
        else:
            pieces.append(text[place : start + 1])
            place = start + 1
    return "".join([*pieces, text[place:]]) if pieces else text


@lru_cache(maxsize=64)
def _longest_first(secrets: frozenset[str]) -> list[str]:
    """Secrets in the order of their removal from text: the longest first, since one may begin another."""
    return sorted(secrets, key=lambda secret: (-len(secret), secret))


_LONGEST = 300
_EXAMINED = 4000
_LOOKS_SECRET = re.compile(
    r"""(?ix)
    \b(?:bearer|basic)\s++[\w.~+/=*-]{8,}           # an Authorization header
    | \b(?:sk|pk|rk|xai|gsk|hf|ghp|key)[-_][\w*.-]{8,}   # keys of the usual providers
    | \bAIza[\w-]{20,}
    | (?<![\w-])(?>[\w-]*?\beyJ)[\w-]++\.[\w-]++\.[\w-]*  # a JSON Web Token, with what it is attached to
    | (?<![\w-])[\w-]*+(?:\*{3,}|\.{3}|\u2026)[\w*.-]{2,}  # a key whose middle was left out
    """
)


_CREDENTIALS = re.compile(r"(?<=://)(?P<credentials>[^\s@]++)(?P<at>@)?")
"""User and password of an address, such as a proxy's; without an ``@``, none."""


class Secrets(Struct, frozen=True):
    """Secrets to keep out of foreign text.

    Attributes:
        spelt: They, as they appear in text, JSON, URLs and headers.
    """

    spelt: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.spelt)

    @classmethod
    def of_variables(cls, variables: Iterable[str] = (), environment: Mapping[str, str] = os.environ) -> Self:
        """The values of environment variables that are secret, in every spelling.

        Args:
            variables: Names of those that a suite uses as secrets; others are known by their names.
            environment: Where they are.
        """
        return cls(spelt([*(environment.get(name, "") for name in variables), *environment_secrets(environment)]))

    @classmethod
    def of_key(cls, key: str) -> Self:
        """The key that was sent to a service, for its replies: a bad server may send it back.

        A reply is kept and recorded, so nothing else in it is touched, nor is a word such as ``ollama`` taken for a
        key.

        Example:
            >>> Secrets.of_key("0123456789abcdef").without("yes, 0123456789abcdef")
            'yes, ***'
            >>> Secrets.of_key("ollama").without("yes, ollama")
            'yes, ollama'
        """
        return cls(spelt([key])) if _is_secret(key) else cls()

    def without(self, text: str) -> str:
        """Foreign text with ``***`` in place of the secrets.

        They are found in capitals and small letters, and where they are cut (``...`` follows). One of less than eight
        characters may be a part of an ordinary word, where it stays.
        """
        return _without(text, self.spelt)

    def presentable(self, text: str) -> str:
        """Foreign text for people: without the secrets, and nothing invisible in its lines."""
        return printable(self.without(text), lines=True)

    def masked(self, value: Any) -> Any:
        """JSON data with ``***`` in place of the secrets in all its texts, names of fields included."""
        match value:
            case str():
                return self.without(value)
            case Mapping():
                return {self.masked(name): self.masked(field) for name, field in value.items()}
            case list() | tuple():
                return [self.masked(element) for element in value]
        return value

    def are_in(self, text: str) -> bool:
        """Whether a text has one of them, or what looks like a key and has a digit.

        Example:
            >>> secrets = Secrets()
            >>> secrets.are_in("Authorization: Bearer 0123456789abcdef"), secrets.are_in("basic information")
            (True, False)
        """
        if self.without(text) != text:
            return True
        credentials = (match["credentials"] for match in _CREDENTIALS.finditer(text) if match["at"])
        suspects = [*credentials, *(match.group() for match in _LOOKS_SECRET.finditer(text))]
        return any(any(map(str.isdigit, suspect)) for suspect in suspects)

    @staticmethod
    def remember(variables: Iterable[str] = ()) -> None:
        """Keep the secrets that the environment has now: a target may take them out of it before it shows them.

        Args:
            variables: Names of those that a suite uses as secrets; others are known by their names.
        """
        environment = getattr(os.environ, "unwatched", os.environ)
        _remembered.update(environment_secrets(environment))
        _remembered.update(filter(None, (environment.get(name, "").strip() for name in variables)))

    @staticmethod
    def forget() -> None:
        """Forget the secrets of the environment that were remembered, at the end of a run."""
        _remembered.clear()

    @staticmethod
    def is_name(name: str) -> bool:
        """Whether a header or a parameter of this name holds a secret, however it is spelt.

        Example:
            >>> Secrets.is_name("X-Api-Key"), Secrets.is_name("max_tokens")
            (True, False)
        """
        return re.sub(r"[\W_]", "", name.lower()) in _SECRET_NAMES

    @staticmethod
    def is_variable(name: str, named: Collection[str] = ()) -> bool:
        """Whether an environment variable holds a secret, by its name or because a suite names it."""
        return name in named or _tells(name)

    @staticmethod
    def variable_fault(name: str, example: str) -> str | None:
        """The fault of the name, in a suite file, of an environment variable that holds a secret.

        What was found is not repeated: it may be the secret itself.
        """
        if _VARIABLE.fullmatch(name):
            return None
        return f"found an invalid name of an environment variable, expected one such as {example}"


class Redactor:
    """Replaces secrets in foreign text by ``***``, and makes the text fit for a message.

    Secrets are those given, the values of environment variables with names such as ``OPENAI_API_KEY``, and what looks
    like a key.

    Args:
        secrets: Known ones. Their words, such as the token of ``Bearer ...``, go too, and so do their beginnings and
            ends of eight characters and more, which servers show to identify keys.
        environment: Where further ones are; default: this process's.
    """

    def __init__(self, secrets: Iterable[str] = (), environment: Mapping[str, str] = os.environ) -> None:
        self._secrets = tuple(secrets)
        self._environment = environment

    @cached_property
    def _whole(self) -> list[str]:
        return _longest_first(spelt([*self._secrets, *environment_secrets(self._environment)]))

    @cached_property
    def _parts(self) -> list[str]:
        return _longest_first(frozenset(form for form in spelt(self._secrets) if len(form) >= SHORTEST_PART))

    def redacted(self, text: str) -> str:
        """The text without secrets."""
        text = _without(text, self._whole)
        for part in self._parts:
            text = _without_beginning(text, part)
            text = _without_beginning(text[::-1], part[::-1])[::-1]
        text = _CREDENTIALS.sub(lambda match: f"{MASK}@" if match["at"] else match.group(), text)
        return _LOOKS_SECRET.sub(MASK, text)

    def line(self, text: str) -> str:
        """The text redacted, printable, on one line, at most 300 characters long.

        Example:
            >>> Redactor().line("Incorrect key:   sk-abcdefghijkl")
            'Incorrect key: ***'
        """
        # Cut only after redaction: half a key would not be recognized.
        redacted = self.redacted(text[:_EXAMINED])
        return excerpt(
            " ".join("".join(" " if character.isspace() else character for character in redacted).split()), _LONGEST
        )

    def excerpt(self, content: bytes | str, *, end: bool = False) -> str:
        """The beginning, or the end, of what was written, redacted and quoted."""
        examined = content[-_EXAMINED:] if end else content[:_EXAMINED]
        text = examined if isinstance(examined, str) else examined.decode("utf-8", "replace")
        return quotation(self.redacted(text).strip(), _LONGEST, end=end)


def _without_beginning(text: str, secret: str) -> str:
    """Foreign text with ``***`` in place of the beginnings of a secret, as long as they reach."""
    begin, place, pieces = secret[:SHORTEST_PART], 0, []
    while (start := text.find(begin, place)) >= 0:
        pieces += [text[place:start], MASK]
        place = start + _common(text[start : start + len(secret)], secret)
    return "".join([*pieces, text[place:]]) if pieces else text


def _common(text: str, other: str) -> int:
    """The number of characters with which foreign text and a secret begin alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


_SOURCE_MARK: Final = "    | "
"""Beginning of the lines that show the source of a fault."""

_MOST_SOURCES = 10
_SOURCE_WIDTH = 100
_LARGEST_SOURCE = 1 << 23
_AROUND = 2000
_LINE_BREAK = re.compile(r"\r\n?|\n")
_NAME = re.compile(r"[A-Za-z][\w-]*")
_OPEN = re.compile(r"\s*-|.*[:|>][-+\d]*\s*$")
"""A line whose value may be in the next one: an item of a list, or a key without value."""


class ServiceAddress(Struct, frozen=True):
    """The HTTP address of a service, such as a judge's, which may hold secrets.

    Attributes:
        url: The address as the user wrote it.
    """

    url: str

    def note(self, *keys: str) -> str:
        """The name of the service and its keys in the notes of a run, which contains no secret.

        Args:
            keys: The names of the environment variables that hold the keys.
        """
        return " ".join((hashlib.sha256(self.url.encode(errors="surrogatepass")).hexdigest()[:16], *keys))

    def fault(self, expected: str, secrets: str) -> str | None:
        """The fault of the address; the message holds no part that may be secret.

        Args:
            expected: What to write instead, for the message.
            secrets: Where user names and passwords belong, for the message.
        """
        public = re.split("[?#]", self.url, maxsplit=1)[0]
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable, parts = False, None
        if "@" in (parts.netloc if usable and parts is not None else public):
            return f"found a user name or password in the address, expected {expected}, and {secrets}"
        if not usable or not self.url.isprintable() or " " in self.url:
            return f"found {quotation(public, _LONGEST_ADDRESS)}, expected {expected}"
        return None

    @property
    def redacted(self) -> str:
        """The address without user, password, query and fragment.

        Example:
            >>> ServiceAddress("http://me:secret@host:81/v1?key=1").redacted
            'http://host:81/v1'
        """
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return "an address that cannot be read"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def proxy(self) -> str | None:
        """The address of the proxy for requests to the service; ``None`` where there is none.

        A session of aiohttp that trusts the environment would find it, too, but would also send passwords of a netrc
        file.
        """
        from urllib.request import getproxies, proxy_bypass

        parts = urlsplit(self.url)
        proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
        return f"http://{proxy}" if proxy and "//" not in proxy else proxy  # HOST:PORT alone is also usual


class FaultSources(Struct, frozen=True):
    """Lines of users' files, which messages show without secrets below the faults that are about them.

    Attributes:
        folder: The folder to which names of files are relative.
        texts: What was read of files, by their names in faults; others are read.
    """

    folder: Path
    texts: Mapping[str, str] = {}

    def below(self, faults: Iterable[object]) -> Iterator[str]:
        """Yield messages; below the first faults, lines of files, with a caret under the column.

        A line that has a secret, the name of one, or an address with a query is not shown.

        Args:
            faults: Faults, and other messages.
        """
        known = {name: _LINE_BREAK.split(text) for name, text in self.texts.items()}
        redactor = Redactor()
        sources = 0
        for fault in faults:
            yield str(fault)
            if not isinstance(fault, Fault) or fault.line < 1 or sources == _MOST_SOURCES:
                continue
            if fault.file not in known:
                known[fault.file] = _lines_of(self.folder / fault.file)
            lines = known[fault.file]
            if fault.line > len(lines):
                continue
            line, before = lines[fault.line - 1], lines[fault.line - 2][-_AROUND:] if fault.line > 1 else ""
            start = max(0, min(fault.column - 1 - _SOURCE_WIDTH // 2, len(line) - _SOURCE_WIDTH))
            around = line[max(0, start - _AROUND) : start + _SOURCE_WIDTH + _AROUND]
            context = f"{fault.path} {before if _OPEN.match(before) else ''} {around}"
            if not line.strip() or redactor.redacted(around) != around or _names_secret(context):
                continue
            sources += 1
            yield f"{_SOURCE_MARK}{excerpt(line[start:], _SOURCE_WIDTH)}"
            yield f"{_SOURCE_MARK}{' ' * width_of(printable(line[start : max(0, fault.column - 1)]))}^"

    @staticmethod
    def messages_in(text: str) -> list[str]:
        """The messages in a text that `below` made, without the lines of files."""
        return [line for line in text.splitlines() if not line.startswith(_SOURCE_MARK)]


def _names_secret(text: str) -> bool:
    """Whether a line of a user's file names a secret, or has an address with a query, which may hold one."""
    in_address = any("://" in word and ("?" in word or "#" in word) for word in text.split())
    return in_address or bool(_TELLING.search(text.upper())) or any(map(Secrets.is_name, _NAME.findall(text)))


def _lines_of(path: Path) -> list[str]:
    """The lines of a user's file to show, without secrets, below its faults; none if it is unreadable or too large."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
            return []
        return path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except (OSError, ValueError):
        return []
