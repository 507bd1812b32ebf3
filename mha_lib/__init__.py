"""Multi-head attention that you can read, check and use.

``mha_lib.numpy`` is the readable path, ``mha_lib.torch`` the same names in PyTorch. Importing this package imports neither.
"""

__version__ = "0.1.0"
