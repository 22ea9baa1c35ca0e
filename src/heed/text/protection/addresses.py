"""URLs, e-mail addresses, paths and names of files.

In strings of programs 88 % of 83 URLs are unchanged in the German translation (others point to
the German page), 92 % of 78 patterns such as `*.svg`, 88 % of 33 endings such as `.csv`, and 22 of
29 paths and names of files: people translate names of examples, such as `log.txt`.

Not found: paths of names only (`Europe/Madrid`; 27 % unchanged), absolute paths of one name
(`/number`), names of files whose ending is not a common one, `@names`.
"""

import re

from heed.text.protection.pattern import LETTER, Pattern

_SCHEMES = "https?|ftps?|file|wss?|git|ssh|sftp|ldaps?|irc|news|nntp|smb|s3|gs|vnd"
_STOPS = r".,:;!?*_~…"
_BOUNDS = r"\s<>\"'`(){}\[\]|\\^\u201c-\u201f\u00ab\u00bb\u2018-\u201a\u3000-\u303f\uff00-\uff60"
# Marks at the end belong to the sentence; brackets within it come in pairs.
_REST = (
    rf"(?:[{_STOPS}]*+(?:[^{_BOUNDS}{_STOPS}&]|&(?!(?:[lg]t|quot);)"
    r"|\([^\s()<>]*+\)|\{[^\s{}<>]*+\}|\[[^\s\[\]<>]*+\]))"
)
_URL = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:{_SCHEMES})://|(?:mailto|tel|urn|data|magnet):(?=[^\s<>\"])"
    rf"|www\.(?=\w)){_REST}++"
    rf"|(?<!{LETTER})(?<![\d@./\-])(?:[A-Za-z0-9\-]{{1,63}}\.){{1,5}}"
    rf"(?:com|org|net|edu|gov|io|dev)(?!{LETTER})(?![\d\-@])"
    rf"(?:[/?#]{_REST}*+)?"
)
_LOCAL = rf"(?:{LETTER}|[\d+\-])"
_EMAIL = re.compile(
    rf"(?<!{LETTER})(?<![\d.+\-])[A-Za-z0-9_](?:{_LOCAL}|\.(?={_LOCAL})){{0,63}}+"
    rf"@(?:[\w\-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}(?!{LETTER})(?![\d\-])"
)
_ENDING = (
    "(?:html?|xml|json|ya?ml|toml|txt|csv|tsv|pdf|png|jpe?g|gif|svgz?|webp|ico|bmp|tiff?|xcf|psd|e?ps"
    "|py|[ch]|cpp|hpp|java|js|ts|css|scss|sh|bat|rb|go|rs|sql|od[tspgf]|docx?|xlsx?|pptx?|rtf|epub"
    "|zip|gz|bz2|xz|7z|tar|tgz|rar|jar|deb|rpm|exe|dll|so|dylib|iso|ini|conf|cfg|log|lock|bak|tmp"
    "|md|rst|tex|wav|mp[34]|ogg|flac|avi|mkv|mov|webm|aup3?|po|mo|db|ttf|otf|woff2?|ics|vcf|eml"
    "|gnucash|xac|dxf|wmf|emf|tmx|xliff?)"
)
_NAME = r"\.{0,2}[\w+\-@~%]++(?:\.[\w+\-@~%]++)*+"
_DRIVE_NAME = r"[^\s\\/:*?\"'<>|.,;()]++(?:[.,][^\s\\/:*?\"'<>|.,;()]++)*+"
_BEFORE = r"(?<![^\s\"'(\[{<„“‚‘«»‹›`=,>])"
_PATH = re.compile(
    rf"{_BEFORE}(?:/{_NAME}(?:/{_NAME})++/?|(?:~|\.\.?)/(?:{_NAME}(?:/{_NAME})*+/?)?+"
    rf"|(?:[A-Za-z]:|\\\\(?=\w))\\*+(?<=\\)(?:{_DRIVE_NAME}\\*+)*+)"
    rf"|\*\.\w{{1,8}}(?!\w)|(?<![\w.])\.{_ENDING}(?!\w)"
    # `d.h.` is an abbreviation.
    rf"|(?<![\w./\\@\-])(?!\w\.\w(?!\w))(?:[\w\-+~@.]++/)*+[\w\-+~@]++(?:\.[\w\-+~@]++)*?\.{_ENDING}(?![\w])"
)
INNER_DOT = re.compile(r"\.\w")

ADDRESSES = (
    Pattern("url", "URLs", re.compile(r"://|:\w|www\.|\.\w"), _URL),
    Pattern("email", "e-mail addresses", re.compile("@"), _EMAIL),
    Pattern("path", "paths and names of files", re.compile(r"[/\\]|\.\w"), _PATH),
)
