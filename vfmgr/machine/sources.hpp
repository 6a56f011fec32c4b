// SPDX-License-Identifier: Apache-2.0
// Everything that the checks read: this much and no more is in a bundle. Data; any thread.
// All patterns are alike: "*", "?" and "[…]" within one part of a path. Everything is only read: no
// program is run that changes anything, and none that would start a daemon.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"

namespace vfmgr::checks {

struct FileSource {
    std::string_view pattern;
    std::size_t bytes_max = 4096;  // of each; the rest is cut
    // Keeps only lines that contain one of these, if the whole is long or private; empty: all.
    std::span<std::string_view const> lines_with{};
    std::string_view but_not{};     // drops this content, which means nothing
    std::string_view only_where{};  // only if this path exists
    // Drops those lines that start with one of these, blanks aside: they may hold secrets.
    std::span<std::string_view const> lines_but_not{};
    // Only if the file of this pattern for the same names was read and kept.
    std::string_view only_with{};
    // Dropped lines become empty ones: reports about the file name its own lines.
    bool keeps_numbers = false;
};
extern std::span<FileSource const> const file_sources;
// Files beside those that show which other programs make VFs.
extern std::span<FileSource const> const owner_sources;
// Links whose target is a fact.
extern std::span<std::string_view const> const link_sources;
// Folders whose names are facts.
extern std::span<std::string_view const> const folder_sources;

struct CommandSource {
    std::string_view line;          // its words have no blanks; the first is looked up in PATH
    std::string_view only_where{};  // only if this path exists; "*" as above
    std::string_view and_where{};   // and only if this one does
};
extern std::span<CommandSource const> const command_sources;
// Which links vfmgrd makes again at boot: they are in its store, which is private to it.
inline constexpr std::string_view own_links_query = "vfctl -q -o csv --no-headers rdma link list";
// Reads the log from the journal where /dev/kmsg is forbidden, as it is to the daemon's unit.
inline constexpr CommandSource journal_source{"journalctl -k -b -q --no-pager -o short-monotonic",
                                              "/run/systemd/journal"};
// systemd's units whose state is a fact, queried by unit_question(), where systemd has them.
extern std::span<std::string_view const> const unit_sources;
extern std::span<std::string_view const> const unit_folders;
[[nodiscard]] std::string unit_question(std::vector<std::string_view> const& names);

// Classes of PCI devices whose configuration space is a fact: NICs, GPUs and what is above them.
[[nodiscard]] bool keeps_configuration_of(std::string_view pci_class);

// Replaces "%r" in patterns by the running kernel's release.
[[nodiscard]] std::string with_release(std::string_view text, std::string_view release);

}  // namespace vfmgr::checks
