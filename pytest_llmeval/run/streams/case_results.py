"""Files with the result of every case, written as results arrive."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pytest_llmeval.core.errors import LlmevalError, MissingExtraError
from pytest_llmeval.core.results import CaseResult
from pytest_llmeval.data.files.writing import put_in_place, sync


class _Sink(Protocol):
    def write(self, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class CaseResultWriter:
    """Writes beside the file, and replaces it in one step when all is there.

    Args:
        path: Ends in ``.jsonl`` or ``.parquet``.

    Raises:
        LlmevalError: It does not.
        MissingExtraError: The extra for its format is not installed.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix not in _SINKS:
            raise LlmevalError(f"results: found suffix {path.suffix!r}, expected one of {', '.join(_SINKS)}")
        self._path = path
        self._unfinished = path.with_name(f"{path.name}.unfinished")
        self._sink: _Sink = _SINKS[path.suffix](self._unfinished)

    def write(self, cases: Sequence[CaseResult]) -> None:
        """Write the next cases."""
        self._sink.write(
            [
                {"id": case.id, "outcome": case.outcome, "reason": case.reason, "metrics": dict(case.metrics)}
                for case in cases
            ]
        )

    def finish(self) -> None:
        """Put the file in its place."""
        self._sink.close()
        sync(self._unfinished)
        put_in_place(self._unfinished, self._path)

    def close(self) -> None:
        """Remove what is not finished."""
        self._sink.close()
        self._unfinished.unlink(missing_ok=True)


class _Jsonl:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    def close(self) -> None:
        self._file.close()


class _Parquet:
    """One row per case; `metrics` is a map, since families of metrics grow with the labels that cases have."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise MissingExtraError("a file of results in Parquet", "parquet", error) from error
        text = pa.string()
        self._schema = pa.schema({"id": text, "outcome": text, "reason": text, "metrics": pa.map_(text, pa.float64())})
        self._table = pa.Table
        self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, rows: list[dict[str, Any]]) -> None:
        listed = [{**row, "metrics": list(row["metrics"].items())} for row in rows]
        self._writer.write_table(self._table.from_pylist(listed, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


_SINKS: Mapping[str, Callable[[Path], _Sink]] = MappingProxyType({".jsonl": _Jsonl, ".parquet": _Parquet})
