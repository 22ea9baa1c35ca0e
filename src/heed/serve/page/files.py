"""The files of the page, read once and served from memory: `/` and `/page/VERSION/NAME`.

VERSION is a hash of all files, so browsers can cache them for a year and still see every change.
"""

import gzip
import hashlib
from dataclasses import asdict, dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

INDEX = "index.html"
FOREVER = "public, max-age=31536000, immutable"
ALWAYS_ASK = "no-cache"

MEDIA_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
"""Media types by suffix. Python's own table reads the system's, which takes a third of a MB."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's content security policy: only its own files and this server's responses."""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file in the form in which it is sent.

    Attributes:
        content: its bytes.
        compressed: its bytes compressed with gzip.
        media_type: its media type, with the charset.
        etag: quoted hash of the content.
        cache_control: value of the header, for caching in browsers.
    """

    content: bytes
    compressed: bytes
    media_type: str
    etag: str
    cache_control: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The screens of the page.

    Attributes:
        models: show the translator and the inspection of models.
        inside: show the inspection of models.
        runs: show training runs.
    """

    models: bool = True
    inside: bool = True
    runs: bool = False


def read_page(char_limit: int, shown: Shown = Shown()) -> tuple[str, dict[str, File]]:
    """The version of the page, and its files by name.

    Args:
        char_limit: maximum length of a text in characters, for the page's counter.
        shown: the screens that the page has.
    """
    contents = {
        entry.name: entry.read_bytes()
        for entry in files("heed.serve.page").joinpath("static").iterdir()
    }
    version = _hash(b"".join(contents[name] for name in sorted(contents)))
    filled = contents[INDEX].replace(b"{{version}}", version.encode())
    filled = filled.replace(b"{{char_limit}}", str(char_limit).encode())
    for name, is_shown in asdict(shown).items():
        filled = filled.replace(b"{{%b}}" % name.encode(), b"on" if is_shown else b"off")
    contents[INDEX] = filled
    return version, {
        name: _file(name, content, ALWAYS_ASK if name == INDEX else FOREVER)
        for name, content in contents.items()
    }


def routes(char_limit: int, shown: Shown = Shown()) -> list[Route]:
    """The routes of the page.

    Args:
        char_limit: maximum length of a text in characters.
        shown: the screens that the page has.
    """
    version, table = read_page(char_limit, shown)

    async def index(request: Request) -> Response:
        return _send(table[INDEX], request)

    async def file(request: Request) -> Response:
        found = table.get(request.path_params["name"])
        if found is None or request.path_params["version"] != version:
            return Response("There is no such file.\n", status_code=404, media_type="text/plain")
        return _send(found, request)

    return [Route("/", index), Route("/page/{version}/{name}", file)]


def _send(file: File, request: Request) -> Response:
    headers = {
        "ETag": file.etag,
        "Cache-Control": file.cache_control,
        "Vary": "Accept-Encoding",
        "Content-Security-Policy": CONTENT_POLICY,
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = file.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = file.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(content, media_type=file.media_type, headers=headers)


def _file(name: str, content: bytes, cache_control: str) -> File:
    kind = MEDIA_TYPES[name.rpartition(".")[2]]
    return File(
        content=content,
        compressed=gzip.compress(content, 9, mtime=0),
        media_type=f"{kind}; charset=utf-8",
        etag=f'"{_hash(content)}"',
        cache_control=cache_control,
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
