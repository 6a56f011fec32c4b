// SPDX-License-Identifier: Apache-2.0
// Reads a part of a list that is newest first, for store/*.cpp only. A part begins at a place in
// the list's order, which an index has, and never at a count of rows: it costs the same wherever it
// is. Control thread only.
#pragma once

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

#include "vfmgr/store/database.hpp"

namespace vfmgr {

// For "IN (SELECT value FROM json_each(?))": one parameter, however many values there are.
[[nodiscard]] std::string json_array(std::vector<std::string> const& values);

// One term of a WHERE, and the values of its question marks.
struct Condition {
    std::string sql;
    std::vector<std::variant<std::int64_t, std::string>> values;
};

struct List {
    std::string table;
    std::string time;     // the column that it is sorted by; empty: by number alone
    std::string columns;  // what `read` needs
    std::vector<Condition> conditions;

    // Adds "column = value"; nothing for an empty value.
    void only(char const* column, std::string value) {
        if (!value.empty())
            conditions.push_back({fmt::format("{} = ?", column), {std::move(value)}});
    }
};

namespace rows {

[[nodiscard]] inline std::string select(List const& list, RowRange const& range) {
    bool const timed = !list.time.empty();
    auto sql = fmt::format("SELECT {} AS place_ms, number AS place_number, {} FROM {} WHERE ",
                           timed ? list.time : "0", list.columns, list.table);
    for (auto const& condition : list.conditions) sql += condition.sql + " AND ";
    if (range.after)
        sql += timed ? fmt::format("({}, number) < (?, ?)", list.time) : "number < ?";
    else
        sql += "true";
    return sql + fmt::format(" ORDER BY {}number DESC LIMIT ?",
                             timed ? list.time + " DESC, " : std::string());
}

inline void bind(SQLite::Statement& statement, List const& list, RowRange const& range) {
    int at = 0;
    for (auto const& condition : list.conditions)
        for (auto const& value : condition.values)
            std::visit([&](auto const& one) { statement.bind(++at, one); }, value);
    if (range.after && !list.time.empty()) statement.bind(++at, range.after->at_ms);
    if (range.after) statement.bind(++at, range.after->number);
    statement.bind(++at, sql_limit(range.limit) + 1);  // one more shows whether the list goes on
}

}  // namespace rows

// `read(row)` returns a Result with the row's item.
template <class T, class Read>
[[nodiscard]] Result<Rows<T>> rows_of(Store::Impl& store, List const& list, RowRange const& range,
                                      Read read) {
    return store.guarded(Access::read, [&](SQLite::Database& db) -> Result<Rows<T>> {
        SQLite::Statement row(db, rows::select(list, range));
        rows::bind(row, list, range);
        Rows<T> part;
        RowPlace place;
        while (row.executeStep()) {
            if (part.items.size() == range.limit) {
                part.next = place;
                break;
            }
            place = {row.getColumn("place_ms").getInt64(),
                     row.getColumn("place_number").getInt64()};
            VFMGR_TRY(T item, read(row));
            part.items.push_back(std::move(item));
        }
        return part;
    });
}

// Reads the items from the columns "name" and "document". `kind` is what an error calls a row.
template <class T>
[[nodiscard]] Result<Rows<T>> documents_of(Store::Impl& store, List const& list,
                                           RowRange const& range, std::string const& kind) {
    return rows_of<T>(store, list, range, [&](SQLite::Statement& row) {
        return value_of<T>(store, row.getColumn("document"),
                           kind + " " + row.getColumn("name").getString());
    });
}

}  // namespace vfmgr
