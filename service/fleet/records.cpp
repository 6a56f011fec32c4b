// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/records.hpp"

#include "api/types/json.hpp"

namespace vfmgr::fleet {

template <class F, Of<FormatRecord> V>
void fields(F& f, V& record) {
    f.value("format", record.format);
}

template <class F, Of<FleetRecord> V>
void fields(F& f, V& record) {
    f.value("id", record.id);
    f.value("ca", record.ca);
    f.value("created_at", record.created_at);
    f.defaulted("act", record.act);
}

template <class F, Of<JoinTokenRecord> V>
void fields(F& f, V& record) {
    f.value("sha256", record.sha256);
    f.maybe("host", record.host);
    f.value("created_by", record.created_by);
    f.value("created_at", record.created_at);
    f.value("expires_at", record.expires_at);
    f.value("act", record.act);
}

template <class F, Of<HostRecord> V>
void fields(F& f, V& record) {
    f.value("number", record.number);
    f.value("url", record.url);
    f.value("public_key", record.public_key);
    f.value("joined_at", record.joined_at);
    f.value("joined_by", record.joined_by);
    f.value("joined_with", record.joined_with);
    f.value("act", record.act);
    f.value("state", record.state);
    f.defaulted("reason", record.reason);
    f.defaulted("labels", record.labels);
    f.maybe("rack", record.rack);
    f.maybe("cordoned", record.cordoned);
    f.maybe("fenced", record.fenced);
    f.maybe("leaving", record.leaving);
    f.defaulted("partitions", record.partitions);
}

template <class F, Of<HostNumberRecord> V>
void fields(F& f, V& record) {
    f.value("host", record.host);
}

template <class F, Of<MarkRecord> V>
void fields(F& f, V& record) {
    f.value("store", record.store);
    f.value("event", record.event);
    f.defaulted("event_is", record.event_is);
    f.value("generation", record.generation);
    f.defaulted("act", record.act);
}

template <class F, Of<IdentitiesRecord> V>
void fields(F& f, V& record) {
    f.value("ranges", record.ranges);
    f.value("act", record.act);
}

template <class F, Of<BlockRecord> V>
void fields(F& f, V& record) {
    f.value("first", record.first);
    f.value("last", record.last);
    f.value("host", record.host);
    f.value("public_key", record.public_key);
    f.value("act", record.act);
    f.value("at", record.at);
}

template <class F, Of<ClaimRecord> V>
void fields(F& f, V& record) {
    f.value("state", record.state);
    f.value("host", record.host);
    f.value("public_key", record.public_key);
    f.defaulted("from", record.from);
    f.defaulted("from_public_key", record.from_public_key);
    f.value("vm", record.vm);
    f.value("act", record.act);
    f.value("at", record.at);
}

template <class F, Of<ReservationRecord> V>
void fields(F& f, V& record) {
    f.value("spec", record.spec);
    f.value("host", record.host);
    f.defaulted("rack", record.rack);
    f.defaulted("pfs", record.pfs);
    f.defaulted("gpus", record.gpus);
    f.defaulted("reason", record.reason);
    f.value("requested_by", record.requested_by);
    f.maybe("tenant", record.tenant);
    f.value("created_at", record.created_at);
    f.value("expires_at", record.expires_at);
    f.value("act", record.act);
}

template <class F, Of<ReplicaRecord> V>
void fields(F& f, V& record) {
    f.value("url", record.url);
    f.value("version", record.version);
    f.value("started_at", record.started_at);
}

template <class F, Of<LeaderRecord> V>
void fields(F& f, V& record) {
    f.value("replica", record.replica);
    f.value("url", record.url);
}

template <class T>
Result<T> read_record(std::string_view text) {
    VFMGR_TRY(auto const document, parse_json(text));
    return from_json_document<T>(document, UnknownKeys::ignored);
}

template <class T>
std::string record_text(T const& record) {
    return to_json_text(JsonWriter::encode(record));
}

// A member that this version knows and no longer writes was taken away: a host that is uncordoned.
template <class T>
std::string rewritten(std::string_view before, T const& record) {
    auto next = JsonWriter::encode(record);
    auto const document = parse_json(before);
    if (!document || !document->is_object()) return to_json_text(next);
    auto const known = from_json_document<T>(*document, UnknownKeys::ignored);
    if (!known) return to_json_text(next);
    auto const written = JsonWriter::encode(*known);
    for (auto const& [key, value] : document->items())
        if (!written.contains(key) && !next.contains(key)) next[key] = value;
    return to_json_text(next);
}

template Result<FormatRecord> read_record(std::string_view);
template Result<FleetRecord> read_record(std::string_view);
template Result<JoinTokenRecord> read_record(std::string_view);
template Result<HostRecord> read_record(std::string_view);
template Result<HostNumberRecord> read_record(std::string_view);
template Result<MarkRecord> read_record(std::string_view);
template Result<IdentitiesRecord> read_record(std::string_view);
template Result<BlockRecord> read_record(std::string_view);
template Result<ClaimRecord> read_record(std::string_view);
template Result<ReservationRecord> read_record(std::string_view);
template Result<ReplicaRecord> read_record(std::string_view);
template Result<LeaderRecord> read_record(std::string_view);
template std::string record_text(FormatRecord const&);
template std::string record_text(FleetRecord const&);
template std::string record_text(JoinTokenRecord const&);
template std::string record_text(HostRecord const&);
template std::string record_text(HostNumberRecord const&);
template std::string record_text(MarkRecord const&);
template std::string record_text(IdentitiesRecord const&);
template std::string record_text(BlockRecord const&);
template std::string record_text(ClaimRecord const&);
template std::string record_text(ReservationRecord const&);
template std::string record_text(ReplicaRecord const&);
template std::string record_text(LeaderRecord const&);
template std::string rewritten(std::string_view, HostRecord const&);
template std::string rewritten(std::string_view, ReservationRecord const&);

}  // namespace vfmgr::fleet

namespace vfmgr {

template struct Json<fleet::FormatRecord>;
template struct Json<fleet::FleetRecord>;
template struct Json<fleet::JoinTokenRecord>;
template struct Json<fleet::HostRecord>;
template struct Json<fleet::HostNumberRecord>;
template struct Json<fleet::MarkRecord>;
template struct Json<fleet::IdentitiesRecord>;
template struct Json<fleet::BlockRecord>;
template struct Json<fleet::ClaimRecord>;
template struct Json<fleet::ReservationRecord>;
template struct Json<fleet::ReplicaRecord>;
template struct Json<fleet::LeaderRecord>;

}  // namespace vfmgr
