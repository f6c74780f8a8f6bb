"""The labels that the app and the static site share: (English, French)."""

from __future__ import annotations

from collections.abc import Mapping

from biobench.report.languages.notes_fr import METRICS as IN_FRENCH
from biobench.report.literature.beside import NAMES

LABELS: dict[str, tuple[str, str]] = {
    "title": ("Biomedical encoder leaderboard", "Classement des encodeurs biomédicaux"),
    "board": ("Leaderboard", "Classement"),
    "model_view": ("Models", "Modèles"),
    "task_view": ("Tasks", "Tâches"),
    "compare_view": ("Compare", "Comparer"),
    "suite": ("Suite", "Suite"),
    "verdict_language": ("en", "fr"),
    "decimal": (".", ","),
    "colon": (":", "\u202f:"),
    "difference": ("difference, points", "différence, en points"),
    "difference_help": (
        "Dot: difference on one task. Line: its interval over seeds and test sets where both are known, else over "
        "the one that is.",
        "Point : différence sur une tâche. Trait : son intervalle sur graines et jeux de test si les deux sont "
        "connus, sinon sur celui qui l'est.",
    ),
    "wins": ("wins", "victoires"),
    "ties": ("ties", "égalités"),
    "losses": ("losses", "défaites"),
    "how_sure": ("How sure?", "Est-ce sûr ?"),
    "details": ("All numbers", "Tous les chiffres"),
    "cost": ("Cost", "Coût"),
    "cost_parameters": ("parameters", "paramètres"),
    "cost_train_tokens_per_second": ("tokens a second in training", "tokens par seconde à l'entraînement"),
    "cost_seconds": ("seconds a run", "secondes par exécution"),
    "cost_peak_memory_bytes": ("peak memory, bytes", "mémoire maximale, octets"),
    "cost_energy_kwh": ("energy a run, kWh", "énergie par exécution, kWh"),
    "cost_unknown": (
        "This cost is not known for what is shown here.",
        "Ce coût n'est pas connu pour ce qui est montré ici.",
    ),
    "no_model": ("There is no model to show yet.", "Il n'y a pas encore de modèle à montrer."),
    "task": ("task", "tâche"),
    "score": ("score", "score"),
    "best": ("best here", "meilleur ici"),
    "gap": ("behind the best", "écart au meilleur"),
    "metric": ("average", "moyenne"),
    "interval_head": ("95%", "95 %"),
    "seconds": ("seconds a run", "secondes par exécution"),
    "memory": ("peak memory, GB", "mémoire maximale, Go"),
    "cut": ("documents cut", "documents tronqués"),
    "lost": ("gold lost", "annotations perdues"),
    "revision": ("revision", "révision"),
    "architecture": ("architecture", "architecture"),
    "parameters": ("parameters", "paramètres"),
    "weights": ("weights hash", "empreinte des poids"),
    "window": ("window, tokens", "fenêtre, en tokens"),
    "window_short_head": ("window", "fenêtre"),
    "speed_short_head": ("tokens/s", "tokens/s"),
    "made_with": ("made with", "produit avec"),
    "published_only": (
        "Published scores only: no runs, so no seeds, speed or memory.",
        "Scores publiés seulement : pas d'exécutions, donc ni graines, ni vitesse, ni mémoire.",
    ),
    "language": ("language", "langue"),
    "type": ("type", "type"),
    "licence": ("licence", "licence"),
    "licence_unknown": ("not recorded", "non enregistrée"),
    "access": ("access", "accès"),
    "citation": ("citation", "citation"),
    "homepage": ("homepage", "page du corpus"),
    "corpus": ("corpus", "corpus"),
    "type_token_ner": ("named entities, word by word", "entités nommées, mot à mot"),
    "type_span_ner": ("named entities, span by span", "entités nommées, segment par segment"),
    "type_single_label": ("classification, one label", "classification, une étiquette"),
    "type_multi_label": ("classification, several labels", "classification, plusieurs étiquettes"),
    "type_relation": ("relations between entities", "relations entre entités"),
    "type_text_pair": ("pairs of texts", "paires de textes"),
    "type_regression": ("a number for a text or a pair", "un nombre pour un texte ou une paire"),
    "type_multiple_choice": ("multiple choice", "choix multiples"),
    "type_synonyms": ("synonyms", "synonymes"),
    "type_needle": ("needle in a haystack", "aiguille dans une botte de foin"),
    "access_open": ("open", "libre"),
    "access_registration": ("after registration", "sur inscription"),
    "access_agreement": ("under an agreement", "sous accord"),
    "not_shipped": (
        "This task does not ship with BioBench; its records are all that is known of it.",
        "Cette tâche n'est pas livrée avec BioBench ; seuls ses enregistrements sont connus.",
    ),
    "known_issues": ("Known issues and choices", "Problèmes connus et choix"),
    "deviations": ("Deviations from the compared protocol", "Écarts avec le protocole comparé"),
    "here": ("here", "ici"),
    "there": ("there", "là"),
    "distribution": ("Scores", "Scores"),
    "readings": ("Published numbers", "Chiffres publiés"),
    "size_limit": ("Size", "Taille"),
    "any_size": ("any size", "toute taille"),
    "below_100": ("below 100 million", "moins de 100 millions"),
    "below_200": ("below 200 million", "moins de 200 millions"),
    "filled_help": (
        "Filled: runs, with the ranks that the pairs leave open.",
        "Plein : exécutions, avec les rangs que les paires laissent ouverts.",
    ),
    "line_help": ("Line: 95% interval over seeds.", "Trait : intervalle à 95 % sur les graines."),
    "hollow_help": (
        "Hollow: printed scores, in brackets their order.",
        "Creux : scores imprimés, entre parenthèses leur ordre.",
    ),
    "other_average": (
        "Publications print scores of these tasks under another average: choose “{}” to see them.",
        "Des publications impriment des scores de ces tâches avec une autre moyenne : choisissez « {} » pour les voir.",
    ),
    "rank": ("rank", "rang"),
    "rank_short": (
        "From … to: the ranks that the pairs leave open. In brackets: the order of printed means, which says nothing "
        "of how sure it is.",
        "De … à : les rangs que les paires laissent ouverts. Entre parenthèses : l'ordre des moyennes imprimées, qui "
        "ne dit pas s'il est sûr.",
    ),
    "printed_order": (
        "In brackets: the order of printed means, which come without seeds, so nothing says how sure it is.",
        "Entre parenthèses : l'ordre des moyennes imprimées ; elles viennent sans graines, rien ne dit s'il est sûr.",
    ),
    "rank_help": (
        "Ranks: a model loses one to each model that is ahead of it by more than other seeds explain, pair by pair at "
        "95%, as Compare shows it; among the {} with the best means. Other tasks are another question: see Compare.",
        "Rangs : un modèle en perd un pour chaque modèle devant lui de plus que ce que d'autres graines expliquent, "
        "paire par paire à 95 %, comme dans Comparer ; parmi les {} meilleures moyennes. D'autres tâches sont une "
        "autre "
        "question : voir Comparer.",
    ),
    "mean": ("mean", "moyenne"),
    "margin_help": (
        "Half the 95% interval of the mean over seeds; none below three seeds.",
        "La moitié de l'intervalle à 95 % de la moyenne sur les graines ; rien sous trois graines.",
    ),
    "marks_help": (
        "▽ below what a policy reaches that reads nothing; ✂ documents longer than the window; ✗ failed runs, which "
        "the mean includes and ± does not; † test documents in the training text; ‡ average likely, not stated; § the "
        "mean is the publication's own.",
        "▽ sous ce qu'atteint une politique qui ne lit rien ; ✂ documents plus longs que la fenêtre ; ✗ exécutions "
        "qui ont échoué, que la moyenne compte mais pas le ± ; † documents de test dans le texte d'entraînement ; "
        "‡ moyenne probable, non précisée ; § la moyenne est celle de la publication.",
    ),
    "notes_in_words": ("notes in words", "notes en clair"),
    "below_floor": ("below the floor on {}", "sous le plancher sur {}"),
    "cut_on": ("cut at the window: {}", "tronqué à la fenêtre : {}"),
    "failed_on": ("failed runs in the mean: {}", "exécutions échouées, comptées dans la moyenne : {}"),
    "failed_count": ("{} failed", "échecs : {}"),
    "in_training": ("test documents in its training text", "documents de test dans son texte d'entraînement"),
    "only_likely": ("average likely, not stated", "moyenne probable, non précisée"),
    "no_cost": ("Costs are known of runs alone.", "Les coûts ne sont connus que des exécutions."),
    "alt_standing": (
        "Models by mean score with intervals; the first: {}",
        "Modèles par score moyen avec intervalles ; les premiers : {}",
    ),
    "alt_scatter": (
        "Score of each model against {}; the front: {}",
        "Score de chaque modèle selon : {} ; le front : {}",
    ),
    "alt_differences": (
        "Difference on each task with its interval; the ends: {}",
        "Différence sur chaque tâche avec son intervalle ; les extrêmes : {}",
    ),
    "last_run": ("last run", "dernière exécution"),
    "average": ("Average", "Moyenne"),
    "macro": ("Macro F1", "Macro-F1"),
    "micro": ("Micro F1", "Micro-F1"),
    "weighted": ("Weighted F1", "F1 pondéré"),
    "paper": ("As published", "Comme publié"),
    "fr": ("French", "Français"),
    "en": ("English", "Anglais"),
    "needle": ("Needle in a haystack", "Aiguille dans une botte de foin"),
    "sources": ("Sources", "Sources"),
    "run": ("own runs", "nos exécutions"),
    "published": ("published", "publié"),
    "frozen": ("frozen encoder", "encodeur gelé"),
    "outside": ("made elsewhere", "faits ailleurs"),
    "submitted": ("submitted", "soumis"),
    "floor": ("floor", "plancher"),
    "ceiling": ("ceiling", "plafond"),
    "search": ("Search models", "Chercher un modèle"),
    "suite_average": ("suite average", "moyenne de la suite"),
    "model": ("model", "modèle"),
    "source": ("source", "source"),
    "seeds": ("seeds", "graines"),
    "download": ("Download", "Télécharger"),
    "notes": ("Notes", "Notes"),
    "findings": ("Findings in the results folder", "Constats dans le dossier de résultats"),
    "printed_mean": (
        "mean as the publication prints it, over its own tasks",
        "moyenne telle que la publication l'imprime, sur ses propres tâches",
    ),
    "cite": ("Cite", "Citer"),
    "others": ("other models", "autres modèles"),
    "this_model": ("this model", "ce modèle"),
    "strip_help": (
        "Dot: this model, with its 95% interval over three seeds or more. Strokes: the other models under the same "
        "conditions; the thick one is the best policy that reads nothing.",
        "Point : ce modèle, avec son intervalle à 95 % sur trois graines ou plus. Traits : les autres modèles dans les "
        "mêmes conditions ; le trait épais est la meilleure politique qui ne lit rien.",
    ),
    "alt_strip": ("{} among the other models, task by task", "{} parmi les autres modèles, tâche par tâche"),
    "over_one": ("one task", "une tâche"),
    "over_tasks": ("{} tasks", "{} tâches"),
    "rank_in": ("rank · {}", "rang · {}"),
    "evaluated": ("evaluated", "évalué"),
    "hub": ("page on the hub", "page sur le hub"),
    "nothing": (
        "Nothing matches these filters. Widen the search, the sources or the suites.",
        "Rien ne correspond à ces filtres. Élargissez la recherche, les sources ou les suites.",
    ),
    "caption": (
        "Percent. ± is half the 95% interval over seeds: this task and test set, other seeds. No ± where there is "
        "one seed, where all seeds gave the same score, and for published means.",
        "En pour cent. ± est la moitié de l'intervalle à 95 % sur les graines : même tâche et même jeu de test, "
        "autres graines. Pas de ± pour une seule graine, des graines de même score ou une moyenne publiée.",
    ),
    "shared_tasks": (
        "No model has all tasks. Means are over the {} of {} that most models with runs share: {}.",
        "Aucun modèle n'a toutes les tâches. Les moyennes portent sur les {} des {} que partagent le plus de modèles "
        "exécutés : {}.",
    ),
    "only_partial": (
        "The runs here are on a part of the test documents or on validation (limited runs, for instance): their scores "
        "are shown, never averaged and never ranked.",
        "Les exécutions portent ici sur une partie des documents de test ou sur la validation (exécutions limitées, "
        "par exemple) : leurs scores sont montrés, jamais moyennés ni classés.",
    ),
    "outside_tasks": (
        "No two models share a task of this suite. Means are over other tasks that they share: {2}.",
        "Aucune tâche de cette suite n'est partagée par deux modèles. Les moyennes portent sur d'autres tâches qu'ils "
        "partagent : {2}.",
    ),
    "tokens_per_second": ("tokens a second", "tokens par seconde"),
}


