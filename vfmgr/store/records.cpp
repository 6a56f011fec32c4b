// SPDX-License-Identifier: Apache-2.0
// The rows apart from operations: tokens, audit, idempotency keys, the host's seed, pruning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <tuple>

#include "api/os/random.hpp"
#include "vfmgr/store/rows.hpp"

namespace vfmgr {

namespace {

using std::chrono::hours;

constexpr hours idempotency_hours_max{24};
constexpr hours record_hours_max{24 * 30};
constexpr hours run_time_hours_max{24};

std::optional<Time> time_in(SQLite::Statement& row, char const* column) {
    auto const value = row.getColumn(column);
    return value.isNull() ? std::nullopt : std::optional(time_of(value.getInt64()));
}

std::optional<std::int64_t> milliseconds_in(std::optional<Time> const& time) {
    return time ? std::optional(milliseconds_of(*time)) : std::nullopt;
}

// "attachments operations": nouns have no blanks.
std::vector<std::string> words_of(std::string const& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

std::optional<std::string> text_in(SQLite::Column const& column) {
    return column.isNull() ? std::nullopt : std::optional(column.getString());
}

Token token_in(SQLite::Statement& row) {
    Token token;
    token.id = row.getColumn("id").getString();
    token.sha256 = row.getColumn("sha256").getString();
    token.role = row.getColumn("role").getString();
    token.description = row.getColumn("description").getString();
    token.created_at = time_of(row.getColumn("created_ms").getInt64());
    token.expires_at = time_in(row, "expires_ms");
    token.rotated_at = time_in(row, "rotated_ms");
    if (auto const scopes = row.getColumn("scopes"); !scopes.isNull())
        token.scopes = words_of(scopes.getString());
    if (auto const until = time_in(row, "former_until_ms"))
        token.former = {row.getColumn("former_sha256").getString(), *until};
    if (auto const used = time_in(row, "used_ms"))
        token.last_use = {*used, row.getColumn("used_from").getString()};
    token.tenant = text_in(row.getColumn("tenant"));
    return token;
}

Result<AuditEntry> audit_entry_in(SQLite::Statement& row) {
    return AuditEntry{.at = time_of(row.getColumn("at_ms").getInt64()),
                      .who = row.getColumn("who").getString(),
                      .request_id = row.getColumn("request_id").getString(),
                      .action = row.getColumn("action").getString(),
                      .subject = row.getColumn("subject").getString(),
                      .outcome = row.getColumn("outcome").getString(),
                      .refused = row.getColumn("refused").getInt() != 0,
                      .requests = static_cast<std::uint64_t>(row.getColumn("requests").getInt64()),
                      .from = row.getColumn("peer").getString(),
                      .plan_digest = text_in(row.getColumn("plan_digest")),
                      .operation = text_in(row.getColumn("operation"))};
}

constexpr std::size_t who_bytes_max = 264;       // "cert:" and the longest name
constexpr std::int64_t audit_rows_max = 30'000;  // of refused requests, and of the others

// Marks the cut; never cuts inside a character.
std::string cut(std::string const& text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return text;
    auto end = bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    return text.substr(0, end) + "…";
}

void append(SQLite::Database& db, AuditEntry const& entry) {
    execute(
        db,
        "INSERT INTO audit (at_ms, who, request_id, action, subject, outcome, refused, requests, "
        "peer, plan_digest, operation) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        milliseconds_of(entry.at), cut(entry.who, who_bytes_max), cut(entry.request_id, 64),
        cut(entry.action, 256), cut(entry.subject, 256), cut(entry.outcome, 32),
        entry.refused ? 1 : 0, static_cast<std::int64_t>(entry.requests), cut(entry.from, 128),
        entry.plan_digest, entry.operation);
}

}  // namespace

Result<void> Store::save_token(Token const& token, std::vector<Event> const& events) {
    return impl_->in_transaction(Room::ordinary, [&](SQLite::Database& db) -> Result<void> {
        std::optional<std::string> scopes;
        if (token.scopes) scopes = fmt::format("{}", fmt::join(*token.scopes, " "));
        std::optional<std::string> former;
        std::optional<Time> former_until;
        if (token.former)
            std::tie(former, former_until) = std::tie(token.former->sha256, token.former->until);
        execute(db,
                "INSERT INTO tokens (id, sha256, role, description, created_ms, expires_ms, "
                "scopes, rotated_ms, former_sha256, former_until_ms, tenant) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "sha256 = excluded.sha256, role = excluded.role, "
                "description = excluded.description, created_ms = excluded.created_ms, "
                "expires_ms = excluded.expires_ms, scopes = excluded.scopes, "
                "rotated_ms = excluded.rotated_ms, former_sha256 = excluded.former_sha256, "
                "former_until_ms = excluded.former_until_ms, tenant = excluded.tenant",
                token.id, token.sha256, token.role, token.description,
                milliseconds_of(token.created_at), milliseconds_in(token.expires_at), scopes,
                milliseconds_in(token.rotated_at), former, milliseconds_in(former_until),
                token.tenant);
        save_events(db, events);
        return {};
    });
}

Result<void> Store::save_token_uses(std::map<std::string, TokenUse> const& uses) {
    return impl_->in_transaction(Room::ordinary, [&](SQLite::Database& db) -> Result<void> {
        for (auto const& [id, use] : uses)
            execute(db, "UPDATE tokens SET used_ms = ?, used_from = ? WHERE id = ?",
                    milliseconds_of(use.at), use.from, id);
        return {};
    });
}

Result<std::vector<Token>> Store::tokens() {
    return impl_->guarded(Access::read, [](SQLite::Database& db) -> Result<std::vector<Token>> {
        SQLite::Statement rows(db, "SELECT * FROM tokens ORDER BY created_ms, id");
        std::vector<Token> tokens;
        while (rows.executeStep()) tokens.push_back(token_in(rows));
        return tokens;
    });
}

Result<bool> Store::erase_token(std::string const& id, std::vector<Event> const& events) {
    return impl_->in_transaction(Room::reserve, [&](SQLite::Database& db) -> Result<bool> {
        bool const erased = execute(db, "DELETE FROM tokens WHERE id = ?", id) > 0;
        if (erased) save_events(db, events);
        return erased;
    });
}

Result<void> Store::append_audits(std::vector<AuditEntry> const& entries) {
    return impl_->in_transaction(Room::ordinary, [&](SQLite::Database& db) -> Result<void> {
        // Deletes first, so an audit at its limit needs no more room.
        for (int const refused : {0, 1}) {
            auto const of_them = std::ranges::count(entries, refused == 1, &AuditEntry::refused);
            if (of_them == 0) continue;
            execute(db,
                    "DELETE FROM audit WHERE refused = ?1 AND number <= (SELECT number FROM audit "
                    "WHERE refused = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                    refused, std::max<std::int64_t>(0, audit_rows_max - of_them));
        }
        for (auto const& entry : entries) append(db, entry);
        return {};
    });
}

Result<Rows<AuditEntry>> Store::audit(AuditFilter const& filter, RowRange const& range) {
    List list{"audit", "", "audit.*", {}};
    list.only("who", filter.who);
    list.only("outcome", filter.outcome);
    return rows_of<AuditEntry>(*impl_, list, range, audit_entry_in);
}

Result<void> Store::save_run_time(RunTime const& time) {
    return impl_->in_transaction(Room::ordinary, [&](SQLite::Database& db) -> Result<void> {
        execute(db, "DELETE FROM run_times WHERE ended_ms < ?",
                milliseconds_of(time.ended - run_time_hours_max));
        execute(db, "INSERT OR REPLACE INTO run_times VALUES (?, ?, ?, ?)", time.run, time.vm,
                milliseconds_of(time.began), milliseconds_of(time.ended));
        return {};
    });
}

Result<std::chrono::milliseconds> Store::run_time(std::vector<std::string> const& vms, Time since) {
    using Took = std::chrono::milliseconds;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Took> {
        SQLite::Statement row(
            db,
            "SELECT coalesce(sum(ended_ms - max(began_ms, ?1)), 0) FROM run_times "
            "WHERE ended_ms > ?1 AND vm IN (SELECT value FROM json_each(?2))");
        SQLite::bind(row, milliseconds_of(since), json_array(vms));
        return Took(row.executeStep() ? row.getColumn(0).getInt64() : 0);
    });
}

Result<std::optional<IdempotencyRecord>> Store::idempotency(std::string const& key, Time now) {
    using Found = std::optional<IdempotencyRecord>;
    return impl_->guarded(Access::read, [&](SQLite::Database& db) -> Result<Found> {
        SQLite::Statement rows(db,
                               "SELECT key, request_hash, operation, created_ms FROM idempotency "
                               "WHERE key = ? AND created_ms >= ?");
        SQLite::bind(rows, key, milliseconds_of(now - idempotency_hours_max));
        if (!rows.executeStep()) return std::nullopt;
        return IdempotencyRecord{rows.getColumn(0), rows.getColumn(1), rows.getColumn(2),
                                 time_of(rows.getColumn(3).getInt64())};
    });
}

Result<void> Store::prune(Time now) {
    return impl_->in_transaction(Room::reserve, [&](SQLite::Database& db) -> Result<void> {
        auto const oldest = milliseconds_of(now - record_hours_max);
        for (auto const* sql :
             {"DELETE FROM operations WHERE finished = 1 AND created_ms < ?",
              "DELETE FROM verifications WHERE started_ms < ? AND "
              "attachment NOT IN (SELECT id FROM attachments)",
              "DELETE FROM audit WHERE at_ms < ?", "DELETE FROM idempotency WHERE created_ms < ?"})
            execute(db, sql, oldest);
        return {};
    });
}

Result<std::uint64_t> Store::last_revision() {
    return impl_->guarded(Access::read, [](SQLite::Database& db) -> Result<std::uint64_t> {
        SQLite::Statement row(db,
                              "SELECT CAST(value AS INTEGER) FROM host WHERE name = 'revision'");
        return row.executeStep() ? static_cast<std::uint64_t>(row.getColumn(0).getInt64()) : 0;
    });
}

Result<std::string> Store::id() {
    return impl_->guarded(Access::read, [](SQLite::Database& db) -> Result<std::string> {
        return db.execAndGet("SELECT value FROM host WHERE name = 'store'").getString();
    });
}

Result<std::string> Store::host_seed() {
    auto const stored = [](SQLite::Database& db) -> Result<std::string> {
        SQLite::Statement row(db, "SELECT value FROM host WHERE name = 'seed'");
        return row.executeStep() ? row.getColumn(0).getString() : std::string();
    };
    VFMGR_TRY(auto seed, impl_->guarded(Access::read, stored));
    if (!seed.empty()) return seed;
    auto fresh = random_hex(16);
    return impl_->in_transaction(Room::reserve, [&](SQLite::Database& db) -> Result<std::string> {
        execute(db, "INSERT INTO host VALUES ('seed', ?)", fresh);
        return fresh;
    });
}

}  // namespace vfmgr
