// SPDX-License-Identifier: Apache-2.0
// JSON as text: checked once, then cut into slices. The fleet keeps what its hosts send as the text
// that it is, because a tree of nlohmann::json takes some ten times as much memory, and passes it
// on without writing it again. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::fleet {

struct JsonBounds {
    std::size_t bytes_max = 0;
    int depth_max = 32;  // of objects and arrays in each other
};

// Returns the text without its white space, if it is one JSON value in UTF-8 within the bounds:
// then it has no line end, so that it fits a line of an event stream. Fails with bad_answer's words
// for what a host sent. Accepts what nlohmann::json accepts, and numbers of any size.
[[nodiscard]] Result<std::string> compact_json(std::string_view text, JsonBounds const& bounds);

// --- slices of what compact_json() returned; the views point into it ---------------------------

[[nodiscard]] inline bool is_object(std::string_view value) {
    return value.starts_with('{');
}
[[nodiscard]] inline bool is_array(std::string_view value) {
    return value.starts_with('[');
}
// Returns what a string says; nullopt: it is no string.
[[nodiscard]] std::optional<std::string> string_in(std::string_view value);

// Walks an object: `while (members.next()) use(members.key(), members.value());`. Of anything else
// there is nothing to walk.
class Members {
  public:
    explicit Members(std::string_view object);
    [[nodiscard]] bool next();
    [[nodiscard]] std::string const& key() const { return key_; }  // without its escapes
    [[nodiscard]] std::string_view value() const { return value_; }

  private:
    std::string_view rest_;
    std::string key_;
    std::string_view value_;
};

// The same for an array.
class Elements {
  public:
    explicit Elements(std::string_view array);
    [[nodiscard]] bool next();
    [[nodiscard]] std::string_view value() const { return value_; }

  private:
    std::string_view rest_;
    std::string_view value_;
};

// Returns {"host":"h7",…}: the object with that member before its own. `host` needs no escapes.
[[nodiscard]] std::string with_host(std::string_view host, std::string_view object);
void append_with_host(std::string& out, std::string_view host, std::string_view object);

}  // namespace vfmgr::fleet
