"""Reading the small files of arrays that lie beside the loaders."""

import zipfile

import numpy as np


def read(path, names, module):
    """The arrays in the .npz file `path`, of which it must hold `names`; `python -m mha_lib.data.{module}` makes it.

    Errors: FileNotFoundError or ValueError that says which file is missing or damaged, and how to get it again.
    """
    how = f"make it again with `python -m mha_lib.data.{module}`, or reinstall mha-lib"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; {how}")
    try:
        with path.open("rb") as file, np.load(file) as archive:
            arrays = dict(archive)
    except (OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile):
        raise ValueError(f"{path} is damaged: it must be an .npz file of arrays; {how}") from None
    lacking = [name for name in names if name not in arrays]
    if lacking:
        raise ValueError(f"{path} is another file: it must hold the array {lacking[0]!r}; {how}")
    return arrays
