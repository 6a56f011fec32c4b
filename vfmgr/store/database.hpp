// SPDX-License-Identifier: Apache-2.0
// The SQLite file behind Store, for store/*.cpp only. SQLiteCpp throws; guarded() is where that
// ends. Owned by Store; control thread only.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "vfmgr/store/store.hpp"

namespace vfmgr {

enum class Access { read, write };

struct Store::Impl {
    std::string path;
    SQLite::Database database;

    // Runs `work(database)`, which returns a Result; what SQLite throws becomes unavailable.
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
    // The same in one durable transaction: an error of `work` rolls all of it back.
    template <class Work>
    auto in_transaction(Work work) -> std::invoke_result_t<Work, SQLite::Database&> {
        return guarded(Access::write, [&](SQLite::Database& db) {
            SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
            auto result = work(db);
            if (result) transaction.commit();
            return result;
        });
    }

    [[nodiscard]] Error sqlite_error(Access access, SQLite::Exception const& refused) const;
    [[nodiscard]] Error other_error(Access access, std::string_view why) const;
    // A row that this version can't read: `what` names it.
    [[nodiscard]] Error unreadable(std::string_view what, Error const& why) const;
};

// Milliseconds since 1970: what the columns that are compared hold.
[[nodiscard]] inline std::int64_t milliseconds_of(Time time) {
    return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
[[nodiscard]] inline Time time_of(std::int64_t milliseconds) {
    return Time(std::chrono::milliseconds(milliseconds));
}

// Refuses another program's database and a newer vfmgrd's, before anything of it is changed.
[[nodiscard]] Result<void> check_form(Store::Impl& store);
// Brings the tables to this version's form, in one transaction for each version.
[[nodiscard]] Result<void> migrate(Store::Impl& store);

}  // namespace vfmgr
