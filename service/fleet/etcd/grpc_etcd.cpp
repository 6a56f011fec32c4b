// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/grpc_etcd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "service/fleet/etcd/endpoints.hpp"
#include "service/fleet/etcd/grpc/connections.hpp"
#include "service/fleet/etcd/grpc/messages.hpp"
#include "service/fleet/etcd/grpc/watch_stream.hpp"

namespace vfmgr::fleet {
namespace {

using CallClock = std::chrono::steady_clock;
// Makes one call, whose answer its owner has.
using Send = std::function<grpc::Status(grpc::ClientContext&, Connection const&)>;

// Whether another member may do better.
bool blames_member(grpc::Status const& status) {
    auto const code = status.error_code();
    return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
           code == grpc::StatusCode::UNKNOWN;
}

// A write may be sent again only where it was surely not carried out.
bool may_repeat(Asked asked, Problem problem) {
    return problem == Problem::unavailable ||
           (asked == Asked::read && problem == Problem::timed_out);
}

// Sends one keepalive and awaits its answer.
grpc::Status keep_once(grpc::ClientContext& context, Connection const& connection,
                       pb::LeaseKeepAliveRequest const& request,
                       pb::LeaseKeepAliveResponse& answer) {
    auto const stub = pb::Lease::NewStub(connection.channel);
    auto const stream = stub->LeaseKeepAlive(&context);
    stream->Write(request);
    stream->WritesDone();
    bool const answered = stream->Read(&answer);
    auto const status = stream->Finish();
    if (answered) return {};
    return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "etcd closed the stream")
                       : status;
}

class GrpcEtcd final : public Etcd {
  public:
    GrpcEtcd(EtcdMembers settings, std::vector<std::string> endpoints, bool encrypted)
        : paces_(settings.paces),
          keys_{settings.prefix},
          connections_(std::move(settings), std::move(endpoints), encrypted) {}

    [[nodiscard]] Result<Found> range(Query const& query, Deadline deadline) override;
    [[nodiscard]] Result<Outcome> commit(Transaction const& transaction,
                                         Deadline deadline) override;
    [[nodiscard]] Result<std::unique_ptr<Watch>> watch(WatchFrom const& from,
                                                       Deadline deadline) override;
    [[nodiscard]] Result<LeaseGrant> grant(std::chrono::seconds ttl, Deadline deadline) override;
    [[nodiscard]] Result<std::chrono::seconds> keep_alive(LeaseId lease,
                                                          Deadline deadline) override;
    [[nodiscard]] Result<void> revoke(LeaseId lease, Deadline deadline) override;
    [[nodiscard]] std::vector<MemberStatus> members(Deadline deadline) override;

  private:
    [[nodiscard]] Result<void> call(std::string const& name, Asked asked, Deadline deadline,
                                    Send const& send);
    [[nodiscard]] MemberStatus status_at(std::string const& endpoint, Deadline deadline);

