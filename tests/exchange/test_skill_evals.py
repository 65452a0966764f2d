"""Evals of plugins and skills as suites: what becomes of each grader, and a run with a stand-in for the agent."""

import json
import os
import random
import sys
from pathlib import Path

import pytest
from project import run_import, write_source
from running import ENVIRONMENT, WITHOUT_UNUSED, run_python

from pytest_llmeval.__main__ import main
from pytest_llmeval.data import InputFile

SKILL = "---\nname: map\ndescription: Draws maps --- of code\n---\nA map has a heading for each folder.\n"
PLUGIN = {
    "plug/.claude-plugin/plugin.json": {"name": "mapper"},
    "plug/skills/map/SKILL.md": SKILL,
    "plug/evals/draws/prompt.md": "---\nmax_turns: 15\nruns: 1\ntags: [smoke]\nallowed_tools: [Read, Skill]\n---\n"
    "\nMap it.\n",
    "plug/evals/draws/graders/fired.md": "---\ntype: tool_used\ntool: Skill\n"
    'input_match: \'"skill":\\s*"(\\w+:)?map"\'\narm: with-only\n---\nIt fired.\n',
    "plug/evals/draws/graders/order.md": "---\ntype: tool_order\nbefore: {tool: Skill}\nafter: Write\n---\n",
    "plug/evals/draws/graders/wrote.md": '---\ntype: file_exists\npath: "**/*.md"\nweight: 2\n---\n',
    "plug/evals/draws/graders/heads.md": "---\ntype: regex\ntarget: {source: file, path: map.md}\nflags: m\n"
    'match: "count:2"\n---\n^# \\w+$\n',
    "plug/evals/late/prompt.md": "Map it late.\n",
    "plug/evals/late/graders/order.md": "---\ntype: tool_order\nbefore: {tool: Skill}\nafter: Write\n---\n",
    "plug/evals/late/case.yaml": {"schema_version": "1.1", "name": "late", "runs": 1},
    "plug/evals/group/quiet/case.yaml": {
        "schema_version": "1.1",
        "name": "stays quiet",
        "execution": {"prompt": "Say hello."},
        "runs": 1,
        "graders": [
            {"name": "no skill", "type": "tool_used", "tool": "Skill", "min": 0, "max": 0},
            {"name": "polite", "type": "regex", "pattern": "^hello", "flags": "i"},
            {"name": "no file", "type": "file_exists", "path": "map.md", "exists": False},
        ],
    },
}
AGENT = """
import json, pathlib, sys
task, plugin = sys.stdin.read(), sys.argv[sys.argv.index("--plugin-dir") + 1]
assert pathlib.Path(plugin, "skills/map/SKILL.md").is_file() and not pathlib.Path(plugin, "evals").exists()
calls = []
if "Map" in task:
    pathlib.Path("map.md").write_text("# One\\n# Two\\n")
    calls = [("Skill", {"skill": "mapper:map"}), ("Write", {"file_path": "map.md"})]
content = [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
content = content[::-1] if "late" in task else content
print(json.dumps({"type": "assistant", "message": {"content": content}}))
print(json.dumps({"type": "result", "result": "Hello!"}))
"""


def _write(files: dict[str, object]) -> None:
    for name, content in files.items():
        write_source(Path(), name, content)


def test_an_imported_plugin_runs_and_its_graders_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(PLUGIN)
    imported = run_import(capsys, "plugin-evals", "plug", to=Path("suites"))
    assert imported.code == 0
    assert "0 not imported" in imported.out
    suite = InputFile(Path("suites/mapper.eval.yaml"), "mapper").read_document().data
    assert suite["target"]["workspace"]["copy"]["../plug/skills"] == "plugin/skills"
    assert suite["target"]["command"][-4:] == ["--max-turns", "15", "--allowedTools", "Read,Skill"]
    (tmp_path / "bin").mkdir()
    agent = tmp_path / "bin" / "claude"
    agent.write_text(f"#!{sys.executable}\n{AGENT}", encoding="utf-8")
    agent.chmod(0o755)
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    ran = run_python(["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-q", "suites"], environment, tmp_path)
    assert "1 failed, 2 passed" in ran.out, ran.out + ran.err
    assert "order: found call 2 after call 1" in ran.out
    run_import(capsys, "plugin-evals", "plug", "--arms", "--force", to=Path("suites"))
    assert "it counts in one arm \\(with-only\\), and checks count" in Path("suites/IMPORT.md").read_text("utf-8")
    both = InputFile(Path("suites/mapper.eval.yaml"), "mapper").read_document().data
    arms = both["systems"]
    assert (arms["with"], both["reference"]) == (suite["target"], "without")
    assert arms["without"]["command"] == [each for each in suite["target"]["command"] if "plugin" not in each]
    assert "../plug/skills" in arms["without"]["workspace"]["must_not_read"]
    assert "copy" not in arms["without"]["workspace"]


