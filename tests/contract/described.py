# SPDX-License-Identifier: Apache-2.0
"""What an OpenAPI document describes: its operations, every answer of each, and whether an answer
matches."""

import json
from pathlib import Path

import jsonschema
import yaml

API = Path(__file__).resolve().parent.parent.parent / "api"
METHODS = ("get", "put", "post", "delete", "patch")


def example(name):
    return json.loads((API / f"examples/{name}.json").read_text())


class Operation:
    def __init__(self, document, method, path, item, described):
        self.id, self.method, self.path = described["operationId"], method.upper(), path
        self.role, self.tenants = described.get("x-role"), described.get("x-tenants", False)
        everywhere = [*item.get("parameters", []), *described.get("parameters", [])]
        self.parameters = {one["name"]: one for one in map(document.resolve, everywhere)}
        self.body = None
        if "requestBody" in described:
            self.body = described["requestBody"]["content"]["application/json"]["schema"]
        self.responses = {status: document.resolve(response)
                          for status, response in described["responses"].items()}

    def takes(self, parameter):
        return parameter in self.parameters

    def in_path(self):
        return [name for name, one in self.parameters.items() if one["in"] == "path"]


class Document:
    """Names each answer that it describes: (operation, status, schema). `schema` distinguishes the
    bodies that one status may have; an answer that `default` describes, at any path, has no
    operation."""

    def __init__(self, name):
        self.name, self.whole = name, yaml.safe_load((API / name).read_text())
        self.operations = {}
        for path, item in self.whole["paths"].items():
            for method in METHODS:
                if method in item:
                    one = Operation(self, method, path, item, item[method])
                    self.operations[one.id] = one
        self.others = self.resolve({"$ref": "#/components/responses/Problem"})
        self.answers = {answer for one in self.operations.values()
                        for answer in self.answers_of(one)}
        self.answers |= {("default", str(status), "") for status in self.others["x-statuses"]}

    def resolve(self, node):
        while "$ref" in node:
            at = self.whole
            for part in node["$ref"][2:].split("/"):
                at = at[part]
            node = {**at, **{key: value for key, value in node.items() if key != "$ref"}}
        return node

    def schemas(self, response):
        """Returns, by name, the schemas that a response's body may match."""
        content = response.get("content")
        if not content:
            return {"": None}
        schema = next(iter(content.values()))["schema"]
        if "anyOf" not in schema:
            return {"": schema}
        return {one["$ref"].split("/")[-1]: one for one in schema["anyOf"]}

    def answers_of(self, operation):
        for status, response in operation.responses.items():
            if status != "default":
                for name in self.schemas(response):
                    yield (operation.id, status, name)

    def complaints(self, schema, value):
        whole = {"$schema": "https://json-schema.org/draft/2020-12/schema",
                 "components": self.whole["components"], **schema}
        checked = jsonschema.Draft202012Validator(whole)
        return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
                for error in checked.iter_errors(value)]

    def judge(self, operation, answer):
        """Returns the name of the answer; AssertionError when none is described like it."""
        status = str(answer.status)
        known = operation and operation.responses.get(status)
        if not known:
            assert answer.status in self.others["x-statuses"], f"undescribed: {answer}"
            self.check_headers(self.others, answer)
            self.check_body(self.others, answer)
            return ("default", status, "")
        self.check_headers(known, answer)
        return (operation.id, status, self.check_body(known, answer))

    def check_headers(self, response, answer):
        assert answer.headers["X-Request-Id"], answer
        for name, described in response.get("headers", {}).items():
            header, value = self.resolve(described), answer.headers[name]
            if value is None and header.get("required") is False:
                continue
            assert value is not None, f"no header {name}: {answer}"
            schema = header["schema"]
            if schema["type"] == "integer":
                value = int(value)
            assert not self.complaints(schema, value), f"{name}: {value}"

    def check_body(self, response, answer):
        schemas = self.schemas(response)
        if schemas == {"": None}:
            assert answer.text == b"", answer
            return ""
        kind = answer.headers["Content-Type"].split(";")[0]
        assert kind in response["content"], f"{kind}: {answer}"
        found = {name: self.complaints(schema, answer.body) for name, schema in schemas.items()}
        fitting = [name for name, complaints in found.items() if not complaints]
        assert len(fitting) == 1, f"fits {fitting}: {json.dumps(found)[:1500]} {answer}"
        if kind == "application/problem+json":
            assert answer.body["status"] == answer.status, answer
        return fitting[0]
