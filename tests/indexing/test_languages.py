# ruff: noqa: RUF001 - texts in many scripts are what these tests are about
"""Each document is searched in its own language, whatever other languages its collection has."""

import pytest

from holdfast.core import filters
from holdfast.search import statistics
from holdfast.store.base.schema import word_counts
from tests.indexing.install import WISH

# Language, text, a query with other forms of its words, a query about something else.
STORIES = [
    (
        "en",
        "The engineers repaired three bridges over the river before the winter came to the valley.",
        "repairing a bridge",
        "violin concert",
    ),
    (
        "de",
        "Die alten Häuser am Fluss wurden von den Nachbarn mit großer Mühe und ohne Hilfe renoviert.",
        "Haus renovieren",
        "Geige und Konzert",
    ),
    (
        "fr",
        "Les chevaux sauvages sont dans les montagnes pendant que les bergers gardent leurs troupeaux.",
        "cheval berger",
        "le violon des musiciens",
    ),
    (
        "es",
        "Las canciones de los pescadores se escuchaban en las playas cuando llegaban los barcos del norte.",
        "una canción del pescador en el barco",
        "los tornillos de acero",
    ),
    (
        "it",
        "I bambini della scuola leggono i libri che gli insegnanti hanno portato dalla biblioteca.",
        "il bambino con il libro",
        "dell'acciaio inossidabile",
    ),
    (
        "pt",
        "As janelas da casa estavam abertas e os vizinhos conversavam sobre as festas que não foram feitas.",
        "janela aberta do vizinho",
        "parafusos de aço",
    ),
    (
        "nl",
        "De oude huizen langs het kanaal worden door de bewoners van de stad met zorg onderhouden.",
        "een huis van de bewoner",
        "de schroef en het staal",
    ),
    (
        "sv",
        "Bilarna stod på gatorna och väntade på att snön skulle smälta så att de kunde köra till skogen.",
        "en bil på gatan",
        "skruvar av stål",
    ),
    (
        "ru",
        "Студенты читали книги в библиотеках и обсуждали их с преподавателями после занятий.",
        "студент с книгой в библиотеке",
        "стальной болт",
    ),
    (
        "ar",
        "المعلمون في المدرسة يقرؤون مع الطلاب من هذه الصحيفة كل صباح قبل أن يبدأ الدرس.",
        "معلمين مدرسة",
        "البراغي الفولاذية",
    ),
    (
        "hi",
        "लड़कियों ने अपनी किताबें मेज पर रखीं और शिक्षक के साथ कहानी पढ़ने के लिए बैठ गईं।",
        "लड़की की किताब",
        "इस्पात का पेंच",
    ),
    ("zh", "研究人员在北京大学的图书馆里发现了一份古代地图。", "北京的地图", "小提琴音乐会"),
    ("ja", "昨日の夜、黒い猫が台所で魚を食べました。", "猫が魚を食べる", "電車が遅れました"),
    ("ko", "학생들은 도서관에서 오래된 지도를 발견했습니다.", "도서관의 지도", "기차가 늦었습니다"),
    (
        "th",
        "นักวิจัยพบแผนที่โบราณในห้องสมุดของมหาวิทยาลัย",
        "แผนที่ในห้องสมุด",
        "รถไฟมาช้า",
    ),
]


@pytest.fixture(params=["by_index", "in_memory"])
def way(request, monkeypatch):
    """Collections are in memory; very large ones go by the full-text index. Both must say the same."""
    if request.param == "by_index":
        monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)


@pytest.mark.usefixtures("way")
def test_an_inflected_query_finds_its_document_among_fifteen_languages(install):
    """The language of each is told from its text; a query about something else finds nothing of it."""
    ids = {code: install.upload(text, f"{code}.txt").document.id for code, text, _, _ in STORIES}
    install.work()
    detected = {code: install.document(document).language for code, document in ids.items()}
    assert detected == {code: code for code in ids}
    for code, _text, query, other in STORIES:
        hits = install.find(query)
        assert hits, query
        assert hits[0].document_id == ids[code], query
        assert ids[code] not in [hit.document_id for hit in install.find(other)], other


def test_words_are_marked_where_they_stand(install):
    """In the language of the document; without spaces by characters, also inside another script."""
    install.upload("Die Häuser am Fluss sind alt und die Straßen vor den Häusern sind es auch.", "a.txt")
    install.upload("研究人员在北京大学的图书馆里发现了GPU性能测试的地图。", "b.txt")
    install.upload("เขาทำงานในห้องสมุดของมหาวิทยาลัยทุกวัน", "c.txt")
    install.work()

    def marked(words):
        (hit, *_) = install.find(words)
        return [hit.text[start:end] for start, end in hit.marks]

    assert marked("Haus") == ["Häuser", "Häusern"]
    assert marked("北京大学 gpu") == ["北京大学", "GPU"]
    assert marked("ทำงาน") == ["ทำงาน"]


def test_a_document_or_its_collection_may_say_its_language(install):
    """The document's word counts before the collection's; a filter finds it."""
    install.collections.make(WISH, "norden", options={"language": "sv"})
    short = install.indexed("Bilarna", to="norden")
    own = install.indexed("Häuser", to="norden", options={"language": "de"})
    assert (short.language, own.language) == ("sv", "de")
    assert [hit.document_id for hit in install.find("bil", where="norden")] == [short.id]
    assert [hit.document_id for hit in install.find("Haus", where="norden")] == [own.id]
    german = filters.parse({"eq": {"$language": "de"}})
    hits = install.searching.search("default", "norden", "bil haus", mode="keyword", only=german).hits
    assert [hit.document_id for hit in hits] == [own.id]


@pytest.mark.g4
def test_another_language_makes_the_words_again_and_pays_nothing(install):
    """The texts of the chunks are the same, so their embeddings are known."""
    document = install.indexed("Die Häuser am Fluss.", options={"language": "en"})
    assert install.find("Haus") == []
    paid = install.paid()
    install.documents.change(WISH, document.id, options={"language": "de"})
    install.work()
    again = install.document(document.id)
    assert (again.language, again.published_generation) == ("de", 2)
    assert [hit.document_id for hit in install.find("Haus")] == [document.id]
    assert install.paid() == paid


def test_a_title_is_searched_in_the_language_of_its_document(install):
    """Also after a search has seen the title before the language was known."""
    document = install.upload("Dieser Bericht ist für die Nachbarn und nicht für andere.", "Häuser.txt")
    assert install.find("Haus") == []
    install.work()
    assert [hit.document_id for hit in install.find("Haus")] == [document.document.id]


def test_what_was_indexed_before_stays_searchable(install):
    """Counts of an earlier release name no language: they are read by its rules."""
    document = install.indexed("Two bridges over the river.", options={"language": "en"})
    install.indexed("Die Häuser am Fluss sind alt.", options={"language": "de"})
    rows = install.db.read(lambda tx: tx.all(word_counts.select()))
    assert {row.terms[3] for row in rows} == {0, 1}
    assert [hit.document_id for hit in install.find("bridge")] == [document.id]


def test_all_parts_of_a_document_have_one_language(install):
    """A table of numbers between pages of prose is searched by the rules of the whole."""
    lines = "\n".join(f"Häuser,{number},Straßen und Brücken der Stadt sind alt" for number in range(40))
    document = install.indexed(f"was,zahl,wo\n{lines}", "orte.csv", options={"slice_rows": 10})
    assert document.language == "de"
    assert {hit.slice for hit in install.find("Haus", k=40)} == {1, 2, 3, 4, 5}
