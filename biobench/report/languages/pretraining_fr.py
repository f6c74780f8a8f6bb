"""What ledgers and analyses of pretraining call things, in French: quantities, verdicts, axes."""

from __future__ import annotations

import re

_TERMS = {
    # quantities of a ledger
    "attention": "attention",
    "batch windows": "fenêtres par lot",
    "benchmark documents to be kept out": "documents des tâches à exclure",
    "causal share": "part causale",
    "code version": "version du code",
    "compiled": "compilé",
    "corpus": "corpus",
    "corpus manifest": "manifeste du corpus",
    "data seed": "graine des données",
    "deterministic": "déterministe",
    "device": "matériel",
    "documents removed for it": "documents retirés pour cela",
    "dropout": "dropout",
    "epochs": "époques",
    "final rate": "taux final",
    "finished": "terminé",
    "FLOPs": "FLOPs",
    "frozen layers": "couches gelées",
    "head": "tête",
    "hours": "heures",
    "init seed": "graine d'initialisation",
    "initial weights": "poids initiaux",
    "isolated documents": "documents isolés",
    "kernels": "noyaux de calcul",
    "made with": "produit avec",
    "masking": "masquage",
    "masking rate": "taux de masquage",
    "micro-batch windows": "fenêtres par micro-lot",
    "name": "nom",
    "objective": "objectif",
    "optimiser": "optimiseur",
    "peak rate": "taux maximal",
    "phase": "phase",
    "phases": "phases",
    "precision": "précision",
    "processes": "processus",
    "rotary base": "base rotative",
    "run": "exécution",
    "sample order": "ordre des exemples",
    "samples": "exemples",
    "schedule": "programme du taux",
    "seeds": "graines",
    "skipped steps": "pas sautés",
    "start": "départ",
    "steps": "pas",
    "targets": "cibles",
    "tasks not guarded": "tâches non protégées",
    "tokenizer": "tokeniseur",
    "tokens": "tokens",
    "torch": "torch",
    "total FLOPs": "FLOPs en tout",
    "total steps": "pas en tout",
    "total tokens": "tokens en tout",
    "training loss": "perte d'entraînement",
    "training seed": "graine d'entraînement",
    "validation loss": "perte de validation",
    "window tokens": "tokens par fenêtre",
    # verdicts
    "matched": "appariés",
    # the chart of an analysis
    "the pair": "la paire",
    "seed noise": "bruit de graine",
    "layer": "couche",
    "layers": "couches",
    "divergence (%)": "divergence (%)",
    "pair / noise": "paire / bruit",
    "pair of the series": "paire de la série",
    "debiased": "débiaisé",
    "biased": "biaisé",
}
_FORMS = (
    (r"not matched: (?P<names>.*)", "non appariés : {names}"),
    (
        r"matched: a noise pair \(training seeds differ: (?P<a>.*) and (?P<b>.*)\)",
        "appariés : une paire de bruit (graines d'entraînement différentes : {a} et {b})",
    ),
    (
        r"matched, but trained with different training seeds \((?P<a>.*) and (?P<b>.*)\)",
        "appariés, mais entraînés avec des graines différentes ({a} et {b})",
    ),
    (
        r"1 − CKA \((?P<estimator>\w+)\), (?P<texts>\d+) texts, (?P<states>\w+) states",
        "1 − CKA ({estimator}), {texts} textes, états : {states}",
    ),
    (r"Divergence along the series \((?P<estimator>\w+)\)", "Divergence le long de la série ({estimator})"),
    (r"phase (?P<number>\d+) (?P<quantity>.+)", "phase {number} : {quantity}"),
)


def in_french(text: str) -> str:
    """A quantity, a verdict or a title in French; a name of the user's own as it stands."""
    if text in _TERMS:
        return _TERMS[text]
    for form, french in _FORMS:
        if match := re.fullmatch(form, text):
            parts = {
                name: ", ".join(in_french(part) for part in value.split(", ")) if name == "names" else in_french(value)
                for name, value in match.groupdict().items()
            }
            return french.format(**parts)
    return text
