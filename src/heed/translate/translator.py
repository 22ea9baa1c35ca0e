"""Text in, text out: a trained model with its vocabularies as one object, `Translator`.

A line is normalized, encoded, batched with lines of similar length, searched and decoded.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, overload

from heed.bundle.alignment import AlignmentHeads
from heed.bundle.lexicon import Lexicon
from heed.decode.options import DecodeOptions, options_from, with_alternatives
from heed.model.interface import Decodable
from heed.text.memory import TranslationMemory
from heed.text.normalize import normalize
from heed.text.protected import Rules
from heed.text.vocab import Vocab
from heed.translate import arguments
from heed.translate.continuing import continued, next_tokens
from heed.translate.doubts.judge import Judge, judge_of
from heed.translate.given import alone, given_scores, given_translations
from heed.translate.glossary.glossary import Glossary
from heed.translate.inspect import aligned, heads_of, summary
from heed.translate.lines import (
    MAX_SOURCE_TOKENS,
    Line,
    LineReader,
    Protect,
    buffers,
    lines_of,
    pairs_of,
    protected,
    rules_of,
    with_glossary,
    with_prefixes,
)
from heed.translate.load import Traceable
from heed.translate.processes import Processes
from heed.translate.rerank import Ranking, reranker_of
from heed.translate.result import (
    Alignment,
    Continuation,
    NextToken,
    PairScore,
    Translation,
    join_parts,
    keep_distinct,
)
from heed.translate.search import Searcher, usual_batch_tokens
from heed.translate.together import Folders, open_together
from heed.translate.twin import Twin, edited, traceable
from heed.translate.wanted import IsWanted, of_items
from heed.translate.whole import read_pair, read_whole, required

if TYPE_CHECKING:
    from heed.model.trace import Edit
    from heed.translate.trace import BatchTrace, Trace


def load(
    folder: Folders,
    *,
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
    shortlist: bool = True,
    runtime: str = "auto",
    protect: Protect | None = None,
    memory: bool = True,
) -> "Translator":
    """Open a model folder, or the run folder of a training in progress.

    Args:
        folder: holds `config.json`, weights and vocabulary; several models translate together.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: the type to compute in: `float32`, `int8`, `bfloat16`, on a GPU `float16`; `auto` =
            on a CPU int8 if `heed quantize` has stored it, on a GPU a fast one.
        threads: CPU threads; None = as many as there are cores.
        shortlist: choose only among likely words, if `heed quantize --shortlist` has stored a list
            of them; on a CPU.
        runtime: `engine` = heed's own, on a CPU; `torch`, in which `heed.model.trace` shows every
            tensor; `auto` = the engine on a CPU if it is compiled, else torch.
        protect: default of `protect` in `Translator.translate`: spans that must stay unchanged.
        memory: let the model's training pairs guide the search, if they are stored with it.

    Raises:
        FormatError: the folder is not a model, or a file in it is damaged.
        ConfigError: there is no such device here; device, `dtype`, runtime and model do not go
            together; vocabularies differ; an expression of `protect` is invalid.
    """
    arguments.require_flag(memory, "memory")
    ways: Any = {"device": device, "dtype": dtype, "threads": threads, "runtime": runtime}
    found = open_together(folder, task="translate", use_shortlist=shortlist, **ways)
    bundle = found.bundle
    translator = Translator(
        found.model,
        bundle.src_vocab,
        bundle.tgt_vocab,
        source_lang=bundle.source_lang,
        target_lang=bundle.target_lang,
        target_langs=bundle.target_langs,
        max_source_tokens=found.max_source_tokens or MAX_SOURCE_TOKENS,
        options=found.options,
        twin=found.twin,
        alignment_heads=bundle.alignment_heads,
        judge=judge_of(bundle),
        lexicon=bundle.lexicon,
        rules=rules_of(protect),
        memories=[bundle.memory] if memory and bundle.memory else (),
    )
    translator.reader.directions = bundle.directions
    return translator


class Translator:
    """A model and its vocabularies; translates any text, line by line.

    Args:
        model: anything that can be decoded, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        options: default decoding options.
        source_lang: language code of the input.
        target_lang: default language code of the output.
        target_langs: all target languages of a model with several; a tag in the source names one.
        max_source_tokens: a longer line is cut at sentence ends and translated in parts.
        batch_tokens: source positions times beam computed at once; None = by the model's device.
        batch_lines: at most this many lines at once; None = no such limit.
        twin: the model in torch, for `trace` and `edit`; None = there is none.
        alignment_heads: the heads that are read as an alignment; None = all of the last layer.
        judge: adds doubts to translations; None = a judge with rules only.
            `searches_again` decides whether doubtful lines are searched once more.
        lexicon: word translations that rank hypotheses anew; None = there are none.
        rules: default rules for protected spans; None = `Rules.default()`.
        memories: translated pairs that guide the search for similar sources.
    """

    def __init__(
        self,
        model: Decodable,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        options: DecodeOptions | None = None,
        source_lang: str = "",
        target_lang: str = "",
        target_langs: Sequence[str] = (),
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        batch_tokens: int | None = None,
        batch_lines: int | None = None,
        twin: Twin | None = None,
        alignment_heads: AlignmentHeads | None = None,
        judge: Judge | None = None,
        lexicon: Lexicon | None = None,
        rules: Rules | None = None,
        memories: Sequence[TranslationMemory] = (),
    ) -> None:
        self.model, self.judge = model, judge or Judge(None, src_vocab, tgt_vocab)
        self.searches_again = self.judge.judgment is not None
        self.reranker: Ranking | None = reranker_of(lexicon, src_vocab, tgt_vocab)
        self.twin, self.alignment_heads = twin, alignment_heads
        self.src_vocab, self.tgt_vocab = src_vocab, tgt_vocab
        self.options = options or DecodeOptions()
        self.source_lang, self.target_lang = source_lang, target_lang
        self.batch_tokens, self.batch_lines = batch_tokens or usual_batch_tokens(model), batch_lines
        self.reader = LineReader(
            src_vocab,
            tgt_vocab,
            target_lang=target_lang,
            target_langs=target_langs,
            max_source_tokens=max_source_tokens,
            source_lang=source_lang,
            rules=rules,
            length_limit=model.length_limit,
            memories=memories,
        )

    def __repr__(self) -> str:
        return summary(self.reader)

    @overload
    def __call__(self, text: str, *, target_lang: str | None = ..., **options: Any) -> str: ...
    @overload
    def __call__(
        self, text: Sequence[str], *, target_lang: str | None = ..., **options: Any
    ) -> list[str]: ...
    def __call__(
        self, text: str | Sequence[str], *, target_lang: str | None = None, **options: Any
    ) -> str | list[str]:
        """Translate a text, or each text of a list; see `translate` for the options."""
        if isinstance(text, str):
            return self.translate([text], target_lang=target_lang, **options)[0].text
        kinds, wanted = (str, Line), "a string or a list of strings"
        texts = list(arguments.texts_of(text, "text", kinds=kinds, wanted=wanted))
        return [found.text for found in self.translate(texts, target_lang=target_lang, **options)]

    def translate(
        self,
        texts: Sequence[str | Line],
        *,
        prefixes: Sequence[str] | None = None,
        target_lang: str | None = None,
        alignment: bool = False,
        alternatives: int = 0,
        first_line: int = 0,
        protect: Protect | None = None,
        localize_numbers: bool | None = None,
        glossary: Glossary | None = None,
        is_wanted: IsWanted | None = None,
        **options: Any,
    ) -> list[Translation]:
        r"""Translate lines, each independent of the others.

        Args:
            texts: each read as one line: line breaks count as blanks, and the translation has none.
                A `Line` may have options of its own.
            prefixes: required beginning of each translation; "" = none.
            target_lang: one of the model's target languages.
            alignment: also record cross-attention (one more pass over each translation).
            alternatives: the largest number of other translations of each line, all different.
            first_line: number of the first text, which with the seed decides random draws.
            protect: spans that must stay unchanged: `Rules`, or arguments of `Rules.of`, such as
                `"none"` or `r"ACME-\d+"`; None = the default of the translator.
            localize_numbers: write numbers as the target language does: `1.234,50` for `1,234.50`.
            glossary: terms and their translations; a `Line` may have its own.
            is_wanted: called with a text's index after every step; False ends it (`unwanted`).
            **options: fields of `DecodeOptions`: beam_size, n_best, sample, temperature, …

        Returns:
            One translation a text, in order.

        Raises:
            ConfigError: an unknown option or language, or a value out of range.
            DataError: not as many prefixes as texts, or a line's own language is unknown.
            UsageError: an argument is of a wrong type or out of range.
        """
        wanted = with_glossary(lines_of(texts, prefixes), glossary)
        wanted = protected(wanted, protect, localize_numbers)
        for name, number in (("alternatives", alternatives), ("first_line", first_line)):
            arguments.require_whole(number, name, 0)
        arguments.require_flag(alignment, "alignment")
        arguments.require_callable(is_wanted, "is_wanted", 0)
        chosen = with_alternatives(options_from(self.options, options), alternatives)
        lines = self.reader.all_parts(wanted, first_line, target_lang, chosen.max_length)
        line_of = [place for place, parts in enumerate(lines) for _ in parts]
        parts = [part for parts in lines for part in parts]
        ways: Any = {"alignment": alignment, "is_wanted": of_items(is_wanted, line_of)}
        done = iter(self.searcher.search(parts, chosen, **ways))
        found = [join_parts([next(done) for _ in line]) for line in lines]
        return [keep_distinct(one, alternatives) for one in found] if alternatives else found

    def translate_stream(
        self,
        lines: Iterable[str | Line],
        *,
        prefixes: Iterable[str] | None = None,
        buffer_lines: int = 2048,
        buffer_chars: int = 1 << 20,
        has_paused: Callable[[], bool] | None = None,
        processes: int | None = 1,
        target_lang: str | None = None,
        alignment: bool = False,
        alternatives: int = 0,
        protect: Protect | None = None,
        localize_numbers: bool | None = None,
        glossary: Glossary | None = None,
        **options: Any,
    ) -> Iterator[Translation]:
        """Translate a stream of any length in bounded memory.

        Args:
            lines: read a portion at a time.
            prefixes: required beginning of each translation, one for each of `lines`.
            buffer_lines: lines gathered, sorted by length and translated together.
            buffer_chars: a portion also ends when it holds this many characters.
            has_paused: called after each line; True ends the portion, if the next line must wait.
            processes: most that divide a long portion, on Linux with heed's engine; None = one for
                each thread, at most. They are forked, so start no threads of your own before.
            target_lang: one of the model's target languages.
            alignment: also record cross-attention.
            alternatives: the largest number of other translations of each line.
            protect: as in `translate`.
            localize_numbers: write numbers as the target language does.
            glossary: terms and their translations.
            **options: fields of `DecodeOptions`.

        Yields:
            One translation a line, in order.
        """
        n_done = 0
        if processes is not None:
            arguments.require_whole(processes, "processes", 1)
        wanted = with_prefixes(lines, prefixes, name="lines")
        limits = {"max_lines": buffer_lines, "max_chars": buffer_chars}
        options |= {"target_lang": target_lang, "alignment": alignment, "protect": protect}
        options |= {"alternatives": alternatives, "localize_numbers": localize_numbers}
        options |= {"glossary": glossary}
        with closing(Processes(self, options, processes)) as several:
            for portion in buffers(wanted, **limits, has_paused=has_paused):
                yield from several.translate(portion, n_done)
                n_done += len(portion)

    def score(
        self, src: Sequence[str], tgt: Sequence[str], *, target_lang: str | None = None
    ) -> list[PairScore]:
        """Log-probabilities of given translations, log p(tgt | src).

        Args:
            src: source lines.
            tgt: their translations.
            target_lang: one of the model's target languages.

        Returns:
            One score a pair, in order; NaN, with the status `too_long`, if a side has more than
            1,024 tokens and more than `max_source_tokens`.

        Raises:
            DataError: the two have unequal lengths.
            UsageError: they are not lists of strings.
        """
        tag, limits = self.reader.tag(target_lang), (self.batch_tokens, self.batch_lines)
        return given_scores(self.model, self.reader, pairs_of(src, tgt), tag, limits)

    def judged(
        self,
        src: Sequence[str],
        tgt: Sequence[str],
        *,
        target_lang: str | None = None,
        is_wanted: IsWanted | None = None,
    ) -> list[Translation]:
        """Given translations of any author, with the doubts about them.

        Args and raises: as in `score`; `is_wanted` as in `translate`, while `src` is translated.

        Returns:
            One translation a pair, in order, with its pieces and their log-probabilities. It has no
            confidence, which is learned from the model's own translations.
        """
        src, tgt = pairs_of(src, tgt)
        tag, limits = self.reader.tag(target_lang), (self.batch_tokens, self.batch_lines)
        given = given_translations(self.model, self.reader, (src, tgt), tag, limits)
        ways: Any = {"target_lang": target_lang, "is_wanted": is_wanted}
        own = alone(self).translate(src, **ways) if self.judge.is_learned else []
        return self.judge.judge(given, [*map(normalize, src)], own=own)

    def next_word(
        self, src: str, prefix: str = "", k: int = 10, *, target_lang: str | None = None
    ) -> list[NextToken]:
        """p(next | prefix, src): the most probable next pieces.

        Args:
            src: a source line.
            prefix: the translation so far.
            k: how many pieces, from 1.
            target_lang: one of the model's target languages.

        Raises:
            DataError: the source or the prefix is too long to be read at once.
            UsageError: an argument is of a wrong type or out of range.
        """
        tag = self.reader.tag(target_lang)
        return next_tokens(self.model, self.reader, src, prefix, k, tag=tag)

    def continuations(
        self,
        text: str,
        prefix: str = "",
        k: int = 5,
        *,
        target_lang: str | None = None,
        is_wanted: Callable[[], bool] | None = None,
        **options: Any,
    ) -> list[Continuation]:
        """The most probable next pieces, each with the best translation that continues with it.

        Args:
            text: a source line.
            prefix: the translation so far.
            k: how many pieces, from 1.
            target_lang: one of the model's target languages.
            is_wanted: called after every step of the search; False ends it, and the translations
                have the status `unwanted`.
            **options: fields of `DecodeOptions`.

        Raises:
            DataError: the source or the prefix is too long to be read at once.
            UsageError: an argument is of a wrong type or out of range.
        """
        chosen, tag = options_from(self.options, options), self.reader.tag(target_lang)
        return continued(
            self.searcher, self.reader, text, prefix, k, chosen, tag=tag, is_wanted=is_wanted
        )

    def alternatives(self, text: str, *arguments: Any, **options: Any) -> list[Continuation]:
        """The old name of `continuations`, until the next version."""
        warnings.warn("Translator.alternatives is now called continuations.", FutureWarning, 2)
        return self.continuations(text, *arguments, **options)

    def align(
        self,
        src: str,
        tgt: str | None = None,
        *,
        layer: int | None = None,
        heads: Sequence[int] = (),
        target_lang: str | None = None,
    ) -> Alignment:
        """The source tokens that each target token attends to, from cross-attention.

        Args:
            src: a source line.
            tgt: its translation; None translates first.
            layer: decoder layer to read, from 0; negative = from the end; None = that of the
                model's alignment heads, else the last.
            heads: of that layer; none = all.
            target_lang: one of the model's target languages.

        Raises:
            DataError: the source or the translation is too long to be read at once.

        Source: Bahdanau et al. 2015, section 3.1, reads alignment from attention.
        """
        arguments.require_text(src=src, tgt="" if tgt is None else tgt)
        tag = self.reader.tag(target_lang)
        if tgt is None:
            required(self.reader, read_whole(self.reader, src, tag), tag, "translation")
            tgt = self(src, target_lang=target_lang)
        pair = required(self.reader, read_pair(self.reader, src, tgt, tag), tag, "translation")
        return aligned(self.model, self.reader, pair, heads_of(layer, heads, self.alignment_heads))

    @overload
    def trace(self, src: str, tgt: str | None = None, **options: Any) -> "Trace": ...
    @overload
    def trace(
        self, src: list[str], tgt: Sequence[str | None] | None = None, **options: Any
    ) -> "BatchTrace": ...
    def trace(
        self,
        src: str | list[str],
        tgt: str | Sequence[str | None] | None = None,
        *,
        target_lang: str | None = None,
        steps: bool = False,
        on_progress: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> "Trace | BatchTrace":
        """Every named tensor of a translation, recorded from the model in torch.

        Args:
            src: a source line, or several, which are read as one batch, padded to the longest.
            tgt: its translation, or one for each line, computed in one pass; None = search.
            target_lang: one of the model's target languages.
            steps: in a search of one line, also keep the tensors of every step.
            on_progress: called after each step and each tensor; may raise to end the work.
            **options: fields of `DecodeOptions`, for the search.

        Raises:
            DataError: a source or translation is too long to be read at once; there are not as many
                translations as sources.
            MissingExtraError: torch is not installed.
        """
        chosen, tag = options_from(self.options, options), self.reader.tag(target_lang)
        model = self.traced  # raises an error if torch is missing
        from heed.translate.tracer import trace_of

        ways: dict[str, Any] = {"tag": tag, "steps": steps, "searches": self.model}
        return trace_of(model, self.reader, src, tgt, chosen, on_progress=on_progress, **ways)

    def edit(self, edits: Mapping[str, "Edit"]) -> AbstractContextManager[None]:
        """Replace tensors by functions of them; inside the block, the model computes in torch.

        Args:
            edits: functions by the name of a tensor, as in `heed.model.trace.editing`.

        Raises:
            UsageError: a function returned another shape, or no such tensor was computed.
        """
        return edited(self, edits)

    @property
    def traced(self) -> Traceable:
        """The model in torch, in float32 on the CPU; opened when it is first needed."""
        return traceable(self.twin)

    @property
    def searcher(self) -> Searcher:
        """Translates parts of lines, as `reader.parts` makes them."""
        return Searcher(
            model=self.model,
            src_vocab=self.src_vocab,
            tgt_vocab=self.tgt_vocab,
            batch_tokens=self.batch_tokens,
            batch_lines=self.batch_lines,
            alignment_heads=self.alignment_heads and self.alignment_heads.for_documents(),
            judge=self.judge,
            searches_again=self.searches_again,
            reranker=self.reranker,
        )
