"""Real French text from end to end with the smoke budget; skipped, saying so, where it is absent."""

from tinytx_run.fit import fit


def test_novels_then_reviews_run_to_the_end(shared_data, tmp_path):
    prose = tmp_path / "novels.txt"
    lines = (shared_data / "eltec-fra" / "corpus.valid.txt").read_text(encoding="utf-8").splitlines()
    prose.write_text("\n".join(lines[:1500]), encoding="utf-8")
    pretrained = fit(prose, budget="smoke", out=tmp_path / "lm", device="cpu")
    assert pretrained.evaluation.score.n_tokens > 0
    results = [
        fit(
            "cls-books",
            objective="classification",
            start=tmp_path / "lm",
            fresh=fresh,
            data_dir=shared_data,
            budget="smoke",
            out=tmp_path / f"classifier-{fresh}",
            device="cpu",
        )
        for fresh in (False, True)
    ]
    for result in results:
        assert result.data["n_labels"] == 1000 and result.data["n_cut_in_training"] > 0
        low, high = result.evaluation.score.interval
        assert 0 < low < result.evaluation.score.accuracy < high < 1
