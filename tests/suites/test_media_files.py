"""Files of images, sounds and documents that cases name; and what may be wrong with them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pictures import PDF, SVG, in_memory, png, png_of
from project import load_text

from pytest_llmeval import Media, SuiteError
from pytest_llmeval.suites import LoadedSuite

pytestmark = pytest.mark.usefixtures(in_memory.__name__)

FORM = Media(data=png()).form
BAD: Mapping[str, tuple[bytes, str]] = {
    "empty.png": (b"", "found an empty content, expected some"),
    "wrong.png": (PDF, "found application/pdf, expected image/png, as its name says"),
    "script.png": (SVG, "found image/svg+xml, expected image/png, as its name says"),
    "cut.png": (png()[:18], "found image/png that is cut or damaged, expected all of it"),
    "bomb.png": (png_of(50_000, 50_000), "found an image of 50000 x 50000 pixels, expected at most 100 million"),
    "pdf.png": (PDF + png(), "found application/pdf, expected image/png, as its name says"),
    "late.pdf": (b"\0" * 9 + PDF, "found something else, expected application/pdf, as its name says"),
    "program.pdf": (b"\x7fELF\2\1", "found something else, expected application/pdf, as its name says"),
    "program.txt": (b"MZ\x90\0", "found something else, expected text/plain, as its name says"),
    "laughs.svg": (
        b'<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&b;</svg>',
        "found something else, expected image/svg+xml, as its name says",
    ),
    "huge.gif": (
        b"GIF89a\xff\xff\xff\xff\0\0\0;",
        "found an image of 65535 x 65535 pixels, expected at most 100 million",
    ),
    "none.png": (png_of(0, 0), "found image/png that is cut or damaged, expected all of it"),
    "circle.jpg": (b"\xff\xd8\xff\xe0\0\0" * 2, "found image/jpeg that is cut or damaged, expected all of it"),
    "cut.webp": (b"RIFF\x10\0\0\0WEBPVP8 ", "found image/webp that is cut or damaged, expected all of it"),
    "notes": (b"text", "found a content of unknown type, expected `type` beside it, such as text/plain"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the suite, inside the root, with a picture."""
    inner = tmp_path / "root" / "suites"
    (inner / "scans").mkdir(parents=True)
    (inner / "scans" / "a.png").write_bytes(png())
    (inner.parent / "up.png").write_bytes(png())
    (tmp_path / "out.png").write_bytes(png())
    return inner


def load(folder: Path, cases: Any, **top: Any) -> LoadedSuite:
    data = {"checks": [{"media_type": "image/*"}], **({"cases": cases} if cases else {}), **top}
    return load_text(json.dumps(data, indent=1), folder, root=folder.parent)


def test_a_file_may_stand_wherever_a_value_may(folder: Path) -> None:
    (folder / "report").write_bytes(b"# Sales\n")
    image = {"file": "scans/a.png"}
    content = {"role": "user", "content": ["What is it?", image]}
    whole = {
        "input": [content],
        "expected": {"answer": {"file": "../up.png", "type": "image/png"}, "tool_calls": [{"arguments": image}]},
        "prediction": image,
    }
    listed = {"input": {"doc": {"file": "report", "type": "text/markdown"}}, "expected": [image, image]}
    data = {"input": {"file": 3}, "expected": {"file": "scans/a.png", "type": "image/png", "page": 1}}
    first, second, third = load(folder, [whole, listed, data]).cases
    assert first.input == [{"role": "user", "content": ["What is it?", FORM]}]
    assert first.expected == {"answer": FORM, "tool_calls": [{"arguments": image}]}
    assert first.prediction == FORM
    assert first.as_given().prediction == Media(data=png())
    assert second.as_given().input["doc"].type == "text/markdown"
    assert second.expected == [FORM, FORM]
    assert (third.input, third.expected) == (data["input"], data["expected"])
    (address,) = load(folder, [{"input": {"file": "https://example.org/a.png"}}]).cases
    assert address.input == {"media": "image/png", "url": "https://example.org/a.png"}


