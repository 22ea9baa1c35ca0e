"""Subtitles: times are kept, the lines of a cue are one text."""

from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.subtitles import split_srt, split_vtt
from heed.translate.result import Translation

CUE = ["1\n", "0 --> 1\n", "a b", " a b \n", " ", "\n", "\r\n", "NOTE x\n"]
MARKS = ["- ", "<i>", "</i>", "<0:1>", "{\\i1}", "<font\nx>"]
SOUP = st.lists(st.sampled_from([*CUE, *MARKS])).map("".join)

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
    for split in (split_srt, split_vtt):
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
