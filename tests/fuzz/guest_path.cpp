// SPDX-License-Identifier: Apache-2.0
// Any bytes as a path of the guest plane: what is taken has a clean id.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "service/guest/route.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const path(reinterpret_cast<char const*>(data), size);
    for (auto const* method : {"GET", "PUT", "POST"}) {
        auto const route = vfmgr::guest_route(method, path);
        if (!route) continue;
        auto const clean = [](unsigned char ch) { return std::isalnum(ch) != 0 || ch == '-'; };
        if (route->id.size() > 64 || !std::ranges::all_of(route->id, clean)) std::abort();
        bool const fixed = path == "/guest/v1/config" || path == "/guest/v1/sessions";
        if (route->id.empty() != fixed) std::abort();
    }
    return 0;
}
