// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace vfmgr::stream {
namespace {

// Absent where no time has passed.
std::optional<double> a_second(std::uint64_t amount, std::uint64_t in_microseconds) {
    if (in_microseconds == 0) return std::nullopt;
    return static_cast<double>(amount) * 1e6 / static_cast<double>(in_microseconds);
}

std::optional<double> mbps(std::uint64_t bytes, std::uint64_t in_microseconds) {
    auto const rate = a_second(bytes, in_microseconds);
    return rate ? std::optional(*rate * 8 / 1e6) : std::nullopt;
}

// Excludes the first packets, whose time is unknown: with them the rate would be too high.
std::uint64_t timed_bytes(Summary const& summary) {
    return summary.timed * summary.packet_bytes;
}

nlohmann::json rounded(std::optional<double> const& value) {
    if (!value) return nullptr;
    return std::round(*value * 1000) / 1000;
}

std::string rate_text(std::uint64_t packets, std::uint64_t bytes, std::uint64_t in_microseconds) {
    return fmt::format("{:.1f} Mbit/s  {:.0f} packets/s", mbps(bytes, in_microseconds).value_or(0),
                       a_second(packets, in_microseconds).value_or(0));
}

std::string sent_text(Summary const& summary) {
    if (!summary.sent) return "sent       unknown\n";
    auto const& sent = *summary.sent;
    auto text = fmt::format("sent       {} packets of {} bytes over {} in {:.3f} s", sent.packets,
                            summary.packet_bytes, enum_name(summary.over),
                            static_cast<double>(sent.microseconds) / 1e6);
    if (sent.lateness.late > 0)
        text += fmt::format("; {} of {} chunks late, by {} us at most", sent.lateness.late,
                            sent.lateness.chunks, sent.lateness.late_max_us);
    return text + "\n";
}

std::string lost_text(Summary const& summary) {
    if (!summary.sent)
        return fmt::format("lost       at least {}: {}\n", summary.missing,
                           "the number of packets sent is unknown");
    if (!summary.lost)
        return fmt::format(
            "lost       unknown: more packets came than the sender reported as sent\n");
    auto const share = summary.sent->packets == 0 ? 0.0
                                                  : 100.0 * static_cast<double>(*summary.lost) /
                                                        static_cast<double>(summary.sent->packets);
    return fmt::format("lost       {} packets ({:.4g} %)\n", *summary.lost, share);
}

// Names where packets were lost, as far as it is known.
std::string place_text(Summary const& summary) {
    std::string text;
    if (summary.received == 0 && summary.foreign == 0 && summary.sent && summary.sent->packets > 0)
        text += fmt::format(
            "  no packet came: let UDP port {} through the firewalls between: nft list ruleset\n",
            summary.over == Over::ud ? "4791 (RoCE v2)" : "18525, or --port,");
    if (summary.sent && summary.sent->filtered > 0)
        text += fmt::format("  on the sender: {} refused by its packet filter: nft list ruleset\n",
                            summary.sent->filtered);
    if (summary.socket_lost.value_or(0) > 0)
        text += fmt::format(
            "  on the receiver: {} dropped by its socket, whose buffer was full: run it as root, "
            "or raise net.core.rmem_max; give it a CPU of its own\n",
            *summary.socket_lost);
    if (summary.too_late > 0)
        text +=
            fmt::format("  {} came more than {} packets late: counted as lost, may be duplicates\n",
                        summary.too_late, sequence_window);
    return text;
}

char const* end_text(End end) {
    constexpr std::array texts{"",
                               "end        the sender disconnected before it reported its end\n",
                               "end        the receiver reached its time limit\n",
                               "end        the receiver was stopped\n"};
    return texts.at(static_cast<std::size_t>(end));
}

}  // namespace

std::string describe(Interval const& second) {
    auto text =
        fmt::format("{:>6.1f} s  {}  {} packets  {} bytes  lost {}  out of order {}  duplicated {}",
                    static_cast<double>(second.until_us) / 1e6,
                    rate_text(second.packets, second.bytes, second.microseconds), second.packets,
                    second.bytes, second.lost, second.out_of_order, second.duplicates);
    if (second.foreign > 0) text += fmt::format("  foreign {}", second.foreign);
    if (second.socket_lost.value_or(0) > 0)
        text += fmt::format("  lost here: {}, socket buffer full", *second.socket_lost);
    return text;
}

std::string describe(RingPlace const& ring) {
    if (!ring.gpu || !ring.route) return "in main memory";
    return fmt::format("in GPU {}, {}{}", to_string(*ring.gpu),
                       ring.route == verify::Route::staged ? "" : "by ",
                       verify::route_text(*ring.route));
}

std::string describe(Summary const& summary) {
    auto text = sent_text(summary);
    text += fmt::format("received   {} packets  {} bytes  {}\n", summary.received, summary.bytes(),
                        rate_text(summary.timed, timed_bytes(summary), summary.microseconds));
    text += lost_text(summary) + place_text(summary);
    text += fmt::format("ring       {} packets {}\n", summary.ring_packets, describe(summary.ring));
    text += fmt::format("also       out of order {}  duplicated {}  foreign {}\n",
                        summary.out_of_order, summary.duplicates, summary.foreign);
    return text + end_text(summary.end);
}

nlohmann::json document(Interval const& second) {
    nlohmann::json made{
        {"type", "second"},
        {"seconds", rounded(static_cast<double>(second.until_us) / 1e6)},
        {"packets", second.packets},
        {"bytes", second.bytes},
        {"rate_mbps", rounded(mbps(second.bytes, second.microseconds))},
        {"packets_per_second", rounded(a_second(second.packets, second.microseconds))},
        {"lost", second.lost},
        {"out_of_order", second.out_of_order},
        {"duplicates", second.duplicates},
        {"foreign", second.foreign},
        {"socket_lost", nullptr}};
    if (second.socket_lost) made["socket_lost"] = *second.socket_lost;
    return made;
}

nlohmann::json document(Summary const& summary) {
    nlohmann::json made(summary);
    made["type"] = "summary";
    made["bytes"] = summary.bytes();
    made["rate_mbps"] = rounded(mbps(timed_bytes(summary), summary.microseconds));
    made["packets_per_second"] = rounded(a_second(summary.timed, summary.microseconds));
    return made;
}

}  // namespace vfmgr::stream
