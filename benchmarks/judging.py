"""Judging: how long a run waits for judges, how fast stored verdicts are served, and that nothing is asked twice.

The judge is a local HTTP server, in a process of its own, that answers after 100 ms.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LATENCY_S = 0.1
REPLY = {
    "choices": [{"message": {"content": '{"score": 0.8, "reasoning": "close"}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 200, "completion_tokens": 20},
}


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


def serve(ready: Any, log: Log) -> None:
    body = json.dumps(REPLY).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            log.came()
            time.sleep(LATENCY_S)
            log.answered()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        ready.send(server.server_address[1])
        server.serve_forever()


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


def run(folder: Path, *arguments: str) -> float:
    """Return the seconds that the tests took, without the start of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "--llmeval", "-p", "no:cacheprovider", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    report = folder / "report.json"
    subprocess.run(
        [*command, f"--llmeval-report={report}"], cwd=folder, check=True, capture_output=True, env=environment
    )
    return float(json.loads(report.read_text(encoding="utf-8"))["run"]["duration_s"])


def warm_rate(folder: Path, url: str, cases: int) -> float:
    """Return verdicts per second of processor time from a warm cache, questions built and keys made."""
    from pytest_llmeval import Case, get_evaluator
    from pytest_llmeval.judge.bound_question import BoundQuestion
    from pytest_llmeval.judge.judges import SuiteJudges
    from pytest_llmeval.judge.options import JudgeOptions
    from pytest_llmeval.judge.spec import JudgeSpec
    from pytest_llmeval.services.background import Background

    evaluator: Any = get_evaluator("judge", mode="continuous")
    judges = SuiteJudges(JudgeOptions(cache=folder / ".llmeval" / "cache.sqlite3", run="warm"), Background())
    suite_judge = judges.judge_of(
        folder / "judged.eval.yaml", JudgeSpec(model="openai:local", base_url=url), "judged.eval.yaml"
    )
    all_cases = [
        Case(str(n), f"What is the number {n}?", str(n), f"It is {n}.", {"language": "en"}) for n in range(cases)
    ]

    def serve_stored(case: Case) -> None:
        (question,) = evaluator.questions(case)
        assert judges.service.known(BoundQuestion(suite_judge, question, case.id)) is not None

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
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    ideal = options.cases * LATENCY_S / options.concurrency
    concurrency = f"--llmeval-concurrency={options.concurrency}"
    print(
        f"{options.cases} judgements of {LATENCY_S * 1000:.0f} ms, {options.concurrency} at a time: ideal {ideal:.2f} s"
    )
    with judge() as (url, log):
        for name, arguments in (("one process", ()), ("-n 2", ("-n", "2"))):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                write_suite(folder, url, options.cases)
                log.forget()
                cold = run(folder, concurrency, *arguments)
                asked, asking = log.calls.value, log.seconds
                warm = run(folder, concurrency, *arguments)
                print(f"{name:12} asking {asking:5.2f} s = {asking / ideal:4.2f} x ideal, {asked} calls;", end=" ")
                print(f"cold run {cold:5.2f} s = {cold / ideal:4.2f} x ideal;", end=" ")
                print(f"warm run {warm:5.2f} s, {log.calls.value - asked} calls;", end=" ")
                print(f"{warm_rate(folder, url, options.cases):,.0f} stored verdicts a second")


if __name__ == "__main__":
    main()
