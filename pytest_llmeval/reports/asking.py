"""Cost of judges and targets, and stability of repeats, as sentences."""

__all__ = ("asking_lines",)

from collections.abc import Iterator, Mapping

from pytest_llmeval.core.wording import counted, printable, seconds
from pytest_llmeval.reports.data import SuiteReport
from pytest_llmeval.scoring.usage import JudgeUsage, UsageReport


def asking_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield at most four sentences about a suite, and one for each juror of its panel."""
    if suite.left_out:
        yield f"only predicted cases: {suite.left_out} left out"
    if suite.stability:
        yield "repeats: " + ", ".join(f"{count} {status}" for status, count in suite.stability.items())
    if suite.usage is None:
        return
    if suite.usage.verdicts:
        yield f"judge: {_judged(suite.usage)}"
    for name, each in suite.usage.jurors.items():
        yield f"judge {printable(name)}: {_judged(each)}"
    if target := list(_of_target(suite.usage)):
        yield f"target: {'; '.join(target)}"


def _of_target(usage: UsageReport) -> Iterator[str]:
    amounts = [f"{usage.target_tokens:.0f} tokens"] if usage.target_tokens is not None else []
    amounts += [f"{usage.target_cost_usd:.4f} USD"] if usage.target_cost_usd is not None else []
    if amounts:
        yield ", ".join(amounts)
    if usage.target_latency_s is not None:
        yield _latency(usage.target_latency_s)


def _judged(usage: UsageReport | JudgeUsage) -> str:
    parts = [f"{counted(usage.verdicts, 'verdict')}, {usage.calls} requested in this run"]
    if usage.calls:
        known = usage.input_tokens is not None and usage.output_tokens is not None
        tokens = f"{usage.input_tokens} + {usage.output_tokens}" if known else "an unknown number of"
        cost = f"{usage.cost_usd:.4f} USD" if usage.cost_usd is not None else "cost unknown"
        parts.append(f"{tokens} tokens, {cost}")
    if isinstance(usage, UsageReport) and usage.latency_s is not None:
        parts.append(_latency(usage.latency_s))
    return "; ".join(parts)


def _latency(percentiles: Mapping[str, float]) -> str:
    return "latency " + ", ".join(f"{name} {seconds(value)}" for name, value in percentiles.items())
