"""Memory that is free, on machines that are made up: files of `/proc` and `/sys` under another root."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import privbench
from privbench.errors import SpecError
from privbench.fitting.free_memory import free_memory, room_in_container
from privbench.fitting.memory import allowed_memory, plan_store
from privbench.io.open import open_source
from privbench.model.model import compile_codecs

MB = 10**6
ONE = "sys/fs/cgroup/memory"
TWO = "sys/fs/cgroup"
UNLIMITED = 2**63 - 4096


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    write(root, {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"})
    return root


def write(root: Path, files: Mapping[str, object]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n", encoding="utf-8")


def two(group: str, *, most: object, used: int, cached: int = 0, high: object = "max") -> dict[str, object]:
    folder = f"{TWO}{group}"
    stat = f"anon 5\ninactive_file {cached}\nactive_file 7"
    files = {"memory.max": most, "memory.high": high, "memory.current": used, "memory.stat": stat}
    return {f"{folder}/{name}": text for name, text in files.items()}


def one(group: str, *, most: int, used: int, cached: int = 0) -> dict[str, object]:
    stat = f"inactive_file 1\ntotal_inactive_file {cached}"
    files = {"memory.limit_in_bytes": most, "memory.usage_in_bytes": used, "memory.stat": stat}
    return {f"{ONE}{group}/{name}": text for name, text in files.items()}


def test_a_machine_without_control_groups_has_what_it_says(machine: Path) -> None:
    assert free_memory(machine) == 8_192_000_000
    assert room_in_container(machine) is None


def test_a_container_of_version_2_has_its_limit_less_what_is_used_but_for_cached_files(machine: Path) -> None:
    write(machine, {"proc/self/cgroup": "0::/"} | two("", most=2000 * MB, used=900 * MB, cached=400 * MB))
    assert free_memory(machine) == room_in_container(machine) == 1500 * MB


def test_above_memory_high_processes_are_slowed_down_so_it_is_a_limit_too(machine: Path) -> None:
    write(machine, {"proc/self/cgroup": "0::/"} | two("", most="max", high=1000 * MB, used=100 * MB))
    assert free_memory(machine) == 900 * MB


def test_the_tightest_of_nested_groups_counts(machine: Path) -> None:
    groups = two("/pod", most=3000 * MB, used=2500 * MB) | two("/pod/work", most=1000 * MB, used=100 * MB)
    write(machine, {"proc/self/cgroup": "0::/pod/work"} | groups)
    assert room_in_container(machine) == 500 * MB


def test_a_path_of_the_host_falls_back_to_the_groups_that_are_there(machine: Path) -> None:
    write(machine, {"proc/self/cgroup": "0::/docker/4f3a"} | two("", most=700 * MB, used=200 * MB))
    assert room_in_container(machine) == 500 * MB


def test_a_container_of_version_1(machine: Path) -> None:
    listed = "12:cpu,cpuacct:/box\n4:hugetlb,memory:/box\n1:name=systemd:/box\n0::/"
    groups = one("/box", most=600 * MB, used=300 * MB, cached=100 * MB) | one("", most=UNLIMITED, used=10**9)
    write(machine, {"proc/self/cgroup": listed} | groups)
    assert free_memory(machine) == 400 * MB


def test_the_huge_number_of_version_1_is_no_limit(machine: Path) -> None:
    write(machine, {"proc/self/cgroup": "4:memory:/"} | one("", most=UNLIMITED, used=10**9))
    assert room_in_container(machine) is None


def test_a_group_that_is_full_has_no_room_left(machine: Path) -> None:
    write(machine, {"proc/self/cgroup": "0::/"} | two("", most=100 * MB, used=120 * MB))
    assert free_memory(machine) == 0


@pytest.mark.parametrize("text", ["", "nonsense", "0:", "a:memory", "0::/../../..", "4:memory:/x\n\x00"])
def test_files_that_say_nothing_are_no_limit(text: str, machine: Path) -> None:
    write(machine, {"proc/self/cgroup": text})
    assert room_in_container(machine) is None


def test_a_fit_takes_no_more_than_its_container_has_left(machine: Path, tmp_path: Path) -> None:
    write(machine, {"proc/self/cgroup": "0::/"} | two("", most=100 * MB, used=40 * MB))
    assert allowed_memory(None, machine) == 30 * MB
    assert allowed_memory(10**12, machine) == 60 * MB
    assert allowed_memory(10 * MB, machine) == 10 * MB
    (tmp_path / "t.csv").write_text("id,n\n1,2\n", encoding="utf-8")
    spec = privbench.draft(tmp_path, unit="t", domains="data")
    codecs = compile_codecs(spec, spec.protection())
    with open_source(tmp_path) as opened, pytest.raises(SpecError, match=r"the container .* has 60 MB left"):
        plan_store(opened, spec.protection(), codecs, memory=10**12, in_one_part=False, root=machine)
