"""Links to sources on the web: files and commits of the repository of a job."""

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, urlsplit

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+(/[\w.~%-]+)+")
_PAGE = re.compile(rf"{_ADDRESS.pattern}/?([?][\w.~%&=+/-]*)?(#[\w.~%&=+/-]*)?")


class JobRepository(NamedTuple):
    """The repository of a CI job of GitHub or GitLab, for links of a pull-request comment.

    Attributes:
        url: Its web address.
        commit: The commit that the job is about.
        folder: Where it is checked out.
        report: The page of the job that has its artifacts.
    """

    url: str = ""
    commit: str = ""
    folder: str = ""
    report: str = ""


class SourceLinks(NamedTuple):
    """The web addresses of files and commits in a pull-request comment; without an address, nothing is linked.

    Attributes:
        url: Of the repository, such as ``https://github.com/OWNER/NAME``; on GitLab with ``/-`` at the end.
        commit: The commit that files are linked at.
        prefix: The folder of the repository that paths of the report are relative to.
        report: The HTML report, or the page that has it.
    """

    url: str = ""
    commit: str = ""
    prefix: str = ""
    report: str = ""

    def file(self, label: str, path: str, line: int) -> str:
        """Return a link to a line of a file; the label alone if there is nothing to link to.

        Args:
            label: Markdown.
            path: As the report names the file.
            line: From 1; 0 for the file as a whole.
        """
        whole = PurePosixPath(self.prefix, path)
        if not (self.url and self.commit and path.isprintable()) or whole.is_absolute() or ".." in whole.parts:
            return label
        anchor = f"#L{line}" if line else ""
        return f"[{label}]({self.url}/blob/{self.commit}/{quote(str(whole))}{anchor})"

    def revision(self, label: str, commit: str) -> str:
        """Return a link to a commit; the label alone if there is nothing to link to."""
        linked = self.url and _COMMIT.fullmatch(commit)
        return f"[{label}]({self.url}/commit/{commit})" if linked else label


NO_LINKS = SourceLinks()


def repository_url(text: str) -> str:
    """Parse the web address of a repository, an option of ``llmeval comment``."""
    if text and _ADDRESS.fullmatch(text.rstrip("/")) is None:
        message = f"found {text!r}, expected a web address such as https://github.com/OWNER/NAME, or '' for no links"
        raise ArgumentTypeError(message)
    return text.rstrip("/")


def page_url(text: str) -> str:
    """Parse the web address of a page, an option of ``llmeval comment``; empty for none."""
    if text and _PAGE.fullmatch(text) is None:
        raise ArgumentTypeError(f"found {text!r}, expected a web address such as https://example.org/report.html")
    return text


def commit_id(text: str) -> str:
    """Parse the hash of a commit, an option of ``llmeval comment``."""
    if _COMMIT.fullmatch(text) is None:
        raise ArgumentTypeError(f"found {text!r}, expected the hash of a commit: 7 to 64 of the digits 0-9 and a-f")
    return text


def job_repository(environment: Mapping[str, str]) -> JobRepository:
    """The repository of the GitHub or GitLab job that this process runs in."""
    if environment.get("GITHUB_SERVER_URL") and environment.get("GITHUB_REPOSITORY"):
        url = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}"
        run = environment.get("GITHUB_RUN_ID", "")
        report = f"{url}/actions/runs/{run}#artifacts" if run.isdecimal() else ""
        return JobRepository(url, environment.get("GITHUB_SHA", ""), environment.get("GITHUB_WORKSPACE", ""), report)
    if environment.get("CI_PROJECT_URL"):
        url = f"{environment['CI_PROJECT_URL'].rstrip('/')}/-"
        report = f"{environment['CI_JOB_URL']}/artifacts/browse" if environment.get("CI_JOB_URL") else ""
        return JobRepository(url, environment.get("CI_COMMIT_SHA", ""), environment.get("CI_PROJECT_DIR", ""), report)
    return JobRepository()


def source_links(repository: JobRepository, commits: Sequence[str], paths: Sequence[str]) -> SourceLinks:
    """The links to files and commits for a pull-request comment.

    Args:
        repository: Where sources are on the web, and the folder in which they are checked out.
        commits: The first one that is the hash of a commit is linked to; then that of the repository.
        paths: Of suite files as the report names them, relative to pytest's rootdir. This is looked for between the
            current folder and the top of the checkout.
    """
    url = repository.url
    report = repository.report if _PAGE.fullmatch(repository.report) else ""
    if _ADDRESS.fullmatch(url) is None:
        return SourceLinks(report=report)
    if "gitlab" in (urlsplit(url).hostname or "") and not url.endswith("/-"):
        url += "/-"
    commit = next((candidate for candidate in (*commits, repository.commit) if _COMMIT.fullmatch(candidate)), "")
    return SourceLinks(url, commit, _prefix(repository.folder, paths), report)


def _prefix(checkout: str, paths: Sequence[str]) -> str:
    """The folder, relative to the top of the checkout, that a report's suite paths start from."""
    here = Path.cwd()
    top = Path(checkout).resolve() if checkout else _top(here)
    for folder in (here, *here.parents):
        if top is None or not folder.is_relative_to(top):
            break
        if any((folder / path).is_file() for path in paths):
            return folder.relative_to(top).as_posix()
    return ""


def _top(folder: Path) -> Path | None:
    """The git repository around a folder; ``None`` if there is none."""
    return next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)
