"""Limits on the tools of one case."""

__all__ = ("CallLimits",)

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_llmeval.core.wording import counted
from pytest_llmeval.evaluators.tools.calls import ToolCall


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What a trace must and must not hold.

    Attributes:
        max_calls: Most calls, failed ones included.
        forbidden: Patterns of tools that may not be called, not even in vain.
        required: Patterns of tools; for each, a call that counts.
    """

    max_calls: int | None = None
    forbidden: Sequence[str] = ()
    required: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self.max_calls is not None or bool(self.forbidden or self.required)

    def unmet(self, calls: Sequence[ToolCall], counted_calls: Sequence[ToolCall]) -> Iterator[str]:
        """Yield the limits that a trace does not keep, with what was found.

        Args:
            calls: All calls.
            counted_calls: Those that count, failed ones perhaps left out.
        """
        if self.max_calls is not None and len(calls) > self.max_calls:
            yield f"found {counted(len(calls), 'tool call')}, expected at most {self.max_calls}"
        for pattern in self.forbidden:
            found = [str(call) for call in calls if fnmatchcase(call.name, pattern)]
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                yield f"found {found[0]}{more}, expected no call of {pattern}"
        for pattern in self.required:
            if not any(fnmatchcase(call.name, pattern) for call in counted_calls):
                called = ", ".join(dict.fromkeys(call.name for call in counted_calls)) or "no calls"
                yield f"found {called}, expected a call of {pattern}"
