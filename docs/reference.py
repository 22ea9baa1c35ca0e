"""Pages of the reference, made from the code when `make docs` builds the site."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import click
from mkdocs.structure.files import File, Files

from heed.cli.main import heed
from heed.config import described
from heed.serve.settings import ServeSettings
from heed.train.recipe.recipe import sections

PYTHON = """# Python

`import heed` loads neither torch nor any other heavy package. `heed.load` opens a model; everything
else is imported from the file where it lives.

::: heed.load
::: heed.translate.translator.Translator
::: heed.translate.result
::: heed.translate.lines.Line
::: heed.decode.options.DecodeOptions
::: heed.documents.files
::: heed.documents.markup
::: heed.documents.passages
::: heed.translate.glossary.glossary
::: heed.documents.segment
::: heed.vectors.table
::: heed.vectors.formats
::: heed.vectors.learn
::: heed.vectors.config
::: heed.vectors.pieces
::: heed.explain.decoding.recorded
::: heed.explain.decoding.record
::: heed.explain.decoding.tree
::: heed.explain.decoding.strategies
::: heed.explain.decoding.prefixes
::: heed.explain.embeddings
::: heed.explain.positions
::: heed.explain.plots
::: heed.errors
::: heed.model.trace
::: heed.model.families
::: heed.model.plan
::: heed.model.interface
"""


def on_config(config: Any) -> Any:
    """List the pages of two folders under their headings; called by MkDocs."""
    docs = Path(config["docs_dir"])
    for section in config["nav"][-1]["Explanation"]:
        for pages in section.values():
            if isinstance(pages, list):
                folder = Path(pages[0]).parent
                names = sorted(path.name for path in (docs / folder).glob("[0-9]*.md"))
                names = names if folder.name == "decisions" else names[::-1]
                pages += [str(folder / name) for name in names]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages; called by MkDocs."""
    pages = {
        "commands": commands(),
        "settings": settings(),
        "serve": server_settings(),
        "python": PYTHON,
    }
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def commands() -> str:
    """Every command's own `--help`."""
    text = "# Commands\n\nEach command explains itself with `--help`; this page is that text.\n"
    for path, command in _commands(heed, ()):
        context = click.Context(command, info_name=" ".join(path), max_content_width=100)
        text += f"\n## {' '.join(path)}\n\n```text\n{command.get_help(context)}\n```\n"
    return text


def settings() -> str:
    """A table for each section of a recipe."""
    text = (
        "# Settings\n\nA recipe (`--config recipe.toml`) has these sections; "
        "`section.key=value` on the command line sets one of them. `heed train --dump-config full` "
        "prints all with their values. Where the default of a recipe depends on the corpus and the "
        "time given, `heed train` says what it chose.\n"
    )
    for section, configs in sections().items():
        for config in configs:
            family = getattr(config, "family", "")
            heading = f"{section}: family {family}" if len(configs) > 1 else section
            text += (
                f"\n## {heading}\n\n| setting | values | default | meaning |\n|---|---|---|---|\n"
            )
            text += "".join(f"| {' | '.join(row)} |\n" for row in _rows(config))
    return text


def server_settings() -> str:
    """A table for each section of `serve.toml`."""
    text = (
        "# Settings of the server\n\n`heed serve` takes them from `--config serve.toml`, from "
        "`--set section.key=value`, and from variables such as `HEED_SERVE_LISTEN_PORT`.\n"
    )
    for section, config in get_type_hints(ServeSettings).items():
        if isinstance(config, type) and is_dataclass(config):
            text += (
                f"\n## {section}\n\n| setting | values | default | meaning |\n|---|---|---|---|\n"
            )
            text += "".join(f"| {' | '.join(row)} |\n" for row in _rows(config))
    return text


def _commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    path = (*path, command.name or "heed")
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner, f"{name} is a command"
            yield from _commands(inner, path)


def _rows(config: type[Any]) -> Iterator[tuple[str, ...]]:
    meanings = _meanings(config)
    hints = get_type_hints(config, include_extras=True)
    for field in fields(config):
        values = described(hints[field.name])
        cells = (f"`{field.name}`", values, _default(field), meanings[field.name])
        yield tuple(cell.replace("|", "\\|") for cell in cells)


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "from the vocabulary"
    return "" if field.default in (None, "", ()) else f"`{field.default}`".lower()


def _meanings(config: type[Any]) -> dict[str, str]:
    """The lines of `Attributes:` in the docstrings of a class and those it extends."""
    found: dict[str, str] = {}
    for each in reversed(config.__mro__[:-1]):
        block = (each.__doc__ or "").partition("Attributes:\n")[2].partition("\n    Raises:")[0]
        for entry in re.split(r"\n(?= {8}\w)", block.strip("\n")):
            names, _, meaning = entry.strip().partition(": ")
            if ", " in names:  # these are described by the class they come from
                continue
            found[names] = " ".join(meaning.split())
    return found
