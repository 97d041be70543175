"""Does an export answer as the Translator does?"""

from keras_transformer.exporting.parity.check import check_parity
from keras_transformer.exporting.parity.process import ParityError

__all__ = ["ParityError", "check_parity"]
