"""The page as one HTML file, which a browser opens from the disk without any network access.

Its modules, styles and icons are those that a server sends; `held.js` answers their requests from
data in the file.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

INDEX, MAIN, ANSWERS, THEME = "index.html", "main.js", "held.js", "theme.js"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""The file's content security policy: only its own content."""

_IMPORT = re.compile(r"((?:\bfrom|\bimport)\s*\(?\s*)([\"'`])\./")
_NAMED = re.compile(r"(?:\bfrom|\bimport)\s*\(?\s*[\"']\./([\w-]+\.js)[\"']")
_LINKS = re.compile(r"^\s*<(?:link rel=\"(?:icon|stylesheet)\"|script )[^\n]*\n", re.MULTILINE)
_ICON = re.compile(r'href="page/{{version}}/icons\.svg#')


def single_page(
    screens: Sequence[str], held: Mapping[str, Any], *, title: str, note: str, char_limit: int
) -> str:
    """The page with these screens.

    Args:
        screens: their names; the first one is shown.
        held: the data for `held.js`, as JSON.
        title: title of the document.
        note: description of the file, shown at its end.
        char_limit: maximum length of a text in characters.
    """
    static = files("heed.serve.page").joinpath("static")
    contents = {entry.name: entry.read_text("utf-8") for entry in static.iterdir()}
    styles = ["theme", "page", "inside", *screens]
    head = [
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">',
        f'<link rel="icon" href="{_data(contents["mark.svg"], "image/svg+xml")}">',
        "<style>.end .links { display: none; }</style>",  # the links need a server
        *(f'<style data-name="{name}">{contents[f"{name}.css"]}</style>' for name in styles),
        f"<script>{contents[THEME]}</script>",
        f'<script type="application/json" id="held">{_json(held)}</script>',
        f'<script type="importmap">{_json({"imports": _modules(contents, screens)})}</script>',
        f"<script>{contents[ANSWERS]}</script>",
        '<script type="module">import "heed/main.js";</script>',
    ]
    page = _LINKS.sub("", contents[INDEX])
    page = _ICON.sub('href="#icon-', page)
    page = page.replace("<html ", f'<html data-only="{" ".join(screens)}" ')
    filled = {"char_limit": char_limit, "models": "on", "inside": "on", "runs": "off"}
    for name, value in filled.items():
        page = page.replace(f"{{{{{name}}}}}", str(value))
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{_escaped(title)}</title>", page)
    page = re.sub(r"(<footer class=\"end\">\s*<p>)[^<]*", lambda m: m[1] + _escaped(note), page)
    page = page.replace("</head>", "\n".join([*head, "</head>"]))
    icons = re.sub(r'<symbol id="', '<symbol id="icon-', contents["icons.svg"])
    icons = icons.replace("<svg ", '<svg id="icons" hidden ', 1)
    return page.replace("</body>", f"{icons}</body>")


def _modules(contents: Mapping[str, str], screens: Sequence[str]) -> dict[str, str]:
    """Maps each module that the screens need to a data URL."""
    needed: dict[str, None] = {}
    waiting = [MAIN, "half.js", *(f"{name}.js" for name in screens)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = None
            waiting += _NAMED.findall(contents[name])
    return {
        f"heed/{name}": _data(_IMPORT.sub(r"\1\2heed/", contents[name]), "text/javascript")
        for name in sorted(needed)
    }


def _data(text: str, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(text.encode()).decode()}"


def _json(value: Any) -> str:
    """JSON that cannot end its HTML element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
