// SPDX-License-Identifier: Apache-2.0
// Store::commit and its inverse, load: desired state, operations, journal, verifications.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "api/types/json_text.hpp"
#include "vfmgr/store/rows.hpp"

namespace vfmgr {

namespace {

constexpr std::int64_t attachment_verifications_max = 100;  // kept for each
constexpr std::int64_t vf_verifications_max = 200;
constexpr std::int64_t vf_events_max = 1000;  // ends of attachments, and as many others
// Events that are in no VF's history are kept while at most as many numbers were given since.
constexpr std::uint64_t passing_events_max = 20'000;
// A VF's history is about what lasts: these come in numbers, or have an end that is in it.
constexpr std::array passing{EventKind::operation_accepted, EventKind::operation_succeeded,
                             EventKind::operation_failed,   EventKind::attaching,
                             EventKind::detaching,          EventKind::link_up,
                             EventKind::link_down};

// The JSON text of a column.
template <class T>
std::string document_of(T const& value) {
    std::string text;
    JsonText::append(text, value);
    return text;
}

// Keeps a re-created object from getting an ETag that a client still has.
void remember_revision(SQLite::Database& db, std::uint64_t revision) {
    execute(db,
            "INSERT INTO host VALUES ('revision', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1 "
            "WHERE CAST(value AS INTEGER) < CAST(?1 AS INTEGER)",
            std::to_string(revision));
}

void save_selection(SQLite::Database& db, Batch const& batch) {
    for (auto const& pool : batch.save_pools)
        execute(db, "INSERT OR REPLACE INTO pools VALUES (?, ?)", pool.pool.name,
                document_of(pool));
    for (auto const& name : batch.erase_pools)
        execute(db, "DELETE FROM pools WHERE name = ?", name);
    for (auto const& tenant : batch.save_tenants)
        execute(db, "INSERT OR REPLACE INTO tenants VALUES (?, ?)", tenant.tenant.name,
                document_of(tenant));
    for (auto const& name : batch.erase_tenants)
        execute(db, "DELETE FROM tenants WHERE name = ?", name);
    for (auto const& reservation : batch.save_reservations)
        execute(db, "INSERT OR REPLACE INTO reservations VALUES (?, ?)", reservation.name,
                document_of(reservation));
    for (auto const& name : batch.erase_reservations)
        execute(db, "DELETE FROM reservations WHERE name = ?", name);
    if (batch.save_handed_out)
        execute(db, "INSERT OR REPLACE INTO handed_out VALUES (0, ?)",
                document_of(*batch.save_handed_out));
}

void save_fleet(SQLite::Database& db, Batch const& batch) {
    if (batch.save_fleet) {
        auto durable = *batch.save_fleet;
        durable.contacted_at.reset();
        execute(db, "INSERT OR REPLACE INTO fleet VALUES (0, ?)", document_of(durable));
    }
    if (batch.erase_fleet) execute(db, "DELETE FROM fleet");
    if (batch.confirm_restored) execute(db, "DELETE FROM host WHERE name = 'restored'");
}

void save_desired(SQLite::Database& db, Batch const& batch) {
    for (auto const& [pci, pf] : batch.save_pfs) remember_revision(db, pf.revision);
    for (auto const& network : batch.save_networks) remember_revision(db, network.revision);
    for (auto const& pool : batch.save_pools) remember_revision(db, pool.revision);
    for (auto const& tenant : batch.save_tenants) remember_revision(db, tenant.revision);
    if (batch.save_handed_out) remember_revision(db, batch.save_handed_out->revision);
    for (auto const& link : batch.save_rdma_links) remember_revision(db, link.revision);
    for (auto const& [pci, pf] : batch.save_pfs)
        execute(db, "INSERT OR REPLACE INTO pfs VALUES (?, ?)", to_string(pci), document_of(pf));
    for (auto const& pci : batch.erase_pfs)
        execute(db, "DELETE FROM pfs WHERE pci = ?", to_string(pci));
    for (auto const& network : batch.save_networks)
        execute(db, "INSERT OR REPLACE INTO networks VALUES (?, ?)", network.network.name,
                document_of(network));
    for (auto const& name : batch.erase_networks)
        execute(db, "DELETE FROM networks WHERE name = ?", name);
    save_selection(db, batch);
    save_fleet(db, batch);
    for (auto const& attachment : batch.save_attachments)
        execute(db, "INSERT OR REPLACE INTO attachments VALUES (?, ?)", attachment.id,
                document_of(attachment));
    for (auto const& keys : batch.save_guest_keys)
        execute(db, "INSERT OR REPLACE INTO guest_keys VALUES (?, ?)", keys.attachment,
                document_of(keys));
    for (auto const& id : batch.erase_attachments)
        for (auto const* const sql : {"DELETE FROM attachments WHERE id = ?",
                                      "DELETE FROM guest_keys WHERE attachment = ?"})
            execute(db, sql, id);
    for (auto const& quarantine : batch.save_quarantines)
        execute(db, "INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?)",
                to_string(quarantine.vf.pf), int{quarantine.vf.index}, document_of(quarantine));
    for (auto const& vf : batch.erase_quarantines)
        execute(db, "DELETE FROM quarantine WHERE pf = ? AND vf = ?", to_string(vf.pf),
                int{vf.index});
    for (auto const& [card, tries] : batch.save_firmware_tries)
        execute(db, "INSERT OR REPLACE INTO firmware_tries VALUES (?, ?)", to_string(card),
                document_of(tries));
    for (auto const& card : batch.erase_firmware_tries)
        execute(db, "DELETE FROM firmware_tries WHERE card = ?", to_string(card));
    for (auto const& link : batch.save_rdma_links)
        execute(db, "INSERT OR REPLACE INTO rdma_links VALUES (?, ?)", link.link.name,
                document_of(link));
    for (auto const& name : batch.erase_rdma_links)
        execute(db, "DELETE FROM rdma_links WHERE name = ?", name);
    for (auto const& [pci, identity] : batch.save_identities)
        execute(db, "INSERT OR REPLACE INTO pf_identities VALUES (?, ?)", to_string(pci),
                document_of(identity));
    for (auto const& pci : batch.erase_identities)
        execute(db, "DELETE FROM pf_identities WHERE pci = ?", to_string(pci));
}

void save_operations(SQLite::Database& db, Batch const& batch) {
    // Not INSERT OR REPLACE: that deletes the old row, and its journal with it.
    for (auto const& operation : batch.save_operations)
        execute(db,
                "INSERT INTO operations (id, finished, created_ms, document, state, kind, subject, "
                "vm) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET finished = excluded.finished, "
                "document = excluded.document, state = excluded.state",
                operation.id, finished(operation) ? 1 : 0, milliseconds_of(operation.created_at),
                document_of(operation), std::string(enum_name(operation.state)),
                std::string(enum_name(operation.kind)), operation.subject,
                operation.vm_uuid.value_or(""));
    for (auto const& [key, request_hash, operation, created_at] : batch.save_idempotency)
        execute(db, "INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?)", key, request_hash,
                operation, milliseconds_of(created_at));
    for (auto const& operation : batch.erase_records_of)
        for (auto const* const sql :
             {"DELETE FROM steps WHERE operation = ?", "DELETE FROM states WHERE operation = ?"})
            execute(db, sql, operation);
    for (auto const& [operation, record] : batch.save_records) {
        execute(db, "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", operation,
                std::int64_t{record.seq}, document_of(record.step), document_of(record.undo));
        execute(db, "INSERT OR REPLACE INTO states VALUES (?, ?, ?)", operation,
                std::int64_t{record.seq}, std::string(enum_name(record.state)));
    }
    for (auto const& [operation, seq, state] : batch.save_record_states)
        execute(db, "UPDATE states SET state = ? WHERE operation = ? AND seq = ?",
                std::string(enum_name(state)), operation, std::int64_t{seq});
}

// Here and below, excess rows are deleted first: at the store's limit the new row needs their
// place.
void save_verifications(SQLite::Database& db, Batch const& batch) {
    for (auto const& [vf, verification] : batch.save_verifications) {
        auto const pf = to_string(vf.pf);
        execute(db,
                "DELETE FROM verifications WHERE attachment = ?1 AND run <> ?2 AND number NOT IN "
                "(SELECT number FROM verifications WHERE attachment = ?1 AND run <> ?2 "
                "ORDER BY started_ms DESC, number DESC LIMIT ?3)",
                verification.attachment, verification.run, attachment_verifications_max - 1);
        execute(db,
                "DELETE FROM verifications WHERE pf = ?1 AND vf = ?2 AND run <> ?3 AND number NOT "
                "IN (SELECT number FROM verifications WHERE pf = ?1 AND vf = ?2 AND run <> ?3 "
                "ORDER BY started_ms DESC, number DESC LIMIT ?4)",
                pf, int{vf.index}, verification.run, vf_verifications_max - 1);
        execute(db,
                "INSERT INTO verifications (run, attachment, started_ms, document, pf, vf) "
                "VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (run) DO UPDATE SET document = excluded.document",
                verification.run, verification.attachment, milliseconds_of(verification.started_at),
                document_of(verification), pf, int{vf.index});
    }
}

bool is_passing(Event const& event) {
    return !event.pf || std::ranges::find(passing, event.kind) != passing.end();
}

void save_passing(SQLite::Database& db, Event const& event) {
    if (event.number > passing_events_max)
        execute(db, "DELETE FROM passing_events WHERE number <= ?",
                static_cast<std::int64_t>(event.number - passing_events_max));
    execute(db, "INSERT INTO passing_events VALUES (?, ?)", static_cast<std::int64_t>(event.number),
            document_of(event));
}

template <class T>
Result<void> load_by_address(Store::Impl const& store, SQLite::Database& db, std::string_view kind,
                             char const* sql, std::map<PciAddress, T>& into) {
    VFMGR_TRY(auto rows, store.named_values<T>(db, kind, sql));
    for (auto& [name, value] : rows) {
        auto const pci = PciAddress::parse(name);
        if (!pci) return fail(store.unreadable(fmt::format("{} {}", kind, name), pci.error()));
        into.emplace(*pci, std::move(value));
    }
    return {};
}

template <class T>
Result<void> load_by_name(Store::Impl const& store, SQLite::Database& db, std::string_view kind,
                          char const* sql, std::map<std::string, T>& into) {
    VFMGR_TRY(auto rows, store.named_values<T>(db, kind, sql));
    for (auto& [name, value] : rows) into.emplace(std::move(name), std::move(value));
    return {};
}

Result<void> load_quarantine(Store::Impl const& store, SQLite::Database& db, DesiredState& state) {
    VFMGR_TRY(auto rows,
              store.named_values<Quarantine>(db, "quarantined VF",
                                             "SELECT pf || '/' || vf, document FROM quarantine"));
    for (auto& [name, quarantine] : rows)
        state.quarantine.emplace(quarantine.vf, std::move(quarantine));
    return {};
}

}  // namespace

std::string json_array(std::vector<std::string> const& values) {
    return document_of(values);
}

// An operation under way may use the reserve, so that it can end, and so may every batch that ends
// an attachment, or reports that only the reserve is left. A batch that begins or only records
// something can be refused, so it leaves the reserve alone.
bool uses_reserve(Batch const& batch) {
    // Without its fence a fleet's scheduler could not detach anything.
    bool const of_fleet = batch.save_fleet || batch.erase_fleet || batch.confirm_restored;
    bool const under_way = !batch.save_records.empty() || !batch.save_record_states.empty() ||
                           !batch.erase_records_of.empty() || !batch.save_attachments.empty() ||
                           !batch.erase_attachments.empty() || !batch.save_quarantines.empty() ||
                           !batch.erase_quarantines.empty() || of_fleet;
    bool const ends = std::ranges::any_of(batch.save_operations, [](Operation const& operation) {
        return operation.kind == OperationKind::detach;
    });
    bool const reports = std::ranges::any_of(batch.save_events, [](Event const& event) {
        return event.kind == EventKind::store_read_only;
    });
    return under_way || ends || reports;
}

void save_events(SQLite::Database& db, std::vector<Event> const& events) {
    for (auto const& event : events) {
        if (is_passing(event)) {
            save_passing(db, event);
            continue;
        }
        auto const pf = to_string(*event.pf);
        int const detached = event.kind == EventKind::detached ? 1 : 0;
        execute(db,
                "DELETE FROM events WHERE pf = ?1 AND vf IS ?2 AND detached = ?3 AND number <= "
                "(SELECT number FROM events WHERE pf = ?1 AND vf IS ?2 AND detached = ?3 "
                "ORDER BY number DESC LIMIT 1 OFFSET ?4)",
                pf, event.vf, detached, vf_events_max - 1);
        execute(db,
                "INSERT INTO events (number, pf, vf, document, attachment, detached) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                static_cast<std::int64_t>(event.number), pf, event.vf, document_of(event),
                event.attachment, detached);
    }
}

Result<void> Store::commit(Batch const& batch) {
    if (batch == Batch{}) return {};
    auto const room = uses_reserve(batch) ? Room::reserve : Room::ordinary;
    return impl_->in_transaction(room, [&](SQLite::Database& db) -> Result<void> {
        save_desired(db, batch);
        save_operations(db, batch);
        save_verifications(db, batch);
        save_events(db, batch.save_events);
        return {};
    });
}

Result<DesiredState> Store::load() {
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<DesiredState> {
        DesiredState state;
        auto const& store = *impl_;
        VFMGR_CHECK(load_by_address(store, db, "PF", "SELECT pci, document FROM pfs", state.pfs));
        VFMGR_CHECK(load_by_name(store, db, "network", "SELECT name, document FROM networks",
                                 state.networks));
        VFMGR_CHECK(
            load_by_name(store, db, "pool", "SELECT name, document FROM pools", state.pools));
        VFMGR_CHECK(
            load_by_name(store, db, "tenant", "SELECT name, document FROM tenants", state.tenants));
        VFMGR_CHECK(load_by_name(store, db, "reservation",
                                 "SELECT name, document FROM reservations", state.reservations));
        VFMGR_TRY(auto identities,
                  store.named_values<DesiredIdentities>(
                      db, "identities", "SELECT CAST(id AS TEXT), document FROM handed_out"));
        for (auto& [id, each] : identities) state.handed_out = std::move(each);
        VFMGR_CHECK(load_by_name(store, db, "attachment", "SELECT id, document FROM attachments",
                                 state.attachments));
        VFMGR_CHECK(load_by_name(store, db, "keys of attachment",
                                 "SELECT attachment, document FROM guest_keys", state.guest_keys));
        VFMGR_CHECK(load_quarantine(store, db, state));
        VFMGR_CHECK(load_by_address(store, db, "card", "SELECT card, document FROM firmware_tries",
                                    state.firmware_tries));
        VFMGR_CHECK(load_by_name(store, db, "RDMA link", "SELECT name, document FROM rdma_links",
                                 state.rdma_links));
        VFMGR_CHECK(load_by_address(store, db, "PF identity",
                                    "SELECT pci, document FROM pf_identities", state.identities));
        VFMGR_TRY(auto fleet,
                  store.named_values<FleetMembership>(
                      db, "membership", "SELECT CAST(id AS TEXT), document FROM fleet"));
        for (auto& [id, each] : fleet) state.fleet = std::move(each);
        SQLite::Statement restored(
            db, "SELECT CAST(value AS INTEGER) FROM host WHERE name = 'restored'");
        if (restored.executeStep()) state.restored_at = time_of(restored.getColumn(0).getInt64());
        return state;
    });
}

}  // namespace vfmgr
