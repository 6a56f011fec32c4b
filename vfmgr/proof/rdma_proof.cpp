// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/rdma_proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vfmgr/proof/digest.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t message_bytes = 64 * 1024;
constexpr std::uint64_t outstanding_max = 16;

struct Stream {
    TransferDirection direction = TransferDirection::write;
    Sge local;  // as long as the remote MR
    MemoryRegion remote;

    [[nodiscard]] std::uint64_t messages() const {
        return (remote.length + message_bytes - 1) / message_bytes;
    }
};

Result<void> post(Bench& bench, Stream const& stream, std::uint64_t number,
                  std::optional<std::uint32_t> notify) {
    auto const offset = (number % stream.messages()) * message_bytes;
    auto const bytes = std::min(message_bytes, stream.remote.length - offset);
    RemoteTransfer const transfer{{stream.local.bytes.subspan(offset, bytes), stream.local.key},
                                  stream.remote.address + offset,
                                  stream.remote.rkey,
                                  notify};
    return bench.pair.transfer(number, stream.direction, transfer);
}

// Transfers every byte of the MR once; the last write notifies the host that the MR is complete.
// Returns seconds.
Result<double> transfer(Bench& bench, Stream const& stream) {
    std::array<ibv_wc, outstanding_max> room{};
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    bool const writes = stream.direction == TransferDirection::write;
    auto const start = raw_nanoseconds();
    while (completed < stream.messages()) {
        while (posted < stream.messages() && posted - completed < outstanding_max) {
            bool const last = posted + 1 == stream.messages();
            VFMGR_CHECK(post(bench, stream, posted,
                             writes && last ? std::optional(notify_write_mr) : std::nullopt));
            ++posted;
        }
        VFMGR_TRY(auto const found, await(bench.pair.completions(), room, bench.deadline,
                                          writes ? "an RDMA write" : "an RDMA read"));
        completed += found.size();
    }
    return static_cast<double>(raw_nanoseconds() - start) / 1e9;
}

}  // namespace

Result<Measured> rdma_write(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const source, RegisteredMemory::make(bench.endpoint.pd.get(), offer.write.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "written bytes"));
    fill(Payload::from_seed(offer.write_seed, epoch_write), 0, source.bytes());
    VFMGR_TRY(auto const seconds,
              transfer(bench, {TransferDirection::write, source.sge(), offer.write}));
    auto made = measured();
    made.result.bytes_checked = offer.write.length;
    made.result.figures = rate_figures(offer.write.length, seconds);
    return made;
}

Result<Measured> rdma_read(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const target, RegisteredMemory::make(bench.endpoint.pd.get(), offer.read.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "read bytes"));
    poison(target.bytes());
    VFMGR_TRY(auto const seconds,
              transfer(bench, {TransferDirection::read, target.sge(), offer.read}));
    auto made = measured();
    made.digest = digest_hex(bench.nonce, target.bytes());
    made.result.bytes_checked = offer.read.length;
    made.result.figures = rate_figures(offer.read.length, seconds);
    return made;
}

namespace {

constexpr std::uint64_t send_id = 1U << 20;  // receives are numbered from 0

struct Pings {
    RegisteredMemory questions;
    RegisteredMemory answers;
};

Result<Pings> prepare(Bench& bench) {
    auto const& offer = bench.offer;
    auto const bytes = std::size_t{offer.ping_count} * offer.ping_size;
    constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE;
    auto* const pd = bench.endpoint.pd.get();
    VFMGR_TRY(auto questions, RegisteredMemory::make(pd, bytes, local, "pings"));
    VFMGR_TRY(auto answers, RegisteredMemory::make(pd, bytes, local, "answers"));
    Pings pings{std::move(questions), std::move(answers)};
    fill(Payload::from_seed(offer.ping_seed, epoch_ping), 0, pings.questions.bytes());
    for (std::uint32_t i = 0; i < offer.ping_count; ++i)
        VFMGR_CHECK(bench.pair.receive(
            i, pings.answers.sge(std::size_t{i} * offer.ping_size, offer.ping_size)));
    return pings;
}

// One ping: waits for its own completion and the answer's, in either order.
Result<void> ping(Bench& bench, Pings const& pings, std::uint32_t index) {
    auto const bytes = bench.offer.ping_size;
    VFMGR_CHECK(
        bench.pair.send(send_id + index, pings.questions.sge(std::size_t{index} * bytes, bytes)));
    std::array<ibv_wc, 4> room{};
    unsigned awaited = 2;
    while (awaited > 0) {
        VFMGR_TRY(auto const found, await(bench.pair.completions(), room, bench.deadline,
                                          fmt::format("RC ping {}", index)));
        for (auto const& completion : found) {
            if (completion.opcode == IBV_WC_RECV && completion.byte_len != bytes)
                return fail(Problem::guest_refused,
                            fmt::format("answer {} has {} bytes, not {}", index,
                                        completion.byte_len, bytes),
                            "use the same version on VM and host");
            --awaited;
        }
    }
    return {};
}

}  // namespace

