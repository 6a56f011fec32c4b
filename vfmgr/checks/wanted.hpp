// SPDX-License-Identifier: Apache-2.0
// Everything that is read for the checks: so much and no more is in a bundle. Data; any thread.
// Patterns are of one kind: "*", "?" and "[…]" within one part of a path. All is read, nothing is
// written, no program is run that changes anything, and none that would start a daemon.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"

namespace vfmgr::checks {

struct WantedFile {
    std::string_view pattern;
    std::size_t bytes_max = 4096;  // of each; what is longer is cut
    // Only lines that contain one of these, where the whole is long or private; all when empty.
    std::span<std::string_view const> lines_with{};
    std::string_view but_not{};     // such a content, which says nothing
    std::string_view only_where{};  // this path exists
    // Of those not lines that begin with one of these, blanks aside: they may hold secrets.
    std::span<std::string_view const> lines_but_not{};
    // The file of this pattern for the same names has been read, and was kept.
    std::string_view only_with{};
    // Lines that are not kept are empty ones: what is told of the file names its own lines.
    bool keeps_numbers = false;
};
[[nodiscard]] std::span<WantedFile const> wanted_files();
// Links whose target is a fact.
[[nodiscard]] std::span<std::string_view const> wanted_links();
// Folders whose names are facts.
[[nodiscard]] std::span<std::string_view const> wanted_folders();

struct WantedCommand {
    std::vector<std::string_view> words;  // the first is the program, looked for in PATH
    std::string_view only_where{};        // this path exists; "*" as above
    std::string_view and_where{};         // and this one
};
[[nodiscard]] std::span<WantedCommand const> wanted_commands();
// systemd's units whose state is a fact, asked for by the words, where systemd has them.
[[nodiscard]] std::span<std::string_view const> wanted_units();
[[nodiscard]] std::span<std::string_view const> unit_folders();
[[nodiscard]] std::vector<std::string> unit_question(std::vector<std::string> const& names);
// The kernel's log from the journal, for who may not read /dev/kmsg: the daemon's unit may not.
[[nodiscard]] WantedCommand const& wanted_journal();

// PCI devices by class whose configuration space is a fact: NICs, GPUs and what is above them.
[[nodiscard]] bool wants_configuration(std::string_view pci_class);

// "%r" in patterns is the running kernel's release.
[[nodiscard]] std::string with_release(std::string_view text, std::string_view release);

}  // namespace vfmgr::checks
