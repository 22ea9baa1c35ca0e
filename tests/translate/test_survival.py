"""Changed copies of a test set: each line changed in the way its row says, decided by the seed."""

import pytest

from heed.evaluate.survival import PAIR, Trial, is_kept, without
from heed.text.invent import SPANS
from heed.text.scripts import main_script
from heed.translate.survival import Original, make_trials

ENGLISH = [
    "A man is riding a bike.",
    "Two dogs don't play in the snow!",
    "New York is a city",
    "Press <b>OK</b> to save %s.",
] * 11
GERMAN = [
    "Ein Mann fährt Fahrrad.",
    "Zwei Hunde spielen nicht im Schnee!",
    "New York ist eine Stadt",
    "Klicken Sie auf <b>OK</b>, um %s zu speichern.",
] * 11
CHINESE = ["一个人在骑自行车。", "汤姆已经睡了。"] * 11


def trials_of(original: Original) -> dict[str, Trial]:
    return {trial.key: trial for trial in make_trials(original)}


@pytest.fixture(scope="module")
def trials() -> dict[str, Trial]:
    return trials_of(Original(ENGLISH, [GERMAN], "en", "de"))


def test_the_first_trial_is_the_test_set_itself(trials: dict[str, Trial]) -> None:
    first = next(iter(trials.values()))
    assert (first.key, list(first.sources)) == ("clean", ENGLISH)


def test_the_seed_decides(trials: dict[str, Trial]) -> None:
    assert trials_of(Original(ENGLISH, [GERMAN], "en", "de", seed=1)) == trials
    assert trials_of(Original(ENGLISH, [GERMAN], "en", "de", seed=2)) != trials


def test_only_lines_that_changed_are_in_a_row(trials: dict[str, Trial]) -> None:
    for key in ("upper", "title", "lower", "typo", "no_end", "double_end", "spaces", "quotes"):
        trial = trials[key]
        assert trial.sources
        assert len(trial.sources) == len(trial.numbers) == len(trial.references[0])
        for source, number, reference in zip(
            trial.sources, trial.numbers, trial.references[0], strict=True
        ):
            assert source != ENGLISH[number]
            assert reference == GERMAN[number]
    assert {number % 4 for number in trials["no_end"].numbers} == {0, 1, 3}
    assert {number % 4 for number in trials["quotes"].numbers} == {1}


def test_a_pair_of_tags_encloses_words_where_a_blank_precedes_the_final_mark() -> None:
    french = ["Bonjour !"] * 200
    trial = trials_of(Original(french, [french], "fr", "fr"))["spans"]
    assert PAIR in trial.kinds
    for source, kind, spans in zip(trial.sources, trial.kinds, trial.spans, strict=True):
        assert kind != PAIR or "Bonjour".join(spans) in source


def test_every_kind_of_span_is_inserted_and_can_be_taken_out_again(
    trials: dict[str, Trial],
) -> None:
    trial = trials["spans"]
    assert set(trial.kinds) == {*SPANS, PAIR}
    for source, number, spans, kind in zip(
        trial.sources, trial.numbers, trial.spans, trial.kinds, strict=True
    ):
        assert is_kept(spans, source, kind=kind)
        rest = without(source, spans).replace(" ", "")
        assert rest == ENGLISH[number].replace(" ", "")


def test_fields_of_the_test_set_itself_are_counted(trials: dict[str, Trial]) -> None:
    trial = trials["own_spans"]
    assert set(trial.sources) == {"Press <b>OK</b> to save %s."}
    assert trial.spans[0] == ("<b>", "</b>", "%s")
    assert is_kept(trial.spans[0], GERMAN[3], kind="own")


def test_a_name_stands_in_source_and_reference(trials: dict[str, Trial]) -> None:
    trial = trials["names"]
    for source, reference, (name,) in zip(
        trial.sources, trial.references[0], trial.spans, strict=True
    ):
        assert source.count(name) == reference.count(name) == 1
    # `York` stands on both sides, so it is a name that another one may take the place of.
    name = trial.spans[2][0]
    assert (trial.sources[2], trial.references[0][2]) == (
        f"New {name} is a city",
        f"New {name} ist eine Stadt",
    )


def test_other_languages_are_those_not_read(trials: dict[str, Trial]) -> None:
    assert "en" not in trials["foreign"].kinds
    assert {"de", "ru", "zh", "ar"} <= set(trials["foreign"].kinds)
    unknown = trials_of(Original(ENGLISH, [GERMAN]))["foreign"]
    assert "say it with -s" in unknown.reason


def test_a_script_without_case_has_no_rows_about_case() -> None:
    found = trials_of(Original(CHINESE, [ENGLISH[:2] * 11], "zh", "en"))
    for key in ("upper", "title", "lower"):
        assert found[key].reason == "the lines have no capitals"
        assert not found[key].sources
    for key in ("typo", "no_end", "double_end", "spaces", "spans", "names"):
        assert len(found[key].sources) == len(CHINESE), key
    assert {main_script(name) for (name,) in found["names"].spans} == {"latin"}
    spans = found["spans"]
    assert all(is_kept(*each) for each in zip(spans.spans, spans.sources, strict=True))


def test_several_references_are_changed_alike() -> None:
    found = trials_of(Original(ENGLISH, [GERMAN, GERMAN], "en", "de"))
    assert found["names"].references[0] == found["names"].references[1]
    assert len(found["typo"].references) == 2
