"""The languages that Holdfast tells apart, and by whose rules the words of a document are stored.

A number is part of stored data (`search.term_counts`): it stays, and new languages take the next. 0 stands
for English and for a language that nobody knows: the rules of all documents before languages were told
apart.
"""

from dataclasses import dataclass

AUTO = "auto"
ENGLISH = "en"
ENGLISH_RULES = 0


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its number in stored data, its English name, its Snowball rules, its code for OCR."""

    code: str
    number: int
    name: str
    snowball: str | None
    ocr: str


_TABLE = """
en 0 English english eng
de 1 German german deu
fr 2 French french fra
es 3 Spanish spanish spa
it 4 Italian italian ita
pt 5 Portuguese portuguese por
nl 6 Dutch dutch nld
sv 7 Swedish swedish swe
da 8 Danish danish dan
no 9 Norwegian norwegian nor
fi 10 Finnish finnish fin
ru 11 Russian russian rus
uk 12 Ukrainian - ukr
bg 13 Bulgarian - bul
sr 14 Serbian serbian srp
pl 15 Polish polish pol
cs 16 Czech czech ces
ro 17 Romanian romanian ron
hu 18 Hungarian hungarian hun
el 19 Greek greek ell
tr 20 Turkish turkish tur
ar 21 Arabic arabic ara
fa 22 Persian persian fas
he 23 Hebrew - heb
hi 24 Hindi hindi hin
ne 25 Nepali nepali nep
ta 26 Tamil tamil tam
id 27 Indonesian indonesian ind
vi 28 Vietnamese - vie
ca 29 Catalan catalan cat
eu 30 Basque basque eus
ga 31 Irish irish gle
lt 32 Lithuanian lithuanian lit
et 33 Estonian estonian est
eo 34 Esperanto esperanto epo
hy 35 Armenian armenian hye
zh 36 Chinese - chi_sim
ja 37 Japanese - jpn
ko 38 Korean - kor
th 39 Thai - tha
lo 40 Lao - lao
km 41 Khmer - khm
my 42 Burmese - mya
"""


def _read(line: str) -> Language:
    code, number, name, snowball, ocr = line.split()
    return Language(code, int(number), name, None if snowball == "-" else snowball, ocr)


LANGUAGES = {each.code: each for each in map(_read, _TABLE.strip().splitlines())}
_BY_NUMBER = {each.number: each for each in LANGUAGES.values()}
_BY_OCR = {each.ocr: each for each in LANGUAGES.values()}


def rules(code: str | None) -> int:
    """The number by whose rules the words of a document in this language are stored."""
    language = LANGUAGES.get(code or ENGLISH)
    return ENGLISH_RULES if language is None else language.number


def by_number(number: int) -> Language:
    """The language of a number; English for one that a later release wrote."""
    return _BY_NUMBER.get(number, _BY_NUMBER[ENGLISH_RULES])


def of_ocr(languages: str) -> str | None:
    """The language in which a text is that was recognised in this one; None if there were several."""
    language = _BY_OCR.get(languages)
    return None if language is None else language.code


def name_of(code: str | None) -> str:
    """The English name of a language; its code if it has none here, "" for None."""
    language = LANGUAGES.get(code or "")
    return language.name if language is not None else code or ""
