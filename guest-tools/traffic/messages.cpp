// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/messages.hpp"

#include <algorithm>
#include <charconv>

#include "api/types/json.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::size_t run_digits = 16;
constexpr std::size_t text_characters_max = 1000;
constexpr std::size_t causes_max = 8;

bool is_run(std::string_view run) {
    return run.size() == run_digits && run.find_first_not_of("0123456789abcdef") == run.npos;
}

void check_packet(JsonReader& reader, Over over, std::uint32_t packet_bytes) {
    if (packet_bytes < packet_bytes_min || packet_bytes > packet_bytes_max(over))
        reader.complain("packet_bytes",
                        fmt::format("must be from {} to {} over {}", packet_bytes_min,
                                    packet_bytes_max(over), enum_name(over)));
}

// The refusal is printed on a terminal.
void check_refusal(JsonReader& reader, Error& refusal) {
    refusal.violations.clear();
    check_text(reader, "refusal/detail", refusal.detail, text_characters_max);
    check_text(reader, "refusal/remedy", refusal.remedy, text_characters_max);
    if (refusal.causes.size() > causes_max)
        return reader.complain("refusal/cause", fmt::format("must be {} at most", causes_max));
    for (auto const& cause : refusal.causes)
        check_text(reader, "refusal/cause", cause.call + cause.code + cause.text,
                   text_characters_max);
}

// Reads a line of the other end; fails on one that a vf-guest of this version does not send.
template <class T>
Result<T> read_line(std::string_view line, char const* who) {
    auto value = from_json_text<T>(line);
    if (value) return value;
    auto why = value.error().detail;  // which contains the other end's keys
    std::ranges::replace_if(why, [](unsigned char ch) { return ch < 0x20 || ch == 0x7f; }, '?');
    return fail(Problem::guest_refused,
                fmt::format("the {} sent a message that is not understood: {}", who, why),
                "use the same version of vf-guest on both machines");
}

}  // namespace

template <class F, Of<Opening> V>
void fields(F& f, V& opening) {
    f.value("version", opening.version);
    f.value("run", opening.run);
    f.value("over", opening.over);
    f.value("packet_bytes", opening.packet_bytes);
    f.value("chunk", opening.chunk);
    f.maybe("pair", opening.pair);
}

template <class F, Of<Acceptance> V>
void fields(F& f, V& acceptance) {
    f.maybe("udp_port", acceptance.udp_port);
    f.maybe("pair", acceptance.pair);
    f.maybe("refusal", acceptance.refusal);
}

template <class F, Of<Ending> V>
void fields(F& f, V& ending) {
    f.value("packets", ending.packets);
    f.value("microseconds", ending.microseconds);
    f.value("chunks", ending.lateness.chunks);
    f.value("late_chunks", ending.lateness.late);
    f.value("late_max_us", ending.lateness.late_max_us);
    f.value("filtered", ending.filtered);
}

template <class F, Of<RingPlace> V>
void fields(F& f, V& ring) {
    f.value("memory", ring.memory);
    f.nullable("gpu", ring.gpu);
    f.nullable("route", ring.route);
}

template <class F, Of<Summary> V>
void fields(F& f, V& summary) {
    f.value("run", summary.run);
    f.value("over", summary.over);
    f.value("packet_bytes", summary.packet_bytes);
    f.value("end", summary.end);
    f.nullable("sent", summary.sent);
    f.nullable("lost", summary.lost);
    f.value("received", summary.received);
    f.value("missing", summary.missing);
    f.value("out_of_order", summary.out_of_order);
    f.value("duplicates", summary.duplicates);
    f.value("too_late", summary.too_late);
    f.value("foreign", summary.foreign);
    f.value("microseconds", summary.microseconds);
    f.value("timed", summary.timed);
    f.nullable("socket_lost", summary.socket_lost);
    f.value("ring_packets", summary.ring_packets);
    fields(f, summary.ring);
}

std::uint32_t packet_bytes_max(Over over) {
    return over == Over::udp ? 65'507 : 4096;
}

std::uint64_t run_number(std::string_view run) {
    std::uint64_t number = 0;
    std::from_chars(run.data(), run.data() + run.size(), number, 16);
    return number;
}

