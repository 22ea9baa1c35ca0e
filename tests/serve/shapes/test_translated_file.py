"""Files in, files out, over three APIs; nothing of a name becomes a path."""

import os
import re
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import deepl
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve, make_model
from tests.serve.program import Program

import heed
from heed.documents import files as files_module
from heed.documents import markdown
from heed.documents.assembly import Assembly
from heed.documents.files import Document, open_document
from heed.documents.markdown import split_markdown
from heed.documents.markdown_spans import label_of
from heed.documents.segment import OnRead
from heed.serve.refusal import Refusal
from heed.serve.service import FILE_THREADS
from heed.serve.settings import Limits, Listen, Store, Work
from heed.serve.shapes import translated_file
from heed.serve.shapes.downloads import FOLDER, Downloads
from heed.serve.shapes.translated_file import named_for, safe_name
from heed.translate.result import Translation, join_parts

TEXT = f"{SENTENCES[0]}\n\n{SENTENCES[2]}\n"
DIRECTION = {"source": "en", "target": "de"}


@pytest.fixture
def wanted(en_de: str) -> str:
    first, second = heed.load(en_de)([SENTENCES[0], SENTENCES[2]])
    return f"{first}\n\n{second}\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(folder=str(tmp_path), files=2)


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str, store: Store) -> TestClient:
    return serve(en_de, de_en, store=store, limits=Limits(chars=200, file_bytes=2000))


def upload(
    client: TestClient, path: str, name: str = "a.txt", text: str = TEXT, **more: str
) -> Any:
    return client.post(path, files={"file": (name, text.encode())}, data={**DIRECTION, **more})


def test_libretranslate_answers_an_address_to_fetch_the_file(
    client: TestClient, wanted: str
) -> None:
    url = upload(client, "/translate_file").json()["translatedFileUrl"]
    assert url.startswith("http://testserver/download_file/")
    fetched = client.get(url)
    assert fetched.text == wanted
    assert 'attachment; filename="a.de.txt"' in fetched.headers["content-disposition"]
    assert fetched.headers["content-type"] == "application/octet-stream"


def test_the_address_of_a_file_is_ascii(client: TestClient, wanted: str) -> None:
    url = upload(client, "/translate_file", name="bä c.txt").json()["translatedFileUrl"]
    assert url.endswith(".b%C3%A4_c.de.txt")
    assert client.get(url).text == wanted


@pytest.mark.parametrize("forwarded", ["https", "http", "https, http", ""])
@pytest.mark.parametrize("peer", ["::2", "::3"])
def test_the_address_of_a_file_is_https_if_a_trusted_proxy_says_so(
    serve: Serve, en_de: str, store: Store, peer: str, forwarded: str
) -> None:
    app = serve(en_de, store=store, listen=Listen(trusted_proxies=("::2",))).app
    proxy = TestClient(app, client=(peer, 1), headers={"X-Forwarded-Proto": forwarded})
    url = upload(proxy, "/translate_file").json()["translatedFileUrl"]
    scheme = "https" if (peer, forwarded) == ("::2", "https") else "http"
    assert url.startswith(f"{scheme}://testserver/download_file/")


def test_a_file_of_a_long_name_is_kept(client: TestClient, wanted: str) -> None:
    name, kept = "日" * 80 + ".txt", "日" * 33 + ".de.txt"
    answer = upload(client, "/translate_file", name=name)
    assert answer.status_code == 200
    assert client.get(answer.json()["translatedFileUrl"]).text == wanted
    sent = {"target_lang": "DE", "source_lang": "EN"}
    handle = client.post("/v2/document", files={"file": (name, b"Two dogs")}, data=sent).json()
    path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    result = client.post(f"{path}/result", json=key)
    assert result.headers["content-disposition"].endswith(f"''{quote(kept)}")


