"""Subtitles: times are kept, the lines of a cue are one text."""

from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.subtitles import split_ass, split_srt, split_vtt
from heed.translate.result import Translation

CUE = ["1\n", "0 --> 1\n", "a b", " a b \n", " ", "\n", "\r\n", "NOTE x\n"]
DIALOGUE = ["Dialogue: 0,0,0,a,,0,0,0,,", "\\N", "\\h", "\nFormat: a, b\n"]
MARKS = ["- ", "<i>", "</i>", "<0:1>", "{\\i1}", "<font\nx>"]
SOUP = st.lists(st.sampled_from([*CUE, *MARKS, *DIALOGUE])).map("".join)

SRT = """1
00:00:01,000 --> 00:00:02,000
{\\an8}<i>A man in a blue
shirt</i> is here.

2
00:00:03,000 --> 00:00:04,000
- Who is it?
- Me
"""


@given(SOUP | st.text())
def test_joining_unchanged_segments_gives_the_file(text: str) -> None:
    for split in (split_srt, split_vtt, split_ass):
        assembly = split(text)
        assert assembly.join(unchanged(assembly.segments)) == text


def test_a_cue_is_one_text_and_each_speaker_another() -> None:
    assembly = split_srt(SRT)
    assert [segment.text for segment in assembly.segments] == [
        "A man in a blue shirt is here.",
        "Who is it?",
        "Me",
    ]
    assert assembly.join(shouted(assembly.segments)) == SRT.replace(
        "A man in a blue\nshirt</i> is here", "A MAN IN A BLUE\nSHIRT</i> IS HERE"
    ).replace("Who is it", "WHO IS IT").replace("Me", "ME")


def test_a_line_with_times_begins_a_cue_without_an_empty_line_before_it() -> None:
    text = "1\n0 --> 1\na man\n2\n1 --> 2\na dog\n7\n"
    for split in (split_srt, split_vtt):
        assembly = split(text)
        assert [segment.text for segment in assembly.segments] == ["a man", "a dog 7"]
        done = assembly.join(shouted(assembly.segments))
        assert done == text.replace("a man", "A MAN").replace("a dog", "A DOG")


def test_only_a_cue_of_subrip_goes_on_after_an_empty_line() -> None:
    text = "7\n\n1\n0 --> 1\na man\n\nand a dog\n\n\n2\n\n3\n1 --> 2\n\na house\n\n"
    srt, vtt = split_srt(text), split_vtt(text)
    assert [segment.text for segment in srt.segments] == ["a man", "and a dog", "a house"]
    assert [segment.text for segment in vtt.segments] == ["a man"]
    done = srt.join(shouted(srt.segments))
    assert done == text.replace("a man\n\nand a dog", "A MAN\n\nAND A DOG").replace(
        "a house", "A HOUSE"
    )


def test_styles_inside_a_line_are_kept() -> None:
    text = "1\n0 --> 1\n{\\an8}a {\\i1}man{\\i0} here\n{\\an8}a dog\n"
    assembly = split_srt(text)
    assert [segment.text for segment in assembly.segments] == ["a man here a dog"]
    done = assembly.join(shouted(assembly.segments))
    assert done == "1\n0 --> 1\n{\\an8}A {\\i1}MAN{\\i0} HERE\n{\\an8}A DOG\n"


def test_a_translated_cue_has_as_many_lines_of_about_the_same_share() -> None:
    assembly = split_srt("0 --> 1\nfour words stand here\nand two")
    assert assembly.join([Translation(text="hier stehen vier Wörter und zwei")]) == (
        "0 --> 1\nhier stehen vier Wörter\nund zwei"
    )


def test_a_line_is_never_broken_within_a_tag() -> None:
    assembly = split_srt('0 --> 1\n<font color="#fff">a b</font>\nc')
    done = assembly.join(backwards(assembly.segments))
    assert '<font color="#fff">b a</font>' in done.replace("b\na", "b a")


def test_notes_styles_names_and_moments_of_vtt_are_kept() -> None:
    text = (
        "WEBVTT title here\n\nNOTE a --> b\nc\n\nSTYLE\n::cue {}\n\nname of cue\n"
        "00:01.000 --> 00:02.000 align:start\nHi &amp; <00:01.500>bye <c.x>you</c>\n"
    )
    assembly = split_vtt(text)
    assert [segment.text for segment in assembly.segments] == ["Hi & bye you"]
    assert assembly.join(shouted(assembly.segments)) == text.replace("Hi", "HI").replace(
        "bye", "BYE"
    ).replace("you", "YOU")
    assert "<b>" not in assembly.join([Translation(text="<b>")])


ASS = r"""[Script Info]
Title: a title

[V4+ Styles]
Format: Name, Fontname
Style: a,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,a,,0,0,0,,a note
Dialogue: 0,0:00:01.00,0:00:02.00,a,Ann,0,0,0,,{\an8}{\i1}A man, in a{\i0} blue\Nshirt is here.
Dialogue: 0,0:00:02.00,0:00:03.00,a,,0,0,0,,- Who is it?\N- Me
Dialogue: 0,0:00:02.00,0:00:03.00,a,,0,0,0,,{\p1}m 0 0 l 9 9
Dialogue: 0,0:00:02.00
Dialogue: 0,0:00:03.00,0:00:04.00,a,,0,0,0,,\h\hone\htwo
"""


def test_dialogue_of_substation_alpha_is_translated_and_all_else_kept() -> None:
    assembly = split_ass(ASS)
    assert [segment.text for segment in assembly.segments] == [
        "A man, in a blue shirt is here.",
        "Who is it?",
        "Me",
        "one\u00a0two",
    ]
    assert assembly.join(unchanged(assembly.segments)) == ASS
    expected = ASS.replace(r"\h", "\u00a0")
    for text in (r"A man, in a{\i0} blue\Nshirt is here", "Who is it", "- Me", "one\u00a0two"):
        shouting = text.upper().replace(r"{\I0}", r"{\i0}")
        assert text in expected
        expected = expected.replace(text, shouting)
    assert assembly.join(shouted(assembly.segments)) == expected


def test_fields_of_a_dialogue_are_those_of_its_format() -> None:
    text = "Format: Marked, Start, Text\r\nDialogue: 0,1,a, b\r\n"
    assembly = split_ass(text)
    assert [segment.text for segment in assembly.segments] == ["a, b"]
    assert assembly.join(shouted(assembly.segments)) == text.replace("a, b", "A, B")
