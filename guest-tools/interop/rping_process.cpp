// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/rping_process.hpp"

#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "api/types/text.hpp"
#include "guest-tools/interop/cm_server.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds start_time{10}, last_word_time{1};
constexpr std::chrono::milliseconds report_interval{500};
constexpr std::string_view ready = "ready ";  // followed by the port

std::vector<std::string> words_of(Terms const& terms) {
    auto const& permit = terms.permit;
    return {to_string(permit.peer_address), to_string(permit.host_address), permit.host_netdev,
            std::to_string(terms.cm_port), std::to_string(seconds_left(terms.until))};
}

std::optional<Terms> terms_in(std::vector<std::string> const& words) {
    if (words.size() != 5) return std::nullopt;
    auto const peer = IpAddress::parse(words[0]);
    auto const host = IpAddress::parse(words[1]);
    auto const port = parse_digits(words[3], {10, 1, 5, 65535});
    auto const seconds = parse_digits(words[4], {10, 1, 5});
    if (!peer || !host || !port || !seconds) return std::nullopt;
    Terms terms;
    terms.permit.peer_address = *peer;
    terms.permit.host_address = *host;
    terms.permit.host_netdev = words[2];
    terms.cm_port = static_cast<std::uint16_t>(*port);
    terms.until = Steady::now() + std::chrono::seconds(*seconds);
    return terms;
}

std::string text_of(Served const& served) {
    return fmt::format("{} {} {}", served.served, served.refused, served.pings);
}

}  // namespace

Result<std::unique_ptr<RpingProcess>> RpingProcess::start(std::vector<std::string> program,
                                                          Terms const& terms) {
    for (auto& word : words_of(terms)) program.push_back(std::move(word));
    VFMGR_TRY(auto child, Child::start(std::move(program), "rping's server"));
    std::unique_ptr<RpingProcess> made(new RpingProcess(std::move(child)));
    VFMGR_CHECK(made->await_ready(Steady::now() + start_time));
    return made;
}

Result<void> RpingProcess::await_ready(Deadline deadline) {
    auto const message = child_->receive(deadline);
    if (message && message->starts_with(ready)) {
        auto const port = parse_digits(message->substr(ready.size()), {10, 1, 5, 65535});
        port_ = static_cast<std::uint16_t>(port.value_or(0));
        if (port_ != 0) return {};
    }
    return fail(Problem::unsupported, message ? *message : "rping's server ended without a result",
                "check the kernel log: dmesg | tail");
}

void RpingProcess::take(std::string_view message) const {
    auto const first = take_until(message, ' ');
    auto const second = take_until(message, ' ');
    auto const served = first ? parse_digits(*first, {}) : std::nullopt;
    auto const refused = second ? parse_digits(*second, {}) : std::nullopt;
    auto const pings = parse_digits(message, {});
    if (served && refused && pings) served_ = {*served, *refused, *pings};
}

Served RpingProcess::served() const {
    std::lock_guard const lock(mutex_);
    while (auto const message = child_->received()) take(*message);
    return served_;
}

Served RpingProcess::stop() {
    std::lock_guard const lock(mutex_);
    child_->end_input();
    auto const deadline = Steady::now() + last_word_time;
    while (auto const message = child_->receive(deadline)) take(*message);
    return served_;
}

int serve_rping(std::vector<std::string> const& words) {
    auto const terms = terms_in(words);
    if (!terms) return 2;
    // Ignores signals to the daemon's process group: the child ends when its standard input ends.
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    auto const server = CmServer::start(*terms);
    if (!server) {
        auto const& error = server.error();
        report_to_parent(detail_with_causes(error) + "; " + error.remedy);
        return 1;
    }
    report_to_parent(fmt::format("{}{}", ready, (*server)->port()));
    Served message;
    while (Steady::now() < terms->until && !await_end_of_input(Steady::now() + report_interval)) {
        auto const now = (*server)->served();
        // Reports pings only along with these: a socket that is not read must not fill up.
        if (now.served == message.served && now.refused == message.refused) continue;
        message = now;
        report_to_parent(text_of(now));
    }
    // Before the server ends, because that takes time.
    report_to_parent(text_of((*server)->served()));
    return 0;
}

}  // namespace vfmgr::interop
