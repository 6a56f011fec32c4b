// SPDX-License-Identifier: Apache-2.0
#include "service/cli/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "api/types/text.hpp"

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

namespace {

struct NotAccepted {
    YAML::Mark at;
    std::string detail;
};

// Builds the document from the parser's events, which have what its nodes lose: anchors, and
// members that are there twice.
class Reader : public YAML::EventHandler {
  public:
    [[nodiscard]] ordered_json take() { return std::move(root_); }

    void OnDocumentStart(YAML::Mark const& at) override {
        if (std::exchange(begun_, true)) throw NotAccepted{at, "there is a second document"};
    }
    void OnDocumentEnd() override {}
    void OnNull(YAML::Mark const& at, YAML::anchor_t anchor) override {
        refuse_anchor(at, anchor);
        add(at, nullptr);
    }
    void OnAlias(YAML::Mark const& at, YAML::anchor_t) override {
        throw NotAccepted{at, "aliases are not accepted"};
    }
    void OnScalar(YAML::Mark const& at, std::string const& tag, YAML::anchor_t anchor,
                  std::string const& value) override {
        refuse_anchor(at, anchor);
        if (tag != "?" && tag != "!") throw NotAccepted{at, "tags are not accepted"};
        if (open_.empty() || open_.back().value->is_array() || open_.back().key) {
            add(at, tag == "?" ? meaning_of(value) : ordered_json(value));
            return;
        }
        if (!valid_utf8(value)) throw NotAccepted{at, "it is not UTF-8"};
        if (open_.back().value->contains(value))
            throw NotAccepted{at, fmt::format("{} is there twice", quoted(value))};
        open_.back().key = value;
    }
    void OnSequenceStart(YAML::Mark const& at, std::string const& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        begin(at, tag, anchor, ordered_json::array());
    }
    void OnSequenceEnd() override { open_.pop_back(); }
    void OnMapStart(YAML::Mark const& at, std::string const& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        begin(at, tag, anchor, ordered_json::object());
    }
    void OnMapEnd() override { open_.pop_back(); }

  private:
    struct Open {
        ordered_json* value;  // within root_, which has no other member that moves meanwhile
        std::optional<std::string> key{};
    };

    static void refuse_anchor(YAML::Mark const& at, YAML::anchor_t anchor) {
        if (anchor != YAML::NullAnchor) throw NotAccepted{at, "anchors are not accepted"};
    }
    static ordered_json meaning_of(std::string const& plain) {
        if (plain.empty() || plain == "~") return nullptr;
        auto const value = ordered_json::parse(plain, nullptr, false);
        return value.is_primitive() && !value.is_discarded() && !value.is_string()
                   ? value
                   : ordered_json(plain);
    }
    ordered_json* add(YAML::Mark const& at, ordered_json value) {
        if (value.is_string() && !valid_utf8(value.get_ref<std::string const&>()))
            throw NotAccepted{at, "it is not UTF-8"};
        if (open_.empty()) return &(root_ = std::move(value));
        auto& [into, key] = open_.back();
        if (into->is_array()) {
            into->push_back(std::move(value));
            return &into->back();
        }
        if (!key) throw NotAccepted{at, "names of members are text"};
        auto& member = (*into)[*std::exchange(key, std::nullopt)];
        member = std::move(value);
        return &member;
    }
    void begin(YAML::Mark const& at, std::string const& tag, YAML::anchor_t anchor,
               ordered_json empty) {
        refuse_anchor(at, anchor);
        if (tag != "?" && tag != "!" && !tag.empty())
            throw NotAccepted{at, "tags are not accepted"};
        constexpr std::size_t depth_max = 64;
        if (open_.size() >= depth_max) throw NotAccepted{at, "it is nested too deeply"};
        open_.push_back({add(at, std::move(empty))});
    }

    ordered_json root_;
    std::vector<Open> open_;
    bool begun_ = false;
};

}  // namespace

Result<std::string> json_of_yaml(std::string_view yaml) {
    auto const refuse = [](YAML::Mark const& at, std::string const& detail) {
        return fail(Problem::invalid_request,
                    fmt::format("line {}, column {}: {}", at.line + 1, at.column + 1, detail),
                    "correct the file; vfctl export prints one");
    };
    try {
        std::istringstream in{std::string(yaml)};
        YAML::Parser parser(in);
        Reader reader;
        if (!parser.HandleNextDocument(reader)) return refuse(YAML::Mark(), "there is no document");
        static_cast<void>(parser.HandleNextDocument(reader));
        return reader.take().dump();
    } catch (NotAccepted const& refused) {
        return refuse(refused.at, refused.detail);
    } catch (YAML::Exception const& wrong) {
        return refuse(wrong.mark, wrong.msg);
    }
}

}  // namespace vfmgr
