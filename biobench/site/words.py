"""The words of the static site in English and French, those that it shares with the app among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from biobench.comparison.standing import WORDS as STANDING_WORDS
from biobench.report.languages.labels import LABELS

_WORDS: dict[str, tuple[str, str]] = {
    "skip": ("To the content", "Aller au contenu"),
    "this_site": ("Pages", "Pages"),
    "other_languages": ("Language", "Langue"),
    "tasks": ("Tasks", "Tâches"),
    "comparisons": ("Comparisons", "Comparaisons"),
    "more": ("Needle maps and published experiments", "Cartes de l'aiguille et expériences publiées"),
    "archives": ("Archives", "Archives"),
    "whole_day": ("all pages of this day (zip)", "toutes les pages de ce jour (zip)"),
    "made_on": ("Made on {} with BioBench {}.", "Produit le {} avec BioBench {}."),
    "filter": ("Models whose name contains", "Modèles dont le nom contient"),
    "whose": ("Source", "Source"),
    "any_source": ("all sources", "toutes les sources"),
    "shown": ("models shown", "modèles affichés"),
    "whole_suite": (
        "Filters hide lines; means and ranks are those of all models. For means over tasks of one's choice: "
        "biobench leaderboard.",
        "Les filtres masquent des lignes ; moyennes et rangs restent ceux de tous les modèles. Pour des moyennes sur "
        "des tâches choisies : biobench leaderboard.",
    ),
    "failed_sign": (
        "✗: so many runs failed; the mean includes them, ± does not.",
        "✗ : autant d'exécutions ont échoué ; la moyenne les compte, ± non.",
    ),
    "field": ("among the others", "parmi les autres"),
    "field_help": (
        "Among the others: from the lowest to the highest score; grey, models under the same conditions (of more than "
        "12 the middle half); bar, this one; triangle, the floor.",
        "Parmi les autres : du score le plus bas au plus haut ; gris, modèles dans les mêmes conditions (au-delà de "
        "12, la moitié centrale) ; barre, celui-ci ; triangle, le plancher.",
    ),
    "first_lines": ("The first {} of {}.", "Les {} premiers sur {}."),
    "interval": ("95% interval", "intervalle à 95 %"),
    "corpus_citation": ("citation of the corpus", "citation du corpus"),
    "against": ("{} against {}", "{} contre {}"),
    "no_results": ("No results yet.", "Pas encore de résultats."),
}


def words(language: str) -> Mapping[str, str]:
    """Key -> text in `en` or `fr`."""
    index = 1 if language == "fr" else 0
    return {key: both[index] for key, both in (LABELS | STANDING_WORDS | _WORDS).items()}


ENGLISH, FRENCH = words("en"), words("fr")


def in_both(text: Callable[[Mapping[str, str]], str]) -> tuple[str, str]:
    """What the words of each language make: English and French."""
    return text(ENGLISH), text(FRENCH)
