"""The interface in English and French."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from biobench.comparison.standing import WORDS as STANDING_WORDS
from biobench.report.charts import FEW_SEEDS
from biobench.report.languages import pretraining_fr
from biobench.report.languages.labels import LABELS
from biobench.report.languages.notes_fr import in_french
from biobench.report.rows import Row
from biobench.report.wide import percent
from leaderboard.launch import is_public
from leaderboard.view_words import VIEW_WORDS

_COMMAND = re.compile(r" ?;[^;]*`biobench [^`]*`[^;]*")
"""A part of a note that says what to run."""
Language = Literal["en", "fr"]
LANGUAGES: dict[Language, str] = {"en": "English", "fr": "Français"}

_WORDS: dict[str, tuple[str, str]] = {
    "explore": ("Explore", "Explorer"),
    "published_view": ("Published experiments", "Expériences publiées"),
    "no_published": ("There are no published experiments here.", "Il n'y a pas d'expériences publiées ici."),
    "publication": ("Publication", "Publication"),
    "without_values": ("Baselines without published values", "Références sans valeurs publiées"),
    "choose_models": ("Two to five models", "Deux à cinq modèles"),
    "effect": (
        "A − B on these tasks: {} points, 95% interval {} to {}.",
        "A − B sur ces tâches : {} points, intervalle à 95 % de {} à {}.",
    ),
    "copy_link": ("Link to this comparison", "Lien vers cette comparaison"),
    "pick_two": ("Choose at least two models.", "Choisissez au moins deux modèles."),
    "all": ("all tasks in common", "toutes les tâches communes"),
    "only_tasks": ("Only these tasks", "Seulement ces tâches"),
    "documents": ("Test-set noise from stored predictions", "Bruit du jeu de test d'après les prédictions"),
    "documents_help": (
        "Resamples the documents of each test split; takes seconds.",
        "Rééchantillonne les documents de chaque jeu de test ; prend quelques secondes.",
    ),
    "standings": ("Standings", "Rangs"),
    "letters": ("tie group", "groupe"),
    "letters_help": (
        "Models that share a letter were not told apart.",
        "Les modèles qui partagent une lettre n'ont pas été distingués.",
    ),
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
    "predicted": ("predicted", "prédit"),
    "gold": ("gold", "référence"),
    "no_runs_to_browse": ("There are no runs to browse yet.", "Il n'y a pas encore d'exécutions à parcourir."),
    "documents_found": ("documents", "documents"),
    "efficiency_view": ("Efficiency", "Efficacité"),
    "samples": ("Show samples", "Montrer des exemples"),
    "samples_help": (
        "The first training documents of the split, mentions coloured as annotated.",
        "Les premiers documents d'entraînement, mentions colorées telles qu'annotées.",
    ),
    "samples_withheld": (
        "This corpus needs an agreement: none of its text is shown.",
        "Ce corpus exige un accord : aucun de ses textes n'est montré.",
    ),
    "samples_absent": (
        "The data is not at hand here; `biobench tasks show {}` says how to get it.",
        "Les données ne sont pas ici ; `biobench tasks show {}` dit comment les obtenir.",
    ),
    "twins": ("matched twins", "jumeaux appariés"),
    "noise_pair": ("matched but for the training seed", "appariés, graine d'entraînement exceptée"),
    "no_twins": ("not matched twins", "jumeaux non appariés"),
    "classes": ("Class by class", "Classe par classe"),
    "pair": ("Pair", "Paire"),
    "classes_help": (
        "F1 of each label, mean over seeds; A is the first of the pair. Intervals: other fine-tuning seeds on this "
        "test set, each label alone; with many labels some will exclude zero by chance.",
        "F1 de chaque étiquette, moyenne sur les graines ; A est le premier de la paire. Intervalles : autres graines "
        "d'ajustement sur ce jeu de test, chaque étiquette seule ; sur beaucoup d'étiquettes, certains excluent zéro "
        "par hasard.",
    ),
    "more_filters": ("More filters", "Autres filtres"),
    "size_filter": ("Model size", "Taille du modèle"),
    "size_small": ("below 100 million", "moins de 100 millions"),
    "size_base": ("100 to 200 million", "100 à 200 millions"),
    "size_large": ("above 200 million", "plus de 200 millions"),
    "unknown": ("unknown", "inconnue"),
    "window_filter": ("Window", "Fenêtre"),
    "window_short": ("up to 512 tokens", "jusqu'à 512 tokens"),
    "window_middle": ("513 to 4,096 tokens", "513 à 4 096 tokens"),
    "window_long": ("above 4,096 tokens", "plus de 4 096 tokens"),
    "access_filter": ("Access to the corpus", "Accès au corpus"),
    "licence_filter": ("Licence of the corpus", "Licence du corpus"),
    "filter_help": (
        "Nothing chosen: everything. A suite average stands only where all of its tasks are shown.",
        "Rien de choisi : tout. Une moyenne de suite ne figure que si toutes ses tâches sont montrées.",
    ),
    "choose_model": ("Choose a model", "Choisir un modèle"),
    "choose_task": ("Choose a task", "Choisir une tâche"),
    "points_title": ("Seed by seed", "Graine par graine"),
    "points": (
        "Each dot is one seed; the line is the 95% interval of their mean.",
        "Chaque point est une graine ; le trait est l'intervalle à 95 % de leur moyenne.",
    ),
    "curves": ("Validation while training", "Validation pendant l'entraînement"),
    "step": ("step", "pas"),
    "seed": ("seed", "graine"),
    "counts": ("Counts", "Effectifs"),
    "labels": ("Labels", "Étiquettes"),
    "label": ("label", "étiquette"),
    "support": ("support in test", "effectif dans le test"),
    "labels_help": (
        "F1 of each label, mean over seeds, in percent.",
        "F1 de chaque étiquette, moyenne sur les graines, en pour cent.",
    ),
    "interface": ("Language", "Langue"),
    "matter": ("Tasks that matter to me", "Les tâches qui m'importent"),
    "matter_all": ("all of the suite", "toutes celles de la suite"),
    "compare_picked": ("Compare", "Comparer"),
    "pick_rows": ("Pick two to five rows of the table.", "Choisissez deux à cinq lignes du tableau."),
    "alt_seeds": (
        "Score of every seed, with means and intervals",
        "Score de chaque graine, avec moyennes et intervalles",
    ),
    "alt_curves": ("Curves over the training", "Courbes au fil de l'entraînement"),
    "alt_needle": ("Accuracy by length, one line a model", "Exactitude selon la longueur, une ligne par modèle"),
    "alt_table": ("Scores of all models: {}", "Scores de tous les modèles : {}"),
    "add_model": ("Add your model", "Ajouter votre modèle"),
    "average_help": (
        "Published scores stand only beside the average they are comparable with. “As published” takes each "
        "task's own.",
        "Les scores publiés ne figurent qu'à côté de la moyenne qui leur est comparable. « Comme publié » prend "
        "celle de chaque tâche.",
    ),
    "complete": ("Complete rows only", "Lignes complètes seulement"),
    "complete_help": (
        "Only models with a score on every task of the suite have a suite average.",
        "Seuls les modèles qui ont un score sur toutes les tâches de la suite ont une moyenne.",
    ),
    "finding_help": (
        "These files could not be read. Everything else is shown.",
        "Ces fichiers n'ont pas pu être lus. Tout le reste est affiché.",
    ),
    "no_runs_public": (
        "No runs here yet: all scores on this page are published ones.",
        "Pas encore d'exécutions ici : tous les scores de cette page sont publiés.",
    ),
    "task_weights": ("How much each counts", "Poids de chacune"),
    "weights_help": (
        "From 1 to 9; all the same: the mean over corpora of their tasks' means. Compare counts corpora alike.",
        "De 1 à 9 ; tous égaux : la moyenne sur les corpus des moyennes de leurs tâches. Comparer compte chaque corpus "
        "autant.",
    ),
    "cite_help": (
        "And every corpus that the results rest on: `biobench export --format bibtex`.",
        "Et chaque corpus sur lequel reposent les résultats : `biobench export --format bibtex`.",
    ),
    "changes": ("Changes of this version", "Changements de cette version"),
    "against": ("Against", "Contre"),
    "nobody": ("nobody: one model's mistakes", "personne : les erreurs d'un modèle"),
    "only_a": ("what only A gets right", "ce que seul A a juste"),
    "only_b": ("what only B gets right", "ce que seul B a juste"),
    "only_a_count": ("only A right", "seul A juste"),
    "only_b_count": ("only B right", "seul B juste"),
    "both_right": ("both right", "les deux justes"),
    "neither": ("neither", "aucun des deux"),
    "against_help": (
        "Counted over the gold of the test documents that both runs share; too much is not counted here.",
        "Compté sur la référence des documents de test que les deux partagent ; ce qui est en trop n'est pas compté.",
    ),
    "unlike_documents": (
        "These two runs share no test documents.",
        "Ces deux exécutions n'ont aucun document de test en commun.",
    ),
    "no_runs": (
        "No runs here yet: all scores on this page are published ones. Run a model and reload it:",
        "Pas encore d'exécutions ici : tous les scores de cette page sont publiés. Lancez un modèle et rechargez-la :",
    ),
    "all_refused": (
        "All runs here are on tasks that fail their gate on this data; they are neither shown nor ranked.",
        "Toutes les exécutions portent sur des tâches qui échouent à leur contrôle sur ces données ; elles ne sont "
        "ni montrées "
        "ni classées.",
    ),
    "not_here": (
        "The link names what is not here: {}. Something else is shown in its place.",
        "Le lien nomme ce qui n'est pas ici : {}. Autre chose est montré à la place.",
    ),
}


def words(language: Language) -> dict[str, str]:
    """Key -> text in that language."""
    index = 1 if language == "fr" else 0
    return {key: both[index] for key, both in (LABELS | _WORDS | VIEW_WORDS | STANDING_WORDS).items()}


def score(row: Row, words: Mapping[str, str], *, margin: bool = True) -> str:
    """The score in percent with its margin, which three seeds or more must bear."""
    text = percent(row, margin=margin and row.n_seeds >= FEW_SEEDS, failed=words["failed_count"])
    return text.replace(".", words["decimal"])


def quantity(name: str, words: Mapping[str, str]) -> str:
    """What a ledger or an analysis calls a thing, in the language of the words."""
    return pretraining_fr.in_french(name) if words["verdict_language"] == "fr" else name


def spoken(note: str, words: Mapping[str, str]) -> str:
    """A note of the report in the language of the words; without commands for whoever cannot run them here."""
    text = in_french(note) if words["verdict_language"] == "fr" else note
    if not is_public():
        return text
    return _COMMAND.sub("", text) or text
