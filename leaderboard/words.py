"""The interface in English and French."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "fr"]
LANGUAGES: dict[Language, str] = {"en": "English", "fr": "Français"}

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Biomedical encoder leaderboard", "Classement des encodeurs biomédicaux"),
    "view": ("View", "Vue"),
    "board": ("Board", "Tableau"),
    "model_view": ("Model", "Modèle"),
    "task_view": ("Task", "Tâche"),
    "compare_view": ("Compare", "Comparer"),
    "choose_models": ("Two to five models", "Deux à cinq modèles"),
    "pick_two": ("Choose at least two models.", "Choisissez au moins deux modèles."),
    "suite": ("Suite", "Suite"),
    "all": ("all tasks in common", "toutes les tâches communes"),
    "documents": ("Test-set noise from stored predictions", "Bruit du jeu de test d'après les prédictions"),
    "documents_help": (
        "Resamples the documents of each test split; takes seconds.",
        "Rééchantillonne les documents de chaque jeu de test ; prend quelques secondes.",
    ),
    "verdict_language": ("The verdict is in English.", "Le verdict est en anglais."),
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
    "standings": ("Standings", "Rangs"),
    "letters": ("tie group", "groupe"),
    "letters_help": (
        "Models that share a letter were not told apart.",
        "Les modèles qui partagent une lettre n'ont pas été distingués.",
    ),
    "details": ("All numbers", "Tous les chiffres"),
    "errors_view": ("Errors", "Erreurs"),
    "choose_seed": ("Seed", "Graine"),
    "kinds": ("Show documents with", "Montrer les documents avec"),
    "right": ("right", "juste"),
    "missed": ("missed", "manqué"),
    "spurious": ("spurious", "en trop"),
    "boundary": ("wrong boundary", "mauvaise limite"),
    "label_error": ("wrong label", "mauvaise étiquette"),
    "both": ("wrong label and boundary", "mauvaises étiquette et limite"),
    "only_label": ("Label", "Étiquette"),
    "any_label": ("any label", "toute étiquette"),
    "page": ("Page", "Page"),
    "no_documents": ("No document matches.", "Aucun document ne correspond."),
    "no_text": (
        "The text is not stored with results. Start the app where the corpora are at hand (BIOBENCH_DATA_DIR) to "
        "read it.",
        "Le texte n'est pas stocké avec les résultats. Lancez l'application là où sont les corpus "
        "(BIOBENCH_DATA_DIR) pour le lire.",
    ),
    "withheld": (
        "This corpus is under an agreement: neither text nor gold is shown.",
        "Ce corpus est sous accord : ni texte ni annotations ne sont montrés.",
    ),
    "said": ("predicted", "prédit"),
    "gold": ("gold", "référence"),
    "no_runs_to_browse": ("There are no runs to browse yet.", "Il n'y a pas encore d'essais à parcourir."),
    "documents_found": ("documents", "documents"),
    "efficiency_view": ("Efficiency", "Efficacité"),
    "cost": ("Cost", "Coût"),
    "cost_parameters": ("parameters", "paramètres"),
    "cost_seconds": ("seconds a run", "secondes par essai"),
    "cost_peak_memory_bytes": ("peak memory, bytes", "mémoire maximale, octets"),
    "cost_energy_kwh": ("energy a run, kWh", "énergie par essai, kWh"),
    "cost_unknown": (
        "This cost is not known for what is shown here.",
        "Ce coût n'est pas connu pour ce qui est montré ici.",
    ),
    "choose_model": ("Choose a model", "Choisir un modèle"),
    "choose_task": ("Choose a task", "Choisir une tâche"),
    "no_model": ("There is no model to show yet.", "Il n'y a pas encore de modèle à montrer."),
    "task": ("task", "tâche"),
    "score": ("score", "score"),
    "best": ("best here", "meilleur ici"),
    "gap": ("behind the best", "écart au meilleur"),
    "seconds": ("seconds a run", "secondes par essai"),
    "memory": ("peak memory, GB", "mémoire maximale, Go"),
    "cut": ("documents cut", "documents tronqués"),
    "lost": ("gold lost", "annotations perdues"),
    "revision": ("revision", "révision"),
    "architecture": ("architecture", "architecture"),
    "parameters": ("parameters", "paramètres"),
    "weights": ("weights hash", "empreinte des poids"),
    "window": ("window, tokens", "fenêtre, en tokens"),
    "made_with": ("made with", "produit avec"),
    "points": (
        "Each dot is one seed; the line is the 95% interval of their mean.",
        "Chaque point est une graine ; le trait est l'intervalle à 95 % de leur moyenne.",
    ),
    "curves": ("Validation while training", "Validation pendant l'entraînement"),
    "step": ("step", "pas"),
    "seed": ("seed", "graine"),
    "published_only": (
        "Published scores only: no runs, so no seeds, speed or memory.",
        "Scores publiés seulement : pas d'essais, donc ni graines, ni vitesse, ni mémoire.",
    ),
    "language": ("language", "langue"),
    "type": ("type", "type"),
    "licence": ("licence", "licence"),
    "access": ("access", "accès"),
    "citation": ("citation", "citation"),
    "homepage": ("homepage", "page du corpus"),
    "corpus": ("corpus", "corpus"),
    "not_shipped": (
        "This task does not ship with BioBench; its records are all that is known of it.",
        "Cette tâche n'est pas livrée avec BioBench ; seuls ses enregistrements sont connus.",
    ),
    "known_issues": ("Known issues and choices", "Problèmes connus et choix"),
    "counts": ("Counts", "Effectifs"),
    "labels": ("Labels", "Étiquettes"),
    "label": ("label", "étiquette"),
    "support": ("support in test", "effectif dans le test"),
    "labels_help": (
        "F1 of each label, mean over seeds, in percent.",
        "F1 de chaque étiquette, moyenne sur les graines, en pour cent.",
    ),
    "distribution": ("Scores", "Scores"),
    "readings": ("Published numbers", "Chiffres publiés"),
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
        "A stronger tint is a higher score within its column.",
        "Une teinte plus forte est un score plus haut dans sa colonne.",
    ),
}


def words(language: Language) -> dict[str, str]:
    """Key -> text in that language."""
    index = 1 if language == "fr" else 0
    return {key: both[index] for key, both in _WORDS.items()}
