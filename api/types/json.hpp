// SPDX-License-Identifier: Apache-2.0
// One description of a type's fields serves writing and reading: `fields(f, value)`, a template in
// the type's .cpp that names each key once. Reading collects every violation with its JSON pointer,
// and refuses unknown keys: a typo on a host is expensive.
// Include in .cpp files only; headers use api/types/json_fwd.hpp. No state, any thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// A value whose JSON is a single string: PciAddress, MacAddress, IpAddress, …
template <class T>
concept Textual = requires(T const& value, std::string_view text) {
    { to_string(value) } -> std::convertible_to<std::string>;
    { T::parse(text) } -> std::same_as<Result<T>>;
};

// Returns one reference token of a JSON pointer (RFC 6901, 4), cut at 64 bytes.
[[nodiscard]] std::string pointer_token(std::string_view key);

// `template <class F, Of<Network> V> void fields(F& f, V& network)`: one description serves the
// writer, which passes a const Network, and the reader, which passes a Network.
template <class V, class T>
concept Of = std::same_as<std::remove_const_t<V>, T>;

class JsonWriter {
  public:
    explicit JsonWriter(nlohmann::json& out) : out_(out) { out_ = nlohmann::json::object(); }
    template <class T>
    void value(char const* key, T const& value) {
        out_[key] = encode(value);
    }
    // Always written; may be absent when read, and then keeps its value.
    template <class T>
    void defaulted(char const* key, T const& value) {
        out_[key] = encode(value);
    }
    // A name that a request's path has as well.
    void own_name(std::string const& name) {
        if (!name.empty()) out_["name"] = name;
    }
    // A desired value: absent means "leave alone".
    template <class T>
    void maybe(char const* key, std::optional<T> const& value) {
        if (value) out_[key] = encode(*value);
    }
    // A reported value: null means "not reported".
    template <class T>
    void nullable(char const* key, std::optional<T> const& value) {
        out_[key] = value ? encode(*value) : nlohmann::json(nullptr);
    }

    // For a type with more than one way to be read.
    template <class T, class Read>
    void read_by(char const* key, T const& value, Read) {
        this->value(key, value);
    }
    // Writes the value's members as this object's own.
    template <class T>
    void members_of(T const& value) {
        out_.update(encode(value));
    }

    template <class T>
    static nlohmann::json encode(T const& value) {
        if constexpr (std::is_enum_v<T>)
            return std::string(enum_name(value));
        else if constexpr (std::is_same_v<T, Time>)
            return to_rfc3339(value);
        else if constexpr (Textual<T>)
            return to_string(value);
        else
            return nlohmann::json(value);
    }
    template <class T>
    static nlohmann::json encode(std::vector<T> const& values) {
        auto array = nlohmann::json::array();
        for (auto const& value : values) array.push_back(encode(value));
        return array;
    }

  private:
    nlohmann::json& out_;
};

// ignored: in answers, where a newer daemon may say more.
enum class UnknownKeys { refused, ignored };

// Reads one JSON object. Ends with finish(), which reports the keys that no read consumed.
class JsonReader {
  public:
    JsonReader(nlohmann::json const& in, std::string pointer, std::vector<Violation>& violations,
               UnknownKeys unknown = UnknownKeys::refused)
        : in_(in),
          pointer_(std::move(pointer)),
          violations_(violations),
          violations_before_(violations.size()),
          unknown_(unknown) {
        if (!in_.is_object()) complain("", "must be an object");
    }
    template <class T>
    void value(char const* key, T& out) {
        if (auto const* found = find(key))
            decode(*found, key, out);
        else
            complain_missing(key);
    }
    template <class T>
    void defaulted(char const* key, T& out) {
        if (auto const* found = find_given(key)) decode(*found, key, out);
    }
    // May be absent, but not empty.
    void own_name(std::string& out) {
        auto const* const found = find_given("name");
        if (found && decode(*found, "name", out) && out.empty())
            complain("name", "must not be empty; leave it out");
    }
    template <class T>
    void maybe(char const* key, std::optional<T>& out) {
        if (auto const* found = find_given(key)) decode_into(*found, key, out);
    }
    template <class T>
    void nullable(char const* key, std::optional<T>& out) {
        if (auto const* found = find(key); found && !found->is_null())
            decode_into(*found, key, out);
    }

    template <class T, class Read>
    void read_by(char const* key, T& out, Read read) {
        auto const* found = find(key);
        if (!found) return complain_missing(key);
        JsonReader nested(*found, pointer_ + "/" + key, violations_, unknown_);
        read(nested, out);
        nested.finish();
    }

