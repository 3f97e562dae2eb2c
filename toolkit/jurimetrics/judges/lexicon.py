"""The closed word lists behind the baseline's rules, per language: negations, numbers in words, calendar, endings."""

from __future__ import annotations

LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
# Languages whose numbers are written 3.000,5.
DECIMAL_COMMA = frozenset(("de", "es", "fr", "it", "nl", "pt"))


def words_of(listed: str) -> frozenset[str]:
    """The words of a list written as one text.

    >>> sorted(words_of("no never no"))
    ['never', 'no']
    """
    return frozenset(listed.split())


def _lists(listed: dict[str, str]) -> dict[str, frozenset[str]]:
    return {language: words_of(words) for language, words in listed.items()}


NEGATIONS = _lists(
    {
        "en": "not never no none nobody nothing neither nor without cannot nowhere hardly barely scarcely"
        " denied denies deny denying false untrue",
        "de": "nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder noch-nie",
        "fr": "pas jamais aucun aucune rien sans ni non guère nullement",
        "es": "no nunca jamás ningún ninguna ninguno nadie nada sin ni tampoco",
        "it": "non mai nessun nessuno nessuna niente nulla senza né neppure neanche",
        "pt": "não nunca jamais nenhum nenhuma ninguém nada sem nem tampouco",
        "nl": "niet geen nooit niemand niets zonder noch nergens",
    }
)
# Verbs that deny what follows them, only before "to" or "that": "failed to win".
DENYING_VERBS = words_of("failed fails fail refused refuses refuse declined declines unable unlikely")
NEGATING_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")

# What carries so little that its absence from the evidence says nothing; on top of text.STOPWORDS.
LIGHT = _lists(
    {
        "en": "however therefore thus according include includes including reportedly meanwhile although"
        " though even still"
        " yet later well now today per via along around among toward towards across like get got go went goes going"
        " cant wont dont didnt doesnt isnt wasnt werent arent hasnt havent hadnt wouldnt couldnt shouldnt that's yes",
        "de": "jedoch allerdings laut etwa bereits damit dabei daher deshalb außerdem zudem ja nein",
        "fr": "cependant ainsi notamment toutefois alors environ ici oui non encore déjà",
        "es": "sin embargo además así aunque unos aproximadamente mientras luego entonces",
        "it": "tuttavia inoltre così quindi circa mentre poi già ancora",
        "pt": "porém além assim embora cerca enquanto depois então ainda",
        "nl": "echter bovendien dus ongeveer terwijl toen reeds al ja nee",
    }
)
TITLES = words_of(
    "mr mrs ms miss dr prof professor sir lord lady president minister king queen prince princess pope"
    " saint st sen rep gov"
    " captain general herr frau monsieur madame m mme señor señora don doña signor signora senhor senhora dhr mevr"
)

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze",
    "nl": "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
}
# "sei", "six" and the like are plain words elsewhere, so each language has its own; one is left out where it is an article.
NUMBER_WORDS: dict[str, dict[str, int]] = {
    language: {word: n for n, word in enumerate(words.split()) if n != 1 or language == "en"}
    for language, words in _UNITS.items()
}
NUMBER_WORDS["en"] |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
NUMBER_WORDS["en"]["dozen"] = 12
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: n + 1 for n, word in enumerate(_ORDINALS.split())}
MAGNITUDES: dict[str, int] = {
    word: 10**power
    for power, words in {
        2: "hundred hundert cent cien cento honderd",
        3: "thousand tausend mille mil mila duizend",
        6: "million millions millionen mio millones millón milioni milione milhões milhão miljoen mn",
        9: "billion billions milliarde milliarden mrd milliard milliards miliardi miliardo bilhões bilhão miljard bn",
        12: "trillion trillions tn",
    }.items()
    for word in words.split()
}

_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_DAYS = {
    "en": "monday tuesday wednesday thursday friday saturday sunday",
    "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "pt": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    "nl": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
}
CALENDAR: dict[str, dict[str, str]] = {
    language: {word: f"month {n + 1}" for n, word in enumerate(months.split())}
    | {word: f"day {n + 1}" for n, word in enumerate(_DAYS[language].split())}
    for language, months in _MONTHS.items()
}
_SHORT_MONTHS = "jan feb mar apr - jun jul aug sep oct nov dec"
CALENDAR["en"] |= {word: f"month {n + 1}" for n, word in enumerate(_SHORT_MONTHS.split()) if word != "-"}
CALENDAR["en"]["sept"] = "month 9"
# Plain words too, so they are of the calendar only with a capital.
CALENDAR_WITH_CAPITAL = words_of("may march mar jan sep dec")

