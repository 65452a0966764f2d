"""The scores of all cases as a Parquet file."""

import io
from pathlib import Path

from pytest_llmeval.core import MissingExtraError
from pytest_llmeval.data import OutputFile
from pytest_llmeval.reports._form import RunReport

_COLUMNS = ("suite", "path", "case", "outcome", "system", "repeat", "metric", "value", "reason")


def write_parquet(report: RunReport, path: Path) -> None:
    """Write the Parquet report: rows of `CaseReport.to_rows` with suite and path; labels are ``label.NAME``.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    with MissingExtraError.unless_installed("a report in Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    rows = [
        {"suite": suite.base_name, "path": suite.path, **row, "system": suite.variant}
        for suite in report.suites
        for case in suite.cases
        for row in case.to_rows()
    ]
    labels = sorted({name for row in rows for name in row} - set(_COLUMNS))
    kinds = {"repeat": pa.int64(), "value": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in (*_COLUMNS, *labels)])
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), written)
    OutputFile(path).write_bytes(written.getvalue())
