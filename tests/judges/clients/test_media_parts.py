"""Media in requests: the forms of providers, as a server gets them; and models that do not see."""

import asyncio
from base64 import b64decode
from typing import Any

import pytest
from msgspec.structs import replace
from pictures import PDF, WAV, in_memory, png
from scripted_judges import ASKED, Ask, once
from servers import LlmServer, data, reply, status

from pytest_llmeval import JudgeRequest, Media
from pytest_llmeval.core import JudgeError, form_of
from pytest_llmeval.data import json_text
from pytest_llmeval.judges import JudgeConnection, JudgeSpec, Message, Mode, Question
from pytest_llmeval.judges._protocol import ShownMedium, sent_tokens, uncounted_media
from pytest_llmeval.judges._stored_judgement import components, judgement_key
from pytest_llmeval.judges.clients import as_client
from pytest_llmeval.judges.questions._modes import render

pytestmark = pytest.mark.usefixtures(in_memory.__name__)

CONTENTS = {"image": png(), "audio": WAV, "document": PDF}


def asking(*media: Media, labels: bool = True) -> JudgeRequest:
    shown = tuple(
        ShownMedium(form_of(each), f"answer {number}" if labels else "") for number, each in enumerate(media, 1)
    )
    return replace(ASKED, messages=(Message("system", "Be fair."), Message("user", "Is it right?", media=shown)))


def parts_of(server: LlmServer) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = server.calls[-1].body["messages"][-1]["content"]
    return content


def test_openai_gets_images_sounds_and_files_after_the_text_each_with_its_label(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, asking(*(Media(data=each) for each in CONTENTS.values())))
        text, *parts = parts_of(server)
    assert text == {"type": "text", "text": "Is it right?"}
    assert [part["text"] for part in parts[::2]] == ["answer 1:", "answer 2:", "answer 3:"]
    image, sound, file = parts[1::2]
    head, _, encoded = image["image_url"]["url"].partition(",")
    assert (image["type"], head, b64decode(encoded)) == ("image_url", "data:image/png;base64", png())
    assert (sound["type"], sound["input_audio"]["format"]) == ("input_audio", "wav")
    assert b64decode(sound["input_audio"]["data"]) == WAV
    assert file["type"] == "file"
    assert file["file"]["filename"].endswith(".pdf")
    assert b64decode(file["file"]["file_data"].removeprefix("data:application/pdf;base64,")) == PDF


def test_gemini_gets_parts(ask: Ask) -> None:
    page = Media(data=b"# Sales", type="text/markdown")
    linked = Media(url="https://example.org/a.png")
    with LlmServer(reply("yes")) as server:
        ask(server, asking(Media(data=png()), Media(data=WAV), page, linked), "gemini", base_url=server.url)
    text, *parts = server.calls[0].body["contents"][0]["parts"]
    assert text == {"text": "Is it right?"}
    assert [part["text"] for part in parts[::2]] == [f"answer {number}:" for number in range(1, 5)]
    image, sound, markdown, address = parts[1::2]
    assert [each["inlineData"]["mimeType"] for each in (image, sound)] == ["image/png", "audio/wav"]
    assert b64decode(image["inlineData"]["data"]) == png()
    assert markdown == {"text": "# Sales"}
    assert address == {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}


