"""`Tracer`: makes traces, with the modules that translate. Needs torch.

The result is a `Trace` (`trace.py`); call `Translator.trace` or a similar method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from heed.decode.batching import padded
from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis
from heed.errors import UsageError
from heed.model.ancestry import Ancestry
from heed.model.interface import Decodable, Floats
from heed.model.network import TorchNetwork
from heed.model.stages import Stages
from heed.model.trace import listening, see
from heed.text.vocab import Vocab
from heed.translate.arguments import require_text, texts_of
from heed.translate.each_language import never_written
from heed.translate.lines import LineReader, pairs_of
from heed.translate.load import Traceable
from heed.translate.parts import Chunk
from heed.translate.protect import text_of
from heed.translate.result import Match
from heed.translate.source import Source
from heed.translate.stepwise import Stepwise, array
from heed.translate.trace import BATCH, BatchTrace, Node, Trace, batch_of
from heed.translate.whole import read_pair, read_pieces, read_whole, required, written_pieces


@dataclass(frozen=True)
class Tracer:
    """Makes traces with one model.

    Attributes:
        model: in torch, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        has_source: False for a language model.
        on_progress: called after each step of a search and with each tensor of a pass; may raise to
            end the work.
    """

    model: Traceable
    src_vocab: Vocab
    tgt_vocab: Vocab
    has_source: bool = True
    on_progress: Callable[[], None] = lambda: None

    @cached_property
    def stages(self) -> Stages:
        """Descriptions of the model's tensors."""
        return Stages(self.model.network.config, has_source=self.has_source)

    def forced(
        self,
        source: str,
        src_ids: list[int],
        translation: str,
        tgt_ids: list[int],
        line: Source | None = None,
    ) -> Trace:
        """Trace a given translation: all target positions in one pass.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
            translation: the text of the target.
            tgt_ids: its ids, without `<bos>` and `<eos>`.
            line: the text, if it has protected spans.
        """
        tgt_in, tgt_out = self._shifted(tgt_ids)
        nodes, tensors = self.caught(src_ids, tgt_in)
        texts = self._texts(source, translation, src_ids, tgt_in, tgt_out, line)
        return Trace(**texts, nodes=nodes, tensors=tensors)

    def batch(
        self,
        sources: Sequence[str],
        src_ids: list[list[int]],
        translations: Sequence[str],
        tgt_ids: list[list[int]],
        lines: Sequence[Source | None] = (),
        matches: Sequence[Match | None] = (),
    ) -> BatchTrace:
        """Trace several sentences with given translations in one pass, padded to the longest.

        Args:
            sources: the texts.
            src_ids: their ids, `<eos>` last.
            translations: the texts of the targets.
            tgt_ids: their ids, without `<bos>` and `<eos>`.
            lines: the texts, if they have protected spans.
            matches: the remembered pairs that guided the searches.
        """
        shifted = [self._shifted(ids) for ids in tgt_ids]
        rows_in, rows_out = ([pair[side] for pair in shifted] for side in (0, 1))
        src = padded(src_ids, self.src_vocab.pad_id)
        tgt_in, tgt_out = (padded(rows, self.tgt_vocab.pad_id) for rows in (rows_in, rows_out))
        nodes, tensors = self._pass(torch.from_numpy(src), torch.from_numpy(tgt_in), len(src))
        texts = [
            self._texts(
                *both,
                src[row].tolist(),
                tgt_in[row].tolist(),
                tgt_out[row].tolist(),
                lines[row] if lines else None,
            )
            | {
                "match": matches[row] if matches else None,
                "n_src_padding": src.shape[1] - len(src_ids[row]),
                "n_tgt_padding": tgt_in.shape[1] - len(rows_in[row]),
            }
            for row, both in enumerate(zip(sources, translations, strict=True))
        ]
        return batch_of(texts, nodes, tensors)

    def read(self, source: str, src_ids: list[int]) -> Trace:
        """Trace a model that generates no text, such as a classifier.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
        """
        nodes, tensors = self.caught(src_ids, [])
        return Trace(
            source=source,
            translation="",
            source_tokens=self.src_vocab.pieces(src_ids),
            source_ids=src_ids,
            target_tokens=[],
            expected_tokens=[],
            nodes=nodes,
            tensors=tensors,
        )

    def continued(self, prompt: str, continuation: str, ids: list[int], n_prompt: int) -> Trace:
        """Trace a text that a language model reads.

        Args:
            prompt: its beginning.
            continuation: the rest.
            ids: of both.
            n_prompt: how many of them are the prompt's.
        """
        tgt_in = [self.tgt_vocab.bos_id, *ids[:-1]]
        nodes, tensors = self.caught([], tgt_in)
        return Trace(
            source=prompt,
            translation=continuation,
            source_tokens=[],
            target_tokens=self.tgt_vocab.pieces(tgt_in),
            expected_tokens=self.tgt_vocab.pieces(ids),
            expected_ids=ids,
            target_ids=tgt_in,
            nodes=nodes,
            tensors=tensors,
            n_prompt=n_prompt,
        )

    def searched(
        self,
        source: str,
        chunk: Chunk,
        options: DecodeOptions,
        *,
        steps: bool = False,
        searches: Decodable | None = None,
    ) -> Trace:
        """Search for a translation and trace the best one.

        Args:
            source: the text.
            chunk: the text in one piece.
            options: of the search.
            steps: search in torch, and keep the tensors of every step too.
            searches: the same model with a faster search, used without `steps`; None = torch.
        """
        stepwise = Stepwise(self.model, self.stages)
        searching = stepwise if steps else searches
        (best,) = self._best([chunk], options, searching)
        text = text_of(best.ids, self.tgt_vocab, chunk.source)
        found = self.forced(source, chunk.src_ids, text, best.ids, chunk.source)
        return replace(found, steps=stepwise.steps, rows=stepwise.rows, match=chunk.match)

    def translations(
        self, chunks: list[Chunk], options: DecodeOptions, searches: Decodable
    ) -> list[tuple[str, list[int]]]:
        """The best translation of each source, as text and as ids.

        Args:
            chunks: the sources, each in one piece.
            options: of the search.
            searches: the model with the fastest search.
        """
        best = self._best(chunks, options, searches)
        return [
            (text_of(found.ids, self.tgt_vocab, chunk.source), found.ids)
            for chunk, found in zip(chunks, best, strict=True)
        ]

    def caught(self, src_ids: list[int], tgt_in: list[int]) -> tuple[list[Node], dict[str, Floats]]:
        """All tensors of one pass.

        Args:
            src_ids: of the source.
            tgt_in: ids of the target, `<bos>` first.

        Returns:
            What each tensor is, and their values, in the order of the computation.
        """
        src, forced = (torch.tensor([ids], dtype=torch.long) for ids in (src_ids, tgt_in))
        return self._pass(src, forced)

    def best(
        self,
        src_ids: list[int],
        options: DecodeOptions,
        *,
        line: Source | None = None,
        guide: Guide | None = None,
    ) -> Hypothesis:
        """Search for the best translation.

        Args:
            src_ids: of the source, `<eos>` last.
            options: of the search.
            line: the source, if it has protected spans.
            guide: the translation of a similar source; None = none.
        """
        return self._best([Chunk(src_ids, [], 0, line, guide=guide)], options, None)[0]

    def _best(
        self, chunks: list[Chunk], options: DecodeOptions, model: Decodable | None
    ) -> list[Hypothesis]:
        if not chunks:
            return []
        vocab = self.tgt_vocab
        slots = [[] if chunk.source is None else chunk.source.required() for chunk in chunks]
        found = decode(
            model or self.model,
            padded([chunk.src_ids for chunk in chunks], self.src_vocab.pad_id),
            options,
            bos_id=vocab.bos_id,
            eos_id=vocab.eos_id,
            pad_id=vocab.pad_id,
            forbidden=never_written(vocab, chunks[0]),
            slots=slots if any(slots) else (),
            keys=[0] * len(chunks),  # so that each draws the same numbers as alone
            observer=lambda _: self.on_progress(),
            guides=[chunk.guide for chunk in chunks],
        )
        return [hypotheses[0] for hypotheses in found]

    def _shifted(self, tgt_ids: list[int]) -> tuple[list[int], list[int]]:
        """The decoder's input for a target, and its expected output."""
        return [self.tgt_vocab.bos_id, *tgt_ids], [*tgt_ids, self.tgt_vocab.eos_id]

    def _texts(
        self,
        source: str,
        translation: str,
        src_ids: list[int],
        tgt_in: list[int],
        tgt_out: list[int],
        line: Source | None,
    ) -> dict[str, Any]:
        """The fields of a trace besides its tensors."""
        return {
            "source": source,
            "translation": translation,
            "source_tokens": read_pieces(self.src_vocab, src_ids, line),
            "source_ids": src_ids,
            "target_tokens": written_pieces(self.tgt_vocab, tgt_in, line),
            "expected_tokens": written_pieces(self.tgt_vocab, tgt_out, line),
            "expected_ids": tgt_out,
            "target_ids": tgt_in,
        }

    def _pass(
        self, src: Tensor, tgt_in: Tensor, n_sentences: int | None = None
    ) -> tuple[list[Node], dict[str, Floats]]:
        network = self.model.network

        def run() -> None:
            with listening(network, lambda *_: self.on_progress()):
                logits = network.teacher_forced(src, tgt_in)
                see(network, "log_probs", logits.log_softmax(dim=-1))

        return caught(network, self.stages, run, n_sentences)


