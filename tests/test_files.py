"""A file is written as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from downclock.errors import InvalidInput
from downclock.files import csv_text, read_text, write_bytes_atomically, write_text_atomically


def test_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_text_atomically(path, "old\n")
    write_text_atomically(path, "new ü\n")
    assert path.read_bytes() == "new ü\n".encode()
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InvalidInput, match=r"out\.json: cannot be written: No space left"):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_an_interrupt_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bytes_atomically(tmp_path / "out", b"new")
    assert os.listdir(tmp_path) == []


def test_permissions_follow_the_umask_or_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    mask = os.umask(0o027)
    try:
        write_bytes_atomically(path, b"1")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    write_bytes_atomically(path, b"2")
    assert path.stat().st_mode & 0o777 == 0o604


def test_a_link_keeps_pointing_at_its_file(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_devices_are_written_to_directly() -> None:
    write_text_atomically("/dev/null", "gone")
    assert not Path("/dev/null").is_file()


def test_folders_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder, not a file"):
        write_text_atomically(tmp_path, "x")
    with pytest.raises(InvalidInput, match="its folder does not exist"):
        write_text_atomically(tmp_path / "none" / "out", "x")
    assert os.listdir(tmp_path) == []


def test_a_file_one_may_not_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InvalidInput, match=r"a\.toml: may not be read \(no permission\)"):
        read_text(tmp_path / "a.toml")


def test_text_comes_without_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert read_text(path) == "a = 1\nb = 2\n"


def test_csv_has_the_columns_in_order_and_quotes_what_needs_it() -> None:
    rows = [{"b": 1.5, "a": 'say "x", y'}, {"a": None, "b": 2}]
    assert csv_text(["a", "b"], rows) == 'a,b\n"say ""x"", y",1.5\n,2\n'
    with pytest.raises(ValueError, match="'c'"):
        csv_text(["a"], [{"a": 1, "c": 2}])
