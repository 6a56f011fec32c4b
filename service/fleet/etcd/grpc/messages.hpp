// SPDX-License-Identifier: Apache-2.0
// Values as etcd's messages, and back. With grpc/'s other files the only code that has what
// rpc.proto generates. Internal to etcd/; values; any thread.
#pragma once

#include <rpc.grpc.pb.h>

#include <string>

#include "service/fleet/etcd/answers.hpp"
#include "service/fleet/etcd/etcd.hpp"

namespace vfmgr::fleet {

namespace pb = etcdserverpb;

// Keys with the fleet's prefix, and without.
struct WireKeys {
    std::string prefix;
    [[nodiscard]] std::string on_wire(std::string const& key) const;
    // The first key of a range: etcd refuses an empty one.
    [[nodiscard]] std::string first(std::string const& key) const;
    // Behind the last key: empty for a single one.
    [[nodiscard]] std::string end(std::string const& key, Match match) const;
    [[nodiscard]] KeyValue entry(mvccpb::KeyValue const& one) const;
    [[nodiscard]] KeyChange change(mvccpb::Event const& event) const;
};

[[nodiscard]] pb::RangeRequest to_wire(Query const& query, WireKeys const& keys);
[[nodiscard]] pb::TxnRequest to_wire(Transaction const& transaction, WireKeys const& keys);
[[nodiscard]] pb::WatchRequest to_wire(WatchFrom const& from, WireKeys const& keys);
[[nodiscard]] Outcome outcome_of(pb::TxnResponse const& answer, WireKeys const& keys);
[[nodiscard]] Found found_of(pb::RangeResponse const& answer, WireKeys const& keys);
// Without what MemberList tells: name and URL.
[[nodiscard]] MemberStatus status_of(pb::StatusResponse const& answer);

[[nodiscard]] GrpcAnswer answer_of(grpc::Status const& status);
// A member without a leader answers at once, and not after its own timeout.
void demand_leader(grpc::ClientContext& context);

}  // namespace vfmgr::fleet
