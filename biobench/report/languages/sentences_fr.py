"""The sentences of a verdict in French: a form for each form, with the same fields."""

from __future__ import annotations

SENTENCES = {
    # counts and sizes
    "1 corpus": "1 corpus",
    "{count} corpora": "{count} corpus",
    "1 task": "1 tâche",
    "{count} tasks": "{count} tâches",
    "1 model": "1 modèle",
    "{count} models": "{count} modèles",
    "1 point": "1 point",
    "{count} points": "{count} points",
    "{few} points": "{few} point",
    "{few:.2f} points of {metric}": "{few:.2f} point de {metric}",
    "{points:.2f} points of {metric}": "{points:.2f} points de {metric}",
    "{points} points on {corpora} ({name})": "{points} points sur {corpora} ({name})",
    "{level}%": "{level} %",
    "{low} to {high}": "{low} à {high}",
    "no interval": "pas d'intervalle",
    # what it is about
    "English": "anglais",
    "French": "français",
    " in {language}": " en {language}",
    "this task{where}": "cette tâche{where}",
    "these {count} tasks{where}": "ces {count} tâches{where}",
    "classification": "classification",
    "named entities": "entités nommées",
    "kind of task": "type de tâche",
    "language": "langue",
    "t over {corpora}": "t sur {corpora}",
    "other seeds and test sets": "d'autres graines et jeux de test",
    "other seeds, these test sets": "d'autres graines, ces jeux de test",
    "these runs, other test sets": "ces exécutions, d'autres jeux de test",
    "{level} interval {ends}, {how}, {p}": "intervalle à {level} : {ends}, {how}, {p}",
    # twins and plan
    "Matched twins: {first} and {second} differ in the training seed alone (training ledgers).": (
        "Jumeaux appariés : {first} et {second} ne diffèrent que par la graine d'entraînement (registres "
        "d'entraînement)."
    ),
    "Matched twins: {first} and {second} were trained alike but for the objective (training ledgers).": (
        "Jumeaux appariés : {first} et {second} ont été entraînés de même, sauf l'objectif (registres d'entraînement)."
    ),
    "Not matched twins: {first} and {second} differ in {what} (training ledgers).": (
        "Jumeaux non appariés : {first} et {second} diffèrent par {what} (registres d'entraînement)."
    ),
    "Declared before looking: plan {hash}.": "Déclaré avant de regarder : plan {hash}.",
    "Exploratory, not in the declared plan: {pairs}.": "Exploratoire, hors du plan déclaré : {pairs}.",
    "exploratory: {model} has other seeds than the plan declares on {tasks}": (
        "exploratoire : {model} a d'autres graines que celles du plan sur {tasks}"
    ),
    "Each language has its own verdict; --pooled asks for one over all of them.": (
        "Chaque langue a son verdict ; --pooled en demande un pour toutes."
    ),
    # what is shown
    "Certain: {better} is better than {worse} on {here}, by {size} ({evidence}).": (
        "Certain : {better} est meilleur que {worse} sur {here}, de {size} ({evidence})."
    ),
    "p below one in a million": "p sous un millionième",
    "p below one in a million unless seeds spread by more than 5 points": (
        "p sous un millionième, sauf si les graines s'écartent de plus de 5 points"
    ),
    "Certain: {better} is better than {worse} on {here}, by {size}: it returns the gold, so it errs on no test set.": (
        "Certain : {better} est meilleur que {worse} sur {here}, de {size} : il rend la référence et ne se trompe donc "
        "sur aucun jeu de test."
    ),
    "{better} is better than {worse} on {here}, by {size} ({evidence}).": (
        "{better} est meilleur que {worse} sur {here}, de {size} ({evidence})."
    ),
    "{better} is better than {worse} on tasks like these{where}, by {size} ({evidence}).": (
        "{better} est meilleur que {worse} sur des tâches comme celles-ci{where}, de {size} ({evidence})."
    ),
    "On {here} themselves it is shown too ({evidence}).": "Sur {here} mêmes, cela est montré aussi ({evidence}).",
    "On tasks like these it is shown too ({evidence}).": (
        "Sur des tâches comme celles-ci, cela est montré aussi ({evidence})."
    ),
    "On other tasks like these it is not shown ({evidence}).": (
        "Sur d'autres tâches comme celles-ci, cela n'est pas montré ({evidence})."
    ),
    "Nothing is shown about the models {better} and {worse}{where}: a single seed may have been lucky.": (
        "Rien n'est montré sur les modèles {better} et {worse}{where} : une seule graine a pu être heureuse."
    ),
    "These two runs differ by {size} on {here} ({evidence}): the run of {better} scores higher.": (
        "Ces deux exécutions diffèrent de {size} sur {here} ({evidence}) : celle de {better} a le score le plus haut."
    ),
    "No difference is shown between {first} and {second}{where}.": (
        "Aucune différence n'est montrée entre {first} et {second}{where}."
    ),
    "{better} is {size} higher on average.": "{better} est plus haut de {size} en moyenne.",
    "{better} is {size} higher on average; the uncertainty of that is unknown.": (
        "{better} est plus haut de {size} en moyenne ; l'incertitude en est inconnue."
    ),
    "Tasks like these: {evidence}.": "Tâches comme celles-ci : {evidence}.",
    "Only {here}: {evidence}.": "Seulement {here} : {evidence}.",
    "The difference depends on the {part} (F test over corpora, {p}): {each}.": (
        "La différence dépend de ceci : {part} (test F sur les corpus, {p}) : {each}."
    ),
    "So nothing is said about tasks like these as a whole.": (
        "Rien n'est donc dit de l'ensemble des tâches comme celles-ci."
    ),
    "{first} and {second} are the same within {points} on tasks like these (two one-sided tests, {p}).": (
        "{first} et {second} sont égaux à {points} près sur des tâches comme celles-ci (deux tests unilatéraux, {p})."
    ),
    "{first} and {second} are the same within {points} on these tasks alone (two one-sided tests, {p}).": (
        "{first} et {second} sont égaux à {points} près sur ces seules tâches (deux tests unilatéraux, {p})."
    ),
    "That {first} and {second} are the same within {points} is not shown (two one-sided tests, {p}).": (
        "Que {first} et {second} soient égaux à {points} près n'est pas montré (deux tests unilatéraux, {p})."
    ),
    "No difference: {first} and {second} have the same scores on {tasks}{where} (difference 0, p = 1, one tie "
    "group).": (
        "Aucune différence : {first} et {second} ont les mêmes scores sur {tasks}{where} (différence 0, p = 1, un seul "
        "groupe d'égalité)."
    ),
    # what stands beside it
    "Mean scores: {first} is higher on {wins} of {tasks}, equal on {ties}{within}, lower on {losses}.": (
        "Scores moyens : {first} est plus haut sur {wins} de {tasks}, égal sur {ties}{within}, plus bas sur {losses}."
    ),
    " (within {points})": " (à {points} près)",
    "It holds without any one corpus (at most {p}, without {corpus}).": (
        "Cela tient sans l'un quelconque des corpus (au plus {p}, sans {corpus})."
    ),
    "One corpus carries this result: without {corpus} it is not shown ({p}).": (
        "Un seul corpus porte ce résultat : sans {corpus}, il n'est pas montré ({p})."
    ),
    "This result is fragile: for {lost} of the {count} corpora, leaving that one out, it is not shown (p above "
    "{alpha}; without {corpus} {p}).": (
        "Ce résultat est fragile : pour {lost} des {count} corpus, si l'on retire celui-là, il n'est pas montré (p "
        "au-dessus de {alpha} ; sans {corpus}, {p})."
    ),
    "One corpus carries the mean: without {corpus} the difference is {points} points.": (
        "Un seul corpus porte la moyenne : sans {corpus}, la différence est de {points} points."
    ),
    # seeds until decided
    " (95% at any time: {ends} points)": " (95 % à tout moment : {ends} points)",
    "{better} is better than {worse} on these tasks and test sets, by {size}{ends}.": (
        "{better} est meilleur que {worse} sur ces tâches et jeux de test, de {size}{ends}."
    ),
    "{first} and {second} are the same within {points} on these tasks and test sets{ends}.": (
        "{first} et {second} sont égaux à {points} près sur ces tâches et jeux de test{ends}."
    ),
    "Not decided: {better} is ahead by {size}{ends}.": "Indécis : {better} est devant de {size}{ends}.",
    "Not decided: the means of {first} and {second} are equal{ends}.": (
        "Indécis : {first} et {second} ont la même moyenne{ends}."
    ),
    "Seeds of each model: {spent}.": "Graines de chaque modèle : {spent}.",
    "Wilcoxon's signed ranks over the corpora give {p}.": "Les rangs signés de Wilcoxon sur les corpus donnent {p}.",
    "That p cannot fall below {least} with {corpora}.": "Ce p ne peut descendre sous {least} avec {corpora}.",
    "A run of {first} beats a run of {second} with probability {chance:.2f} (ties count half).": (
        "Une exécution de {first} bat une exécution de {second} avec une probabilité de {chance:.2f} (une égalité "
        "compte pour moitié)."
    ),
    "The smallest true difference found in 4 of 5 cases cannot be told from {corpora}.": (
        "La plus petite vraie différence trouvée dans 4 cas sur 5 ne peut se dire à partir de {corpora}."
    ),
    "The smallest true difference found in 4 of 5 cases lies between {low:.2f} and {high:.2f} points (90% range from "
    "{corpora}).": (
        "La plus petite vraie différence trouvée dans 4 cas sur 5 est entre {low:.2f} et {high:.2f} points (intervalle "
        "à 90 % tiré de {corpora})."
    ),
    "About {seeds} seeds a task find a true difference of {want} in 4 of 5 cases.": (
        "Environ {seeds} graines par tâche trouvent une vraie différence de {want} dans 4 cas sur 5."
    ),
    "How many seeds find a true difference of {want} cannot be told from {corpora}.": (
        "Combien de graines trouvent une vraie différence de {want} ne peut se dire à partir de {corpora}."
    ),
    "No number of seeds finds a true difference of {want} in 4 of 5 cases; more corpora would.": (
        "Aucun nombre de graines ne trouve une vraie différence de {want} dans 4 cas sur 5 ; plus de corpus le "
        "pourraient."
    ),
    # several splits of one corpus
    "each split has a test set of its own, whose noise is part of the corrected t over the splits": (
        "chaque découpage a son propre jeu de test, dont le bruit fait partie du t corrigé sur les découpages"
    ),
    "{model} on {task}: {count} of {folds} splits of one corpus, a training each; ± is the t interval corrected for "
    "the training documents that they share": (
        "{model} sur {task} : {count} des {folds} découpages d'un corpus, un entraînement chacun ; ± est l'intervalle "
        "de t corrigé pour les documents d'entraînement qu'ils partagent"
    ),
    # averages of a report
    "{suite}: share of each task in the variance of the average: {each}": (
        "{suite} : part de chaque tâche dans la variance de la moyenne : {each}"
    ),
    "{suite}: the order depends on the average; it is another one {orders}": (
        "{suite} : l'ordre dépend de la moyenne ; il est autre {orders}"
    ),
    "by task": "par tâche",
    "by mean rank": "par rang moyen",
    "{model} on {task}: {count} of {seeds} runs failed (seeds {which}); the mean includes them, ± is about the others, "
    "whose mean is {rest:.1f}": (
        "{model} sur {task} : {count} des {seeds} exécutions ont échoué (graines {which}) ; la moyenne les compte, ± "
        "porte sur les autres, dont la moyenne est {rest:.1f}"
    ),
    # several models
    "No difference: all {count} models have the same average{where}.": (
        "Aucune différence : les {count} modèles ont la même moyenne{where}."
    ),
    "Highest average{where}: {models} ({score:.2f}, {metric}, mean over corpora).": (
        "Moyenne la plus haute{where} : {models} ({score:.2f}, {metric}, moyenne sur les corpus)."
    ),
    "The first place depends on the average: {other}.": "La première place dépend de la moyenne : {other}.",
    "{name} puts {model} first": "{name} met {model} en tête",
    "the mean over tasks": "la moyenne sur les tâches",
    "the mean rank": "le rang moyen",
    "The order of the others depends on the average; the table has all three.": (
        "L'ordre des autres dépend de la moyenne ; la table donne les trois."
    ),
    "No pair is tested on tasks like these: there is {corpora}, and a t over corpora needs two.": (
        "Aucune paire n'est testée pour des tâches comme celles-ci : il y a {corpora}, et un t sur les corpus en "
        "demande deux."
    ),
    "These p are corrected for the number of pairs (Holm).": "Ces p sont corrigés du nombre de paires (Holm).",
    "Pairs told apart on tasks like these: {told} of {pairs} (t over {corpora}, Holm's correction, p at most "
    "{alpha}).": (
        "Paires distinguées sur des tâches comme celles-ci : {told} de {pairs} (t sur {corpora}, correction de Holm, p "
        "au plus {alpha})."
    ),
    "Each variance is moderated by those of all pairs.": "Chaque variance est modérée par celles de toutes les paires.",
    "Pairs left out because their difference depends on the kind of task or the language: {count}.": (
        "Paires laissées de côté parce que leur différence dépend du type de tâche ou de la langue : {count}."
    ),
    "Not told apart from {model}: {others}.": "Non distingués de {model} : {others}.",
    "Told apart from {model}: {others}.": "Distingués de {model} : {others}.",
    "Possible ranks, for each model alone ({level}, bootstrap): {ranks}.": (
        "Rangs possibles, pour chaque modèle seul ({level}, bootstrap) : {ranks}."
    ),
    # limits
    "Cannot be concluded: whether other seeds or another test set would change the result on one task, how often a run "
    "of one model beats a run of the other, and how many seeds would be needed. Why: only printed means are known of "
    "{models}, without their spread over seeds and without predictions.": (
        "On ne peut conclure : si d'autres graines ou un autre jeu de test changeraient le résultat sur une tâche, "
        "combien de fois une exécution d'un modèle bat une exécution de l'autre, ni combien de graines il faudrait. "
        "Raison : de {models} on ne connaît que des moyennes imprimées, sans dispersion sur les graines ni prédictions."
    ),
    "Cannot be concluded: that a difference comes from the models. Why: the printed scores were made with other code "
    "and maybe other splits than the runs here.": (
        "On ne peut conclure : qu'une différence vienne des modèles. Raison : les scores imprimés ont été obtenus avec "
        "un autre code et peut-être d'autres découpages que les exécutions d'ici."
    ),
    "Cannot be concluded: anything about other tasks. Why: {one}.": (
        "On ne peut conclure : quoi que ce soit sur d'autres tâches. Raison : {one}."
    ),
    "there is one task only": "il n'y a qu'une tâche",
    "all tasks are of one corpus": "toutes les tâches sont d'un seul corpus",
    "Policies of the gate have no seeds: their score stands for every seed compared with it.": (
        "Les politiques de référence n'ont pas de graines : leur score vaut pour chaque graine à laquelle il est "
        "comparé."
    ),
    "Cannot be concluded: anything about other seeds. Why: some task was run with a single one.": (
        "On ne peut conclure : quoi que ce soit sur d'autres graines. Raison : une tâche n'a été lancée qu'avec une "
        "seule."
    ),
    "{model} on {task}: the run with seed {seed} failed ({score:.1f}); means and intervals include it": (
        "{model} sur {task} : l'exécution de graine {seed} a échoué ({score:.1f}) ; moyennes et intervalles le comptent"
    ),
}
"""English form -> French form."""
