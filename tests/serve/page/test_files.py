"""The page's files: small, kept by browsers, and nothing of them comes from elsewhere."""

import gzip
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.export import SCREENS
from heed.serve.page import files
from heed.serve.page.files import read_page, routes

STATIC = Path(files.__file__).parent / "static"
MAX_COMPRESSED_BYTES = 80_000
MAX_SCREEN_BYTES = 150_000


def client() -> TestClient:
    return TestClient(Starlette(routes=routes(char_limit=1234)))


def loaded(*names: str) -> set[str]:
    """The files that the page loads first, and those that these modules import."""
    _, table = read_page(1000)
    index = table["index.html"].content.decode()
    shell = {"index.html", "icons.svg", *re.findall(r'"page/[0-9a-f]+/([^"#]+)"', index)}
    needed = {*shell, *names}
    waiting = [name for name in needed if name.endswith(".js")]
    while waiting:
        imported = set(re.findall(r'from "\./([^"]+)"', code(waiting.pop())))
        waiting += imported - needed
        needed |= imported
    return needed


def compressed_bytes(names: set[str]) -> int:
    _, table = read_page(1000)
    return sum(len(table[name].compressed) for name in names)


def test_what_the_translator_loads_has_at_most_80_kilobytes_compressed() -> None:
    assert len(loaded()) > 10
    assert compressed_bytes(loaded()) <= MAX_COMPRESSED_BYTES


@pytest.mark.parametrize("screen", [*SCREENS, "training"])
def test_what_a_screen_loads_has_at_most_150_kilobytes_compressed(screen: str) -> None:
    views = re.findall(r'import\("\./([^"]+)"\)', code(f"{screen}.js"))
    names = loaded("inside.css", f"{screen}.css", f"{screen}.js", *views)
    assert len(names) > len(loaded())
    assert compressed_bytes(names) <= MAX_SCREEN_BYTES


def code(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def test_the_page_knows_the_limit_and_where_its_files_are() -> None:
    answer = client().get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 'data-char-limit="1234"' in answer.text
    assert "{{" not in answer.text
    for name in re.findall(r'(?:src|href)="(page/[^"#]+)', answer.text):
        assert client().get(f"/{name}").status_code == 200, name


def test_every_file_that_a_module_imports_is_served() -> None:
    for path in STATIC.glob("*.js"):
        for name in re.findall(r'from "\./([^"]+)"', path.read_text(encoding="utf-8")):
            assert (STATIC / name).is_file(), f"{path.name} imports {name}"


def test_an_unchanged_file_is_not_sent_again() -> None:
    first = client().get("/")
    assert first.headers["cache-control"] == "no-cache"
    again = client().get("/", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert client().get("/", headers={"If-None-Match": '"other"'}).status_code == 200


def test_files_of_a_version_are_kept_for_a_year_and_other_versions_are_not_there() -> None:
    version, _ = read_page(1234)
    answer = client().get(f"/page/{version}/main.js")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert client().get("/page/0000/main.js").status_code == 404


def test_a_name_outside_the_table_is_not_found() -> None:
    version, _ = read_page(1234)
    for name in ("../files.py", "..%2ffiles.py", "%2e%2e/files.py", "none.js", ""):
        assert client().get(f"/page/{version}/{name}").status_code == 404, name


def test_files_are_sent_compressed_to_those_who_read_that() -> None:
    with client() as http:
        plain = http.get("/", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        with http.stream("GET", "/", headers={"Accept-Encoding": "gzip"}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == plain.content


def test_the_policy_allows_the_servers_own_files_only(serve: Serve, en_de: str) -> None:
    policy = serve(en_de).get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_there_is_no_script_or_style_within_the_html() -> None:
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", html)


def test_no_file_names_another_host() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"http://www\.w3\.org/(2000/svg|1998/Math/MathML)", "", text)
        assert not re.search(r"https?://|[\"'(]//", text), path.name


def test_texts_never_become_markup() -> None:
    risky = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    for path in STATIC.glob("*.js"):
        assert not re.search(risky, path.read_text(encoding="utf-8")), path.name
