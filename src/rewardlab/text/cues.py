"""Words by which a text corrects, rechecks or confirms the answer that it has stated. Every pattern runs in linear time."""

from __future__ import annotations

import re

CUES = (
    "amend", " too ", "ps:",
    "nein", "non,", "不", "いや", "間違", "待って", "아니", "잠깐", "aspetta", "chwila", "ugh",
    "argh", "dang", "withdraw", "mind", "check",
    "disregard", "ignore", "now see", "be right", "be correct", "change", "replace",
    "wait", "hold", "hang on", "hmm", "let me", "let's", "check", "actually", "sorry", "no", "rather", "mean", "oops",
    "whoops", "make that", "make it", "edit", "mistak", "wrong", "correct", "strike that", "scratch that", "thought",
    "reflection", "error", "forgot", "forget", "mis", "overlook", "my bad", "apolog", "pardon", "instead", "have been",
    "however", "but ", "think", "typo", "update", "in fact", "better", "looking", "off by", "not ", "should have",
    "shouldn't have", "shouldn’t have", "never", "->", "→", "=>", "\n*", "~", "moment", "halt", "korrektur",
    "verrechnet", "geirrt", "vertan", "entschuldigung", "eigentlich", "vielmehr", "gesagt", "falsch", "attend",
    "voulais", "trompé", "désolé", "en fait", "plutôt", "erreur", "rectific", "espera", "quise", "equivoqu", "perd",
    "realidad", "dicho", "bien", "corrección", "corrijo", "стоп", "точнее", "ошиб", "нет", "等", "更正", "纠正", "不对",
    "错", "其实", "抱歉", "对不起", "不是", "应该是", "应为", ", er", ". er", " um", " uh", "it back", "that back",
    "this back",
)  # fmt: skip
"""In lower case; a text without any of them corrects nothing."""
_MISTAKE = r"(?:mistakes?|errors?|slips?|typos?|miscalculation|blunder)"
_STRONG = (
    rf"(?:scratch|strike|ignore|disregard|forget)\sth(?:at|e\sabove)\b|please\s(?:disregard|ignore)\b|i\s(?:withdraw"
    rf"|retract)\b|i\s(?:have\s|['’]ve\s)?changed?\smy\s(?:mind|answer)\b|\b(?:arg|ug)h+\b|\bdang\b|amendment(?=\s?:)"
    rf"|correction(?=\s?[:,—–-])|corrected\b|edit(?:ed)?\s?(?=:)|erratum\b"
    rf"|(?<!if )(?<!unless )(?<!whether )(?<!case )(?:i|we)(?:['’]ve|\shave)?(?:\s(?:just|also|think|see|notice[d]?"
    rf"|realize[d]?|realise[d]?|that|i|have|may))?"
    rf"\s(?:(?:made|see|found|spotted|noticed)\s(?:an?|my|the)\s(?:[a-z-]{{1,14}}\s)?{_MISTAKE}|(?:was|am)\s(?:wrong|mistaken"
    rf"|off)\b"
    r"|mis-?(?:added|counted|calculated|computed|read|multiplied|subtracted|divided|took|placed|stated|spoke|typed"
    r"|interpreted|understood|wrote|copied|applied)"
    r"|missed\s(?:one|an?|the|that)\b|left\sout|forgot(?!\sto\s(?:mention|say|note|write|state|show|box|put))|overlooked"
    r"|double[-\s]counted|slipped)"
    rf"|(?:let\sme|let['’]s|i['’]ll|i\s(?:must|need\sto|have\sto))\s(?:correct|fix|revise|amend)\b|not\sso\sfast\b"
    rf"|i\sshould(?:n['’]t)?\shave\b|i\stake\s(?:that|it|this)\sback|never\s?mind\b|my\s(?:bad|{_MISTAKE}|apologies)\b"
    r"|(?:that|this|it)(?:['’]s|\sis)\s[a-z0-9]{1,8}\stoo\s(?:few|many|high|low|small|large|much|little)\b|wh?oops(?:ie)?\b"
    r"|oops(?:ie)?\b|d['’]oh\b|on\s(?:second|further)\sthoughts?\b|(?:up)?on\s(?:further\s)?reflection\b"
    r"|to\scorrect\s(?:myself|that|this)|typo(?=\s?:)|update(?=\s?:)|wait,?\sno\b|no,?\swait\b"
    r"|ich\shabe\smich\s(?:verrechnet|geirrt|vertan|verzählt)|korrektur(?=\s?:)|mein\sfehler|das\s(?:ist|war)\s(?:falsch"
    r"|nicht\srichtig|ein\sfehler)"
    r"|(?:das\s)?stimmt\s(?:so\s)?(?:nicht|not)\b"
    r"|je\sme\ssuis\strompée?|rectification|erreur\sde\sma\spart|c['’]est\s(?:faux|une\serreur)|間違え(?:ました|た)|ошибка\b"
    r"|me\s(?:he\s)?equivo(?:qué|cado)|corrección|rectifico|corrijo|me\sconfundí|я\sошиб(?:ся|лась)|更正|纠正|我?(?:刚才)?(?:算|看|写|弄"
    r"|搞)?错了"
)
_WEAK = (
    r"(?:up)?on\sre-?check(?:ing)?\b|after\s(?:re-?check|double-check)ing\b|re-?check(?:ing)?(?=\s?:)|i\snow\s(?:see|realize"
    r"|realise)\b"
    r"|aspetta|chwila|poczekaj|待って|いや(?=[、,])|아니(?=[,.]|요)|잠깐|"
    r"wait(?=\s?[,.!?…:;—–-]|\s(?:wait|no|actually|that|this|it|i|let|the|sorry|an?\s(?:min|mom|sec)|is|should|what|maybe|so"
    r"|my)\b)|(?:hold|hang)\s(?:on|up)\b|hm+\b"
    r"|(?:let\sme|let['’]s|i(?:['’]ll|\sshould|\sneed\sto|\smust))\s(?:just\s|quickly\s)?(?:re-?(?:check|calculate|consider"
    r"|think|compute|do|count|evaluate|examine|read|visit)|look\s(?:again|at\s(?:it|this|that)\sagain)|try\sagain)"
    r"|(?:ein(?:en)?\s)?moment(?=\s?[,.!…:—–-]|\smal)|halt(?=\s?[,.!…:—–-])|warte\b|attend(?:s|ez)\b|un\smoment(?:o)?\b"
    r"|esper[ae]\b|стоп|等一?等|等一下|等会"
)
_CHECK = (
    r"(?:let\sme|let['’]s|i(?:['’]ll|\sshould|\swill))\s(?:just\s|quickly\s|also\s)?(?:double[-\s]?check|verify|check|confirm"
    r"|test)\b|(?:double[-\s]?)?check(?:ing)?(?=\s?:)"
)
_WORD = (
    r"ps(?=\s?:)|actually\b|looking\s(?:at\sit\s)?(?:again|back|closer)\b|in\sfact\b|better(?=\s?:)|(?:er|erm|um"
    r"|uh)(?=\s?[,.…—–-])"
    r"|(?P<turn>however|but)(?=[\s,])|thinking\sabout\sit\b|come\sto\sthink\sof\sit\b|i\sapologi[sz]e\b|sorry\b|apologies\b"
    r"|pardon\b|excuse\sme|nope\b|no(?=\s[-$*]{0,3}[0-9][0-9.,]{0,20}[*$]{0,2}\s?(?:$|[.!\n]))|no(?=\s?[,.!:;—–-])"
    r"|nein(?=\s?[,.!:;—–-])|non(?=\s?[,.!:;—–-])|нет(?=\s?[,.!:;—–-])"
    r"|(?:or\s|well\s)?rather\b|make\s(?:that|it)\b|i\sme(?:an|ant)\b|(?:it|that|this)\sshould\s(?:actually\s)?have\sbeen\b"
    r"|instead\b"
    r"|eigentlich|entschuldigung|vielmehr|besser\sgesagt|ich\smein(?:te|e)|en\sfait|désolée?|ou\splutôt|plutôt|je\sv(?:oulais"
    r"|eux)\sdire"
    r"|en\srealidad|perdón|mejor\sdicho|más\sbien|quise\sdecir|точнее|其实|抱歉|对不起|不对?(?=[，,])|我是说"
    r"|应该(?=是)|(?<=\s)not\sright(?=\s{0,2}[,.])|(?<=\n)\s{0,3}\*(?=[^\s*][^*\n]{0,60}\s{0,9}$)"
)
_DENIAL = (
    r"(?<!if )(?:that|this|it)\s(?:isn['’]t|can['’]t\sbe|cannot\sbe|can\snot\sbe)\s(?:right|correct)\b"
    r"|(?<!if )(?:that|this|it|which)(?:['’]s|\sis|\swas)\s(?:wrong|incorrect|false|not\s(?:quite\s)?(?:right|correct|true)"
    r"|an?\s(?:mistake|typo|error)|off\sby\s[a-z0-9]{1,6})\b"
)
_BEHIND = (
    r"(?<=[.!;,—–-]\s)(?=(?:(?:well|or|no|make\sthat),?\s)?[-$*]{0,3}[0-9][0-9.,]{0,20}[*$]{0,2},?\s(?:sorry|actually|i\smean"
    r"|rather)\b)"
)
"""A value that its cue follows: 43, sorry."""
CUE = re.compile(
    rf"(?<![\w'’])(?:(?P<strong>(?P<denial>{_DENIAL})|{_STRONG})|(?P<weak>{_WEAK})|(?P<check>{_CHECK}))"
    rf"|(?P<word>(?<![^\W0-9])(?:{_WORD}|(?P<refused>not\s[-$*]{{0,3}}[0-9][0-9.,]{{0,20}}[*$]{{0,2}}(?=[,;:]?\s)))"
    rf"|(?P<arrow>-{{1,2}}>|=>|[→⟶➔])|{_BEHIND})",
    re.IGNORECASE,
)
"""strong takes back what was said, weak looks at it again, check too, and word may be a plain word."""
_OPENS = re.compile(
    r"(?:^|[^\w\s'’]|[0-9]|\n)\s{0,3}[*_(\"“\[]{0,3}(?:(?:but|oh|ah|and|or|so|well|um|uh|hm+|ok|okay|yet|aber|oh|mais|pero"
    r"|ah)[\s,.!…]{1,3}){0,3}$",
    re.IGNORECASE,
)

