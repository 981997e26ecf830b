"""Which texts are not English: evidence is wanted, because a warning on an English text is worse than none."""

# ruff: noqa: E501, RUF001 -- texts as people write them

import pytest

from setscore.datasets import likely_not_english
from setscore.datasets.language import ENGLISH, FUNCTION_WORDS

FOREIGN = {
    "Spanish": (
        "Hola, quiero devolver los zapatos que compré la semana pasada porque me quedan pequeños.",
        "El paquete llegó roto y nadie me contesta en la tienda, así que pido que me devuelvan el dinero.",
        "No puedo entrar en mi cuenta desde ayer, la página dice que la contraseña está mal pero es la correcta.",
    ),
    "French": (
        "Bonjour, je n'arrive plus à me connecter à mon compte depuis la mise à jour de ce matin.",
        "Le colis est arrivé avec deux jours de retard et la boîte était ouverte, je voudrais un remboursement.",
        "Nous avons commandé trois chaises mais une seule est arrivée, merci de nous dire quand viendront les autres.",
    ),
    "German": (
        "Guten Tag, meine Bestellung ist immer noch nicht angekommen, obwohl sie schon am Montag verschickt wurde.",
        "Ich möchte mein Geld zurück, weil das Gerät nach zwei Tagen nicht mehr funktioniert hat.",
        "Können Sie mir bitte sagen, wann der Techniker kommt und ob ich zu Hause sein muss?",
    ),
    "Italian": (
        "Buongiorno, vorrei sapere quando arriva il pacco che ho ordinato la settimana scorsa.",
        "Non riesco ad accedere al mio profilo perché il sito dice che la password non è corretta.",
        "Il tavolo è arrivato rotto e nella scatola non c'erano le viti per montarlo, come posso fare?",
    ),
    "Portuguese": (
        "Bom dia, ainda não recebi a encomenda que fiz na semana passada e ninguém responde aos meus emails.",
        "Gostaria de cancelar a minha assinatura porque o serviço não funciona como foi prometido.",
        "A fatura deste mês está errada, vocês cobraram duas vezes o mesmo produto no meu cartão.",
    ),
    "Dutch": (
        "Goedemiddag, ik heb vorige week een jas besteld maar het pakket is nog steeds niet aangekomen.",
        "De monteur zou vanmorgen komen, maar er is niemand geweest en ik heb de hele dag gewacht.",
        "Kunt u mij vertellen waarom er twee keer geld van mijn rekening is gehaald voor dezelfde bestelling?",
    ),
    "Swedish": (
        "Hej, jag har inte fått mitt paket än och det skulle ha kommit för en vecka sedan.",
        "Jag vill avsluta min prenumeration eftersom appen inte fungerar på min telefon.",
    ),
    "Danish": (
        "Hej, jeg har stadig ikke modtaget min pakke, og der er ingen der svarer på mine mails.",
        "Jeg vil gerne have mine penge tilbage, fordi cyklen var i stykker da den kom frem.",
    ),
    "Norwegian": ("Hei, jeg har ikke fått pakken min ennå, og den skulle ha kommet for en uke siden.",),
    "Finnish": (
        "Hei, tilasin kengät viime viikolla, mutta paketti ei ole vielä saapunut ja kukaan ei vastaa minulle.",
        "Haluan perua tilaukseni, koska tuote oli rikki kun se tuli eikä siitä ollut mitään apua.",
    ),
    "Polish": (
        "Dzień dobry, nie dostałem jeszcze paczki, która miała przyjść w zeszłym tygodniu, i nikt nie odbiera telefonu.",
        "Chciałbym zwrócić ten produkt, ponieważ jest uszkodzony i nie działa tak jak powinien.",
    ),
    "Czech": ("Dobrý den, ještě mi nepřišel balík, který jsem objednal minulý týden, a nikdo mi na to neodpovídá.",),
    "Turkish": (
        "Merhaba, geçen hafta sipariş ettiğim ayakkabılar hâlâ gelmedi ve kimse telefonlara cevap vermiyor, bu çok kötü bir hizmet.",
    ),
    "Indonesian": (
        "Selamat pagi, saya belum menerima paket yang saya pesan minggu lalu dan tidak ada yang menjawab email saya.",
    ),
    "Vietnamese": ("Xin chào, tôi vẫn chưa nhận được đơn hàng mà tôi đã đặt tuần trước và không có ai trả lời tôi.",),
    "Romanian": (
        "Bună ziua, nu am primit încă pachetul pe care l-am comandat săptămâna trecută și nimeni nu îmi răspunde la telefon.",
    ),
    "Hungarian": (
        "Jó napot, még mindig nem érkezett meg a csomag, amit a múlt héten rendeltem, és senki nem veszi fel a telefont.",
    ),
    "Russian": ("Здравствуйте, я до сих пор не получил посылку, которую заказал неделю назад.",),
    "Ukrainian": ("Доброго дня, я досі не отримав посилку, яку замовив минулого тижня.",),
    "Greek": ("Καλημέρα, δεν έχω λάβει ακόμα το δέμα που παρήγγειλα την περασμένη εβδομάδα.",),
    "Arabic": ("مرحبا، لم أستلم بعد الطرد الذي طلبته الأسبوع الماضي ولا أحد يجيب.",),
    "Hebrew": ("שלום, עדיין לא קיבלתי את החבילה שהזמנתי בשבוע שעבר ואף אחד לא עונה.",),
    "Hindi": ("नमस्ते, मुझे अभी तक वह पैकेज नहीं मिला है जो मैंने पिछले सप्ताह मंगवाया था।",),
    "Chinese": ("您好，我上周订的包裹到现在还没有收到，打电话也没有人接，请帮我查一下。",),
    "Japanese": ("こんにちは、先週注文した荷物がまだ届いていません。至急確認してください。",),
    "Korean": ("안녕하세요, 지난주에 주문한 소포가 아직 도착하지 않았습니다. 확인해 주세요.",),
    "Thai": ("สวัสดีค่ะ ฉันยังไม่ได้รับพัสดุที่สั่งไปเมื่อสัปดาห์ที่แล้วเลยค่ะ",),
    "Bengali": ("নমস্কার, আমি গত সপ্তাহে যে পার্সেলটি অর্ডার করেছিলাম তা এখনও পাইনি।",),
}

