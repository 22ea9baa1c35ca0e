"""Small numbers spelled as words: `two`, `zwei`. Compound numbers and ordinals are not read.

A language in which words of small numbers are parts of others, as in Turkish `on iki` (12, where
`on` is 10) and in Yoruba, cannot be added.
"""

import re
from collections import Counter

WORDS: dict[str, dict[str, str]] = {
    language: {
        word: value
        for value, words in zip(
            ("2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"), row.split(), strict=True
        )
        for word in words.split("/")
    }
    for language, row in {
        "en": "two/both/couple/pair three four five six seven eight nine ten eleven twelve",
        "de": "zwei/beide/beiden/paar/zweier drei/dreier vier fünf sechs sieben acht neun zehn "
        "elf zwölf",
        "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
        "es": "dos/ambos/ambas tres cuatro cinco seis siete ocho nueve diez once doce",
        "it": "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "nl": "twee/beide drie vier vijf zes zeven acht negen tien elf twaalf",
        "pt": "dois/duas/ambos/ambas três quatro cinco seis sete oito nove dez onze doze",
        "ro": "doi/două/ambii/ambele trei patru cinci șase/şase șapte/şapte opt nouă zece "
        "unsprezece doisprezece/douăsprezece",
        "sv": "två/båda tre fyra fem sex sju åtta nio tio elva tolv",
        "da": "to/begge tre fire fem seks syv otte ni ti elleve tolv",
        **dict.fromkeys(("nb", "no"), "to/begge tre fire fem seks sju/syv åtte ni ti elleve tolv"),
        "nn": "to/begge tre fire fem seks sju åtte ni ti elleve tolv",
        "fi": "kaksi/kahden/kahta/molemmat kolme/kolmen/kolmea neljä/neljän/neljää "
        "viisi/viiden/viittä kuusi/kuuden/kuutta seitsemän/seitsemää kahdeksan/kahdeksaa "
        "yhdeksän/yhdeksää kymmenen/kymmentä yksitoista kaksitoista",
        "pl": "dwa/dwie/dwaj/dwóch/dwóm/dwoma/dwiema/dwoje/oba/obie/obaj "
        "trzy/trzej/trzech/trzem/trzema/troje cztery/czterej/czterech/czterem/czterema "
        "pięć/pięciu sześć/sześciu siedem/siedmiu osiem/ośmiu dziewięć/dziewięciu "
        "dziesięć/dziesięciu jedenaście/jedenastu dwanaście/dwunastu",
        "cs": "dva/dvě/dvou/dvěma/oba/obě tři/tří/třem/třemi čtyři/čtyř/čtyřem/čtyřmi pět/pěti "
        "šest/šesti sedm/sedmi osm/osmi devět/devíti deset/deseti jedenáct/jedenácti "
        "dvanáct/dvanácti",
        "ru": "два/две/двух/двум/двумя/двое/оба/обе/обоих/обеих три/трёх/трех/трём/трем/тремя/трое "
        "четыре/четырёх/четырех/четырьмя пять/пяти/пятью шесть/шести/шестью семь/семи "
        "восемь/восьми девять/девяти десять/десяти одиннадцать/одиннадцати двенадцать/двенадцати",
        "uk": "два/дві/двох/двом/двома/обидва/обидві три/трьох/трьом/трьома "
        "чотири/чотирьох/чотирьом/чотирма п’ять/п'ять шість/шести сім/семи вісім/восьми "
        "дев’ять/дев'ять десять/десяти одинадцять/одинадцяти дванадцять/дванадцяти",
        "el": "δύο/δυο τρεις/τρία/τριών τέσσερις/τέσσερα/τεσσάρων πέντε έξι επτά/εφτά οκτώ/οχτώ "
        "εννέα/εννιά δέκα έντεκα δώδεκα",
    }.items()
}
"""Number words by language: word → digits."""

# Left out of `WORDS`: most of these are also articles, and so occur in most sentences.
_ONE = {
    "en": "one",
    "de": "ein eine einem einen einer eines eins",
    "fr": "un une",
    "es": "un una uno",
    "it": "un una uno",
    "nl": "een één",
    "pt": "um uma",
    "ro": "un o una unul",
    "sv": "en ett",
    "da": "en et",
    "nb": "en ei et ett én",
    "no": "en ei et ett én",
    "nn": "ein ei eit eitt",
    "fi": "yksi yhden yhtä",
    "pl": "jeden jedna jedno jednego jednej",
    "cs": "jeden jedna jedno jednoho jedné",
    "ru": "один одна одно одного одной",
    "uk": "один одна одне одного однієї",
    "el": "ένας μία μια ένα ενός μιας",
}
_WORD = re.compile(r"[^\W\d_]+")


def spelled_numbers(text: str, lang: str) -> Counter[str]:
    """How often a text may spell each small number as a word.

    Args:
        text: of any case.
        lang: code of its language; of one without number words here, nothing is counted.

    Returns:
        Digits → count. Indefinite articles count as 1.
    """
    language = lang[:2]
    if language not in WORDS:
        return Counter()
    known = WORDS[language] | dict.fromkeys(_ONE[language].split(), "1")
    return Counter(known[word] for word in _WORD.findall(text.lower()) if word in known)
