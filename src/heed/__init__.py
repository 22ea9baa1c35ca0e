"""heed turns parallel text into a Transformer translator, runs it, and shows every step inside.

Importing this is fast: torch and the subpackages load when a name is first used.
Start with `heed.load("model-folder")("text")`; read on in `translate/translator.py`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heed.translate.glossary.glossary import Glossary as Glossary
    from heed.translate.remember import remember as remember
    from heed.translate.result import Translation as Translation
    from heed.translate.translator import Translator as Translator
    from heed.translate.translator import load as load

__version__ = "0.1.0"

__all__ = ["Glossary", "Translation", "Translator", "__version__", "load", "remember"]

_IN_TRANSLATE = ("Glossary", "Translation", "Translator", "load", "remember")


def __getattr__(name: str) -> Any:
    if name not in _IN_TRANSLATE:
        raise AttributeError(f"module 'heed' has no attribute {name!r}")
    from heed.translate import remember, translator

    return getattr(remember if name == "remember" else translator, name)


def __dir__() -> list[str]:
    return sorted(__all__)
