"""Whether a text is likely in another language than English, which the embedded model does not read.

A warning on an English text is worse than none on a foreign one, so the test wants evidence of the other language:
letters of another script, or several different function words of one language and hardly any of English. Lists,
code and names have few function words of any language, and so pass. A short text must have more of them and none of
English; a text of up to four words is never judged.
"""

import re
from collections import Counter

READ = 4000  # characters at the beginning that are looked at
LETTERS = 25  # of another script that a text has at least, and more of them than of Latin ones
LEAST, SHORT = 5, 12  # words: a text in Latin letters has at least so many, and is short below
DIFFERENT = 3  # function words of the other language that occur in it, two of them longer than two letters
SHARE = 0.15  # of its words that are such words
SHARE_OF_SHORT = 0.3  # of a short text, in which two different ones longer than two letters are enough, or three
TIMES = 4  # as many of them as of English ones, at least

_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Greek to Georgian, Ethiopic to Mongolian, Greek with accents, kana, CJK, Hangul, and forms of Hebrew and Arabic. Not
# the blocks of phonetic, small and mathematical letters, in which English is written for fun.
_OTHER = re.compile(
    "[\u0370-\u10ff\u1200-\u18af\u1f00-\u1fff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\ufb1d-\ufdff"
    "\ufe70-\ufefc]"
)
# Between blanks, with the signs of a sentence around it at most: not the en of en.wikipedia.org, not se["le"].
_WORD = re.compile(r"(?<!\S)[(\"'«“„¿¡_*-]*([^\W\d_]+(?:['-][^\W\d_]+)*)[.,;:!?…)\"'»“”_*-]*(?!\S)")

# Without words of other languages, such as a, die, for, have, in, is, me, no, of, on, so, to, was and we.
ENGLISH = frozenset(
    word
    for line in (
        "the and that this with has from you your they are were been which would there their what when who how it its",
        "be my if than then these those his she our can could should about into because please not but by i'm don't",
        "it's can't isn't i've you're we're didn't doesn't won't out up just like get got after before where why while",
        "more most other only very much many such each both here now any some did does us them him need want know",
        "think again every never always",
    )
    for word in line.split()
)
# Function words by language, without those that are English words as well, or parts of names, such as de, la and van.
FUNCTION_WORDS = {
    "Spanish": "que los las una por para con pero como más está están muy porque cuando también hay esta este"
    " esto ese eso sobre entre hasta desde donde todo todos ya fue ser tiene tengo puede puedo quiero usted ustedes"
    " ellos nosotros nada algo aquí ahora hace sido había mis su sus les se nos en un el así nadie gracias",
    "French": "les une que qui pas dans avec sont mais nous vous ils elles cette ces ses leur leurs aux été être"
    " avoir avait très bien comme tous sans chez donc alors aussi parce quand où je il elle mon mes votre vos notre"
    " ne et au ce c'est j'ai n'est d'un d'une qu'il encore depuis merci un est",
    "German": "und ist nicht das dem ein eine einen einem einer auch auf mit für zu sich sie ich wir ihr uns mir"
    " mich dich dass wenn aber oder wie noch nur schon sehr mehr nach bei aus durch über werden wird wurde wurden"
    " haben habe hatte sind sein seine kann können muss diese dieser dieses hier bitte weil wann warum immer der den",
    "Italian": "che non una per con sono della delle dei degli nel nella nelle alla alle dal dalla questo questa"
    " questi più anche quando perché dove stato stata essere ha hanno abbiamo gli il molto tutto tutti ancora sempre"
    " già poi così se loro suo sua mio mia un ho mi",
    "Portuguese": "que não uma para com por mais como mas foi são está estão dos das nos nas pelo pela ele ela eles"
    " elas você vocês isso isto este esta esse essa também muito quando onde porque já só ainda até sem sobre ser"
    " ter tem tinha seu sua meu minha nós eu os ao aos um em",
    "Dutch": "het een niet dat voor met zijn aan ook maar bij naar uit nog wel wordt worden werd hebben heeft heb ik"
    " jij hij zij wij jullie mijn jouw onze deze dit als dan te er geen kan moet meer veel door tot waar hoe omdat"
    " tussen mij waarom zou niemand steeds dezelfde en om de",
    "Swedish": "och att det som är inte jag du han hon ni ett på för med av från har hade ska vill mycket när där"
    " här också bara eller än efter sig mig eftersom vi en om den de",
    "Danish and Norwegian": "og det som er ikke jeg du han hun et på med av af til fra har havde hadde skal vil"
    " meget mye når også eller efter etter mig meg gerne fordi ingen stadig ennå vi en om den de der",
    "Finnish": "ja ei että se hän minä sinä oli ovat olla mutta kun niin myös vain joka mitä tämä nämä kuin sitä jos"
    " tai sen ole minun sinun meidän heidän kanssa ennen jälkeen minulle koska eikä vielä kukaan",
    "Polish": "nie się jest na że jak od za przez dla przy są był była było być tego tej które który która czy tylko"
    " już też może gdy po ze oraz tak mnie ich jego jej mam proszę jeszcze ponieważ nikt",
    "Czech and Slovak": "je se na že jak ale od za při jsou byl byla bylo být který která které jen už také může"
    " když po ze nebo tak jsem jste není mám prosím som nie pre sú ještě mi nikdo",
    "Turkish": "ve bir bu için ile çok ama daha gibi olan olarak değil yok ne biz siz şu kadar sonra önce neden ki"
    " hiç benim lütfen hâlâ kimse",
    "Indonesian and Malay": "yang dan di dengan untuk tidak ini itu dari pada adalah saya kami kita mereka anda ke"
    " dalam akan juga sudah bisa atau karena tetapi telah oleh ada boleh sangat lebih belum",
    "Vietnamese": "và của là không có được cho tôi này những một các trong với người đã khi để như về từ ra bạn"
    " chúng rất nhưng cũng đó vẫn chưa",
    "Romanian": "și este nu că pentru din cu pe care sunt mai dar sau ca prin după foarte dacă această acest acesta"
    " fost aveți noi voi mea meu să se ale încă nimeni",
    "Hungarian": "és az hogy nem egy ez azt van volt meg csak már még mint vagy ha kell lehet nagyon minden mert"
    " amikor ami aki nekem én ők vannak amit senki",
}
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES.setdefault(_word, []).append(_language)


def likely_not_english(text: str) -> bool:
    """Whether a text is likely in another language than English; False where that cannot be told."""
    start = text[:READ].replace("\u2019", "'")
    others = len(_OTHER.findall(start))
    if others >= LETTERS and others > len(_LATIN.findall(start)):
        return True
    words = _WORD.findall(start)
    if len(words) < LEAST:
        return False
    short = len(words) < SHORT
    # In small letters as they stand: a capital is more often a name, as in Los Angeles or Das Kapital. A short text
    # has no word to spare, not even the first one.
    known = [words[0].lower(), *words[1:]] if short else words
    found: dict[str, Counter[str]] = {}
    for word in known:
        for language in _LANGUAGES.get(word, ()):
            found.setdefault(language, Counter())[word] += 1
    if not found:
        return False
    most = max(found.values(), key=Counter.total)
    long = sum(len(word) > 2 for word in most)
    english = sum(word.lower() in ENGLISH for word in words)
    if short:
        return not english and max(long, len(most) - 1) >= 2 and most.total() >= SHARE_OF_SHORT * len(words)
    if len(most) < DIFFERENT or long < DIFFERENT - 1:
        return False
    return most.total() >= max(SHARE * len(words), TIMES * english)
