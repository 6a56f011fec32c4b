// SPDX-License-Identifier: Apache-2.0
// Keeps a VF's set-up over a reboot of the VM, with the service that configures its networks:
// files in /etc, and a word to the service. One process at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/types/guest.hpp"

namespace vfmgr::guest {

struct KeptRoots {
    std::filesystem::path etc = "/etc";
    std::filesystem::path run = "/run";
};

class KeptSetup {
  public:
    // Tells a service by a program of its own: {"networkctl", "reload"}.
    using Run = std::function<Result<void>(std::vector<std::string>)>;
    KeptSetup(KeptRoots roots, Run run) : roots_(std::move(roots)), run_(std::move(run)) {}

    // Writes a file for each service that has run since the boot, none without. A service hears of
    // it only when a file has changed: after a reboot it has read them all. A file of that name
    // that somebody else wrote stays, with an Error.
    [[nodiscard]] Result<void> keep(GuestAttachment const& attachment) const;
    // Removes what was kept for attachments that the host no longer lends, also before a reboot.
    [[nodiscard]] Result<void> keep_only(std::vector<GuestAttachment> const& lent) const;

  private:
    KeptRoots roots_;
    Run run_;
};

// In the VM itself, by its own programs.
[[nodiscard]] KeptSetup kept_in_this_vm();

}  // namespace vfmgr::guest
