"""URLs, e-mail addresses, paths and names of files.

In strings of programs 88 % of 83 URLs are unchanged in the German translation (others point to
the German page), 92 % of 78 patterns such as `*.svg`, 88 % of 33 endings such as `.csv`, and 22 of
29 paths and names of files: people translate names of examples, such as `log.txt`.

An address ends where a letter of another script follows a Latin one, and begins at a Latin letter
that follows one of another script: `打开setup.exe文件`, in Hebrew `לa@b.org`. In the names of files
the letter before must be of a script without blanks, or Hebrew or Arabic, which write short words
together with the next one. A URL goes on if such letters begin a part of it or another part
follows them: `/a请点击` ends after `a`, but `/wiki/北京` and `/a北京.html` are whole.

An absolute path after such a letter is found in a usual folder, as `/etc`, or in `~`.

Not found: paths of names only (`Europe/Madrid`; 27 % unchanged), absolute paths of one name
(`/number`), names of files whose ending is not a common one, `@names`.
"""

import re

from heed.text.protection.pattern import CLOSE, JOINED, LETTER, Pattern

_SCHEMES = "https?|ftps?|file|wss?|git|ssh|sftp|ldaps?|irc|news|nntp|smb|s3|gs|vnd"
_STOPS = r".,:;!?*_~…"
_BOUNDS = (
    r"\s<>\"'`(){}\[\]|\\^\u201c-\u201f\u00ab\u00bb\u2018-\u201a"
    r"\u3000-\u3004\u3008-\u303f\uff00-\uff60"
)
_LATIN = r"A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_LATIN_WORD = rf"[\d_{_LATIN}]"
_JOINED = f"[{JOINED}]"
_CLOSE = rf"(?:(?![{_BOUNDS}])[{CLOSE}])++"
# Marks at the end belong to the sentence; brackets within it come in pairs.
_REST = (
    rf"(?:[{_STOPS}]*+(?:[^{_BOUNDS}{_STOPS}&{CLOSE}]|&(?!(?:[lg]t|quot);)"
    rf"|(?:(?<=[/?=#&%+~_\-])|(?<=[{CLOSE}]\.)){_CLOSE}|{_CLOSE}(?=[/?=#&%_\-]|\.\w)"
    r"|\([^\s()<>]*+\)|\{[^\s{}<>]*+\}|\[[^\s\[\]<>]*+\]))"
)
_URL = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:{_SCHEMES})://|(?:mailto|tel|urn|data|magnet):(?=[^\s<>\"])"
    rf"|www\.(?=\w)){_REST}++"
    rf"|(?<!{_LATIN_WORD})(?<![@./\-])(?:[A-Za-z0-9\-]{{1,63}}\.){{1,5}}"
    rf"(?:com|org|net|edu|gov|io|dev)(?!{_LATIN_WORD})(?![\-@])"
    rf"(?:[/?#]{_REST}*+)?"
)
_LOCAL = rf"(?:{LETTER}|[\d+\-])"
_EMAIL = re.compile(
    rf"(?<!{_LATIN_WORD})(?<![.+\-])[A-Za-z0-9_](?:{_LOCAL}|\.(?={_LOCAL})){{0,63}}+"
    rf"@(?:[\w\-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}(?!{_LATIN_WORD})(?!-)"
    # With a domain of another script, between blanks or marks: `почта@пример.рф`.
    r"|(?<![\w.+\-])[^\W_](?:[\w+\-]|\.(?=[\w+\-])){0,63}+@(?:(?:[^\W_A-Za-z]|-){1,63}\.){1,4}"
    rf"(?:[^\W\d_A-Za-z{CLOSE}]{{2,24}}|(?:(?=\w)[{CLOSE}]){{2,3}})(?!\w)(?!-)"
)
_ENDING = (
    "(?:html?|xml|json|ya?ml|toml|txt|csv|tsv|pdf|png|jpe?g|gif|svgz?|webp|ico|bmp|tiff?|xcf|psd|e?ps"
    "|py|[ch]|cpp|hpp|java|js|ts|css|scss|sh|bat|rb|go|rs|sql|od[tspgf]|docx?|xlsx?|pptx?|rtf|epub"
    "|zip|gz|bz2|xz|7z|tar|tgz|rar|jar|deb|rpm|exe|dll|so|dylib|iso|ini|conf|cfg|log|lock|bak|tmp"
    "|md|rst|tex|wav|mp[34]|ogg|flac|avi|mkv|mov|webm|aup3?|po|mo|db|ttf|otf|woff2?|ics|vcf|eml"
    "|gnucash|xac|dxf|wmf|emf|tmx|xliff?)"
)
_NAME = r"\.{0,2}[\w+\-@~%]++(?:\.[\w+\-@~%]++)*+"
_NO_ABBREVIATION = rf"(?!\w\.\w(?!{_LATIN_WORD}))"  # such as `d.h.`
# A name of Latin letters directly after other ones; it ends where these go on, so that a long run
# of such names is not read to its end for each of them.
_LATIN_FILE = (
    rf"(?<={_JOINED})(?=[{_LATIN}]){_NO_ABBREVIATION}(?:[{_LATIN}\d_\-+~@.]++/)*+"
    rf"[{_LATIN}\d_\-+~@]++(?:\.[{_LATIN}\d_\-+~@]++)*?\.{_ENDING}(?!{_LATIN_WORD})"
)
# An absolute path directly after such letters, in a usual folder: `和/or/und` is none.
_ROOT = "(?:boot|dev|etc|home|lib|media|mnt|opt|proc|root|run|s?bin|srv|sys|tmp|usr|var|Users)"
_LATIN_PATH = (
    rf"(?<={_JOINED})(?:/{_ROOT}|~)(?:/[{_LATIN}\d_\-+~@%]++(?:\.[{_LATIN}\d_\-+~@%]++)*+)++/?"
)
_DRIVE_NAME = r"[^\s\\/:*?\"'<>|.,;()]++(?:[.,][^\s\\/:*?\"'<>|.,;()]++)*+"
_BEFORE = r"(?<![^\s\"'(\[{<„“‚‘«»‹›`=,>])"
_PATH = re.compile(
    rf"{_BEFORE}(?:/{_NAME}(?:/{_NAME})++/?|(?:~|\.\.?)/(?:{_NAME}(?:/{_NAME})*+/?)?+"
    rf"|(?:[A-Za-z]:|\\\\(?=\w))\\*+(?<=\\)(?:{_DRIVE_NAME}\\*+)*+)"
    rf"|\*\.{_LATIN_WORD}{{1,8}}(?!{_LATIN_WORD})"
    rf"|(?<!{_LATIN_WORD})(?<!\.)\.{_ENDING}(?!{_LATIN_WORD})"
    rf"|{_LATIN_PATH}|{_LATIN_FILE}|(?<![\w./\\@\-])(?![\w\-+~@]*?(?:{_LATIN_FILE}|{_LATIN_PATH}))"
    rf"{_NO_ABBREVIATION}(?:[\w\-+~@.]++/)*+[\w\-+~@]++(?:\.[\w\-+~@]++)*?"
    rf"\.{_ENDING}(?!{_LATIN_WORD})"
)
INNER_DOT = re.compile(r"\.\w")

ADDRESSES = (
    Pattern("url", "URLs", re.compile(r"://|:\w|www\.|\.\w"), _URL),
    Pattern("email", "e-mail addresses", re.compile("@"), _EMAIL),
    Pattern("path", "paths and names of files", re.compile(r"[/\\]|\.\w"), _PATH),
)
