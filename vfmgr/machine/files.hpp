// SPDX-License-Identifier: Apache-2.0
// Reads files, links and folders by pattern, below a root, into facts. Owned by the collection;
// runs in its thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfmgr/machine/facts.hpp"
#include "vfmgr/machine/sources.hpp"

namespace vfmgr::checks {

class Files {
  public:
    Files(std::string root, std::string release) : root_(root), release_(release) {}

    void read(FileSource const& expected, Facts& into);
    void read_link(std::string_view pattern, Facts& into);
    void list(std::string_view pattern, Facts& into);
    [[nodiscard]] bool exists(std::string_view pattern);
    // Returns paths as on that machine, without the root.
    [[nodiscard]] std::vector<std::string> expand(std::string_view pattern);
    [[nodiscard]] std::string const& root() const { return root_; }

  private:
    [[nodiscard]] FolderFact const& names_in(std::string const& folder);

    std::string root_;
    std::string release_;
    std::map<std::string, FolderFact> listed_;  // a folder is listed once for many patterns
};

// Read what only the machine itself has, each in its own way.
void read_kernel_log(std::string const& device, Facts& into);
// Reads which processes hold VFIO devices: links of /proc/*/fd, and QEMU's name of their VM.
void read_vfio_holders(Files& files, Facts& into);
void read_configuration_spaces(Files& files, Facts& into);

}  // namespace vfmgr::checks
