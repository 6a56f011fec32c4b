// SPDX-License-Identifier: Apache-2.0
// Reads members of an object that a host sent, which are slices of its text. A first complaint is
// kept. For .cpp files of this folder; one thread.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/text.hpp"
#include "api/types/time.hpp"
#include "service/fleet/inventory/facts.hpp"
#include "service/fleet/inventory/json_slices.hpp"

namespace vfmgr::fleet {

class Fields {
  public:
    // `complaint` is the first one of all fields that share it. `object` is of compact_json().
    Fields(std::string_view object, std::string path, std::string& complaint)
        : path_(std::move(path)), complaint_(&complaint) {
        if (!is_object(object)) complain("", "is no object");
        for (Members members(object); members.next();) {
            if (members_.size() == fact_count_max) {
                complain("", "has too many members");
                break;
            }
            if (has(members.key())) complain(members.key(), "is there twice");
            members_.emplace_back(members.key(), members.value());
        }
    }
    [[nodiscard]] bool has(std::string_view key) const { return !slice(key).empty(); }
    // Empty: it is not there.
    [[nodiscard]] std::string_view slice(std::string_view key) const {
        for (auto const& [name, value] : members_)
            if (name == key) return value;
        return {};
    }
    // Must be there.
    template <class T>
    void need(std::string_view key, T& out) {
        if (!has(key)) return complain(key, "is missing");
        read(key, slice(key), out);
    }
    // Keeps its value if the member is not there, or null.
    template <class T>
    void maybe(std::string_view key, T& out) {
        if (given(key)) read(key, slice(key), out);
    }
    template <class T>
    void maybe(std::string_view key, std::optional<T>& out) {
        if (!given(key)) return;
        if constexpr (std::is_enum_v<T>) {
            read(key, slice(key), out);
        } else {
            T value{};
            read(key, slice(key), value);
            out = std::move(value);
        }
    }
    // A word of this enumeration; absent: one that is not known here.
    template <class E>
        requires std::is_enum_v<E>
    void need_word(std::string_view key, std::optional<E>& out) {
        if (!has(key)) return complain(key, "is missing");
        read(key, slice(key), out);
    }
    // Of an object that is not there, or null, there are no members.
    [[nodiscard]] Fields object(std::string_view key) {
        return {given(key) ? slice(key) : std::string_view("{}"), fmt::format("{}{}/", path_, key),
                *complaint_};
    }
    template <class Take>
    void each_of(std::string_view key, Take take) {
        if (!given(key)) return;
        if (!is_array(slice(key))) return complain(key, "is no array");
        std::size_t count = 0;
        for (Elements elements(slice(key)); elements.next();) {
            if (++count > fact_count_max) return complain(key, "has too many");
            take(elements.value());
        }
    }
    void list(std::string_view key, std::vector<std::string>& out) {
        each_of(key, [&](std::string_view one) { read(key, one, out.emplace_back()); });
    }
    void words(std::string_view key, std::map<std::string, std::string>& out) {
        if (!given(key)) return;
        if (!is_object(slice(key))) return complain(key, "is no object");
        for (Members members(slice(key)); members.next();) {
            if (out.size() == fact_count_max || members.key().size() > fact_bytes_max)
                return complain(key, "has too many");
            read(key, members.value(), out[members.key()]);
        }
    }
    void complain(std::string_view key, std::string_view trouble) {
        if (complaint_->empty()) *complaint_ = fmt::format("{}{} {}", path_, quoted(key), trouble);
    }

    // Whether it is there, and not null.
    [[nodiscard]] bool given(std::string_view key) const {
        return has(key) && slice(key) != "null";
    }
    // Reads an element of a list by the same rules.
    template <class T>
    void element(std::string_view key, std::string_view value, T& out) {
        read(key, value, out);
    }

  private:
    void read(std::string_view key, std::string_view value, std::string& out) {
        // An escape takes at most six bytes for one.
        auto text = value.size() > 6 * fact_bytes_max + 2 ? std::nullopt : string_in(value);
        if (!text) return complain(key, "is no string that can be a name");
        if (text->size() > fact_bytes_max) return complain(key, "is too long");
        out = std::move(*text);
    }
    void read(std::string_view key, std::string_view value, bool& out) {
        if (value != "true" && value != "false") return complain(key, "is neither true nor false");
        out = value == "true";
    }
    template <std::integral T>
    void read(std::string_view key, std::string_view value, T& out) {
        bool const minus = std::is_signed_v<T> && value.starts_with('-');
        auto const number =
            parse_digits(value.substr(minus ? 1 : 0),
                         {.max = static_cast<std::uint64_t>(std::numeric_limits<T>::max())});
        if (!number) return complain(key, "is no number that fits");
        out = static_cast<T>(*number);
        if constexpr (std::is_signed_v<T>)
            if (minus) out = static_cast<T>(-out);
    }
    void read(std::string_view key, std::string_view value, Time& out) {
        std::string text;
        read(key, value, text);
        auto const time = parse_rfc3339(text);
        if (!time) return complain(key, "is no time");
        out = *time;
    }
    template <class E>
        requires std::is_enum_v<E>
    void read(std::string_view key, std::string_view value, std::optional<E>& out) {
        std::string word;
        read(key, value, word);
        out = enum_value<E>(word);
    }
    template <class T>
        requires requires(std::string_view text) {
            { T::parse(text) } -> std::same_as<Result<T>>;
        }
    void read(std::string_view key, std::string_view value, T& out) {
        std::string text;
        read(key, value, text);
        auto const parsed = T::parse(text);
        if (!parsed) return complain(key, parsed.error().detail);
        out = *parsed;
    }
    void read(std::string_view key, std::string_view value, VfId& out) {
        Fields vf(value, fmt::format("{}{}/", path_, key), *complaint_);
        vf.need("pf", out.pf);
        vf.need("index", out.index);
    }

    std::string path_;
    std::string* complaint_;
    std::vector<std::pair<std::string, std::string_view>> members_;
};

}  // namespace vfmgr::fleet