LEFT_OUT = {
    "evals/a/prompt.md": "---\nallowed_tools: [Bash]\ntags: [no tag]\ncolour: red\nenv: {EVAL_A: 1}\n---\nGo.\n",
    "evals/a/graders/good.md": "---\ntype: llm\nfocus: trace\n---\nPASS if it went.\n",
    "evals/a/graders/same.md": "---\ntype: baseline\nbaseline_file: ref.jsonl\n---\nAs short.\n",
    "evals/a/ref.jsonl": '{"type": "result", "result": "Gone."}\n',
    "evals/a/graders/trace.md": "---\ntype: regex\ntarget: trace\n---\nx\n",
    "evals/a/graders/mocks.md": "---\ntype: llm\nfocus: mock_calls\n---\nx\n",
    "evals/a/graders/key.md": "---\ntype: tool_used\ntool: Bash\nmost: 3\n---\n",
    "evals/a/graders/kind.md": "---\ntype: python\n---\nx\n",
    "evals/a/graders/glob.md": "---\ntype: file_exists\npath: '{a,b}.md'\n---\n",
    "evals/a/graders/far.md": "---\ntype: baseline\nbaseline_file: ../../secret\n---\nx\n",
    "evals/a/graders/yaml.md": "---\ntype: [\n---\nx\n",
    "evals/a/graders/flag.md": "---\ntype: regex\nflags: y\n---\nx\n",
    "evals/script/case.yaml": {"context": {"scaffold_script": "a.sh"}, "execution": {"prompt": "Go."}},
    "evals/mocked/prompt.md": "Go.\n",
    "evals/mocked/mocks/a/b.md": "x\n",
    "evals/mocks/a/b.md": "x\n",
    "evals/ungraded/prompt.md": "Go.\n",
    "evals/ungraded/graders/kind.md": "---\ntype: python\n---\nx\n",
}
SAID = (
    "allowed tool Bash: it is granted on the command line",
    "evals/a/prompt.md:3  tags: found 'no tag'",
    "evals/a/prompt.md:4  colour: a case has no such setting",
    "evals/a/graders/trace.md:1  regex: the trace has another form here",
    "evals/a/graders/mocks.md:1  llm: nothing is known of 'mock_calls'",
    "evals/a/graders/key.md:1  tool_used: it has the key most",
    "evals/a/graders/kind.md:1  python: there is no such grader",
    "evals/a/graders/glob.md:1  file_exists: found the path '{a,b}.md'",
    "evals/a/graders/far.md:1  baseline: '../../secret'",
    "evals/a/graders/yaml.md:3  file: found",
    "evals/a/graders/flag.md:1  regex: the flag y",
    "scaffold_script: write instead",
    "the case is left out: its tools are mocked",
    "evals/mocks  mocks: servers of tools",
    "evals/ungraded/prompt.md:1  prompt: the case is left out: none of its graders",
)


def test_what_is_not_understood_is_said_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(LEFT_OUT)
    assert main(["import", "plugin-evals", "evals", "--strict"]) == 1
    output = capsys.readouterr().out
    for line in SAID:
        assert line in output
    run_import(capsys, "plugin-evals", "evals", to=Path("suites"))
    suite = InputFile(Path("suites/evals.eval.yaml"), "evals").read_document().data
    (case,) = suite["cases"]
    assert [next(iter(each.values())) for each in case["checks"]] == [
        "PASS if it went.",
        "As short.\nIn this, the answer is at least as good as the following one:\nGone.",
    ]
    assert case["checks"][0]["on"] == "prediction"
    assert suite["repeats"] == 3
    assert main(["import", "plugin-evals", "evals/ungraded"]) == 1
    assert "no case has graders that can be imported" in capsys.readouterr().err


EVALS = {
    "skill_name": "map",
    "colour": "red",
    "evals": [
        {
            "id": 1,
            "prompt": "Map a.csv",
            "files": ["evals/a.csv", "../b"],
            "expectations": ["A map", {"text": "Short"}, 3],
        },
        {"id": 2, "prompt": "Map it", "expected_output": "A map."},
        {"query": "please map", "should_trigger": True},
        {"query": "weather?", "should_trigger": False},
        {"id": 5, "prompt": "Nothing"},
    ],
}


def test_evals_of_the_skill_creator_become_criteria_and_triggers_checks_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write({"map/SKILL.md": SKILL, "map/evals/evals.json": json.dumps(EVALS, indent=1), "map/evals/a.csv": "a\n"})
    assert main(["import", "skill-creator", "map"]) == 0
    output = capsys.readouterr().out
    for line in ("evals.json:3  colour", ":10  files: '../b' is missing", ":17  expectations: text is missing"):
        assert line in output
    assert "eval: expectations or expected_output is missing" in output
    run_import(capsys, "skill-creator", "map", to=Path("suites"))
    suite = InputFile(Path("suites/map.eval.yaml"), "map").read_document().data
    assert suite["target"]["workspace"]["copy"] == {
        "../map/evals/a.csv": "evals/a.csv",
        "../map/SKILL.md": ".claude/skills/map/SKILL.md",
    }
    checks = [case["checks"] for case in suite["cases"]]
    assert [each["judge"] for each in checks[0]] == ["A map", "Short"]
    assert checks[1] == [{"judge": "The answer is as described: A map.", "on": "prediction"}]
    call = {"name": "Skill", "arguments": '"skill":"(?:[\\w-]+:)?map"'}
    assert checks[2:] == [[{"tool_call": call}], [{"not_tool_call": call}]]


def test_damaged_files_give_faults_or_entries_and_never_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write({**PLUGIN, "map/SKILL.md": SKILL, "map/evals/evals.json": EVALS})
    files = [each for each in sorted(Path().rglob("*")) if each.is_file() and "SKILL" not in each.name]
    draw = random.Random(7)
    for _ in range(25):
        path = draw.choice(files)
        before = path.read_bytes()
        start = draw.randrange(len(before))
        junk = draw.choice([b"", b"[", b"{", b"null", b"- ", b"\xff", b"\x00", b": ", b"3"])
        path.write_bytes(before[:start] + junk + before[start + draw.randrange(9) :])
        for source in (("plugin-evals", "plug"), ("skill-creator", "map")):
            assert main(["import", *source]) in (0, 1)
        path.write_bytes(before)
    assert "Traceback" not in capsys.readouterr().err
