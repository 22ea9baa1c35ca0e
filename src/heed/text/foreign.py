"""Sentences in many languages and scripts, to test a translator with languages it does not know.

The first of each language begins article 1 of the Universal Declaration of Human Rights, which the
United Nations publish for any use.
"""

SENTENCES: dict[str, tuple[str, ...]] = {
    "ar": (
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
        "أين محطة القطار من فضلك؟",
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.",
        "Zítra ráno pojedeme vlakem do Prahy.",
    ),
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
        "Morgen früh fahren wir mit dem Zug nach Leipzig.",
    ),
    "el": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
        "Πού είναι ο σταθμός του τρένου;",
    ),
    "en": (
        "All human beings are born free and equal in dignity and rights.",
        "Tomorrow morning we will take the train to Leeds.",
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
        "Mañana por la mañana iremos en tren a Sevilla.",
    ),
    "fi": (
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
        "Huomenna aamulla menemme junalla Turkuun.",
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
        "Demain matin, nous prendrons le train pour Lyon.",
    ),
    "he": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
        "איפה תחנת הרכבת, בבקשה?",
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
        "रेलवे स्टेशन कहाँ है?",
    ),
    "it": (
        "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti.",
        "Domani mattina prendiamo il treno per Torino.",
    ),
    "ja": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
        "明日の朝、電車で京都へ行きます。",
    ),
    "ko": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
        "내일 아침에 기차를 타고 부산에 갑니다.",
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.",
        "Jutro rano pojedziemy pociągiem do Krakowa.",
    ),
    "ru": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах.",
        "Завтра утром мы поедем на поезде в Казань.",
    ),
    "th": (
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
        "สถานีรถไฟอยู่ที่ไหน",
    ),
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
        "Yarın sabah trenle İzmir'e gidiyoruz.",
    ),
    "vi": (
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
        "Sáng mai chúng tôi đi tàu hỏa ra Huế.",
    ),
    "zh": (
        "人人生而自由,在尊严和权利上一律平等。",
        "明天早上我们坐火车去上海。",
    ),
}
"""By language code."""