    template <class T>
    void members_of(T& out) {
        Json<T>::read(*this, out);
    }

    // Reads the whole object.
    template <class T>
    void all_of(T& out) {
        if constexpr (Described<T>)
            Json<T>::read(*this, out);
        else
            read(*this, out);
        finish();
    }

    // `key` is relative to this object and may have several levels: "settings/mac".
    void complain(std::string const& key, std::string detail) {
        complain_at(key.empty() ? pointer_ : pointer_ + "/" + key, std::move(detail));
    }
    void finish() {
        if (!in_.is_object() || unknown_ == UnknownKeys::ignored) return;
        for (auto const& [key, unused] : in_.items())
            if (!accepted_.contains(key))
                complain_at(pointer_ + "/" + pointer_token(key), "is not known here");
    }
    // Rules between members apply only if the members themselves were read.
    [[nodiscard]] bool clean() const { return violations_.size() == violations_before_; }
    // The same of these members alone: a mistake in one hides none in another.
    template <class... Keys>
    [[nodiscard]] bool clean(Keys... keys) const {
        return in_.is_object() && (!complained_about(pointer_ + "/" + keys) && ...);
    }
    // Returns "key/PLACE" of a member of a list that was read into `index`. Members with mistakes
    // are not in what was read, so an index there is not always the place in the document.
    [[nodiscard]] std::string member_of(std::string const& key, std::size_t index) const {
        auto const places = places_.find(key);
        return fmt::format("{}/{}", key,
                           places == places_.end() ? index : places->second.at(index));
    }
    // For variants: reads a discriminator without consuming the object.
    [[nodiscard]] nlohmann::json const& json() const { return in_; }
    void accept(char const* key) { accepted_.insert(key); }

  private:
    static constexpr std::size_t violations_max = 64;

    void complain_at(std::string pointer, std::string detail) {
        if (violations_.size() < violations_max)
            violations_.push_back({std::move(pointer), std::move(detail)});
    }
    [[nodiscard]] bool complained_about(std::string const& pointer) const {
        auto const first = violations_.begin() + static_cast<std::ptrdiff_t>(violations_before_);
        return std::any_of(first, violations_.end(), [&](Violation const& one) {
            return one.pointer == pointer || one.pointer.starts_with(pointer + "/");
        });
    }
    void complain_missing(char const* key) {
        if (in_.is_object()) complain(key, "is required");
    }
    nlohmann::json const* find(char const* key) {
        accepted_.insert(key);
        if (!in_.is_object()) return nullptr;
        auto it = in_.find(key);
        return it == in_.end() ? nullptr : &*it;
    }
    // null is valid for a reported value only. In a request a client may mean "remove it" by null;
    // absent does not mean that.
    nlohmann::json const* find_given(char const* key) {
        auto const* found = find(key);
        if (!found || !found->is_null()) return found;
        complain(key, "must not be null; leave it out");
        return nullptr;
    }
    template <class T>
    void decode_into(nlohmann::json const& in, std::string const& key, std::optional<T>& out) {
        T value{};
        if (decode(in, key, value)) out = std::move(value);
    }
    template <class T>
    bool decode(nlohmann::json const& in, std::string const& key, T& out) {
        auto const before = violations_.size();
        if constexpr (std::is_same_v<T, nlohmann::json>)
            out = in;
        else if constexpr (std::is_same_v<T, bool>)
            take(in.is_boolean(), in, key, out, "must be true or false");
        else if constexpr (std::is_integral_v<T>)
            decode_integer(in, key, out);
        else if constexpr (std::is_floating_point_v<T>)
            take(in.is_number(), in, key, out, "must be a number");
        else if constexpr (std::is_enum_v<T>)
            decode_enum(in, key, out);
        else if constexpr (std::is_same_v<T, std::string>)
            take(in.is_string(), in, key, out, "must be a string");
        else if constexpr (std::is_same_v<T, Time>)
            decode_time(in, key, out);
        else if constexpr (std::is_same_v<T, Error>)
            out = error_from_json(in);
        else if constexpr (Textual<T>)
            decode_text(in, key, out);
        else
            decode_nested(in, key, out);
        return violations_.size() == before;
    }
    template <class T>
    void decode_nested(nlohmann::json const& in, std::string const& key, T& out) {
        JsonReader nested(in, pointer_ + "/" + key, violations_, unknown_);
        nested.all_of(out);
    }
    template <class T>
    void decode_nested(nlohmann::json const& in, std::string const& key, std::vector<T>& out) {
        if (!in.is_array()) return complain(key, "must be an array");
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < in.size(); ++i) {
            T value{};
            if (!decode(in[i], key + "/" + std::to_string(i), value)) continue;
            out.push_back(std::move(value));
            places.push_back(i);
        }
        if (places.size() < in.size()) places_.insert_or_assign(key, std::move(places));
    }
    template <class T>
    void decode_nested(nlohmann::json const& in, std::string const& key,
                       std::map<std::string, T>& out) {
        if (!in.is_object()) return complain(key, "must be an object");
        for (auto const& [name, item] : in.items()) {
            T value{};
            if (decode(item, key + "/" + pointer_token(name), value)) out[name] = std::move(value);
        }
    }
    template <class T>
    void take(bool fits, nlohmann::json const& in, std::string const& key, T& out,
              char const* rule) {
        if (fits)
            out = in.get<T>();
        else
            complain(key, rule);
    }
    template <class T>
    void decode_integer(nlohmann::json const& in, std::string const& key, T& out) {
        constexpr auto low = std::numeric_limits<T>::min();
        constexpr auto high = std::numeric_limits<T>::max();
        bool fits = in.is_number_integer();
        if (in.is_number_unsigned())
            fits = std::in_range<T>(in.get<std::uint64_t>());
        else if (fits)
            fits = std::in_range<T>(in.get<std::int64_t>());
        if (fits)
            out = in.get<T>();
        else
            complain(key, fmt::format("must be a whole number from {} to {}", low, high));
    }
    template <class T>
    void decode_enum(nlohmann::json const& in, std::string const& key, T& out) {
        if (in.is_string())
            if (auto value = enum_value<T>(in.get_ref<std::string const&>()))
                return void(out = *value);
        complain(key, "must be one of " + enum_choices<T>());
    }
    void decode_time(nlohmann::json const& in, std::string const& key, Time& out) {
        if (in.is_string())
            if (auto value = parse_rfc3339(in.get_ref<std::string const&>()))
                return void(out = *value);
        complain(key, "must be a time such as 2026-01-31T12:00:00.000Z");
    }
    template <Textual T>
    void decode_text(nlohmann::json const& in, std::string const& key, T& out) {
        if (!in.is_string()) return complain(key, "must be a string");
        auto value = T::parse(in.get_ref<std::string const&>());
        if (value)
            out = *value;
        else
            complain(key, value.error().detail);
    }

    nlohmann::json const& in_;
    std::string pointer_;
    std::vector<Violation>& violations_;
    std::size_t violations_before_;
    UnknownKeys unknown_;
    std::set<std::string, std::less<>> accepted_;
    std::map<std::string, std::vector<std::size_t>> places_;  // of lists of which some was not read
};