def test_anthropic_gets_blocks(ask: Ask) -> None:
    page = Media(data=b"# Sales", type="text/markdown")
    linked = Media(url="https://example.org/a.png")
    with LlmServer(reply("yes")) as server:
        ask(server, asking(Media(data=png()), Media(data=PDF), page, linked, labels=False), provider="anthropic")
        text, image, document, markdown, address = parts_of(server)
    assert text["text"] == "Is it right?"
    assert (image["type"], image["source"]["media_type"]) == ("image", "image/png")
    assert b64decode(image["source"]["data"]) == png()
    assert (document["type"], b64decode(document["source"]["data"])) == ("document", PDF)
    assert markdown["source"] == {"type": "text", "media_type": "text/plain", "data": "# Sales"}
    assert address == {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def test_pydantic_ai_gets_contents() -> None:
    from pydantic_ai.messages import BinaryContent, ImageUrl

    from pytest_llmeval.judges.clients._pydantic_ai import _messages

    request = asking(Media(data=png()), Media(url="https://example.org/a.png"))
    content: Any = _messages(request)[0].parts[1].content
    assert content[:2] == ["Is it right?", "answer 1:"]
    assert isinstance(content[2], BinaryContent)
    assert (content[2].data, content[2].media_type) == (png(), "image/png")
    assert isinstance(content[4], ImageUrl)


def test_a_model_that_cannot_see_is_an_error_and_gives_no_verdict(ask: Ask) -> None:
    image = asking(Media(data=png()))
    refusal = status(400, "this model does not support image input")
    with LlmServer(refusal) as server:
        with pytest.raises(JudgeError, match="does not support image input"):
            ask(server, image)
        with pytest.raises(JudgeError, match=r"the answer 1 is image/png, 3 x 2, .* does not see \(media: refuse\)"):
            ask(server, image, media="refuse")
        assert len(server.calls) == 1
        for provider, medium in (("anthropic", WAV), ("openai", b"\0\0\0\x18ftypisom")):
            with pytest.raises(JudgeError, match=rf"expected .* for {provider}"):
                ask(server, asking(Media(data=medium)), provider=provider)
        gone = (
            replace(
                Media(data=png(9, 9)),
            )
            if False
            else {**Media(data=png()).form, "sha256": "0" * 64}
        )
        lost = replace(ASKED, messages=(Message("user", "Is it?", media=(ShownMedium(gone, "answer"),)),))
        with pytest.raises(JudgeError, match=r"is not here, expected it in \.llmeval/media"):
            ask(server, lost)
        assert len(server.calls) == 1


def test_clients_of_users_get_parts_where_they_take_a_list_of_messages() -> None:
    asked: list[Any] = []

    class Client:
        def chat(self, messages: list[dict[str, Any]]) -> str:
            asked.append(messages)
            return "yes"

    asyncio.run(as_client(Client()).complete(asking(Media(data=png()))))
    assert [part["type"] for part in asked[0][-1]["content"]] == ["text", "text", "image_url"]


def test_the_key_of_a_judgement_depends_on_the_content_and_on_nothing_else() -> None:
    mode = Mode("m", "1", {"en": "Judge."}, ("question", "answer"), (0, 1), lambda _: None)  # type: ignore[arg-type, return-value]

    def key(data: bytes) -> tuple[str, Any]:
        question = Question(mode, {"question": "Red?", "answer": json_text([form_of(Media(data=data))])})
        messages = render(question)
        assert messages[1].media == (ShownMedium(Media(data=data).form, "answer"),)
        assert "data:image" not in messages[1].content
        terms = {"model": "openai:m", "parameters": {}, "repeat": 0}
        return judgement_key(question, messages, **terms), components(question, messages, **terms)["texts"]["answer"]

    assert key(png()) == key(png())
    assert all(one != other for one, other in zip(key(png()), key(png(color=(0, 0, 1))), strict=True))


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("openai:m", (600, 1), 85 + 2 * 170),
        ("openai:m", (1024, 1024), 765),
        ("openai:m", (2048, 4096), 1105),
        ("azure:m", (512, 512), 255),
        ("anthropic:m", (200, 200), 54),
        ("anthropic:m", (1000, 1000), 1334),
        ("anthropic:m", (3136, 1568), 1640),
        ("pydantic-ai:anthropic:m", (200, 200), 54),
    ],
)
def test_images_count_by_the_rule_of_the_provider(model: str, size: tuple[int, int], tokens: int) -> None:
    form = {"media": "image/png", "sha256": "0" * 64, "bytes": 9, "width": size[0], "height": size[1]}
    message = Message("user", "", media=(ShownMedium(form),))
    assert sent_tokens([message], model) == tokens


def test_what_no_rule_counts_is_told() -> None:
    forms = [form_of(each) for each in (Media(data=PDF), Media(data=WAV), Media(url="https://example.org/a.png"))]
    assert uncounted_media([*forms, Media(data=png()).form]) == 3
    assert sent_tokens([Message("user", "", media=tuple(map(ShownMedium, forms)))]) == 0


def test_pydantic_ai_sends_images_sounds_and_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [Media(data=each) for each in CONTENTS.values()]
    message = {"role": "assistant", "content": "yes"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    with LlmServer(data(whole)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert (
            once(
                JudgeConnection(JudgeSpec("pydantic-ai:openai-chat:m", structured="off")).open(), asking(*contents)
            ).text
            == "yes"
        )
        parts = parts_of(server)
    image, sound, document = (part for part in parts if part["type"] != "text")
    assert [part["text"] for part in parts if part["type"] == "text"][1:] == ["answer 1:", "answer 2:", "answer 3:"]
    assert b64decode(image["image_url"]["url"].partition(",")[2]) == png()
    assert (sound["input_audio"]["format"], b64decode(sound["input_audio"]["data"])) == ("wav", WAV)
    assert b64decode(document["file"]["file_data"].partition(",")[2]) == PDF
