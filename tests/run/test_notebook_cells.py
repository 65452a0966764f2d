"""A notebook as a kernel runs it: runs, comparisons and the cases of suites in its cells."""

import json
import re
import sys
from pathlib import Path

import pytest

CELLS = (
    """
import pytest_llmeval as ev
cases = [{"id": "peru", "input": "Peru", "expected": "Lima"}, {"id": "chile", "input": "Chile", "expected": "Santiago"}]
suite = ev.suite("capitals", cases=cases, evaluators=[ev.text(metrics=["f1"])], thresholds={"f1": 0.5})
[(case.id, case.expected) for case in suite.cases]
""",
    """
def answer(question):
    if question == "Peru":
        raise ValueError("no <map> of Peru")
    return "Valparaiso"
worse = suite.run(answer)
worse
""",
    "ev.compare(suite.run({'Peru': 'Lima', 'Chile': 'Santiago'}.get), suite.run(lambda question: 'Lima'))",
    """
def broken(case):
    raise ValueError("boom")
ev.score(broken, [ev.Case("only", "q", "x", "x")])
""",
)


@pytest.mark.release
def test_a_kernel_shows_cases_reasons_and_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    kernel = tmp_path / "share" / "kernels" / "here"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "here", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(notebook, kernel_name="here", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    listed, run, comparison, scored = [
        next(output.data for output in cell.outputs if output.output_type == "execute_result")
        for cell in notebook.cells
    ]
    assert listed["text/plain"] == "[('peru', 'Lima'), ('chile', 'Santiago')]"
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\w+)</td><td>(.*?)</td></tr>", run["text/html"])
    assert [row[:2] for row in rows if row[0] in ("peru", "chile")] == [("peru", "errored"), ("chile", "failed")]
    assert "ValueError: no &lt;map&gt; of Peru" in run["text/html"]
    assert re.search(r"<tr><td>f1</td><td>1.0000</td><td>0.5000</td><td>\+?0.5000</td>", comparison["text/html"])
    assert "ValueError: boom" in scored["text/html"]
