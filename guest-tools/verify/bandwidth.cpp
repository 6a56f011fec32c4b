// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/bandwidth.hpp"

#include <algorithm>
#include <array>

namespace vfmgr::verify {
namespace {

// A longer message takes long enough to be posted and completed alone; perftest has the same bound
// (RDMA.md#bandwidth).
constexpr std::uint32_t batched_bytes_max = 8192;
constexpr std::uint32_t batch_max = 16;

// Several messages in one post, the last of them signalled. Posted repeatedly.
class Batch {
  public:
    Batch(GuestStream& stream, std::size_t pair, ibv_wr_opcode opcode, std::uint32_t messages)
        : sges_(messages), requests_(messages) {
        auto const local = stream.local(pair);
        bool const reads = opcode == IBV_WR_RDMA_READ;
        for (std::uint32_t i = 0; i < messages; ++i) {
            sges_[i] = {reinterpret_cast<std::uint64_t>(local.bytes.data()),
                        static_cast<std::uint32_t>(local.bytes.size()), local.key};
            auto& request = requests_[i];
            request.wr_id = pair;
            request.opcode = opcode;
            request.sg_list = &sges_[i];
            request.num_sge = 1;
            request.wr.rdma = {stream.remote_address(pair), stream.remote_key()};
            if (!reads && local.bytes.size() <= stream.pairs()[pair].inline_bytes_max())
                request.send_flags |= IBV_SEND_INLINE;
            if (i > 0) requests_[i - 1].next = &request;
        }
        requests_.back().send_flags |= IBV_SEND_SIGNALED;
    }
    [[nodiscard]] ibv_send_wr& first() { return requests_.front(); }

  private:
    std::vector<ibv_sge> sges_;
    std::vector<ibv_send_wr> requests_;
};

class Transfer {
  public:
    // Opcodes are assigned to the queue pairs in rotation.
    Transfer(GuestStream& stream, Load const& load, std::span<ibv_wr_opcode const> opcodes)
        : stream_(stream),
          load_(load),
          outstanding_(stream.pairs().size()),
          completed_of_(stream.pairs().size()) {
        auto const& size = stream.size();
        if (size.message_bytes <= batched_bytes_max)
            batch_ = std::clamp(size.depth / 4, 1U, batch_max);
        batches_max_ = std::max(size.depth / batch_, 1U);
        for (std::size_t pair = 0; pair < stream.pairs().size(); ++pair)
            batches_.emplace_back(stream, pair, opcodes[pair % opcodes.size()], batch_);
    }

    Result<Measured> run(Deadline deadline) {
        std::array<ibv_wc, 64> room{};
        auto const start = raw_nanoseconds();
        end_ = load_.messages > 0 ? UINT64_MAX : start + nanoseconds(load_.window);
        std::uint64_t now = start;
        while (true) {
            VFMGR_CHECK(post(now));
            if (completed_ == posted_) break;
            VFMGR_TRY(auto const found, await(stream_.queue(), room, deadline, "a message"));
            for (auto const& completion : found) {
                --outstanding_[completion.wr_id];
                completed_of_[completion.wr_id] += batch_;
            }
            completed_ += found.size() * batch_;
            now = raw_nanoseconds();
        }
        return result(static_cast<double>(now - start) / 1e9);
    }

    // The share of messages completed on the pairs with the opcode at `place`.
    [[nodiscard]] double completed_share(std::size_t place, std::size_t opcodes) const {
        std::uint64_t share = 0;
        for (auto pair = place; pair < completed_of_.size(); pair += opcodes)
            share += completed_of_[pair];
        return static_cast<double>(share) /
               static_cast<double>(std::max<std::uint64_t>(completed_, 1));
    }

  private:
    static std::uint64_t nanoseconds(std::chrono::nanoseconds time) {
        return static_cast<std::uint64_t>(time.count());
    }

    Result<void> post(std::uint64_t now) {
        for (std::size_t pair = 0; pair < batches_.size(); ++pair) {
            while (outstanding_[pair] < batches_max_ && now < end_ &&
                   (load_.messages == 0 || posted_ < load_.messages)) {
                VFMGR_CHECK(stream_.pairs()[pair].post(batches_[pair].first()));
                ++outstanding_[pair];
                posted_ += batch_;
            }
        }
        return {};
    }

    [[nodiscard]] Measured result(double seconds) const {
        auto const& size = stream_.size();
        auto made = measured("bandwidth");
        auto& figures = made.result.figures;
        figures = rate_figures(completed_ * size.message_bytes, seconds);
        figures["messages"] = static_cast<double>(completed_);
        figures["messages_per_s"] = static_cast<double>(completed_) / seconds;
        figures["message_bytes"] = size.message_bytes;
        figures["depth"] = size.depth;
        figures["queue_pairs"] = static_cast<double>(batches_.size());
        return made;
    }

    GuestStream& stream_;
    Load const& load_;
    std::uint32_t batch_ = 1;
    std::uint32_t batches_max_ = 1;
    std::vector<Batch> batches_;
    std::vector<std::uint32_t> outstanding_;   // batches, by pair
    std::vector<std::uint64_t> completed_of_;  // messages, by pair
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t end_ = 0;
};

Measured bandwidth(GuestStream& stream, Load const& load, Deadline deadline, ibv_wr_opcode opcode) {
    auto made = Transfer(stream, load, std::array{opcode}).run(deadline);
    return made ? std::move(*made) : measured_failure("bandwidth", made.error());
}

}  // namespace

Measured write_bandwidth(GuestStream& stream, Load const& load, Deadline deadline) {
    return bandwidth(stream, load, deadline, IBV_WR_RDMA_WRITE);
}

Measured read_bandwidth(GuestStream& stream, Load const& load, Deadline deadline) {
    return bandwidth(stream, load, deadline, IBV_WR_RDMA_READ);
}

Measured send_bandwidth(GuestStream& stream, Load const& load, Deadline deadline) {
    return bandwidth(stream, load, deadline, IBV_WR_SEND);
}

Measured bidirectional_bandwidth(GuestStream& stream, Load const& load, Deadline deadline) {
    constexpr std::array opcodes{IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    if (stream.pairs().size() % opcodes.size() != 0)
        return measured_failure(
            "bandwidth", {Problem::invalid_request,
                          "the number of queue pairs must be even: half of them write, half read",
                          "use an even number: --queue-pairs 2"});
    Transfer transfer(stream, load, opcodes);
    auto made = transfer.run(deadline);
    if (!made) return measured_failure("bandwidth", made.error());
    auto& figures = made->result.figures;
    auto const rate = figures["bandwidth_mbps"];
    figures["written_mbps"] = rate * transfer.completed_share(0, opcodes.size());
    figures["read_mbps"] = rate * transfer.completed_share(1, opcodes.size());
    made->result.detail = "sum of simultaneous RDMA writes and reads";
    return std::move(*made);
}

}  // namespace vfmgr::verify
