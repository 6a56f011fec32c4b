// SPDX-License-Identifier: Apache-2.0
// Reads files, links and folders by pattern, beneath a root, into facts. Owned by the collection;
// its thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfmgr/checks/facts.hpp"
#include "vfmgr/checks/wanted.hpp"

namespace vfmgr::checks {

class Files {
  public:
    Files(std::string root, std::string release) : root_(root), release_(release) {}

    void read(WantedFile const& wanted, Facts& into);
    void read_link(std::string_view pattern, Facts& into);
    void list(std::string_view pattern, Facts& into);
    [[nodiscard]] bool exists(std::string_view pattern);
    // Paths as on that machine, without the root.
    [[nodiscard]] std::vector<std::string> expand(std::string_view pattern);
    [[nodiscard]] std::string const& root() const { return root_; }

  private:
    [[nodiscard]] FolderFact const& names_in(std::string const& folder);

    std::string root_;
    std::string release_;
    std::map<std::string, FolderFact> listed_;  // a folder is listed once for many patterns
};

// What only the machine itself tells, each in its own way.
void read_kernel_log(std::string const& device, Facts& into);
// Who holds VFIO devices: links of /proc/*/fd, and of those processes what QEMU calls its VM.
void read_vfio_holders(Files& files, Facts& into);
void read_configuration_spaces(Files& files, Facts& into);

}  // namespace vfmgr::checks
