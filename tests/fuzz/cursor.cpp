// SPDX-License-Identifier: Apache-2.0
// A list on the first line, and any bytes as a cursor of it: refused, or the one cursor of its key.
// The same bytes as a key: it comes back from its cursor.
#include "service/routes/cursor.hpp"

#include <algorithm>
#include <cstdint>

#include "tests/fuzz/require.hpp"

using namespace vfmgr;

namespace {

template <class Key>
void parse_as(std::string_view text) {
    auto const key = parse_key<Key>(text);
    if (key) require(parse_key<Key>(key_text(*key)) == key);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const all(reinterpret_cast<char const*>(data), size);
    auto const end = std::min(all.find('\n'), all.size());
    auto const list = all.substr(0, end);
    auto const text = all.substr(std::min(end + 1, all.size()));
    if (auto const key = key_in(text, list))
        require(make_cursor(list, *key) == text);
    else
        require(!key.error().detail.empty() && !key.error().remedy.empty());
    if (text.size() <= 256) require(key_in(make_cursor(list, text), list) == std::string(text));
    parse_as<std::string>(text);
    parse_as<PciAddress>(text);
    parse_as<VfId>(text);
    parse_as<RowPlace>(text);
    parse_as<CreatedAndId>(text);
    return 0;
}