def caught(
    network: TorchNetwork,
    stages: Stages,
    run: Callable[[], Any],
    n_sentences: int | None = None,
) -> tuple[list[Node], dict[str, Floats]]:
    """Every named tensor that `network` computes while `run` runs.

    Args:
        network: in evaluation mode.
        stages: what its tensors are.
        run: computes something with it.
        n_sentences: size of the first axis, the batch; None = keep only the first sentence of it.

    Returns:
        What each tensor is, and their values, in the order of the computation.
    """
    ancestry = Ancestry(network)
    nodes: dict[str, Node] = {}
    tensors: dict[str, Floats] = {}

    def hear(name: str, tensor: Tensor) -> None:
        if not tensor.numel():  # the source of a language model
            return
        stage = stages.of(name)
        if n_sentences is None:
            value = array(tensor[0])
        else:  # a tensor that depends only on distances is the same for all
            value = array(tensor.expand(n_sentences, *tensor.shape[1:]))
        nodes[name] = Node(
            name=name,
            shape=value.shape,
            axes=stage.axes if n_sentences is None else (BATCH, *stage.axes),
            kind=stage.kind,
            operation=stage.operation,
            formula=stage.formula,
            inputs=ancestry.add(name, tensor),
        )
        tensors[name] = value

    # The graph gives the inputs of each tensor; the tensors for gradients are not kept.
    unsaved = saved_tensors_hooks(lambda tensor: None, lambda nothing: nothing)
    with torch.inference_mode(False), torch.enable_grad(), unsaved, listening(network, hear):
        run()
    return list(nodes.values()), tensors


