// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/cm_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "vfmgr/proof/interop/rping.hpp"

namespace vfmgr::interop {
namespace {

constexpr int pending_requests = 8;

std::optional<IpAddress> peer_of(rdma_cm_id& id) {
    SocketAddress peer;
    // Copies the largest address it may be: librdmacm keeps a sockaddr_storage there.
    std::memcpy(peer.room(), rdma_get_peer_addr(&id), sizeof(sockaddr_in6));
    return peer.address();
}

}  // namespace

Result<std::unique_ptr<CmServer>> CmServer::start(Terms const& terms) {
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
        error.remedy = "stop the program that listens on it (rdma resource show cm_id lists it)";
        return fail(std::move(error));
    }
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<CmServer>(
        new CmServer(terms, std::move(wake), std::move(channel), std::move(listener)));
}

CmServer::CmServer(Terms terms, FileDescriptor wake, CmChannel channel, CmId listener)
    : terms_(std::move(terms)),
      wake_(std::move(wake)),
      channel_(std::move(channel)),
      listener_(std::move(listener)),
      port_(ntohs(rdma_get_src_port(listener_.get()))) {
    thread_ = std::thread([this] { run(); });
}

CmServer::~CmServer() {
    stopping_ = true;
    raise_event(wake_);
    thread_.join();
}

Served CmServer::served() const {
    return {served_, refused_, pings_};
}

void CmServer::run() {
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
void CmServer::take_events() {
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
        auto const found =
            std::ranges::find(conversations_, copy.id, [](auto const& one) { return one->id(); });
        if (found != conversations_.end()) (*found)->stop();
    }
}

void CmServer::connect_requested(rdma_cm_event const& event) {
    CmId id(event.id);
    forget_ended();
    if (peer_of(*id) != terms_.permit.peer_address || conversations_.size() >= tests_max) {
        rdma_reject(id.get(), nullptr, 0);
        ++refused_;
        return;
    }
    RpingConversation::Events events{[this] { ++pings_; }, [this] { raise_event(wake_); }};
    conversations_.push_back(
        std::make_unique<RpingConversation>(std::move(id), terms_, std::move(events)));
}

void CmServer::forget_ended() {
    for (auto at = conversations_.begin(); at != conversations_.end();) {
        auto const one = at++;
        if (!(*one)->ended()) continue;
        ++((*one)->served() ? served_ : refused_);
        conversations_.erase(one);
    }
}

}  // namespace vfmgr::interop
