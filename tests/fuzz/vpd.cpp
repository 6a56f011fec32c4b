// SPDX-License-Identifier: Apache-2.0
// Vital product data as a card returns it. A serial is text that can be shown and stored.
#include <algorithm>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/kernel/pci.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const serial = vfmgr::vpd_serial({reinterpret_cast<char const*>(data), size});
    if (!serial) return 0;
    require(!serial->empty() && serial->size() <= 255);
    require(std::ranges::all_of(*serial, [](char c) { return c >= ' ' && c <= '~'; }));
    return 0;
}
