"""Fact templates and lexicons of the needle task, written for it; nothing is taken from any corpus.

A template has two to four slots. A slot's lexicon is a list of phrases that fit every sentence of the
template, so that a changed slot changes the fact and never the grammar.
"""

from __future__ import annotations

import hashlib
import json

GENERATOR_VERSION = 1
"""Bumped by hand when the generator's code makes other examples of the same templates and lexicons."""


def _phrases(text: str) -> list[str]:
    """The phrases of a list that is written with commas."""
    return text.split(",")


_FR_DRUGS = _phrases(
    "de morphine,de tramadol,de paracétamol,d'amoxicilline,de céfazoline,de gentamicine,de furosémide,de digoxine,"
    "de bisoprolol,de ramipril,d'amiodarone,de vérapamil,d'héparine,de prednisone,de kétoprofène,de fentanyl,"
    "de midazolam,de vancomycine,de métronidazole,d'oméprazole,de lévétiracétam,de valproate"
)
_EN_DRUGS = _phrases(
    "morphine,tramadol,paracetamol,amoxicillin,cefazolin,gentamicin,furosemide,digoxin,bisoprolol,ramipril,"
    "amiodarone,verapamil,heparin,prednisone,ketoprofen,fentanyl,midazolam,vancomycin,metronidazole,omeprazole,"
    "levetiracetam,valproate"
)
_DOSES = [f"{n} mg" for n in (5, 10, 15, 20, 25, 40, 50, 75, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 750, 850)]
_SYSTOLIC = [str(n) for n in range(92, 192, 4)]
_DIASTOLIC = [str(n) for n in range(48, 116, 3)]
_PULSE = [str(n) for n in range(52, 132, 4)]
_AMOUNTS = [f"{n}" for n in range(12, 212, 8)]

