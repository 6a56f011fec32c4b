// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "api/os/descriptor.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t whole_bytes_max = 32 << 20;  // of a file that is filtered by lines

struct Closed {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

bool has_wildcard(std::string_view part) {
    return part.find_first_of("*?[") != part.npos;
}

// True if the path does not exist, or if a pattern took a file for a folder.
bool is_absent(int error) {
    return error == ENOENT || error == ENOTDIR;
}

// A file that exists and has no value reports one of the other errors.
bool is_silent(int error) {
    return is_absent(error) || error == EINVAL || error == ENODEV || error == EOPNOTSUPP;
}

constexpr int to_read = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

FileDescriptor open_file(std::string const& path) {
    return FileDescriptor(::open(path.c_str(), to_read));
}

// Opens files of one folder in a row: the path to the folder is resolved once.
class FolderOfFiles {
  public:
    FileDescriptor open_file(std::string const& path) {
        auto const name = path.rfind('/') + 1;
        if (!folder_ || path.compare(0, name, at_) != 0) {
            at_ = path.substr(0, name);
            folder_ = FileDescriptor(::open(at_.c_str(), O_PATH | O_CLOEXEC));
        }
        if (!folder_) return {};
        return FileDescriptor(::openat(folder_.get(), path.c_str() + name, to_read));
    }

  private:
    std::string at_;  // with its trailing '/'
    FileDescriptor folder_;
};

Fact bytes_of(FileDescriptor const& file, std::string_view path, std::size_t bytes_max) {
    if (!file) return {{}, errno};
    // sysfs has only regular files, and returns one page, the whole content, in one read; most of
    // what is read is there.
    bool const sysfs = path.starts_with("/sys/");
    struct stat status{};
    if (!sysfs && ::fstat(file.get(), &status) == 0 && !S_ISREG(status.st_mode)) return {};
    Fact fact;
    std::array<char, 1 << 16> room;
    while (fact.bytes.size() < bytes_max) {
        auto const expected = std::min(room.size(), bytes_max - fact.bytes.size());
        auto const got = ::read(file.get(), room.data(), expected);
        if (got < 0) return {{}, errno};
        if (got == 0) break;
        fact.bytes.append(room.data(), static_cast<std::size_t>(got));
        if (sysfs && std::cmp_less(got, expected)) break;
    }
    return fact;
}

Fact bytes_of_file(std::string const& path, std::size_t bytes_max) {
    return bytes_of(open_file(path), path, bytes_max);
}

bool begins_with_one(std::string_view line, std::span<std::string_view const> words) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return std::ranges::any_of(words, [&](auto const word) { return line.starts_with(word); });
}

// Returns the position after the '\n', which a file's last line may lack.
std::size_t after_line(std::string_view text, std::size_t at) {
    return std::min(text.find('\n', at), text.size() - 1) + 1;
}

enum class Dropped { gone, empty };

std::string lines_with(std::string_view text, std::span<std::string_view const> words,
                       std::span<std::string_view const> but_not = {},
                       Dropped dropped = Dropped::gone) {
    // Searches by word, not by line: nearly all of modules.dep's half megabyte has none of them.
    std::set<std::size_t> begins;
    for (auto const word : words) {
        for (std::size_t from = 0; from < text.size();) {
            auto const* const found = static_cast<char const*>(
                ::memmem(text.data() + from, text.size() - from, word.data(), word.size()));
            if (!found) break;
            auto const at = static_cast<std::size_t>(found - text.data());
            begins.insert(text.rfind('\n', at) + 1);  // npos + 1: the first line
            from = after_line(text, at);
        }
    }
    std::string kept;
    std::size_t done = 0;
    for (auto const begin : begins) {
        auto const line = text.substr(begin, after_line(text, begin) - begin);
        if (begins_with_one(line, but_not)) continue;
        if (dropped == Dropped::empty) {
            auto const before = std::ranges::count(text.substr(done, begin - done), '\n');
            kept.append(static_cast<std::size_t>(before), '\n');
        }
        kept += line;
        done = begin + line.size();
    }
    return kept;
}

Fact read_source(FileDescriptor const& file, std::string_view path, FileSource const& expected) {
    if (expected.lines_with.empty()) return bytes_of(file, path, expected.bytes_max);
    auto fact = bytes_of(file, path, whole_bytes_max);
    fact.bytes = lines_with(fact.bytes, expected.lines_with, expected.lines_but_not,
                            expected.keeps_numbers ? Dropped::empty : Dropped::gone);
    if (fact.bytes.size() > expected.bytes_max) fact.bytes.resize(expected.bytes_max);
    return fact;
}

Fact target_of(std::string const& path) {
    std::array<char, PATH_MAX> target;
    auto const size = ::readlink(path.c_str(), target.data(), target.size());
    if (size < 0) return {{}, errno};
    return {std::string(target.data(), static_cast<std::size_t>(size)), 0};
}

// In the order of the file system: an RDMA port has a thousand names, and most callers don't care.
FolderFact names_of(std::string const& path) {
    std::unique_ptr<DIR, Closed> const folder(::opendir(path.c_str()));
    if (!folder) return {{}, errno};
    FolderFact fact;
    while (auto const* const entry = ::readdir(folder.get())) {
        std::string_view const name = entry->d_name;
        if (name != "." && name != "..") fact.names.emplace_back(name);
    }
    return fact;
}

// Returns `other` with its wildcards filled in by what `path` has at the wildcards of `pattern`.
std::string with_same_names(std::string_view path, std::string_view pattern,
                            std::string_view other) {
    auto const parts = words_in(pattern, "/"), at = words_in(path, "/");
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (has_wildcard(parts[i])) names.push_back(at[i]);
    std::string same;
    auto name = names.begin();
    for (auto const part : words_in(other, "/")) {
        same += '/';
        same += has_wildcard(part) && name != names.end() ? *name++ : part;
    }
    return same;
}

}  // namespace

