"""Reading a corpus as proposed: what comes of it decides between proposals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from string import ascii_lowercase

from biobench.data.counts import label_occurrences
from biobench.data.readers import get_reader
from biobench.data.sniff.base import FILL_IN, DataFiles, OpenSpec, Proposal
from biobench.errors import DataFormatError
from biobench.schema.document import Document


@dataclass(slots=True)
class Attempt:
    """A proposal and what its reader gives, or why it cannot read the corpus."""

    proposal: Proposal
    documents: list[Document]
    problem: DataFormatError | None = None

    @property
    def lost(self) -> int:
        """Mentions that decoding drops, and rows that a quote swallows lines into."""
        return sum(len(document.remarks) for document in self.documents)

    @property
    def labels(self) -> Counter[str]:
        """Label to how often it stands in the data; of options all, also those that are never
        right.
        """
        labels = Counter(label_occurrences(self.documents))
        if self.proposal.type == "multiple_choice":
            most = max((len(document.pieces) for document in self.documents), default=0)
            labels.update(dict.fromkeys(ascii_lowercase[:most], 0))
        return labels


def attempt(proposal: Proposal, corpus: DataFiles) -> Attempt:
    """The corpus read as proposed."""
    if proposal.files is not None:
        corpus = replace(corpus, files=proposal.files)
    reader = get_reader(proposal.reader["format"])
    options = reader.options.model_validate(proposal.reader)
    request = corpus.request(options, OpenSpec(proposal.type, proposal.unit))
    try:
        trial = Attempt(proposal, list(reader.read(request)))
    except DataFormatError as error:
        return Attempt(proposal, [], error)
    blank = [document for document in trial.documents if "" in document.labels]
    if blank:
        message = f"has no label, as {len(blank)} of {len(trial.documents)} rows"
        file, _, line = blank[0].origin.rpartition(":")
        trial.problem = DataFormatError(message, hint=FILL_IN, file=file, line=int(line))
    if not trial.labels:
        message = "is read without a single label or mention"
        hint = "is this the file with the annotations?"
        trial.problem = DataFormatError(message, hint=hint, file=corpus.paths[0])
    return trial
