"""A zero-shot extractor on the board: entities from GLiNER, the score from `biobench score`.

Nobody has run this script with GLiNER's weights yet. `pip install gliner`, then:
biobench score --task bc5cdr --data-dir corpora --documents documents.jsonl
python docs/examples/gliner_zero_shot.py urchade/gliner_multi-v2.1 Chemical Disease
biobench score --task bc5cdr --data-dir corpora --predictions predictions.jsonl --model gliner
"""

import json
import sys

from gliner import GLiNER

name, *labels = sys.argv[1:]
model = GLiNER.from_pretrained(name)
with (
    open("documents.jsonl", encoding="utf-8") as documents,
    open("predictions.jsonl", "w", encoding="utf-8") as predictions,
):
    for line in documents:
        document = json.loads(line)
        # GLiNER cuts texts that are longer than its window, and finds nothing behind the cut
        entities = model.predict_entities(document["text"], labels, threshold=0.5)
        spans = [
            {key: entity[key] for key in ("start", "end", "label", "score")} for entity in entities
        ]
        row = {"document": document["document"], "spans": spans}
        predictions.write(json.dumps(row, ensure_ascii=False) + "\n")
