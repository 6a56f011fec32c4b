// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/host_session.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/proof/digest.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::uint32_t notifications_max = 4;
constexpr std::uint64_t answer_id = 1U << 20;  // for sends; receives are numbered from 0

Sge part(RegisteredMemory const& memory, std::uint64_t index, std::uint32_t bytes) {
    return memory.sge(index * bytes, bytes);
}

}  // namespace

HostSession::HostSession(SessionPermit permit, ResponderLimits const& limits)
    : permit_(std::move(permit)),
      limits_(limits),
      deadline_(Steady::now() + std::chrono::seconds(limits.session_seconds_max)),
      echo_secret_(Payload::secret(0)),
      read_secret_(Payload::secret(epoch_read)),
      answer_secret_(Payload::secret(epoch_answer)) {
    offer_.session = random_hex(16);
    offer_.host.gid = gid_hex(permit_.host_address.gid());
    offer_.deadline_seconds = limits.session_seconds_max;
    auto const full = full_datagram_bytes(permit_.mtu, permit_.peer_address.family);
    auto const digest_of = [&](EchoKind kind, std::size_t bytes) {
        return digest_hex(permit_.nonce, make_answer({kind, permit_.nonce, bytes}, echo_secret_));
    };
    facts_.reachability.answer_digest = digest_of(EchoKind::reachability, reachability_bytes);
    facts_.path_mtu.answer_digest = digest_of(EchoKind::path_mtu, full);
}

Result<std::unique_ptr<HostSession>> HostSession::open(SessionPermit const& permit,
                                                       SessionRequest const& request,
                                                       ResponderLimits const& limits) {
    NearNic const near(permit.host_netdev);
    std::unique_ptr<HostSession> session(new HostSession(permit, limits));
    if (permit.rdma != RdmaMode::none) {
        VFMGR_TRY(auto rdma, open_rdma(permit, limits));
        session->rdma_.emplace(std::move(rdma));
        VFMGR_CHECK(session->prepare(request));
        session->facts_.path = session->path_facts(request.guest);
    }
    session->counters_ = read_counters(session->counted());
    return session;
}

PathFacts HostSession::path_facts(QueuePairEnd const& guest) const {
    auto facts = read_path(permit_.host_netdev);
    facts.path = permit_.path;
    facts.vf_mbps = permit_.vf_tx_rate_mbps;
    facts.path_mtu = std::min(rdma_->endpoint.path_mtu, guest.path_mtu);
    facts.software = rdma_->endpoint.software;
    return facts;
}

CounterPlace HostSession::counted() const {
    if (!rdma_) return {permit_.host_netdev, {}};
    return {permit_.host_netdev, rdma_->endpoint.device, rdma_->endpoint.number};
}

Result<HostSession::Rdma> HostSession::open_rdma(SessionPermit const& permit,
                                                 ResponderLimits const& limits) {
    VFMGR_TRY(auto endpoint, open_host_endpoint(permit));
    // Each MR allows what its test needs and nothing else.
    constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE;
    constexpr unsigned written = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    auto* const pd = endpoint.pd.get();
    auto const ping_bytes = std::size_t{limits.ping_count} * limits.ping_bytes;
    VFMGR_TRY(auto write, RegisteredMemory::make(pd, limits.write_bytes, written, "write MR"));
    VFMGR_TRY(auto read,
              RegisteredMemory::make(pd, limits.read_bytes, IBV_ACCESS_REMOTE_READ, "read MR"));
    VFMGR_TRY(auto pings, RegisteredMemory::make(pd, ping_bytes, local, "pings"));
    VFMGR_TRY(auto answers, RegisteredMemory::make(pd, ping_bytes, local, "answers"));
    QueuePairOptions const size{.sends = limits.ping_count + 1,
                                .receives = limits.ping_count + notifications_max};
    VFMGR_TRY(auto pair,
              QueuePair::make(endpoint, size, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    return Rdma{std::move(endpoint), std::move(write),   std::move(read),
                std::move(pings),    std::move(answers), std::move(pair)};
}

Result<void> HostSession::prepare(SessionRequest const& request) {
    auto const write_seed = random_number();
    auto const ping_seed = random_number();
    poison(rdma_->write.bytes());
    fill(read_secret_, 0, rdma_->read.bytes());
    fill(answer_secret_, 0, rdma_->answers.bytes());
    for (std::uint32_t i = 0; i < limits_.ping_count + notifications_max; ++i) {
        // The last receives are for notifications, which write no bytes into them.
        auto const slot = std::min(i, limits_.ping_count - 1);
        VFMGR_CHECK(rdma_->pair.receive(i, part(rdma_->pings, slot, limits_.ping_bytes)));
    }
    VFMGR_CHECK(rdma_->pair.completions().arm());
    VFMGR_CHECK(rdma_->pair.connect(rdma_->endpoint, request.guest));
    offer_.host = rdma_->pair.end();
    if (auto const& subnet = rdma_->endpoint.subnet; subnet && request.guest.subnet) {
        facts_.host_pkey = subnet->end.pkey;
        facts_.guest_pkey = request.guest.subnet->pkey;
        facts_.host_pkeys = subnet->pkeys;
    }
    offer_.write = rdma_->write.remote();
    offer_.write_seed = write_seed;
    offer_.read = rdma_->read.remote();
    offer_.ping_count = limits_.ping_count;
    offer_.ping_size = limits_.ping_bytes;
    offer_.ping_seed = ping_seed;
    facts_.pings_expected = limits_.ping_count;
    return {};
}

std::vector<int> HostSession::watched() const {
    if (!rdma_ || device_gone_) return {};
    return {rdma_->pair.completions().fd(), rdma_->endpoint.context->async_fd};
}

void HostSession::on_events() {
    if (!rdma_ || device_gone_) return;
    on_completions();
    if (auto const alive = check_async(rdma_->endpoint.context.get()); !alive)
        device_failed(alive.error());
}

void HostSession::on_completions() {
    auto& queue = rdma_->pair.completions();
    queue.take_events();
    // Armed before polling: a completion in between raises a new event.
    if (auto const armed = queue.arm(); !armed) return device_failed(armed.error());
    std::array<ibv_wc, 32> room{};
    while (true) {
        auto const found = queue.poll(room);
        if (!found) return device_failed(found.error());
        if (found->empty()) return;
        for (auto const& completion : *found) on_completion(completion);
    }
}

void HostSession::on_completion(ibv_wc const& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
        if (completion.status != IBV_WC_WR_FLUSH_ERR && facts_.device_error.empty()) {
            auto const error = completion_error(completion, "a request by the host");
            facts_.device_error = error.detail;
            facts_.device_remedy = error.remedy;
        }
        return;
    }
    if (completion.opcode == IBV_WC_RECV) return on_ping(completion);
    if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) return;
    auto const number = ntohl(completion.imm_data);
    if (number == notify_write_mr) facts_.write_notified = true;
}

