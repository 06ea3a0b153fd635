"""Words that an agent puts in another's place: in names, in listed values, for numbers."""

import re

SYNONYMS: dict[str, tuple[str, ...]] = {
    "file": ("document", "item"), "name": ("label", "called"), "dir": ("catalog", "location"),
    "receiver": ("addressee", "contact"), "user": ("account", "member"), "tweet": ("post", "toot"),
    "ticket": ("case", "request"), "comment": ("reply", "remark"), "content": ("wording", "words"),
    "fuel": ("petrol", "gas"), "amount": ("quantity", "volume"), "pedal": ("lever", "brake"),
    "position": ("level", "pressure"), "ignition": ("engine", "starter"), "mode": ("kind", "way"),
    "number": ("id", "key"), "pull": ("pr", "merge"), "alert": ("warning", "notice"),
    "issue": ("bug", "ticket"), "discussion": ("thread", "topic"), "gist": ("snippet", "paste"),
    "team": ("group", "squad"), "workflow": ("pipeline", "job"), "method": ("action", "operation"),
    "type": ("kind", "sort"), "date": ("day", "moment"), "field": ("column", "attribute"),
    "city": ("town", "place"), "commit": ("revision", "change"), "sub": ("child", "nested"),
    "id": ("identifier", "key"), "title": ("heading", "headline"), "resource": ("object", "thing"),
    "category": ("class", "group"), "related": ("linked", "other"), "path": ("location", "place"),
    "from": ("start", "parent"), "thread": ("conversation", "topic"), "tag": ("version", "mark"),
}  # fmt: skip
"""By word of a compound name."""

ABBREVIATIONS: dict[str, str] = {
    "pattern": "ptrn", "destination": "dst", "folder": "fldr", "description": "descr",
    "position": "pos", "ignition": "ign", "amount": "amt", "liter": "ltr", "gallon": "gal",
    "number": "num", "comment": "cmt", "receiver": "rcvr", "user": "usr", "query": "qry",
    "pull": "pr", "discussion": "disc", "organization": "org", "ticket": "tkt", "tweet": "twt",
    "directory": "dir", "workflow": "wf", "resource": "res", "page": "pg", "name": "nm",
    "file": "f", "message": "mesg", "direction": "dirn", "fields": "flds", "issue": "iss",
    "priority": "prio", "password": "pw", "category": "cat", "value": "val", "option": "opt",
    "repo": "rp", "method": "mthd", "assignees": "asgn", "reviewers": "rvwrs", "distance": "dst",
}  # fmt: skip

TRANSLATIONS: dict[str, tuple[str, ...]] = {
    "content": ("inhalt", "contenido", "contenu"), "message": ("nachricht", "mensaje"),
    "folder": ("ordner", "carpeta", "dossier"), "file": ("datei", "archivo", "fichier"),
    "name": ("nombre", "nom"), "source": ("quelle", "origen"), "path": ("pfad", "ruta", "chemin"),
    "destination": ("ziel", "destino", "cible"), "pattern": ("muster", "patron", "motif"),
    "city": ("stadt", "ciudad", "ville"), "distance": ("entfernung", "distancia"),
    "amount": ("menge", "cantidad", "montant"), "fuel": ("kraftstoff", "combustible"),
    "query": ("suche", "consulta", "recherche"), "title": ("titel", "titulo", "titre"),
    "body": ("cuerpo", "corps"), "owner": ("besitzer", "propietario"), "door": ("tuer", "puerta"),
    "repo": ("repositorio", "depot"), "number": ("nummer", "numero"), "liter": ("litro", "litre"),
    "state": ("zustand", "estado", "etat"), "branch": ("zweig", "rama", "branche"),
    "description": ("beschreibung", "descripcion"), "user": ("benutzer", "usuario"),
    "issue": ("vorgang", "incidencia"), "method": ("methode", "metodo"), "numbers": ("zahlen",),
    "fields": ("felder", "campos", "champs"), "files": ("dateien", "archivos", "fichiers"),
    "option": ("opcion", "auswahl"), "mode": ("modus", "modo"), "comment": ("kommentar",),
    "labels": ("etiketten", "etiquetas"), "assignees": ("asignados", "zustaendige"),
    "ignition": ("zuendung", "encendido"), "position": ("stellung", "posicion"),
    "pedal": ("pedal",), "receiver": ("empfaenger", "destinatario"), "id": ("kennung",),
    "team": ("gruppe", "equipo"), "value": ("wert", "valor", "valeur"), "lines": ("zeilen",),
    "gallon": ("gallone", "galon"), "pull": ("anfrage",), "reviewers": ("revisores",),
}  # fmt: skip

LISTED: dict[str, tuple[str, ...]] = {
    "open": ("active", "opened"), "closed": ("shut", "done"), "asc": ("ascending", "up"),
    "desc": ("descending", "down"), "start": ("on", "begin"), "stop": ("off", "end"),
    "engage": ("on", "apply"), "release": ("off", "disengage"),
    "created": ("creation", "newest"),
    "updated": ("modified", "changed"), "created_at": ("creation", "date created"),
    "updated_at": ("modified", "last change"), "remove": ("delete", "unlink"),
    "add": ("append", "create"), "create": ("new", "make"), "update": ("edit", "modify"),
    "delete": ("remove", "erase"), "user": ("person", "individual"), "org": ("organization",),
    "low": ("minor", "small"), "medium": ("moderate", "middle"), "high": ("strong", "severe"),
    "critical": ("very high", "urgent"), "fuel": ("gas", "petrol"), "engine": ("motor",),
    "merge": ("join", "combine"), "completed": ("finished", "done"), "watch": ("follow",),
    "ignore": ("mute",), "heart": ("love",), "+1": ("thumbs up", "like"), "-1": ("thumbs down",),
    "rear_left": ("back left",), "rear_right": ("back right",), "all": ("any", "everything"),
    "file": ("whole file",), "line": ("row",), "blocked_by": ("depends on",), "table": ("grid",),
    "laugh": ("smile",), "hooray": ("tada",), "comments": ("replies",), "issue": ("bug",),
    "climate": ("air conditioning",), "battery": ("accumulator",), "headlights": ("lamps",),
}  # fmt: skip
"""By listed value in lower case."""

