// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/json_slices.hpp"

#include <fmt/format.h>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

// Reads four hex digits at the front; nullopt: they are not there.
std::optional<std::uint32_t> unit_of(std::string_view text) {
    auto const unit = parse_digits(text.substr(0, 4), {16, 4, 4, 0xffff});
    return unit ? std::optional(static_cast<std::uint32_t>(*unit)) : std::nullopt;
}

bool is_high(std::uint32_t unit) {
    return unit >= 0xd800 && unit < 0xdc00;
}

bool is_low(std::uint32_t unit) {
    return unit >= 0xdc00 && unit < 0xe000;
}

// Copies one value without its white space, and checks it on the way.
class Compactor {
  public:
    Compactor(std::string_view text, int depth_max) : rest_(text), depth_max_(depth_max) {
        out_.reserve(text.size());
    }
    // Null: the text is one value, which is in out().
    char const* run() {
        value(0);
        skip_space();
        if (!complaint_ && !rest_.empty()) complaint_ = "goes on after its value";
        return complaint_;
    }
    std::string out() && { return std::move(out_); }

  private:
    bool fail_with(char const* complaint) {
        if (!complaint_) complaint_ = complaint;
        return false;
    }
    void skip_space() {
        while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    }
    void copy(std::size_t bytes) {
        out_ += rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
    }
    bool take(char expected) {
        skip_space();
        if (!rest_.starts_with(expected)) return false;
        copy(1);
        return true;
    }
    bool value(int depth) {
        skip_space();
        if (rest_.empty()) return fail_with("ends too early");
        char const first = rest_.front();
        if (first == '{' || first == '[') {
            if (depth == depth_max_) return fail_with("is nested too deep");
            return first == '{' ? object(depth + 1) : array(depth + 1);
        }
        if (first == '"') return string();
        for (std::string_view const word : {"true", "false", "null"})
            if (rest_.starts_with(word)) return copy(word.size()), true;
        return number();
    }
    bool object(int depth) {
        copy(1);
        if (take('}')) return true;
        do {
            skip_space();
            if (!string()) return false;
            if (!take(':')) return fail_with("has a key without a value");
            if (!value(depth)) return false;
        } while (take(','));
        return take('}') || fail_with("has an object that does not end");
    }
    bool array(int depth) {
        copy(1);
        if (take(']')) return true;
        do {
            if (!value(depth)) return false;
        } while (take(','));
        return take(']') || fail_with("has an array that does not end");
    }
    bool string() {
        if (!rest_.starts_with('"')) return fail_with("has no key where one has to be");
        std::size_t at = 1;
        while (at < rest_.size() && rest_[at] != '"') {
            if (static_cast<unsigned char>(rest_[at]) < 0x20)
                return fail_with("has a control character in a string");
            if (rest_[at] != '\\') {
                ++at;
                continue;
            }
            auto const bytes = escape(rest_.substr(at));
            if (bytes == 0) return fail_with("has an escape that JSON does not know");
            at += bytes;
        }
        if (at >= rest_.size()) return fail_with("has a string that does not end");
        copy(at + 1);
        return true;
    }
    // Returns how long an escape is; 0: it is none. A surrogate comes as one of a pair.
    static std::size_t escape(std::string_view text) {
        if (text.size() < 2) return 0;
        if (text[1] != 'u')
            return std::string_view("\"\\/bfnrt").find(text[1]) == std::string_view::npos ? 0 : 2;
        auto const unit = unit_of(text.substr(2));
        if (!unit || is_low(*unit)) return 0;
        if (!is_high(*unit)) return 6;
        if (!text.substr(6).starts_with("\\u")) return 0;
        auto const low = unit_of(text.substr(8));
        return low && is_low(*low) ? 12 : 0;
    }
    std::size_t digits(std::size_t at) const {
        std::size_t count = 0;
        while (at + count < rest_.size() && rest_[at + count] >= '0' && rest_[at + count] <= '9')
            ++count;
        return count;
    }
    bool number() {
        std::size_t at = rest_.starts_with('-') ? 1 : 0;
        auto const whole = digits(at);
        if (whole == 0 || (whole > 1 && rest_[at] == '0'))
            return fail_with("has something that is no value");
        at += whole;
        if (at < rest_.size() && rest_[at] == '.') {
            auto const fraction = digits(at + 1);
            if (fraction == 0) return fail_with("has a number that does not end");
            at += 1 + fraction;
        }
        if (at < rest_.size() && (rest_[at] == 'e' || rest_[at] == 'E')) {
            ++at;
            if (at < rest_.size() && (rest_[at] == '+' || rest_[at] == '-')) ++at;
            auto const exponent = digits(at);
            if (exponent == 0) return fail_with("has a number that does not end");
            at += exponent;
        }
        copy(at);
        return true;
    }

