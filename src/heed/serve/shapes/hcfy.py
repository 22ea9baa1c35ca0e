"""The API of HCFY (划词翻译), an add-on that names languages in Chinese.

Source: its requests, and the responses of LinguaSpark and MTranServer.
"""

from dataclasses import replace
from typing import Any

from heed.serve.languages import resolve
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO
from heed.serve.service import Service
from heed.serve.shapes import addons
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, Field
from heed.serve.shapes.schemas import TEXT, listed, record

NAMES = {
    "ar": "阿拉伯语",
    "bg": "保加利亚语",
    "cs": "捷克语",
    "da": "丹麦语",
    "de": "德语",
    "el": "希腊语",
    "en": "英语",
    "es": "西班牙语",
    "et": "爱沙尼亚语",
    "fa": "波斯语",
    "fi": "芬兰语",
    "fr": "法语",
    "he": "希伯来语",
    "hi": "印地语",
    "hu": "匈牙利语",
    "id": "印尼语",
    "it": "意大利语",
    "ja": "日语",
    "ko": "韩语",
    "lt": "立陶宛语",
    "lv": "拉脱维亚语",
    "ms": "马来语",
    "nl": "荷兰语",
    "pl": "波兰语",
    "pt": "葡萄牙语",
    "ro": "罗马尼亚语",
    "ru": "俄语",
    "sk": "斯洛伐克语",
    "sl": "斯洛文尼亚语",
    "sv": "瑞典语",
    "th": "泰语",
    "tr": "土耳其语",
    "uk": "乌克兰语",
    "vi": "越南语",
    "zh": "中文(简体)",
    "zh-Hant": "中文(繁体)",
}
"""The add-on's names of languages, by code; it uses codes for other languages."""
CODES = {name: code for code, name in NAMES.items()}


async def _hcfy(service: Service, asked: Asked) -> dict[str, Any]:
    """Translate into the first language, or into the second if the text is in the first."""
    text, wanted = asked.values["text"], asked.values["destination"]
    if not wanted:
        missing = addons.STYLE.missing.format(name="destination")
        raise Refusal(400, missing, code="missing", field="destination")
    into = [CODES.get(name, name) for name in wanted]
    source = CODES.get(asked.values["source"], asked.values["source"]) or AUTO
    (answer,) = await addons.translate(service, [text], source, into[0])
    if not answer.model and len(into) > 1:
        into = into[1:]
        (answer,) = await addons.translate(service, [text], answer.source, into[0])
    return {
        "text": text,
        "from": _name_of(answer.source),
        "to": _name_of(into[0]),
        "result": answer.text.split("\n"),
    }


def _name_of(code: str) -> str:
    """The add-on's name of a language, which may have another code or a region here."""
    return NAMES.get(resolve(code, NAMES) or "", code)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/hcfy",
        handler=_hcfy,
        style=addons.STYLE,
        tag=addons.TAG,
        summary="Translate for HCFY.",
        fields=(
            addons.WHOLE_TEXT,
            Field(
                name="destination",
                kind="words",
                about="Languages, by their Chinese names or codes: the one that is wanted, and the "
                "one for a text that is in it already.",
                is_required=True,
                example=["德语", "英语"],
            ),
            replace(SOURCE, about="Language of the text; detected where it is not given."),
            Field(name="name", kind="word", about="Name that the person gave this server."),
        ),
        answer=record(**{"text": TEXT, "from": TEXT, "to": TEXT, "result": listed(TEXT)}),
    ),
)
