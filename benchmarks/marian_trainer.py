"""Hugging Face's side of `time_to_quality.py`: a Marian network under `Trainer`, from nothing.

    python marian_trainer.py train config.json
    python marian_trainer.py translate MODEL DATA OUTPUT --beam 5 --threads 1

Runs in the peer's own virtualenv and knows nothing of heed. transformers documents no recipe for
training a translator from nothing, so this is what its users piece together: `Trainer`'s AdamW,
batches of 64 sentences of similar length (`group_by_length`), label smoothing 0.1, and Marian's
inverse square root schedule with a warm-up short enough for an hour. Not here: scores, time.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel, Trainer, TrainerCallback, TrainingArguments
from transformers.models.marian.modeling_marian import shift_tokens_right

UNK, PAD, BOS, EOS = range(4)
IGNORED = -100


def read_ids(path: Path, pieces: list[str]) -> list[list[int]]:
    """Lines of pieces as ids, `</s>` at the end."""
    ids = {piece: number for number, piece in enumerate(pieces)}
    lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    return [[ids.get(piece, UNK) for piece in line.split(" ")] + [EOS] for line in lines]


def read_pieces(data: Path) -> list[str]:
    """The vocabulary, by id."""
    return (data / "vocab.txt").read_text("utf-8").removesuffix("\n").split("\n")


def padded(rows: list[list[int]], value: int) -> torch.Tensor:
    """Rows as one tensor, `(batch, longest)`."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def collate(pairs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """A batch; with label smoothing `Trainer` hides the labels, so the decoder needs its input."""
    src = padded([pair["input_ids"] for pair in pairs], PAD)
    labels = padded([pair["labels"] for pair in pairs], IGNORED)
    return {
        "input_ids": src,
        "attention_mask": (src != PAD).long(),
        "labels": labels,
        "decoder_input_ids": shift_tokens_right(labels, PAD, PAD),
    }


def network(sizes: dict[str, Any], n_pieces: int) -> MarianMTModel:
    """A Marian model of these sizes, its weights drawn at random."""
    shared = {"attention_heads": sizes["n_heads"], "ffn_dim": sizes["d_ff"]}
    sides = {
        f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in shared.items()
    }
    return MarianMTModel(
        MarianConfig(
            vocab_size=n_pieces,
            d_model=sizes["d_model"],
            encoder_layers=sizes["n_encoder_layers"],
            decoder_layers=sizes["n_decoder_layers"],
            **sides,
            activation_function="relu",
            dropout=0.1,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=PAD,
            forced_eos_token_id=None,
        )
    )


class SaveByTheClock(TrainerCallback):
    """Save every so many seconds, whatever the speed."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self.saved_at = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask for a checkpoint when one is due."""
        if time.monotonic() >= self.saved_at + self.every_s:
            control.should_save = True
            self.saved_at = time.monotonic()


def train(config: dict[str, Any]) -> None:
    """Train until stopped."""
    torch.set_num_threads(config["threads"])
    torch.manual_seed(config["seed"])
    data = Path(config["data"])
    pieces = read_pieces(data)
    src, tgt = (read_ids(data / f"train.{side}", pieces) for side in ("src", "tgt"))
    arguments = TrainingArguments(
        output_dir=config["model"],
        seed=config["seed"],
        use_cpu=True,
        max_steps=10**7,
        per_device_train_batch_size=64,
        train_sampling_strategy="group_by_length",
        learning_rate=1e-3,
        lr_scheduler_type="inverse_sqrt",
        warmup_steps=400,
        adam_beta2=0.98,
        label_smoothing_factor=0.1,
        remove_unused_columns=False,
        save_strategy="no",
        save_only_model=True,
        save_total_limit=2,
        logging_strategy="no",
        disable_tqdm=True,
        report_to=[],
    )
    Trainer(
        model=network(config["sizes"], len(pieces)),
        args=arguments,
        train_dataset=[{"input_ids": s, "labels": t} for s, t in zip(src, tgt, strict=True)],
        data_collator=collate,
        callbacks=[SaveByTheClock(config["save_every_s"])],
    ).train()


@torch.inference_mode()
def translate(model_path: Path, data: Path, output: Path, beam_size: int) -> None:
    """Translate the test set; pieces in, pieces out."""
    model: Any = MarianMTModel.from_pretrained(model_path)
    model.eval()
    pieces = read_pieces(data)
    rows = read_ids(data / "test.src", pieces)
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    lines = [""] * len(rows)
    for begin in range(0, len(order), 64):
        numbers = order[begin : begin + 64]
        src = padded([rows[number] for number in numbers], PAD)
        found = model.generate(
            input_ids=src,
            attention_mask=(src != PAD).long(),
            num_beams=beam_size,
            max_new_tokens=src.size(1) + 20,
        )
        for number, ids in zip(numbers, found.tolist(), strict=True):
            lines[number] = " ".join(pieces[id] for id in ids if id > EOS)
    output.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("train").add_argument("config", type=Path)
    asked = tasks.add_parser("translate")
    for name in ("model", "data", "output"):
        asked.add_argument(name, type=Path)
    asked.add_argument("--beam", type=int, default=5)
    asked.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.task == "train":
        train(json.loads(given.config.read_text("utf-8")))
    else:
        torch.set_num_threads(given.threads)
        translate(given.model, given.data, given.output, given.beam)


if __name__ == "__main__":
    main()
