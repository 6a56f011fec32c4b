# SPDX-License-Identifier: Apache-2.0
"""Bodies from a schema: each is a good one with one thing in it changed. The schema decides whether
the new value is good or bad; the values tried come from its bounds."""

import copy

UNKNOWN = "surprise"
LONG_LETTER = "\u00e9"  # one character, two bytes
STEERS = ("\x1b[2J", "\x7f", "\u009b", "\u202e", "a\nb")
WRONG = (None, 1.5, 77, True, "true", "nonsense", "\u00e9 ", "", [], ["text"], [[]], {}, *STEERS)


def changed(body, path, change):
    if not path:
        holder = [copy.deepcopy(body)]
        change(holder, 0)
        return holder[0]
    whole = copy.deepcopy(body)
    at = whole
    for part in path[:-1]:
        at = at[part]
    change(at, path[-1])
    return whole


def put(body, path, value):
    return changed(body, path, lambda at, key: at.__setitem__(key, value))


def without(body, path):
    return changed(body, path, lambda at, key: at.__delitem__(key))


class Bodies:
    """`good` and `bad` are pairs of the path that was changed and the body. The base has a value
    for everything that is to be changed."""

    def __init__(self, document, schema, base):
        self.document, self.base, self.tried = document, base, []
        assert not document.complaints(schema, base), document.complaints(schema, base)
        self.walk(schema, base, [])
        self.good, self.bad = [([], base)], []
        for path, body in self.tried:
            (self.bad if document.complaints(schema, body) else self.good).append((path, body))

    def put(self, path, *values):
        self.tried.extend((path, put(self.base, path, value)) for value in values)

    def walk(self, schema, value, path):
        schema = self.document.resolve(schema)
        self.put(path, *WRONG)
        for one in (schema, *schema.get("allOf", []), *schema.get("oneOf", []),
                    *schema.get("anyOf", [])):
            self.bounds(self.document.resolve(one), value, path)

    def bounds(self, schema, value, path):
        self.put(path, *schema.get("enum", []))
        for bound, step in (("minimum", -1), ("maximum", 1)):
            if bound in schema:
                self.put(path, schema[bound], schema[bound] + step)
        for bound in ("minLength", "maxLength"):
            if bound in schema:
                self.put(path, *(letter * (schema[bound] + more) for more in (-1, 0, 1)
                                 for letter in ("x", LONG_LETTER)))
        if isinstance(value, dict):
            self.members(schema, value, path)
        if isinstance(value, list) and value and "items" in schema:
            self.put(path, [value[0], value[0]], value[:1] * (schema.get("maxItems", 0) + 1))
            self.walk(schema["items"], value[0], [*path, 0])

    def members(self, schema, value, path):
        self.put([*path, UNKNOWN], 1)
        for name, one in schema.get("properties", {}).items():
            if name in value:
                self.tried.append(([*path, name], without(self.base, [*path, name])))
                self.walk(one, value[name], [*path, name])
        if isinstance(schema.get("additionalProperties"), dict):
            for name, item in value.items():
                if name not in schema.get("properties", {}):
                    self.walk(schema["additionalProperties"], item, [*path, name])
