import subprocess

import pytest

from dpbench.errors import DpbenchError
from dpbench.worktree import worktree


def git(where, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(where), *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    (root / "inner").mkdir(parents=True)
    git(root, "init", "--quiet")
    for text in ("old", "new"):
        (root / "inner" / "file.txt").write_text(text)
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", text)
    return root


def trees(repository):
    return len(git(repository, "worktree", "list").splitlines())


def test_the_source_is_as_it_was_in_the_same_folder_and_gone_afterwards(repository):
    with worktree("HEAD~1", repository / "inner") as tree:
        assert (tree / "file.txt").read_text() == "old"
        assert trees(repository) == 2
    assert not tree.exists()
    assert trees(repository) == 1
    assert (repository / "inner" / "file.txt").read_text() == "new"


def test_it_is_gone_whatever_happens_meanwhile(repository):
    with pytest.raises(KeyboardInterrupt), worktree("HEAD", repository) as tree:
        (tree / "made.txt").write_text("left behind")
        raise KeyboardInterrupt
    assert not tree.exists()
    assert trees(repository) == 1


@pytest.mark.parametrize("reference", ["no-such-branch", "--help"])
def test_what_is_no_reference_says_what_to_do(repository, reference):
    with (
        pytest.raises(DpbenchError, match="neither a results file nor a git reference"),
        worktree(reference, repository),
    ):
        pass


def test_outside_of_a_checkout_and_without_git_it_says_so(tmp_path, repository, monkeypatch):
    with pytest.raises(DpbenchError, match="not a git repository"), worktree("HEAD", tmp_path):
        pass
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DpbenchError, match="git is not installed.*give a results file"), worktree("HEAD", repository):
        pass


def test_in_a_hook_the_index_of_the_commit_stays_as_it_is(repository, monkeypatch):
    """git tells its hooks which index they work on; a worktree that believed it would write the base into that."""
    (repository / "inner" / "file.txt").write_text("staged")
    git(repository, "add", ".")
    staged = git(repository, "diff", "--cached")
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    with worktree("HEAD~1", repository) as tree:
        assert (tree / "inner" / "file.txt").read_text() == "old"
    assert git(repository, "diff", "--cached") == staged
