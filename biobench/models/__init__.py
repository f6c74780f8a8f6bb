"""Any checkpoint as `hidden (tokens, width)`, and the heads that consume only that.

What is taken from a checkpoint's folder, who is believed, how that is checked, and what the user
reads (`tests/models/test_published_checkpoints.py` walks these lines):

tokenizer
    `tokenizer.json`; without it the class that transformers builds. Both read the same texts; where
    they differ, the file is used and a note says so. Refused where it cannot read every text.
tokenizer of the checkpoint's own code
    The code, with `--trust-remote-code`. Not compared; the record names its class.
special tokens
    `tokenizer_config.json`, then the class of the model type. Every id needs a row in the
    embedding; one line names the largest.
vocabulary
    Its entries are read as text; a note where capitals or accents are never given, with the remedy.
random tokens (BPE dropout, sampling)
    Nobody. One text is read several times; switched off with a note, or refused.
window
    The smallest of task, tokenizer and position table. What is cut stands in the results.
first position
    `pad_token_id` + 1 for RoBERTa's kind, 2 for MPNet, else 0. Packed states equal padded ones.
precision
    The task or the recipe; weights are loaded in fp32.
dropout of the network
    `config.json`; pretraining uses `engine.dropout`.
attention kernel
    BioBench. States equal those of plain attention; a note where the config names a kernel.
buffers that no file holds
    The model's own code, built again twice; refused by name where the builds differ.
token types
    The tokenizer, where the encoder knows several.
global attention (Longformer)
    BioBench: the first token gets it where a head reads it; it must react to a far one.
direction (`is_decoder`)
    `config.json`. The first token reacts to later ones; a note, or `pooling: cls` is refused.
"""
