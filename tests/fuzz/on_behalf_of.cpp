// SPDX-License-Identifier: Apache-2.0
// Any bytes as the headers and the URI by which a fleet says who it is and whose request it passes
// on: refused with a reason, or a name that can be printed and is no replica's.
#include <algorithm>
#include <cstdint>

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const name = parse_replica_uri(text)) {
        require(to_uri(*name) == text && name->replica.find(':') == std::string::npos);
        require(parse_replica_uri(to_uri(*name)) == name);
    }
    auto const caller = parse_on_behalf_of(text);
    if (!caller) {
        require(!caller.error().detail.empty() && !caller.error().remedy.empty());
        return 0;
    }
    require(size <= on_behalf_of_bytes_max);
    auto const& who = caller->who;
    require(who.find(':') != std::string::npos && who.size() <= 200);
    require(std::ranges::all_of(who, [](char one) { return one > ' ' && one < 0x7f; }));
    require(!(caller->tenant && caller->role == Role::admin));
    require(parse_on_behalf_of(to_json_text(nlohmann::json(*caller))) == *caller);
    return 0;
}
