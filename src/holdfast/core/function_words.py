# ruff: noqa: RUF001 - letters of many scripts are what this table is about
"""The commonest words of languages, which carry grammar and no subject.

They tell a text's language, and are not searched for in it. Spelled in lower case, with their accents.
"""

_WORDS = """
en: the of and to in is that for it was on are as with his they be at this have from or had by but what
en: some we can out other were all there when up your how said an each she which their will about would
en: been has who its
de: der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden
de: aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur
de: oder aber vor zur bis mehr durch man sein wurde sei ich wir ihr ihre kann wenn diese dieser dieses
de: unter gegen vom können schon
fr: de la le et les des en un une du dans est que pour qui par sur au plus pas ce il se ne avec sont son
fr: ou aux cette ces mais comme ont leur elle été être nous vous ils elles sa ses fait aussi entre deux
fr: très sans leurs même tout où à était peut dont je tu mon ma mes notre votre lui y
es: de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me
es: si sin sobre este ya entre cuando todo esta ser son dos también fue había era muy hasta desde está
es: mi porque qué sólo han yo hay puede todos así nos ni tiene él uno donde esto ese esa estos estas
es: ellos
it: di che e la il un a per in una è sono non si da con come le dei del della i al nel gli alla lo più
it: anche ma ha dal sul delle dalla nella ed o se questo questa ci suo sua loro essere stato stata
it: quando dove chi cui degli ai alle tra fra sulla ho hanno molto tutti tutto perché noi voi io lui lei
it: era mi ti
pt: de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem
pt: à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre era depois
pt: sem mesmo aos ter seus quem nas me esse eles estão você tinha foram essa num nem suas meu às minha
pt: têm numa pelos
nl: de het een en van ik te dat die in je is niet op aan met als voor zijn er maar om hem dan zou of wat
nl: mijn men dit zo door over ze zich bij ook tot uit naar heb hoe heeft hebben deze want nog zal u nu
nl: ge geen omdat iets worden toch al waren veel meer doen moet ben zonder kan hun dus alles onder ja
nl: werd wezen zelf tegen wordt
sv: och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan
sv: när under också efter eller nu där vid mot ut skulle hade ska än bli blir alla andra sin hon du
sv: mycket detta mellan genom dessa vad här utan varit över denna sina något
da: og i at det er en til af på for som med de den har der et ikke om han fra var men sig vi kan jeg
da: eller efter også blev skal blive hun ved mod ud havde så alle end når nu mere hvor dem meget hvad
da: sin andre blandt over under denne dette disse mellem uden noget nogle være været deres
no: og i det er en på som til for med at av de den har ikke et om han fra var men seg vi kan jeg eller
no: etter også ble skal bli hun ved mot ut hadde så alle enn når nå mer hvor dem mye hva sin andre over
no: under denne dette disse mellom uten noe noen være vært deres hvis blir opp bare selv
fi: ja on ei että se oli hän kun mutta niin tai joka myös ovat olla mukaan sen kuin jos vain sekä ole
fi: mitä nyt siitä voi minä he hänen tämä tämän jonka jotka ne olisi kuitenkin vielä sitä kanssa sillä
fi: noin mikä minun me te sinä tässä niitä koska eivät ollut kaikki
ru: и в не на я что он с а как это по но они к у все так его за был от же ее мы для вы бы из то из-за о
ru: было мне быть она или только есть были при до если когда чтобы уже даже этот эта эти этого нет где
ru: их ли еще во может тоже который которые которая со том после
uk: і в не на що з у до як це та за він але його для від так й вони є був була було були про або при щоб
uk: якщо також більше вже цього ці цей ця які який яка має може після між під тому ще ми ви її їх
bg: и в на за се от да с не по е че са като до към ще при той то а но или има това който която които си
bg: бе му така само още във със беше бяха може след през между тази този тези ние вие те им ги
sr: и у је да на се са за од су не а као би из што о али који која које то до или још при код сам смо
sr: сте није ће бити био била било више само када где овај ова ово њих њега
pl: i w na z do się nie to że jest o a jak po co ale za od tak dla jego przez czy ich był już być tylko
pl: ma przy które który która oraz jako może tego ze było była są będzie również pod bez jej między ten
pl: ta te ja my
cs: a v se na je že s z do o i jako za by ale k po pro jsou bylo byl která který které jeho tak co nebo
cs: jak od si být ve při až jsem má také jen není už ze před aby tím jejich pod než bez byla byly tento
cs: tato toto mezi
ro: și de în a la cu nu o că un din pe care pentru este mai se au ce sau fi fost prin sunt lui după dar
ro: când ca între acest această era până fără foarte lor nici ei noi ele ai ale al unei unui avea are
hu: a az és hogy nem is egy van ez de csak meg ki el már mint ha volt vagy még sem azt ezt nagyon ezek
hu: azok ami aki akkor között után alatt szerint lesz lehet kell minden pedig mert így úgy itt ott nincs
hu: én ő mi
el: και το να του η της με που για την από τον στο θα τα είναι δεν στην σε οι τις των μια ένα ο στη στον
el: ή αυτό ως αλλά δε κατά όπως μας σας ότι πως πολύ ήταν έχει έχουν όταν πιο μετά πριν αυτή αυτός
tr: ve bir bu da de için ile çok olarak daha olan gibi en kadar ne o ama sonra var ki mi her ya değil
tr: olduğu veya ben sen biz siz onlar göre ise ancak hem diye bütün oldu olur tarafından yok şey iki
tr: nasıl neden
ar: في من على و إلى أن عن مع هذا هذه التي الذي كان كانت ما لا قد لم كل بعد بين هو هي ذلك أو عند غير حتى
ar: إن ثم أي كما لها له منذ حيث تم هناك يكون لكن لن فقد وقد أنه بها به فيها فيه وفي ومن
fa: و در به از که این را با است برای آن یک تا بر هم نیز شد خود ها یا اما می بود شود دارد باید شده کرد
fa: همه او ما من هر دیگر پس چه بین اگر نه کند کرده های باشد آنها وی
he: של את על לא הוא זה עם גם היא כי אם יש מה כל או היה אני אין רק בין הם יותר אבל עד אל אך לפי אחרי זאת
he: היו אשר כך שם ידי כמו לפני אנחנו אתה
hi: के है में की और से का को पर ने हैं यह कि एक भी नहीं हो इस लिए था करने वह या थे साथ ही कर अपने जो तक
hi: थी गया किया उन्होंने बाद होता होती करते कुछ सभी इसके जाता रहा उनके तो जब
ne: छ र को मा का गर्न लागि हो भएको पनि यो छन् गरेको यस हुन्छ तर थियो भन्ने लाई बाट गर्ने हुने ले गर्दै
ne: उनले थिए भने तथा त्यो
ta: ஒரு மற்றும் என்று இந்த அந்த என அவர் உள்ள இது அது கொண்டு வரை பின்னர் என்ற அல்லது போன்ற இருந்து மூலம்
ta: பல இல்லை தான் மிகவும் அவர்கள் நான் நாம் எந்த
id: yang dan di ini dengan untuk dari dalam itu pada tidak akan juga ada ke oleh saya atau sebagai
id: adalah telah mereka bisa karena lebih sudah dapat kita anda hanya seperti tersebut harus bahwa kami
id: antara
vi: của và là có được các cho trong không một với những này đã khi từ để đến về như nhiều cũng ra sau
vi: tại vào theo đó phải còn nên bị hay vì làm rất hơn sẽ trên
ca: de la i el que a en per un les els una amb del és no al com es més o seva seu van va aquest aquesta
ca: són però dels també ser ha han fins on molt quan perquè aquests entre hi ho pel pels
eu: eta da ez bat du zen dira ere izan egin baina dute ditu zuen hau hori bere baino edo egiten dago bi
eu: behar oso izango beste zuten haiek horrek gabe arte
ga: an na agus i a ar is go bhí le ag sé tá do de sin ní ach nach raibh leis mar seo sí siad chun gur
ga: bhfuil aige ina ó faoi níl againn
lt: ir į kad yra iš su tai bet kaip buvo ne už jis nuo apie kuris kuri kurie tik ar dėl per pat jau prie
lt: ji jo jos taip gali arba būti bei dar labai savo
et: ja on ei et see oli ta kui aga või ka mis kes ning oma siis nii veel selle tema seda üle pole mida
et: kas olla olid nende meie juba välja enne pärast vahel kuid väga
eo: la kaj de en estas al ne por kun ke li mi ĝi pri sed kiel ili oni tiu el estis ĉi kiu kiuj aŭ nur
eo: ankaŭ povas tre pli sen inter havas ĉiuj sia
hy: և է որ են ու այն մեջ այս հետ իր մի համար ոչ նաև չի էր եմ էին բայց կամ պետք ամեն նրա
zh: 我们 他们 这个 那个 一个 没有 可以 什么 因为 所以 但是 如果 就是 不是 也是 還是 还是 以及 對於 对于
zh: 這個 我們 他們 沒有 什麼 因為 一些 已经 已經 的是 是一 了一 的一 不能 進行 进行
ja: です ます した ない いる ある する こと これ それ この その から まで ので には では との など もの
ja: ため よう まし でし ませ せん して って った れる られ てい いま しま すが たが であ ってい とし
ko: 니다 습니 합니 입니 있습 했습 됩니 었습 았습 에서 으로 하는 하고 있는 것이 에게 까지 부터 이다 그리
ko: 리고 하지 지만 하였 였다 했다 된다 한다
th: การ ควา วาม ของ ขอ อง เป็น แล้ว หรื รือ จาก โดย
"""


def _read() -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for line in _WORDS.strip().splitlines():
        code, _colon, listed = line.partition(":")
        words.setdefault(code, set()).update(listed.split())
    return {code: frozenset(each) for code, each in words.items()}


FUNCTION_WORDS = _read()
