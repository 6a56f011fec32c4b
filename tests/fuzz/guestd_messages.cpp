// SPDX-License-Identifier: Apache-2.0
// Any bytes as messages between vfmgrd and vfmgr-guestd: a parsed one is the same when it is
// written and parsed again.
#include "service/guest/messages.hpp"

#include "api/os/message_lines.hpp"
#include "tests/fuzz/round_trip.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::guestd;
    vfmgr::Lines lines;
    if (!lines.add({reinterpret_cast<char const*>(data), size})) return 0;
    while (auto const line = lines.next()) round_trip(parse_message, *line);
    return 0;
}