CHINESE = {
    "name": "名称", "file": "文件", "title": "标题", "owner": "所有者", "repo": "仓库",
    "number": "编号", "user": "用户", "id": "标识", "message": "消息", "content": "内容",
    "date": "日期", "city": "城市", "location": "地点", "order": "订单", "path": "路径",
    "branch": "分支", "query": "查询", "type": "类型", "language": "语言", "country": "国家",
    "year": "年份", "amount": "金额", "address": "地址", "folder": "文件夹", "priority": "优先级",
    "description": "描述", "password": "密码", "issue": "议题", "pattern": "模式",
    "destination": "目的地", "source": "来源", "item": "商品", "reason": "原因", "payment": "支付",
    "method": "方式", "zip": "邮编", "value": "数值", "page": "页码", "state": "状态",
    "distance": "距离", "text": "文本", "email": "邮箱", "body": "正文", "labels": "标签",
}  # fmt: skip
"""By word of a name; joined, they are the name."""
RUSSIAN = {
    "name": "имя", "file": "файл", "title": "заголовок", "owner": "владелец", "query": "запрос",
    "message": "сообщение", "content": "содержимое", "date": "дата", "city": "город",
    "path": "путь", "type": "тип", "language": "язык", "country": "страна", "year": "год",
    "amount": "сумма", "address": "адрес", "folder": "папка", "priority": "приоритет",
    "description": "описание", "password": "пароль", "pattern": "шаблон",
    "destination": "назначение", "reason": "причина", "page": "страница", "state": "состояние",
    "distance": "расстояние", "branch": "ветка", "location": "место", "labels": "метки",
    "expression": "выражение", "duration": "длительность",
}  # fmt: skip
"""By whole name."""

LISTED_ABROAD: dict[str, tuple[str, ...]] = {
    "open": ("offen", "abierto", "ouvert"), "closed": ("geschlossen", "cerrado", "fermé"),
    "asc": ("aufsteigend", "ascendente"), "desc": ("absteigend", "descendente"),
    "low": ("niedrig", "bajo"), "medium": ("mittel", "medio"), "high": ("hoch", "alto"),
    "all": ("alle", "todos", "tous"), "start": ("starten", "iniciar"), "stop": ("parar",),
    "add": ("hinzufügen", "añadir"), "remove": ("entfernen", "quitar"),
    "create": ("erstellen", "crear"), "update": ("aktualisieren", "actualizar"),
    "delete": ("löschen", "eliminar"), "created": ("erstellt", "creado"),
    "updated": ("aktualisiert", "actualizado"), "user": ("Benutzer", "usuario"),
    "completed": ("abgeschlossen", "completado"), "merge": ("zusammenführen", "fusionar"),
    "engage": ("anziehen", "accionar"), "release": ("lösen", "soltar"),
    "comments": ("Kommentare", "comentarios"), "driver": ("Fahrer", "conductor"),
    "passenger": ("Beifahrer", "pasajero"), "male": ("männlich",), "female": ("weiblich",),
    "critical": ("kritisch", "crítico"), "issue": ("problema",),
    "no longer needed": ("nicht mehr benötigt", "ya no se necesita"),
    "ordered by mistake": ("versehentlich bestellt", "pedido por error"), "inactive": ("inaktiv",),
    "complete": ("vollständig",), "on_track": ("im Plan",), "at_risk": ("gefährdet",),
    "org": ("organización",),
}  # fmt: skip
"""By listed value in lower case: in German, Spanish, French."""

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = (
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip


def number_in_words(number: float) -> str | None:
    """A whole number of at most 9,999 as one says it in English; None for any other."""
    if number != int(number) or not 0 <= number < 10_000:
        return None
    number = int(number)
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]}-{_SMALL[ones]}" if ones else _TENS[tens]
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            many, rest = divmod(number, size)
            said = f"{number_in_words(many)} {name}"
            return f"{said} {number_in_words(rest)}" if rest else said
    return None


def words_of(name: str) -> list[str]:
    """The words of a compound name, as it writes them."""
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)


def lower_words(name: str) -> list[str]:
    """The same in lower case; the name itself where it has none."""
    return [word.lower() for word in words_of(name)] or [name]


def joined_as(name: str, words: list[str]) -> str:
    """Words joined in the style of a name: `fileName` or `file_name`."""
    lower = [word.lower() for word in words]
    if "_" in name or name.islower():
        return "_".join(lower)
    return lower[0] + "".join(word.title() for word in lower[1:])


def camel(name: str) -> str:
    """`file_name` as `fileName`."""
    first, *rest = [word.lower() for word in words_of(name)] or [name]
    return first + "".join(word.title() for word in rest)


def snake(name: str) -> str:
    """`fileName` as `file_name`."""
    return "_".join(word.lower() for word in words_of(name)) or name