def test_deepl_takes_the_name_of_a_file_as_a_field(client: TestClient) -> None:
    sent = {"target_lang": "DE", "source_lang": "EN", "filename": "b.txt"}
    answer = client.post("/v2/document", files={"file": ("file", b"Two dogs")}, data=sent)
    handle = answer.json()
    path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    result = client.post(f"{path}/result", json=key)
    assert 'filename="b.de.txt"' in result.headers["content-disposition"]


def test_heed_answers_the_file(client: TestClient, wanted: str) -> None:
    answer = upload(client, "/api/v1/files", name="Bericht ü.txt")
    assert answer.text == wanted
    disposition = answer.headers["content-disposition"]
    assert 'filename="Bericht__.de.txt"' in disposition
    assert "filename*=UTF-8''Bericht_%C3%BC.de.txt" in disposition


def test_the_language_of_a_file_is_detected(client: TestClient, wanted: str) -> None:
    assert upload(client, "/api/v1/files", source="auto").text == wanted


def test_a_file_in_a_language_without_a_model_into_the_target_is_read_as_a_text_would_be(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    client = serve(en_de, make_model(tmp_path / "de-fr", "de", "fr"))
    asked = {"source": "auto", "target": "de"}
    french = "Les chiens jouent dans la neige avec leurs enfants."
    answer = upload(client, "/api/v1/files", text=french, **asked)
    assert answer.status_code == 200, answer.text
    assert (
        answer.text
        == client.post("/translate", json={"q": french, **asked}).json()["translatedText"]
    )


def test_a_file_that_takes_too_long_to_read_is_refused_and_does_not_delay_the_end(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over, threads = threading.Event(), []

    def read_for_long(name: str, data: bytes, target_lang: str, on_read: OnRead) -> Document:
        threads.append(threading.current_thread())
        assert is_over.wait(60)
        return open_document(name, data, target_lang, on_read)

    monkeypatch.setattr(files_module, "open_document", read_for_long)
    client = serve(en_de, work=Work(timeout_s=0.2))
    answers = [upload(client, "/api/v1/files") for _ in range(FILE_THREADS + 1)]
    is_over.set()
    assert [answer.status_code for answer in answers] == [504] * (FILE_THREADS + 1)
    assert "Send less text at once" in answers[0].text
    # The last file waited for the others, and was given up before its turn.
    assert [thread.daemon for thread in threads] == [True] * FILE_THREADS


def test_reading_markdown_stops_when_no_client_waits(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, is_over, is_stopped = threading.Event(), threading.Event(), threading.Event()

    def wait(text: str) -> str:
        begun.set()
        assert is_over.wait(60)
        return label_of(text)

    def read(text: str, on_read: OnRead) -> Assembly:
        try:
            return split_markdown(text, on_read)
        except Refusal as refusal:
            assert refusal.status == 504
            is_stopped.set()
            raise

    monkeypatch.setattr(markdown, "label_of", wait)
    monkeypatch.setattr(files_module, "split_markdown", read)
    monkeypatch.setitem(files_module.TEXT_FORMATS, "md", read)
    client = serve(en_de, work=Work(timeout_s=0.2))
    page = "[a]: b\n\nTwo dogs play.\n"
    assert upload(client, "/api/v1/files", name="a.md", text=page).status_code == 504
    assert begun.is_set()
    is_over.set()
    assert is_stopped.wait(60)


@pytest.mark.parametrize(("limit", "is_aligned"), [(5000, True), (10, False)])
def test_a_very_long_paragraph_is_joined_without_alignment(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, limit: int, is_aligned: bool
) -> None:
    joined: list[Translation] = []

    def join(parts: list[Translation]) -> Translation:
        joined.extend(parts)
        return join_parts(parts)

    monkeypatch.setattr(translated_file, "ALIGNED_CHARS", limit)
    monkeypatch.setattr(translated_file, "join_parts", join)
    text = "<p>Two dogs <b>play</b> in the snow.</p>"
    answer = upload(client, "/api/v1/files", name="a.html", text=text)
    assert [part.alignment is not None for part in joined] == [is_aligned]
    assert re.search("<p>.*<b>.*</b>.*</p>", answer.text)


def test_tags_of_a_page_stay(client: TestClient, en_de: str) -> None:
    answer = upload(client, "/api/v1/files", name="a.html", text="<p>Two dogs</p><!-- x -->")
    assert answer.text == f"<p>{heed.load(en_de)('Two dogs')}</p><!-- x -->"


@pytest.mark.parametrize(
    ("name", "text", "status", "words"),
    [
        ("a.exe", TEXT, 400, "file format not supported"),
        ("txt", TEXT, 400, "file format not supported"),
        ("a.xml", "<p>a", 400, "never closed"),
        ("a.txt", "x" * 201, 413, "request (201) exceeds text limit (200)"),
        ("a.txt", "x" * 2001, 413, "at most 2000 bytes"),
    ],
)
def test_a_file_that_cannot_be_translated_is_refused(
    client: TestClient, name: str, text: str, status: int, words: str
) -> None:
    answer = upload(client, "/translate_file", name=name, text=text)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_a_request_without_a_file_is_refused(client: TestClient) -> None:
    answer = client.post("/translate_file", data=DIRECTION)
    assert answer.json() == {"error": "Invalid request: missing file parameter"}


def test_files_are_refused_where_none_are_kept(serve: Serve, en_de: str) -> None:
    client = serve(en_de, store=Store(files=0))
    answer = upload(client, "/translate_file")
    assert (answer.status_code, answer.json()["error"]) == (
        403,
        "Files translation are disabled on this server.",
    )
    assert client.get("/download_file/x").status_code == 400


def test_only_so_many_files_wait_and_only_so_long(client: TestClient, tmp_path: Path) -> None:
    urls = []
    for number in range(3):
        urls.append(upload(client, "/translate_file").json()["translatedFileUrl"])
        kept = tmp_path / FOLDER / urls[-1].rpartition("/")[2]
        os.utime(kept, (time.time() - 100 + number,) * 2)
    assert [client.get(url).status_code for url in urls] == [404, 200, 200]
    os.utime(kept, (time.time() - 3600,) * 2)
    assert client.get(urls[2]).status_code == 404
    upload(client, "/translate_file")
    assert not kept.exists()


def test_a_file_can_be_fetched_from_a_restarted_server(
    client: TestClient, serve: Serve, en_de: str, store: Store, wanted: str
) -> None:
    """Also after the next upload: it counts how long ago the file was stored."""
    path = (
        upload(client, "/translate_file")
        .json()["translatedFileUrl"]
        .removeprefix("http://testserver")
    )
    restarted = serve(en_de, store=store)
    upload(restarted, "/translate_file")
    assert restarted.get(path).text == wanted


def test_a_server_deletes_old_files_when_it_starts(en_de: str, tmp_path: Path) -> None:
    old = tmp_path / FOLDER / Downloads(Store(folder=str(tmp_path))).keep("a.txt", b"a")
    os.utime(old, (time.time() - 3600,) * 2)
    with Program("-m", en_de, "--set", f"store.folder={tmp_path}") as program:
        deadline = time.monotonic() + 60
        while old.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not old.exists()
        assert program.stop() == 0


def test_a_name_that_no_file_can_have_is_not_found(client: TestClient) -> None:
    upload(client, "/translate_file")
    answer = client.get(f"/download_file/{'0' * 32}.{'x' * 300}")
    assert answer.status_code == 404


def test_a_document_is_not_found_when_its_time_is_over(client: TestClient, tmp_path: Path) -> None:
    sent = {"target_lang": "DE", "source_lang": "EN"}
    handle = client.post("/v2/document", files={"file": ("a.txt", b"Two dogs")}, data=sent).json()
    (kept,) = (tmp_path / FOLDER).iterdir()
    os.utime(kept, (time.time() - 3600,) * 2)
    answer = client.post(
        f"/v2/document/{handle['document_id']}", json={"document_key": handle["document_key"]}
    )
    assert answer.status_code == 404


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_only_a_form_with_a_file_may_have_the_size_of_a_file(
    serve: Serve, en_de: str, kind: str
) -> None:
    """Others are parsed in the event loop, and cannot hold a file."""
    client = serve(en_de, limits=Limits(body_bytes=1024, file_bytes=4096))
    sent = {"content": b"x" * 1025, "headers": {"Content-Type": kind}}
    answer = client.post("/translate_file", **sent)
    assert (answer.status_code, answer.json()["error"]) == (
        413,
        "The body must have at most 1024 bytes.",
    )


@pytest.mark.parametrize(
    "name",
    ["../store.sqlite", "..%2fstore.sqlite", "%2e%2e%2fstore.sqlite", "a.txt", "x%00.txt"],
)
def test_no_other_file_can_be_fetched(client: TestClient, tmp_path: Path, name: str) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "a.txt").write_text("secret", encoding="utf-8")
    answer = client.get(f"/download_file/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\a.txt", "a.txt"),
        ('a"; x=.txt', "a_x_.txt"),
        ("a\r\nb.txt", "a_b.txt"),
        ("...", ""),
        ("日本.txt", "日本.txt"),
        ("x" * 300 + ".txt", "x" * 100 + ".txt"),
        ("日" * 99 + ".txt", "日" * 33 + ".txt"),
        ("\ud800.txt", "_.txt"),
    ],
)
def test_a_name_has_nothing_that_a_shell_or_a_header_reads(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_name_tells_the_language() -> None:
    assert named_for("a.b.txt", "de") == "a.b.de.txt"


def test_the_client_of_deepl_translates_a_document(
    program: str, wanted: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text(TEXT, encoding="utf-8")
    with closing(deepl.Translator("any-key", server_url=program)) as client:
        before = client.get_usage().character.count
        status = client.translate_document_from_filepath(
            source, target, source_lang="EN", target_lang="DE"
        )
        assert status.done
        assert status.billed_characters == client.get_usage().character.count - before
        assert target.read_text(encoding="utf-8") == wanted
        with pytest.raises(deepl.DeepLException, match="Document not found"):
            client.translate_document_get_status(deepl.DocumentHandle("A" * 32, "b" * 64))


def test_a_document_is_not_found_with_another_key(client: TestClient) -> None:
    sent = {"target_lang": "DE", "source_lang": "EN"}
    handle = client.post("/v2/document", files={"file": ("a.txt", b"Two dogs")}, data=sent).json()
    path = f"/v2/document/{handle['document_id']}"
    right, wrong = {"document_key": handle["document_key"]}, {"document_key": "0" * 64}
    status = client.post(path, json=right).json()
    assert (status["status"], status["billed_characters"]) == ("done", len("Two dogs"))
    assert client.post(f"{path}/result", json=right).status_code == 200
    assert client.post(path, json=wrong).status_code == 404
    assert client.post(f"{path}/result", json=wrong).json() == {"message": "Document not found."}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"output_format": "pdf"}, "Value for 'output_format' not supported"),
        ({"formality": "more"}, "'formality' is not supported"),
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
    ],
)
def test_a_document_that_cannot_be_translated_is_refused(
    client: TestClient, values: dict[str, str], sentence: str
) -> None:
    sent = {"target_lang": "DE", "source_lang": "EN", **values}
    answer = client.post("/v2/document", files={"file": ("a.txt", b"Two dogs")}, data=sent)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(sentence)


def test_a_folder_that_cannot_be_used_is_told(
    serve: Serve, en_de: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    client = serve(en_de, store=Store(folder=str(tmp_path / "file" / "x")))
    answer = upload(client, "/translate_file")
    assert (answer.status_code, answer.json()["error"]) == (
        503,
        "The server cannot store files now.",
    )
    # The log has no path: the name of the file is the client's.
    assert caplog.messages[0] == "the folder of translated files cannot be used: Not a directory"
