"""`verdict` in French: the same sentences in the same order with the same numbers."""

from __future__ import annotations

from dataclasses import replace

from biobench.comparison.result import Compared, PairResult
from biobench.comparison.twins import Twins
from biobench.comparison.verdict import MOST_SPOKEN, is_about_runs, is_certain, p_value, ranks, untested
from biobench.report.notes_fr import METRICS
from biobench.stats import Estimand, Interval, MeanTest

_ABOUT = {
    Estimand.NEW_SEEDS: "cette tâche et ce jeu de test, d'autres graines",
    Estimand.NEW_DOCUMENTS: "ces essais, un autre jeu de test de cette tâche",
    Estimand.THIS_TASK: "cette tâche : d'autres graines et un autre jeu de test",
    Estimand.THESE_TEST_SETS: "ces tâches et jeux de test, d'autres graines",
    Estimand.THESE_RUNS: "ces tâches et essais, d'autres jeux de test",
    Estimand.THESE_TASKS: "ces tâches : d'autres graines et d'autres jeux de test",
    Estimand.TASKS_LIKE_THESE: "des tâches comme celles-ci",
}


def verdict_fr(held: Compared) -> tuple[str, ...]:
    """The sentences of `verdict`, in French."""
    lines = [_twins(twins) for twins in held.twins]
    lines += _pair(held, held.pairs[0]) if len(held.models) == 2 else _many(held)
    return (*lines, *_limits(held))


def _twins(twins: Twins) -> str:
    pair = f"{twins.first} et {twins.second}"
    if not twins.matched:
        return f"Jumeaux non appariés : {pair} diffèrent par {', '.join(twins.differing)} (registres d'entraînement)."
    if twins.noise_pair:
        return f"Jumeaux appariés : {pair} ne diffèrent que par la graine d'entraînement (registres d'entraînement)."
    return f"Jumeaux appariés : {pair} ont été entraînés de même, sauf l'objectif (registres d'entraînement)."


def _plural(count: int, one: str, many: str | None = None) -> str:
    """French takes the singular for 0 and 1."""
    return f"{count} {one if count < 2 else many or one + 's'}"


def _metric(held: Compared) -> str:
    names = set(held.metrics.values())
    only = next(iter(names))
    return METRICS.get(only, only) if len(names) == 1 else "la moyenne propre à chaque tâche"


def _corpora(held: Compared) -> str:
    return _plural(len(held.clusters), "corpus", "corpus")


def _level(held: Compared) -> str:
    return f"{100 * (1 - held.alpha):g} %"


def _equals(p: float) -> str:
    return f"p {p_value(p)}" if p < 1e-4 else f"p = {p_value(p)}"