ENGLISH_TEXTS = {
    "chat": "lol idk man u coming 2nite or nah?? brb gotta feed the cat, omg she is sooo loud rn, see ya l8r",
    "chat with emoji": "😂😂😂 no way bro ❤️❤️ ur kidding 🔥🔥 im dead 💀💀💀 stop it lmao ok ok fine whatever 😭",
    "shouting": "WHY IS THE APP DOWN AGAIN!!! FIX THIS NOW OR GIVE MY MONEY BACK, THIS IS A JOKE, I AM SO DONE WITH YOU",
    "ticket": "Ticket 48213: VPN disconnects every ten minutes on macOS 14.2, error 809, already reinstalled the client.",
    "telegraphic ticket": "pwd reset fail, user jdoe, SSO loop, cleared cache, same err 403, escalate tier 2, urgent, site Reno",
    "log": "2024-05-01 12:00:03 ERROR db.pool timeout after 3000 ms host=10.0.0.7 retry=3 state=closed user=admin",
    "python": "def main(argv=None):\n    for key, value in sorted(items.items()):\n        if value is None:\n            continue",
    "javascript": "var se = el.le(un, en); const que = pas.map(x => x.con(para)); if (!es) { return nos[i] || su; }",
    "sql": "SELECT id, name, count(*) FROM orders o JOIN users u ON u.id = o.user_id WHERE o.state = 'open' GROUP BY 1, 2",
    "html": '<div class="col"><a href="https://en.wikipedia.org/wiki/La_La_Land">La La Land</a></div> <p>see de, es, fr</p>',
    "shopping list": "milk, eggs, bread, butter, 2 lb flour, sugar, salt, olive oil, tomatoes, basil, onions, garlic, rice",
    "ingredients": "Aqua, Glycerin, Parfum, Cetearyl Alcohol, Dimethicone, Sodium Chloride, Citric Acid, Limonene, Linalool",
    "cities": "Los Angeles, Las Vegas, El Paso, San Diego, Santa Fe, La Jolla, Los Gatos, Des Moines, Baton Rouge, Del Rio",
    "names": "Ludwig van der Berg, Juan de la Cruz, Anna von Trapp, Leonardo da Vinci, Charles de Gaulle, Robert De Niro",
    "languages": "en de fr es it pt nl sv da no fi pl cs tr id vi ro hu ru uk el ar he hi zh ja ko th",
    "citations": "Smith et al. 2010; Jones et al. 2012; Garcia et al. 2015; Müller et al. 2018; Rossi et al. 2020; ibid.",
    "song titles": "We played Que Sera Sera, then La Vie en Rose, Bésame Mucho and Volare, and the guests sang along.",
    "quotation": "He only said 'je ne sais pas, mon ami' and left the room before anyone could ask him about the letter.",
    "loan words": "The chef did the hors d'oeuvres en croute, coq au vin and creme brulee a la carte; a real tour de force.",
    "about Japanese": "In Japanese, 食べる means to eat and 飲む means to drink; the polite forms are 食べます and 飲みます.",
    "mathematics": "Let α, β and γ be the angles; then α + β + γ = π, and the area is ½ ab sin γ for the sides a and b.",
    "fancy letters": "𝐓𝐡𝐢𝐬 𝐢𝐬 𝐚 𝐬𝐚𝐥𝐞, 𝐛𝐮𝐲 𝐧𝐨𝐰! ᴛʜɪs ɪs ᴀ sᴀʟᴇ, ʙᴜʏ ɴᴏᴡ, ᴏɴʟʏ ᴛᴏᴅᴀʏ, ғʀᴇᴇ sʜɪᴘᴘɪɴɢ ғᴏʀ ᴀʟʟ ᴏʀᴅᴇʀs",
    "law": "Article 6 § 1 of the Convention was violated, the Court held, because the proceedings had lasted eleven years.",
    "numbers": "3 14 15 92 65 35 89 79 32 38 46 26 43 38 32 79 50 28 84 19 71 69 39 93 75 10 58",
}

