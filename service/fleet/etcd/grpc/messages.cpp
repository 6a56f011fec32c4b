// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/grpc/messages.hpp"

#include <algorithm>

namespace vfmgr::fleet {
namespace {

// The first key behind all that begin with `prefix`; "\0" means: to the end of all keys.
std::string end_of_range(std::string prefix) {
    while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
    if (prefix.empty()) return {'\0'};
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1U);
    return prefix;
}

void to_wire(pb::Compare& out, Compare const& one, WireKeys const& keys) {
    out.set_key(keys.on_wire(one.key));
    out.set_result(one.is == Compare::Is::equal ? pb::Compare::EQUAL : pb::Compare::NOT_EQUAL);
    switch (one.on) {
        case Compare::On::create_revision:
            out.set_target(pb::Compare::CREATE);
            return out.set_create_revision(one.number);
        case Compare::On::mod_revision:
            out.set_target(pb::Compare::MOD);
            return out.set_mod_revision(one.number);
        case Compare::On::lease:
            out.set_target(pb::Compare::LEASE);
            return out.set_lease(one.number);
        case Compare::On::value:
            out.set_target(pb::Compare::VALUE);
            return out.set_value(one.value);
    }
}

void to_wire(pb::RequestOp& out, Write const& write, WireKeys const& keys) {
    if (auto const* const put = std::get_if<Put>(&write)) {
        out.mutable_request_put()->set_key(keys.on_wire(put->key));
        out.mutable_request_put()->set_value(put->value);
        out.mutable_request_put()->set_lease(put->lease);
        return;
    }
    auto const& erase = std::get<Erase>(write);
    out.mutable_request_delete_range()->set_key(keys.first(erase.key));
    out.mutable_request_delete_range()->set_range_end(keys.end(erase.key, erase.match));
}

}  // namespace

std::string WireKeys::on_wire(std::string const& key) const {
    return prefix + key;
}

std::string WireKeys::first(std::string const& key) const {
    auto whole = on_wire(key);
    return whole.empty() ? std::string{'\0'} : whole;
}

std::string WireKeys::end(std::string const& key, Match match) const {
    return match == Match::prefix ? end_of_range(on_wire(key)) : std::string();
}

KeyValue WireKeys::entry(mvccpb::KeyValue const& one) const {
    return {one.key().substr(std::min(prefix.size(), one.key().size())), one.value(),
            one.create_revision(), one.mod_revision(), one.lease()};
}

KeyChange WireKeys::change(mvccpb::Event const& event) const {
    auto now = entry(event.kv());
    KeyChange change{now.key, {}, now.mod_revision};
    if (event.type() == mvccpb::Event::PUT) change.now = std::move(now);
    return change;
}

pb::RangeRequest to_wire(Query const& query, WireKeys const& keys) {
    pb::RangeRequest request;
    auto const& first = query.match == Match::prefix ? std::max(query.from, query.key) : query.key;
    request.set_key(keys.first(first));
    request.set_range_end(keys.end(query.key, query.match));
    request.set_limit(static_cast<std::int64_t>(query.limit));
    request.set_revision(query.revision);
    request.set_keys_only(query.content == Content::no_value);
    return request;
}

pb::TxnRequest to_wire(Transaction const& transaction, WireKeys const& keys) {
    pb::TxnRequest request;
    for (auto const& one : transaction.compares) to_wire(*request.add_compare(), one, keys);
    for (auto const& one : transaction.writes) to_wire(*request.add_success(), one, keys);
    for (auto const& key : transaction.otherwise)
        request.add_failure()->mutable_request_range()->set_key(keys.on_wire(key));
    return request;
}

pb::WatchRequest to_wire(WatchFrom const& from, WireKeys const& keys) {
    pb::WatchRequest request;
    auto& create = *request.mutable_create_request();
    create.set_key(keys.first(from.key));
    create.set_range_end(keys.end(from.key, from.match));
    create.set_start_revision(from.revision);
    create.set_progress_notify(true);
    create.set_fragment(true);
    return request;
}

Outcome outcome_of(pb::TxnResponse const& answer, WireKeys const& keys) {
    Outcome outcome{answer.succeeded(), answer.header().revision(), {}};
    for (auto const& one : answer.responses())
        for (auto const& found : one.response_range().kvs())
            outcome.found.push_back(keys.entry(found));
    return outcome;
}

Found found_of(pb::RangeResponse const& answer, WireKeys const& keys) {
    Found found;
    for (auto const& one : answer.kvs()) found.entries.push_back(keys.entry(one));
    found.revision = answer.header().revision();
    found.more = answer.more();
    return found;
}

MemberStatus status_of(pb::StatusResponse const& answer) {
    MemberStatus status;
    status.id = answer.header().member_id();
    status.version = answer.version();
    status.leader = answer.leader();
    status.raft_term = answer.raftterm();
    status.raft_index = answer.raftindex();
    status.bytes = answer.dbsize();
    status.bytes_in_use = answer.dbsizeinuse();
    status.bytes_max = answer.dbsizequota();
    return status;
}

GrpcAnswer answer_of(grpc::Status const& status) {
    return {status.error_code(), status.error_message()};
}

void demand_leader(grpc::ClientContext& context) {
    context.AddMetadata("hasleader", "true");
}

}  // namespace vfmgr::fleet
