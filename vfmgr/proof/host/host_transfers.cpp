// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/host_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "api/os/random.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/transfer_order.hpp"

namespace vfmgr::verify {
namespace {

using Steady = std::chrono::steady_clock;
// Identify the request that a completion belongs to.
constexpr std::uint64_t id_order = 1, id_transfer = 2, id_answer = 3, id_probe = 4;
// Longer than a request that reaches no target takes.
constexpr std::chrono::seconds probe_wait{3};

class HostTransfers final : public StreamEnd {
  public:
    static Result<std::unique_ptr<StreamEnd>> open(SessionPermit const& permit,
                                                   StreamRequest const& request,
                                                   ResponderLimits const& limits,
                                                   Result<Mlx5> const& mlx5) {
        VFMGR_CHECK(check_stream(permit, request, limits));
        NearNic const near(permit.host_netdev);  // the stream's thread inherits it
        VFMGR_TRY(auto rdma, open_rdma(permit, request));
        std::unique_ptr<HostTransfers> stream(new HostTransfers(std::move(rdma), request, limits));
        if (request.dct) stream->choose_transport(mlx5);
        // Before the guest can send.
        VFMGR_CHECK(stream->pair().receive(id_order, order_in(stream->rdma_.mail)));
        VFMGR_CHECK(stream->pair().connect(stream->rdma_.endpoint, request.pairs.front()));
        stream->offer_.pairs.push_back(stream->pair().end());
        stream->thread_ = std::thread([raw = stream.get()] { raw->run(); });
        return stream;
    }
    ~HostTransfers() override { stop(); }

    StreamFacts stop() override {
        if (!stopping_.exchange(true)) {
            pair().break_off();  // wakes the thread
            if (thread_.joinable()) thread_.join();
            if (rdma_.dc) rdma_.dc->shut(Steady::now() + drain_wait);
            rdma_.all.shut();
        }
        return facts_;
    }

  private:
    struct Rdma {
        Endpoint endpoint;  // members are destroyed from the last to the first
        RegisteredMemory data, mail;
        QueuePairs all;
        std::optional<DcInitiator> dc{};
    };
    HostTransfers(Rdma rdma, StreamRequest request, ResponderLimits const& limits)
        : StreamEnd(limits.stream_seconds_max),
          request_(std::move(request)),
          deadline_(Steady::now() + std::chrono::seconds(limits.stream_seconds_max)),
          rdma_(std::move(rdma)) {
        own_ = Payload::secret(0);
        offer_.memory = rdma_.data.remote();
        offer_.seed = random_number();
        seeded_ = Payload::from_seed(*offer_.seed, 0);
    }

    static Result<Rdma> open_rdma(SessionPermit const& permit, StreamRequest const& request) {
        VFMGR_TRY(auto endpoint, open_host_endpoint(permit));
        auto* const pd = endpoint.pd.get();
        // The guest can't access any memory here.
        constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE, remote = 0;
        VFMGR_TRY(auto data, RegisteredMemory::make(pd, request.message_bytes, local, "transfers"));
        VFMGR_TRY(auto mail, make_transfer_mail(pd));
        VFMGR_TRY(auto pairs, QueuePairs::make(endpoint, {.sends = 4, .receives = 2}, remote, 1));
        return Rdma{std::move(endpoint), std::move(data), std::move(mail), std::move(pairs)};
    }

    QueuePair& pair() { return rdma_.all.pairs.front(); }

    void choose_transport(Result<Mlx5> const& mlx5) {
        auto const reached = reach_by_dc(mlx5);
        offer_.transport = reached ? TransferTransport::dc : TransferTransport::rc;
        if (reached) return;
        offer_.transport_reason = reason_of(reached.error());
        if (rdma_.dc) rdma_.dc->shut(Steady::now() + drain_wait);
        rdma_.dc.reset();
    }

