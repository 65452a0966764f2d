"""Images, sounds and documents in whole runs: to targets, judges, recordings, shards and back."""

import json
import sys
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from pictures import png
from scripted_judges import Judged
from servers import LlmServer, reply

from pytest_llmeval import Media
from pytest_llmeval.cli import main
from pytest_llmeval.core import _media
from pytest_llmeval.exchange import _mlflow
from pytest_llmeval.reports import RunReport

if TYPE_CHECKING:
    from conftest import Project

DRAWN = png(5, 4, (0, 128, 0))
DIGEST = sha256(DRAWN).hexdigest()

APP = f"""
import pytest_llmeval as ev

def draw(value):
    assert isinstance(value["image"], ev.Media), value
    with open("calls.txt", "a") as file:
        print(value["image"].sha256, file=file)
    return {{"answer": ev.Media(data={DRAWN!r}), "note": "drawn"}}

def told(value):
    return "a text"
"""

CONFTEST = """
import pytest_llmeval as ev

@ev.check
def is_medium(case):
    assert isinstance(case.prediction, ev.Media), case.prediction
    return isinstance(case.expected, ev.Media)

def pytest_llmeval_register(registry):
    registry.register_check(is_medium)
"""


def written(project: "Project") -> "Project":
    (project.path / "in.png").write_bytes(png())
    (project.path / "out.png").write_bytes(DRAWN)
    project.write("app.py", APP)
    return project