Result<Measured> rc_ping(Bench& bench) {
    VFMGR_TRY(auto const pings, prepare(bench));
    double round_trip_us_min = 0;
    for (std::uint32_t i = 0; i < bench.offer.ping_count; ++i) {
        auto const start = raw_nanoseconds();
        VFMGR_CHECK(ping(bench, pings, i));
        auto const us = static_cast<double>(raw_nanoseconds() - start) / 1000;
        round_trip_us_min = i == 0 ? us : std::min(us, round_trip_us_min);
    }
    auto made = measured();
    made.digest = digest_hex(bench.nonce, pings.answers.bytes());
    made.result.bytes_checked = pings.answers.bytes().size();
    made.result.figures["round_trip_min_us"] = round_trip_us_min;
    return made;
}

namespace {

constexpr std::chrono::milliseconds ud_answer_time{500};
constexpr std::uint64_t lost_in_a_row_max = 4;  // then the path counts as dead
constexpr double lost_share_max = 0.05;
constexpr std::uint64_t ud_answer = 1, ud_question = 2;

class UdPings {
  public:
    UdPings(GuestStream& stream, Deadline deadline) : stream_(stream), deadline_(deadline) {}

    Result<Measured> run(std::uint64_t count) {
        std::uint64_t lost_in_a_row = 0;
        while (sent_ < count && lost_in_a_row < lost_in_a_row_max) {
            auto const start = raw_nanoseconds();
            VFMGR_TRY(bool const answered, ping());
            lost_in_a_row = answered ? 0 : lost_in_a_row + 1;
            if (answered) round_trips_.push_back(raw_nanoseconds() - start);
        }
        return result();
    }

  private:
    // Returns whether the answer arrived. A late answer has another number, so it can't answer a
    // later question.
    Result<bool> ping() {
        ++sent_;
        if (!receiving_) VFMGR_CHECK(receive());
        auto const question = stream_.message(0).local;
        std::memcpy(question.bytes.data(), &sent_, sizeof sent_);
        VFMGR_CHECK(stream_.pairs().front().send(ud_question, question));
        auto const until = std::min(deadline_, std::chrono::steady_clock::now() + ud_answer_time);
        bool answered = false;
        bool completed = false;
        while (!answered || !completed) {
            auto const found =
                await(stream_.queue(), room_, until, "a datagram", polls_for_latency);
            if (!found && found.error().problem == Problem::timed_out) return answered;
            if (!found) return fail(found.error());
            for (auto const& completion : *found) {
                completed |= completion.wr_id == ud_question;
                if (completion.wr_id != ud_answer) continue;
                answered |= is_answer(completion);
                receiving_ = false;
                if (!answered) VFMGR_CHECK(receive());
            }
        }
        return true;
    }

    Result<void> receive() {
        receiving_ = true;
        return stream_.pairs().front().receive(ud_answer, stream_.back());
    }

    [[nodiscard]] bool is_answer(ibv_wc const& completion) const {
        if (completion.byte_len != ud_header_bytes + stream_.size().message_bytes) return false;
        std::uint64_t number = 0;
        std::memcpy(&number, stream_.back().bytes.subspan(ud_header_bytes).data(), sizeof number);
        return number == sent_;
    }

    [[nodiscard]] Measured result() {
        auto const lost = sent_ - round_trips_.size();
        auto made = measured();
        made.result.figures = summarise(std::move(round_trips_));
        made.result.figures["message_bytes"] = stream_.size().message_bytes;
        made.result.figures["sent"] = static_cast<double>(sent_);
        made.result.figures["lost"] = static_cast<double>(lost);
        made.result.detail = "round trip of unreliable datagrams";
        if (static_cast<double>(lost) <= lost_share_max * static_cast<double>(sent_)) return made;
        made.result.verdict = Verdict::fail;
        made.result.detail = fmt::format("{} of {} datagrams got no answer in {} ms", lost, sent_,
                                         ud_answer_time.count());
        made.result.remedy =
            "check for drops (ethtool -S, tc -s qdisc) on both ends and for flow control (PFC) on "
            "the switch: RC hides them by sending again";
        return made;
    }

    GuestStream& stream_;
    Deadline deadline_;
    std::uint64_t sent_ = 0;
    bool receiving_ = false;
    std::vector<std::uint64_t> round_trips_;  // in ns
    std::array<ibv_wc, 8> room_{};
};

}  // namespace

Result<Measured> ud_ping(GuestStream& stream, Load const& load, Deadline deadline) {
    return UdPings(stream, deadline).run(load.messages);
}

}  // namespace vfmgr::verify
