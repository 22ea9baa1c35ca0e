"""Settings of the server that are impossible are refused in words."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from heed.errors import ConfigError
from heed.serve.settings import (
    Access,
    Glossary,
    Inside,
    Listen,
    Log,
    Metrics,
    ServeSettings,
    Store,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (lambda: Listen(port=65536), "listen.port must be a whole number from 0 to 65535"),
        (lambda: Listen(certificate="a.pem"), "listen.key is missing: HTTPS needs"),
        (lambda: Listen(key="a.pem"), "listen.certificate is missing: HTTPS needs"),
        (
            lambda: Listen(trusted_proxies=("10.0.0.0/8", "proxy")),
            "listen.trusted_proxies must be addresses or networks.*'proxy'",
        ),
        (lambda: Access(keys="maybe"), "access.keys must be one of auto, on, off"),
        (lambda: Access(origins=("*",)), "access.origins must be addresses like .*'\\*'"),
        (lambda: Access(origins=("https://a.org/x",)), "access.origins must be addresses"),
        (lambda: Log(format="xml"), "log.format must be one of plain, json"),
        (lambda: Store(folder="a\0b"), r"store\.folder must not contain the character NUL"),
        (lambda: Glossary(files=("a", "\0")), r"glossary\.files must not contain .*NUL"),
        (lambda: Metrics(enabled="yes"), "metrics.enabled must be true or false"),
    ],
)
def test_impossible_settings_are_refused(settings: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings()


@pytest.mark.parametrize("browser", ["chrome", "moz", "safari-web"])
def test_browser_extensions_are_origins(browser: str) -> None:
    origins = (f"{browser}-extension://3f2a-b1",)
    assert Access(origins=origins).origins == origins


@pytest.mark.parametrize(
    ("host", "keys", "needed"),
    [
        ("127.0.0.1", "auto", False),
        ("localhost", "auto", False),
        ("::1", "auto", False),
        ("0.0.0.0", "auto", True),
        ("translate.example.org", "auto", True),
        ("127.0.0.1", "on", True),
        ("0.0.0.0", "off", False),
    ],
)
def test_keys_are_needed_where_others_can_connect(host: str, keys: str, needed: bool) -> None:
    settings = ServeSettings(listen=Listen(host=host), access=Access(keys=keys))
    assert settings.needs_keys is needed


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (ServeSettings(), True),
        (ServeSettings(listen=Listen(host="0.0.0.0")), False),
        (ServeSettings(listen=Listen(trusted_proxies=("127.0.0.1",))), False),
        (ServeSettings(access=Access(hosts=("example.org",))), False),
        (ServeSettings(access=Access(hosts=("a.org",)), inside=Inside(enabled="on")), True),
        (ServeSettings(inside=Inside(enabled="off")), False),
    ],
)
def test_models_are_shown_where_only_this_machine_can_connect(
    settings: ServeSettings, shown: bool
) -> None:
    assert settings.shows_inside is shown


def sections() -> dict[str, type]:
    """Name → dataclass of each section of `serve.toml`."""
    return {
        each.name: each.default_factory
        for each in fields(ServeSettings)
        if isinstance(each.default_factory, type)
    }


@pytest.mark.parametrize("page", ["serve.md", "api.md"])
def test_settings_that_the_pages_name_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    known = {f"{name}.{each.name}" for name, kind in sections().items() for each in fields(kind)}
    named = re.findall(rf"(?<![\w.])((?:{'|'.join(sections())})\.[a-z]\w*)\b", text)
    ends = (".sqlite", ".service", ".toml", ".yaml", ".json", ".md")
    assert not {name for name in named if name not in known and not name.endswith(ends)}


def test_every_setting_is_described() -> None:
    for kind in sections().values():
        for each in fields(kind):
            assert f"\n        {each.name}: " in (kind.__doc__ or ""), f"{kind}.{each.name}"