void HostSession::on_ping(ibv_wc const& completion) {
    if (facts_.pings >= limits_.ping_count || completion.wr_id >= limits_.ping_count) return;
    auto const index = facts_.pings++;
    auto const bytes = part(rdma_->pings, completion.wr_id, limits_.ping_bytes).bytes;
    auto const payload = Payload::from_seed(offer_.ping_seed, epoch_ping);
    auto checked = check(payload, std::uint64_t{index} * limits_.ping_bytes, bytes);
    if (completion.byte_len != limits_.ping_bytes) {
        checked.mismatches = limits_.ping_bytes;
        checked.detail = fmt::format("send {} has {} bytes, not {}", index, completion.byte_len,
                                     limits_.ping_bytes);
    }
    facts_.ping_check.add(checked);
    auto const sent =
        rdma_->pair.send(answer_id + index, part(rdma_->answers, index, limits_.ping_bytes));
    if (!sent) device_failed(sent.error());
}

void HostSession::device_failed(Error const& error) {
    device_gone_ = true;
    if (!facts_.device_error.empty()) return;
    facts_.device_error = error.detail;
    facts_.device_remedy = error.remedy;
}

std::optional<std::vector<std::byte>> HostSession::answer(EchoDatagram const& question) {
    if (++echoes_ > limits_.echo_datagrams_max) return std::nullopt;
    auto& facts = question.kind == EchoKind::reachability ? facts_.reachability : facts_.path_mtu;
    ++facts.datagrams;
    facts.bytes_max = std::max(facts.bytes_max, question.bytes);
    return make_answer(question, echo_secret_);
}

void HostSession::answer_refused(EchoDatagram const& question, int error_number) {
    auto& facts = question.kind == EchoKind::reachability ? facts_.reachability : facts_.path_mtu;
    if (!facts.refused.empty()) return;  // the first is the longest
    facts.refused = fmt::format("the host can't send {} bytes on {}: {}", question.bytes,
                                permit_.host_netdev, errno_name(error_number));
}

void HostSession::add(StreamKind kind, StreamFacts const& streamed) {
    std::lock_guard const lock(streamed_mutex_);
    streamed_[kind].add(streamed);
}

SessionFacts HostSession::finish() {
    facts_.lost = growth(counters_, read_counters(counted()));
    if (!rdma_) return facts_;
    {
        std::lock_guard const lock(streamed_mutex_);
        facts_.streamed = streamed_;
    }
    on_completions();
    if (auto const route = rdma_->pair.route()) {
        facts_.peer_gid = gid_text(std::to_array(route->grh.dgid.raw));
        facts_.dscp = dscp_of(route->grh.traffic_class);
    }
    // From here on nothing can change the MRs.
    rdma_->pair.shut(Steady::now() + drain_wait);
    facts_.write_check =
        check(Payload::from_seed(offer_.write_seed, epoch_write), 0, rdma_->write.bytes());
    facts_.read_bytes = rdma_->read.bytes().size();
    facts_.read_digest = digest_hex(permit_.nonce, rdma_->read.bytes());
    facts_.answer_digest = digest_hex(permit_.nonce, rdma_->answers.bytes());
    return facts_;
}

}  // namespace vfmgr::verify
