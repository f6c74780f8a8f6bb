"""What data files are: one detector a shape proposes ways to read them, reading decides.

A new shape is a file here with its detector, and a line in `DETECTORS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from biobench.data.sniff.base import DataFiles, Detector, Proposal, Wanted, first_fitting
from biobench.data.sniff.brat import brat_texts
from biobench.data.sniff.chemprot import chemprot_tables
from biobench.data.sniff.delimited import delimited_rows
from biobench.data.sniff.objects import json_objects, parquet_tables
from biobench.data.sniff.pubtator import pubtator_blocks
from biobench.data.sniff.refused import unread_lines
from biobench.data.sniff.tokens import token_lines
from biobench.data.sniff.trial import Attempt, attempt
from biobench.data.sniff.xml import xml_documents
from biobench.errors import DataFormatError

__all__ = ["Attempt", "DataFiles", "Proposal", "Wanted", "sniff"]

DETECTORS: tuple[Detector[DataFiles], ...] = (
    brat_texts,
    parquet_tables,
    json_objects,
    xml_documents,
    pubtator_blocks,
    chemprot_tables,
    unread_lines,
    token_lines,
    delimited_rows,
)
"""The first that knows the content decides; what an ending says is not asked."""


def sniff(corpus: DataFiles, wanted: Wanted) -> Attempt:
    """The corpus as it is read best: the likeliest of the proposals that lose least.

    Raises DataFormatError where nothing reads cleanly: that of the likeliest proposal, with its
    line.
    """
    corpus = replace(corpus, encoding=wanted.encoding)
    proposals = _proposals(corpus, wanted)
    if wanted.encoding != "utf-8":
        for proposal in proposals:
            proposal.reader = proposal.reader | {"encoding": wanted.encoding}
    return _best(proposals, corpus)


def _proposals(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    proposals = first_fitting(DETECTORS, corpus, wanted)
    if not proposals:
        message = "is neither JSON, a token file with tags, nor rows with a text and a label"
        hint = "see the formats in docs/tasks.md and write the spec by hand"
        raise corpus.places()[0].bad(message, hint)
    return proposals


def _best(proposals: Iterable[Proposal], corpus: DataFiles) -> Attempt:
    """The first that loses nothing, else the one that loses least.

    Of those that can be read the first says what labels there are: a way to read that finds others
    takes parts of texts for labels. Not so of tags, where each scheme reads the same column, and
    one that drops mentions may drop all of a label.
    """
    sound: list[Attempt] = []
    problems: list[DataFormatError] = []
    for proposal in proposals:
        trial = attempt(proposal, corpus)
        if trial.problem is not None:
            problems.append(trial.problem)
            continue
        tagged = proposal.type == "token_ner"
        if not sound or tagged or trial.labels.keys() <= sound[0].labels.keys():
            sound.append(trial)
            if not trial.lost:
                return trial
    if not sound:
        raise problems[0]
    return min(sound, key=lambda trial: trial.lost)
