"""Sample translations: sentence by sentence, set by set."""

from tests.explain.training.made import SENTENCES, validation

from heed.explain.training import samples
from heed.explain.training.samples import Samples


def test_each_set_shows_what_changed_since_the_one_before() -> None:
    found = Samples()
    found.add(validation(20, 1.0, "Zwei Katzen.", "Ein Mann."), step=20, epoch=0.5)
    found.add(validation(40, 2.0, "Zwei Hunde."), step=40, epoch=1.0)
    spelled = found.as_dict()
    assert spelled["sentences"] == [{"src": src, "ref": ref} for src, ref in SENTENCES]
    first, second = spelled["sets"]
    assert first["translations"][1]["changes"] == [["new", "Ein Mann."]]
    assert second["translations"][0] == {
        "hyp": "Zwei Hunde.",
        "chrf": 50.0,
        "changes": [["same", "Zwei "], ["gone", "Katzen."], ["new", "Hunde."]],
    }
    assert second["translations"][1] is None


def test_of_many_sets_the_first_and_the_last_stay() -> None:
    found = Samples()
    for step in range(1000):
        found.add(validation(step, 1.0, f"{step}"), step=step, epoch=None)
    assert len(found.sets) <= samples.MAX_SETS
    assert (found.sets[0].step, found.sets[-1].step) == (0, 999)
