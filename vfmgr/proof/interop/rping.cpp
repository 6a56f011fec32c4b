// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/rping.hpp"

#include <optional>

#include "api/types/text.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds start_time{10}, last_word_time{1};

std::vector<std::string> words_of(Terms const& terms) {
    auto const& permit = terms.permit;
    return {to_string(permit.peer_address),
            to_string(permit.host_address),
            permit.host_netdev,
            std::to_string(terms.cm_port),
            std::to_string(seconds_left(terms.until)),
            word_of(permit.vf_guid),
            word_of(permit.host_guid),
            word_of(permit.pkey ? std::optional(permit.pkey->key) : std::nullopt)};
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
    if (message && message->starts_with(rping_ready)) {
        auto const port = parse_digits(message->substr(rping_ready.size()), {10, 1, 5, 65535});
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

}  // namespace vfmgr::interop
