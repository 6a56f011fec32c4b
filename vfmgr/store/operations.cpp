// SPDX-License-Identifier: Apache-2.0
// Reads for recovery and the API: operations, their journal, verifications.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "vfmgr/store/rows.hpp"

namespace vfmgr {

namespace {

Result<std::uint64_t> number_of(Store::Impl& store, char const* sql) {
    return store.guarded(Access::read, [&](SQLite::Database& db) -> Result<std::uint64_t> {
        return static_cast<std::uint64_t>(db.execAndGet(sql).getInt64());
    });
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

Result<Rows<Operation>> Store::operations(OperationFilter const& filter, RowRange const& range) {
    List list{"operations", "created_ms", "id AS name, document", {}};
    if (filter.state) list.only("state", std::string(enum_name(*filter.state)));
    if (filter.kind) list.only("kind", std::string(enum_name(*filter.kind)));
    list.only("subject", filter.subject);
    if (filter.vms)
        list.conditions.push_back(
            {"vm IN (SELECT value FROM json_each(?))", {json_array(*filter.vms)}});
    return documents_of<Operation>(*impl_, list, range, "operation");
}

Result<Rows<Verification>> Store::verifications(std::string const& attachment,
                                                RowRange const& range) {
    List const list{
        "verifications", "started_ms", "run AS name, document", {{"attachment = ?", {attachment}}}};
    return documents_of<Verification>(*impl_, list, range, "verification");
}

Result<Rows<Verification>> Store::verifications(VfId const& vf, RowRange const& range,
                                                std::string const& attachment) {
    List list{"verifications",
              "started_ms",
              "run AS name, document",
              {{"pf = ? AND vf = ?", {to_string(vf.pf), std::int64_t{vf.index}}}}};
    list.only("attachment", attachment);
    return documents_of<Verification>(*impl_, list, range, "verification");
}

// The VF's own events and the PF's are two ranges of an index; "vf = ? OR vf IS NULL" would read
// the events of every VF of the PF.
Result<Rows<Event>> Store::events(VfId const& vf, RowRange const& range,
                                  std::string const& attachment) {
    auto const pf = to_string(vf.pf);
    List list{"events",
              "",
              "number AS name, document",
              {{"number IN (SELECT number FROM events WHERE pf = ? AND vf = ? UNION ALL "
                "SELECT number FROM events WHERE pf = ? AND vf IS NULL)",
                {pf, std::int64_t{vf.index}, pf}}}};
    list.only("attachment", attachment);
    return documents_of<Event>(*impl_, list, range, "event");
}

Result<bool> Store::knows(VfId const& vf) {
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<bool> {
        SQLite::Statement known(db,
                                "SELECT EXISTS (SELECT 1 FROM events WHERE pf = ?1 AND vf = ?2) OR "
                                "EXISTS (SELECT 1 FROM verifications WHERE pf = ?1 AND vf = ?2)");
        SQLite::bind(known, to_string(vf.pf), int{vf.index});
        return known.executeStep() && known.getColumn(0).getInt() != 0;
    });
}

Result<std::vector<Event>> Store::events(std::string const& attachment) {
    return impl_->values<Event>("event",
                                "SELECT number, document FROM events WHERE attachment = ? "
                                "ORDER BY number DESC",
                                attachment);
}

Result<EventPage> Store::events_after(std::uint64_t after, std::size_t max) {
    EventPage page;
    VFMGR_TRY(page.last, last_event());
    VFMGR_TRY(
        page.pruned,
        number_of(*impl_, "SELECT CAST(value AS INTEGER) FROM host WHERE name = 'events_pruned'"));
    auto const first = static_cast<std::int64_t>(std::min(after, page.last));
    VFMGR_CHECK(impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<void> {
        SQLite::Statement rows(db,
                               "SELECT number, document FROM events WHERE number > ?1 UNION ALL "
                               "SELECT number, document FROM passing_events WHERE number > ?1 "
                               "ORDER BY number LIMIT ?2");
        SQLite::bind(rows, first, sql_limit(max));
        while (rows.executeStep()) {
            auto event = value_of<Event>(*impl_, rows.getColumn(1), "an event");
            if (event)
                page.events.push_back(std::move(*event));
            else  // it is as good as deleted, and must not keep the others from being read
                page.pruned =
                    std::max(page.pruned, static_cast<std::uint64_t>(rows.getColumn(0).getInt64()));
        }
        return {};
    }));
    return page;
}

Result<std::uint64_t> Store::last_event() {
    return number_of(
        *impl_,
        "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0), "
        "coalesce((SELECT max(number) FROM passing_events), 0), "
        "(SELECT CAST(value AS INTEGER) FROM host WHERE name = 'events_pruned'))");
}

}  // namespace vfmgr
