"""The words of the views that are about one thing: needle, pretraining, submission; (English, French)."""

from __future__ import annotations

VIEW_WORDS: dict[str, tuple[str, str]] = {
    "published_help": (
        "What publications report beyond the task tables, as printed, each with its source and what of ours can be set "
        "beside it.",
        "Ce que les publications rapportent au-delà des tableaux de tâches, tel qu'imprimé, avec la source et ce qui, "
        "chez nous, peut être mis à côté.",
    ),
    "needle_view": ("Needle", "Aiguille"),
    "no_needle": (
        "There are no needle runs here yet. Make one and reload this page:",
        "Il n'y a pas encore d'exécutions « aiguille » ici. Lancez-en une et rechargez la page :",
    ),
    "choose_maps": ("Up to six models", "Jusqu'à six modèles"),
    "needle_help": (
        "Accuracy in percent by length of the document and place of the fact, with the interval for other examples of "
        "the same kind, 95% over all cells together. The tint goes from chance (50) to all right (100). Hatched: "
        "beyond the model's window, nothing was scored.",
        "Exactitude en pour cent selon la longueur du document et la place du fait, avec l'intervalle pour d'autres "
        "exemples du même genre, à 95 % sur toutes les cases ensemble. La teinte va du hasard (50) au sans-faute "
        "(100). Hachuré : au-delà de la fenêtre du modèle, rien n'a été évalué.",
    ),
    "reads_up_to": ("reads up to", "lit jusqu'à"),
    "over_all": ("over all lengths", "sur toutes les longueurs"),
    "reads_help": (
        "Reads up to: the last length, from the shortest on, at which the whole interval is above guessing. Over all "
        "lengths: each counts once, and one beyond the window as guessing (50; hollow in the chart).",
        "Lit jusqu'à : la dernière longueur, à partir de la plus courte, où tout l'intervalle dépasse le hasard. Sur "
        "toutes les longueurs : chacune compte une fois, et au-delà de la fenêtre comme le hasard (50 ; creux sur le "
        "graphique).",
    ),
    "majority": ("most frequent answer", "réponse la plus fréquente"),
    "all_lengths": ("all", "toutes"),
    "all_positions": ("all", "toutes"),
    "position_start": ("start", "début"),
    "position_middle": ("middle", "milieu"),
    "position_end": ("end", "fin"),
    "beyond": ("beyond the model's window", "au-delà de la fenêtre du modèle"),
    "not_read": ("n/a", "n. d."),
    "pairs": ("pairs that share a haystack", "paires partageant une botte de foin"),
    "pretraining_view": ("Pretraining", "Préentraînement"),
    "no_pretraining": (
        "No pretraining run was found. Name a folder of runs, or put them below “pretraining” in the results folder:",
        "Aucun préentraînement trouvé. Nommez un dossier d'exécutions, ou placez-les sous « pretraining » dans le "
        "dossier "
        "de résultats :",
    ),
    "choose_runs": ("Up to six runs", "Jusqu'à six exécutions"),
    "pick_runs": ("Choose at least one.", "Choisissez-en au moins une."),
    "training_run": ("run", "exécution"),
    "loss_curves": ("Loss", "Perte"),
    "loss": ("loss, nats a target", "perte, nats par cible"),
    "loss_help": (
        "Lines: training; diamonds: held-out windows. Objectives differ in what they predict: losses compare within "
        "one objective only.",
        "Traits : entraînement ; losanges : fenêtres mises de côté. Les objectifs ne prédisent pas la même chose : les "
        "pertes ne se comparent qu'au sein d'un objectif.",
    ),
    "thinned": ("Long curves are thinned to every {}th point.", "Courbes longues : un point sur {}."),
    "tokens": ("input tokens", "tokens d'entrée"),
    "learning_rate": ("learning rate", "taux d'apprentissage"),
    "phase": ("phase", "phase"),
    "event": ("event", "événement"),
    "train": ("training", "entraînement"),
    "evaluation": ("evaluation", "évaluation"),
    "ledger": ("How it was pretrained", "Comment il a été préentraîné"),
    "ledger_help": (
        "From the training ledger of the run that exported exactly these weights. The Pretraining view has its curves "
        "and lays ledgers side by side.",
        "D'après le registre de l'exécution qui a exporté exactement ces poids. La vue Préentraînement en montre les "
        "courbes et compare les registres.",
    ),
    "ledgers": ("Ledgers side by side", "Registres côte à côte"),
    "only_differing": ("Only what differs", "Seulement ce qui diffère"),
    "quantity": ("quantity", "grandeur"),
    "equal": ("equal", "égal"),
    "yes": ("yes", "oui"),
    "no_binding": ("no: twins must agree", "non : requis pour des jumeaux"),
    "no_free": ("no, may differ", "non, peut différer"),
    "cka": ("Divergence of representations (1 − CKA)", "Divergence des représentations (1 − CKA)"),
    "analysis": ("Analysis", "Analyse"),
    "estimator": ("Estimator", "Estimateur"),
    "no_lines": ("This analysis holds no layers.", "Cette analyse ne contient aucune couche."),
    "cka_help": (
        "Bars: 95% jackknife intervals over texts. Seed noise: two runs that differ by the training seed alone.",
        "Barres : intervalles jackknife à 95 % sur les textes. Bruit de graine : deux exécutions qui ne diffèrent "
        "que par "
        "la graine.",
    ),
    "layer": ("layer", "couche"),
    "divergence": ("divergence, %", "divergence, %"),
    "seed_noise": ("seed noise, %", "bruit de graine, %"),
    "ratio": ("ratio", "rapport"),
    "submit_view": ("Submit", "Soumettre"),
    "submit_title": ("Check a submission", "Vérifier une soumission"),
    "submit_help": (
        "A submission is the pack that `biobench submit` makes: records, predictions and a manifest. Every score is "
        "computed again from the predictions. Nothing is kept here; send the pack as the results repository says.",
        "Une soumission est le paquet que produit `biobench submit` : enregistrements, prédictions et manifeste. "
        "Chaque score est recalculé à partir des prédictions. Rien n'est conservé ici ; envoyez le paquet comme "
        "l'indique le dépôt de résultats.",
    ),
    "upload": ("The pack as a zip file, at most {} MB", "Le paquet en fichier zip, {} Mo au plus"),
    "or_pack": ("or a pack on this machine", "ou un paquet sur cette machine"),
    "check": ("Check", "Vérifier"),
    "checking": ("Scoring again from the predictions…", "Nouveau calcul à partir des prédictions…"),
    "submission": ("Submission", "Soumission"),
    "state_verified": ("verified: every run was scored again on the data", "vérifiée : tout a été recalculé"),
    "state_consistent": (
        "consistent, but not scored again: the data of some tasks is not here",
        "cohérente, mais non recalculée : les données de certaines tâches ne sont pas ici",
    ),
    "state_person": ("a person must look at the findings first", "une personne doit d'abord examiner les constats"),
    "state_refused": ("refused; the errors below say why", "refusée ; les erreurs ci-dessous disent pourquoi"),
    "runs_verified": ("runs verified", "exécutions vérifiées"),
    "runs_consistent": ("consistent, not scored again", "cohérentes, non recalculées"),
    "runs_person": ("runs for a person", "exécutions à examiner"),
    "runs_refused": ("runs refused", "exécutions refusées"),
    "errors_found": ("errors", "erreurs"),
    "persons_found": ("findings for a person", "constats à examiner"),
    "warnings_found": ("warnings", "avertissements"),
    "codes": (
        "Codes: L layout, M manifest, R record, T task, D data, P predictions, S score, G gate, C completeness. "
        "Errors refuse, findings for a person wait for one, warnings do neither.",
        "Codes : L disposition, M manifeste, R enregistrement, T tâche, D données, P prédictions, S score, G contrôle, "
        "C complétude. Une erreur entraîne le refus, un constat à examiner attend une personne, un avertissement non.",
    ),
    "code": ("code", "code"),
    "grade": ("grade", "gravité"),
    "grade_error": ("error", "erreur"),
    "grade_person": ("for a person", "à examiner"),
    "grade_warning": ("warning", "avertissement"),
    "where": ("where", "où"),
    "what": ("what", "quoi"),
}
