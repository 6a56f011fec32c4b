// SPDX-License-Identifier: Apache-2.0
#include "api/os/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "api/os/descriptor.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

Error not_replaced(fs::path const& file, char const* call) {
    return {Problem::kernel_refused,
            fmt::format("{} can't be written", file.string()),
            {},
            {errno_cause(call, errno)}};
}

Result<void> write_all(FileDescriptor const& out, std::string_view text, fs::path const& file) {
    while (!text.empty()) {
        auto const written = ::write(out.get(), text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(not_replaced(file, "write"));
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

Result<void> fill(FileDescriptor const& out, std::string_view text, mode_t mode,
                  fs::path const& file) {
    VFMGR_CHECK(write_all(out, text, file));
    if (::fchmod(out.get(), mode) != 0) return fail(not_replaced(file, "fchmod"));
    if (::fsync(out.get()) != 0) return fail(not_replaced(file, "fsync"));
    return {};
}

// A rename would replace /dev/stdout with a file.
Result<void> check_place(fs::path const& file) {
    std::error_code ignored;
    auto const status = fs::symlink_status(file, ignored);
    if (!fs::exists(status) || fs::is_regular_file(status)) return {};
    return fail({Problem::kernel_refused,
                 fmt::format("{} is not a plain file", file.string()),
                 {},
                 {{"lstat", "", fs::is_directory(status) ? "a folder" : "a link or a device"}}});
}

// Makes the file's entry in its folder survive a power loss, too. If the file system can't sync a
// folder, the file is still there.
void sync_folder(fs::path const& file) {
    auto const path = file.has_parent_path() ? file.parent_path() : fs::path(".");
    FileDescriptor const folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) ::fsync(folder.get());
}

}  // namespace

std::optional<std::string> read_file(fs::path const& file) {
    FileDescriptor const in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in) return std::nullopt;
    std::string text;
    std::array<char, 1 << 14> room;
    while (true) {
        auto const got = ::read(in.get(), room.data(), room.size());
        if (got == 0) return text;
        if (got < 0 && errno != EINTR) return std::nullopt;
        if (got > 0) text.append(room.data(), static_cast<std::size_t>(got));
    }
}

std::vector<fs::path> paths_in(fs::path const& folder, std::error_code& failed) {
    std::vector<fs::path> found;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
        found.push_back(it->path());
    std::ranges::sort(found);
    return found;
}

std::vector<fs::path> paths_in(fs::path const& folder) {
    std::error_code ignored;
    return paths_in(folder, ignored);
}

// The draft's name is unique, and services that read whole folders ignore files with its suffix.
Result<void> replace_file(fs::path const& file, std::string_view text, mode_t mode) {
    VFMGR_CHECK(check_place(file));
    auto draft = (file.parent_path() / ("." + file.filename().string() + ".XXXXXX")).string();
    FileDescriptor const out(::mkostemp(draft.data(), O_CLOEXEC));
    if (!out) return fail(not_replaced(file, "open"));
    auto done = fill(out, text, mode, file);
    if (done && std::rename(draft.c_str(), file.c_str()) != 0)
        done = fail(not_replaced(file, "rename"));
    if (!done) {
        ::unlink(draft.c_str());
        return done;
    }
    sync_folder(file);
    return {};
}

}  // namespace vfmgr