def test_each_fault_has_its_place_and_other_cases_run(folder: Path) -> None:
    for name, (data, _) in BAD.items():
        (folder / name).write_bytes(data)
    expected = {name: f"{name!r}: {fault}" for name, (_, fault) in BAD.items()}
    os.mkfifo(folder / "pipe.png")
    (folder / "itself.png").symlink_to("itself.png")
    for name, target in {"zero.png": "/dev/zero", "passwd.txt": "/etc/passwd", "link.png": "../../out.png"}.items():
        (folder / name).symlink_to(target)
        expected[name] = f"{name!r}: found a file outside the folder 'root', expected one inside it"
    for name in ("/dev/zero", "/etc/passwd"):
        expected[name] = f"{name!r}: found a file outside the folder 'root', expected one inside it"
    expected |= {
        "pipe.png": "'pipe.png': found a device or a pipe, expected a file",
        "itself.png": "'itself.png': found links that lead to each other, expected a file",
        "file:///etc/passwd": "'file:///etc/passwd': found the address 'file:///etc/passwd', expected one that begins "
        "with https:",
        "https://me:hush@example.org/a.png": "'https://example.org/a.png': found a user name or password in the "
        "address, expected one such as https://example.org/a.png",
        "../../out.png": "'../../out.png': found a file outside the folder 'root', expected one inside it",
        "scans/b.png": "'scans/b.png': cannot be read: No such file or directory (did you mean 'a.png'?)",
        "scans": "'scans': found a directory, expected a file",
        "a\0.png": r"'a\x00.png': embedded null byte",
        "http://example.org/a.png": "'http://example.org/a.png': found the address 'http://example.org/a.png', "
        "expected one that begins with https:",
    }
    cases = [{"input": {"image": {"file": name}}} for name in expected]
    wrong = {"id": "said", "expected": {"file": "scans/a.png", "type": "image/jpeg"}}
    suite = load(folder, [*cases, wrong, {"id": "good", "input": {"file": "scans/a.png"}}])
    assert [case.id for case in suite.cases] == ["good"]
    found = {fault.path: fault for fault in suite.faults}
    for number, message in enumerate(expected.values()):
        fault = found[f"cases[{number}].input.image.file"]
        assert fault.message == message
        assert fault.line > 1
        assert fault.column > 1
    said = found[f"cases[{len(expected)}].expected.file"].message
    assert said == "'scans/a.png': found image/png, expected image/jpeg, as `type` says"


def test_rows_name_files_from_the_folder_of_their_own_file(folder: Path) -> None:
    lines = [{"id": "a", "input": {"image": {"file": "a.png"}}}, {"id": "b", "input": {"image": {"file": "c.png"}}}]
    (folder / "scans" / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    suite = load(folder, None, source={"format": "jsonl", "path": "scans/rows.jsonl"})
    assert [case.input for case in suite.cases] == [{"image": FORM}]
    (fault,) = suite.faults
    assert (fault.file, fault.line, fault.path) == ("scans/rows.jsonl", 2, "input.image.file")
    assert "cannot be read" in fault.message
    table = "id,picture\na,scans/a.png\n"
    (folder / "rows.csv").write_text(table, encoding="utf-8")
    source = {"format": "csv", "path": "rows.csv", "fields": {"id": "id", "input": {"file": "picture"}}}
    (case,) = load(folder, None, source=source).cases
    assert case.input == FORM


GOOD: Mapping[str, tuple[bytes, str]] = {
    "script.svg": (SVG, "image/svg+xml"),
    "entity.svg": (
        b'<!DOCTYPE svg SYSTEM "file:///etc/passwd"><svg xmlns="http://www.w3.org/2000/svg"/>',
        "image/svg+xml",
    ),
    "page.png": (png(more=b"<script>alert(1)</script>"), "image/png"),
    "archive.png": (png(more=b"PK\3\4"), "image/png"),
    "code.gif": (b"GIF89a/*\0\1\0;*/=1;alert(1)//;", "image/gif"),
}


def test_what_is_more_than_one_thing_is_what_it_begins_as(folder: Path) -> None:
    for name, (data, _) in GOOD.items():
        (folder / name).write_bytes(data)
    cases = load(folder, [{"id": name, "input": {"file": name}} for name in GOOD]).cases
    assert {case.id: case.input["media"] for case in cases} == {name: kind for name, (_, kind) in GOOD.items()}
    for case in cases:
        assert bytes(case.as_given().input) == GOOD[case.id][0]


def test_a_name_of_any_length_has_a_short_fault(folder: Path) -> None:
    names = ["x" * 9999 + ".png", f"data:image/png;base64,{'A' * 9999}"]
    with pytest.raises(SuiteError) as caught:
        load(folder, [{"input": {"file": name}} for name in names])
    assert all(len(fault.message) < 400 for fault in caught.value.faults)
