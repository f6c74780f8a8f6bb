"""Synthetic clinical notes to hide needles in, written here; used where no corpus of real text is at hand.

No sentence has the form of a fact template, so a note can never answer a query by chance.
"""

from __future__ import annotations

import random
import re

SECTIONS: dict[str, list[tuple[str, list[str]]]] = {
    "fr": [
        (
            "Motif d'admission",
            [
                "{Person} de {age} ans ; avis demandé par {source} pour {reason}.",
                "Il s'agit d'un séjour programmé pour {reason} chez {person} de {age} ans.",
                "L'entourage rapporte {reason}, apparu de façon {pace}.",
            ],
        ),
        (
            "Mode de vie",
            [
                "Vit {home}, avec {help} une fois par semaine.",
                "Travaille dans {job} et se déplace {mobility}.",
                "Le sommeil est décrit comme {sleep} et l'appétit comme {sleep}.",
                "Aucun voyage récent, sinon un séjour {place} pendant l'été.",
            ],
        ),
        (
            "Examen",
            [
                "L'auscultation {organ} est {finding}.",
                "À la palpation, {organ2} paraît {finding}.",
                "L'état général est jugé {finding} par {staff}.",
                "La marche est {gait}, les réflexes sont {reflex}.",
                "Les téguments sont {skin} et les extrémités {skin2}.",
            ],
        ),
        (
            "Examens complémentaires",
            [
                "L'imagerie {region} ne montre pas de {lesion}.",
                "Le compte rendu de {exam} conclut à un aspect {finding}.",
                "Une relecture de {exam} a été demandée à {staff}.",
                "Le prélèvement a été envoyé {place2}, sans résultat à ce jour.",
                "La comparaison avec {exam} antérieure reste {finding}.",
            ],
        ),
        (
            "Évolution",
            [
                "L'évolution est {pace}, sans {event} notable.",
                "La famille a été reçue par {staff} et dit avoir compris la suite.",
                "{Staff} propose de reprendre {activity} dès que possible.",
                "La nuit a été {sleep}, la surveillance {finding}.",
                "On note {event} isolé, sans conséquence.",
            ],
        ),
        (
            "Suite",
            [
                "Un rendez-vous avec {staff} est pris {when}.",
                "Le courrier est transmis à {source} et au dossier {place2}.",
                "Le retour {home2} est organisé avec {help}.",
                "Il est conseillé de reprendre {activity} et d'éviter {avoid}.",
            ],
        ),
    ],
    "en": [
        (
            "Reason for admission",
            [
                "{Person} aged {age}, referred by {source} because of {reason}.",
                "This is a planned stay for {reason} in {person} aged {age}.",
                "Relatives report {reason}, which came on in a {pace} way.",
            ],
        ),
        (
            "Living conditions",
            [
                "Lives {home}, with {help} once a week.",
                "Works in {job} and gets about {mobility}.",
                "Sleep is described as {sleep} and appetite as {sleep}.",
                "No recent travel apart from a stay {place} during the summer.",
            ],
        ),
        (
            "Examination",
            [
                "Auscultation of the {organ} is {finding}.",
                "On palpation the {organ2} seems {finding}.",
                "The general state is judged {finding} by {staff}.",
                "Gait is {gait} and reflexes are {reflex}.",
                "The skin is {skin} and the extremities are {skin2}.",
            ],
        ),
        (
            "Further tests",
            [
                "Imaging of the {region} shows no {lesion}.",
                "The report of {exam} concludes that the picture is {finding}.",
                "A second reading of {exam} was requested from {staff}.",
                "The sample was sent {place2}, without an answer so far.",
                "Comparison with {exam} from before remains {finding}.",
            ],
        ),
        (
            "Course",
            [
                "The course is {pace}, without any notable {event}.",
                "The family was seen by {staff} and says it has understood the next steps.",
                "{Staff} suggests taking up {activity} again as soon as possible.",
                "The night was {sleep} and monitoring {finding}.",
                "There was one isolated {event}, of no consequence.",
            ],
        ),
        (
            "Next steps",
            [
                "An appointment with {staff} is made {when}.",
                "The letter goes to {source} and to the file {place2}.",
                "Return {home2} is arranged with {help}.",
                "The advice is to resume {activity} and to avoid {avoid}.",
            ],
        ),
    ],
}