_FILL = (
    r"(?:no|nope|sorry|actually|wait|so|then|in\sfact|i\s(?:think|believe|see|meant?)|that|make\s(?:that|it)|rather|well|and"
    r"|but|it\sseems|clearly|really|just|now|of\scourse|instead"
    r"|oops|hm+|better|ich\smeint?e|je\sv(?:oulais|eux)\sdire|quise\sdecir|en\sfait|en\srealidad|eigentlich|because|therefore"
    r"|thus|hence|nein|non|also|doch|pardon|perdón|désolé|不|不对|应该|não|いや"
    r"|(?:the\s)?(?:correct|right|actual|real|true|final|new)\s(?:answer|value|total|result|one)(?=\s?:)|to)"
)
_LEAD = rf"[\s,.:;!…—–*_#，。、：)(-]{{0,12}}(?:{_FILL}[\s,.:;!…—–*_，。、-]{{1,4}}){{0,6}}"
_KIND = (
    r"(?:answer|result|value|solution|total|sum|number|count|amount|product|cost|price|difference|figure|one|probability|area"
    r"|volume|length|time|distance|average)"
)
_OF = r"(?:\sof\s[a-z\s]{1,40}?|\s(?:in|for|is\sthen)\s[a-z\s]{1,30}?)?"
_ADVERBS = r"(?:\s(?:actually|really|now|then|in\sfact|instead|exactly|just|rather|therefore|equal\sto|simply|only))*"
_BE = (
    rf"(?:['’]s|\s(?:(?:is|was|are|equals?|becomes|(?:(?:w|sh)ould|must|has\sto|ought\sto){_ADVERBS}\s(?:be|have\sbeen|read)"
    rf"|comes\s(?:out\s)?to|ist|sind|est|sont|es|son|sería|debería\sser|devrait\sêtre|lautet|sollte)\b)"
    rf"|\s?=){_ADVERBS}:?"
)
_FOREIGN = (
    r"(?:es\s(?:ist|sind)|(?:ist|sind)\ses|das\s(?:ist|sind)|c['’]est|ce\ssont|ça\sfait|il\sy\sen\sa|(?<=[\s,.])(?:es|son)"
    r"|это|应该是|应为|是|为)"
)
_PRONOUN = r"(?:it|that|this|which|they|there)"
_VALUE = (
    r"(?=[\s*_:]{0,4}(?:\\?[(\[]\s?|\$\$?\s?|\\?[$€£]|[*_\"“(]|(?:minus|negative)\s|\\boxed\s?\{|\\text\s?\{){0,5}"
    r"(?:[A-Za-z]\s?=\s?)?(?:[-−+]?\s?[.]?[0-9]|[-−]?\s?\\(?:[dt]?frac|sqrt|pi)\b|[-−]?\s?[√π]))"
)
_NUMBER = r"(?:\\?[$€£])?[-−]?[0-9][0-9.,/]{0,30}(?<![.,])%?\$?"
_VERBS = (
    r"(?:is|was|are|were|would|will|can|cannot|can['’]t|could|does|do|did|has|have|had|divides|times|plus|minus|makes|gives"
    r"|goes|comes|seems)"
)
BARE = re.compile(
    rf"{_LEAD}(?P<value>[*_]{{0,2}}(?:\\?[$€£])?[-−]?[0-9][0-9.,/]{{0,30}}(?<![.,])%?\$?"
    rf"(?![0-9])(?!\s?[-+*/×÷^=<>](?!\*))(?!\()(?!!(?!\s{{0,3}}(?:$|[A-Z])))(?!\s(?:{_VERBS}|more|less|of|out|and|to|or"
    rf"|x)\b)(?!(?:\s[a-z]{{1,15}}){{1,3}}\s{_VERBS}\b)"
    r"|\$[^$\n]{1,80}\$(?=[\s*]{0,4}(?:[.,;!)]|$))|(?:[A-Za-z]\s?=\s?)?[-−]?\\[dt]?frac\s?\{[^{}\n]{1,30}\}\s?\{[^{}\n]{1,30}\}(?=[\s*]{0,4}(?:[.,;!)]|$))|\\boxed\s?\{)",
    re.IGNORECASE,
)
"""A value behind a cue and nothing more: no, 43."""
DIRECT = re.compile(
    rf"{_LEAD}(?:(?:{_PRONOUN}|(?:the|my|our|its)\s(?:[a-z'’-]{{1,16}}\s){{0,3}}?{_KIND}{_OF}|(?:we|i)(?=\s(?:get|got|have"
    rf"|obtain|find)))"
    rf"(?:{_BE}|\s(?:get|got|have|obtain|find|makes|gives|leaves)\b)|{_FOREIGN}){_VALUE}",
    re.IGNORECASE,
)
"""What the answer is said to be at once behind a cue."""
_BEFORE = r"(?:^|[\s,;:.(—–，。])"
ASSERTED = re.compile(
    rf"{_BEFORE}(?:(?:it|that){_BE}|(?:the|my|our)\s(?:[a-z'’-]{{1,16}}\s){{0,3}}?(?:answer|result|solution)s?{_OF}{_BE}"
    rf"|answer\s?[:=])[\s*_:]{{0,3}}{_VALUE}|\n\s{{0,3}}####{_VALUE}"
    rf"|\b(?:yes|yep|yeah|right|so|thus|hence|therefore|indeed|making\sit"
    rf"|make\sit)[,:—–-]?\s(?=[*_]{{0,2}}{_NUMBER}[*_]{{0,2}}\s?(?:[.!\n]|$))",
    re.IGNORECASE,
)
"""What the answer is said to be."""
TURNED = re.compile(
    rf"(?<![\w.,$€£−-])(?P<value>{_NUMBER}|\(?(?-i:[A-J])\)?)\s(?:is|was|(?:w|sh)ould\sbe|must\sbe|seems"
    rf"|looks)\s(?:(?:actually|really|indeed|in\sfact|the|then)\s){{0,3}}(?:right|correct|actual|true|proper|the\sanswer)\b",
    re.IGNORECASE,
)
"""43 is right."""
ENDS_THERE = re.compile(rf"[\s*_:]{{0,4}}{_NUMBER}[*_]{{0,2}}\s?(?:[.!\n]|$)")
AT_END = re.compile(rf"[:=]\s[*_]{{0,2}}{_NUMBER}[*_]{{0,2}}[.!]?\s*$")
ASKED = re.compile(r"[0-9][^.!?\n]{0,40}\?")
CONDITION = re.compile(r"\b(?:if|unless|when|had|suppose)\b", re.IGNORECASE)
LOOSE = re.compile(
    rf"{_BEFORE}(?:(?:the|my|our|its|this|that|which|there|we|they|he"
    rf"|she)\s?(?:[a-z'’-]{{1,16}}\s){{0,4}}?[a-z]{{0,16}}(?:{_BE}|\s(?:get|got|have|has|makes|gives|leaves|costs|needs)\b)"
    rf"|,?\s(?:giving|making|yielding|leaving|i\.e\.)\s(?:us\s)?|{_FOREIGN}|(?:so|thus|hence|therefore|also|donc|entonces|所以"
    rf"|因此),?){_VALUE}",
    re.IGNORECASE,
)
"""What something is said to be."""
_NOT_NAMED = (
    r"(?:right|correct|fine|good|okay|ok|easy|clear|noted|mentioned|true\sthat|not|also|still|indeed|wrong|incorrect|mistaken"
    r"|worth|because|possible|important|just|a\b|an\b|the\ssame"
    r"|what|how|why|that|unchanged|consistent)\b"
)
NAMED = re.compile(
    rf"{_LEAD}(?:(?:it|that|this|(?:the|my|our)\s(?:[a-z'’-]{{1,16}}\s){{0,3}}?(?:answer|result|solution|one)){_BE}\s"
    rf"|(?<=meant )|(?<=mean )|(?<=that )|(?<=rather ))"
    rf"[\s*_:\"“]{{0,4}}(?!{_NOT_NAMED})(?P<said>[^\W\d_][^.!?\n,;]{{0,40}})",
    re.IGNORECASE,
)
"""A name that the answer is said to be."""
_IS_OPTION = rf"(?:(?:{_PRONOUN}|(?:the|my|our)\s(?:[a-z'’-]{{1,16}}\s){{0,3}}?(?:answer|option|choice|one)){_BE}|{_FOREIGN})\s?"
_LETTER = (
    r"(?:(?:option|choice|answer)\s)?(?=[*_$\"“]{0,3}(?:\\text\s?\{)?\(?(?-i:[A-J])\)?[*_$}]{0,3}(?:[.,;!:)]|\s?$|\n"
    r"|\s(?:because|since|as|instead|not)\b))"
)
OPTION = re.compile(rf"{_LEAD}(?:{_IS_OPTION})?{_LETTER}", re.IGNORECASE)
"""An option that is named at once behind a cue."""
OPTION_ASSERTED = re.compile(rf"{_BEFORE}\s?{_IS_OPTION}{_LETTER}", re.IGNORECASE)
CONFIRMS = re.compile(
    r"(?:^|[.!?:;,\n—–(-]\s{0,3})[*_]{0,2}(?:yes|yep|yeah|yup|correct|right|exactly|ok(?:ay)?|good|great|perfect|confirmed"
    r"|verified|indeed|fine|all\sgood|ja|oui|sí|richtig|correcto)"
    r"\b(?!\s(?:answer|value|total|result|one|number|is)\b)"
    r"|\b(?:it|that|this|which|all|everything|answer|result|calculation|value|total)(?:['’]s|\s(?:is|was|are|looks|seems"
    r"|appears(?:\sto\sbe)?|remains|stays|stands))"
    r"\s(?:(?:indeed|still|also|the|all|really)\s){0,3}(?:right|correct|fine|good|ok(?:ay)?|same|true|valid|unchanged"
    r"|consistent|confirmed|accurate)\b"
    r"|(?<!n't )(?<!n’t )(?<!not )\b(?:checks?\sout|match(?:es)?|agrees|stands|holds|works(?:\sout)?|confirms?"
    r"|consistent\swith|add(?:s)?\sup|as\s(?:before|expected|required|stated|given|desired|claimed|it\sshould))\b"
    r"|[✓✔✅☑]|(?:stimmt|c['’]est\sbien|es\scorrecto)(?!\s(?:not|nicht|so not))|是?(?:正确|对)的|没错",
    re.IGNORECASE,
)
_TRUE = r"(?:correct|right|actual|true|real|revised|new|corrected|proper|final)"
LATER = re.compile(
    rf"(?:^|[\s(])(?:(?:the|my|our)\s(?:[a-z]{{1,12}}\s)?{_TRUE}\s{_KIND}(?:{_BE}|\s?:)(?:\snow)?|my\sanswer\sis\s(?:now\s)?"
    rf"|(?:it|that|this)(?:['’]s|\sis)?\s(?:actually|really)(?:\sis|\s(?:should|must)\sbe)?"
    rf"|change\s(?:that|it|this|my\sanswer)\sto|replace\s[^\s]{{1,20}}\s(?:with"
    rf"|by))\s{{0,2}}[*_$(\\]{{0,4}}(?P<value>{_NUMBER})(?=[*_)$\\]{{0,4}}\s?(?:[.!\n]|$))",
    re.IGNORECASE,
)
"""A later statement of the answer without a cue: the right value is 43."""
LAST = re.compile(
    rf"(?:^|[.!?。\n(]\s{{0,3}})(?:[^\W\d_]{{1,12}}\s?[,，、!…—–]\s?|(?:it|that|this)(?:['’]s"
    rf"|\sis)\s)(?P<value>{_NUMBER})(?:,\sactually)?[*_)$]{{0,4}}\s?(?:です)?[.!。)\s]{{0,5}}$",
    re.IGNORECASE,
)
"""A last sentence that is another value: It is 43. Or, in any language, a word and the value: Nein, 43."""
STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<del>[^<\n]{0,200}</del>")


def opens_clause(text: str, at: int) -> bool:
    """Whether a clause begins at this place of a text, perhaps behind "but" or "oh"."""
    return bool(_OPENS.search(text[max(0, at - 40) : at]))
