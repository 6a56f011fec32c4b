// SPDX-License-Identifier: Apache-2.0
// Tables of JSON documents: which are refused, at which place and why; which are accepted, and
// survive being written. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "api/types/json.hpp"

namespace vfmgr {

inline void PrintTo(Violation const& violation, std::ostream* out) {
    *out << violation.pointer << ": " << violation.detail;
}

namespace test {

template <class T>
Error refusal_of(std::string const& text) {
    auto const value = from_json_text<T>(text);
    return value ? Error{Problem::internal, "was accepted: " + text, {}} : value.error();
}

// Applies `patch` (RFC 7396: null removes) to a base document, unless that is empty.
inline std::string patched(char const* base, char const* patch) {
    if (std::string_view(base).empty()) return patch;
    auto document = nlohmann::json::parse(base);
    document.merge_patch(nlohmann::json::parse(patch));
    return document.dump();
}

// One violation, and no other.
struct Refused {
    char const* name;
    Error (*read)(std::string const&);
    char const* base;
    char const* patch;
    char const* pointer;
    char const* detail;
};
// Prints the name of a case, not its bytes.
inline void PrintTo(Refused const& row, std::ostream* out) {
    *out << row.name;
}
inline std::string name_of(testing::TestParamInfo<Refused> const& row) {
    return row.param.name;
}

inline void expect_refused(Refused const& row) {
    auto const document = patched(row.base, row.patch);
    auto const error = row.read(document);
    ASSERT_EQ(error.problem, Problem::invalid_request) << error.detail;
    EXPECT_FALSE(error.remedy.empty());
    ASSERT_EQ(error.violations.size(), 1U) << nlohmann::json(error);
    EXPECT_EQ(error.violations[0], (Violation{row.pointer, row.detail})) << document;
    auto const place = *row.pointer == '\0' ? "the document" : row.pointer;
    EXPECT_EQ(error.detail, std::string(place) + " " + row.detail);
}

// Parsed, written and parsed again, it is the same value.
template <class T>
void expect_survives(std::string const& text) {
    auto const value = from_json_text<T>(text);
    ASSERT_TRUE(value) << text << ": " << value.error().detail;
    auto const written = to_json_text(nlohmann::json(*value));
    auto const again = from_json_text<T>(written);
    ASSERT_TRUE(again) << written << ": " << again.error().detail;
    EXPECT_EQ(*again, *value) << written;
}

}  // namespace test

}  // namespace vfmgr
