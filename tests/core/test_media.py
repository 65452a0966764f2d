"""Media: what they are taken for, their forms, their identity, and contents that are refused."""

import io
import pickle
import wave
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import GIF, JPEG, PDF, SVG, WAV, NoStore, in_memory, png, png_of

from pytest_llmeval import Case, Media
from pytest_llmeval.core import MediaError, MediaForm, MediaLimits, MediaRun, as_line, form_of
from pytest_llmeval.core._media_types import agreed_type, dimensions, type_by_content

pytestmark = pytest.mark.usefixtures(in_memory.__name__)

CONTENTS = {
    "image/png": (png(), (3, 2)),
    "image/gif": (GIF, (3, 2)),
    "image/jpeg": (JPEG, (3, 2)),
    "image/bmp": (b"BM" + bytes(12) + b"\x28\0\0\0\3\0\0\0\xfe\xff\xff\xff" + bytes(8), (3, 2)),
    "image/webp": (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\2\0\0\1\0\0", (3, 2)),
    "image/svg+xml": (SVG, None),
    "application/pdf": (PDF, None),
    "audio/wav": (WAV, None),
    "audio/mpeg": (b"ID3\4", None),
    "audio/ogg": (b"OggS\0", None),
    "video/mp4": (b"\0\0\0\x18ftypisom", None),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_content_shows_its_type_and_its_form_says_no_more_than_people_need(kind: str) -> None:
    data, size = CONTENTS[kind]
    medium = Media(data=data)
    dimensions_of = {} if size is None else {"width": size[0], "height": size[1]}
    assert medium.form == {"media": kind, "sha256": sha256(data).hexdigest(), "bytes": len(data)} | dimensions_of
    assert MediaForm.matches(medium.form)
    assert form_of([medium]) == [medium.form]
    assert Media.of_form(MediaForm(form_of(medium))).data == data


def test_equal_contents_are_equal_through_every_door(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png())
    both = Media.from_path(path), Media(data=png(), type="image/png")
    assert both[0] == both[1] == pickle.loads(pickle.dumps(both[1]))
    assert hash(both[0]) == hash(both[1])
    assert form_of(png()) == form_of(both[0]) == form_of(both[1])
    assert both[0] != Media(data=png(color=(0, 0, 0)))
    assert bytes(both[0]) == png()
    assert both[0].path == path


def test_a_medium_is_itself_for_users_and_comes_back_where_only_its_form_has_travelled() -> None:
    medium = Media(data=png())
    given_case = Case("a", {"image": medium, "n": 1}, medium, [medium, "text"])
    case = given_case.in_forms()
    assert case.input == {"image": medium.form, "n": 1}
    assert case.as_given().input is given_case.input
    travelled = Case("a", case.input, case.expected, case.prediction).as_given()
    assert (travelled.input, travelled.expected, travelled.prediction) == (
        {"image": medium, "n": 1},
        medium,
        [medium, "text"],
    )
    plain = Case("a", {"q": [1, {"media": "image/png"}]})
    assert plain.as_given().input is plain.input


def test_a_prediction_that_is_a_medium_is_the_answer_and_no_object() -> None:
    case = Case("a", prediction=Media(data=png())).in_forms()
    assert case.parts["answer"] == case.prediction
    assert dict(case.parts) == {"answer": case.prediction}
    assert as_line(case.prediction).startswith("<image/png, 3 x 2, ")


@pytest.mark.parametrize(
    ("data", "said", "fault"),
    [
        (b"", None, "found an empty content, expected some"),
        (b"Dear Sir", None, "found a content of unknown type, expected `type` beside it, such as text/plain"),
        (b"Dear Sir", "image/png", "found something else, expected image/png, as `type` says"),
        (PDF, "image/png", "found application/pdf, expected image/png, as `type` says"),
        (png(), "picture", "found the type 'picture', expected a media type such as image/png"),
        (png()[:20], None, "found image/png that is cut or damaged, expected all of it"),
        (png_of(60_000, 60_000), None, "found an image of 60000 x 60000 pixels, expected at most 100 million"),
    ],
)
def test_what_is_no_medium_is_refused(data: bytes, said: str | None, fault: str) -> None:
    with pytest.raises(MediaError) as refused:
        Media(data=data, type=said)
    assert str(refused.value) == fault


def test_types_of_containers_and_texts_come_from_the_name() -> None:
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert Media(data=b"PK\x03\x04...", type=word).type == word
    assert Media(data=b"a,b\n", type="text/csv; charset=utf-8").type == "text/csv"
    assert Media(data=JPEG, type="image/jpg").type == "image/jpeg"
    between = JPEG.replace(b"\xff\xc0", b"\0\x12\xff\0\xff\xff\xc0")  # bytes that decoders skip
    assert (Media(data=between).width, Media(data=between).height) == (3, 2)
    assert agreed_type(b"\0\0\0\x18ftypisom", "audio/mp4") == "audio/mp4"


def test_a_file_is_what_its_name_says_and_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PDF)
    with pytest.raises(MediaError, match="found application/pdf, expected image/png, as its name says"):
        Media.from_path(path)
    path.write_bytes(png())
    medium = Media.from_path(path)
    path.write_bytes(png(9, 9))
    with pytest.raises(MediaError, match=r"a\.png has changed since it was read"):
        _ = medium.data
    with pytest.raises(MediaError, match="cannot be read"):
        Media.from_path(tmp_path / "b.png")


def test_addresses_are_passed_on_and_never_fetched() -> None:
    medium = Media(url="https://example.org/a.PNG?size=3")
    assert medium.form == {"media": "image/png", "url": "https://example.org/a.PNG?size=3"}
    assert Media.restore_all(medium.form) == medium
    with pytest.raises(MediaError, match="is an address, which is not fetched"):
        _ = medium.data
    for url, kind in (("http://example.org/a.png", None), ("https://example.org/a", None)):
        with pytest.raises(MediaError, match="found the address"):
            Media(url=url, type=kind)
    with pytest.raises(MediaError, match="expected one of them"):
        Media()


def test_limits_of_a_file_and_of_a_run(tmp_path: Path) -> None:
    MediaRun(NoStore, MediaLimits(file=100, run=150)).begin()
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-" + bytes(200))
    for make in (lambda: Media.from_path(path), lambda: Media(data=path.read_bytes())):
        with pytest.raises(MediaError, match="found 205 B, expected at most 100 B: raise --llmeval-media-limit"):
            make()
    first = Media(data=b"%PDF-" + bytes(90))
    assert form_of([first, first, first])
    with pytest.raises(MediaError, match="the media of this run take more than 150 B"):
        form_of(Media(data=b"%PDF-" + bytes(91)))


def test_bytes_that_begin_as_a_medium_are_one_and_others_stay_bytes() -> None:
    assert form_of(bytearray(WAV))["media"] == "audio/wav"
    assert form_of(b"abc").startswith("<bytes of 3 B")
    assert form_of(png()[:20]).startswith("<bytes of 20 B")


def test_objects_of_libraries_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai import BinaryContent, ImageUrl

    assert form_of(BinaryContent(data=png(), media_type="image/png")) == Media(data=png()).form
    assert form_of(ImageUrl(url="https://example.org/a.png")) == {
        "media": "image/png",
        "url": "https://example.org/a.png",
    }
    sound = Media.from_audio(np.sin(np.arange(80) / 4), 8000)
    assert (sound.type, sound.size) == ("audio/wav", 44 + 160)
    assert sound == Media.from_audio(np.sin(np.arange(80) / 4), 8000)
    monkeypatch.setattr(Picture, "__module__", "PIL.Image")
    assert form_of({"a": Picture()}) == {"a": Media(data=png()).form}


class Picture:
    """Stands for an image of PIL, which also has a superclass of this name."""

    def save(self, stream: Any, kind: str) -> None:
        """Write it."""
        assert kind == "PNG"
        stream.write(png())


Picture.__name__ = "Image"


def test_images_of_pillow_are_png() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), "red")
    form = form_of(image)
    assert (form["media"], form["width"], form["height"]) == ("image/png", 3, 2)
    assert form == form_of(image)


