// SPDX-License-Identifier: Apache-2.0
// Reads for recovery and the API: operations, their journal, verifications.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "vfmgr/store/database.hpp"

namespace vfmgr {

namespace {

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

}  // namespace

Result<std::vector<UnfinishedOperation>> Store::unfinished() {
    using Unfinished = std::vector<UnfinishedOperation>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Unfinished> {
        VFMGR_TRY(auto named, impl_->named_values<Operation>(
                                  db, "operation",
                                  "SELECT id, document FROM operations WHERE finished = 0 "
                                  "ORDER BY number"));
        Unfinished operations;
        for (auto& [id, operation] : named) {
            VFMGR_TRY(auto records, journal_of(*impl_, db, id));
            operations.push_back({std::move(operation), std::move(records)});
        }
        return operations;
    });
}

Result<std::optional<Operation>> Store::operation(std::string const& id) {
    VFMGR_TRY(auto found, impl_->values<Operation>(
                              "operation", "SELECT id, document FROM operations WHERE id = ?", id));
    return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

Result<std::vector<Operation>> Store::operations(std::size_t limit) {
    return impl_->values<Operation>("operation",
                                    "SELECT id, document FROM operations "
                                    "ORDER BY created_ms DESC, number DESC LIMIT ?",
                                    sql_limit(limit));
}

Result<std::vector<Verification>> Store::verifications(std::string const& attachment) {
    return impl_->values<Verification>("verification",
                                       "SELECT run, document FROM verifications "
                                       "WHERE attachment = ? "
                                       "ORDER BY started_ms DESC, number DESC",
                                       attachment);
}

Result<std::vector<Verification>> Store::verifications(VfId const& vf) {
    return impl_->values<Verification>("verification",
                                       "SELECT run, document FROM verifications "
                                       "WHERE pf = ? AND vf = ? "
                                       "ORDER BY started_ms DESC, number DESC",
                                       to_string(vf.pf), int{vf.index});
}

Result<std::vector<HistoryEvent>> Store::events(VfId const& vf) {
    return impl_->values<HistoryEvent>("event",
                                       "SELECT number, document FROM events WHERE pf = ? "
                                       "AND (vf = ? OR vf IS NULL) ORDER BY number DESC",
                                       to_string(vf.pf), int{vf.index});
}

Result<std::vector<HistoryEvent>> Store::events(std::string const& attachment) {
    return impl_->values<HistoryEvent>("event",
                                       "SELECT number, document FROM events WHERE attachment = ? "
                                       "ORDER BY number DESC",
                                       attachment);
}

Result<std::uint64_t> Store::last_event() {
    return impl_->guarded(Access::read, [](SQLite::Database& db) -> Result<std::uint64_t> {
        SQLite::Statement last(db, "SELECT seq FROM sqlite_sequence WHERE name = 'events'");
        if (!last.executeStep()) return 0;
        return static_cast<std::uint64_t>(last.getColumn(0).getInt64());
    });
}

}  // namespace vfmgr