Result<Opening> read_opening(std::string_view line) {
    auto const any = parse_json(line);
    if (any && any->is_object()) {
        auto const version = any->find("version");
        if (version != any->end() && version->is_number_unsigned() && *version != protocol_version)
            return fail(
                Problem::unsupported,
                fmt::format(
                    "the sender's stream test has version {}, the receiver's has version {}",
                    version->get<std::uint64_t>(), protocol_version),
                "use the same version of vf-guest on both machines");
    }
    return read_line<Opening>(line, "sender");
}

Result<Acceptance> read_acceptance(std::string_view line, Over over) {
    VFMGR_TRY(auto acceptance, read_line<Acceptance>(line, "receiver"));
    if (acceptance.refusal) {
        // "this machine" in the detail means the receiver, not the sender.
        acceptance.refusal->detail = "the receiver refused: " + acceptance.refusal->detail;
        return fail(std::move(*acceptance.refusal));
    }
    if (acceptance.pair.has_value() == (over == Over::ud)) return acceptance;
    return fail(Problem::guest_refused,
                fmt::format("the receiver did not send its end of {}", enum_name(over)),
                "use the same version of vf-guest on both machines");
}

Result<Ending> read_ending(std::string_view line) {
    return read_line<Ending>(line, "sender");
}

Result<Summary> read_summary(std::string_view line) {
    return read_line<Summary>(line, "receiver");
}

void check(JsonReader& reader, Opening const& opening) {
    if (!reader.clean()) return;
    if (opening.version != protocol_version)
        reader.complain("version", fmt::format("must be {}", protocol_version));
    if (!is_run(opening.run))
        reader.complain("run", fmt::format("must be {} hexadecimal digits", run_digits));
    check_packet(reader, opening.over, opening.packet_bytes);
    if (opening.chunk < 1 || opening.chunk > chunk_max)
        reader.complain("chunk", fmt::format("must be from 1 to {}", chunk_max));
    if (opening.pair.has_value() != (opening.over == Over::ud))
        reader.complain("pair", "must be present with ud, and only then");
}

void check(JsonReader& reader, Acceptance& acceptance) {
    if (!reader.clean()) return;
    int const present = static_cast<int>(acceptance.udp_port.has_value()) +
                        static_cast<int>(acceptance.pair.has_value()) +
                        static_cast<int>(acceptance.refusal.has_value());
    if (present != 1) reader.complain("", "must have one of udp_port, pair and refusal");
    if (acceptance.udp_port == 0) reader.complain("udp_port", "must not be 0");
    if (acceptance.refusal) check_refusal(reader, *acceptance.refusal);
}

void check(JsonReader& reader, Ending const& ending) {
    if (!reader.clean()) return;
    if (ending.packets > sequence_max)
        reader.complain("packets", fmt::format("must be {} at most", sequence_max));
    if (ending.filtered > ending.packets)
        reader.complain("filtered", "must not be more than packets");
    if (ending.lateness.late > ending.lateness.chunks || ending.lateness.chunks > ending.packets)
        reader.complain("chunks", "must be at most packets, and late_chunks at most chunks");
}

void check(JsonReader& reader, Summary const& summary) {
    if (!reader.clean()) return;
    if (!is_run(summary.run))
        reader.complain("run", fmt::format("must be {} hexadecimal digits", run_digits));
    check_packet(reader, summary.over, summary.packet_bytes);
    if (summary.received > sequence_max)
        reader.complain("received", fmt::format("must be {} at most", sequence_max));
    if (summary.timed > summary.received)
        reader.complain("timed", "must not be more than received");
    bool const in_gpu = summary.ring.memory == Memory::gpu;
    if (summary.ring.gpu.has_value() != in_gpu || summary.ring.route.has_value() != in_gpu)
        reader.complain("memory", "must be gpu with gpu and route, otherwise host without them");
    // There is no loss figure when more arrived than was sent.
    if (summary.lost && (!summary.sent || *summary.lost > summary.sent->packets ||
                         summary.received != summary.sent->packets - *summary.lost))
        reader.complain("lost", "must be the number of packets sent and not received");
}

}  // namespace vfmgr::stream

template struct vfmgr::Json<vfmgr::stream::Opening>;
template struct vfmgr::Json<vfmgr::stream::Acceptance>;
template struct vfmgr::Json<vfmgr::stream::Ending>;
template void vfmgr::Json<vfmgr::stream::RingPlace>::write(nlohmann::json&,
                                                           vfmgr::stream::RingPlace const&);
template struct vfmgr::Json<vfmgr::stream::Summary>;
