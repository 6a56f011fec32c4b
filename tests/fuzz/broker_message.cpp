// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between the front and the broker: a parsed message is the same when it is
// written and parsed again, and a step of it is admitted or refused.
#include "service/broker/messages.hpp"

#include <cstdlib>

#include "api/os/message_lines.hpp"
#include "service/broker/admit.hpp"

namespace {

using namespace vfmgr::broker;

template <class Parse>
auto check(Parse parse, std::string_view line) {
    auto message = parse(line);
    if (!message) return message;
    auto const again = to_line(*message);
    auto const same = parse(std::string_view(again).substr(0, again.size() - 1));
    if (!same || to_line(*same) != again) std::abort();
    return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    vfmgr::Lines lines;
    if (!lines.add(bytes)) return 0;
    while (auto const line = lines.next()) {
        check(parse_greeting, *line);
        check(parse_answer, *line);
        auto const request = check(parse_request, *line);
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
