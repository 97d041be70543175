"""The subcommands of `keras-transformer`, one a file or a folder.

Each has `add_parser(subparsers)` and `run(arguments, output)`, which writes
its result to the text stream `output`.
"""
