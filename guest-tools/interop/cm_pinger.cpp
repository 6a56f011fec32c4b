// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/cm_pinger.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "api/types/json.hpp"
#include "api/types/stream.hpp"
#include "api/types/text.hpp"
#include "guest-tools/interop/child.hpp"
#include "guest-tools/interop/cm_client.hpp"
#include "guest-tools/verify/judge.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds report_time{1};  // after the deadline of the pings
constexpr std::size_t cm_sentence_max = 1000;   // each of detail and remedy: both fit one message

struct PingOrder {
    verify::CmOptions options;
    Deadline deadline;
};

std::vector<std::string> words_of_ping(verify::CmOptions const& options, Deadline deadline) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    return {to_string(options.own.address),   options.own.ifname,
            std::to_string(options.own.dscp), to_string(options.host),
            std::to_string(options.cm_port),  std::to_string(options.message_bytes),
            std::to_string(options.pings),    std::to_string(std::max<long>(left.count(), 0))};
}

std::optional<PingOrder> order_in(std::vector<std::string> const& words) {
    if (words.size() != 8) return std::nullopt;
    auto const own = IpAddress::parse(words[0]);
    auto const dscp = parse_digits(words[2], {10, 1, 2, dscp_max});
    auto const host = IpAddress::parse(words[3]);
    auto const port = parse_digits(words[4], {10, 1, 5, 65535});
    auto const bytes = parse_digits(words[5], {10, 1, 7, cm_bytes_max});
    auto const pings = parse_digits(words[6], {10, 1, 7});
    auto const milliseconds = parse_digits(words[7], {10, 1, 7});
    if (!own || !dscp || !host || !port || !bytes || *bytes == 0 || !pings || !milliseconds)
        return std::nullopt;
    return PingOrder{{{*own, words[1], static_cast<std::uint8_t>(*dscp)},
                      *host,
                      static_cast<std::uint16_t>(*port),
                      static_cast<std::uint32_t>(*bytes),
                      *pings},
                     Steady::now() + std::chrono::milliseconds(*milliseconds)};
}

Error no_word(bool in_time) {
    return {Problem::internal,
            in_time ? "the RDMA CM client ended without a result"
                    : "the RDMA CM client did not end in time",
            "check this machine's kernel log: dmesg | tail"};
}

verify::Measured ping_in_child(std::vector<std::string> program, verify::CmOptions const& options,
                               Deadline deadline) {
    for (auto& word : words_of_ping(options, deadline)) program.push_back(std::move(word));
    auto const child = Child::start(std::move(program), "the RDMA CM client");
    if (!child) return verify::measured_failure("cm_ping", child.error());
    auto const until = deadline + report_time;
    auto const message = (*child)->receive(until);
    if (!message) return verify::measured_failure("cm_ping", no_word(Steady::now() < until));
    auto result = from_json_text<TestResult>(*message);
    if (!result) return verify::measured_failure("cm_ping", result.error());
    return {std::move(*result)};
}

}  // namespace

verify::CmPinger cm_pinger(std::vector<std::string> program) {
    return [program = std::move(program)](verify::CmOptions const& options, Deadline deadline) {
        return ping_in_child(program, options, deadline);
    };
}

int ping_by_cm(std::vector<std::string> const& words) {
    auto const order = order_in(words);
    if (!order) return 2;
    // The child gets no other notification when the parent dies.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto pinged = ping_over_cm(order->options, order->deadline);
    auto made = pinged ? std::move(*pinged) : verify::measured_failure("cm_ping", pinged.error());
    auto& result = made.result;
    result.detail = verify::printable(result.detail, cm_sentence_max);
    result.remedy = verify::printable(result.remedy, cm_sentence_max);
    report_to_parent(to_json_text(nlohmann::json(result)));
    return 0;
}

}  // namespace vfmgr::interop
