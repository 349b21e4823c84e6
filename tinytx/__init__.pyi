"""The public names of tinytx, each once: read by type checkers, and by `__init__.py`."""

from tinytx.attention import MultiHeadAttention as MultiHeadAttention
from tinytx.attention import attention as attention
from tinytx.attention import attention_weights as attention_weights
from tinytx.attention import record_attention as record_attention
from tinytx.classifier import Classifier as Classifier
from tinytx.config import PRESETS as PRESETS
from tinytx.config import TransformerConfig as TransformerConfig
from tinytx.counting import count_parameters as count_parameters
from tinytx.counting import parameter_table as parameter_table
from tinytx.encoder_decoder import Translator as Translator
from tinytx.generate import Sampling as Sampling
from tinytx.generate import generate as generate
from tinytx.masked_lm import MaskedLanguageModel as MaskedLanguageModel
from tinytx.masks import causal_mask as causal_mask
from tinytx.masks import combine_masks as combine_masks
from tinytx.masks import padding_mask as padding_mask
from tinytx.positions import alibi_bias as alibi_bias
from tinytx.positions import rotate as rotate
from tinytx.positions import shift_matrix as shift_matrix
from tinytx.positions import sinusoidal_positions as sinusoidal_positions
from tinytx.tokenizer import Tokenizer as Tokenizer
from tinytx.transformer import Block as Block
from tinytx.transformer import LanguageModel as LanguageModel
from tinytx.transformer import Transformer as Transformer
from tinytx.translate import translate as translate

# Names of the packages that are built on it: `tx.pretrain` and `tx.World` work, too.
from tinytx_course.counting.costs import cost_table as cost_table
from tinytx_course.counting.diagnosis import diagnose_count as diagnose_count
from tinytx_run.checkpoint import load as load
from tinytx_run.checkpoint import save as save
from tinytx_run.classify import classify as classify
from tinytx_run.corpora import load_corpus as load_corpus
from tinytx_run.evaluate import evaluate as evaluate
from tinytx_run.finetune import finetune as finetune
from tinytx_run.pretrain import pretrain as pretrain
from tinytx_run.pretrain import train_translator as train_translator
from tinytx_run.training import RunOptions as RunOptions
from tinyworld.reviews import Review as Review
from tinyworld.world import World as World

__version__: str
_HOME: dict[str, str]
