// SPDX-License-Identifier: Apache-2.0
// Store::commit and its inverse, load: desired state, operations, journal, verifications.
#include <algorithm>

#include "vfmgr/store/database.hpp"

namespace vfmgr {

namespace {

constexpr std::int64_t attachment_verifications_max = 100;  // kept for each
constexpr std::int64_t vf_verifications_max = 200;
constexpr std::int64_t vf_events_max = 1000;  // ends of attachments, and as many others

template <class... Values>
void execute(SQLite::Database& db, char const* sql, Values const&... values) {
    SQLite::Statement statement(db, sql);
    SQLite::bind(statement, values...);
    statement.exec();
}

// Keeps a re-created object from getting an ETag that a client still has.
void remember_revision(SQLite::Database& db, std::uint64_t revision) {
    execute(db,
            "INSERT INTO host VALUES ('revision', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1 "
            "WHERE CAST(value AS INTEGER) < CAST(?1 AS INTEGER)",
            std::to_string(revision));
}

void save_desired(SQLite::Database& db, Batch const& batch) {
    for (auto const& [pci, pf] : batch.save_pfs) remember_revision(db, pf.revision);
    for (auto const& link : batch.save_rdma_links) remember_revision(db, link.revision);
    for (auto const& [pci, pf] : batch.save_pfs)
        execute(db, "INSERT OR REPLACE INTO pfs VALUES (?, ?)", to_string(pci), document_of(pf));
    for (auto const& pci : batch.erase_pfs)
        execute(db, "DELETE FROM pfs WHERE pci = ?", to_string(pci));
    for (auto const& attachment : batch.save_attachments)
        execute(db, "INSERT OR REPLACE INTO attachments VALUES (?, ?)", attachment.id,
                document_of(attachment));
    for (auto const& id : batch.erase_attachments)
        execute(db, "DELETE FROM attachments WHERE id = ?", id);
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
                "INSERT INTO operations (id, finished, created_ms, document) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET finished = excluded.finished, "
                "created_ms = excluded.created_ms, document = excluded.document",
                operation.id, finished(operation) ? 1 : 0, milliseconds_of(operation.created_at),
                document_of(operation));
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

void save_events(SQLite::Database& db, Batch const& batch) {
    for (auto const& event : batch.save_events) {
        int const detached = event.kind == EventKind::detached ? 1 : 0;
        SQLite::Statement prune(
            db,
            "DELETE FROM events WHERE pf = ?1 AND vf IS ?2 AND detached = ?3 AND number <= "
            "(SELECT number FROM events WHERE pf = ?1 AND vf IS ?2 AND detached = ?3 "
            "ORDER BY number DESC LIMIT 1 OFFSET ?4)");
        SQLite::bind(prune, to_string(event.pf));
        if (event.vf) prune.bind(2, int{*event.vf});
        prune.bind(3, detached);
        prune.bind(4, vf_events_max - 1);
        prune.exec();
        SQLite::Statement insert(
            db,
            "INSERT INTO events (number, pf, vf, document, attachment, detached) "
            "VALUES (?, ?, ?, ?, ?, ?)");
        SQLite::bind(insert, static_cast<std::int64_t>(event.number), to_string(event.pf));
        if (event.vf) insert.bind(3, int{*event.vf});
        insert.bind(4, document_of(event));
        if (event.attachment) insert.bind(5, *event.attachment);
        insert.bind(6, detached);
        insert.exec();
    }
}

Result<void> load_pfs(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT pci, document FROM pfs");
    while (rows.executeStep()) {
        auto const name = rows.getColumn(0).getString();
        auto const pci = PciAddress::parse(name);
        if (!pci) return fail(store.unreadable("PF " + name, pci.error()));
        VFMGR_TRY(auto pf, value_of<DesiredPf>(store, rows.getColumn(1), "PF " + name));
        state.pfs.emplace(*pci, std::move(pf));
    }
    return {};
}

Result<void> load_attachments(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT id, document FROM attachments");
    while (rows.executeStep()) {
        auto const id = rows.getColumn(0).getString();
        VFMGR_TRY(auto attachment,
                  value_of<Attachment>(store, rows.getColumn(1), "attachment " + id));
        state.attachments.emplace(id, std::move(attachment));
    }
    return {};
}

Result<void> load_quarantine(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT pf || '/' || vf, document FROM quarantine");
    while (rows.executeStep()) {
        auto const name = rows.getColumn(0).getString();
        VFMGR_TRY(auto quarantine,
                  value_of<Quarantine>(store, rows.getColumn(1), "quarantined VF " + name));
        state.quarantine.emplace(quarantine.vf, std::move(quarantine));
    }
    return {};
}

Result<void> load_firmware_tries(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT card, document FROM firmware_tries");
    while (rows.executeStep()) {
        auto const name = rows.getColumn(0).getString();
        auto const card = PciAddress::parse(name);
        if (!card) return fail(store.unreadable("card " + name, card.error()));
        VFMGR_TRY(auto tries, value_of<FirmwareTries>(store, rows.getColumn(1), "card " + name));
        state.firmware_tries.emplace(*card, std::move(tries));
    }
    return {};
}

Result<void> load_rdma_links(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT name, document FROM rdma_links");
    while (rows.executeStep()) {
        auto const name = rows.getColumn(0).getString();
        VFMGR_TRY(auto link,
                  value_of<DesiredRdmaLink>(store, rows.getColumn(1), "RDMA link " + name));
        state.rdma_links.emplace(name, std::move(link));
    }
    return {};
}

Result<void> load_identities(Store::Impl& store, SQLite::Database& db, DesiredState& state) {
    SQLite::Statement rows(db, "SELECT pci, document FROM pf_identities");
    while (rows.executeStep()) {
        auto const name = rows.getColumn(0).getString();
        auto const pci = PciAddress::parse(name);
        if (!pci) return fail(store.unreadable("PF identity " + name, pci.error()));
        VFMGR_TRY(auto identity,
                  value_of<PfIdentity>(store, rows.getColumn(1), "PF identity " + name));
        state.identities.emplace(*pci, std::move(identity));
    }
    return {};
}

bool empty(Batch const& batch) {
    return batch.save_pfs.empty() && batch.erase_pfs.empty() && batch.save_attachments.empty() &&
           batch.erase_attachments.empty() && batch.save_quarantines.empty() &&
           batch.erase_quarantines.empty() && batch.save_firmware_tries.empty() &&
           batch.erase_firmware_tries.empty() && batch.save_rdma_links.empty() &&
           batch.erase_rdma_links.empty() && batch.save_identities.empty() &&
           batch.erase_identities.empty() && batch.save_operations.empty() &&
           batch.save_idempotency.empty() && batch.save_verifications.empty() &&
           batch.save_events.empty() && batch.save_records.empty() &&
           batch.save_record_states.empty() && batch.erase_records_of.empty();
}

// An operation under way may use the reserve, so that it can end, and so may every batch that ends
// an attachment. A batch that begins or only records something can be refused, so it leaves the
// reserve alone.
Room room_of(Batch const& batch) {
    bool const under_way = !batch.save_records.empty() || !batch.save_record_states.empty() ||
                           !batch.erase_records_of.empty() || !batch.save_attachments.empty() ||
                           !batch.erase_attachments.empty() || !batch.save_quarantines.empty() ||
                           !batch.erase_quarantines.empty();
    bool const ends = std::ranges::any_of(batch.save_operations, [](Operation const& operation) {
        return operation.kind == OperationKind::detach;
    });
    return under_way || ends ? Room::reserve : Room::ordinary;
}

}  // namespace

Result<void> Store::commit(Batch const& batch) {
    if (empty(batch)) return {};
    return impl_->in_transaction(room_of(batch), [&](SQLite::Database& db) -> Result<void> {
        save_desired(db, batch);
        save_operations(db, batch);
        save_verifications(db, batch);
        save_events(db, batch);
        return {};
    });
}

Result<DesiredState> Store::load() {
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<DesiredState> {
        DesiredState state;
        VFMGR_CHECK(load_pfs(*impl_, db, state));
        VFMGR_CHECK(load_attachments(*impl_, db, state));
        VFMGR_CHECK(load_quarantine(*impl_, db, state));
        VFMGR_CHECK(load_firmware_tries(*impl_, db, state));
        VFMGR_CHECK(load_rdma_links(*impl_, db, state));
        VFMGR_CHECK(load_identities(*impl_, db, state));
        return state;
    });
}

}  // namespace vfmgr
