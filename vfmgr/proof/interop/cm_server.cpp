// SPDX-License-Identifier: Apache-2.0
// rping's server (vfmgr/rdma/RDMA.md#rping): accepts connections by RDMA CM on one
// interface, from one guest only. The client sends the location of its ping; the server reads the
// ping, and writes it to the location that the client sends next. One thread accepts the
// connections, and each connection has a thread too; counters from any. Only in a process of its
// own: child.hpp.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
using verify::QueuePair;
using verify::TransferDirection;
constexpr std::uint64_t ping_bytes_max = cm_bytes_max;
constexpr std::uint64_t receive_id = 1;
constexpr int pending_requests = 8;
constexpr std::chrono::milliseconds report_interval{500};

// One rping client, from its connection request to its end. Owned by the server, whose thread
// creates and destroys it; runs on a thread of its own; stop() from the server's.
class RpingConversation {
  public:
    // Counts each ping written back in `all_pings`, before the client is notified; raises `wake` at
    // the very end. Both outlive it.
    RpingConversation(CmId id, Terms const& terms, std::atomic<std::uint64_t>& all_pings,
                      FileDescriptor const& wake)
        : id_(std::move(id)), terms_(terms), all_pings_(all_pings), wake_(wake) {
        thread_ = std::thread([this] { run(); });
    }
    ~RpingConversation() {
        stop();
        thread_.join();
    }
    RpingConversation(RpingConversation const&) = delete;
    RpingConversation& operator=(RpingConversation const&) = delete;

