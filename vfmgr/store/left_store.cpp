// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/store/left_store.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "api/os/file.hpp"
#include "api/types/json.hpp"
#include "vfmgr/store/database.hpp"

namespace vfmgr {
namespace {

constexpr int busy_milliseconds_max = 1000;

tl::unexpected<Error> mark_error(std::string const& file, char const* what,
                                 std::vector<Cause> causes) {
    return fail(
        {Problem::unavailable,
         fmt::format("the mark {}, which shows that vfmgrd has run, can't be {}", file, what),
         "check that its folder exists and belongs to root", std::move(causes)});
}

}  // namespace

// Replaces the file: a reader gets all of it or nothing.
Result<void> leave_start_mark(std::string const& file, std::string const& store) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), failed);
    if (failed) return mark_error(file, "written", {errno_cause("mkdir", failed.value())});
    auto const text = std::filesystem::absolute(store).string() + "\n";
    auto done = replace_file(file, text, 0644);
    return done ? done : mark_error(file, "written", std::move(done.error().causes));
}

Result<std::optional<std::string>> read_start_mark(std::string const& file) {
    auto text = read_file(file);
    if (!text && errno == ENOENT) return std::nullopt;
    if (!text) return mark_error(file, "read", {errno_cause("read", errno)});
    if (text->size() < 2 || text->front() != '/' || text->find('\n') != text->size() - 1)
        return mark_error(file, "parsed", {errno_cause("read", EINVAL)});
    text->pop_back();
    return text;
}

Result<std::vector<Attachment>> read_attachments(std::string const& path) {
    Store::Impl store{path, SQLite::Database(":memory:")};
    return store.guarded(
        Access::read, [&](SQLite::Database& db) -> Result<std::vector<Attachment>> {
            db = SQLite::Database(path, SQLite::OPEN_READONLY, busy_milliseconds_max);
            if (auto ours = check_form(store); !ours) return fail(ours.error());
            VFMGR_TRY(auto named,
                      store.named_values<Attachment>(
                          db, "attachment", "SELECT id, document FROM attachments ORDER BY id"));
            std::vector<Attachment> attachments;
            for (auto& [id, attachment] : named) attachments.push_back(std::move(attachment));
            return attachments;
        });
}

}  // namespace vfmgr
