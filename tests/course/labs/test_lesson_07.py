"""The rows that the GPT of lesson 07 reads, framed and not too long, and its loss on them."""

import math

import pytest
import torch

from tinytx_course.labs.lesson_07 import LONGEST, loss_of, read_rows


def test_rows_of_a_file_are_framed_and_cut_and_say_the_texts(tmp_path):
    file = tmp_path / "text.txt"
    long = " ".join(f"mot{n}" for n in range(3 * LONGEST))
    file.write_text("\n".join([*(f"le chat {n} dort" for n in range(60)), long]), encoding="utf-8")
    corpus, tokenizer, rows, held_out = read_rows(file)
    for texts, encoded in ((corpus.train.texts, rows), (corpus.valid.texts[:100], held_out)):
        assert len(texts) == len(encoded) > 0
        for text, row in zip(texts, encoded, strict=True):
            assert (row[0], row[-1]) == (tokenizer.bos_id, tokenizer.eos_id) and len(row) <= LONGEST
            assert text == long or tokenizer.decode(row[1:-1]) == text


class Counting(torch.nn.Module):
    """The logits of token k are ln k, whatever was read, so its probability is k / 10."""

    def forward(self, ids):
        assert (ids >= 0).all()
        return torch.arange(5.0).log().expand(*ids.shape, 5)


def test_a_loss_is_the_mean_over_tokens_that_came_and_padding_is_none():
    loss = loss_of(Counting(), [[0, 4, 3, 1], [2, 4]])
    assert loss.item() == pytest.approx(-(2 * math.log(0.4) + math.log(0.3) + math.log(0.1)) / 4)