def _ends(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    low, high = (f"{100 * end:.2f}" for end in (interval.low, interval.high))
    return " à ".join("0.00" if float(end) == 0 else end for end in (low, high))


def _points(held: Compared, signed: float) -> str:
    return f"{100 * abs(signed):.2f} points de {_metric(held)}"


def _evidence(held: Compared, test: MeanTest, signed: float, method: str = "") -> str:
    interval = test.interval
    if interval is not None and signed < 0:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    how = f"{method}, " if method else ""
    return (
        f"{_points(held, signed)} (intervalle à {_level(held)} : {_ends(interval)}, {how}"
        f"{_equals(1.0 if test.p is None else test.p)} ; portée : {_ABOUT[test.estimand]})"
    )


def _pair(held: Compared, result: PairResult) -> list[str]:
    suite = result.pair.comparison
    first, second = result.pair.first, result.pair.second
    tasks = _plural(len(held.tasks), "tâche")
    if not any(suite.task_differences):
        same = f"{first} et {second} ont les mêmes scores sur {tasks}"
        return [f"Aucune différence : {same} (différence 0, p = 1, un seul groupe d'égalité)."]
    lines = _statements(held, result)
    rope = f" à {100 * suite.rope:g} point près" if suite.rope else ""
    lines.append(
        f"{first} est meilleur sur {suite.wins} de {tasks}, égal{rope} sur {suite.ties}, moins bon sur {suite.losses}."
    )
    if suite.wilcoxon_p is not None:
        least = suite.wilcoxon_smallest_p
        bound = f" (avec {len(held.clusters)} corpus, p ne descend pas sous {least:.3g})" if least > held.alpha else ""
        lines.append(f"À côté du test t, rangs signés de Wilcoxon sur les corpus : {_equals(suite.wilcoxon_p)}{bound}.")
    if suite.improvement is not None:
        lines.append(
            f"Un essai de {first} bat un essai de {second} avec une probabilité de {suite.improvement:.2f} "
            "(une égalité compte pour moitié)."
        )
    return [*lines, *_design(held, result)]


def _statements(held: Compared, result: PairResult) -> list[str]:
    """The branches of `verdict._statements`."""
    suite, within = result.pair.comparison.test, result.within.test
    signed = result.pair.comparison.difference
    order = (result.pair.first, result.pair.second)
    better, worse = order if signed > 0 else order[::-1]
    claim = f"{better} est meilleur que {worse}"
    here = "cette tâche" if len(held.tasks) == 1 else f"ces {len(held.tasks)} tâches"
    general = None if suite.p is None else _evidence(held, suite, signed, f"t sur {_corpora(held)}")
    local = None if within is None or within.p is None else _evidence(held, within, signed)
    shown = within is not None and within.p is not None and within.p <= held.alpha
    wins = result.pair.comparison.wins if signed > 0 else result.pair.comparison.losses
    if better in held.perfect and wins == len(held.tasks):
        lines = [
            f"Certain : {claim} sur {here}, de {_points(held, signed)} : il rend la référence et ne se trompe donc sur "
            "aucun jeu de test."
        ]
        return [*lines, f"Tâches comme celles-ci : {general}."] if general else lines
    if shown and is_certain(result) and local is not None:
        lines = [f"Certain : {claim} sur {here}, de {local}."]
        if general is not None:
            known = "Tâches comme celles-ci : montré aussi"
            if not result.pair.different:
                known = "Autres tâches comme celles-ci : pas montré"
            lines.append(f"{known} : {general}.")
        return lines
    if result.pair.different and general is not None:
        lines = [f"{claim} sur des tâches comme celles-ci, de {general}."]
        if local is not None:
            lines.append(f"Sur {here} mêmes, {'montré aussi' if shown else 'pas montré'} : {local}.")
        return lines
    if shown and local is not None:
        lines = [f"{claim} sur {here}, de {local}."]
        if is_about_runs(result):
            runs = f"Les essais de {better} sont meilleurs que ceux de {worse} sur {here}, de {local}."
            lines = [f"Que {claim} n'est pas montré : une seule graine a pu être heureuse. {runs}"]
        tail = f"Que cela vaille pour d'autres tâches comme celles-ci n'est pas montré : {general}."
        return [*lines, tail] if general else lines
    lines = [f"Aucune différence n'est montrée entre {order[0]} et {order[1]}."]
    if general is not None:
        lines.append(f"Sur des tâches comme celles-ci, {better} devance de {general}.")
    if local is not None:
        lines.append(f"Sur {here}, {better} devance de {local}.")
    if general is None and local is None:
        lines.append(f"{better} devance de {_points(held, signed)} ; l'incertitude en est inconnue.")
    return lines


def _design(held: Compared, result: PairResult) -> list[str]:
    suite = result.pair.comparison
    if suite.detectable is None:
        return []
    line = (
        f"La plus petite vraie différence que {_corpora(held)} de cette dispersion trouvent dans 4 cas sur 5 est de "
        f"{100 * suite.detectable:.2f} points"
    )
    plan = result.plan
    if plan is None:
        return [line + " ; sans graines, on ne peut dire combien il en faudrait pour une différence voulue."]
    want = _plural(1, "point") if plan.wanted == 0.01 else f"{100 * plan.wanted:g} points"
    if plan.seeds is not None:
        return [f"{line} ; pour trouver {want}, {_plural(plan.seeds, 'graine')} par tâche suffiraient."]
    if plan.limit is None:
        return [f"{line} ; pour trouver {want} : un seul groupe de corpus, aucun nombre de graines ne donne un test."]
    if plan.limit > plan.wanted:
        why = (
            "plus de graines n'y suffisent pas : la dispersion entre tâches limite cette suite, plus de corpus aiderait"
        )
    else:
        why = "il faudrait trop de graines"
    return [f"{line} ; pour trouver {want}, {why} (limite : {100 * plan.limit:.2f} points)."]


def _many(held: Compared) -> list[str]:
    best = held.standings[0]
    level = [s.model for s in held.standings if s.rank == 1]
    if len(level) == len(held.standings):
        lines = [f"Aucune différence : les {len(level)} modèles ont la même moyenne."]
    else:
        lines = [f"Moyenne la plus haute : {' et '.join(level)} ({100 * best.score:.2f}, {_metric(held)})."]
    told = [r.pair for r in held.pairs if r.pair.different]
    if untested(held):
        lines.append(
            f"Aucune paire n'est testée pour des tâches comme celles-ci : il y a {_corpora(held)}, et un t sur les "
            "corpus en demande deux."
        )
        if len(held.pairs) <= MOST_SPOKEN:
            lines += [_statements(held, r)[0] for r in held.pairs if any(r.pair.comparison.task_differences)]
        return lines
    lines.append(
        f"{_plural(len(told), 'paire distinguée', 'paires distinguées')} sur {len(held.pairs)} pour des tâches comme "
        f"celles-ci (t sur {_corpora(held)}, correction de Holm, p au plus {held.alpha:g})."
    )
    if best.ties is not None:
        with_best = [s.model for s in held.standings[1:] if set(s.ties or "") & set(best.ties)]
        rest = len(held.standings) - 1 - len(with_best)
        if with_best:
            lines.append(f"Non distingués de {best.model} : {', '.join(with_best)}.")
        if rest:
            lines.append(f"Distingués de {best.model} : {_plural(rest, 'modèle')}.")
    if held.ranks:
        shown = ", ".join(f"{r.model} {ranks(r)}" for r in sorted(held.ranks, key=lambda r: r.rank))
        lines.append(f"Rangs que le bootstrap n'exclut pas à {_level(held)} : {shown}.")
    return lines


def _limits(held: Compared) -> list[str]:
    lines = []
    if held.published:
        names = held.published
        listed = (
            f"{names[0]} n'est connu" if len(names) == 1 else f"{', '.join(names[:-1])} et {names[-1]} ne sont connus"
        )
        lines.append(
            "On ne peut conclure : si d'autres graines ou un autre jeu de test changeraient le résultat sur une tâche "
            "donnée, combien de fois un essai d'un modèle bat un essai de l'autre, ni combien de graines il faudrait. "
            f"Raison : {listed} que par des moyennes imprimées, sans dispersion sur les graines ni prédictions."
        )
    if 0 < len(held.published) < len(held.models):
        lines.append(
            "On ne peut conclure : qu'une différence vienne des modèles. Raison : les scores imprimés ont été obtenus "
            "avec un autre code et peut-être d'autres découpages que les essais d'ici."
        )
    if len(held.clusters) == 1 and any(any(r.pair.comparison.task_differences) for r in held.pairs):
        one = "qu'une tâche" if len(held.tasks) == 1 else "que des tâches d'un même corpus"
        lines.append(f"On ne peut conclure : quoi que ce soit sur d'autres tâches. Raison : il n'y a {one}.")
    if held.policies and len(held.policies) < len(held.models):
        lines.append(
            "Les politiques de référence n'ont pas de graines : leur score vaut pour chaque graine à laquelle il est "
            "comparé."
        )
    if (
        not held.published
        and len(held.policies) < len(held.models)
        and any(r.pair.comparison.variance is None for r in held.pairs)
    ):
        lines.append(
            "On ne peut conclure : quoi que ce soit sur d'autres graines. Raison : une tâche n'a été lancée "
            "qu'avec une seule."
        )
    return lines
