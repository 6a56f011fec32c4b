// SPDX-License-Identifier: Apache-2.0
// Any bytes as the value of If-Match: refused, or "*", or whole tags that parse to themselves.
#include <cstdint>

#include "service/routes/conditions.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const tags = parse_entity_tags({reinterpret_cast<char const*>(data), size});
    if (!tags) {
        require(!tags.error().detail.empty() && !tags.error().remedy.empty());
        return 0;
    }
    if (!*tags) return 0;
    require(!(*tags)->empty());
    for (auto const& tag : **tags) {
        require(tag.text.size() >= 2 && tag.text.find('"', 1) == tag.text.size() - 1);
        auto const again = parse_entity_tags((tag.weak ? "W/" : "") + tag.text);
        require(again && *again && (*again)->size() == 1 && (*again)->front() == tag);
    }
    return 0;
}
