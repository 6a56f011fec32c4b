// SPDX-License-Identifier: Apache-2.0
// The files of the web console, as the package vfmgr-web installs them. Read on request and kept
// until they change, so that an upgrade of the package needs no restart of the daemon. A
// ConsoleFolder belongs to the thread that reads; what it returns is a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "api/http/http.hpp"
#include "service/on_demand.hpp"

namespace vfmgr {

inline constexpr std::size_t console_entries_max = 64;
inline constexpr std::size_t console_file_bytes_max = 4 * 1024 * 1024;

struct ConsoleFile {
    http::Frame text;
    http::Frame compressed{};  // null: not worth it
    std::string content_type;
    std::string etag;
    bool stays = false;  // its name has a hash of its content
};

struct Console {
    std::string folder;
    std::map<std::string, ConsoleFile, std::less<>> files;  // by name
    bool crowded = false;  // more than console_entries_max entries: none is served
};

class ConsoleFolder {
  public:
    explicit ConsoleFolder(std::string folder) : folder_(std::move(folder)) {}
    // Only plain files of the folder itself whose kind is known: no link, no folder, no file that
    // begins with a dot. None at all if it has more than console_entries_max entries; a file above
    // console_file_bytes_max is left out.
    [[nodiscard]] Console read();

  private:
    // Name, device, inode, size, and time of the last change in nanoseconds.
    using Entry = std::tuple<std::string, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;

    // Absent: there are too many.
    [[nodiscard]] std::optional<std::vector<Entry>> entries() const;

    std::string folder_;
    std::vector<Entry> entries_;
    Console console_{folder_, {}, false};
};

using ConsoleQuery = OnDemand<Console>;

// "app-5XWJ6KHB.js", "app-0f1e2d3c4b5a.css": such a file never changes.
[[nodiscard]] bool name_has_hash(std::string_view name);

}  // namespace vfmgr