    [[nodiscard]] rdma_cm_id const* id() const { return id_.get(); }
    // Call when the client has gone, or the time is over.
    void stop() {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
        if (connected_) connected_->break_off();
    }
    [[nodiscard]] bool served() const { return pings_ > 0; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    struct Rdma {
        verify::Endpoint endpoint;  // members are destroyed from the last to the first
        verify::RegisteredMemory messages, ping;
        QueuePair pair;
    };

    void run() {
        // The client notices how it ends.
        static_cast<void>(serve());
        ended_ = true;
        raise_event(wake_);
    }

    // Finds the port by the interface's address, as the other tests do.
    Result<Rdma> open() const {
        VFMGR_TRY(auto endpoint, verify::open_host_endpoint(terms_.permit, port_time));
        auto* const pd = endpoint.pd.get();
        VFMGR_TRY(auto messages,
                  verify::RegisteredMemory::make(pd, 2 * rping_message_bytes,
                                                 IBV_ACCESS_LOCAL_WRITE, "rping's messages"));
        VFMGR_TRY(auto ping, verify::RegisteredMemory::make(
                                 pd, ping_bytes_max, IBV_ACCESS_LOCAL_WRITE, "rping's ping"));
        // No remote access: the client can't read or write memory here.
        VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 4, .receives = 2}, 0));
        return Rdma{std::move(endpoint), std::move(messages), std::move(ping), std::move(pair)};
    }

    Result<void> accept(Rdma& rdma) {
        VFMGR_CHECK(make_ready(id_, rdma.pair));
        auto parameters = parameters_for(rdma.pair);
        if (rdma_accept(id_.get(), &parameters) == 0) return {};
        return fail(cm_error(Problem::kernel_refused, "RDMA CM can't accept rping's client",
                             "rdma_accept"));
    }

    Result<void> serve() {
        VFMGR_TRY(auto rdma, open());
        VFMGR_CHECK(rdma.pair.receive(receive_id, rdma.messages.sge(0, rping_message_bytes)));
        {
            std::lock_guard const lock(mutex_);
            if (stopping_) return {};
            connected_ = &rdma.pair;
        }
        auto done = accept(rdma);
        auto deadline = Steady::now() + handshake_time;
        while (done) {
            done = move(rdma, TransferDirection::read, deadline);
            deadline = terms_.until;
            if (done) done = move(rdma, TransferDirection::write, deadline);
        }
        {
            std::lock_guard const lock(mutex_);
            connected_ = nullptr;
        }
        rdma_disconnect(id_.get());
        rdma.pair.shut(Steady::now() + verify::drain_wait);
        return done;
    }

    // One step of a ping: receive a message with the location, move the bytes, send a message that
    // they have moved.
    Result<void> move(Rdma& rdma, TransferDirection direction, Deadline deadline) {
        while (messages_ == 0) VFMGR_CHECK(await(rdma, IBV_WC_RECV, deadline));
        --messages_;
        auto const where = parse_rping_message(rdma.messages.bytes().first<rping_message_bytes>());
        VFMGR_CHECK(rdma.pair.receive(receive_id, rdma.messages.sge(0, rping_message_bytes)));
        if (where.length < 1 || where.length > ping_bytes_max)
            return fail(
                Problem::limit_exceeded,
                fmt::format("rping asks for {} bytes, more than {}", where.length, ping_bytes_max),
                "use a smaller -S");
        verify::RemoteTransfer const transfer{rdma.ping.sge(0, where.length), where.address,
                                              where.rkey};
        bool const reads = direction == TransferDirection::read;
        VFMGR_CHECK(rdma.pair.transfer(0, direction, transfer));
        VFMGR_CHECK(await(rdma, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, terms_.until));
        if (!reads) {
            ++pings_;
            ++all_pings_;
        }
        // The content of the go-ahead does not matter.
        VFMGR_CHECK(rdma.pair.send(0, rdma.messages.sge(rping_message_bytes, rping_message_bytes)));
        return await(rdma, IBV_WC_SEND, terms_.until);
    }

    // The client's next message may arrive before this end's completion.
    Result<void> await(Rdma& rdma, ibv_wc_opcode expected, Deadline deadline) {
        std::array<ibv_wc, 8> room{};
        bool found = false;
        while (!found) {
            VFMGR_TRY(auto const completions, rdma.pair.completions().wait(room, deadline));
            VFMGR_CHECK(verify::check_completions(completions, "rping"));
            for (auto const& completion : completions) {
                found = found || completion.opcode == expected;
                if (completion.opcode != IBV_WC_RECV) continue;
                if (completion.byte_len != rping_message_bytes)
                    return fail(Problem::invalid_request, "a message is not one that rping sends",
                                "use rping of rdma-core");
                ++messages_;
            }
        }
        return {};
    }

    CmId id_;
    Terms const& terms_;
    std::atomic<std::uint64_t>& all_pings_;
    FileDescriptor const& wake_;
    std::atomic<bool> ended_ = false;
    std::atomic<std::uint64_t> pings_ = 0;
    unsigned messages_ = 0;  // received, not yet handled
    std::mutex mutex_;
    bool stopping_ = false;           // mutex_
    QueuePair* connected_ = nullptr;  // mutex_
    std::thread thread_;
};

std::optional<IpAddress> peer_of(rdma_cm_id& id) {
    SocketAddress peer;
    // Copies the largest address it may be: librdmacm keeps a sockaddr_storage there.
    std::memcpy(peer.room(), rdma_get_peer_addr(&id), sizeof(sockaddr_in6));
    return peer.address();
}

class CmServer {
  public:
    // Fails with unsupported without the kernel's module rdma_ucm, or without an RDMA device for
    // the interface's address.
    static Result<std::unique_ptr<CmServer>> start(Terms const& terms) {
        auto const address = SocketAddress::of(terms.permit.host_address, terms.cm_port);
        VFMGR_TRY(auto channel, make_cm_channel());
        VFMGR_TRY(auto listener, make_cm_id(channel));
        // librdmacm does not write to this address.
        auto* const where = const_cast<sockaddr*>(address.get());
        if (rdma_bind_addr(listener.get(), where) != 0 ||
            rdma_listen(listener.get(), pending_requests) != 0) {
            auto error = cm_error(Problem::unsupported,
                                  fmt::format("RDMA CM can't listen on {} port {}",
                                              to_string(terms.permit.host_address), terms.cm_port),
                                  "rdma_bind_addr, rdma_listen");
            error.remedy =
                "stop the program that listens on it (rdma resource show cm_id lists it)";
            return fail(std::move(error));
        }
        VFMGR_TRY(auto wake, make_event());
        return std::unique_ptr<CmServer>(
            new CmServer(terms, std::move(wake), std::move(channel), std::move(listener)));
    }
    ~CmServer() {
        stopping_ = true;
        raise_event(wake_);
        thread_.join();
    }
    CmServer(CmServer const&) = delete;
    CmServer& operator=(CmServer const&) = delete;