template <class T>
void Json<T>::write(nlohmann::json& out, T const& value) {
    JsonWriter writer(out);
    fields(writer, value);
}

template <class T>
void Json<T>::read(JsonReader& reader, T& value) {
    fields(reader, value);
    if constexpr (requires { check(reader, value); }) check(reader, value);
}

template <class F, class V>
    requires Of<V, ItemList<typename V::Item>>
void fields(F& f, V& list) {
    f.value("items", list.items);
    f.nullable("next", list.next);
}

// Text from outside may end up in a table on a terminal: one line, no control sequences. `pointer`
// is relative to the reader's object.
void check_text(JsonReader& reader, std::string const& pointer, std::string_view text,
                std::size_t characters_max);

// Returns the whole document, or every violation at once.
template <class T>
[[nodiscard]] Result<T> from_json_document(nlohmann::json const& in,
                                           UnknownKeys unknown = UnknownKeys::refused) {
    std::vector<Violation> violations;
    T value{};
    JsonReader(in, "", violations, unknown).all_of(value);
    if (violations.empty()) return value;
    Error error{Problem::invalid_request, {}, "correct the named fields and send it again"};
    error.detail = fmt::format("{} {}",
                               violations.front().pointer.empty() ? std::string("the document")
                                                                  : violations.front().pointer,
                               violations.front().detail);
    if (violations.size() > 1) error.detail += fmt::format(" (and {} more)", violations.size() - 1);
    error.violations = std::move(violations);
    return fail(std::move(error));
}

// Strict JSON: UTF-8, no duplicate keys, at most 32 levels deep. Never throws.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text);
// Never throws: bytes that are not UTF-8 (a process name, a domain title) become U+FFFD.
[[nodiscard]] std::string to_json_text(nlohmann::json const& document);

template <class T>
Result<T> from_json_text(std::string_view text) {
    VFMGR_TRY(auto in, parse_json(text));
    return from_json_document<T>(in);
}

}  // namespace vfmgr
