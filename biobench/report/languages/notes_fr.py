"""The notes in French: a form for each form, with the same fields."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biobench.report.languages.notes import Note, filled
from biobench.report.languages.sentences_fr import SENTENCES
from biobench.report.literature.beside import NAMES

METRICS = {
    "macro_f1": "macro-F1",
    "macro_f1_all": "macro-F1 sur toutes les étiquettes",
    "micro_f1": "micro-F1",
    "weighted_f1": "F1 pondéré",
    "micro_f1_positive": "micro-F1 sans l'étiquette négative",
    "accuracy": "exactitude",
    "example_f1": "F1 par exemple",
    "partial_micro_f1": "micro-F1 partiel",
    "partial_macro_f1": "macro-F1 partiel",
    "pearson": "corrélation de Pearson",
    "spearman": "corrélation de Spearman",
    "edrm": "EDRM (1 - distance relative)",
    "mse": "erreur quadratique moyenne",
    "exact_match": "correspondance exacte",
    "hamming": "score de Hamming",
    "accuracy_at_1": "exactitude de la première réponse",
    "accuracy_at_5": "part avec une bonne réponse parmi cinq",
    "mrr": "rang réciproque moyen",
    "mixed": "la moyenne propre à chaque tâche",
}
"""Scores in words."""

_NOTES = {
    # averages
    "{model}: average over {count} of {needed} {suite} tasks": (
        "{model} : moyenne sur {count} des {needed} tâches de la suite {suite}"
    ),
    "lines with only a part of the {tasks} {suite} tasks beside this average, and so no suite average: {count}": (
        "lignes qui n'ont qu'une partie des {tasks} tâches de la suite {suite} sous cette moyenne, donc sans moyenne "
        "de suite : {count}"
    ),
    "the {suite} average leaves out {tasks} for every line, published ones too: the gate refuses the runs here": (
        "la moyenne de la suite {suite} laisse {tasks} de côté pour toutes les lignes, publiées comprises : le "
        "contrôle y refuse les exécutions ici"
    ),
    "{suite}: averages of published lines are those that the publication prints, over its tasks, each task once, "
    "also where the score of a task stands beside no average of ours": (
        "{suite} : les moyennes des lignes publiées sont celles que la publication imprime, sur ses tâches, chaque "
        "tâche une fois, même là où le score d'une tâche ne figure à côté d'aucune moyenne d'ici"
    ),
    # the gate
    "{model} scores below the floor {floor}, which reads the whole training split, on {tasks}": (
        "{model} est sous le plancher {floor}, qui lit tout le jeu d'entraînement, sur {tasks}"
    ),
    "{task} fails its gate, so its runs are neither shown nor averaged: {reasons}": (
        "{task} échoue à son contrôle, ses exécutions ne sont donc ni montrées ni comptées dans les moyennes : "
        "{reasons}"
    ),
    "{task}: no gate verdict on the data of its runs; `biobench tasks gate {task}` gives one": (
        "{task} : aucun verdict du contrôle sur les données de ses exécutions ; `biobench tasks gate {task}` en donne "
        "un"
    ),
    "the gate flags {task}: {reasons}": "le contrôle signale {task} : {reasons}",
    "{task} fails its gate, its runs are not compared: {reasons}": (
        "{task} échoue à son contrôle, ses exécutions ne sont pas comparées : {reasons}"
    ),
    # seeds and records
    "{model} on {task}: {seeds} seeds gave exactly the same score, which tells nothing of the spread over "
    "others: no ±, here and in averages over it": (
        "{model} sur {task} : {seeds} graines ont donné exactement le même score, ce qui ne dit rien de la dispersion "
        "sur d'autres : pas de ±, ni ici ni dans les moyennes qui la comptent"
    ),
    "{model} on {task}: some record has no {metric}; `biobench rescore` computes it": (
        "{model} sur {task} : une exécution n'a pas de {metric} ; `biobench rescore` le calcule"
    ),
    "{model} on {task}: seeds were run in different precisions ({precisions})": (
        "{model} sur {task} : les graines ont tourné en précisions différentes ({precisions})"
    ),
    "{model} on {task}: some seeds were run more than once; the {count} in {precision} are shown": (
        "{model} sur {task} : des graines ont tourné plus d'une fois ; les {count} en {precision} sont montrées"
    ),
    # data
    "warning: {task}, source {source}: {count} counts of the data contradict its spec ({first})": (
        "attention : {task}, source {source} : {count} effectifs des données contredisent sa spécification ({first})"
    ),
    "{task}, source {source}: {count} gold mentions of the corpus, {test} of them in test, cannot be expressed "
    "in its units and tokens and are in no score": (
        "{task}, source {source} : {count} mentions de référence du corpus, dont {test} dans le test, ne peuvent "
        "s'exprimer dans ses unités et ses mots et ne comptent dans aucun score"
    ),
    # windows
    "{model} on {task}: over the lengths {read}, window {window}": (
        "{model} sur {task} : sur les longueurs {read}, fenêtre de {window}"
    ),
    "{model} on {task}: {cut} of {documents} test documents are longer than its window of {window} tokens{lost}": (
        "{model} sur {task} : {cut} des {documents} documents de test dépassent sa fenêtre de {window} tokens{lost}"
    ),
    "; {lost} gold mentions lie beyond it and count as missed": (
        " ; {lost} mentions de référence sont au-delà et comptent comme manquées"
    ),
    "; the corpus does not say which labels that hides": " ; le corpus ne dit pas quelles étiquettes cela cache",
    "; {lost} gold labels have no mention in it, the others alone give micro F1 {reached:.1f} (no ceiling: a "
    "label can be told without its mention)": (
        " ; {lost} étiquettes de référence n'y ont aucune mention, les autres seules donnent un micro-F1 de "
        "{reached:.1f} (ce n'est pas un plafond : une étiquette peut se deviner sans sa mention)"
    ),
    # training text
    "; the text of its base {name} is not known": " ; le texte de sa base {name} n'est pas connu",
    ", from which all of them were kept out": ", d'où ils ont tous été écartés",
    "{model} on {task}: validation and test documents were kept out of its training text '{corpus}'{base}": (
        "{model} sur {task} : les documents de validation et de test ont été écartés de son texte d'entraînement "
        "« {corpus} »{base}"
    ),
    "{model} on {task}: its training text '{corpus}' has not been compared with the test documents (`biobench "
    "data overlap`){base}": (
        "{model} sur {task} : son texte d'entraînement « {corpus} » n'a pas été comparé aux documents de test "
        "(`biobench data overlap`){base}"
    ),
    "{model} on {task}: none of {documents} test documents was found in its training text '{corpus}'{how}{base}": (
        "{model} sur {task} : aucun des {documents} documents de test n'a été trouvé dans son texte d'entraînement "
        "« {corpus} »{how}{base}"
    ),
    "{mark} {model} on {task}: {seen} of {documents} test documents ({share:.1f}%) share 13 words in a row or all "
    "of their text with its training text '{corpus}', {exact} of them verbatim; {runs:.1f}% of all runs of 13 "
    "words{base}": (
        "{mark} {model} sur {task} : {seen} des {documents} documents de test ({share:.1f} %) partagent 13 mots de "
        "suite ou tout leur texte avec son texte d'entraînement « {corpus} », dont {exact} mot pour mot ; {runs:.1f} % "
        "de toutes les suites de 13 mots{base}"
    ),
    # published values
    "Published values of {tasks} ({source}): {caption} Our reading: {reading}; {end}": (
        "Valeurs publiées de {tasks} ({source}) : {caption} Notre lecture : {reading} ; {end}"
    ),
    "undecided": "indécidée",
    "they stand beside that average, as printed, without their spread.": (
        "elles sont à côté de cette moyenne, telles qu'imprimées, sans leur dispersion."
    ),
    "{mark} average likely, not stated by the publication: {tasks}": (
        "{mark} moyenne probable, non énoncée par la publication : {tasks}"
    ),
    "Not as in the protocol of the published values ({aspect}; {tasks}). Here: {here}. There: {compared}.": (
        "Autrement que dans le protocole des valeurs publiées ({aspect} ; {tasks}). Ici : {here}. Là : {compared}."
    ),
    "No deviation from the protocol of the published values is known: {tasks}": (
        "Aucun écart connu avec le protocole des valeurs publiées : {tasks}"
    ),
    "they are not shown beside another average.": "elles ne sont pas montrées à côté d'une autre moyenne.",
    "each task is compared by the average its published scores are read as, not by macro F1": (
        "chaque tâche est comparée par la moyenne que ses scores publiés sont censés être, non par le macro-F1"
    ),
    "published values of {tasks} are not known to be this average and are left out": (
        "on ne sait pas si les valeurs publiées de {tasks} sont cette moyenne ; elles sont laissées de côté"
    ),
    # who and what is compared
    "{model}: its {source} scores are left aside": "{model} : ses scores de source « {source} » sont laissés de côté",
    "run": "exécution",
    "frozen": "gelé",
    "outside": "extérieur",
    "submitted": "soumis",
    "floor": "plancher",
    "ceiling": "plafond",
    "{model}: the published scores of the same name are left aside, its runs are used": (
        "{model} : les scores publiés du même nom sont laissés de côté, ses exécutions sont prises"
    ),
    "not compared, some model has no result there: {tasks}": "pas comparé, un modèle n'y a pas de résultat : {tasks}",
    "only limited or overridden runs on {tasks}: left out, they are never mixed with full runs": (
        "seulement des exécutions limitées ou modifiées sur {tasks} : laissées de côté, jamais mêlées aux exécutions "
        "entières"
    ),
    "no full run among these, all are limited or overridden: {variants}": (
        "aucune exécution entière parmi celles-ci, toutes sont limitées ou modifiées : {variants}"
    ),
    "{task}: some record has no {metric}; `biobench rescore` computes it; left out": (
        "{task} : une exécution n'a pas de {metric} ; `biobench rescore` le calcule ; laissée de côté"
    ),
    "variants of tasks compared here are left out (--task names them): {tasks}": (
        "les variantes de tâches comparées ici sont laissées de côté (à nommer pour les comparer) : {tasks}"
    ),
    "needle tasks are left out, they ask another kind of question (--suite needle)": (
        "les tâches d'aiguille sont laissées de côté, elles posent une autre question (suite « needle »)"
    ),
    "{task}: {reason}": "{task} : {reason}",
    "{task}: {reason} ({pairs}{more})": "{task} : {reason} ({pairs}{more})",
    "{first} and {second}": "{first} et {second}",
    "; {count} more pairs": " ; {count} autres paires",
    # what else may explain a difference
    "left out, the windows hold other lengths ({each}); `biobench report --format html` has them side by side": (
        "laissée de côté, les fenêtres tiennent d'autres longueurs ({each}) ; `biobench report --format html` les met "
        "côte à côte"
    ),
    "tasks without F1 stand by another score: {each}": "tâches sans F1, présentées par un autre score : {each}",
    "{model}: {suite} average {mean:.2f}; over corpora {ours:.2f}": (
        "{model} : moyenne {suite} {mean:.2f} ; sur les corpus {ours:.2f}"
    ),
    "{task} cannot be run: {needs}": "{task} ne peut pas être exécutée : {needs}",
    "{task} is not quite the suite's: {differs}": "{task} n'est pas tout à fait celle de la suite : {differs}",
    "the models were scored on other documents": "les modèles ont été évalués sur d'autres documents",
    "trained in different precision ({each})": "entraînés en précisions différentes ({each})",
    "{model} in {precision}": "{model} en {precision}",
    "windows cut the test documents differently, gold beyond them is missed ({each})": (
        "les fenêtres coupent les documents de test différemment, la référence au-delà est manquée ({each})"
    ),
    "{model} {window} tokens, {lost} lost": "{model} {window} tokens, {lost} perdues",
    "fewer than three common seeds, all seeds are compared as independent": (
        "moins de trois graines communes, toutes sont comparées comme indépendantes"
    ),
    "compared on the {count} common seeds": "comparés sur les {count} graines communes",
    # test-set noise
    "{count} pairs: test-set noise task by task is computed up to {most} pairs": (
        "{count} paires : le bruit du jeu de test tâche par tâche est calculé jusqu'à {most} paires"
    ),
    "test-set noise is unknown on {task_and_reason}": "le bruit du jeu de test n'est pas connu pour {task_and_reason}",
    "published means come without predictions": "les moyennes publiées viennent sans prédictions",
    "the gate's policies are stored without predictions": (
        "les politiques du contrôle sont enregistrées sans prédictions"
    ),
    "{metric} is no average of F1 counts": "{metric} n'est pas une moyenne de comptes F1",
    "stored scores are not those of the stored predictions; run `biobench rescore`": (
        "les scores enregistrés ne sont pas ceux des prédictions enregistrées ; lancez `biobench rescore`"
    ),
}

_NUMBER = re.compile(r"(?:p = |p < |< )?[+−-]?\d+\.\d+")
FORMS = {NAMES[metric]: words for metric, words in METRICS.items()} | _NOTES | SENTENCES
"""English form -> French form."""


def in_french(text: str) -> str:
    """The sentence in French, notes within notes too; what is no note (an error's own words) as it is."""
    if not isinstance(text, Note):
        return text
    return filled(FORMS.get(text.form, text.form), {name: _in_french(value) for name, value in text.values.items()})


class _Comma(float):
    """Prints with a decimal comma."""

    def __format__(self, form: str) -> str:
        return super().__format__(form).replace(".", ",")


class _Spaced(int):
    """Prints thousands with a narrow space."""

    def __format__(self, form: str) -> str:
        return super().__format__(form).replace(",", "\u202f")


def _in_french(value: object) -> object:
    if isinstance(value, float):
        return _Comma(value)
    if isinstance(value, int):
        return _Spaced(value)
    if isinstance(value, str) and not isinstance(value, Note):
        # a number is written out where its precision is known
        return value.replace(".", ",") if _NUMBER.fullmatch(value) else value
    if isinstance(value, str):
        return in_french(value)
    return [_in_french(part) for part in value] if isinstance(value, Sequence) else value
