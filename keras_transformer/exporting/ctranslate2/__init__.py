"""The Translator as a model of CTranslate2."""