def test_contents_that_targets_make_are_kept_recorded_by_digest_and_replayed(project: "Project", workers: int) -> None:
    written(project).write("conftest.py", CONFTEST)
    checks = ["is_medium", "same_bytes", {"media_type": "image/*"}, {"image_size": {"width": 5, "max_height": 4}}]
    case = {"id": "a", "input": {"image": {"file": "in.png"}}, "expected": {"file": "out.png"}, "checks": checks}
    (project.path / "out.png").unlink()
    (project.path / "want").mkdir()
    (project.path / "want" / "out.png").write_bytes(DRAWN)
    case["expected"] = {"file": "want/out.png"}
    project.suite("s.eval.yaml", [case], evaluators=[], target="app:draw")
    arguments = ("--llmeval-predictions=r.jsonl", "--llmeval-texts=all", "--llmeval-report=page.html")
    for _ in range(2):
        ran = project.run(*arguments, workers=workers)
        assert ran.outcomes("s") == {"a": "passed"}, ran.text
    assert (project.path / "calls.txt").read_text(encoding="utf-8").split() == [sha256(png()).hexdigest()]
    form = Media(data=DRAWN).form
    for name in ("report.json", "r.jsonl"):
        text = (project.path / name).read_text(encoding="utf-8")
        assert DIGEST in text
        assert b64encode(DRAWN)[:24].decode() not in text
    (row,) = map(json.loads, (project.path / "r.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["prediction"] == {"answer": form, "note": "drawn"}
    assert ran.suites["s"]["cases"][0]["expected"] == form
    written_report = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    assert written_report["media"] == {
        sha256(png()).hexdigest(): "in.png",
        DIGEST: "want/out.png",
    }
    changed = png(color=(0, 0, 9))
    (project.path / "in.png").write_bytes(changed)
    assert project.run(*arguments, workers=workers).outcomes("s") == {"a": "passed"}
    assert (project.path / "calls.txt").read_text(encoding="utf-8").split()[1:] == [sha256(changed).hexdigest()]


def test_shards_carry_what_was_made_to_where_they_are_merged(
    project: "Project", capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(project)
    (project.path / "out.png").unlink()
    cases = [{"id": name, "input": {"image": {"file": "in.png"}}} for name in "ab"]
    project.suite("s.eval.yaml", cases, evaluators=[], checks=["same_bytes"], target="app:draw")
    for number in (1, 2):
        shard = (f"--llmeval-shard={number}/2", f"--llmeval-report={number}.llmeval", "--llmeval-texts=all")
        project.run(*shard)
    kept = project.path / ".llmeval" / "media" / DIGEST
    assert kept.read_bytes() == DRAWN
    kept.unlink()
    monkeypatch.setattr(_media, "_SHELF", _media._Shelf())  # another process merges
    main(["merge", "1.llmeval", "2.llmeval", "--llmeval-report=merged.json"])
    capsys.readouterr()
    assert kept.read_bytes() == DRAWN


LIBRARIES = """
import pytest_llmeval as ev

def draw(kind):
    with open("calls.txt", "a") as file:
        print(kind, file=file)
    if kind == "pillow":
        from PIL import Image
        return Image.new("RGB", (6, 4), "navy")
    if kind == "matplotlib":
        from matplotlib.figure import Figure
        figure = Figure(figsize=(2, 1), dpi=50)
        figure.add_subplot().bar(["May", "June"], [12, 30])
        return figure
    import numpy
    return ev.Media.from_audio(numpy.sin(numpy.arange(800) / 4), 8000)
"""
OBJECTS = """
import pytest_llmeval as ev

@ev.check
def is_itself(case):
    library = type(case.prediction).__module__.partition(".")[0]
    return library in (case.input.replace("pillow", "PIL"), "pytest_llmeval")

def pytest_llmeval_register(registry):
    registry.register_check(is_itself)
"""


def test_objects_of_libraries_reach_checks_themselves_and_are_replayed_by_digest(
    project: "Project", workers: int
) -> None:
    kinds = {"matplotlib": "image/png", "numpy": "audio/wav", "pillow": "image/png"}
    for library in ("matplotlib", "PIL"):
        pytest.importorskip(library)
    project.write("app.py", LIBRARIES)
    project.write("conftest.py", OBJECTS)
    cases = [{"id": kind, "input": kind, "checks": [{"media_type": name}]} for kind, name in kinds.items()]
    project.suite("s.eval.yaml", cases, evaluators=[], checks=["is_itself"], target="app:draw")
    digests, calls = [], []
    for _ in range(2):
        ran = project.run("--llmeval-predictions=r.jsonl", "--llmeval-texts=all", workers=workers)
        assert set(ran.outcomes("s").values()) == {"passed"}, ran.text
        digests.append({case["id"]: case["prediction"]["sha256"] for case in ran.suites["s"]["cases"]})
        for digest in digests[-1].values():
            assert sha256((project.path / ".llmeval" / "media" / digest).read_bytes()).hexdigest() == digest
        calls.append((project.path / "calls.txt").read_text(encoding="utf-8").split())
    assert digests[0] == digests[1]
    assert set(calls[0]) == kinds.keys()
    assert calls[1] == calls[0]


def test_pages_of_a_report_have_the_pictures_of_the_run(
    project: "Project", capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {"id": "a", "input": {"image": {"file": "in.png"}}, "expected": {"file": "out.png"}}
    checks = ["same_bytes"]
    written(project).suite("s.eval.yaml", [case], evaluators=[], checks=checks, target="app:draw")
    assert project.run("--llmeval-texts=all").outcomes("s") == {"a": "passed"}
    for number, command in enumerate((["html", "report.json"], ["review", "report.json"])):
        monkeypatch.setattr(_media, "_SHELF", _media._Shelf())  # another process draws
        assert main([*command, "-o", f"{number}.html"]) == 0
        page = (project.path / f"{number}.html").read_text(encoding="utf-8")
        assert [b64encode(content).decode() in page for content in (png(), DRAWN)] == [True, True]
    monkeypatch.setattr(_media, "_SHELF", _media._Shelf())
    exported = _mlflow._page(RunReport.read(project.path / "report.json"))
    assert [b64encode(content).decode() in exported for content in (png(), DRAWN)] == [True, True]
    capsys.readouterr()


def test_judges_are_shown_input_expectation_and_answer_each_with_its_label(judged: Judged) -> None:
    project = judged.project
    written(project)
    judged.server.script(reply('{"score": 1, "reasoning": "same"}'))
    image = {"file": "in.png"}
    case = {
        "id": "a",
        "input": {"question": "Green?", "image": image},
        "expected": image,
        "prediction": {"file": "out.png"},
    }
    text = {"id": "b", "input": "Green?", "expected": "yes", "prediction": "yes"}
    judge = {"model": "openai:eye", "base_url": judged.server.base_url}
    project.suite(
        "s.eval.yaml", [case, text], evaluators=[{"judge": {"mode": "continuous", "language": "en"}}], judge=judge
    )
    ran = project.run("--llmeval-judge=record")
    assert ran.outcomes("s") == {"a": "passed", "b": "passed"}, ran.text
    contents = [call.body["messages"][-1]["content"] for call in judged.server.calls]
    (parts,) = [content for content in contents if isinstance(content, list)]
    shown = [(label["text"], image["image_url"]["url"]) for label, image in zip(parts[1::2], parts[2::2], strict=True)]
    first, second = (f"data:image/png;base64,{b64encode(data).decode()}" for data in (png(), DRAWN))
    assert shown == [("question:", first), ("reference:", first), ("answer:", second)]
    assert "base64" not in parts[0]["text"]
    judged.server.script(reply('{"score": 0, "reasoning": "changed"}'))
    again = project.run("--llmeval-judge=replay")
    assert again.outcomes("s") == {"a": "passed", "b": "passed"}
    (project.path / "out.png").write_bytes(png(5, 4, (0, 0, 0)))
    changed = project.run("--llmeval-judge=replay")
    assert changed.outcomes("s") == {"a": "errored", "b": "passed"}
    assert "the answer" in changed.text
    project.suite(
        "s.eval.yaml",
        [case],
        evaluators=[{"judge": {"mode": "continuous", "language": "en"}}],
        judge=judge | {"media": "refuse"},
    )
    refused = project.run("--llmeval-judge=refresh")
    assert refused.suites["s"]["cases"][0]["outcome"] == "errored"
    assert "(media: refuse)" in refused.text


def test_models_services_and_commands_get_media_in_their_forms(judged: Judged) -> None:
    project = judged.project
    written(project)
    project.write(
        "see.py",
        """
        import json, sys
        for line in sys.stdin:
            asked = json.loads(line)
            data = open(asked["input"]["image"], "rb").read()
            print(json.dumps({"id": asked["id"], "prediction": f"{len(data)} bytes"}), flush=True)
        """,
    )
    project.write("p.md", "Look at {{ input.image }}, please.")
    with LlmServer(reply("seen")) as service:
        request = {"url": service.base_url + "/chat", "request": {"messages": [{"content": [{"$input": "image"}]}]}}
        response = {"response": "choices.0.message.content"}
        model = {"model": "openai:eye", "base_url": judged.server.base_url}
        judged.server.script(reply("seen"))
        systems = {
            "model": {**model, "prompt": "p.md"},
            "bare": model,
            "service": {"http": {**request, **response, "media": "anthropic"}},
            "command": {"command": [sys.executable, "see.py"]},
        }
        case = {"id": "a", "input": {"image": {"file": "in.png"}}, "expected": "seen"}
        project.suite("s.eval.yaml", [case], systems=systems)
        ran = project.run("--llmeval-texts=all")
        (call,) = service.calls
    assert ran.code == 0, ran.text
    content = b64encode(png()).decode()
    source = {"type": "base64", "media_type": "image/png", "data": content}
    assert call.body["messages"] == [{"content": [{"type": "image", "source": source}]}]
    asked = [call.body["messages"][-1]["content"] for call in judged.server.calls]
    texts = sorted(parts[0]["text"] for parts in asked)
    assert texts == ["Look at [1: image/png], please.", '{"image": "[1: image/png]"}']
    label: dict[str, Any] = {"type": "text", "text": "[1: image/png]:"}
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{content}"}}
    assert all(parts[1:] == [label, picture] for parts in asked)
    answers = {name: ran.suites[f"s[{name}]"]["cases"][0]["prediction"] for name in systems}
    assert answers["command"] == f"{len(png())} bytes"
    assert answers["model"]["answer"] == answers["service"] == "seen"


def test_a_text_check_says_that_a_picture_is_no_text_and_the_block_shows_no_content(project: "Project") -> None:
    written(project)
    case = {"id": "a", "input": {"image": {"file": "in.png"}}, "checks": [{"contains": "x"}]}
    other = {"id": "b", "input": {"image": {"file": "in.png"}}, "checks": [{"media_type": "image/png"}]}
    project.suite("s.eval.yaml", [case], evaluators=[], target="app:draw", parts={"answer": "answer"})
    project.suite("t.eval.yaml", [other], evaluators=[], target="app:told")
    ran = project.run("--llmeval-media-limit=1,1")
    line = f"image/png, 5 x 4, {len(DRAWN)} B, sha256 {DIGEST[:12]}"
    assert f"checks: found {line}, which is no text, expected contains: 'x'" in ran.text
    assert f'prediction: {{"answer": "<{line}>", "note": "drawn"}}' in ran.text
    assert "found text 'a text', which is no image, sound or document, expected media_type: 'image/png'" in ran.text
