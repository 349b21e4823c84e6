"""How models learn: joins `tinytx.model` and `tinytx.text`.

settings      steps, rates, precision                budgets       recipes by name, or seconds
objectives    what is predicted                      loop          one training loop
published     models of others
checkpoints   models on disk                         runfolder     runs that can be gone on with
seals         checksums of files                     moments       optimizer and random states by name
locks         one process a folder                   files         written whole or not at all
evaluation    loss, perplexity, accuracy             scoring       a model against a split
intervals     Wilson, Student                        plans         what a run was asked to do
sampling      choosing next tokens                   experiments   several seeds, kept results
decoding      one text; many: many texts             nextword      from pieces to whole words
continuing    rows of ids side by side, id by id
pretraining, finetuning    from corpus to figures in one call
muon          an optimizer for matrices              outputloss    the loss over a large vocabulary
distributed   several processes, one model           learners      gradients: alone, copied, sharded
launching     torchrun from a notebook               scaling       what a second process brings

masking           which tokens are hidden            sentence_pairs    does one follow the other?
masked_objective  what a masked model learns         blanks            one blank at a time
tasks             model and objective of a recipe    completing        texts from blanks
objectives_experiment, contest, objective_measures   causal against masked, kept results

translators             from pairs of sentences to a translator in one call
translation_objective   what it learns               translation_recipes     how much is spent
beamsearch              greedy and beam search       translation_steps       one step of the decoder
translating             texts in, texts out          bleu                    BLEU and chrF
translation_scoring     a translator on a split      alignment               where it looks
translation_experiment, broken_translation           kept results

transfer_experiment     does it pay to learn something before the labels?
completions_experiment  "Bonjour les", after real French
"""

from tinytx.training.beamsearch import Search
from tinytx.training.blanks import BlankScore, evaluate_blanks, fill_probs
from tinytx.training.bleu import TranslationScore, score_translations
from tinytx.training.budgets import (
    BUDGETS,
    FinetuneRecipe,
    Recipe,
    corpus_kind,
    default_budget,
    plan,
    plan_finetuning,
)
from tinytx.training.checkpoints import load, load_tokenizer, save
from tinytx.training.decoding import Generation, generate, generate_ids, next_token_probs
from tinytx.training.distributed import LostProcessError, Processes, joined
from tinytx.training.evaluation import (
    ClassifierScore,
    LanguageModelScore,
    class_probabilities,
    evaluate_classifier,
    evaluate_language_model,
    text_nats,
)
from tinytx.training.finetuning import FinetuneResult, finetune
from tinytx.training.intervals import Interval, PairedInterval, paired_interval, wilson_interval
from tinytx.training.launching import LaunchError, launch
from tinytx.training.loop import DivergenceError, History, TrainingInterrupted, train
from tinytx.training.many import generate_many
from tinytx.training.masked_objective import MaskedObjective
from tinytx.training.masking import Masking, mask_tokens
from tinytx.training.nextword import next_word_probs
from tinytx.training.objectives import (
    CausalObjective,
    ClassificationObjective,
    causal_batch,
    classification_loss,
    language_model_loss,
)
from tinytx.training.pretraining import (
    PretrainResult,
    pretrain,
    train_tokenizer,
)
from tinytx.training.runfolder import RunFolder
from tinytx.training.scoring import Evaluation, evaluate_checkpoint, evaluate_split, exact_nats
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.subsets import label_subset
from tinytx.training.tasks import causal_objective, new_language_model
from tinytx.training.translating import Translation, translate
from tinytx.training.translation_scoring import TranslationEvaluation, evaluate_translator
from tinytx.training.translators import TranslatorResult, train_translator

__all__ = [
    "BUDGETS",
    "BlankScore",
    "CausalObjective",
    "ClassificationObjective",
    "ClassifierScore",
    "DivergenceError",
    "Evaluation",
    "FinetuneRecipe",
    "FinetuneResult",
    "Generation",
    "History",
    "Interval",
    "LanguageModelScore",
    "LaunchError",
    "Layout",
    "LostProcessError",
    "MaskedObjective",
    "Masking",
    "PairedInterval",
    "PretrainResult",
    "Processes",
    "Recipe",
    "RunFolder",
    "Search",
    "TrainingInterrupted",
    "TrainingSettings",
    "Translation",
    "TranslationEvaluation",
    "TranslationScore",
    "TranslatorResult",
    "causal_batch",
    "causal_objective",
    "choose_device",
    "choose_precision",
    "class_probabilities",
    "classification_loss",
    "corpus_kind",
    "default_budget",
    "evaluate_blanks",
    "evaluate_checkpoint",
    "evaluate_classifier",
    "evaluate_language_model",
    "evaluate_split",
    "evaluate_translator",
    "exact_nats",
    "fill_probs",
    "finetune",
    "generate",
    "generate_ids",
    "generate_many",
    "joined",
    "label_subset",
    "language_model_loss",
    "launch",
    "load",
    "load_tokenizer",
    "mask_tokens",
    "new_language_model",
    "next_token_probs",
    "next_word_probs",
    "paired_interval",
    "plan",
    "plan_finetuning",
    "pretrain",
    "save",
    "score_translations",
    "text_nats",
    "train",
    "train_tokenizer",
    "train_translator",
    "translate",
    "wilson_interval",
]
