// SPDX-License-Identifier: Apache-2.0
// Room in a store: the reserve, and which history is deleted to make room.
#include <fmt/format.h>

#include <array>

#include "vfmgr/store/database.hpp"

namespace vfmgr {

namespace {

// Each deletes the oldest eighth of its kind, and at least one row: of the audit, refused requests
// before the others. Unfinished operations, attachments, quarantines and tokens are never deleted.
constexpr std::array forgettable{
    "DELETE FROM audit WHERE refused = 1 AND number <= (SELECT number FROM audit WHERE refused = 1 "
    "ORDER BY number LIMIT 1 OFFSET (SELECT count(*) / 8 FROM audit WHERE refused = 1))",
    "DELETE FROM audit WHERE refused = 0 AND number <= (SELECT number FROM audit WHERE refused = 0 "
    "ORDER BY number LIMIT 1 OFFSET (SELECT count(*) / 8 FROM audit WHERE refused = 0))",
    "DELETE FROM operations WHERE finished = 1 AND number <= (SELECT number FROM operations "
    "WHERE finished = 1 ORDER BY number LIMIT 1 "
    "OFFSET (SELECT count(*) / 8 FROM operations WHERE finished = 1))",
    "DELETE FROM verifications WHERE attachment NOT IN (SELECT id FROM attachments) AND "
    "number <= (SELECT number FROM verifications WHERE attachment NOT IN "
    "(SELECT id FROM attachments) ORDER BY number LIMIT 1 OFFSET (SELECT count(*) / 8 "
    "FROM verifications WHERE attachment NOT IN (SELECT id FROM attachments)))",
    "DELETE FROM passing_events WHERE number <= (SELECT number FROM passing_events "
    "ORDER BY number LIMIT 1 OFFSET (SELECT count(*) / 8 FROM passing_events))",
    "DELETE FROM events WHERE detached = 0 AND number <= (SELECT number FROM events "
    "WHERE detached = 0 ORDER BY number LIMIT 1 "
    "OFFSET (SELECT count(*) / 8 FROM events WHERE detached = 0))",
};
// Deleted when nothing else is left: certificates, and keys that keep a request from being done
// twice.
constexpr std::array forgettable_last{
    "DELETE FROM events WHERE number <= (SELECT number FROM events ORDER BY number LIMIT 1 "
    "OFFSET (SELECT count(*) / 8 FROM events))",
    "DELETE FROM idempotency WHERE rowid <= (SELECT rowid FROM idempotency ORDER BY rowid LIMIT 1 "
    "OFFSET (SELECT count(*) / 8 FROM idempotency))",
};

int forget_oldest(SQLite::Database& db) {
    int forgotten = 0;
    for (auto const* sql : forgettable) forgotten += db.exec(sql);
    if (forgotten > 0) return forgotten;
    for (auto const* sql : forgettable_last) forgotten += db.exec(sql);
    return forgotten;
}

}  // namespace

std::int64_t Store::Impl::pages_used(SQLite::Database& db) {
    return db.execAndGet("PRAGMA page_count").getInt64() -
           db.execAndGet("PRAGMA freelist_count").getInt64();
}

// A write that takes no more pages is always allowed, so that a store can shrink.
bool Store::Impl::leaves_reserve(SQLite::Database& db, std::int64_t pages_before) const {
    auto const now = pages_used(db);
    return now <= ordinary_pages_max || now <= pages_before;
}

Error Store::Impl::no_room() const {
    Error error = other_error(Access::write, "the disk or the store is full");
    error.remedy = "revoke tokens and forget PFs that are no longer needed; detaching still works";
    error.causes.push_back({"sqlite", "SQLITE_FULL", "only the reserve is left"});
    return error;
}

bool Store::Impl::is_full(Error const& error) {
    return !error.causes.empty() && error.causes.front().code == "SQLITE_FULL";
}

// A small write, or one into the reserve, succeeds even where the next operation would be refused.
void Store::Impl::note(std::optional<Error> failure) {
    constexpr std::int64_t pages_of_an_operation = 16;
    if (failure && failure->problem == Problem::unavailable) {
        refusal = std::move(failure);
    } else if (!failure && refusal) {
        auto const used = guarded(Access::read, [](SQLite::Database& db) -> Result<std::int64_t> {
            return pages_used(db);
        });
        if (used && *used + pages_of_an_operation <= ordinary_pages_max) refusal.reset();
    }
}

std::optional<Error> const& Store::refusal() const {
    return impl_->refusal;
}

void Store::try_again() {
    static_cast<void>(
        impl_->in_transaction(Room::reserve, [](SQLite::Database& db) -> Result<void> {
            auto const version = db.execAndGet("PRAGMA user_version").getInt();
            db.exec(fmt::format("PRAGMA user_version = {}", version));
            return {};
        }));
}

bool Store::Impl::make_room() {
    auto const made = guarded(Access::write, [&](SQLite::Database& db) -> Result<bool> {
        // A full file system is not the store's doing, and deleting rows would not empty it.
        if (pages_used(db) < ordinary_pages_max - ordinary_pages_max / 8) return false;
        auto const enough = ordinary_pages_max - ordinary_pages_max / 4;
        SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
        bool forgotten = false;
        while (pages_used(db) > enough && forget_oldest(db) > 0) forgotten = true;
        transaction.commit();
        return forgotten;
    });
    return made && *made;
}

}  // namespace vfmgr
