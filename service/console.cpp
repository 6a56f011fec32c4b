// SPDX-License-Identifier: Apache-2.0
#include "service/console.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "api/http/gzip.hpp"
#include "api/os/descriptor.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t gzip_from_bytes = 1024;
constexpr std::size_t digest_digits = 16;

struct FileKind {
    std::string_view extension;
    std::string_view content_type;
    bool compresses;
};
constexpr std::array file_kinds{FileKind{".html", "text/html; charset=utf-8", true},
                                FileKind{".js", "text/javascript; charset=utf-8", true},
                                FileKind{".css", "text/css; charset=utf-8", true},
                                FileKind{".svg", "image/svg+xml", true},
                                FileKind{".txt", "text/plain; charset=utf-8", true},
                                FileKind{".png", "image/png", false},
                                FileKind{".ico", "image/x-icon", false}};

FileKind const* kind_of(fs::path const& name) {
    auto const* const found =
        std::ranges::find(file_kinds, name.extension().string(), &FileKind::extension);
    return found == file_kinds.end() ? nullptr : found;
}

bool is_all(std::string_view text, std::string_view of) {
    return text.find_first_not_of(of) == text.npos;
}

// A link is not followed: what it leads to may be anything that the daemon can read.
std::optional<std::string> read_plain_file(fs::path const& file) {
    FileDescriptor const in(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found{};
    if (!in || ::fstat(in.get(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
    std::string text(console_file_bytes_max + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        auto const got = ::read(in.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    if (size > console_file_bytes_max) return std::nullopt;
    return text.substr(0, size);
}

std::optional<ConsoleFile> console_file(fs::path const& file) {
    auto const* const kind = kind_of(file.filename());
    if (!kind) return std::nullopt;
    auto text = read_plain_file(file);
    if (!text) return std::nullopt;
    ConsoleFile made;
    made.content_type = kind->content_type;
    made.etag = fmt::format("\"{}\"", verify::digest_hex(*text).substr(0, digest_digits));
    made.stays = name_has_hash(file.filename().string());
    if (kind->compresses && text->size() >= gzip_from_bytes)
        made.compressed = std::make_shared<std::string const>(http::gzip(*text));
    made.text = std::make_shared<std::string const>(std::move(*text));
    return made;
}

}  // namespace

bool name_has_hash(std::string_view name) {
    constexpr std::size_t hash_characters_min = 8;
    auto const stem = name.substr(0, name.find('.'));
    auto const dash = stem.rfind('-');
    if (dash == stem.npos) return false;
    auto const hash = stem.substr(dash + 1);
    return hash.size() >= hash_characters_min &&
           (is_all(hash, "0123456789abcdef") ||
            is_all(hash, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
}

std::optional<std::vector<ConsoleFolder::Entry>> ConsoleFolder::entries() const {
    std::vector<Entry> found;
    std::error_code failed;
    std::size_t all = 0;
    for (fs::directory_iterator it(folder_, failed), end; !failed && it != end;
         it.increment(failed)) {
        if (++all > console_entries_max) return std::nullopt;
        auto const name = it->path().filename().string();
        struct stat facts{};
        if (name.starts_with('.') || ::lstat(it->path().c_str(), &facts) != 0) continue;
        if (!S_ISREG(facts.st_mode)) continue;
        found.emplace_back(name, facts.st_dev, facts.st_ino, facts.st_size,
                           facts.st_ctim.tv_sec * 1'000'000'000 + facts.st_ctim.tv_nsec);
    }
    std::ranges::sort(found);
    return found;
}

Console ConsoleFolder::read() {
    auto const found = entries();
    console_.crowded = !found;
    auto now = found.value_or(std::vector<Entry>());
    if (now == entries_) return console_;
    console_.files.clear();
    for (auto const& entry : now) {
        auto const& name = std::get<0>(entry);
        if (auto file = console_file(fs::path(folder_) / name))
            console_.files.emplace(name, std::move(*file));
    }
    entries_ = std::move(now);
    return console_;
}

}  // namespace vfmgr
