// SPDX-License-Identifier: Apache-2.0
// The content coding gzip (RFC 1952) of whole texts. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vfmgr::http {

// Fast rather than small: a list of the API shrinks to less than a tenth anyway.
[[nodiscard]] std::string gzip(std::string_view text);

// Whether an Accept-Encoding header (RFC 9110, 12.5.3) lets an answer be coded with gzip. Empty:
// the client sent none.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

}  // namespace vfmgr::http
