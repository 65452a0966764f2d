"""The command ``llmeval emotion-cause``: converting and validating files of emotion-cause pairs."""

__all__ = ("add_arguments",)

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.tasks.emotion_cause.pair_files import ID, PairFile, read_pair_file

if TYPE_CHECKING:
    from pytest_llmeval.tasks.emotion_cause.pairs import SubmissionFault, Subtask


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    convert = actions.add_parser("convert", help="convert between the forms of files", description=_CONVERT)
    convert.add_argument("file", type=Path, help="gold or predictions")
    convert.add_argument(
        "--from", dest="source", required=True, choices=("internal", "official", "text"), help="the form of the file"
    )
    convert.add_argument(
        "--to", required=True, choices=("internal", "internal-spans", "official"), help="the form to convert to"
    )
    _add_subtask(convert)
    convert.add_argument(
        "--conversations",
        type=Path,
        metavar="FILE",
        help="official file with the utterances that spans are located in; all its conversations are written",
    )
    convert.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: standard output)")
    convert.set_defaults(run=_convert, refuse=convert.error)
    validate = actions.add_parser("validate", help="list every fault of a submission", description=_VALIDATE)
    validate.add_argument("file", type=Path, metavar="submission", help="the JSON file to submit")
    _add_subtask(validate)
    validate.add_argument("--gold", type=Path, metavar="FILE", help="official gold file, to find missing conversations")
    validate.set_defaults(run=_validate)


_CONVERT = (
    "internal: a list of [conversation, emotion utterance, cause utterance, number of the emotion]. "
    "internal-spans: the same with first token and the token after the last before the emotion. "
    "official: a submission. text: a file with the words of spans, such as official gold."
)
_VALIDATE = "The exit code is 1 if there is a fault."


def _add_subtask(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--subtask", type=int, required=True, choices=(1, 2), help="1: cause spans; 2: cause utterances"
    )


def _convert(options: Namespace) -> int:
    from pytest_llmeval.tasks.emotion_cause.pair_files import convert_pairs, internal_text, official_text

    file = _read(options.file)
    conversations = _read_official(options.conversations) if options.conversations is not None else None
    converted = convert_pairs(file, options.source, options.subtask, conversations)
    file.faults.check()
    if options.to == "official":
        text = official_text(converted.pairs)
    else:
        text = internal_text(converted.pairs, with_spans=options.to == "internal-spans")
    if options.output is not None:
        write_text(options.output, [text])
    say((f"note: {each}" for each in converted.notes), error=True)
    if options.output is None:
        sys.stdout.write(text)
    return 0


def _validate(options: Namespace) -> int:
    from pytest_llmeval.tasks.emotion_cause.pairs import validate_submission

    file = _read(options.file)
    gold = _read_official(options.gold) if options.gold is not None else None
    wanted = [{ID: number} for number in gold.conversations] if gold is not None else None
    faults = validate_submission(file.document.data, options.subtask, wanted)
    if faults:
        say(_placed(file, each) for each in faults)
        say([counted(len(faults), "fault")])
        return 1
    pairs = [raw for each in file.conversations.values() for _, raw in each.rows]
    found = f"{counted(len(file.conversations), 'conversation')}, {counted(len(pairs), 'pair')}"
    say([f"{options.file}: no fault in {found}"])
    say(_respelled(pairs, options.subtask))
    return 0


def _placed(file: PairFile, fault: "SubmissionFault") -> Fault:
    """Return a fault, with its place in the file if it is about one pair."""
    line = column = 0
    if fault.position and not file.internal:
        place, _ = file.conversations[fault.conversation].rows[fault.position - 1]
        line, column = file.document.locate(place)
    return Fault(file.document.file, line, column, "", str(fault))


def _respelled(pairs: Iterable[Any], subtask: "Subtask") -> Iterator[str]:
    """Yield a note if pairs are spelled otherwise than in official files: the official script may not read them."""
    from pytest_llmeval.tasks.emotion_cause.pairs import PairFault, format_pair, parse_pair, quoted

    found = []
    for raw in pairs:
        with suppress(PairFault):  # of a conversation without gold, which is not scored
            if format_pair(parse_pair(raw, subtask)) != raw:
                found.append(raw)
    if found:
        advice = f"llmeval emotion-cause convert --from official --to official --subtask {subtask}"
        like = f"{counted(len(found), 'pair')} such as {quoted(found[0])}"
        yield f"note: found {like}, which {advice} writes as official files do"


def _read(path: Path) -> PairFile:
    faults = FaultLog(str(path))
    file = read_pair_file(path, faults)
    if file is None:
        raise SuiteError(faults.listed())
    return file


def _read_official(path: Path) -> PairFile:
    """Read a file that has to be official.

    Raises:
        SuiteError: It is not, or it has faults.
    """
    file = _read(path)
    if file.internal:
        file.fault((), None, "submission form", "found an internal list of pairs, expected conversations")
    file.faults.check()
    return file
