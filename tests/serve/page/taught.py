"""Tiny models that have learned 36 sentences by heart, so that what the page shows has sense."""

from itertools import product
from pathlib import Path

from heed.bundle.bundle import Bundle, save_bundle
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab

WHO = [("A man", "Ein Mann"), ("A woman", "Eine Frau"), ("A child", "Ein Kind")]
DOES = [("plays", "spielt"), ("sleeps", "schläft"), ("runs", "läuft"), ("waits", "wartet")]
WHERE = [("in the snow", "im Schnee"), ("in the park", "im Park"), ("at home", "zu Hause")]
PAIRS = [
    (f"{who} {does} {where}.", f"{wer} {tut} {wo}.")
    for (who, wer), (does, tut), (where, wo) in product(WHO, DOES, WHERE)
]
N_STEPS = 60


def teach(folder: Path, source_lang: str, target_lang: str) -> str:
    """Write a model folder; takes a second. A word is one piece, so little has to be learned."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.utils.rnn import pad_sequence

    torch.manual_seed(1)
    pairs = PAIRS if source_lang == "en" else [(de, en) for en, de in PAIRS]
    vocab = train_vocab([text for pair in pairs for text in pair] * 9, size=300, kind="word")
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=48,
        n_heads=2,
        d_ff=96,
        n_encoder_layers=1,
        n_decoder_layers=1,
        dropout=0.0,
    )
    network = build_model(config)
    encoded = [(vocab.encode(src), vocab.encode(tgt)) for src, tgt in pairs]

    def padded(rows: list[list[int]]) -> torch.Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

    src = padded([[*src, vocab.eos_id] for src, _ in encoded])
    tgt_in = padded([[vocab.bos_id, *tgt] for _, tgt in encoded])
    tgt_out = padded([[*tgt, vocab.eos_id] for _, tgt in encoded])
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=N_STEPS)
    for _ in range(N_STEPS):
        logits = network.teacher_forced(src, tgt_in)
        loss = cross_entropy(
            logits.flatten(0, 1),
            tgt_out.flatten(),
            ignore_index=vocab.pad_id,
            label_smoothing=0.1,  # so that other words keep a probability to show
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    bundle = Bundle(
        config=config,
        weights={name: w.detach().numpy() for name, w in network.state_dict().items()},
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang=source_lang,
        target_lang=target_lang,
        decoding={"beam_size": 4, "max_length": 24},
    )
    save_bundle(folder, bundle)
    return str(folder)
