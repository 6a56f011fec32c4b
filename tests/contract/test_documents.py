# SPDX-License-Identifier: Apache-2.0
"""The wire contract's documents agree with each other and with the C++ types."""

import functools
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from live_daemon import BUILD

ROOT = Path(__file__).resolve().parent.parent.parent
API = ROOT / "api"
# What it shares with openapi.yaml is copied into it when it is built.
FLEET = "openapi-fleet.yaml"
DOCUMENTS = ("openapi.yaml", "openapi-guest.yaml", "openapi-responder.yaml", FLEET)
EXAMPLES = sorted((API / "examples").glob("*.json"))


@functools.cache  # reading one takes a second
def document(name):
    if name == FLEET:
        return json.loads((BUILD / "service/fleet/openapi-fleet.json").read_text())
    return yaml.safe_load((API / name).read_text())


def schema_name(example):
    """attachment_spec-least.json -> AttachmentSpec"""
    return "".join(word.capitalize() for word in example.stem.split("-")[0].split("_"))


def validator(name, schema):
    """Returns a validator for a document's #/components/schemas/<schema>, whose references point
    into the document itself."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema",
             "$ref": f"#/components/schemas/{schema}", **document(name)}
    return jsonschema.Draft202012Validator(whole)


def documents_with(schema):
    return [name for name in DOCUMENTS if schema in document(name)["components"]["schemas"]]


def problems():
    """Returns code -> (status, exit code), as in the C++ source."""
    source = (API / "types/problem.cpp").read_text()
    rows = re.findall(r'Row\{Problem::(\w+), "[^"]+", (\d+), Exit::(\w+)\}', source)
    exits = re.findall(r"^    (\w+),?$", (API / "types/exit.hpp").read_text(), re.M)
    numbers = {name: number for number, name in enumerate(exits)}
    declared = re.findall(r"^    (\w+),\s*//", (API / "types/problem.hpp").read_text(), re.M)
    assert [code for code, *_ in rows] == declared
    return {code: (int(status), numbers[leaves]) for code, status, leaves in rows}


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_is_openapi_3_1(name):
    parsed = document(name)
    assert parsed["openapi"].startswith("3.1.")
    assert parsed["info"]["title"] and parsed["paths"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_reference_points_somewhere(name):
    parsed = document(name)
    for reference in references(parsed):
        at = parsed
        assert reference.startswith("#/"), reference
        for part in reference[2:].split("/"):
            assert part in at, f"{reference}: there is no {part}"
            at = at[part]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_component_is_used(name):
    parsed = document(name)
    used = set(references(parsed))
    for kind in ("schemas", "responses", "parameters", "headers"):
        for component in parsed["components"].get(kind, {}):
            assert f"#/components/{kind}/{component}" in used, component


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_schema_is_a_schema(name):
    for content in document(name)["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(content)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_operation_ids_are_unique_and_each_has_a_problem(name):
    ids = []
    for path, item in document(name)["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            ids.append(operation["operationId"])
            assert "default" in operation["responses"], f"{method} {path}"
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_path_parameters_are_declared(name):
    parsed = document(name)
    for path, item in parsed["paths"].items():
        declared = set()
        for parameter in item.get("parameters", []):
            if "$ref" in parameter:
                parameter = parsed["components"]["parameters"][parameter["$ref"].split("/")[-1]]
            declared.add(parameter["name"])
        assert declared == set(re.findall(r"\{(\w+)\}", path)), path


def test_there_are_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_validates(example):
    names = documents_with(schema_name(example))
    assert names, f"{example.name}: no document has a schema {schema_name(example)}"
    for name in names:
        validator(name, schema_name(example)).validate(json.loads(example.read_text()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_with_an_unknown_member_does_not(example):
    """The schemas are closed: the test finds a member that one side forgot."""
    content = json.loads(example.read_text()) | {"surprise": 1}
    with pytest.raises(jsonschema.ValidationError):
        validator(documents_with(schema_name(example))[0], schema_name(example)).validate(content)


def test_problem_codes_are_those_of_the_types():
    codes = list(problems())
    assert len(codes) >= 16
    assert document("openapi.yaml")["components"]["schemas"]["ProblemCode"]["enum"] == codes


@pytest.mark.parametrize("code", problems())
def test_problem_is_explained(code):
    text = (API / "problems.md").read_text()
    status, leaves = problems()[code]
    kebab = code.replace("_", "-")
    assert f"| [{code}](#{kebab}) | {status} | {leaves} |" in text
    section = text.split(f"\n## {kebab}\n")
    assert len(section) == 2, f"problems.md has no section {kebab}"
    section = section[1].split("\n## ")[0]
    assert f"Status {status}" in section and f"xit code {leaves}." in section
    assert "\nCause: " in section and "\nRemedy: " in section


def test_problems_md_knows_no_other_problem():
    sections = re.findall(r"^## (\S+)$", (API / "problems.md").read_text(), re.M)
    assert sections == [code.replace("_", "-") for code in problems()]


def test_enums_are_those_of_the_types():
    """Each enum that both the document and the C++ have has the same words in the same order."""
    sources = "".join(path.read_text() for path in sorted((API / "types").glob("*.hpp")))
    tables = [re.findall(r'"([^"]+)"', body) for body in
              re.findall(r"enum_names<\w+> = \{(.*?)\};", sources, re.S)]
    # Otherwise an enumerator's text is its name, without the underscore of "auto_".
    tables += [[word.rstrip("_") for word in re.findall(r"\w+", re.sub(r"//.*", "", body))]
               for body in re.findall(r"^enum class \w+[^{]*\{(.*?)\};", sources, re.S | re.M)]
    assert len(tables) >= 30

    def enums(node):
        if isinstance(node, dict):
            if isinstance(node.get("enum"), list):
                yield [str(word) for word in node["enum"]]
            for value in node.values():
                yield from enums(value)
        elif isinstance(node, list):
            for value in node:
                yield from enums(value)

    mine = [words for words in enums(document("openapi.yaml")["components"])]
    not_cpp = [words for words in mine if words not in tables]
    allowed = [document("openapi.yaml")["components"]["schemas"]["ProblemCode"]["enum"]]
    schemas = document("openapi.yaml")["components"]["schemas"]
    allowed.append(schemas["AttachmentSpec"]["properties"]["best_effort"]["items"]["enum"])
    allowed.append(schemas["Step"]["properties"]["step"]["enum"])
    # What is beside an attachment's settings, and the settings.
    allowed.append(["address", "best_effort", "responder", *allowed[1]])
    assert [words for words in not_cpp if words not in allowed] == []


def test_the_daemon_has_the_same_document():
    """As JSON, made at build time. Debian's yaml module reads the original as its authors do."""
    built = json.loads((BUILD / "service/openapi.json").read_text())
    assert built == document("openapi.yaml")


