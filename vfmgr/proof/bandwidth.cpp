// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/bandwidth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "vfmgr/rdma/counters.hpp"

namespace vfmgr::verify {
namespace {

namespace fs = std::filesystem;

// Overhead of each packet's payload: Ethernet with preamble and gap 38, IPv4 20, UDP 8, BTH 12,
// ICRC 4 (RDMA.md#packet-overhead). The RETH in the first packet of a message is not counted.
constexpr double packet_overhead_bytes = 82;
// A TLP of 256 bytes, which most machines use, has some 24 bytes of overhead.
constexpr double tlp_efficiency = 256.0 / (256 + 24);
constexpr double message_bytes_min = 8192;
constexpr double percent_expected = 80;
// A limiter's bucket lets a short burst through.
constexpr double percent_limited_max = 115;

template <class T>
std::optional<T> number_in(fs::path const& file) {
    std::ifstream in(file);
    T number{};
    return in >> number && number > 0 ? std::optional(number) : std::nullopt;
}

// From 8 GT/s on 128 of 130 bits are data, below that 8 of 10.
double pcie_mbps(PcieLink const& link) {
    double const encoding = link.gigatransfers_per_s < 8 ? 8.0 / 10 : 128.0 / 130;
    return link.gigatransfers_per_s * 1000 * link.lanes * encoding * tlp_efficiency;
}

double wire_efficiency(PathFacts const& facts) {
    return facts.path_mtu / (facts.path_mtu + packet_overhead_bytes);
}

void consider(std::optional<Limit>& least, Limit limit) {
    if (!least || limit.mbps < least->mbps) least = std::move(limit);
}

std::optional<Limit> one_way(PathFacts const& facts, bool sent_by_vf) {
    std::optional<Limit> least;
    auto const efficiency = wire_efficiency(facts);
    // Traffic from a VF to another function of its NIC never reaches the port.
    if (facts.port_mbps && facts.path == TestPath::wire)
        consider(least, {*facts.port_mbps * efficiency,
                         fmt::format("the port ({} Mbit/s)", *facts.port_mbps)});
    if (facts.pcie)
        consider(least, {pcie_mbps(*facts.pcie),
                         fmt::format("the NIC's PCIe link ({} GT/s x{})",
                                     facts.pcie->gigatransfers_per_s, facts.pcie->lanes)});
    if (facts.vf_mbps > 0 && sent_by_vf)
        consider(least, {facts.vf_mbps * efficiency,
                         fmt::format("the VF's rate limit ({} Mbit/s)", facts.vf_mbps)});
    return least;
}

// "108 of 1828 Mbit/s, 5.9 % of what the NIC's PCIe link (2.5 GT/s x1) carries".
std::string rate_and_share(TestResult const& test) {
    return fmt::format("{:.0f} of {:.0f} Mbit/s, {}", test.figures.at("bandwidth_mbps"),
                       test.figures.at("achievable_mbps"), test.detail);
}

Warning too_slow(TestResult const& test) {
    return {test.name, fmt::format("{}: {}", test.name, rate_and_share(test)),
            "check for losses and pauses (ethtool -S) and for other load on this NIC, and check "
            "its PCIe slot: lspci -vv shows LnkSta and MaxPayload"};
}

Warning not_limited(TestResult const& test, PathFacts const& facts) {
    return {test.name,
            fmt::format("{}: the VF is faster than its rate limit of {} Mbit/s: {}", test.name,
                        facts.vf_mbps, rate_and_share(test)),
            "check for newer firmware, or limit the rate where the limit is enforced: the NIC "
            "accepted it and does not enforce it"};
}

}  // namespace

PathFacts read_path(std::string const& ifname, fs::path const& sysfs) {
    auto const netdev = pci_netdev(sysfs, ifname);
    PathFacts facts;
    facts.port_mbps = number_in<std::int32_t>(netdev / "speed");                 // -1: no link
    auto const speed = number_in<double>(netdev / "device/current_link_speed");  // "8.0 GT/s PCIe"
    auto const lanes = number_in<unsigned>(netdev / "device/current_link_width");
    if (speed && lanes) facts.pcie = PcieLink{*speed, *lanes};
    return facts;
}

std::optional<Limit> expected_rate(PathFacts const& facts, Flow flow) {
    if (flow != Flow::both) return one_way(facts, flow == Flow::out);
    auto const out = one_way(facts, true);
    auto const in = one_way(facts, false);
    if (!out || !in) return std::nullopt;
    auto const& tighter = out->mbps <= in->mbps ? *out : *in;
    return Limit{out->mbps + in->mbps, tighter.what};
}

std::optional<Warning> compare_rate(TestResult& test, Flow flow, PathFacts const& facts) {
    auto const measured = test.figures.find("bandwidth_mbps");
    if (measured == test.figures.end() || test.verdict != Verdict::pass) return std::nullopt;
    // For short messages the limit is their number, not the bytes.
    auto const message = test.figures.find("message_bytes");
    if (message != test.figures.end() && message->second < message_bytes_min) return std::nullopt;
    auto const limit = expected_rate(facts, flow);
    if (!limit) return std::nullopt;
    auto const percent = 100 * measured->second / limit->mbps;
    test.figures["achievable_mbps"] = limit->mbps;
    test.figures["achieved_percent"] = percent;
    auto const share = fmt::format("{:.3g} % of what {} carries", percent, limit->what);
    test.detail = test.detail.empty() ? share : test.detail + "; " + share;
    bool const limited = facts.vf_mbps > 0 && flow == Flow::out &&
                         measured->second > facts.vf_mbps * percent_limited_max / 100;
    if (limited) return not_limited(test, facts);
    if (percent >= percent_expected || facts.software) return std::nullopt;
    return too_slow(test);
}

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
        auto const [local, address, key, notify] = stream.message(pair);
        bool const reads = opcode == IBV_WR_RDMA_READ;
        for (std::uint32_t i = 0; i < messages; ++i) {
            sges_[i] = {reinterpret_cast<std::uint64_t>(local.bytes.data()),
                        static_cast<std::uint32_t>(local.bytes.size()), local.key};
            auto& request = requests_[i];
            request.wr_id = pair;
            request.opcode = opcode;
            request.sg_list = &sges_[i];
            request.num_sge = 1;
            request.wr.rdma = {address, key};
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
        auto made = measured();
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

}  // namespace

Result<Measured> bandwidth(GuestStream& stream, Load const& load, Deadline deadline,
                           ibv_wr_opcode opcode) {
    return Transfer(stream, load, std::array{opcode}).run(deadline);
}

Result<Measured> bidirectional_bandwidth(GuestStream& stream, Load const& load, Deadline deadline) {
    constexpr std::array opcodes{IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    if (stream.pairs().size() % opcodes.size() != 0)
        return fail(Problem::invalid_request,
                    "the number of queue pairs must be even: half of them write, half read",
                    "use an even number: --queue-pairs 2");
    Transfer transfer(stream, load, opcodes);
    VFMGR_TRY(auto made, transfer.run(deadline));
    auto& figures = made.result.figures;
    auto const rate = figures["bandwidth_mbps"];
    figures["written_mbps"] = rate * transfer.completed_share(0, opcodes.size());
    figures["read_mbps"] = rate * transfer.completed_share(1, opcodes.size());
    made.result.detail = "sum of simultaneous RDMA writes and reads";
    return made;
}

}  // namespace vfmgr::verify