    // The terms' port, or if that is 0, the one that RDMA CM chose.
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Served served() const { return {served_, refused_, pings_}; }

  private:
    CmServer(Terms terms, FileDescriptor wake, CmChannel channel, CmId listener)
        : terms_(std::move(terms)),
          wake_(std::move(wake)),
          channel_(std::move(channel)),
          listener_(std::move(listener)),
          port_(ntohs(rdma_get_src_port(listener_.get()))) {
        thread_ = std::thread([this] { run(); });
    }

    void run() {
        std::array const watched{wake_.get(), channel_->fd};
        while (!stopping_) {
            if (await_readable(watched, terms_.until) != Readiness::readable) break;
            take_event(wake_);
            take_events();
            forget_ended();
        }
        listener_.reset();
        for (auto const& one : conversations_) one->stop();
        conversations_.clear();
    }

    // Acknowledges each event before its id is destroyed: destroying an id waits for the
    // acknowledgement.
    void take_events() {
        rdma_cm_event* event = nullptr;
        while (rdma_get_cm_event(channel_.get(), &event) == 0) {
            auto const copy = *event;
            rdma_ack_cm_event(event);
            if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
                connect_requested(copy);
                continue;
            }
            if (copy.event == RDMA_CM_EVENT_ESTABLISHED) continue;
            // The client or its device has gone, or the connection was never established.
            auto const found = std::ranges::find(conversations_, copy.id,
                                                 [](auto const& one) { return one->id(); });
            if (found != conversations_.end()) (*found)->stop();
        }
    }

    void connect_requested(rdma_cm_event const& event) {
        CmId id(event.id);
        forget_ended();
        // The request names the address; on InfiniBand the GID, which the port itself put there,
        // shows whose it is.
        auto const& vf = terms_.permit.vf_guid;
        bool const is_vf =
            peer_of(*id) == terms_.permit.peer_address &&
            (!vf || verify::guid_of(std::to_array(id->route.addr.addr.ibaddr.dgid.raw)) == *vf);
        if (!is_vf || conversations_.size() >= tests_max) {
            rdma_reject(id.get(), nullptr, 0);
            ++refused_;
            return;
        }
        conversations_.push_back(
            std::make_unique<RpingConversation>(std::move(id), terms_, pings_, wake_));
    }

    void forget_ended() {
        for (auto at = conversations_.begin(); at != conversations_.end();) {
            auto const one = at++;
            if (!(*one)->ended()) continue;
            ++((*one)->served() ? served_ : refused_);
            conversations_.erase(one);
        }
    }

    Terms const terms_;
    FileDescriptor const wake_;
    CmChannel const channel_;  // outlives its ids
    CmId listener_;
    std::uint16_t const port_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::uint64_t> served_ = 0, refused_ = 0, pings_ = 0;
    std::list<std::unique_ptr<RpingConversation>> conversations_;  // used only by its thread
    std::thread thread_;
};

std::optional<Terms> terms_in(std::vector<std::string> const& words) {
    if (words.size() != 8) return std::nullopt;
    auto const peer = IpAddress::parse(words[0]);
    auto const host = IpAddress::parse(words[1]);
    auto const port = parse_digits(words[3], {10, 1, 5, 65535});
    auto const seconds = parse_digits(words[4], {10, 1, 5});
    Terms terms;
    std::optional<std::uint16_t> pkey;
    bool const ports_read = read_word(words[5], terms.permit.vf_guid) &&
                            read_word(words[6], terms.permit.host_guid) &&
                            read_word(words[7], pkey);
    if (!peer || !host || !port || !seconds || !ports_read) return std::nullopt;
    if (pkey) terms.permit.pkey = Pkey{*pkey};
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
    report_to_parent(fmt::format("{}{}", rping_ready, (*server)->port()));
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
