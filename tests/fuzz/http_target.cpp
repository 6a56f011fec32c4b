// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request target: refused, or parsed in one way only.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/http/uri.hpp"
#include "api/types/text.hpp"

using namespace vfmgr::http;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const target = parse_target(text);
    if (!target) {
        if (target.error().detail.empty() || target.error().remedy.empty()) std::abort();
        return 0;
    }
    if (!vfmgr::valid_utf8(target->path) || !valid_header_value(target->path)) std::abort();
    auto const again = parse_target(format_target(*target));
    if (!again || *again != *target) std::abort();
    return 0;
}