def trace_of(
    model: Traceable,
    reader: LineReader,
    src: str | list[str],
    tgt: str | Sequence[str | None] | None,
    options: DecodeOptions,
    *,
    tag: list[int],
    steps: bool,
    searches: Decodable,
    on_progress: Callable[[], None],
) -> Trace | BatchTrace:
    """A trace of a line, or of several as one batch; the arguments are those of `Translator.trace`.

    Raises:
        DataError: a text is too long to be read in one piece; there are not as many translations
            as sources.
        UsageError: the texts are neither strings nor lists of them, or there are none.
    """
    tracer = Tracer(model, reader.src_vocab, reader.tgt_vocab, on_progress=on_progress)
    if isinstance(src, list):
        if not src or steps:
            what = "is of one source only" if steps else "needs a source"
            raise UsageError(f"A trace {'of every step ' if steps else ''}{what}.")
        sources, targets = _pairs(src, tgt)
        chunks = [_read(reader, *pair, tag) for pair in zip(sources, targets, strict=True)]
        rows = zip(chunks, targets, strict=True)
        found = iter(tracer.translations([c for c, t in rows if t is None], options, searches))
        pairs = [
            next(found) if each is None else (each, chunk.prefix)
            for chunk, each in zip(chunks, targets, strict=True)
        ]
        texts, tgt_ids = [text for text, _ in pairs], [ids for _, ids in pairs]
        lines = [chunk.source for chunk in chunks]
        matches = [chunk.match for chunk in chunks]
        src_ids = [chunk.src_ids for chunk in chunks]
        return tracer.batch(sources, src_ids, texts, tgt_ids, lines, matches)
    require_text(src=src, tgt="" if tgt is None else tgt)
    if not isinstance(tgt, str):
        chunk = _read(reader, src, None, tag)
        return tracer.searched(src, chunk, options, steps=steps, searches=searches)
    chunk = _read(reader, src, tgt, tag)
    return tracer.forced(src, chunk.src_ids, tgt, chunk.prefix, chunk.source)


def _read(reader: LineReader, src: str, tgt: str | None, tag: list[int]) -> Chunk:
    """A whole line, with its translation, if given, in place of a prefix."""
    if tgt is None:
        chunk = read_whole(reader, src, tag)
    else:  # a given translation is not guided
        chunk = replace(read_pair(reader, src, tgt, tag), match=None)
    return required(reader, chunk, tag, "translation")


def _pairs(
    src: list[str], tgt: str | Sequence[str | None] | None
) -> tuple[list[str], list[str | None]]:
    """Several sources, and a translation of each; None = search for it."""
    sources = [*texts_of(src, "src")]
    if tgt is None:
        return sources, [None] * len(sources)
    texts = tgt if isinstance(tgt, str) else ["" if one is None else one for one in tgt]
    _, targets = pairs_of(sources, texts)
    return sources, [None if one is None else text for one, text in zip(tgt, targets, strict=True)]
