"""`biobench demo`: the whole story on embedded data, without a network.

A tiny ModernBERT with random weights and a tokenizer trained on the demo's own sentences is fine-tuned on
the two synthetic tasks, and the report closes the story. It shows the software at work; its scores say
nothing about any real encoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.common import ResultsDir

TASKS = ("demo_ner", "demo_topic")
_VOCABULARY = 2_000
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


def demo(
    results_dir: ResultsDir = "demo-results",
    seeds: Annotated[str | None, typer.Option("--seeds", help="Seeds (default: the demo tasks').")] = None,
) -> None:
    """The whole story on embedded data, in minutes on a CPU, no network."""
    from biobench.cli.report import print_report
    from biobench.cli.run import quiet_libraries, run_request
    from biobench.run import Request

    quiet_libraries()
    folder = make_tiny_encoder(Path(results_dir) / "demo-encoder")
    typer.echo(f"1. A tiny ModernBERT with random weights stands in {folder}.")
    typer.echo(f"2. It is fine-tuned on {' and '.join(TASKS)}; what was done before is skipped.")
    request = Request(
        models=(str(folder),), tasks=TASKS, results_dir=results_dir, device="cpu", seeds=seeds, offline=True
    )
    status = run_request(request, dry_run=False, as_json=False)
    typer.echo("3. The report, as `biobench report` prints it:")
    print_report(results_dir, tasks=TASKS)
    typer.echo(f"Next: biobench leaderboard --results-dir {results_dir}")
    raise typer.Exit(status)


def make_tiny_encoder(folder: Path) -> Path:
    """Write a tiny random ModernBERT and its tokenizer to `folder`, the same bytes on every call.

    The tokenizer (WordPiece, 2,000 entries) is trained on the demo tasks' training sentences.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

    from biobench.data.catalog import load_task
    from biobench.data.load import load_data

    texts = [d.text for task in TASKS for d in load_data(load_task(task), None).train]
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
        model_max_length=128,
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
        max_position_embeddings=128,
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
