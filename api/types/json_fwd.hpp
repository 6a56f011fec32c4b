// SPDX-License-Identifier: Apache-2.0
// Declares how a type's JSON is written and read, for headers that must not pay for nlohmann's own.
// No state, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <vector>

namespace vfmgr {

class JsonReader;
struct Error;

// Both are made from `fields(f, value)`, a template in T's .cpp that names each member once, and
// from `check(reader, value)`, if there is one: rules between members, or values made from several.
// T's .cpp ends with `template struct Json<T>;`, which T's header declares extern. A type that is
// only a member of other types in the same .cpp needs neither.
template <class T>
struct Json {
    static void write(nlohmann::json& out, T const& value);
    static void read(JsonReader& reader, T& value);
};

// Types whose members have names. The others (PciAddress, Step) write and read themselves.
template <class T>
concept Described = std::is_class_v<T> && std::is_aggregate_v<T>;

// json.hpp defines this; a .cpp that reads values includes it.
template <class T>
[[nodiscard]] tl::expected<T, Error> from_json_text(std::string_view text);

// The answer that lists values: {"items": […], "next": null}.
template <class T>
struct ItemList {
    using Item = T;
    std::vector<T> items;
    std::optional<std::string> next{};  // where the list goes on; absent: this is all
};

}  // namespace vfmgr

// Makes `nlohmann::json(value)` work for described types.
template <vfmgr::Described T>
struct nlohmann::adl_serializer<T, void> {
    static void to_json(nlohmann::json& out, T const& value) { vfmgr::Json<T>::write(out, value); }
};