TOO_SHORT = ["Bitte nicht!", "Où est la gare ?", "Merci beaucoup !", "Привет, как дела?", "谢谢你的帮助", "ok", ""]
SHORT_FOREIGN = [
    "Hola, gracias por todo, hasta mañana.", "Mein Paket ist leider nicht angekommen", "Mon colis n'est pas arrivé",
    "Quiero que me devuelvan el dinero", "Il pacco non è ancora arrivato", "Het pakket is niet aangekomen",
    "Mitt paket har inte kommit", "Nie otrzymałem jeszcze mojej paczki",
]  # fmt: skip
SHORT_ENGLISH = [
    "Las Vegas, El Paso, Los Angeles", "no refund, no reply, no manners", "pizza con carne, 2 x cola, extra cheese", "mit die hard fan",
    "se habla espanol? i do", "van der Berg & de la Cruz", "en-US es-MX fr-CA", "der, die, das: easy", "per diem non grata",
]  # fmt: skip


@pytest.mark.parametrize("language", FOREIGN)
def test_another_language_is_noticed(language):
    assert [likely_not_english(text) for text in FOREIGN[language]] == [True] * len(FOREIGN[language])


@pytest.mark.parametrize("kind", ENGLISH_TEXTS)
def test_english_of_every_kind_passes(kind):
    assert not likely_not_english(ENGLISH_TEXTS[kind])
    assert not likely_not_english(f"{ENGLISH_TEXTS[kind]} " * 20)


@pytest.mark.parametrize("text", TOO_SHORT)
def test_texts_of_some_words_are_never_judged(text):
    assert not likely_not_english(text)


@pytest.mark.parametrize("text", SHORT_FOREIGN)
def test_a_short_text_with_function_words_of_another_language_alone_is_noticed(text):
    assert likely_not_english(text)
    assert not likely_not_english(f"{text} Please help me")


@pytest.mark.parametrize("text", SHORT_ENGLISH)
def test_short_english_with_some_foreign_words_passes(text):
    assert not likely_not_english(text)


def test_english_with_some_of_another_language_passes():
    english = "I asked them when my order will arrive, and this is all that they wrote to me about it: "
    assert not likely_not_english(english + FOREIGN["Spanish"][0])
    assert not likely_not_english(english + FOREIGN["Russian"][0][:40])
    assert likely_not_english(english + " ".join(FOREIGN["French"] * 6))


def test_only_the_beginning_is_read():
    assert not likely_not_english(ENGLISH_TEXTS["law"] * 50 + FOREIGN["Russian"][0] * 500)


def test_no_function_word_is_english():
    words = [word for words in FUNCTION_WORDS.values() for word in words.split()]
    common = "a about all also am an and are as at be been but by can come die do for from had have he her him his"
    common += " how i if in is it like made make man me men more my no not of on one or our out over own plus pour"
    common += " said see she sin so some son than that the their them then there they this time to two under up us use"
    common += " was we were what when which who will with would you your bare dig mine ten pod tale bin era mini"
    assert not {*common.split(), *ENGLISH} & set(words)
    assert all(len(set(words.split())) == len(words.split()) for words in FUNCTION_WORDS.values())
