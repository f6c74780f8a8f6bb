"""The interface in English and French."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "fr"]
LANGUAGES: dict[Language, str] = {"en": "English", "fr": "Français"}

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Biomedical encoder leaderboard", "Classement des encodeurs biomédicaux"),
    "board": ("Board", "Tableau"),
    "interface": ("Language", "Langue"),
    "average": ("Average", "Moyenne"),
    "macro": ("Macro F1", "Macro-F1"),
    "micro": ("Micro F1", "Micro-F1"),
    "weighted": ("Weighted F1", "F1 pondéré"),
    "paper": ("As published", "Comme publié"),
    "average_help": (
        "Published scores stand only beside the average they are comparable with. “As published” takes each "
        "task's own.",
        "Les scores publiés ne figurent qu'à côté de la moyenne qui leur est comparable. « Comme publié » prend "
        "celle de chaque tâche.",
    ),
    "suites": ("Suites", "Suites"),
    "fr": ("French", "Français"),
    "en": ("English", "Anglais"),
    "needle": ("Needle in a haystack", "Aiguille dans une botte de foin"),
    "sources": ("Sources", "Sources"),
    "run": ("own runs", "nos essais"),
    "published": ("published", "publié"),
    "submitted": ("submitted", "soumis"),
    "floor": ("floor", "plancher"),
    "ceiling": ("ceiling", "plafond"),
    "search": ("Search models", "Chercher un modèle"),
    "complete": ("Complete rows only", "Lignes complètes seulement"),
    "complete_help": (
        "Only models with a score on every task of the suite have a suite average.",
        "Seuls les modèles qui ont un score sur toutes les tâches de la suite ont une moyenne.",
    ),
    "sort": ("Sort by", "Trier par"),
    "suite_average": ("suite average", "moyenne de la suite"),
    "model": ("model", "modèle"),
    "source": ("source", "source"),
    "seeds": ("seeds", "graines"),
    "interactive": ("Sortable table", "Tableau triable"),
    "download": ("Download", "Télécharger"),
    "notes": ("Notes", "Notes"),
    "findings": ("Findings in the results folder", "Constats dans le dossier de résultats"),
    "finding_help": (
        "These files could not be read. Everything else is shown.",
        "Ces fichiers n'ont pas pu être lus. Tout le reste est affiché.",
    ),
    "no_runs": (
        "No runs here yet: the scores below are published ones. Run a model and reload this page:",
        "Pas encore d'essais ici : les scores ci-dessous sont publiés. Lancez un modèle et rechargez la page :",
    ),
    "nothing": (
        "Nothing matches these filters. Widen the search, the sources or the suites.",
        "Rien ne correspond à ces filtres. Élargissez la recherche, les sources ou les suites.",
    ),
    "caption": (
        "Percent. ± is half the 95% interval over seeds: this task and test set, other seeds. No ± where there is "
        "one seed or a published mean.",
        "En pour cent. ± est la moitié de l'intervalle à 95 % sur les graines : même tâche et même jeu de test, "
        "autres graines. Pas de ± pour une seule graine ou une moyenne publiée.",
    ),
    "shade": (
        "Darker cells are higher within their column.",
        "Les cellules plus foncées sont plus hautes dans leur colonne.",
    ),
}


def words(language: Language) -> dict[str, str]:
    """Key -> text in that language."""
    index = 1 if language == "fr" else 0
    return {key: both[index] for key, both in _WORDS.items()}
