"""Judging: how long a run waits for judges, how fast stored verdicts are served, and that nothing is asked twice.

The judge is a local HTTP server that answers after 100 ms, in a process of its own, on a core of its own if there are
several. Processor time per call is that of a run which asks less that of a run which finds all verdicts stored.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LATENCY_S = 0.1
REPLY = {
    "choices": [{"message": {"content": '{"score": 0.8, "reasoning": "close"}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 200, "completion_tokens": 20},
}
BODY = json.dumps(REPLY).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
REQUEST = re.compile(rb"(?is)POST .*?\r\ncontent-length: (?P<length>\d+)\r\n.*?(?<=\r\n)\r\n")


@dataclass(frozen=True)
class Log:
    """What the judge saw: shared by its process and this one."""

    calls: Any
    times: Any

    def forget(self) -> None:
        """Begin anew."""
        self.calls.value = 0
        self.times[:] = [0.0, 0.0]

    def came(self) -> None:
        """Note a call."""
        with self.calls.get_lock():
            self.calls.value += 1
            self.times[0] = self.times[0] or time.monotonic()

    def answered(self) -> None:
        """Note an answer."""
        with self.calls.get_lock():
            self.times[1] = time.monotonic()

    @property
    def seconds(self) -> float:
        """From the first call to the last answer."""
        return float(self.times[1] - self.times[0])


class Judge(asyncio.Protocol):
    """One connection: requests with a length, answered after a while without a thread."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.received = b""

    def connection_made(self, transport: Any) -> None:
        """Keep where answers go."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.received += data
        while (request := REQUEST.match(self.received)) is not None:
            end = request.end() + int(request["length"])
            if len(self.received) < end:
                return
            self.received = self.received[end:]
            self.log.came()
            asyncio.get_running_loop().call_later(LATENCY_S, self.answer)

    def answer(self) -> None:
        """Send the answer."""
        self.log.answered()
        self.transport.write(ANSWER)


def serve(ready: Any, log: Log) -> None:
    if len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(0, cores[-1:])  # what it takes is not taken from the run

    async def serving() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Judge(log), "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serving())


@contextlib.contextmanager
def judge() -> Iterator[tuple[str, Log]]:
    ours, theirs = multiprocessing.Pipe()
    log = Log(multiprocessing.Value("i", 0), multiprocessing.Array("d", 2))
    process = multiprocessing.Process(target=serve, args=(theirs, log), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1", log
    finally:
        process.terminate()
        process.join()


def write_suite(folder: Path, url: str, cases: int) -> None:
    rows = [
        {"id": str(n), "input": f"What is the number {n}?", "expected": str(n), "prediction": f"It is {n}."}
        for n in range(cases)
    ]
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "judged.eval.yaml").write_text(
        "evaluators: [{judge: {mode: continuous}}]\nconfidence: null\n"
        f"judge: {{model: 'openai:local', base_url: '{url}'}}\n"
        "source: {format: jsonl, path: cases.jsonl}\n",
        encoding="utf-8",
    )


def run(folder: Path, *arguments: str) -> tuple[float, float]:
    """Return the seconds that the tests took, without the start of pytest, and the processor time of all."""
    command = [sys.executable, "-m", "pytest", "-q", "--llmeval", "-p", "no:cacheprovider", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    report = folder / "report.json"
    before = processor_time()
    subprocess.run(
        [*command, f"--llmeval-report={report}"], cwd=folder, check=True, capture_output=True, env=environment
    )
    seconds = float(json.loads(report.read_text(encoding="utf-8"))["run"]["duration_s"])
    return seconds, processor_time() - before


def processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def warm_rate(folder: Path, url: str, cases: int) -> float:
    """Return verdicts per second of processor time from a warm cache, questions built and keys made."""
    from pytest_llmeval import Case, get_evaluator
    from pytest_llmeval.judges import CachePlace, JudgeOptions, JudgeSpec, SuiteJudges
    from pytest_llmeval.services import Background

    evaluator: Any = get_evaluator("judge", mode="continuous")
    judges = SuiteJudges(
        JudgeOptions(cache=CachePlace(folder / ".llmeval" / "cache.sqlite3"), run="warm"), Background()
    )
    panel = judges.judge_of(
        folder / "judged.eval.yaml", JudgeSpec(model="openai:local", base_url=url), "judged.eval.yaml"
    )
    all_cases = [
        Case(str(n), f"What is the number {n}?", str(n), f"It is {n}.", {"language": "en"}) for n in range(cases)
    ]

    def serve_stored(case: Case) -> None:
        (question,) = evaluator.questions(case)
        assert judges.service.known(panel.bind(question, case.id)) is not None

    serve_stored(all_cases[0])  # opens the cache, and loads what is loaded once
    started = time.process_time()
    for case in all_cases:
        serve_stored(case)
    seconds = time.process_time() - started
    judges.close(whole_run=False)
    return cases / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 64, 256])
    options = parser.parse_args()
    print(f"{options.cases} judgements of {LATENCY_S * 1000:.0f} ms")
    with judge() as (url, log):
        for most in options.concurrency:
            ideal = options.cases * LATENCY_S / most
            print(f"{most} at a time: ideal {ideal:.2f} s")
            for name, arguments in (("one process", ()), ("-n 2", ("-n", "2"))):
                with tempfile.TemporaryDirectory() as temporary:
                    folder = Path(temporary)
                    write_suite(folder, url, options.cases)
                    log.forget()
                    wanted = (f"--llmeval-concurrency={most}", *arguments)
                    cold, cold_cpu = run(folder, *wanted)
                    asked, asking = log.calls.value, log.seconds
                    warm, warm_cpu = run(folder, *wanted)
                    each = (cold_cpu - warm_cpu) / asked * 1000
                    print(
                        f"  {name:12} asking {asking:5.2f} s = {asking / ideal:4.2f} x ideal, {asked} calls;", end=" "
                    )
                    print(f"{asked} calls of {each:4.2f} ms of processor time; cold run {cold:5.2f} s;", end=" ")
                    print(f"warm run {warm:5.2f} s, {log.calls.value - asked} calls;", end=" ")
                    print(f"{warm_rate(folder, url, options.cases):,.0f} stored verdicts a second")


if __name__ == "__main__":
    main()
