"""Every dialect of HDF5 against the contract of loaders."""

from collections.abc import Mapping
from pathlib import Path

import h5py
from loader_contract import Array, LoaderContract, Put


class TestTorchXray(LoaderContract):
    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        with h5py.File(folder / "globalrank-1_localrank-0.h5", "w") as file:
            step = file.create_group("3", track_order=True)
            for key, array in arrays.items():
                put(step, f"{key}.Linear.0.forward_output.0", array)

    def name(self, key: str) -> str:
        return f"step3/rank1/{key}.Linear.0.forward_output.0"


class TestRankFlat(LoaderContract):
    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        with h5py.File(folder / "rank_2.hf5", "w") as file:
            for key, array in arrays.items():
                put(file, f"step_4_{key}_forward_input_0", array)

    def in_order(self, _: list[str]) -> None:
        return None

    def name(self, key: str) -> str:
        return f"step4/rank2/{key}_forward_input_0"


class TestAnyHdf5(LoaderContract):
    def in_order(self, _: list[str]) -> list[str]:
        first = [
            f"head.{name}" for name in ["bool", "complex64", "empty", "long", "scalar", "uint8"]
        ]
        second = ["layers.1.float8_e4m3fn", "layers.1.float64"]
        third = ["layers.2.bfloat16", "layers.2.float16", "layers.3.float8_e5m2", "layers.3.int64"]
        return [*first, *second, *third, "layers.10.float32"]

    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        with h5py.File(folder / "any.bin", "w", userblock_size=1024) as file:
            for key, array in arrays.items():
                put(file, key.replace(".", "/"), array)

    def name(self, key: str) -> str:
        return key.replace(".", "/")


class TestOrderedHdf5(LoaderContract):
    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        with h5py.File(folder / "step5.h5", "w", track_order=True) as file:
            for key, array in arrays.items():
                put(file, key, array)

    def name(self, key: str) -> str:
        return f"step5/{key}"


class TestPrecisionDump(LoaderContract):
    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        with h5py.File(folder / "step0_rank0.h5", "w") as file:
            root = {"format": "precision-dump", "format_version": 1, "step": 0, "rank": 0}
            file.attrs.update({**root, "complete": True, "provenance": "{}"})
            for order, (key, array) in enumerate(arrays.items()):
                dataset = put(file, f"{key}@0/forward_output.0", array)
                said = {"pass": "forward", "slot": "output", "argument": "0", "call": 0}
                dataset.attrs.update({"module": key, "order": order, **said})

    def name(self, key: str) -> str:
        return f"step0/rank0/{key}@0/forward_output.0"
