"""The product on disk: one JSON record and one parquet file of predictions per run. Free of torch.

    store = Store("results")
    record = store.get(task_id, key)                       # None: not done yet
    with store.claim(task_id, key) as mine:                # None: another process makes this run
        stored = store.save(record, test_documents, predictions)
    records, findings = store.scan()
    gold, predictions = store.load_predictions(stored)

A record is saved with its scores (`biobench.score.scored`), which stay recomputable from the
predictions.
"""

from biobench.store.index import Brief
from biobench.store.records import run_key
from biobench.store.store import Store, UnusableFile
from biobench.store.tables import aliases

__all__ = ["Brief", "Store", "UnusableFile", "aliases", "run_key"]