def test_the_fleets_document_is_whole_and_differs_by_what_it_shares_alone():
    source = yaml.safe_load((API / FLEET).read_text())
    built, shared = document(FLEET), document("openapi.yaml")
    assert built["paths"].keys() == source["paths"].keys()
    assert built["info"] == source["info"]
    taken = 0
    for kind, components in built["components"].items():
        for name, component in components.items():
            own = source["components"].get(kind, {}).get(name)
            if own is not None:
                own = json.loads(json.dumps(own).replace('"openapi.yaml#/', '"#/'))
            assert component == (own or shared["components"][kind][name]), f"{kind}/{name}"
            taken += own is None
    theirs = {reference for reference in references(source) if reference.startswith("openapi.yaml")}
    assert taken >= len(theirs), "each that it names, and what those name"


def test_steps_are_those_of_the_types():
    named = re.findall(r'step_name = "(\w+)"', (ROOT / "vfmgr/plan/step.hpp").read_text())
    schemas = document("openapi.yaml")["components"]["schemas"]
    assert schemas["Step"]["properties"]["step"]["enum"] == named


def test_best_effort_takes_the_members_of_settings():
    schemas = document("openapi.yaml")["components"]["schemas"]
    assert (schemas["AttachmentSpec"]["properties"]["best_effort"]["items"]["enum"]
            == list(schemas["VfSpec"]["properties"]))
