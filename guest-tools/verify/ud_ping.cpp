// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/ud_ping.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "guest-tools/verify/latency.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t pings_by_default = 64;
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
        auto const question = stream_.local(0);
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
        return stream_.pairs().front().receive(ud_answer, {stream_.back(), stream_.back_key()});
    }

    [[nodiscard]] bool is_answer(ibv_wc const& completion) const {
        if (completion.byte_len != ud_header_bytes + stream_.size().message_bytes) return false;
        std::uint64_t number = 0;
        std::memcpy(&number, stream_.back().subspan(ud_header_bytes).data(), sizeof number);
        return number == sent_;
    }

    [[nodiscard]] Measured result() {
        auto const lost = sent_ - round_trips_.size();
        auto made = measured("ud_ping");
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

Measured ud_ping(GuestStream& stream, Load const& load, Deadline deadline) {
    auto const count = load.messages > 0 ? load.messages : pings_by_default;
    auto made = UdPings(stream, deadline).run(count);
    return made ? std::move(*made) : measured_failure("ud_ping", made.error());
}

}  // namespace vfmgr::verify
