// SPDX-License-Identifier: Apache-2.0
// Reads for recovery and the API: operations, their journal, verifications.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "vfmgr/store/database.hpp"

namespace vfmgr {

namespace {

Result<Operation> operation_in(Store::Impl const& store, SQLite::Statement& row) {
    auto const id = row.getColumn("id").getString();
    return value_of<Operation>(store, row.getColumn("document"), "operation " + id);
}

// A journal's list of steps: a bare array, which from_json_document() has no reader for.
struct Steps {
    std::vector<Step> steps;
};
template <class F, Of<Steps> V>
void fields(F& f, V& steps) {
    f.value("steps", steps.steps);
}

Result<JournalRecord> record_in(Store::Impl const& store, SQLite::Statement& row,
                                std::string const& operation) {
    JournalRecord record;
    record.seq = row.getColumn("seq").getUInt();
    auto const what = fmt::format("step {} of operation {}", record.seq, operation);
    VFMGR_TRY(record.step, value_of<Step>(store, row.getColumn("step"), what));
    auto const undo = R"({"steps":)" + row.getColumn("undo").getString() + "}";
    auto steps = from_json_text<Steps>(undo);
    if (!steps) return fail(store.unreadable("the undo of " + what, steps.error()));
    record.undo = std::move(steps->steps);
    auto const state = enum_value<StepState>(row.getColumn("state").getString());
    if (!state)
        return fail(store.unreadable(what, {Problem::internal, "its state has no known name", {}}));
    record.state = *state;
    return record;
}

Result<std::vector<JournalRecord>> journal_of(Store::Impl const& store, SQLite::Database& db,
                                              std::string const& operation) {
    SQLite::Statement rows(
        db,
        "SELECT seq, state, step, undo FROM steps LEFT JOIN states USING (operation, seq) "
        "WHERE operation = ? ORDER BY seq");
    rows.bind(1, operation);
    std::vector<JournalRecord> records;
    while (rows.executeStep()) {
        VFMGR_TRY(auto record, record_in(store, rows, operation));
        records.push_back(std::move(record));
    }
    return records;
}

Result<std::vector<Verification>> verifications_in(Store::Impl const& store,
                                                   SQLite::Statement& rows) {
    std::vector<Verification> verifications;
    while (rows.executeStep()) {
        auto const what = "verification " + rows.getColumn("run").getString();
        VFMGR_TRY(auto one, value_of<Verification>(store, rows.getColumn("document"), what));
        verifications.push_back(std::move(one));
    }
    return verifications;
}

Result<std::vector<HistoryEvent>> events_in(Store::Impl const& store, SQLite::Statement& rows) {
    std::vector<HistoryEvent> events;
    while (rows.executeStep()) {
        VFMGR_TRY(auto event, value_of<HistoryEvent>(store, rows.getColumn(1),
                                                     "event " + rows.getColumn(0).getString()));
        events.push_back(std::move(event));
    }
    return events;
}

std::int64_t sql_limit(std::size_t limit) {
    return static_cast<std::int64_t>(std::min<std::size_t>(limit, INT32_MAX));
}

}  // namespace

Result<std::vector<UnfinishedOperation>> Store::unfinished() {
    using Unfinished = std::vector<UnfinishedOperation>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Unfinished> {
        SQLite::Statement rows(
            db, "SELECT id, document FROM operations WHERE finished = 0 ORDER BY number");
        Unfinished operations;
        while (rows.executeStep()) {
            VFMGR_TRY(auto operation, operation_in(*impl_, rows));
            VFMGR_TRY(auto records, journal_of(*impl_, db, operation.id));
            operations.push_back({std::move(operation), std::move(records)});
        }
        return operations;
    });
}

Result<std::optional<Operation>> Store::operation(std::string const& id) {
    return impl_->guarded(
        Access::read, [&](SQLite::Database& db) -> Result<std::optional<Operation>> {
            SQLite::Statement rows(db, "SELECT id, document FROM operations WHERE id = ?");
            rows.bind(1, id);
            if (!rows.executeStep()) return std::nullopt;
            VFMGR_TRY(auto operation, operation_in(*impl_, rows));
            return operation;
        });
}

Result<std::vector<Operation>> Store::operations(std::size_t limit) {
    return impl_->guarded(
        Access::read, [&](SQLite::Database& db) -> Result<std::vector<Operation>> {
            SQLite::Statement rows(db,
                                   "SELECT id, document FROM operations "
                                   "ORDER BY created_ms DESC, number DESC LIMIT ?");
            rows.bind(1, sql_limit(limit));
            std::vector<Operation> operations;
            while (rows.executeStep()) {
                VFMGR_TRY(auto operation, operation_in(*impl_, rows));
                operations.push_back(std::move(operation));
            }
            return operations;
        });
}

Result<std::vector<Verification>> Store::verifications(std::string const& attachment) {
    using Verifications = std::vector<Verification>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Verifications> {
        SQLite::Statement rows(db,
                               "SELECT run, document FROM verifications WHERE attachment = ? "
                               "ORDER BY started_ms DESC, number DESC");
        rows.bind(1, attachment);
        return verifications_in(*impl_, rows);
    });
}

Result<std::vector<Verification>> Store::verifications(VfId const& vf) {
    using Verifications = std::vector<Verification>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Verifications> {
        SQLite::Statement rows(db,
                               "SELECT run, document FROM verifications WHERE pf = ? AND vf = ? "
                               "ORDER BY started_ms DESC, number DESC");
        SQLite::bind(rows, to_string(vf.pf), int{vf.index});
        return verifications_in(*impl_, rows);
    });
}

Result<std::vector<HistoryEvent>> Store::events(VfId const& vf) {
    using Events = std::vector<HistoryEvent>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Events> {
        SQLite::Statement rows(db,
                               "SELECT number, document FROM events WHERE pf = ? "
                               "AND (vf = ? OR vf IS NULL) ORDER BY number DESC");
        SQLite::bind(rows, to_string(vf.pf), int{vf.index});
        return events_in(*impl_, rows);
    });
}

Result<std::vector<HistoryEvent>> Store::events(std::string const& attachment) {
    using Events = std::vector<HistoryEvent>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Events> {
        SQLite::Statement rows(db,
                               "SELECT number, document FROM events WHERE attachment = ? "
                               "ORDER BY number DESC");
        rows.bind(1, attachment);
        return events_in(*impl_, rows);
    });
}

Result<std::uint64_t> Store::last_event() {
    return impl_->guarded(Access::read, [](SQLite::Database& db) -> Result<std::uint64_t> {
        SQLite::Statement last(db, "SELECT seq FROM sqlite_sequence WHERE name = 'events'");
        if (!last.executeStep()) return 0;
        return static_cast<std::uint64_t>(last.getColumn(0).getInt64());
    });
}

}  // namespace vfmgr