FolderFact const& Files::names_in(std::string const& folder) {
    auto const [at, is_new] = listed_.try_emplace(folder);
    if (is_new) at->second = names_of(root_ + folder);
    return at->second;
}

std::vector<std::string> Files::expand(std::string_view pattern) {
    std::vector<std::string> paths{""};
    for (auto const part : words_in(pattern, "/")) {
        std::vector<std::string> longer;
        for (auto const& path : paths) {
            if (!has_wildcard(part)) {
                longer.push_back(path + "/" + std::string(part));
                continue;
            }
            for (auto const& name : names_in(path.empty() ? "/" : path).names)
                if (matches(part, name)) longer.push_back(fmt::format("{}/{}", path, name));
        }
        paths = std::move(longer);
    }
    return paths;
}

bool Files::exists(std::string_view pattern) {
    return std::ranges::any_of(expand(pattern), [&](std::string const& path) {
        return ::access((root_ + path).c_str(), F_OK) == 0;
    });
}

void Files::read(FileSource const& expected, Facts& into) {
    if (!expected.only_where.empty() && !exists(expected.only_where)) return;
    auto const pattern = with_release(expected.pattern, release_);
    into.patterns.insert(pattern);
    bool const many = has_wildcard(std::string_view(pattern).substr(pattern.rfind('/') + 1));
    FolderOfFiles folder;
    for (auto const& path : expand(pattern)) {
        if (!expected.only_with.empty() &&
            !into.files.contains(with_same_names(path, pattern, expected.only_with)))
            continue;
        auto const whole = root_ + path;
        auto const file = many ? folder.open_file(whole) : open_file(whole);
        auto fact = read_source(file, whole, expected);
        bool const empty = fact.error != 0 && is_silent(fact.error);
        if (!empty && (expected.but_not.empty() || fact.bytes != expected.but_not))
            into.files.insert_or_assign(path, std::move(fact));
    }
}

void Files::read_link(std::string_view expected, Facts& into) {
    auto const pattern = with_release(expected, release_);
    into.patterns.insert(pattern);
    for (auto const& path : expand(pattern))
        if (auto fact = target_of(root_ + path); !is_silent(fact.error))
            into.links.insert_or_assign(path, std::move(fact));
}

void Files::list(std::string_view expected, Facts& into) {
    auto const pattern = with_release(expected, release_);
    into.patterns.insert(pattern);
    for (auto const& path : expand(pattern)) {
        auto fact = names_in(path);
        if (is_absent(fact.error)) continue;
        std::ranges::sort(fact.names);
        into.folders.insert_or_assign(path, std::move(fact));
    }
}

// Each read() returns a record: "6,339,5140900,-;text", and further lines that start with a blank.
void read_kernel_log(std::string const& device, Facts& into) {
    constexpr std::size_t log_bytes_max = 4 << 20;
    into.patterns.insert("/dev/kmsg");
    auto& fact = into.files["/dev/kmsg"];
    FileDescriptor const log(::open(device.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!log) {
        fact.error = errno;
        return;
    }
    std::array<char, 8192> record;  // CONSOLE_EXT_LOG_MAX
    while (fact.bytes.size() < log_bytes_max) {
        auto const got = ::read(log.get(), record.data(), record.size());
        if (got < 0 && errno == EPIPE) continue;  // the next record has been overwritten
        if (got < 0 && errno != EAGAIN && fact.bytes.empty()) fact.error = errno;
        if (got <= 0) break;
        std::string_view const text(record.data(), static_cast<std::size_t>(got));
        fact.bytes.append(text.substr(0, text.find('\n'))).push_back('\n');
    }
}

void read_vfio_holders(Files& files, Facts& into) {
    into.patterns.insert("/proc/[0-9]*/fd/*");
    for (auto const& process : files.expand("/proc/[0-9]*")) {
        auto const folder = process + "/fd";
        auto const open_files = names_of(files.root() + folder);
        bool const gone = open_files.error == ENOENT || open_files.error == ESRCH;
        if (open_files.error != 0 && !gone) {
            into.folders.insert_or_assign(folder, open_files);
            return;  // one process that can't be read may hold anything
        }
        bool holds = false;
        for (auto const& name : open_files.names) {
            auto const link = fmt::format("{}/{}", folder, name);
            auto fact = target_of(files.root() + link);
            if (!fact.bytes.starts_with("/dev/vfio/")) continue;
            into.links.insert_or_assign(link, std::move(fact));
            holds = true;
        }
        if (!holds) continue;
        auto arguments = bytes_of_file(files.root() + process + "/cmdline", 1 << 20);
        std::ranges::replace(arguments.bytes, '\0', '\n');
        static constexpr std::array<std::string_view, 1> name_of_vm{"guest="};
        arguments.bytes = lines_with(arguments.bytes, name_of_vm);
        into.files.insert_or_assign(process + "/cmdline", std::move(arguments));
        into.files.insert_or_assign(process + "/comm",
                                    bytes_of_file(files.root() + process + "/comm", 64));
    }
}

void read_configuration_spaces(Files& files, Facts& into) {
    constexpr std::size_t space_bytes = 4096;
    into.patterns.insert("/sys/bus/pci/devices/*/config");
    for (auto const& device : files.expand("/sys/bus/pci/devices/*")) {
        auto const pci_class = into.text(device + "/class");
        if (!pci_class || !keeps_configuration_of(*pci_class)) continue;
        auto fact = bytes_of_file(files.root() + device + "/config", space_bytes);
        if (fact.error == 0) into.files.insert_or_assign(device + "/config", std::move(fact));
    }
}

}  // namespace vfmgr::checks
