"""Whether two JSON reports say the same, but for when and how fast they were made.

Run: ``python benchmarks/same_reports.py OLD.json NEW.json``. Prints every difference with its path; exits 1 if there is
one.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

IGNORED = frozenset({"started_at", "duration_s", "commit", "version", "latency_s", "target_latency_s"})
ABSENT = object()


def differences(old: Any, new: Any, path: str = "$") -> Iterator[str]:
    """Yield the differences of JSON data, each with its path."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in IGNORED:
                yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), f"{path}.{key}")
        if list(old) != list(new) and old.keys() == new.keys():
            yield f"{path}: the order of keys: {', '.join(old)} -> {', '.join(new)}"
    elif isinstance(old, list) and isinstance(new, list):
        for number, (left, right) in enumerate(zip_longest(old, new, fillvalue=ABSENT)):
            yield from differences(left, right, f"{path}[{number}]")
    elif old is ABSENT or new is ABSENT or (type(old), old) != (type(new), new):
        yield f"{path}: {shown(old)} -> {shown(new)}"


def shown(value: Any) -> str:
    """Return a value as JSON on one line."""
    return "absent" if value is ABSENT else json.dumps(value, ensure_ascii=False)


def main(arguments: Sequence[str]) -> int:
    """Compare two files; return the exit code."""
    if len(arguments) != 2:
        print("usage: python benchmarks/same_reports.py OLD.json NEW.json", file=sys.stderr)
        return 2
    old, new = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments)
    found = list(differences(old, new))
    print("\n".join(found) if found else f"{len(new['suites'])} suites, no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
