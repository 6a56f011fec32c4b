// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/rc_ping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-tools/verify/digest.hpp"
#include "guest-tools/verify/payload.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t send_id = 1U << 20;  // receives are numbered from 0

struct Pings {
    RegisteredMemory questions;
    RegisteredMemory answers;
    double round_trip_us_min = 0;

    [[nodiscard]] Sge question(SessionOffer const& offer, std::uint32_t index) const {
        return {questions.bytes().subspan(std::size_t{index} * offer.ping_size, offer.ping_size),
                questions.local_key()};
    }
    [[nodiscard]] Sge answer(SessionOffer const& offer, std::uint32_t index) const {
        return {answers.bytes().subspan(std::size_t{index} * offer.ping_size, offer.ping_size),
                answers.local_key()};
    }
};

Result<Pings> prepare(Bench& bench) {
    auto const& offer = bench.offer;
    auto const bytes = std::size_t{offer.ping_count} * offer.ping_size;
    constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE;
    VFMGR_TRY(auto questions, RegisteredMemory::make(bench.pd, bytes, local, "pings"));
    VFMGR_TRY(auto answers, RegisteredMemory::make(bench.pd, bytes, local, "answers"));
    Pings pings{std::move(questions), std::move(answers)};
    fill(Payload::from_seed(offer.ping_seed, epoch_ping), 0, pings.questions.bytes());
    for (std::uint32_t i = 0; i < offer.ping_count; ++i)
        VFMGR_CHECK(bench.pair.receive(i, pings.answer(offer, i)));
    return pings;
}

// One ping: waits for its own completion and the answer's, in either order.
Result<void> ping(Bench& bench, Pings const& pings, std::uint32_t index) {
    VFMGR_CHECK(bench.pair.send(send_id + index, pings.question(bench.offer, index)));
    std::array<ibv_wc, 4> room{};
    unsigned awaited = 2;
    while (awaited > 0) {
        VFMGR_TRY(auto const found, await(bench, room, fmt::format("RC ping {}", index)));
        for (auto const& completion : found) {
            if (completion.opcode == IBV_WC_RECV && completion.byte_len != bench.offer.ping_size)
                return fail(Problem::guest_refused,
                            fmt::format("answer {} has {} bytes, not {}", index,
                                        completion.byte_len, bench.offer.ping_size),
                            "use the same version on VM and host");
            --awaited;
        }
    }
    return {};
}

Result<Pings> run(Bench& bench) {
    VFMGR_TRY(auto pings, prepare(bench));
    for (std::uint32_t i = 0; i < bench.offer.ping_count; ++i) {
        auto const start = raw_nanoseconds();
        VFMGR_CHECK(ping(bench, pings, i));
        auto const us = static_cast<double>(raw_nanoseconds() - start) / 1000;
        pings.round_trip_us_min = i == 0 ? us : std::min(us, pings.round_trip_us_min);
    }
    return pings;
}

}  // namespace

Measured rc_ping(Bench& bench) {
    auto const pings = run(bench);
    if (!pings) return measured_failure("rc_ping", pings.error());
    auto made = measured("rc_ping");
    made.digest = digest_hex(bench.nonce, pings->answers.bytes());
    made.result.bytes_checked = pings->answers.bytes().size();
    made.result.figures["round_trip_min_us"] = pings->round_trip_us_min;
    return made;
}

}  // namespace vfmgr::verify