_METRICS = {"macro_f1": "macro", "micro_f1": "micro", "weighted_f1": "weighted"}


def metric_in(metric: str, words: Mapping[str, str]) -> str:
    """A score in words, in the reader's language; one that is no known metric by its own name."""
    known = _METRICS.get(metric)
    if known is not None:
        return words[known]
    names = IN_FRENCH if words["verdict_language"] == "fr" else NAMES
    return names.get(metric, metric)


def number(value: float, digits: int, words: Mapping[str, str], *, sign: bool = False) -> str:
    """With a decimal comma in French. sign: a plus, too."""
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace(".", words["decimal"])


def whole(value: int, words: Mapping[str, str]) -> str:
    """A count with its thousands apart: commas in English, narrow spaces in French."""
    text = f"{value:,}"
    return text.replace(",", "\u202f") if words["verdict_language"] == "fr" else text


def rounded(value: float, words: Mapping[str, str]) -> str:
    """A large number to two or three digits: 395M, 5.1K; 395 M, 5,1 k in French."""
    for size, english, french in ((1e9, "B", "Md"), (1e6, "M", "M"), (1e3, "K", "k")):
        if value >= size:
            part = value / size
            text = number(part, 0 if part >= 10 else 1, words)
            return f"{text}\u202f{french}" if words["verdict_language"] == "fr" else f"{text}{english}"
    return number(value, 0, words)