_WORDS: dict[str, dict[str, str]] = {
    "fr": {
        "person": "une femme,un homme,une patiente retraitée,un agriculteur,une enseignante,un artisan,une étudiante",
        "source": "le médecin traitant,la maison médicale,un confrère de ville,le service voisin,le centre de santé",
        "reason": "une fatigue inhabituelle,une gêne thoracique,des chutes répétées,un bilan avant intervention,"
        "une perte de poids,une faiblesse des jambes,une fièvre inexpliquée,une confusion passagère",
        "pace": "progressive,brutale,lente,favorable,fluctuante,rassurante,discrète",
        "home": "seul en appartement,en maison de plain-pied,chez sa fille,en foyer,à la campagne,au troisième étage",
        "help": "une aide ménagère,une infirmière libérale,un voisin,un proche,une auxiliaire de vie",
        "job": "une boulangerie,l'administration,le bâtiment,une école,les transports,un atelier de couture,la forêt",
        "mobility": "à pied,à vélo,en bus,avec une canne,en voiture,avec un déambulateur",
        "sleep": "correct,agité,variable,calme,médiocre,réparateur",
        "place": "à la montagne,au bord de la mer,en Bretagne,chez des amis,dans le Sud",
        "organ": "cardiaque,pulmonaire,abdominale,cervicale",
        "organ2": "le foie,la rate,l'abdomen,le genou,la thyroïde,le mollet,l'épaule",
        "finding": "sans particularité,stable,discrètement modifié,conforme à l'âge,difficile à interpréter,"
        "satisfaisant",
        "staff": "l'interne,le chef de service,la cadre de santé,le radiologue,la diététicienne,le kinésithérapeute,"
        "l'assistante sociale,le psychologue",
        "gait": "prudente,assurée,lente,possible avec appui,hésitante",
        "reflex": "présents,vifs,symétriques,faibles,difficiles à obtenir",
        "skin": "secs,normaux,pâles,rosés,fragiles",
        "skin2": "chaudes,froides,bien colorées,sans marbrures",
        "region": "thoracique,abdominale,cérébrale,pelvienne,rachidienne,du genou droit",
        "lesion": "lésion évolutive,épanchement,fracture visible,masse suspecte,anomalie récente",
        "exam": "l'échographie,la radiographie,l'électrocardiogramme,la scintigraphie,la lame,l'épreuve d'effort",
        "place2": "au laboratoire central,en anatomopathologie,au centre régional,aux archives,au secrétariat",
        "event": "incident,épisode fébrile,malentendu,oubli de repas,épisode de somnolence,désaccord",
        "activity": "la marche,le jardinage,une alimentation variée,la lecture,la rééducation,le travail à mi-temps",
        "when": "à la rentrée,dans la quinzaine,le mois prochain,après les fêtes,au printemps",
        "home2": "à domicile,en convalescence,dans la famille,au foyer",
        "avoid": "le port de charges,le tabac,les efforts brusques,le soleil,l'alcool,les longs trajets",
    },
    "en": {
        "person": "a woman,a man,a retired clerk,a farmer,a teacher,a craftsman,a student",
        "source": "the family doctor,the local practice,a colleague in town,the next ward,the health centre",
        "reason": "unusual tiredness,chest discomfort,repeated falls,a work-up before surgery,weight loss,"
        "weak legs,unexplained fever,passing confusion",
        "pace": "gradual,sudden,slow,favourable,fluctuating,reassuring,discreet",
        "home": "alone in a flat,in a bungalow,with a daughter,in sheltered housing,in the country,on the third floor",
        "help": "a home help,a visiting nurse,a neighbour,a relative,a carer",
        "job": "a bakery,the civil service,building,a school,transport,a sewing workshop,forestry",
        "mobility": "on foot,by bicycle,by bus,with a stick,by car,with a walking frame",
        "sleep": "fair,restless,variable,calm,poor,refreshing",
        "place": "in the mountains,at the seaside,in Wales,with friends,in the south",
        "organ": "heart,lungs,abdomen,neck",
        "organ2": "liver,spleen,abdomen,knee,thyroid,calf,shoulder",
        "finding": "unremarkable,stable,slightly changed,normal for age,hard to interpret,satisfactory",
        "staff": "the house officer,the consultant,the ward sister,the radiologist,the dietitian,the physiotherapist,"
        "the social worker,the psychologist",
        "gait": "cautious,steady,slow,possible with support,hesitant",
        "reflex": "present,brisk,symmetrical,weak,hard to obtain",
        "skin": "dry,normal,pale,pink,fragile",
        "skin2": "warm,cold,well coloured,without mottling",
        "region": "chest,abdomen,brain,pelvis,spine,right knee",
        "lesion": "growing lesion,effusion,visible fracture,suspect mass,recent anomaly",
        "exam": "the ultrasound,the radiograph,the electrocardiogram,the bone scan,the slide,the exercise test",
        "place2": "to the central laboratory,to pathology,to the regional centre,to the archive,to the office",
        "event": "incident,feverish episode,misunderstanding,missed meal,drowsy spell,disagreement",
        "activity": "walking,gardening,a varied diet,reading,rehabilitation,part-time work",
        "when": "after the holidays,within a fortnight,next month,in the new year,in spring",
        "home2": "to the house,to a rest home,to the family,to the hostel",
        "avoid": "heavy loads,tobacco,sudden effort,the sun,alcohol,long journeys",
    },
}


def synthetic_note(language: str, rng: random.Random) -> str:
    """One note of some 100 to 200 words, sections as paragraphs."""
    paragraphs = []
    for title, frames in SECTIONS[language]:
        chosen = rng.sample(frames, rng.randint(2, len(frames)))
        paragraphs.append(f"{title} : " + " ".join(_filled(frame, language, rng) for frame in chosen))
    return "\n".join(paragraphs)


_SLOT = re.compile(r"{(\w+)}")
_OPTIONS = {
    language: {name: options.split(",") for name, options in words.items()} for language, words in _WORDS.items()
}


def _filled(frame: str, language: str, rng: random.Random) -> str:
    def draw(slot: re.Match[str]) -> str:
        name = slot[1]
        if name == "age":
            return str(rng.randint(19, 94))
        value = rng.choice(_OPTIONS[language][name.lower()])
        return value if name.islower() else value[0].upper() + value[1:]

    return _SLOT.sub(draw, frame)