    std::string_view rest_;
    int const depth_max_;
    std::string out_;
    char const* complaint_ = nullptr;
};

// Returns how long the value at the front of a checked text is.
std::size_t size_of_value(std::string_view text) {
    int open = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        char const byte = text[at];
        if (byte == '"') {
            for (++at; at < text.size() && text[at] != '"'; ++at)
                if (text[at] == '\\') ++at;
            if (open == 0) return std::min(at + 1, text.size());
            continue;
        }
        if (byte == '{' || byte == '[') ++open;
        if (byte == ',' && open == 0) return at;
        if (byte == '}' || byte == ']') {
            if (open == 0) return at;
            if (--open == 0) return at + 1;
        }
    }
    return text.size();
}

void append_utf8(std::string& out, std::uint32_t point) {
    auto const tail = [&](unsigned shift) {
        out += static_cast<char>(0x80U | ((point >> shift) & 0x3fU));
    };
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xc0U | (point >> 6U));
        tail(0);
    } else if (point < 0x10000) {
        out += static_cast<char>(0xe0U | (point >> 12U));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xf0U | (point >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

char meant_by(char escape) {
    constexpr std::string_view from = "bfnrt";
    constexpr std::string_view to = "\b\f\n\r\t";
    auto const at = from.find(escape);
    return at == std::string_view::npos ? escape : to[at];
}

// Of the inside of a checked string.
std::string without_escapes(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const plain = std::min(text.find('\\'), text.size());
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.size() < 2) break;
        if (text[1] != 'u') {
            out += meant_by(text[1]);
            text.remove_prefix(2);
            continue;
        }
        auto point = unit_of(text.substr(2)).value_or(0);
        text.remove_prefix(std::min<std::size_t>(6, text.size()));
        if (is_high(point) && text.size() >= 6) {
            point = 0x10000 + ((point - 0xd800) << 10U) +
                    (unit_of(text.substr(2)).value_or(0xdc00) - 0xdc00);
            text.remove_prefix(6);
        }
        append_utf8(out, point);
    }
    return out;
}

}  // namespace

Result<std::string> compact_json(std::string_view text, JsonBounds const& bounds) {
    auto const refuse = [](std::string detail) {
        return fail(Problem::invalid_request, std::move(detail), "send JSON as the API has it");
    };
    if (text.size() > bounds.bytes_max)
        return refuse(fmt::format("the JSON has more than {} bytes", bounds.bytes_max));
    if (!valid_utf8(text)) return refuse("the JSON is not UTF-8");
    Compactor compactor(text, bounds.depth_max);
    if (auto const* const complaint = compactor.run())
        return refuse(fmt::format("the JSON {}", complaint));
    return std::move(compactor).out();
}

std::optional<std::string> string_in(std::string_view value) {
    if (value.size() < 2 || value.front() != '"') return std::nullopt;
    return without_escapes(value.substr(1, value.size() - 2));
}

Members::Members(std::string_view object) {
    if (is_object(object)) rest_ = object.substr(1, object.size() - 2);
}

bool Members::next() {
    if (rest_.empty()) return false;
    auto const key_size = size_of_value(rest_);
    key_ = string_in(rest_.substr(0, key_size)).value_or("");
    rest_.remove_prefix(std::min(key_size + 1, rest_.size()));
    value_ = rest_.substr(0, size_of_value(rest_));
    rest_.remove_prefix(std::min(value_.size() + 1, rest_.size()));
    return true;
}

Elements::Elements(std::string_view array) {
    if (is_array(array)) rest_ = array.substr(1, array.size() - 2);
}

bool Elements::next() {
    if (rest_.empty()) return false;
    value_ = rest_.substr(0, size_of_value(rest_));
    rest_.remove_prefix(std::min(value_.size() + 1, rest_.size()));
    return true;
}

std::string with_host(std::string_view host, std::string_view object) {
    std::string out;
    append_with_host(out, host, object);
    return out;
}

void append_with_host(std::string& out, std::string_view host, std::string_view object) {
    out.append(R"({"host":")").append(host).append("\"");
    if (object != "{}") out += ',';
    out += object.substr(1);
}

}  // namespace vfmgr::fleet
