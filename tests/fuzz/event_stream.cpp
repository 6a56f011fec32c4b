// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text/event-stream: the same events in whatever parts they come, and events that
// are written again are read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/http/sse.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace vfmgr::http;

constexpr std::size_t bytes_max = 1024;

struct Parsed {
    std::vector<SentEvent> events;
    std::string last_id;
    bool fits = true;
    bool operator==(Parsed const&) const = default;
};

Parsed parse(std::string_view text, std::size_t part) {
    SseParser parser(bytes_max);
    Parsed parsed;
    for (; !text.empty() && parsed.fits; text.remove_prefix(std::min(part, text.size())))
        parsed.fits = parser.feed(text.substr(0, part),
                                  [&](SentEvent const& event) { parsed.events.push_back(event); });
    parsed.last_id = parser.last_id();
    return parsed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const whole = parse(text, size + 1);
    for (std::size_t const part : {1U, 3U, 17U}) require(parse(text, part) == whole);
    for (auto const& event : whole.events) {
        require(event.data.size() <= bytes_max);
        if (event.data.find_first_of("\r\n") != event.data.npos) continue;
        auto const again = parse(sse_event(7, event.name, event.data), 5);
        if (!again.fits) continue;
        require(again.events == std::vector<SentEvent>{{"7", event.name, event.data}});
    }
    return 0;
}
