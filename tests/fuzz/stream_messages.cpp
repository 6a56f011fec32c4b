// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message from the other end of a stream test, as a packet, and as a rate: no crash,
// nothing beyond the limits, no output that moves the terminal's cursor; and an accepted message is
// written, read again and equal.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "guest-tools/traffic/messages.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/tally.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::stream;

bool printable(std::string_view text) {
    for (char const ch : text)
        if (static_cast<unsigned char>(ch) < 0x20) return false;
    return true;
}

template <class T>
void same_again(T const& value) {
    require(from_json_text<T>(to_json_text(nlohmann::json(value))) == value);
}

void as_senders(std::string_view line) {
    if (auto const opening = read_opening(line)) {
        require(opening->run.size() == 16 && opening->version == protocol_version);
        require(opening->packet_bytes >= packet_bytes_min);
        require(opening->packet_bytes <= packet_bytes_max(opening->over));
        require(opening->chunk >= 1 && opening->chunk <= chunk_max);
        require(opening->pair.has_value() == (opening->over == Over::ud));
        same_again(*opening);
    } else {
        require(printable(opening.error().detail) && !opening.error().remedy.empty());
    }
    if (auto const ending = read_ending(line)) {
        require(ending->packets <= sequence_max && ending->filtered <= ending->packets);
        require(ending->lateness.late <= ending->lateness.chunks);
        same_again(*ending);
    }
}

void as_receivers(std::string_view line) {
    for (auto const over : {Over::udp, Over::ud}) {
        if (auto const acceptance = read_acceptance(line, over))
            require(over == Over::udp ? acceptance->udp_port > 0 : acceptance->pair.has_value());
        else
            require(printable(acceptance.error().detail) && printable(acceptance.error().remedy));
    }
    if (auto const said = from_json_text<Acceptance>(line)) same_again(*said);
    if (auto const summary = read_summary(line)) {
        require(summary->received <= sequence_max && summary->run.size() == 16);
        require(summary->bytes() / summary->packet_bytes == summary->received);
        require(!summary->lost || summary->received + *summary->lost == summary->sent->packets);
        require(summary->ring.gpu.has_value() == (summary->ring.memory == Memory::gpu));
        require(summary->ring.route.has_value() == summary->ring.gpu.has_value());
        same_again(*summary);
    }
}

void as_packet(std::span<std::byte const> bytes) {
    if (bytes.size() < sizeof(std::uint64_t)) return;
    std::uint64_t run = 0;
    std::memcpy(&run, bytes.data(), sizeof run);
    auto const number = packet_number(bytes, run);
    if (!number) return;
    require(*number < sequence_max && bytes.size() >= packet_bytes_min);
    std::vector<std::byte> same(bytes.begin(), bytes.end());
    number_packet(same, run, *number);
    require(std::equal(same.begin(), same.end(), bytes.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    as_senders(text);
    as_receivers(text);
    as_packet(std::as_bytes(std::span(data, size)));
    if (auto const rate = parse_rate(text)) require(*rate >= 1 && *rate <= 10'000'000'000'000);
    return 0;
}
