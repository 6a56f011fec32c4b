// SPDX-License-Identifier: Apache-2.0
// Answers that are documents of an API. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.hpp"

namespace vfmgr {

// A client may keep it, and asks whether it is still the same.
[[nodiscard]] http::Response document_answer(std::string body);

// The explanation of a problem in problems.md, or not_found.
[[nodiscard]] Result<http::Response> problem_explained(std::string_view problems,
                                                       std::string const& name);

}  // namespace vfmgr
