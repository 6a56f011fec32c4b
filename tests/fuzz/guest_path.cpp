// SPDX-License-Identifier: Apache-2.0
// Any bytes as a path of the guest plane: an accepted path has clean ids, and exactly those of its
// route.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "service/guest/route.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using To = vfmgr::GuestRoute::To;

bool is_clean(std::string_view id) {
    auto const clean = [](unsigned char ch) { return std::isalnum(ch) != 0 || ch == '-'; };
    return id.size() <= 64 && std::ranges::all_of(id, clean);
}

void judge(std::string_view method, vfmgr::GuestRoute const& route) {
    require(is_clean(route.id) && is_clean(route.stream));
    bool const fixed =
        route.to == To::config || route.to == To::topology || route.to == To::open_session;
    require(route.id.empty() == fixed);
    require(route.stream.empty() == (route.to != To::close_stream));
    require((method == "DELETE") == (route.to == To::close_stream));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const path(reinterpret_cast<char const*>(data), size);
    for (auto const* method : {"GET", "PUT", "POST", "DELETE"})
        if (auto const route = vfmgr::guest_route(method, path)) judge(method, *route);
    return 0;
}