TEMPLATES: dict[str, dict[str, tuple[str, dict[str, list[str]]]]] = {
    "fr": {
        "drug": (
            "Le patient a reçu {dose} {drug} {route} {moment}.",
            {
                "dose": _DOSES,
                "drug": _FR_DRUGS,
                "route": ["par voie orale", "par voie intraveineuse", "par voie sous-cutanée", "par voie rectale"],
                "moment": ["au réveil", "à midi", "en fin de soirée", "avant le transfert", "après le repas"],
            },
        ),
        "vital": (
            "La pression artérielle était mesurée à {systolic}/{diastolic} mmHg, le pouls à {pulse} par minute.",
            {"systolic": _SYSTOLIC, "diastolic": _DIASTOLIC, "pulse": _PULSE},
        ),
        "lab": (
            "Le dosage {analyte} est revenu à {amount} {unit}.",
            {
                "analyte": _phrases(
                    "de la créatinine,de la ferritine,de la bilirubine,de la lipase,de l'ammoniémie,du lactate,"
                    "du cortisol,de la troponine,de la procalcitonine,de l'haptoglobine,du fibrinogène,du calcium,"
                    "du magnésium,de la prolactine,de la thyroglobuline,de l'albumine"
                ),
                "amount": _AMOUNTS,
                "unit": ["mg/l", "µmol/l", "ng/ml", "UI/l", "g/l", "mmol/l"],
            },
        ),
        "diagnosis": (
            "Le diagnostic retenu est celui {disease} de stade {stage}, connue depuis {since}.",
            {
                "disease": _phrases(
                    "d'une cirrhose hépatique,d'une insuffisance rénale,d'une fibrose pulmonaire,d'une endométriose,"
                    "d'une sarcoïdose,d'une artériopathie,d'une gonarthrose,d'une rétinopathie,d'une néphropathie,"
                    "d'une hidradénite,d'une bronchopathie,d'une myélofibrose,d'une stéatose,d'une parodontite,"
                    "d'une ostéonécrose,d'une neuropathie,d'une cardiopathie,d'une alvéolite"
                ),
                "stage": ["I", "II", "III", "IV", "I bis", "II bis"],
                "since": [
                    "2009",
                    "2010",
                    "2011",
                    "2012",
                    "2013",
                    "2014",
                    "2015",
                    "2016",
                    "2017",
                    "2018",
                    "2019",
                    "2020",
                ],
            },
        ),
        "procedure": (
            "Une {procedure} a été pratiquée {day} par l'équipe {team}.",
            {
                "procedure": _phrases(
                    "appendicectomie,cholécystectomie,thyroïdectomie,néphrectomie,arthroscopie,coronarographie,"
                    "coloscopie,bronchoscopie,laparotomie,splénectomie,ponction lombaire,biopsie hépatique,"
                    "cystoscopie,trachéotomie,hystérectomie,embolisation,angioplastie,gastrectomie"
                ),
                "day": _phrases(
                    "le premier jour,le deuxième jour,le troisième jour,le quatrième jour,le cinquième jour,"
                    "le sixième jour,le huitième jour,le dixième jour,le douzième jour,le quinzième jour"
                ),
                "team": _phrases("de garde,de l'étage,du bloc nord,du bloc sud,mobile,de nuit,du secteur B,référente"),
            },
        ),
        "allergy": (
            "Une allergie {allergen} est signalée, avec {reaction} comme réaction en {year}.",
            {
                "allergen": _phrases(
                    "à la pénicilline,au latex,aux sulfamides,à l'iode,à l'aspirine,à la codéine,aux arachides,"
                    "aux crustacés,au kiwi,au nickel,au venin de guêpe,à la lidocaïne,au pollen de bouleau,à l'œuf,"
                    "au sésame,à la chlorhexidine"
                ),
                "reaction": _phrases(
                    "une urticaire,un œdème du visage,un bronchospasme,un malaise,un prurit,un eczéma,"
                    "des vomissements,une conjonctivite,un purpura,une dysphonie"
                ),
                "year": [
                    "1994",
                    "1996",
                    "1998",
                    "2001",
                    "2003",
                    "2005",
                    "2007",
                    "2008",
                    "2011",
                    "2014",
                    "2017",
                    "2021",
                ],
            },
        ),
        "duration": (
            "Le traitement {treatment} est prévu pour {number} {unit} au total.",
            {
                "treatment": _phrases(
                    "par antibiotiques,par corticoïdes,par anticoagulants,par chimiothérapie,par immunosuppresseurs,"
                    "par rayons,par kinésithérapie,par oxygène,par antiviraux,par antifongiques,par diurétiques,"
                    "par immunoglobulines,par perfusion,par inhalation,par compression,par dialyse"
                ),
                "number": _phrases(
                    "deux,trois,quatre,cinq,six,sept,huit,neuf,dix,onze,douze,treize,quatorze,quinze,seize,dix-huit,"
                    "vingt,vingt-deux,vingt-quatre,vingt-huit,trente"
                ),
                "unit": ["jours", "semaines", "mois", "séances", "cycles"],
            },
        ),
        "symptom": (
            "Le patient se plaint {symptom} depuis {number} {unit}.",
            {
                "symptom": _phrases(
                    "d'une dyspnée,d'une toux,d'un vertige,d'une dysphagie,d'une cervicalgie,d'une lombalgie,"
                    "d'un acouphène,d'une diplopie,d'une gonalgie,d'une épigastralgie,d'un hoquet,d'une pollakiurie,"
                    "d'une insomnie,d'une anorexie,d'une myalgie,d'une odynophagie,d'un tremblement,d'une otalgie"
                ),
                "number": _phrases(
                    "deux,trois,quatre,cinq,six,sept,huit,neuf,dix,onze,douze,treize,quatorze,quinze,seize,dix-huit,"
                    "vingt,vingt-deux,vingt-quatre,vingt-huit,trente"
                ),
                "unit": ["heures", "jours", "semaines", "mois", "ans"],
            },
        ),
    },
    "en": {
        "drug": (
            "The patient was given {dose} of {drug} {route} {moment}.",
            {
                "dose": _DOSES,
                "drug": _EN_DRUGS,
                "route": ["by mouth", "intravenously", "subcutaneously", "rectally"],
                "moment": ["on waking", "at noon", "late in the evening", "before transfer", "after the meal"],
            },
        ),
        "vital": (
            "Blood pressure was taken at {systolic}/{diastolic} mmHg, with a pulse of {pulse} per minute.",
            {"systolic": _SYSTOLIC, "diastolic": _DIASTOLIC, "pulse": _PULSE},
        ),
        "lab": (
            "The {analyte} level came back at {amount} {unit}.",
            {
                "analyte": _phrases(
                    "creatinine,ferritin,bilirubin,lipase,ammonia,lactate,cortisol,troponin,procalcitonin,haptoglobin,"
                    "fibrinogen,calcium,magnesium,prolactin,thyroglobulin,albumin"
                ),
                "amount": _AMOUNTS,
                "unit": ["mg/l", "µmol/l", "ng/ml", "IU/l", "g/l", "mmol/l"],
            },
        ),
        "diagnosis": (
            "The final diagnosis is {disease}, stage {stage}, known since {since}.",
            {
                "disease": _phrases(
                    "liver cirrhosis,renal failure,pulmonary fibrosis,endometriosis,sarcoidosis,arteriopathy,"
                    "knee arthrosis,retinopathy,nephropathy,hidradenitis,bronchial disease,myelofibrosis,steatosis,"
                    "periodontitis,osteonecrosis,neuropathy,cardiomyopathy,alveolitis"
                ),
                "stage": ["I", "II", "III", "IV", "IA", "IIA"],
                "since": [
                    "2009",
                    "2010",
                    "2011",
                    "2012",
                    "2013",
                    "2014",
                    "2015",
                    "2016",
                    "2017",
                    "2018",
                    "2019",
                    "2020",
                ],
            },
        ),
        "procedure": (
            "One {procedure} was carried out on the {day} day by the {team} team.",
            {
                "procedure": _phrases(
                    "appendectomy,cholecystectomy,thyroidectomy,nephrectomy,arthroscopy,coronary angiogram,"
                    "colonoscopy,bronchoscopy,laparotomy,splenectomy,lumbar puncture,liver biopsy,cystoscopy,"
                    "tracheotomy,hysterectomy,embolisation,angioplasty,gastrectomy"
                ),
                "day": _phrases("first,second,third,fourth,fifth,sixth,eighth,tenth,twelfth,fifteenth"),
                "team": _phrases("on-call,ward,north theatre,south theatre,mobile,night,second floor,referring"),
            },
        ),
        "allergy": (
            "An allergy to {allergen} is reported, with {reaction} as the reaction in {year}.",
            {
                "allergen": _phrases(
                    "penicillin,latex,sulfonamides,iodine,aspirin,codeine,peanuts,shellfish,kiwi,nickel,wasp venom,"
                    "lidocaine,birch pollen,egg,sesame,chlorhexidine"
                ),
                "reaction": _phrases(
                    "urticaria,facial oedema,bronchospasm,fainting,itching,eczema,vomiting,conjunctivitis,purpura,"
                    "hoarseness"
                ),
                "year": [
                    "1994",
                    "1996",
                    "1998",
                    "2001",
                    "2003",
                    "2005",
                    "2007",
                    "2008",
                    "2011",
                    "2014",
                    "2017",
                    "2021",
                ],
            },
        ),
        "duration": (
            "Treatment with {treatment} is planned for {number} {unit} in all.",
            {
                "treatment": _phrases(
                    "antibiotics,steroids,anticoagulants,chemotherapy,immunosuppressants,radiotherapy,physiotherapy,"
                    "oxygen,antivirals,antifungals,diuretics,immunoglobulins,infusions,inhalations,compression,dialysis"
                ),
                "number": _phrases(
                    "two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen,fourteen,fifteen,sixteen,"
                    "eighteen,twenty,twenty-two,twenty-four,twenty-eight,thirty"
                ),
                "unit": ["days", "weeks", "months", "sessions", "cycles"],
            },
        ),
        "symptom": (
            "The patient complains of {symptom} lasting for {number} {unit}.",
            {
                "symptom": _phrases(
                    "dyspnoea,cough,vertigo,dysphagia,neck pain,back pain,tinnitus,double vision,knee pain,"
                    "epigastric pain,hiccups,urinary frequency,insomnia,loss of appetite,muscle pain,painful "
                    "swallowing,tremor,earache"
                ),
                "number": _phrases(
                    "two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen,fourteen,fifteen,sixteen,"
                    "eighteen,twenty,twenty-two,twenty-four,twenty-eight,thirty"
                ),
                "unit": ["hours", "days", "weeks", "months", "years"],
            },
        ),
    },
}
"""Language to template name to (sentence, slot to lexicon)."""


def fingerprint(language: str) -> str:
    """``version-hash`` of a language's templates and lexicons: any change of either gives another one."""
    text = json.dumps(TEMPLATES[language], sort_keys=True, ensure_ascii=False)
    return f"{GENERATOR_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