# Longest first; at least four letters are left.
ENDINGS: dict[str, tuple[str, ...]] = {
    language: tuple(listed.split())
    for language, listed in {
        "en": "ational ations ation ments ment ings ions ing ies ied ion ers er ed es ly al s e y",
        "de": "ungen ung ern end ten tet en er es em te st e n s t",
        "fr": "ements ement ations ation aient ées ait ent ant és ée er es é e s x",
        "es": "aciones ación iones ando aron ieron ado ada ión ar er ir as os es ó a o e s",
        "it": "azioni azione ando ato ata ati ate are ere ire i e a o ò",
        "pt": "ações ação aram ando ado ada ões ão ou ar er ir as os es a o e s",
        "nl": "ingen ing den ten de te en er e s t n",
    }.items()
}
_IRREGULAR = (
    "win won; take took taken; give gave given; find found; lose lost; leave left; build built; buy"
    " bought; sell sold; hold"
    " held; keep kept; meet met; pay paid; send sent; spend spent; rise rose risen; fall fell fallen; grow"
    " grew grown; begin"
    " began begun; become became; write wrote written; speak spoke spoken; break broke broken; choose"
    " chose chosen; drive"
    " drove driven; lead led; run ran; see saw seen; tell told; think thought; bring brought; teach"
    " taught; catch caught;"
    " fight fought; make made; come came; know knew known; child children; man men; woman women; person"
    " people; die dead"
    " death; shoot shot; steal stole stolen; wear wore worn; sink sank sunk; fly flew flown; draw drew"
    " drawn; beat beaten;"
    " feed fed; show shown; drink drank drunk; eat ate eaten; sing sang sung; swim swam swum; throw threw thrown; blow"
    " blew blown; hide hid"
    " hidden; ride rode ridden; forget forgot forgotten; deal dealt; feel felt; sleep slept; stand stood;"
    " strike struck; swear"
    " swore sworn; tear tore torn; wake woke woken; seek sought; shake shook shaken; breed bred; foot feet; tooth teeth"
)
IRREGULAR = {form: forms.split()[0] for forms in _IRREGULAR.split(";") for form in forms.split()[1:]}

OPPOSITES: dict[str, tuple[tuple[str, str], ...]] = {
    language: tuple((a, b) for both in listed.split(";") for a, b in [both.split()])
    for language, listed in {
        "en": "rise fall; increase decrease; increase drop; rise drop; gain lose; win lose; open close; accept reject;"
        " approve reject; support oppose; first last; more less; more fewer; high low; higher lower; highest lowest; large"
        " small; largest smallest; best worst; north south; east west; northern southern; eastern western; guilty innocent;"
        " alive dead; success failure; allow ban; allowed forbidden; start end; begin end; buy sell; male female; husband"
        " wife; son daughter; brother sister; father mother; hot cold; warm cold; rich poor; early late; arrive leave; love"
        " hate; old young; true false; left right; wet dry; full empty; public private; cheap expensive",
        "de": "offen geschlossen; geöffnet geschlossen; öffnen schließen; steigen fallen; erlaubt verboten; groß klein; hoch"
        " niedrig; alt neu; mehr weniger; erste letzte; warm kalt; links rechts; norden süden; osten westen",
        "fr": "ouvert fermé; ouverte fermée; autorisé interdit; permis interdit; grand petit; haut bas; nouveau ancien;"
        " premier dernier; chaud froid; gauche droite; nord sud; est ouest; plus moins",
        "es": "abierto cerrado; permitido prohibido; grande pequeño; alto bajo; nuevo viejo; primero último; caliente frío;"
        " izquierda derecha; norte sur; este oeste; más menos",
        "it": "aperto chiuso; permesso vietato; grande piccolo; alto basso; nuovo vecchio; primo ultimo; caldo freddo;"
        " sinistra destra; nord sud; est ovest; più meno",
        "pt": "aberto fechado; permitido proibido; grande pequeno; alto baixo; novo velho; primeiro último; quente frio;"
        " esquerda direita; norte sul; leste oeste; mais menos",
        "nl": "open gesloten; open dicht; toegestaan verboten; groot klein; hoog laag; nieuw oud; eerste laatste; warm koud;"
        " links rechts; noord zuid; oost west; meer minder",
    }.items()
}
# Verbs that say next to nothing, so that a new one adds nothing.
BLEACHED = words_of(
    "take get make run use give have put go come need keep let hold stand stay begin become remain found"
)
# Between a word and a name: "the mayor of Arden" has no rival in "the mayor, Joan Price". "by" is left out on purpose.
PREPOSITIONS = words_of(
    "of in at from to near on with for into under over aus bei nach mit für auf zu im am zum zur beim de du des à au aux en"
    " dans pour avec chez sur con para di per del della dei nel nella do da dos das em no na com van uit naar voor te"
)
# A sentence that opens with one of these speaks of somebody named before it.
PRONOUNS = words_of(
    "he she they it his her their its er sie es sein seine ihr ihre il elle ils elles son sa él ella ellos su"
    " lui lei egli"
    " ele ela eles seu sua hij zij ze zijn haar hun"
)
ABOUT = words_of(
    "about around nearly almost some roughly approximately circa etwa rund fast environ près casi unos"
    " circa quasi cerca ongeveer bijna"
)
