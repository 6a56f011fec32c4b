// SPDX-License-Identifier: Apache-2.0
// Any bytes as the broker's file: parsed records are the same when they are written and parsed
// again.
#include "service/broker/records.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::broker;
    auto const records = parse_records({reinterpret_cast<char const*>(data), size});
    if (!records) return 0;
    auto const same = parse_records(to_text(*records));
    if (!same || *same != *records) std::abort();
    return 0;
}