    EtcdPaces const paces_;
    WireKeys const keys_;
    Connections connections_;
};

Result<void> GrpcEtcd::call(std::string const& name, Asked asked, Deadline deadline,
                            Send const& send) {
    // A single member that was restarted is worth a second try, too.
    for (auto left = std::max<std::size_t>(2, connections_.endpoints().size());; --left) {
        VFMGR_TRY(auto const connection, connections_.get(deadline));
        grpc::ClientContext context;
        demand_leader(context);
        context.set_deadline(grpc_time(
            asked == Asked::read ? std::min(deadline, CallClock::now() + paces_.read) : deadline));
        auto const status = send(context, connection);
        if (status.ok()) return {};
        if (blames_member(status)) connections_.failed(connection);
        auto error = error_of({name, connection.endpoint, asked}, answer_of(status));
        if (left == 1 || !may_repeat(asked, error.problem) || CallClock::now() >= deadline)
            return fail(std::move(error));
    }
}

Result<Found> GrpcEtcd::range(Query const& query, Deadline deadline) {
    auto const request = to_wire(query, keys_);
    pb::RangeResponse answer;
    VFMGR_CHECK(call("Range", Asked::read, deadline, [&](auto& context, auto const& connection) {
        return pb::KV::NewStub(connection.channel)->Range(&context, request, &answer);
    }));
    return found_of(answer, keys_);
}

Result<Outcome> GrpcEtcd::commit(Transaction const& transaction, Deadline deadline) {
    VFMGR_CHECK(check(transaction));
    auto const request = to_wire(transaction, keys_);
    pb::TxnResponse answer;
    VFMGR_CHECK(call("Txn", Asked::write, deadline, [&](auto& context, auto const& connection) {
        return pb::KV::NewStub(connection.channel)->Txn(&context, request, &answer);
    }));
    return outcome_of(answer, keys_);
}

Result<std::unique_ptr<Watch>> GrpcEtcd::watch(WatchFrom const& from, Deadline deadline) {
    VFMGR_TRY(auto const connection, connections_.get(deadline));
    auto made = std::make_unique<WatchStream>(connection, paces_, keys_);
    auto begun = made->begin(from, std::min(deadline, CallClock::now() + paces_.read));
    if (begun) return made;
    if (may_repeat(Asked::read, begun.error().problem)) connections_.failed(connection);
    return fail(std::move(begun).error());
}

Result<LeaseGrant> GrpcEtcd::grant(std::chrono::seconds ttl, Deadline deadline) {
    pb::LeaseGrantRequest request;
    request.set_ttl(ttl.count());
    pb::LeaseGrantResponse answer;
    VFMGR_CHECK(
        call("LeaseGrant", Asked::write, deadline, [&](auto& context, auto const& connection) {
            return pb::Lease::NewStub(connection.channel)->LeaseGrant(&context, request, &answer);
        }));
    return LeaseGrant{answer.id(), std::chrono::seconds(answer.ttl())};
}

Result<std::chrono::seconds> GrpcEtcd::keep_alive(LeaseId lease, Deadline deadline) {
    pb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    pb::LeaseKeepAliveResponse answer;
    VFMGR_CHECK(
        call("LeaseKeepAlive", Asked::read, deadline, [&](auto& context, auto const& connection) {
            return keep_once(context, connection, request, answer);
        }));
    if (answer.ttl() <= 0)
        return fail(Problem::not_found, fmt::format("etcd has ended the lease {:x}", lease));
    return std::chrono::seconds(answer.ttl());
}

Result<void> GrpcEtcd::revoke(LeaseId lease, Deadline deadline) {
    pb::LeaseRevokeRequest request;
    request.set_id(lease);
    pb::LeaseRevokeResponse answer;
    auto done =
        call("LeaseRevoke", Asked::read, deadline, [&](auto& context, auto const& connection) {
            return pb::Lease::NewStub(connection.channel)->LeaseRevoke(&context, request, &answer);
        });
    if (!done && done.error().problem == Problem::not_found) return {};
    return done;
}

MemberStatus GrpcEtcd::status_at(std::string const& endpoint, Deadline deadline) {
    auto const until = std::min(deadline, CallClock::now() + paces_.read);
    MemberStatus status;
    if (auto connection = connections_.get_to(endpoint, until); connection) {
        grpc::ClientContext context;
        context.set_deadline(grpc_time(until));
        pb::StatusResponse answer;
        auto const ended =
            pb::Maintenance::NewStub(connection->channel)->Status(&context, {}, &answer);
        if (ended.ok())
            status = status_of(answer);
        else
            status.problem = error_of({"Status", endpoint}, answer_of(ended));
    } else {
        status.problem = std::move(connection).error();
    }
    status.url = endpoint;
    return status;
}

std::vector<MemberStatus> GrpcEtcd::members(Deadline deadline) {
    std::vector<MemberStatus> all;
    for (auto const& endpoint : connections_.endpoints())
        all.push_back(status_at(endpoint, deadline));
    pb::MemberListResponse listed;
    pb::AlarmResponse alarms;
    // Without a majority neither is answered, and the members' own status is all there is.
    static_cast<void>(
        call("MemberList", Asked::read, deadline, [&](auto& context, auto const& connection) {
            return pb::Cluster::NewStub(connection.channel)->MemberList(&context, {}, &listed);
        }));
    static_cast<void>(
        call("Alarm", Asked::read, deadline, [&](auto& context, auto const& connection) {
            return pb::Maintenance::NewStub(connection.channel)->Alarm(&context, {}, &alarms);
        }));
    for (auto const& member : listed.members()) {
        auto found = std::ranges::find(all, member.id(), &MemberStatus::id);
        if (found == all.end()) {
            // One that is not configured, or that did not answer at a configured address.
            auto const url = member.clienturls().empty() ? "" : member.clienturls(0);
            auto const endpoint = url.substr(url.find("//") == url.npos ? 0 : url.find("//") + 2);
            found = std::ranges::find(all, endpoint, &MemberStatus::url);
            if (found == all.end()) found = all.insert(all.end(), status_at(endpoint, deadline));
            found->id = member.id();
        }
        found->name = member.name();
    }
    for (auto const& alarm : alarms.alarms())
        if (auto const found = std::ranges::find(all, alarm.memberid(), &MemberStatus::id);
            found != all.end())
            found->alarms.push_back(pb::AlarmType_Name(alarm.alarm()));
    return all;
}

}  // namespace

Result<std::unique_ptr<Etcd>> grpc_etcd(EtcdMembers settings) {
    VFMGR_TRY(auto endpoints, parse_endpoints(settings.endpoints));
    bool const named = !settings.ca_file.empty() && !settings.certificate_file.empty() &&
                       !settings.key_file.empty();
    if (endpoints.encrypted && !named)
        return fail(Problem::invalid_request,
                    "[etcd] endpoints are https, and a file for TLS is missing",
                    "set ca_file, certificate_file and key_file in [etcd]");
    return std::make_unique<GrpcEtcd>(std::move(settings), std::move(endpoints.hosts),
                                      endpoints.encrypted);
}

}  // namespace vfmgr::fleet
