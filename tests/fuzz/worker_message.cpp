// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between a worker and its daemon: a parsed message is the same when it is
// written and parsed again.
#include "api/os/message_lines.hpp"
#include "tests/fuzz/round_trip.hpp"
#include "vfmgr/kernel/worker.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    vfmgr::Lines lines;
    if (!lines.add(bytes)) return 0;
    while (auto const line = lines.next()) {
        round_trip(vfmgr::parse_request, *line);
        round_trip(vfmgr::parse_answer, *line);
    }
    return 0;
}
