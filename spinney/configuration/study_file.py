"""study.yaml and other settings files: all mistakes at once, each with its line; and written for readers."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from spinney.configuration.mistakes import in_words
from spinney.configuration.yaml_lines import PLAIN_SCALARS, Place, YamlDocument, parse
from spinney.errors import StudyInvalid
from spinney.study.codes import PinnedSet
from spinney.study.study import Study

LARGEST_FILE = 5_000_000
WIDTH = 100

MADE_BY = {  # what to do where a file of these settings is not there
    "SiteSettings": "make one: spinney site init; or name yours: --site FILE",
    "CoordinatorSettings": "make one: spinney coordinator init; or name yours: --coordinator FILE",
    "Study": "is that its name? From tables: spinney study infer TABLES --label NAME -o study.yaml",
}

Model = TypeVar("Model", bound=BaseModel)


def read_study(path: str | Path) -> Study:
    """The study in a file, or StudyInvalid with every mistake in it."""
    study = read_settings(path, Study)
    if other := list(_other_files(study, Path(path).resolve().parent)):
        lines = _parsed(_text(path)).lines
        raise _invalid(path, [(_line(lines, place), words) for place, words in other])
    if wrong := list(_unknown_units(study)):
        lines = _parsed(_text(path)).lines
        raise _invalid(path, [(_line(lines, place), words) for place, words in wrong])
    return study


def raw_study(path: str | Path) -> tuple[str, YamlDocument]:
    """The text of a study's file and what stands in it, whether or not it is a valid study."""
    text = _text(path)
    return text, _parsed(text)


def _other_files(study: Study, folder: Path) -> Iterator[tuple[Place, str]]:
    """Files of code sets that lie beside the study and are not those that it was pinned with."""
    for name, one in study.pinned.items():
        for file, digest in one.files.items():
            path = folder / file
            if path.is_file() and (here := _digest(path, path.stat().st_mtime_ns, path.stat().st_size)) != digest:
                yield (
                    ("pinned", name),
                    f"pinned.{name}: {file} here has the digest {here}, the study was pinned with {digest}. The study "
                    "carries the codes itself: a site takes its own file away, or gets the coordinator's. Who writes "
                    "the study and means the new file raises `version` and runs spinney study pin",
                )


@lru_cache(maxsize=64)
def _digest(path: Path, _changed: int, _size: int) -> str:
    """A night reads its study in several steps, and files of vocabularies are large."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None


def _unknown_units(study: Study) -> Iterator[tuple[Place, str]]:
    for number, feature in enumerate(study.features):
        source = feature.source
        for inside, unit in ((), feature.unit), (("source",), getattr(source, "unit", None)):
            if unit and not _is_unit(unit):
                where = ".".join((f"features[{number}]", *inside, "unit"))
                yield ("features", number, *inside, "unit"), f"{where}: {unit} is no UCUM unit; write mg/dL or mm[Hg]"


def _is_unit(unit: str) -> bool:
    from spinney.connectors.units import is_unit  # most of a second to load, and many studies have no units

    return is_unit(unit)


def _line(lines: Mapping[Place, int], place: Place) -> int:
    return next((lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in lines), 1)


def read_settings(path: str | Path, model: type[Model]) -> Model:
    """Any pydantic model from a YAML file; mistakes read like `study.yaml:14 features[3].range: needs a number`."""
    document = _parsed(_text(path, model))
    mistakes = document.mistakes
    if document.data is None:
        raise _invalid(path, mistakes or [(1, "the file is empty")])
    try:
        settings = model.model_validate(document.data)
    except ValidationError as error:
        raise _invalid(path, [*mistakes, *in_words(error, model, document.lines)]) from None
    if mistakes:
        raise _invalid(path, mistakes)
    return settings


@lru_cache(maxsize=8)
def _parsed(text: str) -> YamlDocument:
    """A night reads the same files in several steps, and YAML with its lines is slow to parse."""
    return parse(text)


def write_study(study: Study, path: str | Path, notes: Sequence[str] = ()) -> None:
    """Write a study for people: what differs from the defaults, each section with its meaning, one line per feature."""
    file = Path(path)
    head = ["What all sites sign.", f"Check it with: spinney study check {file.name}", *notes]
    blocks = ["\n".join(_comment(line) for line in head)]
    for name, value in _changes(study).items():
        meaning = _comment(type(study).model_fields[name].description or "")
        body = _feature_lines(value) if name == "features" else _dump({name: value})
        if name == "pinned":
            body = pinned_lines(study.pinned)
        blocks.append(f"{meaning}\n{body}")
    try:
        file.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be written ({error.strerror})"]) from None


def _text(path: str | Path, model: type[BaseModel] = Study) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        advice = MADE_BY.get(model.__name__, "") if isinstance(error, FileNotFoundError) else ""
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})" + (f"; {advice}" if advice else "")]) from None
    if len(content) > LARGEST_FILE:
        raise StudyInvalid([f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, so this is no settings file"])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyInvalid([f"{path}:{line} not UTF-8: save the file with that encoding"]) from None


def _invalid(path: str | Path, mistakes: Iterable[tuple[int, str]]) -> StudyInvalid:
    return StudyInvalid([f"{path}:{line} {words}" for line, words in sorted(mistakes)])


def _changes(settings: BaseModel) -> dict[str, Any]:
    """What differs from the defaults, and the one-word fields that tell a union's members apart."""
    changes: dict[str, Any] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        one_word = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
        if one_word or field.is_required() or value != field.get_default(call_default_factory=True):
            changes[name] = _plain(value)
    return changes


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _changes(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0":
        return int(value)
    return value


class _Dumper(yaml.SafeDumper):
    """Lists in one line, and quotes wherever our own reader would see a number."""

    def represent_list(self, data: Iterable[Any]) -> yaml.SequenceNode:
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)

    def represent_str(self, data: str) -> yaml.ScalarNode:
        escaped = any(odd in data for odd in "\x85\u2028\u2029")  # line ends that PyYAML would fold into spaces
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if escaped else None)


_Dumper.add_representer(list, _Dumper.represent_list)
_Dumper.add_representer(str, _Dumper.represent_str)
for _name, _pattern, _first in PLAIN_SCALARS:
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, list(_first))


def _dump(value: Any, width: float = WIDTH, flow: bool = False) -> str:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width, default_flow_style=flow)
    return text.removesuffix("\n")  # not strip: a text may end in a space that counts


def _feature_lines(features: list[dict[str, Any]]) -> str:
    lines = (f"  - {_dump(feature, width=float('inf'), flow=True)}" for feature in features)
    return "\n".join(["features:", *lines])


def pinned_lines(pinned: Mapping[str, PinnedSet]) -> str:
    """What is pinned, one code in a line, so that two versions of a study can be compared line by line."""
    lines = ["pinned:"]
    for name, one in pinned.items():
        lines.append(f"  {_dump(name)}:".replace("\n...", ""))
        for key, value in _changes(one).items():
            if key != "codes":
                lines += [f"    {line}" for line in _dump({key: value}).splitlines()]
        lines.append("    codes:")
        for system, words in one.codes.items():
            lines += [f"      {_dump({system: 0}, float('inf')).removesuffix(' 0')} |-"]
            lines += [f"        {word}" for word in words]
    return "\n".join(lines)


def _comment(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, initial_indent="# ", subsequent_indent="#   ")
