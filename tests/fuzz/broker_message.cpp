// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between the front and the broker: a parsed message is the same when it is
// written and parsed again, and a step of it is admitted or refused.
#include "service/broker/messages.hpp"

#include "api/os/message_lines.hpp"
#include "service/broker/admit.hpp"
#include "tests/fuzz/round_trip.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::broker;
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    vfmgr::Lines lines;
    if (!lines.add(bytes)) return 0;
    while (auto const line = lines.next()) {
        round_trip(parse_greeting, *line);
        round_trip(parse_answer, *line);
        auto const request = round_trip(parse_request, *line);
        if (!request || !request->step) continue;
        Records records;
        static_cast<void>(sight_for(records, *request->step));
        records = recorded_before(std::move(records), {}, *request->step);
        // Without a host, no device is a VF.
        bool const looks = sight_for(records, *request->step) == Sight::pf_and_vms;
        if (!looks && admit({}, records, {}, *request->step))
            static_cast<void>(recorded_after(records, records, *request->step));
    }
    return 0;
}
