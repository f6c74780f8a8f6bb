"""Tiny encoders with random weights, made on the spot."""

from __future__ import annotations

from pathlib import Path

_TASKS = ("demo_ner", "demo_topic")
_VOCABULARY = 2_000
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_tiny_encoder(folder: Path, window: int = 128) -> Path:
    """Write a tiny random ModernBERT of `window` tokens and its tokenizer to `folder`, the same weights on every call.

    The tokenizer (WordPiece, 2,000 entries) is trained on the demo tasks' training sentences; the order of its
    single letters differs from call to call, so two folders are two models.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

    from biobench.data.catalog import load_task
    from biobench.data.load import load_data

    texts = [d.text for task in _TASKS for d in load_data(load_task(task), None).train]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=_VOCABULARY, special_tokens=list(_SPECIAL), show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=window,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = ModernBertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=96,
        intermediate_size=144,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=window,
        local_attention=32,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(17)
        model = ModernBertModel(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
