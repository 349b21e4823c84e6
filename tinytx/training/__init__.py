"""How models learn: joins `tinytx.model` and `tinytx.text`.

From a corpus to figures:

pretraining, finetuning    each in one call            settings     steps, rates, precision
budgets       recipes by name, or seconds              precision    where bfloat16 pays
plans         what a run was asked to do               tasks        model and objective of a recipe
objectives    what is predicted                        streams      one long text, each token once
subsets       a few labels out of many                 epochs       where passes end
evaluation    loss, perplexity, accuracy               scoring      a model against a split
intervals     Wilson, Student                          published    models of others

What they rest on, a folder each:

engine        from a batch to new weights              parallel     several processes, one model
runs          what is left on disk                     generation   from probabilities to text
masked        models that see both sides               translation  pairs of sentences
experiments   questions with numbers for answers
"""

from tinytx.training.budgets import (
    BUDGETS,
    FinetuneRecipe,
    Recipe,
    corpus_kind,
    default_budget,
    plan,
    plan_finetuning,
)
from tinytx.training.engine.loop import DivergenceError, History, TrainingInterrupted, train
from tinytx.training.evaluation import (
    ClassifierScore,
    LanguageModelScore,
    class_probabilities,
    evaluate_classifier,
    evaluate_language_model,
    text_nats,
)
from tinytx.training.finetuning import FinetuneResult, finetune
from tinytx.training.generation.beamsearch import Search
from tinytx.training.generation.decoding import Generation, generate, generate_ids, next_token_probs
from tinytx.training.generation.many import generate_many
from tinytx.training.generation.nextword import next_word_probs
from tinytx.training.intervals import Interval, PairedInterval, paired_interval, wilson_interval
from tinytx.training.masked.blanks import BlankScore, evaluate_blanks, fill_probs
from tinytx.training.masked.masking import Masking, mask_tokens
from tinytx.training.masked.objective import MaskedObjective
from tinytx.training.objectives import (
    CausalObjective,
    ClassificationObjective,
    causal_batch,
    classification_loss,
    language_model_loss,
)
from tinytx.training.parallel.distributed import LostProcessError, Processes, joined
from tinytx.training.parallel.launching import LaunchError, launch
from tinytx.training.pretraining import (
    PretrainResult,
    pretrain,
    train_tokenizer,
)
from tinytx.training.runs.checkpoints import load, load_tokenizer, save
from tinytx.training.runs.runfolder import RunFolder
from tinytx.training.scoring import Evaluation, evaluate_checkpoint, evaluate_split, exact_nats
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.subsets import label_subset
from tinytx.training.tasks import causal_objective, new_language_model
from tinytx.training.translation.bleu import TranslationScore, score_translations
from tinytx.training.translation.scoring import TranslationEvaluation, evaluate_translator
from tinytx.training.translation.translating import Translation, translate
from tinytx.training.translation.translators import TranslatorResult, train_translator

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
