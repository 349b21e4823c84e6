"""Real French text from end to end with the smoke budget; skipped, saying so, where it is absent."""

from tinytx_run.finetune import finetune
from tinytx_run.pretrain import pretrain
from tinytx_run.training import RunOptions


def test_novels_then_reviews_run_to_the_end(shared_data, tmp_path):
    prose = tmp_path / "novels.txt"
    lines = (shared_data / "eltec-fra" / "corpus.valid.txt").read_text(encoding="utf-8").splitlines()
    prose.write_text("\n".join(lines[:1500]), encoding="utf-8")
    pretrained = pretrain(prose, budget="smoke", out=tmp_path / "lm", options=RunOptions(device="cpu"))
    assert pretrained.evaluation.score.n_tokens > 0
    results = [
        finetune(
            tmp_path / "lm",
            "cls-books",
            body=body,
            budget="smoke",
            out=tmp_path / body,
            options=RunOptions(device="cpu", data_dir=shared_data),
        )
        for body in ("pretrained", "fresh")
    ]
    for result in results:
        assert result.class_names == ("negative", "positive")
        assert result.data["n_labels"] == 1000 and result.data["n_cut_in_training"] > 0
        low, high = result.evaluation.score.interval
        assert 0 < low < result.evaluation.score.accuracy < high < 1
