// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/store/left_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

#include "api/os/descriptor.hpp"
#include "api/types/json.hpp"
#include "vfmgr/store/database.hpp"

namespace vfmgr {
namespace {

constexpr int busy_milliseconds_max = 1000;

tl::unexpected<Error> mark_error(std::string const& file, char const* what, char const* call,
                                 int error) {
    Error out{Problem::unavailable,
              fmt::format("the mark {}, which shows that vfmgrd has run, can't be {}", file, what),
              "check that its folder exists and belongs to root"};
    out.causes.push_back(errno_cause(call, error));
    return fail(std::move(out));
}

}  // namespace

// Renames the file into place: a reader gets all of it or nothing.
Result<void> leave_start_mark(std::string const& file, std::string const& store) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), failed);
    if (failed) return mark_error(file, "written", "mkdir", failed.value());
    auto const text = std::filesystem::absolute(store).string() + "\n";
    auto const fresh = file + ".new";
    FileDescriptor const out(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!out) return mark_error(file, "written", "open", errno);
    errno = EIO;  // for a short write
    if (::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return mark_error(file, "written", "write", errno);
    if (::rename(fresh.c_str(), file.c_str()) != 0)
        return mark_error(file, "written", "rename", errno);
    return {};
}

Result<std::optional<std::string>> read_start_mark(std::string const& file) {
    FileDescriptor const in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in && errno == ENOENT) return std::nullopt;
    if (!in) return mark_error(file, "read", "open", errno);
    std::string text(4096, '\0');
    auto const got = ::read(in.get(), text.data(), text.size());
    if (got < 0) return mark_error(file, "read", "read", errno);
    text.resize(static_cast<std::size_t>(got));
    if (text.size() < 2 || text.front() != '/' || text.find('\n') != text.size() - 1)
        return mark_error(file, "parsed", "read", EINVAL);
    text.pop_back();
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
