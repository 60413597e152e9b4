"""msprobe: find where two runs of a model part ways, and where one run goes wrong by itself."""

from importlib import metadata

__version__ = "0.1.0"

_OTHER_DISTRIBUTION = "mindstudio-probe"


def _refuse_to_mix() -> None:
    """Both distributions install a package called msprobe: installed together, one has overwritten files of the other."""
    try:
        other = metadata.version(_OTHER_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"msprobe {__version__} and {_OTHER_DISTRIBUTION} {other} are installed in the same environment and overwrite each "
        f"other's files: run `pip uninstall {_OTHER_DISTRIBUTION}`, then `pip install --force-reinstall msprobe`, or use one "
        "environment for each"
    )


_refuse_to_mix()
