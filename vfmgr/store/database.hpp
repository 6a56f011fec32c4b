// SPDX-License-Identifier: Apache-2.0
// The SQLite file behind Store, for store/*.cpp only. SQLiteCpp throws; guarded() contains that.
// Owned by Store; control thread only.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vfmgr/store/store.hpp"

namespace vfmgr {

enum class Access { read, write };

// Which part of a store a transaction may fill.
enum class Room {
    ordinary,  // all but the reserve: what begins, what is only recorded, what can be refused
    reserve,   // to the last page: what is under way and has to end
};

struct Store::Impl {
    Impl(std::string at, SQLite::Database opened)
        : path(std::move(at)), database(std::move(opened)) {}

    std::string path;
    SQLite::Database database;
    std::int64_t ordinary_pages_max = 0;
    std::optional<Error> refusal{};  // see Store::refusal()

    // Runs `work(database)`, which returns a Result; an exception from SQLite becomes unavailable.
    template <class Work>
    auto guarded(Access access, Work work) -> std::invoke_result_t<Work, SQLite::Database&> {
        try {
            return work(database);
        } catch (SQLite::Exception const& refused) {
            return fail(sqlite_error(access, refused));
        } catch (std::exception const& refused) {
            return fail(other_error(access, refused.what()));
        }
    }
    // The same in one durable transaction: an error of `work` rolls all of it back. When there is
    // no room, the oldest records that are kept only as history are deleted, and `work` is called
    // once more.
    template <class Work>
    auto in_transaction(Room room, Work work) -> std::invoke_result_t<Work, SQLite::Database&> {
        auto result = attempt(room, work);
        if (!result && is_full(result.error()) && make_room()) result = attempt(room, work);
        note(result ? std::nullopt : std::optional(result.error()));
        return result;
    }

    // Returns the names and the values in a query's rows, its two columns. `kind` is what an error
    // calls a row: "attachment 3f9c2b1d".
    template <class T, class... Bound>
    [[nodiscard]] Result<std::vector<std::pair<std::string, T>>> named_values(
        SQLite::Database& db, std::string_view kind, char const* sql, Bound const&... bound) const;
    // The values alone, read outside of any transaction.
    template <class T, class... Bound>
    [[nodiscard]] Result<std::vector<T>> values(std::string_view kind, char const* sql,
                                                Bound const&... bound);

    // Deletes history and finished operations, oldest first, while the store is near its own limit.
    // False: nothing was, or could be, deleted.
    [[nodiscard]] bool make_room();

    [[nodiscard]] Error sqlite_error(Access access, SQLite::Exception const& refused) const;
    [[nodiscard]] Error other_error(Access access, std::string_view why) const;
    // A row that this version can't read: `what` names it.
    [[nodiscard]] Error unreadable(std::string_view what, Error const& why) const;

  private:
    template <class Work>
    auto attempt(Room room, Work& work) -> std::invoke_result_t<Work, SQLite::Database&> {
        return guarded(Access::write, [&](SQLite::Database& db) {
            SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
            auto const before = room == Room::ordinary ? pages_used(db) : 0;
            auto result = work(db);
            if (result && room == Room::ordinary && !leaves_reserve(db, before))
                result = fail(no_room());
            if (result) transaction.commit();
            return result;
        });
    }
    // The file's pages less the free ones, as the open transaction has them.
    [[nodiscard]] static std::int64_t pages_used(SQLite::Database& db);
    [[nodiscard]] bool leaves_reserve(SQLite::Database& db, std::int64_t pages_before) const;
    [[nodiscard]] Error no_room() const;
    [[nodiscard]] static bool is_full(Error const& error);
    // Notes how a write ended.
    void note(std::optional<Error> failure);
};

void save_events(SQLite::Database& db, std::vector<Event> const& events);

// Milliseconds since 1970, as in the columns that are compared.
[[nodiscard]] inline std::int64_t milliseconds_of(Time time) {
    return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
[[nodiscard]] inline Time time_of(std::int64_t milliseconds) {
    return Time(std::chrono::milliseconds(milliseconds));
}

[[nodiscard]] inline std::int64_t sql_limit(std::size_t limit) {
    return static_cast<std::int64_t>(std::min<std::size_t>(limit, INT32_MAX));
}

template <class T>
void bind_at(SQLite::Statement& statement, int at, T const& value) {
    statement.bind(at, value);
}
// Absent: NULL.
template <class T>
void bind_at(SQLite::Statement& statement, int at, std::optional<T> const& value) {
    if (value) statement.bind(at, *value);
}
// Returns the number of rows that were changed.
template <class... Values>
int execute(SQLite::Database& db, char const* sql, Values const&... values) {
    SQLite::Statement statement(db, sql);
    int at = 0;
    (bind_at(statement, ++at, values), ...);
    return statement.exec();
}

// Refuses another program's database and a newer vfmgrd's, before it changes anything in it.
[[nodiscard]] Result<void> check_form(Store::Impl& store);
// Brings the tables to this version's form, in one transaction for each version.
[[nodiscard]] Result<void> migrate(Store::Impl& store);

// Reads a value from the JSON text of a column. `what` names the row in the error: "attachment
// 3f9c2b1d".
template <class T>
[[nodiscard]] Result<T> value_of(Store::Impl const& store, std::string const& document,
                                 std::string const& what) {
    auto value = from_json_text<T>(document);
    if (!value) return fail(store.unreadable(what, value.error()));
    return value;
}

template <class T, class... Bound>
Result<std::vector<std::pair<std::string, T>>> Store::Impl::named_values(
    SQLite::Database& db, std::string_view kind, char const* sql, Bound const&... bound) const {
    SQLite::Statement rows(db, sql);
    if constexpr (sizeof...(bound) > 0) SQLite::bind(rows, bound...);
    std::vector<std::pair<std::string, T>> values;
    while (rows.executeStep()) {
        auto name = rows.getColumn(0).getString();
        VFMGR_TRY(auto value,
                  value_of<T>(*this, rows.getColumn(1), std::string(kind) + " " + name));
        values.emplace_back(std::move(name), std::move(value));
    }
    return values;
}

template <class T, class... Bound>
Result<std::vector<T>> Store::Impl::values(std::string_view kind, char const* sql,
                                           Bound const&... bound) {
    return guarded(Access::read, [&](SQLite::Database& db) -> Result<std::vector<T>> {
        VFMGR_TRY(auto named, named_values<T>(db, kind, sql, bound...));
        std::vector<T> values;
        for (auto& [name, value] : named) values.push_back(std::move(value));
        return values;
    });
}

}  // namespace vfmgr
