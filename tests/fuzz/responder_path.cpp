// SPDX-License-Identifier: Apache-2.0
// Any bytes as a path of a served responder, or as a responder's address: an accepted path has
// clean ids, and an accepted address is the same when it is written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "api/types/addresses.hpp"
#include "vfmgr/proof/serve/responder_server.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const path(reinterpret_cast<char const*>(data), size);
    for (auto const* method : {"GET", "PUT", "POST", "DELETE"}) {
        auto const route = vfmgr::serve::responder_route(method, path);
        if (!route) continue;
        if (!std::ranges::all_of(route->ids, vfmgr::http::is_path_id)) std::abort();
        bool const fixed = path == "/responder/v1" || path == "/responder/v1/sessions";
        if (route->ids.empty() != fixed) std::abort();
    }
    auto const place = vfmgr::parse_host_port(path, 8473);
    if (place && vfmgr::parse_host_port(to_string(*place), 1) != place) std::abort();
    return 0;
}
