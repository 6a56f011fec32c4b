// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stock/cm_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/types/event.hpp"
#include "guest-tools/stock/rping.hpp"
#include "guest-tools/verify/socket_address.hpp"

namespace vfmgr::stock {
namespace {

constexpr int pending_requests = 8;

Error not_served(std::string detail, char const* call, std::string remedy) {
    Error error{Problem::unsupported, std::move(detail), std::move(remedy)};
    error.causes.push_back(errno_cause(call, errno));
    return error;
}

std::optional<IpAddress> peer_of(rdma_cm_id& id) {
    verify::SocketAddress peer;
    // As large as any: librdmacm keeps a sockaddr_storage there.
    std::memcpy(peer.room(), rdma_get_peer_addr(&id), sizeof(sockaddr_in6));
    return peer.address();
}

}  // namespace

Result<std::unique_ptr<CmServer>> CmServer::start(Terms const& terms) {
    auto const address = verify::SocketAddress::of(terms.permit.host_address, terms.cm_port);
    Channel channel(rdma_create_event_channel());
    if (!channel)
        return fail(
            not_served("RDMA CM is not there", "rdma_create_event_channel", "modprobe rdma_ucm"));
    rdma_cm_id* made = nullptr;
    if (rdma_create_id(channel.get(), &made, nullptr, RDMA_PS_TCP) != 0)
        return fail(
            not_served("RDMA CM makes no listener", "rdma_create_id", "see the kernel's log"));
    Id listener(made);
    // librdmacm does not write to it.
    auto* const where = const_cast<sockaddr*>(address.get());
    if (rdma_bind_addr(listener.get(), where) != 0 ||
        rdma_listen(listener.get(), pending_requests) != 0)
        return fail(not_served(fmt::format("RDMA CM does not listen on {} port {}",
                                           to_string(terms.permit.host_address), terms.cm_port),
                               "rdma_bind_addr, rdma_listen",
                               "stop what listens there: rdma resource show cm_id"));
    if (::fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return fail(not_served("RDMA CM's events can't be waited for", "fcntl", "see the cause"));
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<CmServer>(
        new CmServer(terms, std::move(wake), std::move(channel), std::move(listener)));
}

CmServer::CmServer(Terms terms, FileDescriptor wake, Channel channel, Id listener)
    : terms_(std::move(terms)),
      wake_(std::move(wake)),
      channel_(std::move(channel)),
      listener_(std::move(listener)) {
    thread_ = std::thread([this] { run(); });
}

CmServer::~CmServer() {
    stopping_ = true;
    raise_event(wake_);
    thread_.join();
}

Served CmServer::served() const {
    return {served_, refused_};
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

// Acknowledged before its id is destroyed, which waits for that.
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
        // It has gone, or its device has, or it never came.
        auto const found =
            std::ranges::find(conversations_, copy.id, [](auto const& one) { return one->id(); });
        if (found != conversations_.end()) (*found)->stop();
    }
}

void CmServer::connect_requested(rdma_cm_event const& event) {
    Id id(event.id);
    forget_ended();
    if (peer_of(*id) != terms_.permit.peer_address || conversations_.size() >= tests_max) {
        rdma_reject(id.get(), nullptr, 0);
        ++refused_;
        return;
    }
    conversations_.push_back(
        std::make_unique<RpingConversation>(std::move(id), terms_, [this] { raise_event(wake_); }));
}

void CmServer::forget_ended() {
    for (auto at = conversations_.begin(); at != conversations_.end();) {
        auto const one = at++;
        if (!(*one)->ended()) continue;
        ++((*one)->served() ? served_ : refused_);
        conversations_.erase(one);
    }
}

}  // namespace vfmgr::stock
