"""The views of `heed inspect` without a page: tensors, attention, probabilities."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.bundle.bundle import task_of
from heed.cli.command import Session
from heed.cli.look import draw_weights, terminal_palette
from heed.cli.models import checked_search
from heed.cli.terminal import echo, visible
from heed.disk.files import require_writable_file
from heed.errors import UsageError
from heed.explain.render import ansi256, bar, digits, truecolor
from heed.translate.load import OTHER_TASKS

if TYPE_CHECKING:
    from heed.text.vocab import Vocab
    from heed.translate.result import Translation
    from heed.translate.trace import BatchTrace, Trace
    from heed.translate.translator import Translator

USES = ("cross", "encoder", "decoder", "joint")
AUTO = "auto"
TRACED = {
    "attention": "--attention",
    "probabilities": "--probabilities",
    "steps": "--steps",
    "tensor": "--tensor",
    "trace_path": "--trace",
}
"""The views that show tensors: their parameters and flags."""
VIEWS = {"tree": "--tree", "sample": "--sample", **TRACED}
"""All views without a page."""
VIEWS_OF = {
    "layer": ("attention",),
    "head": ("attention",),
    "words": ("attention",),
    "out": ("tensor",),
    "every_step": ("trace_path",),
    "beam_size": ("tree", *TRACED),
    "no_memory": tuple(VIEWS),
    "seed": ("sample",),
    "target_lang": (*VIEWS, "html"),
}
"""Maps an option to the views in which it has an effect."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The views to show and their options; without a view, a page opens.

    Attributes:
        tree: whether the search tree is drawn.
        sample: top-p of a sample whose steps are listed.
        attention: the kind of attention whose map is drawn; `AUTO` = the model decides.
        probabilities: whether the probability of each target token is printed.
        steps: whether all tensors are listed.
        tensor: name of a tensor to print.
        trace_path: file for all tensors.
        layer: layer of the map, from 0 or from the end.
        head: heads of the map, from 0; none = the mean of all.
        words: show words in the map instead of pieces.
        out: file for the one tensor, instead of the terminal.
        every_step: whether the trace has the tensors of every search step.
        beam_size: beam size of the search; None = the default.
        no_memory: whether the pairs that are stored with the model are left out of the search.
        seed: seed of the sample.
        target_lang: target language.
    """

    tree: bool
    sample: float | None
    attention: str | None
    probabilities: bool
    steps: bool
    tensor: str | None
    trace_path: str | None
    layer: int
    head: tuple[int, ...]
    words: bool
    out: str | None
    every_step: bool
    beam_size: int | None
    no_memory: bool
    seed: int
    target_lang: str | None

    @property
    def is_asked(self) -> bool:
        """Whether a view without a page is requested."""
        return self.tree or self.sample is not None or self.needs_trace

    @property
    def needs_trace(self) -> bool:
        """Whether a requested view needs tensors."""
        return any(getattr(self, name) for name in TRACED)

    def search(self, translator: "Translator") -> dict[str, Any]:
        """The decoding options.

        Raises:
            UsageError: one of them is invalid.
        """
        return checked_search(translator.options, {"beam_size": self.beam_size})


def show(
    session: Session, shown: Shown, folder: Path, text: str | None, translation: str | None
) -> None:
    """Search or trace a sentence, and print the requested views.

    Raises:
        UsageError: an option is missing, or does not fit the model.
    """
    if text is None:
        raise UsageError("Give the TEXT that the model reads.")
    _require_outputs(shown)
    for is_asked, flag, show_search in (
        (shown.tree, "--tree", _show_tree),
        (shown.sample is not None, "--sample", _show_sample),
    ):
        if not is_asked:
            continue
        if translation is not None:
            raise UsageError(f"{flag} needs a search: leave out TRANSLATION.")
        if len(lines_in(text)) > 1:
            raise UsageError(f"{flag} works on one sentence: give a TEXT of one line.")
        if (task := task_of(folder)) != "translate":
            raise UsageError(f"{flag} needs a translator: {folder} {OTHER_TASKS[task]}")
        show_search(folder, text, shown)
    if not shown.needs_trace:
        return
    trace, vocab = traced(folder, text, translation, shown)
    from heed.explain.decoding.tree import memory_lines
    from heed.translate.trace import BatchTrace  # a trace exists, so torch is installed

    sentences = trace.sentences if isinstance(trace, BatchTrace) else [trace]
    for number, sentence in enumerate(sentences):
        if translation is None and sentence.translation:
            shown_text = sentence.translation.replace("\n", "\\n")  # a language model writes lines
            session.say(f"heed: {shown_text}")
            for line in memory_lines(sentence.match):
                session.say(f"heed: {line}")
        if len(sentences) > 1 and (shown.probabilities or shown.attention):
            echo(f"{number}: {visible(sentence.source)}")
        if shown.probabilities:
            _show_probabilities(sentence, vocab)
        if shown.attention:
            _show_attention(sentence, shown)
    if shown.steps or shown.tensor:
        _show_tensors(trace, shown)
    if shown.trace_path:
        trace.save(shown.trace_path)
        session.say(f"heed: {len(trace)} tensors are in {shown.trace_path}.")


def _require_outputs(shown: Shown) -> None:
    """Refuse files that cannot be written, before the model is loaded.

    Raises:
        UsageError: the format of a tensor's file is unknown.
        RunError: a file cannot be written.
    """
    if shown.out:
        from heed.explain.tensors import require_format

        require_format(shown.out)
    for path in filter(None, [shown.out, shown.trace_path]):
        require_writable_file(path)


def lines_in(text: str) -> list[str]:
    """The lines of a text that are not blank."""
    return [line for line in text.split("\n") if line.strip()]


def traced(
    folder: Path, text: str, translation: str | None, shown: Shown
) -> "tuple[Trace | BatchTrace, Vocab]":
    """A trace of any model's computation for a text, and its output vocabulary.

    A translator reads several lines as one batch.
    """
    task = task_of(folder)
    if task == "translate":
        from heed.translate.translator import load

        translator = load(folder, memory=not shown.no_memory)
        search = shown.search(translator)
        options = {"target_lang": shown.target_lang, "steps": shown.every_step, **search}
        lines = lines_in(text)
        if not lines:
            raise UsageError("TEXT must be a sentence, but is blank.")
        if len(lines) > 1:
            given = None if translation is None else lines_in(translation)
            return translator.trace(lines, given, **options), translator.tgt_vocab
        return translator.trace(text, translation, **options), translator.tgt_vocab
    if shown.target_lang or shown.every_step or shown.beam_size is not None or shown.no_memory:
        raise UsageError(
            "--target-lang, --every-step, --beam-size and --no-memory are for translators, but "
            f"{folder} is not one."
        )
    if task == "lm":
        from heed.translate.language_model import load_language_model

        language_model = load_language_model(folder)
        return language_model.trace(text, translation), language_model.vocab
    if translation is not None:
        raise UsageError(f"{folder} does not generate text: leave out TRANSLATION.")
    if task == "mlm":
        from heed.translate.masked import load_masked

        masked = load_masked(folder)
        return masked.trace(text), masked.vocab
    from heed.translate.classifier import load_classifier

    classifier = load_classifier(folder)
    return classifier.trace(text), classifier.vocab


def token_bars(found: "Translation") -> list[str]:
    """A line for each token of a translation from a search, with its probability."""
    # The last log-probability is that of `<eos>`, which has no piece.
    pairs = zip(found.tokens, found.token_scores, strict=False)
    return [bar(math.exp(log_prob), token) for token, log_prob in pairs]


def _show_tree(folder: Path, text: str, shown: Shown) -> None:
    from heed.explain.decoding.recorded import record_search
    from heed.explain.decoding.tree import ASCII, DRAWN, tree_lines
    from heed.translate.translator import load

    translator = load(folder, memory=not shown.no_memory)
    search = shown.search(translator)
    found = record_search(translator, text, target_lang=shown.target_lang, **search)
    palette = terminal_palette()
    marks = ASCII if palette is digits else DRAWN
    is_colored = palette in (truecolor, ansi256)
    for line in tree_lines(found.record, is_colored=is_colored, marks=marks):
        echo(line, is_drawing=True)


def _show_sample(folder: Path, text: str, shown: Shown) -> None:
    from heed.explain.decoding.recorded import record_search
    from heed.explain.decoding.strategies import sample_lines
    from heed.translate.translator import load

    translator = load(folder, memory=not shown.no_memory)
    drawing = {"sample": True, "top_p": shown.sample, "seed": shown.seed}
    search = checked_search(translator.options, drawing)
    found = record_search(translator, text, target_lang=shown.target_lang, **search)
    for line in sample_lines(found.record):
        echo(line)


def _show_probabilities(trace: "Trace", vocab: "Vocab") -> None:
    from heed.explain.tensors import token_probabilities

    if trace.labels:
        for label, probability in sorted(trace.labels.items(), key=lambda item: -item[1]):
            echo(bar(probability, label))
        return
    if not trace.expected_tokens:
        raise UsageError(
            "A model that fills gaps generates no text; use heed fill for its probabilities."
        )
    for found in token_probabilities(trace, vocab):
        note = f"  {found.best} had {found.best_probability:.4f}" if found.rank > 1 else ""
        echo(f"{bar(found.probability, found.token)}{note}")


def _show_attention(trace: "Trace", shown: Shown) -> None:
    from heed.explain.attention.maps import maps, tokens, uses_of
    from heed.explain.attention.words import between_words
    from heed.text.piece_words import words_of

    use = shown.attention
    assert use
    if use == AUTO:  # the last one is nearest to the output: cross, or what stands for it
        use = uses_of(trace)[-1]
    layers = maps(trace, use)
    if shown.layer not in range(-len(layers), len(layers)):
        raise UsageError(
            f"--layer must lie between {-len(layers)} and {len(layers) - 1}, but is {shown.layer}."
        )
    heads = layers[shown.layer]
    if not set(shown.head) <= set(range(len(heads))):
        raise UsageError(f"--head must be below {len(heads)}, but is {max(shown.head)}.")
    weights = heads[list(shown.head) or slice(None)].mean(axis=0)
    rows, columns = tokens(trace, use)
    real = _real_rows(trace, len(rows), use)
    rows, weights = [rows[row] for row in real], weights[real]
    if shown.words:
        row_words, column_words = words_of(rows), words_of(columns)
        weights = between_words(weights, row_words, column_words)
        rows, columns = ([word.text for word in words] for words in (row_words, column_words))
    draw_weights(weights.tolist(), rows, columns)


def _real_rows(trace: "Trace", n_rows: int, use: str) -> list[int]:
    """The rows that are not padding, which no position reads but which hold numbers, too."""
    n_src, n_tgt = len(trace.source_tokens), len(trace.target_tokens)
    if use == "encoder":
        return [*range(n_src - trace.n_src_padding)]
    first = n_rows - n_tgt  # one stack reads the source, then the target
    of_src = range(n_src - trace.n_src_padding) if first else ()
    return [*of_src, *range(first, n_rows - trace.n_tgt_padding)]


def _show_tensors(trace: "Trace | BatchTrace", shown: Shown) -> None:
    from heed.explain.tensors import described, listed, write_tensor

    if shown.steps:
        for line in listed(trace):
            echo(line)
    if shown.tensor and shown.out:
        write_tensor(trace, shown.tensor, shown.out)
    elif shown.tensor:
        for line in described(trace, shown.tensor):
            echo(line)
