"""The interface in English and French."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from biobench.comparison.standing import WORDS as STANDING_WORDS
from biobench.report.charts import FEW_SEEDS
from biobench.report.languages.notes_fr import in_french
from biobench.report.rows import Row
from biobench.report.wide import percent
from leaderboard.view_words import VIEW_WORDS

Language = Literal["en", "fr"]
LANGUAGES: dict[Language, str] = {"en": "English", "fr": "Français"}

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Biomedical encoder leaderboard", "Classement des encodeurs biomédicaux"),
    "board": ("Leaderboard", "Classement"),
    "explore": ("Explore", "Explorer"),
    "model_view": ("Models", "Modèles"),
    "task_view": ("Tasks", "Tâches"),
    "compare_view": ("Compare", "Comparer"),
    "published_view": ("Published experiments", "Expériences publiées"),
    "no_published": ("There are no published experiments here.", "Il n'y a pas d'expériences publiées ici."),
    "publication": ("Publication", "Publication"),
    "without_values": ("Baselines without published values", "Références sans valeurs publiées"),
    "choose_models": ("Two to five models", "Deux à cinq modèles"),
    "pick_two": ("Choose at least two models.", "Choisissez au moins deux modèles."),
    "suite": ("Suite", "Suite"),
    "all": ("all tasks in common", "toutes les tâches communes"),
    "only_tasks": ("Only these tasks", "Seulement ces tâches"),
    "documents": ("Test-set noise from stored predictions", "Bruit du jeu de test d'après les prédictions"),
    "documents_help": (
        "Resamples the documents of each test split; takes seconds.",
        "Rééchantillonne les documents de chaque jeu de test ; prend quelques secondes.",
    ),
    "verdict_language": ("en", "fr"),
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
    "predicted": ("predicted", "prédit"),
    "gold": ("gold", "référence"),
    "no_runs_to_browse": ("There are no runs to browse yet.", "Il n'y a pas encore d'exécutions à parcourir."),
    "documents_found": ("documents", "documents"),
    "efficiency_view": ("Efficiency", "Efficacité"),
    "cost": ("Cost", "Coût"),
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
    "cost_parameters": ("parameters", "paramètres"),
    "cost_train_tokens_per_second": ("tokens a second in training", "tokens par seconde à l'entraînement"),
    "cost_seconds": ("seconds a run", "secondes par exécution"),
    "cost_peak_memory_bytes": ("peak memory, bytes", "mémoire maximale, octets"),
    "cost_energy_kwh": ("energy a run, kWh", "énergie par exécution, kWh"),
    "cost_unknown": (
        "This cost is not known for what is shown here.",
        "Ce coût n'est pas connu pour ce qui est montré ici.",
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
    "no_model": ("There is no model to show yet.", "Il n'y a pas encore de modèle à montrer."),
    "task": ("task", "tâche"),
    "score": ("score", "score"),
    "best": ("best here", "meilleur ici"),
    "gap": ("behind the best", "écart au meilleur"),
    "seconds": ("seconds a run", "secondes par exécution"),
    "memory": ("peak memory, GB", "mémoire maximale, Go"),
    "cut": ("documents cut", "documents tronqués"),
    "lost": ("gold lost", "annotations perdues"),
    "revision": ("revision", "révision"),
    "architecture": ("architecture", "architecture"),
    "parameters": ("parameters", "paramètres"),
    "weights": ("weights hash", "empreinte des poids"),
    "window": ("window, tokens", "fenêtre, en tokens"),
    "made_with": ("made with", "produit avec"),
    "points_title": ("Seed by seed", "Graine par graine"),
    "points": (
        "Each dot is one seed; the line is the 95% interval of their mean.",
        "Chaque point est une graine ; le trait est l'intervalle à 95 % de leur moyenne.",
    ),
    "curves": ("Validation while training", "Validation pendant l'entraînement"),
    "step": ("step", "pas"),
    "seed": ("seed", "graine"),
    "published_only": (
        "Published scores only: no runs, so no seeds, speed or memory.",
        "Scores publiés seulement : pas d'exécutions, donc ni graines, ni vitesse, ni mémoire.",
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
    "deviations": ("Deviations from the compared protocol", "Écarts avec le protocole comparé"),
    "here": ("here", "ici"),
    "there": ("there", "là"),
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
    "matter": ("Tasks that matter to me", "Les tâches qui m'importent"),
    "matter_all": ("all of the suite", "toutes celles de la suite"),
    "size_limit": ("Size", "Taille"),
    "any_size": ("any size", "toute taille"),
    "below_100": ("below 100 million", "moins de 100 millions"),
    "below_200": ("below 200 million", "moins de 200 millions"),
    "standing_help": (
        "Filled: runs, with the 95% interval over seeds and the ranks that the pairs leave open. Hollow: printed "
        "scores.",
        "Plein : exécutions, avec l'intervalle à 95 % sur les graines et les rangs que les paires laissent ouverts. "
        "Creux : scores imprimés.",
    ),
    "rank": ("rank", "rang"),
    "rank_short": (
        "From … to: the ranks that the pairs leave open. In brackets: the order of printed means, which says nothing "
        "of how sure it is.",
        "De … à : les rangs que les paires laissent ouverts. Entre parenthèses : l'ordre des moyennes imprimées, qui "
        "ne dit pas s'il est sûr.",
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
    "below_floor": ("below the floor on {}", "sous le plancher sur {}"),
    "cut_on": ("cut at the window: {}", "tronqué à la fenêtre : {}"),
    "failed_on": ("failed runs in the mean: {}", "exécutions échouées, comptées dans la moyenne : {}"),
    "failed_count": ("{} failed", "échecs : {}"),
    "in_training": ("test documents in its training text", "documents de test dans son texte d'entraînement"),
    "only_likely": ("average likely, not stated", "moyenne probable, non précisée"),
    "no_cost": ("Costs are known of runs alone.", "Les coûts ne sont connus que des exécutions."),
    "compare_picked": ("Compare", "Comparer"),
    "pick_rows": ("Pick two to five rows of the table.", "Choisissez deux à cinq lignes du tableau."),
    "alt_standing": (
        "Models by mean score with intervals; the first: {}",
        "Modèles par score moyen avec intervalles ; les premiers : {}",
    ),
    "alt_scatter": (
        "Score of each model against {}; the front: {}",
        "Score de chaque modèle selon : {} ; le front : {}",
    ),
    "alt_seeds": (
        "Score of every seed, with means and intervals",
        "Score de chaque graine, avec moyennes et intervalles",
    ),
    "alt_differences": (
        "Difference on each task with its interval; the ends: {}",
        "Différence sur chaque tâche avec son intervalle ; les extrêmes : {}",
    ),
    "alt_curves": ("Curves over the training", "Courbes au fil de l'entraînement"),
    "alt_needle": ("Accuracy by length, one line a model", "Exactitude selon la longueur, une ligne par modèle"),
    "alt_table": ("Scores of all models: {}", "Scores de tous les modèles : {}"),
    "add_model": ("Add your model", "Ajouter votre modèle"),
    "last_run": ("last run", "dernière exécution"),
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
    "complete": ("Complete rows only", "Lignes complètes seulement"),
    "complete_help": (
        "Only models with a score on every task of the suite have a suite average.",
        "Seuls les modèles qui ont un score sur toutes les tâches de la suite ont une moyenne.",
    ),
    "suite_average": ("suite average", "moyenne de la suite"),
    "model": ("model", "modèle"),
    "source": ("source", "source"),
    "seeds": ("seeds", "graines"),
    "download": ("Download", "Télécharger"),
    "notes": ("Notes", "Notes"),
    "findings": ("Findings in the results folder", "Constats dans le dossier de résultats"),
    "finding_help": (
        "These files could not be read. Everything else is shown.",
        "Ces fichiers n'ont pas pu être lus. Tout le reste est affiché.",
    ),
    "no_runs_public": (
        "No runs here yet: the scores below are published ones.",
        "Pas encore d'exécutions ici : les scores ci-dessous sont publiés.",
    ),
    "task_weights": ("How much each counts", "Poids de chacune"),
    "weights_help": (
        "From 1 to 9; all the same: the mean over corpora of their tasks' means. Compare counts corpora alike.",
        "De 1 à 9 ; tous égaux : la moyenne sur les corpus des moyennes de leurs tâches. Comparer compte chaque corpus "
        "autant.",
    ),
    "printed_mean": (
        "mean as the publication prints it, over its own tasks",
        "moyenne telle que la publication l'imprime, sur ses propres tâches",
    ),
    "cite": ("Cite", "Citer"),
    "cite_help": (
        "And every corpus that the results rest on: `biobench export --format bibtex`.",
        "Et chaque corpus sur lequel reposent les résultats : `biobench export --format bibtex`.",
    ),
    "changes": ("Changes of this version", "Changements de cette version"),
    "others": ("other models", "autres modèles"),
    "this_model": ("this model", "ce modèle"),
    "strip_help": (
        "Dot: this model, with its 95% interval over three seeds or more. Strokes: the other models under the same "
        "conditions; the thick one is the best policy that reads nothing.",
        "Point : ce modèle, avec son intervalle à 95 % sur trois graines ou plus. Traits : les autres modèles dans les "
        "mêmes conditions ; le trait épais est la meilleure politique qui ne lit rien.",
    ),
    "alt_strip": ("{} among the other models, task by task", "{} parmi les autres modèles, tâche par tâche"),
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
    "rank_in": ("rank · {}", "rang · {}"),
    "evaluated": ("evaluated", "évalué"),
    "hub": ("page on the hub", "page sur le hub"),
    "no_runs": (
        "No runs here yet: the scores below are published ones. Run a model and reload this page:",
        "Pas encore d'exécutions ici : les scores ci-dessous sont publiés. Lancez un modèle et rechargez la page :",
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
}


def words(language: Language) -> dict[str, str]:
    """Key -> text in that language."""
    index = 1 if language == "fr" else 0
    return {key: both[index] for key, both in (_WORDS | VIEW_WORDS | STANDING_WORDS).items()}


def number(value: float, digits: int, words: Mapping[str, str], *, sign: bool = False) -> str:
    """With a decimal comma in French. sign: a plus, too."""
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace(".", ",") if words["verdict_language"] == "fr" else text


def score(row: Row, words: Mapping[str, str], *, margin: bool = True) -> str:
    """The score in percent with its margin, which three seeds or more must bear."""
    text = percent(row, margin=margin and row.n_seeds >= FEW_SEEDS, failed=words["failed_count"])
    return text.replace(".", ",") if words["verdict_language"] == "fr" else text


def spoken(note: str, words: Mapping[str, str]) -> str:
    """A note of the report in the language of the words."""
    return in_french(note) if words["verdict_language"] == "fr" else note
