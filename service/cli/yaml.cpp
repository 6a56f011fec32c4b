// SPDX-License-Identifier: Apache-2.0
#include "service/cli/yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace vfmgr {
namespace {

using nlohmann::ordered_json;

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Readers of YAML 1.1 take more words for other values than those of 1.2: "on", and numbers to the
// base 60 such as 12:30:45. So only text that begins with a letter and holds nothing that either
// gives a meaning to goes without quotes.
bool plain(std::string_view text) {
    constexpr std::array<std::string_view, 9> meaning = {"y",   "n",    "yes",   "no",  "on",
                                                         "off", "true", "false", "null"};
    if (text.empty() || !is_letter(text.front()) || text.back() == ' ') return false;
    auto const allowed = [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') ||
               std::string_view(" _-./").find(c) != std::string_view::npos;
    };
    if (!std::ranges::all_of(text, allowed)) return false;
    return std::ranges::none_of(meaning, [&](std::string_view word) {
        return std::ranges::equal(text, word, {}, [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
    });
}

void write_text(YAML::Emitter& out, std::string const& text) {
    if (!plain(text)) out << YAML::DoubleQuoted;
    out << text;
}

// YAML 1.1 has no number with an exponent and without a point.
std::string number_text(ordered_json const& number) {
    auto text = number.dump();
    auto const exponent = text.find('e');
    if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
    return text;
}

void write(YAML::Emitter& out, ordered_json const& value) {
    if (value.is_structured() && value.empty()) out << YAML::Flow;
    if (value.is_object()) {
        out << YAML::BeginMap;
        for (auto const& [name, member] : value.items()) {
            out << YAML::Key;
            write_text(out, name);
            out << YAML::Value;
            write(out, member);
        }
        out << YAML::EndMap;
    } else if (value.is_array()) {
        out << YAML::BeginSeq;
        for (auto const& item : value) write(out, item);
        out << YAML::EndSeq;
    } else if (value.is_string()) {
        write_text(out, value.get_ref<std::string const&>());
    } else if (value.is_number_float()) {
        out << number_text(value);
    } else if (value.is_null()) {
        out << YAML::Null;
    } else if (value.is_boolean()) {
        out << value.get<bool>();
    } else {
        out << value.dump();  // an integer
    }
}

}  // namespace

Result<std::string> as_yaml(std::string_view json) {
    auto const document = ordered_json::parse(json, nullptr, false);
    if (document.is_discarded())
        return fail(Problem::internal, "the server's answer is not JSON",
                    "check that this is vfmgrd, and that its version matches vfctl's");
    YAML::Emitter out;
    out.SetNullFormat(YAML::LowerNull);
    write(out, document);
    return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace vfmgr
