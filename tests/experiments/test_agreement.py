"""Only an n-gram model that is long enough sees the noun that an adjective agrees with."""

import pytest

from experiments.agreement import READER, agreement


@pytest.mark.slow
def test_the_noun_is_out_of_reach_of_all_but_the_longest_n_gram_model(once, monkeypatch):
    monkeypatch.setenv("TINYTX_BUDGET", "smoke")
    found, records = once(agreement)
    far = found.set_index("reader")[["far, least", "far, most"]]
    assert far.loc[["2-gram", "3-gram", "4-gram", "5-gram"]].stack().between(0.4, 0.6).all()
    assert far.loc["7-gram", "far, least"] > 0.6
    assert records[f"{READER}/seed 1"]["n_steps"] == 30