def test_figures_of_matplotlib_are_png_and_the_same_one_has_the_same_digest() -> None:
    figures = pytest.importorskip("matplotlib.figure")

    def figure() -> Any:
        drawn = figures.Figure(figsize=(2, 1), dpi=50)
        drawn.add_subplot().bar(["May", "June"], [12, 30])
        return drawn

    form = form_of({"chart": figure()})["chart"]
    assert (form["media"], form["width"], form["height"]) == ("image/png", 100, 50)
    assert form_of(figure()) == form


def test_numpy_audio_keeps_its_rate_channels_and_samples() -> None:
    samples = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, -2.0]])
    with wave.open(io.BytesIO(Media.from_audio(samples, 16_000).data)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth(), sound.getnframes()) == (
            16_000,
            2,
            2,
            3,
        )
        frames = np.frombuffer(sound.readframes(3), "<i2").tolist()
    assert frames == [0, 32767, 16384, -32767, 32767, -32767]
    whole = np.array([1, -2, 3], np.int16)
    with wave.open(io.BytesIO(Media.from_audio(whole, 8000).data)) as sound:
        assert np.frombuffer(sound.readframes(3), "<i2").tolist() == [1, -2, 3]


@given(st.binary(max_size=64) | st.binary(max_size=40).map(lambda tail: png()[:30] + tail))
def test_no_content_breaks_the_reading_of_types(data: bytes) -> None:
    kind = type_by_content(data)
    if kind in ("image/png", "image/gif", "image/jpeg", "image/bmp", "image/webp"):
        dimensions(kind, data)


@given(
    st.recursive(
        st.none() | st.text(max_size=3),
        lambda inner: (
            st.dictionaries(st.sampled_from(["media", "sha256", "bytes", "width", "url", "a"]), inner) | st.lists(inner)
        ),
        max_leaves=5,
    )
)
def test_data_that_only_look_like_media_stay_as_they_are(value: Any) -> None:
    assert list(MediaForm.find_all(value)) == []
    assert Media.restore_all(value) is value