    // Connects to the GID that check_stream() found to be the VF's. Offers DC only after a read of
    // the guest's memory over DC has succeeded: a memory test must not fail for lack of a
    // transport.
    Result<void> reach_by_dc(Result<Mlx5> const& mlx5) {
        VFMGR_TRY(rdma_.dc, DcInitiator::make(mlx5, rdma_.endpoint, request_.pairs.front(),
                                              *request_.dct, rdma_.all.queue));
        VFMGR_CHECK(rdma_.dc->transfer(
            id_probe, TransferDirection::read,
            {rdma_.data.sge(0, payload_chunk_bytes), request_.back->address, request_.back->rkey}));
        return await(id_probe, "the first RDMA read over DC", Steady::now() + probe_wait);
    }

    // Ignores other completions. The guest sends its next order only after the answer to this one,
    // so no awaited completion is lost.
    Result<void> await(std::uint64_t id, std::string_view what, Deadline deadline) {
        std::array<ibv_wc, 8> room{};
        while (!stopping_) {
            VFMGR_TRY(auto const found, rdma_.all.queue->wait(room, deadline));
            VFMGR_CHECK(check_completions(found, what));
            if (std::ranges::any_of(found, [&](ibv_wc const& done) { return done.wr_id == id; }))
                return {};
        }
        return fail(Problem::conflict, "the stream has ended", "verify again");
    }

    // Over DC the guest learns of a write by the epoch that comes with it.
    Result<void> transfer(TransferOrder const& order) {
        RemoteTransfer what{rdma_.data.sge(0, order.bytes), request_.back->address + order.offset,
                            request_.back->rkey};
        bool const reads = order.direction == TransferDirection::read;
        if (rdma_.dc && !reads) what.notify = static_cast<std::uint32_t>(order.epoch);
        VFMGR_CHECK(rdma_.dc ? rdma_.dc->transfer(id_transfer, order.direction, what)
                             : pair().transfer(id_transfer, order.direction, what));
        auto const name = fmt::format("an RDMA {} the VM's memory{}",
                                      reads ? "read of" : "write to", rdma_.dc ? ", over DC," : "");
        return await(id_transfer, name, deadline_);
    }

    Result<TransferAnswer> obey(TransferOrder const& order) {
        auto const data = rdma_.data.bytes().first(order.bytes);
        auto payload = order.payload == PayloadOf::seed ? seeded_ : own_;
        payload.epoch = order.epoch;
        TransferAnswer answer;
        if (order.direction == TransferDirection::write) {
            fill(payload, order.offset, data);
            VFMGR_CHECK(transfer(order));
        } else {
            poison(data);
            VFMGR_CHECK(transfer(order));
            auto const found = check(payload, order.offset, data);
            answer.mismatches = found.mismatches;
            answer.detail = found.detail;
            facts_.read.add(found);
            if (order.payload == PayloadOf::host && found.mismatches == 0)
                facts_.bytes_kept += order.bytes;
        }
        ++facts_.messages;
        return answer;
    }

    Result<void> serve() {
        auto const& mail = rdma_.mail;
        while (true) {
            VFMGR_CHECK(await(id_order, "the receive of an order", deadline_));
            VFMGR_TRY(
                auto const order,
                parse_order(order_in(mail).bytes, {request_.back->length, request_.message_bytes}));
            VFMGR_CHECK(pair().receive(id_order, order_in(mail)));
            VFMGR_TRY(auto const answer, obey(order));
            std::ranges::copy(encode(answer), answer_in(mail).bytes.begin());
            VFMGR_CHECK(pair().send(id_answer, answer_in(mail)));
        }
    }

    // An error breaks the queue pair, so the guest gets no answer: the verdict reports the error.
    void run() {
        auto const ended = serve();
        if (!ended && !stopping_) facts_.error = detail_with_causes(ended.error());
    }

    StreamRequest const request_;
    Deadline const deadline_;
    Payload seeded_, own_;  // keys; the epoch is the order's
    Rdma rdma_;
    std::atomic<bool> stopping_ = false;
    StreamFacts facts_;  // the thread's, until stop() has joined it
    std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<StreamEnd>> open_transfers(SessionPermit const& permit,
                                                  StreamRequest const& request,
                                                  ResponderLimits const& limits,
                                                  Result<Mlx5> const& mlx5) {
    return HostTransfers::open(permit, request, limits, mlx5);
}

}  // namespace vfmgr::verify
