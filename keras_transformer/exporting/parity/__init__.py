"""Does an export answer as the Translator does?"""
